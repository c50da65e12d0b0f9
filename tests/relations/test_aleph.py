"""Aleph beside us: the same bottom clauses, on data sets and on random problems."""

import random
import subprocess
from dataclasses import replace

import pytest

from lbm.errors import FileError, NoAnswer
from lbm.relations.problem import load_problem
from lbm.relations.saturate import saturate_all
from lbm.trials.learners import aleph as runner
from lbm.trials.learners.aleph import Aleph, AlephTheory, aleph_rules, find_aleph
from tests.reference.aleph import aleph_bottom_clauses


def agree(problem, depth, aleph):
    ours = saturate_all(problem, depth=depth)
    theirs = aleph_bottom_clauses(problem, depth=depth, seconds=120, aleph=aleph)
    assert len(ours) == len(theirs.clauses)
    for one, other in zip(ours, theirs.clauses, strict=True):
        # Aleph may say a literal twice if two modes of different nesting find it.
        assert (one.label, one.head, one.body) == (other.label, other.head, tuple(dict.fromkeys(other.body)))
    assert theirs.seconds > 0


def some(problem, number):
    return replace(
        problem, positive=problem.positive[:number], negative=problem.negative[:number], folds=None
    )


@pytest.mark.parametrize(
    ("name", "modes", "number", "depth"),
    [
        ("krk", "modes_typed.pl", 100, 2),
        ("uwcse", "modes.pl", 150, 1),
        ("uwcse", "modes_thaisluca.pl", 10, 1),
        ("mutagenesis", "modes.pl", 10, 2),
    ],
)
def test_our_bottom_clauses_are_alephs(dataset, aleph, name, modes, number, depth):
    agree(some(load_problem(dataset(name), modes=modes), number), depth, aleph)


CONSTANTS = ["a", "b", "c", "d", "1", "2", "1.0", "f(a)", "f(b)", "'X y'", "[a,b]", "-1", "-2.5"]


def random_problem(seed):
    """Return four texts: facts of a few predicates and one rule, examples, and modes of all kinds."""
    draw = random.Random(seed)
    types = ["s", "t", "u"]
    facts, modes, names = [], [], []
    for number in range(draw.randint(1, 5)):
        arity = draw.randint(1, 3)
        facts += [
            f"p{number}({','.join(draw.choice(CONSTANTS) for _ in range(arity))})."
            for _ in range(draw.randint(2, 14))
        ]
        for _ in range(draw.randint(1, 3)):
            places = [draw.choice("++--#") + draw.choice(types) for _ in range(arity)]
            places = [f"f({place})" if draw.random() < 0.1 else place for place in places]
            modes.append(f":- modeb({draw.choice('123**')},p{number}({','.join(places)})).")
        names.append(f"p{number}/{arity}")
    facts.append("both(X,Y) :- keep(X), (X = Y ; Y = c), \\+ X = d.")
    facts += [f"keep({constant})." for constant in CONSTANTS[:6]]
    modes += [":- modeb(*,both(+s,-t)).", ":- modeb(1,(+s)=(#t)).", ":- modeb(*,member(-u,+t))."]
    names += ["both/2", "(=)/2", "member/2"]
    draw.shuffle(names)
    last = draw.choice(["-t", "+s", "+t", "#t"])
    modes = [f":- modeh(1,ex(+s,{last})).", *modes, *(f":- determination(ex/2,{name})." for name in names)]
    examples = list(
        dict.fromkeys(f"ex({draw.choice(CONSTANTS)},{draw.choice(CONSTANTS)})." for _ in range(12))
    )
    return ["\n".join(lines) for lines in (facts, examples[:5], examples[5:], modes)], draw.randint(1, 4)


@pytest.mark.parametrize("seed", range(4))
def test_our_bottom_clauses_are_alephs_on_random_problems(problem_of, aleph, seed):
    texts, depth = random_problem(seed)
    agree(problem_of(*texts), depth, aleph)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 80))
def test_our_bottom_clauses_are_alephs_on_many_random_problems(problem_of, aleph, seed):
    texts, depth = random_problem(seed)
    agree(problem_of(*texts), depth, aleph)


# --- rules -------------------------------------------------------------------------------------------


def grandparents(problem_of):
    """Return a problem that two goals of one fact each define, and pairs that none of its examples name."""
    facts = " ".join(f"parent(p{k}, p{2 * k + 1}). parent(p{k}, p{2 * k + 2})." for k in range(15))
    pairs = [(k, 4 * k + 3 + more) for k in range(7) for more in range(4)]
    positive = " ".join(f"grand(p{a}, p{b})." for a, b in pairs)
    negative = " ".join(f"grand(p{b}, p{a})." for a, b in pairs)
    modes = (
        ":- modeh(1, grand(+x, +x)). :- modeb(*, parent(+x, -x)). :- modeb(1, parent(+x, +x)). "
        ":- determination(grand/2, parent/2)."
    )
    whole = problem_of(facts, positive, negative, modes)
    asked = whole.positive[::3] + whole.negative[::3]
    trained = replace(
        whole,
        positive=tuple(one for one in whole.positive if one not in asked),
        negative=tuple(one for one in whole.negative if one not in asked),
    )
    return trained, asked, len(whole.positive[::3])


def test_aleph_finds_the_rule_and_says_what_it_says_of_others(problem_of, aleph):
    problem, asked, yes = grandparents(problem_of)
    found = aleph_rules(problem, asked, aleph=aleph)
    assert found.ended == "done"
    assert found.said == (True,) * yes + (False,) * (len(asked) - yes)
    assert any(rule.startswith("grand(A, B):-parent(A, C)") for rule in found.rules)
    assert aleph_rules(problem, asked, aleph=aleph).rules == found.rules


def test_where_no_rule_is_good_enough_there_is_none_and_every_answer_is_no(problem_of, aleph):
    problem, asked, _ = grandparents(problem_of)
    found = aleph_rules(problem, asked, settings={"clauselength": 1}, aleph=aleph)
    assert found.ended == "done"
    assert found.rules == ()
    assert found.said == (False,) * len(asked)


def test_aleph_is_stopped_when_its_time_is_over_and_leaves_nothing(problem_of, aleph, tmp_path, monkeypatch):
    monkeypatch.setattr(runner.tempfile, "tempdir", str(tmp_path))
    problem, asked, _ = grandparents(problem_of)
    found = aleph_rules(problem, asked, seconds=0.01, aleph=aleph)
    assert (found.ended, found.said, found.rules) == ("time-out", (), ())
    assert not list(tmp_path.iterdir())


MODES = ":- modeh(1, t(+x)). :- modeb(*, e(+x, -x))."


# --- without Aleph -----------------------------------------------------------------------------------


@pytest.fixture
def problem(problem_of):
    return problem_of("e(a, b).", "t(a).", "t(b).", MODES)


def test_what_is_not_installed_is_said_with_how_to_install_it(monkeypatch, problem):
    monkeypatch.setattr(runner.shutil, "which", lambda name: None)
    with pytest.raises(FileError, match="swi-prolog-nox"):
        aleph_bottom_clauses(problem, depth=1)
    monkeypatch.setattr(runner.shutil, "which", lambda name: "/usr/bin/swipl")
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    with pytest.raises(FileError, match="python-rdm"):
        find_aleph()


def test_aleph_is_looked_for_beside_its_package(monkeypatch, tmp_path):
    place = tmp_path / "wrappers" / "aleph" / "aleph.pl"
    place.parent.mkdir(parents=True)
    place.write_text("")

    class Spec:
        submodule_search_locations = (str(tmp_path),)

    monkeypatch.setattr(runner.shutil, "which", lambda name: "/usr/bin/swipl")
    monkeypatch.setattr(runner, "find_spec", lambda name: Spec)
    assert find_aleph().program == place


def test_a_run_that_takes_too_long_or_fails_is_one_line(monkeypatch, problem, tmp_path):
    def stop(*arguments, **options):
        raise subprocess.TimeoutExpired("swipl", 1)

    monkeypatch.setattr(runner.subprocess, "run", stop)
    with pytest.raises(NoAnswer, match="within 1 seconds"):
        aleph_bottom_clauses(problem, depth=1, seconds=1, aleph=Aleph(tmp_path, tmp_path))

    def fail(*arguments, **options):
        return subprocess.CompletedProcess("swipl", 1, "", "Warning:\n  no such thing\n")

    monkeypatch.setattr(runner.subprocess, "run", fail)
    with pytest.raises(FileError, match="Warning: no such thing"):
        aleph_bottom_clauses(problem, depth=1, aleph=Aleph(tmp_path, tmp_path))


def test_what_the_driver_writes_is_read_as_clauses(monkeypatch, problem, tmp_path):
    def answer(command, cwd, **options):
        said = (cwd / "problem.b").read_text()
        assert ":- modeb(*,e(+(x),-(x)))." in said
        assert (cwd / "problem.f").read_text() == "t(a).\n"
        (cwd / "answers.txt").write_text("clause(pos,t(A),[e(A,B)]).\nclause(neg,t(A),[]).\ntook(0.25).\n")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(runner.subprocess, "run", answer)
    for name, text in {"bk": "e(a, b).", "pos": "t(a).", "neg": "t(b).", "modes": MODES}.items():
        (tmp_path / f"{name}.pl").write_text(text)
    found = aleph_bottom_clauses(problem, depth=1, aleph=Aleph(tmp_path, tmp_path))
    assert aleph_bottom_clauses(tmp_path, depth=1, aleph=Aleph(tmp_path, tmp_path)) == found
    assert [(clause.label, clause.head, clause.body) for clause in found.clauses] == [
        (True, "t(A)", ("e(A,B)",)),
        (False, "t(A)", ()),
    ]
    assert found.seconds == 0.25


def test_problems_are_written_with_settings_rules_and_negated_modes(problem_of):
    problem = problem_of(
        "p(1). p(X) :- q(X, _). p(2). q(a, 'B c'). g.",
        "t(a).",
        "t(b).",
        ":- set(depth, 20). :- modeh(1, t(+x)). :- modeb(1, not(p(+x))). :- modeb(*, q(+x, -y)).",
    )
    lines = list(runner._background(problem))
    assert lines == [
        ":- set(depth,20).",
        ":- modeh(1,t(+(x))).",
        ":- modeb(1,not(p(+(x)))).",
        ":- modeb(*,q(+(x),-(y))).",
        "p(1).",
        ":-(p(X),q(X,_1)).",
        "p(2).",
        "q(a,'B c').",
        "g.",
    ]


def test_settings_of_the_call_come_before_those_of_the_problem_and_files_are_never_named(
    monkeypatch, problem_of, tmp_path
):
    problem = problem_of(
        "e(a, b).", "t(a).", "t(b).", f":- set(minpos, 3). :- set(i, 4). :- set(recordfile, x). {MODES}"
    )

    def answer(command, cwd, **options):
        said = (cwd / "problem.b").read_text()
        for line in ("set(i,1)", "set(minpos,3)", "set(clauselength,5)", "set(noise,0)"):
            assert f":- {line}." in said
        assert "recordfile" not in said
        assert (cwd / "asked.pl").read_text() == "t(b).\nt(c).\n"
        (cwd / "answers.txt").write_text("rule t(A):-e(A, B)\nno\nyes\ntook 0.5\n")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(runner.subprocess, "run", answer)
    asked = [*problem.negative, replace(problem.negative[0], arguments=("c",))]
    found = aleph_rules(problem, asked, settings={"i": 1}, aleph=Aleph(tmp_path, tmp_path))
    assert found == AlephTheory(("t(A):-e(A, B)",), (False, True), 0.5, "done")
    with pytest.raises(ValueError, match="one positive example of small"):
        aleph_rules(replace(problem, positive=()), [], aleph=Aleph(tmp_path, tmp_path))
