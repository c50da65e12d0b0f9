"""Knowledge as arrays: what cubes say is what formulae say, and the label comes last."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.errors import ContradictoryKnowledge, TooManyCubes, UnknownAtom, WeightError
from lbm.knowledge.formula import holds
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import MAX_KNOWLEDGE_CUBES, compile_knowledge, label_names, restrict
from tests.oracles import truth
from tests.strategies import formulae, within_reach

COLUMNS = ("a", "b", "c")
LABELS = {2: ("y",), 3: ("y = 0", "y = 1", "y = 2"), 4: ("y = 0", "y = 1", "y = 2", "y = 3")}


def worlds(labels):
    """Every row with every class, as an array over columns and labels."""
    patterns = [(0,), (1,)] if len(labels) == 1 else np.eye(len(labels), dtype=int).tolist()
    return [(*row, *pattern) for row in product((0, 1), repeat=len(COLUMNS)) for pattern in patterns]


def cubes_true(knowledge, world):
    """Which units' cubes are true in a world, literal by literal."""
    signs = knowledge.signs.toarray()
    return [
        all(world[i] == (sign > 0) for i, sign in enumerate(column) if sign) for column in signs.T.tolist()
    ]


@st.composite
def problems(draw):
    labels = LABELS[draw(st.sampled_from([2, 3, 4]))]
    weights = st.none() | st.integers(-9, 9).filter(bool)
    statement = st.tuples(weights, formulae([*COLUMNS, *labels], max_leaves=6))
    return Theory(draw(st.lists(statement, max_size=3))), labels


@settings(max_examples=20)
@given(problems())
def test_exactly_one_cube_of_a_formula_is_true_where_it_holds_and_none_elsewhere(problem):
    theory, labels = problem
    knowledge = within_reach(lambda: compile_knowledge(theory, columns=COLUMNS, labels=labels))
    for world in worlds(labels):
        true = np.array(cubes_true(knowledge, world), dtype=bool)
        named = dict(zip((*COLUMNS, *labels), map(bool, world), strict=True))
        for number, statement in enumerate(theory):
            wanted = truth(statement.formula, named) != (
                statement.weight is not None and statement.weight < 0
            )
            assert true[knowledge.unit[knowledge.owner == number]].sum() == wanted


@settings(max_examples=20)
@given(problems())
def test_a_formula_that_says_the_same_of_every_class_has_no_cube_with_a_label_true(problem):
    theory, labels = problem
    knowledge = within_reach(lambda: compile_knowledge(theory, columns=COLUMNS, labels=labels))
    speaks = (knowledge.signs.toarray()[len(COLUMNS) :] != 0).any(axis=0)
    classes = 2 if len(labels) == 1 else len(labels)
    for row, group in enumerate(np.array(worlds(labels)).reshape(-1, classes, len(COLUMNS) + len(labels))):
        for number, statement in enumerate(theory):
            named = [dict(zip((*COLUMNS, *labels), map(bool, world), strict=True)) for world in group]
            if len({truth(statement.formula, world) for world in named}) > 1:
                continue
            mine = knowledge.unit[knowledge.owner == number]
            for world in group:
                assert not (np.array(cubes_true(knowledge, world), dtype=bool) & speaks)[mine].any(), row


@given(formulae(), st.dictionaries(st.sampled_from("abcdef"), st.booleans()))
def test_a_restricted_formula_says_what_the_formula_says_with_those_atoms_known(formula, known):
    rest = restrict(formula, known)
    for values in product((False, True), repeat=6):
        world = dict(zip("abcdef", values, strict=True)) | known
        assert holds(rest, world) == truth(formula, world)


@given(
    st.lists(st.sampled_from(["a & b -> y", "~c -> ~y", "a -> y", "y", "a | c -> y", "y <- b"]), min_size=1)
)
def test_the_rule_encoding_keeps_the_cubes_that_mention_the_label(rules):
    both = [
        compile_knowledge(Theory(rules), columns=COLUMNS, labels=["y"], encoding=encoding)
        for encoding in ("sdnf", "rule")
    ]
    found = []
    for knowledge in both:
        signs = knowledge.signs.toarray()
        strength = knowledge.unit_confidences(knowledge.initial)
        found.append({tuple(unit): w for unit, w in zip(signs.T.tolist(), strength, strict=True) if unit[-1]})
    assert found[0] == found[1]


def test_a_rule_is_one_cube_in_the_rule_encoding_whatever_the_number_of_classes():
    knowledge = compile_knowledge(
        Theory(["a & ~b -> 'y = 1'"]), columns=COLUMNS, labels=LABELS[3], encoding="rule"
    )
    assert knowledge.signs.toarray().T.tolist() == [[1, -1, 0, 0, 1, 0]]


def test_identical_cubes_of_two_formulae_are_one_unit_that_weighs_both():
    knowledge = compile_knowledge(Theory([(2, "a -> y"), (3, "y <- a")]), columns=["a"], labels=["y"])
    assert knowledge.units == 2
    assert knowledge.unit_confidences(knowledge.initial).tolist() == [5.0, 5.0]


def test_weights_are_confidences_and_hard_fixes_formulae_without_one():
    theory = Theory([(-3, "a & y"), "b -> y", ("0.25", "c")])
    knowledge = compile_knowledge(theory, columns=COLUMNS, labels=["y"], confidence=7.0, hard=True)
    assert knowledge.initial.tolist() == [3.0, 7.0, 0.25]
    assert knowledge.fixed.tolist() == [False, True, False]


def test_no_theory_is_no_units():
    knowledge = compile_knowledge(None, columns=COLUMNS, labels=["y"])
    assert (knowledge.units, knowledge.labels, knowledge.signs.shape) == (0, ("y",), (4, 0))


def test_a_theory_of_the_label_only_is_one_unit():
    knowledge = compile_knowledge(Theory(["y"]), columns=["a"], labels=["y"])
    assert knowledge.signs.toarray().tolist() == [[0], [1]]


def test_terms_are_found_however_a_column_spells_them():
    knowledge = compile_knowledge(Theory(["less(a, b) -> y"]), columns=["less(a,b)"], labels=["y"])
    assert knowledge.units == 2


def test_names_of_label_atoms_follow_the_number_of_classes():
    assert label_names("win", ["no", "yes"]) == ("win",)
    assert label_names("kind", [1, 2, 3]) == ("kind = 1", "kind = 2", "kind = 3")


@pytest.mark.parametrize(
    ("theory", "options", "kind", "message"),
    [
        (["brid -> y"], {}, UnknownAtom, "no atom 'brid' in this table; did you mean 'bird'?"),
        (["bird -> fly"], {}, UnknownAtom, "no atom 'fly' in this table"),
        (["bird", "~bird"], {"hard": True}, ContradictoryKnowledge, "bird; ~bird; give one a weight"),
        ([("1e30", "bird")], {}, WeightError, "limit MAX_CONFIDENCE"),
        (["bird"], {"confidence": 0.0}, ValueError, "above 0"),
        (["bird"], {"confidence": float("nan")}, ValueError, "above 0"),
        (["bird"], {"epsilon": 1.0}, ValueError, "strictly between 0 and 1"),
        (["bird"], {"encoding": "cube"}, ValueError, "expected the encoding"),
        (["y -> bird"], {"encoding": "rule"}, ValueError, "use encoding='sdnf'"),
        (["bird & y"], {"encoding": "rule"}, ValueError, "use encoding='sdnf'"),
        ([(-1, "bird -> y")], {"encoding": "rule"}, ValueError, "of negative weight"),
        (["bird"], {"columns": ["bird", "bird"]}, ValueError, "two columns have one name: 'bird'"),
        (["bird"], {"labels": ["bird"]}, ValueError, "the name of a column: 'bird'"),
    ],
)
def test_what_cannot_be_compiled_is_named(theory, options, kind, message):
    with pytest.raises(kind) as caught:
        compile_knowledge(Theory(theory), **{"columns": ["bird", "penguin"], "labels": ["y"]} | options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_classes_at_once_contradict_one_another():
    with pytest.raises(ContradictoryKnowledge):
        compile_knowledge(Theory(["'y = 0'", "'y = 1'"]), columns=["a"], labels=LABELS[3], hard=True)


def test_soft_formulae_may_contradict_one_another():
    assert compile_knowledge(Theory(["a", "~a"]), columns=["a"], labels=["y"]).units == 2


def test_a_formula_past_the_limit_is_named():
    names = [f"x{i}" for i in range(20)]
    with pytest.raises(TooManyCubes, match=r"MAX_KNOWLEDGE_CUBES.*x0 \^ x1") as caught:
        compile_knowledge(Theory([parse(f"{' ^ '.join(names)} -> y")]), columns=names, labels=["y"])
    assert caught.value.value == MAX_KNOWLEDGE_CUBES
