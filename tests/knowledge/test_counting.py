"""Files for counting: what literals weigh and which atoms are seen, in every dialect, and what is refused."""

import math
import pickle
import warnings
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import ParseError, UnknownAtom, WeightError
from lbm.knowledge.counting import MAX_FRACTION
from lbm.knowledge.theory import Theory, unweighted, weighing
from lbm.knowledge.wire import read_theory, write_theory
from tests.oracles import score_and_hard, worlds

THIRD = Fraction(1, 3)


def read(text, **options):
    """Read a .cnf text in which nothing is worth a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_theory(text, format="cnf", source="file", **options)


def remarked(text, **options):
    """Read a .cnf text, and return the theory with the warnings."""
    said = []
    return read_theory(text, format="cnf", source="file", warn=said.append, **options), said


def refusal(text, **options):
    with pytest.raises(ParseError) as caught:
        read(text, **options)
    return caught.value


def weights(text):
    return dict(read(text).literal_weights)


# --- what literals weigh -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "exact"),
    [
        ("1/3", THIRD),
        ("0.25", Fraction(1, 4)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("1e-3", Fraction(1, 1000)),
        ("1.5E+2", Fraction(150)),
        ("0", Fraction(0)),
        ("7", Fraction(7)),
        ("0.1000000000000000000000000000000000000000000000001", Fraction(10**48 + 1, 10**49)),
    ],
)
def test_weights_are_read_as_they_are_written(written, exact):
    assert weights(f"p cnf 1 0\nc p weight 1 {written} 0\nc p weight -1 1/3 0") == {"x1": (exact, THIRD)}


def test_lines_of_weights_may_stand_anywhere():
    text = "c p weight -2 2 0\nc t wmc\np cnf 2 1\n c  p weight 2 1/2 0\n1 2 0\nc p weight 1 0 0"
    text += "\nc p weight -1 4 0"
    assert weights(text) == {"x2": (Fraction(1, 2), 2), "x1": (0, 4)}


def test_competitions_take_one_weight_between_0_and_1_for_both_and_a_remark_says_so():
    theory, said = remarked("c t wmc\np cnf 2 0\nc p weight -1 0.3 0\nc p weight 2 1/4 0")
    assert theory.literal_weights == {
        "x1": (Fraction(7, 10), Fraction(3, 10)),
        "x2": (Fraction(1, 4), Fraction(3, 4)),
    }
    assert said == ["file:3:15: -1 has a weight and 1 has none: such pairs weigh 1 together"]


def test_cachet_gives_a_chance_to_a_variable_and_minus_one_means_one_and_one():
    assert weights("p cnf 4 1\nw 1 0.9\nw 2 -1\nw 3 0\nw 4 1\n1 2 0") == {
        "x1": (Fraction(9, 10), Fraction(1, 10)),
        "x3": (0, 1),
        "x4": (1, 0),
    }


def test_d4_gives_a_weight_to_a_literal_and_what_has_none_weighs_one():
    text = "w 3 5\np cnf 3 1\nw 1 0.4 0\nw -1 0.6 0\nw -2 3\n1 2 0"
    assert weights(text) == {"x3": (5, 1), "x1": (Fraction(2, 5), Fraction(3, 5)), "x2": (1, 3)}


def test_mini_c2d_has_one_line_for_all_literals():
    assert weights("c weights 0.5 0.5 2 3\nc weights of all literals\np cnf 2 0") == {
        "x1": (Fraction(1, 2), Fraction(1, 2)),
        "x2": (2, 3),
    }


def test_atoms_without_a_weight_and_those_that_weigh_one_have_none():
    assert weights("c t wmc\np cnf 2 0\nc p weight 1 1 0\nc p weight -1 1.0 0") == {}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("c p weight 1 -1/3 0", "3:14: literals weigh 0 or more, found -1/3"),
        ("c p weight 1 -1 0", "3:14: literals weigh 0 or more, found -1"),
        ("w 1 -0.5", "3:5: literals weigh 0 or more, found -0.5"),
        ("w -1 -1", "3:6: literals weigh 0 or more, found -1"),
        ("w 1 -1\nw -1 2", "3:5: literals weigh 0 or more, found -1"),
        ("c p weight 1 nan 0", "3:14: expected a weight, as 0.25, 1e-3 or 1/3, found 'nan'"),
        ("c p weight 1 inf 0", "found 'inf'"),
        ("c p weight 1 0.4+0.2i 0", "found '0.4+0.2i'"),
        ("c p weight 1 1/0 0", "found '1/0'"),
        ("c p weight 1 1/00 0", "found '1/00'"),
        ("c p weight 1 1_0 0", "found '1_0'"),
        ("c p weight 1 ٣ 0", "found '٣'"),
        ("c p weight 3 0.5 0", "3:12: expected a literal of the atoms from 1 to 2, found '3'"),
        ("c p weight 0 0.5 0", "found '0'"),
        ("c p weight x 0.5 0", "found 'x'"),
        ("w -3 0.5", "3:3: expected a literal of the atoms from 1 to 2, found '-3'"),
        ("c p weight 1 0", "3:1: expected 'c p weight LITERAL WEIGHT 0'"),
        ("c p weight 1 0.5", "expected 'c p weight LITERAL WEIGHT 0'"),
        ("c p weight 1 0.5 0.5 0", "expected 'c p weight LITERAL WEIGHT 0'"),
        ("w 1", "3:1: expected 'w LITERAL WEIGHT'"),
        ("c p weight 1 0.5 0\nc p weight 1 1/3 0", "4:14: the literal 1 weighs 1/2 already"),
        ("c p weight 1 0.5 0\nw 2 0.5", "4:1: expected weights as before, in lines 'c p weight'"),
        ("c weights 1 2 3", "3:1: expected two weights for each of the 2 atoms, found 3 in all"),
        ("c p weight 1 2 0", "3:14: the weight 2 of 1 does not say what -1 weighs"),
        ("c p weight -1 0 0", "3:15: the weight 0 of -1 does not say what 1 weighs"),
        ("c p weight 1 1 0", "strictly between 0 and 1; give both"),
        ("w 1 1.5", "from 0 to 1; give both"),
        (f"c p weight 1 0.{'3' * MAX_FRACTION} 0", "limit MAX_FRACTION"),
        ("c p weight 1 1e999999999 0", "limit MAX_FRACTION"),
        ("c p weight 1 1e-1000 0", "limit MAX_FRACTION"),
        ("c p gweight 2 0", "3:1: expected 'c p show' or 'c p weight', found 'c p gweight'"),
        ("c t sat", "3:5: expected a task among mc, wmc, pmc, pwmc, found 'sat': we do no other"),
        ("c t amc-complex", "found 'amc-complex'"),
        ("c t wmc\nc t mc", "4:1: a second task: the first one was wmc"),
        ("c max 1 2 0", "3:1: the line 'c max' asks for the largest of many counts"),
        ("c p show 3 0", "3:1: expected atoms from 1 to 2 to show, found '3'"),
        ("c p show -1 0", "found '-1'"),
        ("vp 3 0", "3:1: expected atoms from 1 to 2 to show, found '3'"),
        ("c ind 3 0", "3:1: expected atoms from 1 to 2 to show, found '3'"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_stands(lines, message):
    assert message in str(refusal(f"c first\np cnf 2 0\n{lines}\n"))


@pytest.mark.parametrize(
    "line",
    [
        "c t his is text",
        "c t",
        "c p cnf 3 4",
        "c p what about this",
        "c ind this means",
        "c maximal",
        "c max 3",
        "c weights 1 to 5",
        "c w 1 2",
        "cw",
    ],
)
def test_comments_in_words_stay_comments(line):
    assert read(f"{line}\np cnf 2 1\n{line}\n1 2 0\n{line}") == read("p cnf 2 1\n1 2 0")


def test_lines_behind_a_percent_sign_are_not_read():
    assert weights("p cnf 1 1\n1 0\n%\n0\nc p weight 1 x 0\n") == {}


# --- which atoms are seen --------------------------------------------------------------------------


def test_atoms_are_shown_by_every_kind_of_line_and_lines_add_up():
    assert read("c p show 2 0\np cnf 3 0\nc p show 1 2 0").shown == ("x2", "x1")
    assert read("c ind 1 0\np cnf 3 0\nc ind 3 0").shown == ("x1", "x3")
    assert read("p pcnf 3 1 2\nvp 1 3 0\n1 2 0").shown == ("x1", "x3")
    assert read("vp 3 0\np cnf 3 0").shown == ("x3",)
    assert read("c p show 0\np cnf 3 0").shown == ()
    assert read("p cnf 3 0").shown is None


def test_dpmc_has_a_header_of_its_own():
    theory = read("p wpcnf 2 1\nvp 1 0\nw 1 1.5\nw -1 2.5\n1 2 0\n")
    assert theory.shown == ("x1",)
    assert theory.literal_weights == {"x1": (Fraction(3, 2), Fraction(5, 2))}


def test_the_task_of_a_file_says_what_counts_and_what_it_leaves_out_is_told():
    text = "c t {}\np cnf 2 0\nc p show 1 0\nc p weight 1 2 0\nc p weight -1 3 0"
    left = "file:1:1: 'c t {}' asks for no weights: those of literals are left out"
    whole = "file:3:1: 'c t {}' asks for whole models: which atoms are to be shown is left out"
    pair = {"x1": (2, 3)}
    for task, shown, weighed, said in (
        ("mc", None, {}, [left, whole]),
        ("wmc", None, pair, [whole]),
        ("pmc", ("x1",), {}, [left]),
        ("pwmc", ("x1",), pair, []),
        ("wpmc", ("x1",), pair, []),
    ):
        theory, told = remarked(text.format(task))
        assert (theory.shown, dict(theory.literal_weights)) == (shown, weighed), task
        assert told == [line.format(task) for line in said]


def test_a_projected_task_that_shows_nothing_sees_no_atom():
    theory, said = remarked("c t pmc\np cnf 2 0\n")
    assert theory.shown == ()
    assert said == ["file:1:1: 'c t pmc' without a line 'c p show' shows no atom: what is counted is 1 or 0"]


def test_weights_are_for_atoms_that_are_shown():
    text = "c t pwmc\np cnf 2 1\n1 2 0\nc p show 1 0\nc p weight 2 2 0\nc p weight -2 3 0\n"
    assert "5:14: weights are for the atoms that are shown, and 2 is not among them" in str(refusal(text))
    theory, said = remarked(text, lenient=True)
    assert not theory.literal_weights
    assert len(said) == 1
    assert read(text.replace("2 2 0", "2 1 0").replace("-2 3 0", "-2 1 0")).shown == ("x1",)


def test_a_wcnf_file_has_other_weights_and_shows_atoms_all_the_same():
    theory = read_theory("c t wmc\nc p weight 1 2 0\nc p show 1 0\n5 1 2 0", format="wcnf")
    assert theory.shown == ("x1",)
    assert not theory.literal_weights


# --- what a theory says of it ----------------------------------------------------------------------

fractions = st.fractions(0, 5, max_denominator=50)
pairs = st.dictionaries(st.sampled_from("abc"), st.tuples(fractions, fractions))


@given(pairs)
def test_the_score_of_a_model_is_the_logarithm_of_its_weight(found):
    theory = weighing(Theory(["a | b"], atoms="abc"), found)
    for world in worlds("abc"):
        product = math.prod(
            (found[name][not value] for name, value in world.items() if name in found), start=Fraction(1)
        )
        score, hard = score_and_hard(theory, world)
        kept = hard == sum(statement.weight is None for statement in theory)
        assert kept == theory.is_model(world) == bool(product and (world["a"] or world["b"]))
        if kept:
            assert float(score) == pytest.approx(math.log(product), abs=1e-13)
            assert theory.score(world) == score


@given(pairs)
def test_weights_can_be_taken_away_again_and_survive_a_pickle(found):
    bare = Theory(["a | b", (2, "c")], atoms="abc")
    theory = weighing(bare, found)
    assert unweighted(theory) == bare
    assert pickle.loads(pickle.dumps(theory)) == theory
    assert pickle.loads(pickle.dumps(theory)).literal_weights == found
    assert theory.all_hard() == bare.all_hard()
    assert (theory == bare) is (not found)


@given(pairs, st.booleans())
def test_what_is_written_is_read_again(found, some):
    text = "p cnf 3 2\n1 2 0\n-3 1 0\nc atom 1 a\nc atom 2 b\nc atom 3 c\n" + "c p show 1 2 3 0\n" * some
    theory = weighing(read(text), found)
    again = read("".join(write_theory(theory, "cnf")))
    assert again.shown == theory.shown
    said = {name: pair for name, pair in found.items() if pair != (1, 1)}
    assert again.literal_weights == said
    assert again == weighing(read(text), said)


def test_weights_of_unknown_atoms_and_below_zero_are_refused():
    with pytest.raises(UnknownAtom, match="no atom 'b'"):
        weighing(Theory(["a"]), {"b": (THIRD, THIRD)})
    with pytest.raises(WeightError, match="literals weigh 0 or more, got -1/3 for 'a'"):
        weighing(Theory(["a"]), {"a": (THIRD, -THIRD)})
