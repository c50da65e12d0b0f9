"""Relational models without training: what they say of examples, as clauses, and out of files."""

import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csc_array

import lbm
from lbm.errors import LbmError, LimitExceeded, MachineFileError, ParseError
from lbm.machine.rbm import Machine
from lbm.relations.columns.answers import Background
from lbm.relations.columns.grow import Language, grow_columns
from lbm.relations.columns.queries import read_column
from lbm.relations.learned import LearnedRule, body_goals, rule_head
from lbm.relations.model import Member, RelationalModel, RelationRules, program_text, with_place
from lbm.relations.model_file import load_relational, relational_bytes, save_relational
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.engine import solve
from lbm.relations.prolog.reader import read_clauses, read_term
from lbm.relations.prolog.terms import write
from tests.relations.prolog.test_builtins import skip_without_swi

BACKGROUND = """
car(t1, c1). car(t1, c2). car(t2, c3). car(t3, c4). car(t3, c5).
short(c1). short(c4). load(c1, 3). load(c2, 1). load(c3, 2). load(c4, none).
heavy(C) :- load(C, N), number(N), N >= 2.
"""
MODES = (
    ":- modeh(1, east(+train)). :- modeb(*, car(+train, -car)). :- modeb(1, short(+car)). "
    ":- modeb(1, load(+car, -n)). :- modeb(1, heavy(+car))."
)
COLUMNS = (
    "car(A,B), short(B)",
    "car(A,B), load(B,C), C >= 1.5",
    "count(car(A,B)) >= 2",
    "car(A,B), \\+ short(B)",
)


def problem() -> RelationalProblem:
    texts = (BACKGROUND, "east(t1). east(t3).", "east(t2).", MODES)
    return make_problem("trains", *(read_clauses(text, source="small.pl") for text in texts))


def model(seed: int = 0, **changed) -> RelationalModel:
    draw = np.random.default_rng(seed)
    members = []
    for seen in ((0, 1, 2), (3, 1)):
        weights = draw.normal(size=(len(seen) + 1, 3))
        names = (*(COLUMNS[k] for k in seen), "east")
        machine = Machine(names, csc_array(weights), draw.normal(size=len(seen) + 1), draw.normal(size=3))
        members.append(Member(machine, seen))
    rules = (
        LearnedRule(2.5, True, ((COLUMNS[0], True), (COLUMNS[2], False)), 2, 1),
        LearnedRule(1.25, False, ((COLUMNS[3], True),), 2, 0),
        LearnedRule(-0.5, True, (), 3, 2),
    )
    known = problem()
    given = {
        "name": "trains", "target": ("east", 1), "modes": known.modes, "features": "constants",
        "depth": None, "columns": COLUMNS, "members": tuple(members), "rules": rules, "examples": 3,
        "background": known.background,
    }  # fmt: skip
    return RelationalModel(**given | changed)


def softplus(x):
    return np.log1p(np.exp(x))


def by_hand(found: RelationalModel, examples) -> list[float]:
    """Return log-odds by the definition: columns proved by the engine, hidden units summed out one by one."""
    odds = []
    for example in examples:
        total = 0.0
        for member in found.members:
            x = [proved(found.columns[k], example) for k in member.columns]
            w, d = member.machine.weights.toarray(), member.machine.visible_bias
            units = [
                softplus(w[:-1, j] @ x + w[-1, j] + b) - softplus(w[:-1, j] @ x + b)
                for j, b in enumerate(member.machine.hidden_bias)
            ]
            total += d[-1] + sum(units)
        odds.append(total / len(found.members))
    return odds


def proved(text: str, example) -> bool:
    """Say whether a column holds by a proof of its clause, with counting in Prolog."""
    goals = ", ".join(body_goals([(read_column(text), True)], 1))
    (name,) = example.arguments
    asked = read_term(f"A = {write(name)}, {goals}")
    return bool(list(solve(problem().background, asked, answers=1)))


def test_log_odds_are_those_of_the_definition():
    found, asked = model(), problem().examples
    said = found.predict(asked)
    assert said.log_odds == pytest.approx(by_hand(found, asked))
    assert said.labels.tolist() == [odds > 0 for odds in by_hand(found, asked)]
    assert said.probabilities == pytest.approx(1 / (1 + np.exp(-said.log_odds)))


def test_examples_are_terms_texts_or_those_of_a_problem():
    found, known = model(), problem()
    expected = found.predict(known.examples).log_odds.tolist()
    assert found.predict(list(map(write, known.examples))).log_odds.tolist() == expected
    assert found.predict(known).log_odds.tolist() == expected


def test_what_is_known_of_new_examples_can_be_added():
    found = model()
    more = read_clauses("car(t9, c9). short(c9). car(t9, c8). load(c8, 7).")
    alone = found.predict(["east(t9)"])
    assert "mentions 1 constants of examples nowhere, t9 of east(t9) first" in alone.warnings[0]
    known = found.predict(["east(t9)"], more=more)
    assert known.warnings == ()
    assert known.log_odds.tolist() == found.predict(["east(t1)"]).log_odds.tolist()


def test_a_file_gives_the_same_model(tmp_path):
    for seed in range(3):
        found = model(seed)
        save_relational(found, tmp_path / "m")
        again = lbm.load(tmp_path / "m")
        assert again.predict(problem()).log_odds.tolist() == found.predict(problem()).log_odds.tolist()
        assert (again.rules, again.columns, again.background) == (
            found.rules,
            found.columns,
            found.background,
        )
        assert relational_bytes(again) == relational_bytes(found)
        lbm.save(again, tmp_path / "again")
        assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_name_of_a_theory_is_no_name_for_a_model(tmp_path):
    with pytest.raises(LbmError, match="this is a relational model: choose another ending"):
        lbm.save(model(), tmp_path / "m.lbm")


def test_a_model_may_keep_the_place_and_the_hash_of_its_background(tmp_path):
    place = tmp_path / "bk.pl"
    place.write_text(BACKGROUND)
    save_relational(with_place(model(), place), tmp_path / "m")
    again = lbm.load(tmp_path / "m")
    assert again.background is None
    assert again.predict(["east(t1)"]).warnings == ()
    assert again.predict(["east(t1)"]).log_odds.tolist() == model().predict(["east(t1)"]).log_odds.tolist()
    place.write_text(BACKGROUND + "short(c2).")
    assert again.predict(["east(t1)"]).warnings == (
        f"{place}: the background has changed since the model was trained with it",
    )
    place.unlink()
    assert again.predict(problem()).log_odds.tolist() == model().predict(problem()).log_odds.tolist()
    with pytest.raises(LbmError, match="No such file"):
        again.predict(["east(t1)"])


def test_rules_over_relations_score_new_pairs_with_known_ones_as_evidence(tmp_path):
    rules = "domain d = {}\nforall X, Y, Z in d: ex(X, Y) & ex(Y, Z) -> ex(X, Z)"
    rules += "\nforall X, Y in d: ~(ex(X, Y) & ex(Y, X))"
    known = make_problem(
        "pairs",
        read_clauses("big(a)."),
        read_clauses("ex(a, b). ex(b, c)."),
        read_clauses("ex(b, a)."),
        read_clauses(":- modeh(1, ex(+o, +o)). :- modeb(1, big(+o))."),
    )
    machine = Machine(("big(A)", "ex"), csc_array(np.zeros((2, 1))), np.zeros(2), np.zeros(1))
    found = RelationalModel(
        "pairs", ("ex", 2), known.modes, "constants", None, ("big(A)",), (Member(machine, (0,)),), (), 3,
        known.background, relations=RelationRules(rules, {"ex(a, b)": True, "ex(b, c)": True}, 1.0, None),
    )  # fmt: skip
    save_relational(found, tmp_path / "m")
    said = lbm.load(tmp_path / "m").predict(["ex(a, c)", "ex(c, a)", "ex(d, a)", "ex(c, d)"])
    assert said.labels.tolist()[:2] == [True, False]
    assert said.log_odds[0] > 5 > -5 > said.log_odds[1]
    assert abs(said.log_odds[2]) < 5


# --- reasons -----------------------------------------------------------------------------------------


def test_a_reason_names_the_rules_that_hold_and_columns_by_what_they_change():
    found, known = model(), problem()
    for reason, odds in zip(found.explain(known), found.predict(known).log_odds.tolist(), strict=True):
        assert reason.log_odds == odds
        truth = {text: proved(text, reason.example) for text in COLUMNS}
        fired = [k for k, rule in enumerate(found.rules, 1) if all(truth[t] == want for t, want in rule.body)]
        assert [number for number, _ in reason.rules] == fired
        for text, holds, change in reason.columns:
            assert truth[text] == holds
            assert change == pytest.approx(odds - turned(found, truth, text), abs=1e-6)
        sizes = [abs(change) for *_, change in reason.columns]
        assert sizes == sorted(sizes, reverse=True)
        assert all("\n" not in line for line in reason.lines(found))


def turned(found, truth, text):
    values = {**truth, text: not truth[text]}
    odds = []
    for member in found.members:
        x = [values[found.columns[k]] for k in member.columns]
        one, two = (member.machine.free_energy([*x, label], confidence=1.0) for label in (0, 1))
        odds.append(float(one - two))
    return sum(odds) / len(odds)


# --- rules as Prolog ---------------------------------------------------------------------------------


def swi_truths(background: str, clauses: list[str], examples) -> list[list[bool]]:
    """Return which clauses, heads ``c0``, ``c1``, ..., SWI-Prolog proves of which examples."""
    skip_without_swi()
    shown = ", ".join(map(write, examples))
    asked = (
        f"run :- forall(member(E, [{shown}]), (E =.. [_|As], forall(between(0, {len(clauses) - 1}, K), "
        "(atom_concat(c, K, N), G =.. [N|As], (catch(G, X, (print_message(error, X), halt(1))) -> write(1) ; "
        "write(0)))), nl)).\n:- initialization((run, halt)).\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.pl")
        path.write_text("\n".join([background, *clauses, asked]))
        done = subprocess.run(["swipl", "-q", path], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [[sign == "1" for sign in line] for line in done.stdout.split()]


def column_clause(number: int, text: str, arity: int, truth: bool = True) -> str:
    head = rule_head(f"c{number}", arity, positive=True)
    return f"{head} :- {', '.join(body_goals([(read_column(text), truth)], arity))}."


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_printed_columns_mean_to_swi_prolog_what_they_mean_to_us(seed):
    """Of columns that are grown on random facts, with thresholds, counts and negation."""
    draw = np.random.default_rng(seed)
    objects = [f"o{k}" for k in range(6)]
    facts = [
        "link(o0, o1).",
        "size(o0, 1).",
        "kind(o0, red).",
        "near(X, Y) :- link(X, Y). near(X, Y) :- link(Y, X).",
    ]
    facts += [f"link({a}, {b})." for a in objects for b in objects if draw.random() < 0.2]
    facts += [
        f"size({a}, {draw.choice(['1', '2.5', '-3', 'none', '7'])})." for a in objects for _ in range(2)
    ]
    facts += [f"kind({a}, {draw.choice(['red', 'blue'])})." for a in objects]
    background = "\n".join([":- discontiguous link/2, size/2, kind/2, near/2.", *facts])
    known = make_problem(
        "random",
        read_clauses(background),
        read_clauses(" ".join(f"t({a})." for a in objects[:3])),
        read_clauses(" ".join(f"t({a})." for a in objects[3:])),
        read_clauses(
            ":- modeh(1, t(+o)). :- modeb(*, near(+o, -o)). :- modeb(*, link(+o, -o)). "
            ":- modeb(*, size(+o, -n)). :- modeb(*, kind(+o, #k)). :- modeb(*, not(link(+o, +o)))."
        ),
    )
    answers = Background(known)
    columns = grow_columns(answers, known.examples, known.labels, Language(2, 0.0, 3, 5, 20))[:60]
    clauses = [column_clause(k, str(column), 1) for k, column in enumerate(columns)]
    clauses += [column_clause(len(columns) + k, str(one), 1, False) for k, one in enumerate(columns)]
    ours = answers.evaluate(columns, known.examples)
    assert (
        swi_truths(program_text(known.background), clauses, known.examples)
        == np.hstack([ours, ~ours]).tolist()
    )
    for row, example in enumerate(known.examples):  # and to our own engine
        for k, column in enumerate(columns[:25]):
            goals = ", ".join(body_goals([(column, True)], 1))
            asked = read_term(f"A = {write(example.arguments[0])}, {goals}")
            assert bool(list(solve(known.background, asked, answers=1))) == ours[row, k], str(column)


def test_printed_rules_are_a_program_that_swi_prolog_loads():
    found, known = model(), problem()
    text = found.prolog()
    assert "% r1: weight 2.5, covers 2 of 3 examples, precision 50.00%" in text
    clauses = ["c0(A) :- east(A).", "c1(A) :- not_east(A)."]
    truths = swi_truths(BACKGROUND + text, clauses, known.examples)
    expected = [
        [
            any(
                all(proved(column, example) == truth for column, truth in rule.body)
                for rule in found.rules
                if rule.body and rule.positive == positive
            )
            for positive in (True, False)
        ]
        for example in known.examples
    ]
    assert truths == expected


def test_rules_are_a_theory_over_columns():
    theory = lbm.Theory.parse(model().theory())
    assert [str(statement) for statement in theory] == [
        "2.5: 'car(A,B), short(B)' & ~'count(car(A,B)) >= 2' -> east",
        "1.25: 'car(A,B), \\+ short(B)' -> ~east",
        "-0.5: east",
    ]


# --- bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "more", "words"),
    [
        (["west(t1)"], "", "expected examples of east/1 without variables, found west(t1)"),
        (["east(t1, t2)"], "", "found east(t1,t2)"),
        (["east(X)"], "", "found east(X)"),
        (["east(t1"], "", "expected"),
        (["east(t1). east(t2)."], "", "expected one example, found 2"),
        (["east(t1)"], "east(t9).", "m.pl:1: expected background, found an example of east/1"),
        (
            ["east(t1)"],
            "short(C) :- ghost(C).",
            "m.pl:1: expected a predicate that has clauses or is built in",
        ),
    ],
)
def test_what_a_model_cannot_be_asked_is_one_line(asked, more, words):
    with pytest.raises(ParseError) as caught:
        model().predict(asked, more=read_clauses(more, source="m.pl"))
    assert words in caught.value.one_line()


def test_recursion_without_end_in_new_background_is_an_error_that_names_the_goal():
    with pytest.raises(LimitExceeded, match=r"within 100000 steps, .*calls itself without end"):
        model().predict(["east(t1)"], more=read_clauses("short(C) :- loop(C). loop(C) :- loop(C)."))


def test_a_background_that_lacks_what_columns_ask_is_an_error():
    other = make_problem("x", read_clauses("load(c1, 2)."), read_clauses("t(a)."), [])
    with pytest.raises(ParseError, match=r"found no car/2, short/1: add it with --bk"):
        replace(model(), background=other.background).predict(["east(t1)"])


def damaged(change):
    """Return the bytes of a model some part of whose document was changed."""
    from lbm.machine.files import pack, unpack
    from lbm.relations.model_file import FORMAT

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "m")
        save_relational(model(), path)
        document, arrays = unpack(path, FORMAT)
    change(document, arrays)
    return pack(FORMAT, document, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda d, a: d.pop("rules"),
        lambda d, a: d.update(target=["east", "1"]),
        lambda d, a: d.update(target=["west", 1]),
        lambda d, a: d.update(columns=["p(", *d["columns"][1:]]),
        lambda d, a: d.update(columns=d["columns"][:2]),
        lambda d, a: d.update(features="all"),
        lambda d, a: d.update(members=[]),
        lambda d, a: d["members"][0].__setitem__(0, 99),
        lambda d, a: d["members"][0].__setitem__(0, 1),
        lambda d, a: d.update(modes=[":- modeh("]),
        lambda d, a: d["rules"][0].update(weight="2"),
        lambda d, a: d["rules"][0].update(body=[["car(A,B)", True]]),
        lambda d, a: d["background"].update(path=3),
        lambda d, a: d.update(relations={}),
        lambda d, a: a.pop("background"),
        lambda d, a: a.update({"machine.0.weights": np.full_like(a["machine.0.weights"], np.nan)}),
        lambda d, a: a.update({"machine.0.indices": a["machine.0.indices"] + 5}),
        lambda d, a: a.update({"machine.0.indptr": a["machine.0.indptr"][:-1]}),
        lambda d, a: a.update({"background": np.frombuffer(b"p(a", dtype=np.uint8)}),
        lambda d, a: a.update({"background": np.frombuffer(b"\xff\xfe", dtype=np.uint8)}),
    ],
)
def test_a_damaged_file_is_one_clear_error(tmp_path, change):
    (tmp_path / "m").write_bytes(damaged(change))
    with pytest.raises(MachineFileError) as caught:
        load_relational(tmp_path / "m")
    assert str(tmp_path / "m") in caught.value.one_line()
    assert "\n" not in caught.value.one_line()
