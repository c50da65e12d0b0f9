"""Files as they are: Aleph's, Popper's and Progol's forms give the problem that four files give."""

from pathlib import Path

import pytest

from lbm.errors import LbmError
from lbm.relations.problem import load_problem
from lbm.relations.prolog.terms import write
from lbm.relations.saturate import saturate_all
from lbm.relations.written import save_problem

BACKGROUND = "animal(dog). animal(eel). animal(owl). legs(dog, 4). legs(owl, 2). feathers(owl). tame(dog)."
MODES = ":- modeh(1, walks(+animal)). :- modeb(1, legs(+animal, #int)). :- determination(walks/1, legs/2)."
POSITIVE, NEGATIVE = "walks(dog). walks(owl).", "walks(eel)."

PROGOL = """
:- set(r,1000)?
:- modeh(1,walks(+animal))?   % as Progol has it
:- modeb(1,legs(+animal,#int))?
animal(dog). animal(eel). animal(owl). legs(dog,4). legs(owl,2).
walks(dog). walks(owl).
:- walks(eel).
"""
SECTIONS = f"""
:- use_module(library(aleph)).
:- if(current_predicate(use_rendering/1)).
:- use_rendering(prolog).
:- endif.
:- aleph.
:- aleph_set(i, 3).
{MODES}
:- begin_bg.
{BACKGROUND}
:- end_bg.
:- begin_in_pos.
{POSITIVE}
:- end_in_pos.
:- begin_in_neg.
{NEGATIVE}
:- end_in_neg.
:- aleph_read_all.
"""
BIAS = """
max_vars(4). max_body(3). enable_recursion.
head_pred(walks,1). body_pred(legs,2). body_pred(tame,1).
type(walks,(animal,)). type(legs,(animal,int)). type(tame,(animal,)).
direction(walks,(in,)). direction(legs,(in,out)).
:- clause(C), #count{V : var_type(C,V,animal)} != 1.
"""
EXAMPLES = "pos(walks(dog)). neg(walks(eel)). pos(walks(owl))."


def put(place: Path, **files: str) -> Path:
    for name, text in files.items():
        (place / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return place


def same(one, other):
    assert (one.positive, one.negative) == (other.positive, other.negative)
    for ours, theirs in zip(saturate_all(one), saturate_all(other), strict=True):
        assert (ours.head, sorted(ours.body)) == (theirs.head, sorted(theirs.body))


@pytest.fixture
def four(tmp_path):
    (tmp_path / "four").mkdir()
    files = {"bk_pl": BACKGROUND, "pos_pl": POSITIVE, "neg_pl": NEGATIVE, "modes_pl": MODES}
    return load_problem(put(tmp_path / "four", **files))


def test_alephs_stem_is_found_by_its_name_its_files_and_its_directory(four, tmp_path, monkeypatch):
    put(tmp_path, t_b=f"{MODES} {BACKGROUND}", t_f=POSITIVE, t_n=NEGATIVE)
    monkeypatch.chdir(tmp_path)
    for name in ("t", "t.b", "t.f", "t.n", tmp_path / "t", tmp_path):
        problem = load_problem(name)
        assert problem.name == "t"
        assert problem.warnings == ()
        same(problem, four)


def test_aleph_in_one_file_has_sections(four, tmp_path):
    problem = load_problem(put(tmp_path, t_pl=SECTIONS) / "t.pl")
    assert problem.warnings == ()
    assert problem.modes.settings == {"i": 3}
    same(problem, four)
    same(load_problem(tmp_path / "t"), four)


def test_progol_has_its_examples_among_the_clauses_and_asks_its_directives(four, tmp_path):
    problem = load_problem(put(tmp_path, t_pl=PROGOL) / "t.pl")
    assert problem.modes.settings == {"r": 1000}
    same(problem, four)
    same(load_problem(tmp_path), four)


def test_poppers_bias_becomes_modes(four, tmp_path):
    problem = load_problem(put(tmp_path, bk_pl=BACKGROUND, bias_pl=BIAS, exs_pl=EXAMPLES))
    assert list(map(str, problem.modes.body)) == ["*, legs(+animal,-int)", "*, tame(+animal)"]
    assert problem.modes.settings == {"max_vars": 4, "max_body": 3}
    assert (problem.positive, problem.negative) == (four.positive, four.negative)
    said = " ".join(problem.warnings)
    assert "enable_recursion is not used" in said
    assert "bias.pl:6: this part of the bias is not used: :- clause(C), #count" in said
    assert len(problem.warnings) == 2
    assert problem.modes.body[1].clause.line == 3


def test_a_bias_without_types_and_directions_lets_each_argument_be_the_input(tmp_path):
    bias = (
        "head_pred(walks,1). body_pred(legs,2). body_pred(P,1) :- named(P), not odd(P). "
        "named(tame). named(x). odd(x)."
    )
    problem = load_problem(put(tmp_path, bk_pl=BACKGROUND, bias_pl=bias, exs_pl=EXAMPLES))
    assert list(map(str, problem.modes.body)) == [
        "*, legs(+any,-any)",
        "*, legs(-any,+any)",
        "*, tame(+any)",
    ]


def test_what_a_bias_says_that_nobody_knows_is_named(tmp_path):
    bias = f"{BIAS}\ncolour(red).\nbk_cons(3)."
    problem = load_problem(put(tmp_path, bk_pl=BACKGROUND, bias_pl=bias, exs_pl=EXAMPLES))
    assert any("colour/1 is not used" in warning for warning in problem.warnings)
    assert any("bk_cons/1 is not used" in warning for warning in problem.warnings)


@pytest.mark.parametrize(
    ("bias", "words"),
    [
        ("body_pred(legs,2).", "expected one head_pred(name,arity), found none"),
        ("head_pred(a,1). head_pred(b,1).", "found a/1, b/1"),
        ("head_pred(walks,x).", "expected head_pred(name,arity), found head_pred(walks,x)"),
        (
            "head_pred(walks,1). direction(walks,(up,)).",
            "expected directions in and out of walks/1, found up",
        ),
        ("head_pred(walks,1).\nbody_pred(legs,2", "bias.pl:2:1: expected a full stop"),
        ("head_pred(walks,1).\nbody_pred(legs 2).", "bias.pl:2:16: expected"),
        ("head_pred(X,1) :- head_pred(X,1).", "head_pred cannot be worked out"),
    ],
)
def test_a_bias_that_says_nothing_of_use_is_one_line(tmp_path, bias, words):
    with pytest.raises(LbmError) as caught:
        load_problem(put(tmp_path, bk_pl=BACKGROUND, bias_pl=bias, exs_pl=EXAMPLES))
    assert words in caught.value.one_line()
    assert "\n" not in caught.value.one_line()


def test_an_example_of_popper_is_positive_or_negative(tmp_path):
    with pytest.raises(
        LbmError, match=r"exs.pl:1: expected an example, pos\(...\) or neg\(...\), found walks\(dog\)"
    ):
        load_problem(put(tmp_path, bk_pl=BACKGROUND, bias_pl=BIAS, exs_pl="walks(dog)."))


def test_without_negative_examples_all_other_constants_of_the_types_are_negative(tmp_path):
    problem = load_problem(put(tmp_path, t_b=f"{MODES} {BACKGROUND}", t_f="walks(dog).") / "t")
    assert list(map(write, problem.negative)) == ["walks(eel)", "walks(owl)"]
    assert any("closed world" in warning for warning in problem.warnings)


@pytest.mark.parametrize(
    ("background", "words"),
    [
        ("legs(dog, 4).", "does not list the type animal"),
        (
            "legs(dog, 4). animal(X) :- between(1, 200000, X).",
            "limit CLOSED=100000",
        ),
        ("legs(dog, 4). animal(X) :- animal(X).", "and no closed world: no answer to animal(X) within"),
    ],
)
def test_where_no_closed_world_can_be_listed_that_is_said(tmp_path, background, words):
    problem = load_problem(put(tmp_path, t_b=f"{MODES} {background}", t_f="walks(dog).") / "t")
    assert problem.negative == ()
    assert words in " ".join(problem.warnings)


def test_an_empty_file_says_that_there_are_no_negative_examples(tmp_path):
    problem = load_problem(put(tmp_path, t_b=f"{MODES} {BACKGROUND}", t_f=POSITIVE, t_n="") / "t")
    assert problem.negative == ()


def test_constraints_that_prune_are_left_out_and_said(tmp_path):
    rule = "\nfalse :- hypothesis(H, B, _), bad(B)."
    problem = load_problem(put(tmp_path, t_b=f"{MODES} {BACKGROUND} {rule}", t_f=POSITIVE, t_n=NEGATIVE))
    (warning,) = problem.warnings
    assert warning.endswith("t.b:2: constraints, clauses for false, are not used")


def test_two_problems_in_a_directory_are_named(tmp_path):
    put(tmp_path, t_b=MODES, s_b=MODES)
    with pytest.raises(LbmError, match=r"expected one problem in .*, found s.b, t.b: name one of them"):
        load_problem(tmp_path)


def test_one_file_needs_a_target_with_facts(tmp_path):
    with pytest.raises(LbmError, match=r"t.pl: expected facts of one predicate .* found none"):
        load_problem(put(tmp_path, t_pl=f"{MODES} {BACKGROUND}") / "t.pl")


@pytest.mark.parametrize(
    "name", ["aleph-trains-stem", "aleph-trains-train", "popper-zendo1", "popper-zendo1-files"]
)
def test_public_problems_load_as_they_are_and_after_they_were_written(instances, tmp_path, name):
    problem = load_problem(instances / "ilp" / name)
    assert all(clause.body for clause in saturate_all(problem))
    save_problem(problem, tmp_path / "ours")
    again = load_problem(tmp_path / "ours")
    assert again.background == problem.background
    assert again.modes.body == problem.modes.body
    same(again, problem)


def test_the_two_forms_of_a_public_problem_are_one(instances):
    for one, other in (("aleph-trains-stem", "aleph-trains-train"), ("popper-zendo1", "popper-zendo1-files")):
        same(*(load_problem(instances / "ilp" / name) for name in (one, other)))


def test_a_written_problem_is_the_same_problem(problem_of, tmp_path):
    problem = problem_of(
        ":- dynamic none/1. p(a, 'B c'). p(X, Y) :- q(X), (Y = 1 ; \\+ q(Y)), !. "
        "p(b, [1, 2.5]). q(-1). '1'. s('').",
        "t('A', f(x)).",
        "t(b, -2).",
        ":- set(i, 1). :- modeh(1, t(+o, -o)). :- modeb(2, p(+o, #c)). :- modeb(*, not(q(+o))). "
        ":- modeb(1, (+o) = (#c)). :- determination(t/2, p/2). :- determination(t/2, (=)/2).",
    )
    save_problem(problem, tmp_path)
    again = load_problem(tmp_path)
    assert again.background == problem.background
    assert (again.examples, again.labels) == (problem.examples, problem.labels)
    assert (again.modes.head, again.modes.body) == (problem.modes.head, problem.modes.body)
    assert [one.predicate for one in again.modes.determinations] == [("p", 2), ("=", 2)]


def test_folds_are_written(problem_of, tmp_path):
    from dataclasses import replace

    problem = problem_of("p(a). p(b).", "t(a).", "t(b).", ":- modeh(1, t(+o)). :- modeb(1, p(+o)).")
    problem = replace(problem, folds={problem.positive[0]: "x", problem.negative[0]: "y"})
    assert "folds.tsv" in save_problem(problem, tmp_path / "deep" / "er")
    assert load_problem(tmp_path / "deep" / "er").folds == problem.folds
    with pytest.raises(LbmError, match="expected a directory, found a file"):
        save_problem(problem, tmp_path / "deep" / "er" / "bk.pl")
