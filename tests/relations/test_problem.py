"""Problems: the seven data sets are read, and what does not fit together is one line with its place."""

import pickle

import pytest

import lbm
from lbm.errors import FileError, LbmError, ParseError
from lbm.relations.evidence import infer_labels
from lbm.relations.problem import load_problem, read_folds
from lbm.relations.prolog.reader import read_term
from lbm.relations.prolog.terms import write
from lbm.relations.saturate import saturate

BACKGROUND = "bond(a, b). bond(b, c). heavy(a). linked(X, Y) :- bond(X, Y)."
MODES = ":- modeh(1, good(+atom)). :- modeb(*, bond(+atom, -atom)). :- determination(good/1, bond/2)."
FILES = {"bk.pl": BACKGROUND, "pos.pl": "good(a). good(b).", "neg.pl": "good(c).", "modes.pl": MODES}


@pytest.fixture
def write_problem(tmp_path):
    """Return a function that writes the files of a problem, some of them changed, or left out by None."""

    def write_files(**changed):
        for name, text in (FILES | {name.replace("_", "."): text for name, text in changed.items()}).items():
            if text is not None:
                (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path

    return write_files


@pytest.mark.parametrize(
    ("name", "counts", "folds", "odd"),
    [
        ("alz_amine", (343, 343), 10, ["ring_subst_1/2"]),
        ("alz_acetyl", (663, 663), 10, ["ring_subst_1/2"]),
        ("alz_memory", (321, 321), 10, ["ring_subst_1/2"]),
        ("alz_toxic", (443, 443), 10, ["ring_subst_1/2"]),
        ("mutagenesis", (125, 63), 10, ["connected/2"]),
        ("krk", (3240, 6760), None, []),
        ("uwcse", (113, 226), 5, ["tempadvisedby/2"]),
    ],
)
def test_the_seven_sets_are_read_with_their_warnings(dataset, name, counts, folds, odd):
    problem = load_problem(dataset(name))
    assert (len(problem.positive), len(problem.negative)) == counts
    assert problem.labels == (True,) * counts[0] + (False,) * counts[1]
    assert problem.examples == problem.positive + problem.negative
    assert (problem.folds and len(set(problem.folds.values()))) == folds
    assert [warning.split()[0] for warning in problem.warnings] == odd
    for warning in problem.warnings:
        assert "modes.pl:" in warning


def test_other_files_can_be_named(dataset):
    typed = load_problem(dataset("krk"), modes="modes_typed.pl")
    assert len(typed.modes.body) == 18
    place = dataset("uwcse")
    more = load_problem(place, negative="neg_studentprof2711.pl", folds=place / "area_of_person.tsv")
    assert len(more.negative) == 2711
    assert sorted(set(more.folds.values())) == ["ai", "graphics", "language", "systems", "theory"]
    without = load_problem(place, negative="neg_studentprof2711.pl")
    assert without.folds is None
    assert any("folds.tsv is not read" in warning for warning in without.warnings)


def test_a_problem_is_what_its_files_say(write_problem):
    place = write_problem(
        folds_tsv="example\tlabel\tfold\ngood(a)\tpos\t1\ngood( b )\tpos\t2\n\ngood(c)\tneg\t1\n"
    )
    problem = load_problem(place)
    assert problem.name == place.name
    assert problem.target == ("good", 1)
    assert problem.background.facts("bond", 2) == (("a", "b"), ("b", "c"))
    assert {write(example): fold for example, fold in problem.folds.items()} == {
        "good(a)": "1",
        "good(b)": "2",
        "good(c)": "1",
    }
    assert problem.warnings == ()
    again = pickle.loads(pickle.dumps(problem))
    assert again == problem


def test_modes_may_stand_in_the_background(write_problem):
    problem = load_problem(write_problem(bk_pl=f"{MODES} {BACKGROUND}", modes_pl=None))
    assert len(problem.modes.body) == 1


def test_operators_declared_in_the_background_hold_in_all_files(write_problem):
    place = write_problem(bk_pl=f":- op(700, xfx, near). {BACKGROUND} a near b.", pos_pl="good(a near b).")
    assert write(load_problem(place).positive[0]) == "good(near(a,b))"


def test_facts_for_two_classes_and_repeated_lines_within_one_are_told_apart(write_problem):
    assert len(load_problem(write_problem(pos_pl="good(a). good(a).")).positive) == 2


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"bk_pl": None}, "bk.pl: No such file"),
        ({"pos_pl": None}, "pos.pl: No such file"),
        ({"neg_pl": None}, "neg.pl: No such file"),
        ({"modes_pl": None}, "modes.pl: No such file"),
        ({"bk_pl": "bond(a, b).\nbond(a b)."}, "bk.pl:2:8: expected an operator"),
        ({"pos_pl": "good(a).\ngood(a, b)."}, "pos.pl:2: expected examples of good/1, as at"),
        (
            {"bk_pl": f"{BACKGROUND}\nbond(X, Y) :- heavy(X, Y)."},
            "bk.pl:2: expected a predicate that has clauses or is built in, found heavy/2 (but heavy/1 has)",
        ),
        (
            {"bk_pl": f"{BACKGROUND}\nbond(X, Y) :- mid(X, Y).\nmid(X, Y) :- findall(Z, ghost(Z), [X, Y])."},
            "bk.pl:3: expected a predicate that has clauses or is built in, found ghost/1: define it",
        ),
        ({"neg_pl": "good(c).\ngood(b)."}, "neg.pl:2: the negative example good(b) is a positive one too"),
        ({"pos_pl": ""}, "expected at least one positive example"),
        ({"pos_pl": "", "neg_pl": ""}, "expected at least one positive example"),
        ({"pos_pl": "good(a).\nbad(a)."}, "pos.pl:2: expected examples of good/1"),
        ({"pos_pl": "good(X)."}, "pos.pl:1: expected an example without variables"),
        ({"pos_pl": "good(a) :- heavy(a)."}, "pos.pl:1: expected an example without variables"),
        ({"pos_pl": ":- good(a)."}, "pos.pl:1: expected an example without variables"),
        ({"modes_pl": "heavy(a)."}, "modes.pl:1: expected a directive"),
        ({"modes_pl": ":- modeb(*, bond(+atom, -atom))."}, "expected a mode of the head"),
        ({"modes_pl": ":- modeh(1, good(+atom))."}, "expected a body mode"),
        (
            {"modes_pl": ":- modeh(1, good(+x)). :- modeb(1, none(+x)). :- determination(good/1, none/1)."},
            "of a predicate that has clauses, found none",
        ),
        ({"folds_tsv": ""}, "folds.tsv:1: expected a header"),
        (
            {"folds_tsv": "example\tfold\ngood(a)\t1\ngood(x)\t1"},
            "folds.tsv:3: expected an example of this problem",
        ),
        ({"folds_tsv": "example\tfold\ngood(a)\t1"}, "2 have none: good(b) first"),
        ({"folds_tsv": "example\tfold\ngood(a)"}, "folds.tsv:2: expected 2 columns, found 1"),
        ({"folds_tsv": "example\tfold\ngood(a\t1"}, "folds.tsv:2: expected an operator"),
        ({"folds_tsv": "example\tfold\na. b\t1"}, "folds.tsv:2: expected one term"),
        ({"folds_tsv": "example\tfold\ngood(a)\t1\ngood(a)\t2"}, "folds.tsv:3: good(a) is in two folds"),
        ({"folds_tsv": "example\tlabel\tfold\ngood(a)\tneg\t1"}, "folds.tsv:2: good(a) is said to be neg"),
    ],
)
def test_what_does_not_fit_together_is_one_line(write_problem, changed, words):
    with pytest.raises(LbmError) as caught:
        load_problem(write_problem(**changed))
    line = caught.value.one_line()
    assert words in line
    assert "\n" not in line
    assert caught.value.exit_status == 2


def test_a_missing_directory_is_one_line(tmp_path):
    with pytest.raises(FileError, match="expected a directory"):
        load_problem(tmp_path / "none")


def test_folds_by_constants_are_the_same_for_all_constants_of_an_example(tmp_path):
    path = tmp_path / "areas.tsv"
    path.write_text("person\tarea\nann\tai\nbob\tai\ncid\ttheory\n")
    one, two = read_term("knows(ann, bob)"), read_term("knows(ann, x)")
    assert read_folds(path, [one], [two]) == {one: "ai", two: "ai"}
    with pytest.raises(ParseError, match=r"knows\(ann,cid\), found ai and theory"):
        read_folds(path, [one], [read_term("knows(ann, cid)")])
    with pytest.raises(ParseError, match="1 have none"):
        read_folds(path, [one], [read_term("knows(x, y)")])
    with pytest.raises(FileError, match="cannot read"):
        read_folds(tmp_path / "none.tsv", [one], [])


def test_rules_that_call_what_nothing_defines_are_a_warning(write_problem):
    problem = load_problem(write_problem(bk_pl=f"{BACKGROUND}\np(X) :- heavy(X), ghost(X), X \\= a."))
    (warning,) = problem.warnings
    assert warning.startswith("ghost/1 has no clauses: called at ")
    assert warning.endswith("bk.pl:2")


def test_a_name_with_two_arities_is_two_predicates(write_problem):
    background = f"{BACKGROUND} bond(c). heavy(b, 2). bond(X) :- heavy(X, _)."
    modes = f"{MODES} :- modeb(*, heavy(+atom, #int)). :- determination(good/1, heavy/2)."
    problem = load_problem(write_problem(bk_pl=background, modes_pl=modes))
    assert problem.warnings == ()
    assert problem.background.facts("bond", 1) == (("c",),)
    assert saturate(problem, problem.positive[1]).body == ("bond(A,B)", "heavy(A,2)")


def test_an_arity_that_nothing_defines_is_a_warning_that_names_the_one_that_is(write_problem):
    modes = f"{MODES}\n:- modeb(1, heavy(+atom, +atom)). :- determination(good/1, heavy/2)."
    (warning,) = load_problem(write_problem(modes_pl=modes)).warnings
    assert warning.startswith("heavy/2 has no clauses (but heavy/1 has): mode at ")
    assert "modes.pl:2" in warning


def test_a_predicate_declared_dynamic_may_have_no_clauses(write_problem):
    background = f":- dynamic ghost/1, spirit/2. {BACKGROUND} bond(X, c) :- ghost(X)."
    problem = load_problem(write_problem(bk_pl=background))
    assert problem.warnings == ()
    assert saturate(problem, problem.positive[0]).body == ("bond(A,B)", "bond(B,C)")


def test_determinations_without_modes_and_modes_without_determinations_are_warnings(write_problem):
    extra = ":- determination(good/1, heavy/1). :- modeb(1, linked(+atom, -atom))."
    problem = load_problem(write_problem(modes_pl=f"{MODES} {extra}"))
    assert [warning.split(":")[0] for warning in problem.warnings] == [
        "linked/2 has no determination, and is not used",
        "heavy/1 has no mode, and is not used",
    ]


def test_the_public_name_loads_a_problem_with_every_option(write_problem, tmp_path):
    place = write_problem()
    (tmp_path / "other.pl").write_text("good(d).")
    (tmp_path / "more.pl").write_text(MODES)
    (tmp_path / "f.tsv").write_text("example\tfold\ngood(a)\t1\ngood(b)\t2\ngood(d)\t1\n")
    options = {"modes": "more.pl", "negative": "other.pl", "folds": "f.tsv"}
    found = lbm.RelationalProblem.load(str(place), **options)
    assert isinstance(found, lbm.RelationalProblem)
    assert list(map(write, found.negative)) == ["good(d)"]
    assert sorted(found.folds.values()) == ["1", "1", "2"]
    assert lbm.infer is infer_labels  # its name in version 0.1
