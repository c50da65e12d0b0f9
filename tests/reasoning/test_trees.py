"""Trees of tables: what they say of a query is what looking at every world says, at any size."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import NoWorlds, TooManyWorlds
from lbm.knowledge.formula import atoms_of, conjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning.exact.apart import take_apart
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.exact.trees import MAX_ASKED, Trees
from lbm.reasoning.reasoner import Reasoner
from lbm.reasoning.status import settle
from tests.oracles import Oracle, truth
from tests.strategies import NAMES, formulae, theories


def status_of(query, worlds, scores, soft):
    """Return what a query is among worlds, each with its score."""
    true = [score for world, score in zip(worlds, scores, strict=True) if truth(query, world)]
    false = [score for world, score in zip(worlds, scores, strict=True) if not truth(query, world)]
    if not true or not false:
        return "entailed" if true else "refuted"
    if not soft or max(true) == max(false):
        return "undecided"
    return "preferred" if max(true) > max(false) else "dispreferred"


@given(theories(), formulae(NAMES), st.none() | formulae(NAMES), st.sampled_from([0.3, 1.0, 7.0]))
def test_a_query_is_weighed_as_by_looking_at_every_world(theory, query, evidence, temperature):
    asked = (query,) if evidence is None else (query, evidence)
    theory = Theory(theory.statements, atoms=tuple(dict.fromkeys([*theory.atoms, *atoms_of(*asked)])))
    split = take_apart(theory)
    oracle = Oracle(theory, evidence, temperature)
    if split is None:
        assert not oracle.numbers
        return
    found = Trees(split, temperature).weigh(query, evidence)
    if not oracle.numbers:
        assert found is None
        return
    assert found.probability == pytest.approx(oracle.chance(query), rel=1e-9, abs=1e-300)
    worlds = [oracle.world(number) for number in oracle.numbers]
    soft = any(statement.weight is not None for statement in theory)
    assert found.status == status_of(query, worlds, oracle.scores, soft)


def local_theory(atoms, seed, *, soft):
    """Return rules over neighbours in a row of atoms, hard ones true in a world, and that world."""
    rng = random.Random(seed)
    world = {f"r{i}": rng.random() < 0.5 for i in range(atoms)}
    lines = []
    while len(lines) < 3 * atoms:
        start = rng.randrange(atoms - 4)
        a, b, c, d = (f"{rng.choice(['', '~'])}r{i}" for i in rng.sample(range(start, start + 5), 4))
        text = rng.choice(["{} & ({} | {}) -> {}", "{} & ({} <-> {}) -> {}", "{} | ({} ^ {}) | {}"])
        text = text.format(a, b, c, d)
        if soft and rng.random() < 0.5:
            lines.append(f"{rng.choice(['', '-'])}{rng.randint(1, 90) / 10}: {text}")
        elif truth(parse(text), world):
            lines.append(text)
    return Theory.parse("\n".join(lines)), world


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_long_rows_of_rules_are_weighed_as_elimination_and_a_solver_say(atoms, soft):
    theory, world = local_theory(atoms, atoms, soft=soft)
    trees = Trees(take_apart(theory), 1.0)
    rng = random.Random(atoms)
    for turn in range(6):
        near = rng.randrange(len(theory.atoms) - 8)
        # Some questions are about one place, others about atoms far from one another.
        names = [*theory.atoms[near : near + 8], *(rng.sample(theory.atoms, 3) if turn % 2 else ())]
        some = [name if world[name] else f"~{name}" for name in names[3:]]
        evidence = parse(" & ".join([*some, f"({names[1]} | ~{names[2]} | {names[-1]})"]))
        query = parse(rng.choice([names[0], f"{names[0]} & ({names[1]} | ~{names[2]})"]))
        found = trees.weigh(query, evidence)
        known = Exact(theory).probability(query, evidence)
        assert found.probability == pytest.approx(known, rel=1e-9, abs=1e-12)
        assert found.status == settle(theory, query, given=evidence).status


def test_whole_numbers_past_64_bits_are_kept_exactly():
    lines = [f"{10**25 + i}: a{i} ^ a{i + 1}" for i in range(12)]
    theory = Theory.parse("\n".join([*lines, f"{10**25}: a0"]))
    found = Trees(take_apart(theory), 1.0).weigh(parse("a1"), None)
    assert (found.probability, found.status) == (0.0, "dispreferred")
    assert Trees(take_apart(theory), 1.0).weigh(parse("a0"), None).status == "preferred"


def test_a_theory_without_worlds_and_evidence_that_clashes_are_told_apart():
    reasoner = Reasoner(Theory(["a | b", "a -> c", "b -> c"]))
    with pytest.raises(NoWorlds, match="evidence"):
        reasoner.ask("a", given="~c")
    with pytest.raises(NoWorlds, match="evidence"):
        reasoner.ask("a", given="a & ~a")
    for text in ("a\n~a\nb | a", "a | b\na | ~b\n~a | b\n~a | ~b"):
        with pytest.raises(NoWorlds, match="allow no world"):
            Reasoner(Theory.parse(text)).ask("a", given="b")


@pytest.mark.parametrize("components", [2, 30, 300])
def test_a_component_that_no_question_mentions_is_not_taken_for_granted(components):
    xor = ["a{0} | b{0}", "~a{0} | ~b{0}"]
    lines = [line.format(i) for i in range(components) for line in xor]
    fine = Reasoner(Theory.parse("\n".join(lines)))
    assert fine.ask("a0", given="a1 | b1").probability == 0.5
    last = components - 1
    clashing = [f"a{last} | ~b{last}", f"~a{last} | b{last}"]
    for soft in ([], ["2: a0"]):
        with pytest.raises(NoWorlds, match="allow no world"):
            Reasoner(Theory.parse("\n".join([*lines, *clashing, *soft]))).ask("a0", given="a1 | b1")


def test_what_ties_too_many_atoms_together_is_left_to_other_methods():
    names = [f"a{i}" for i in range(MAX_ASKED + 1)]
    theory = Theory([f"{a} | {b}" for a, b in pairwise(names)])
    wide = parse(" | ".join(f"(~{a})" for a in names))
    with pytest.raises(TooManyWorlds, match="MAX_ASKED"):
        Trees(take_apart(theory), 1.0).weigh(wide, None)
    oracle = Oracle(theory)
    assert Reasoner(theory).ask(wide).probability == pytest.approx(oracle.chance(wide))


def test_tables_past_their_limit_are_left_to_other_methods():
    rng = random.Random(3)
    names = [f"x{i}" for i in range(40)]
    lines = ["{} | {} | {}".format(*rng.sample(names, 3)) for _ in range(90)]
    theory = Theory.parse("\n".join(lines))
    trees = Trees(take_apart(theory), 1.0)
    for _ in range(2):  # the second time, it is known
        with pytest.raises(TooManyWorlds, match="MAX_ENTRIES"):
            trees.weigh(parse("x5"), None)
    evidence = conjunction([parse(f"~{name}") for name in names[:1]])
    answer = Reasoner(theory).ask("x5", given=evidence)
    assert answer.probability == pytest.approx(Exact(theory).probability(parse("x5"), evidence))
