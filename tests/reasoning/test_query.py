"""Questions at the public door: answers equal the oracles, and there are four different noes."""

import math
import threading
import time
from dataclasses import replace
from decimal import Decimal
from itertools import chain, repeat

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lbm
from lbm.errors import NoAnswer, NoWorlds, ParseError, TooManyWorlds, UnknownAtom, WrongDistribution
from lbm.knowledge.formula import FALSE, TRUE, atom, conjunction, disjunction
from lbm.knowledge.theory import Theory
from lbm.reasoning import reasoner
from lbm.reasoning.answers import number
from lbm.reasoning.exact import apart, trees, whole
from lbm.reasoning.reasoner import Reasoner
from lbm.reasoning.sampling import estimates, runs
from lbm.reasoning.solvers import aside
from tests.oracles import Oracle, truth
from tests.strategies import formulae, theories

NIXON = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"

weights = st.one_of(
    st.integers(-20, 20).filter(bool),
    st.sampled_from([Decimal("1e-9"), -(10**9), 10**9, Decimal("-1e-9"), Decimal("0.125"), 10**30]),
)


@st.composite
def questions(draw):
    theory = draw(theories(weights=weights, max_statements=4))
    some = formulae(theory.atoms, max_leaves=5) if theory.atoms else st.sampled_from([TRUE, FALSE])
    return theory, draw(some), draw(st.none() | some)


def status_of(theory, asked, evidence):
    """Return the status of a query by looking at every world; None: there is no world."""
    oracle = Oracle(theory, evidence)
    if not oracle.numbers:
        return None
    truths = [truth(asked, oracle.world(i)) for i in oracle.numbers]
    if all(truths):
        return "entailed"
    if not any(truths):
        return "refuted"
    top = max(oracle.scores)
    best = [t for t, score in zip(truths, oracle.scores, strict=True) if score == top]
    return "preferred" if all(best) else "undecided" if any(best) else "dispreferred"


# --- laws --------------------------------------------------------------------------------------------


@given(questions())
def test_an_answer_has_the_probability_and_the_status_of_looking_at_every_world(question):
    theory, asked, evidence = question
    expected = status_of(theory, asked, evidence)
    if expected is None:
        with pytest.raises(NoWorlds):
            lbm.ask(theory, asked, given=evidence)
        return
    answer = lbm.ask(theory, asked, given=evidence)
    assert answer.status == expected
    assert answer.probability == pytest.approx(Oracle(theory, evidence).chance(asked), abs=1e-9)
    assert answer.interval == (answer.probability, answer.probability)
    assert (answer.method, answer.distribution, answer.converged) == ("exact", "logical", True)
    assert lbm.entails(theory, asked, given=evidence) is (expected == "entailed")
    preferred = lbm.entails(theory, asked, given=evidence, mode="preferred")
    assert preferred is (expected in ("entailed", "preferred"))


@given(questions())
def test_a_reasoner_that_was_asked_much_answers_as_a_new_one(question):
    theory, asked, evidence = question
    assume(status_of(theory, asked, evidence) is not None)
    old = Reasoner(theory)
    for more in (None, evidence, asked, ~asked):
        if status_of(theory, asked, more) is not None:
            old.ask(asked, given=more)
            old.marginals(given=more)
    new = Reasoner(theory)
    assert old.ask(asked, given=evidence) == new.ask(asked, given=evidence)
    assert old.count(given=evidence) == new.count(given=evidence)
    assert dict(old.marginals(given=evidence)) == dict(new.marginals(given=evidence))
    assert old.log_partition(given=evidence) == new.log_partition(given=evidence)
    assert old.models(given=evidence).array.tolist() == new.models(given=evidence).array.tolist()


@given(questions())
def test_reasons_settle_the_question_by_themselves_and_each_is_needed(question):
    theory, asked, evidence = question
    expected = status_of(theory, asked, evidence)
    assume(expected in ("entailed", "refuted"))
    answer = lbm.ask(theory, asked, given=evidence, why=True)
    assert answer.minimal
    claim = asked if expected == "entailed" else ~asked
    alone = Theory(list(answer.reasons), atoms=theory.atoms)
    assert all(statement.weight is None for statement in answer.reasons)
    assert status_of(alone, claim, evidence) in ("entailed", None)
    for i in range(len(answer.reasons)):
        fewer = Theory([*answer.reasons[:i], *answer.reasons[i + 1 :]], atoms=theory.atoms)
        assert status_of(fewer, claim, evidence) not in ("entailed", None)


# --- the paper's example -----------------------------------------------------------------------------


def test_the_nixon_diamond_is_undecided_about_pacifism_and_sure_of_the_rest():
    theory = lbm.Theory.parse(NIXON)
    answer = lbm.ask(theory, "p", given="n")
    assert (answer.probability, answer.status) == (0.5, "undecided")
    assert lbm.ask(theory, "r & q", given="n").status == "preferred"
    assert lbm.ask(theory, "r", given="n & p", why=True).reasons == (theory.statements[0],)


def test_modus_tollens_is_entailed_with_its_two_premises():
    theory = lbm.Theory.parse("rain -> wet\nwet -> slippery\n~slippery")
    answer = lbm.ask(theory, "~rain", why=True)
    assert (answer.status, answer.probability, len(answer.reasons)) == ("entailed", 1.0, 3)


# --- four different noes -------------------------------------------------------------------------------


def test_impossible_evidence_an_unsatisfiable_theory_no_time_and_not_entailed_are_four_answers(monkeypatch):
    theory = lbm.Theory.parse("a -> b")
    with pytest.raises(NoWorlds, match="the evidence is impossible: no world keeps a & ~b"):
        lbm.ask(theory, "a", given="a & ~b")
    with pytest.raises(NoWorlds, match="the hard formulae allow no world"):
        lbm.ask(lbm.Theory.parse("a\n~a"), "a", given="a")
    with pytest.raises(NoAnswer, match="no answer within 1e-09 seconds"):
        lbm.entails(theory, "b", seconds=1e-9)
    assert lbm.entails(theory, "b") is False


@pytest.mark.parametrize("question", ["ask", "entails", "marginals", "log_partition", "sample", "best"])
@pytest.mark.parametrize(
    ("text", "evidence", "message"),
    [("a\nb -> ~a\nb", None, "hard formulae"), ("a\nb | c", "~b & ~c", "evidence is impossible")],
)
def test_every_question_names_what_leaves_no_world(question, text, evidence, message):
    arguments = {"ask": ["b"], "entails": ["b"], "sample": [3]}.get(question, [])
    with pytest.raises(NoWorlds, match=message):
        getattr(lbm, question)(lbm.Theory.parse(text), *arguments, given=evidence)


# --- bad input -------------------------------------------------------------------------------------------


def test_unknown_atoms_are_named_and_the_nearest_suggested():
    theory = lbm.Theory.parse("bird -> flies")
    for call in (
        lambda: lbm.ask(theory, "brid"),
        lambda: lbm.ask(theory, "bird", given="brid"),
        lambda: lbm.ask(theory, "bird", given={"brid": True}),
        lambda: lbm.ask(theory, "brid", distribution="machine"),
        lambda: lbm.best(theory, given="brid"),
        lambda: lbm.sample(theory, 3, given="brid"),
        lambda: lbm.count(theory, given="brid"),
        lambda: lbm.marginals(theory)["brid"],
    ):
        with pytest.raises(UnknownAtom, match="did you mean 'bird'"):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0}, "temperature is a positive, finite number, got 0"),
        ({"temperature": math.inf}, "temperature"),
        ({"confidence": -1}, "confidence is a positive, finite number, got -1"),
        ({"distribution": "uniform"}, "a distribution among logical, machine, got 'uniform'"),
        ({"method": "magic"}, "a method among auto, exact, collapsed, tempered, gibbs"),
        ({"seconds": 0}, "seconds must be a positive number, got 0"),
        ({"seconds": -1}, "seconds must be a positive number, got -1"),
        ({"sweeps": 0}, "sweeps is a number from 1 up, got 0"),
    ],
)
@pytest.mark.parametrize("question", ["ask", "sample", "marginals"])
def test_wrong_options_say_what_was_expected(question, options, message):
    arguments = {"ask": ["a"], "sample": [3]}.get(question, [])
    with pytest.raises(ValueError, match=message):
        getattr(lbm, question)(lbm.Theory.parse("a | b"), *arguments, **options)


@pytest.mark.parametrize("n", [0, -1])
def test_a_number_of_draws_below_one_is_refused(n):
    with pytest.raises(ValueError, match=f"n is a number of draws from 1 up, got {n}"):
        lbm.sample(lbm.Theory.parse("a"), n)


def test_block_gibbs_does_not_sample_the_logical_distribution():
    with pytest.raises(WrongDistribution, match="distribution='machine'"):
        lbm.sample(lbm.Theory.parse("a"), 3, method="gibbs")


def test_what_is_no_theory_or_no_formula_is_said_so():
    with pytest.raises(TypeError, match=r"Theory\.parse reads text"):
        lbm.ask("a -> b", "a")
    with pytest.raises(TypeError, match="the query is a formula, got 3"):
        lbm.ask(lbm.Theory.parse("a"), 3)
    with pytest.raises(ParseError, match="query:1:3"):
        lbm.ask(lbm.Theory.parse("a"), "a b")
    with pytest.raises(ValueError, match="a mode among entailed, preferred, got 'maybe'"):
        lbm.entails(lbm.Theory.parse("a"), "a", mode="maybe")


def test_a_theory_without_atoms_has_one_world():
    theory = Theory()
    assert lbm.count(theory) == 1
    assert list(lbm.models(theory)) == [{}]
    assert (lbm.ask(theory, "true").probability, lbm.ask(theory, "true").status) == (1.0, "entailed")
    assert lbm.ask(theory, "false").status == "refuted"
    assert lbm.ask(theory, "true", distribution="machine").probability == 1.0
    assert lbm.sample(theory, 5, seed=0).array.shape == (5, 0)
    assert (lbm.best(theory).world, lbm.best(theory).optimal) == ({}, True)
    assert dict(lbm.marginals(theory)) == {}
    assert lbm.log_partition(theory) == 0.0


def test_a_tautology_and_free_atoms_leave_every_world():
    theory = Theory(["a | ~a"], atoms=["a", "idle"])
    assert lbm.count(theory) == 4
    assert lbm.ask(theory, "idle").probability == 0.5
    assert lbm.ask(theory, "a | ~a", why=True).reasons == ()
    assert dict(lbm.marginals(theory)) == {"a": 0.5, "idle": 0.5}


def test_weights_over_eighteen_orders_of_magnitude_are_weighed_exactly():
    theory = lbm.Theory.parse("1000000000: a\n0.000000001: b\n0.000000001: ~b -> c")
    assert lbm.ask(theory, "a").status == "preferred"
    assert lbm.ask(theory, "b").probability == pytest.approx(0.5, abs=1e-8)
    assert lbm.best(theory).lost == 0


# --- doors -------------------------------------------------------------------------------------------------


def test_evidence_may_be_a_formula_its_text_or_truth_values_by_name():
    theory = lbm.Theory.parse("a -> b\nc | d")
    answers = [
        lbm.ask(theory, "b & d", given=given)
        for given in ("a & ~c", lbm.parse("a & ~c"), {"a": True, "c": False}, {"a": 1, "c": 0})
    ]
    assert {answer.probability for answer in answers} == {1.0}


def test_a_theory_asked_twice_is_made_ready_once():
    theory = lbm.Theory.parse("a -> b")
    assert reasoner.reasoner_for(theory) is reasoner.reasoner_for(theory)
    for i in range(reasoner.READY):
        reasoner.reasoner_for(lbm.Theory.parse(f"x{i}"))
    assert len(reasoner._ready) == reasoner.READY


def test_of_large_theories_only_the_last_one_is_kept_ready(monkeypatch):
    monkeypatch.setattr(reasoner, "HELD", 5)
    theories = [lbm.Theory([f"x{i}" for i in range(size)]) for size in (2, 3, 7)]
    kept = [reasoner.reasoner_for(theory) for theory in theories]
    assert reasoner.reasoner_for(theories[2]) is kept[2]
    assert len(reasoner._ready) == 1
    again = reasoner.reasoner_for(theories[0])
    assert again is not kept[0]
    reasoner.reasoner_for(theories[1])
    assert reasoner.reasoner_for(theories[0]) is again


def test_threads_that_share_a_reasoner_get_the_answers_of_one(monkeypatch):
    theory = lbm.Theory.parse("\n".join(f"{i + 1}: x{i} -> (x{i + 1} ^ x{i + 2})" for i in range(12)))
    asked = [(f"x{i}", f"x{j}") for i in range(14) for j in range(14)]
    expected = [Reasoner(theory).ask(q, given=e).probability for q, e in asked]
    shared, found = Reasoner(theory), [[] for _ in range(4)]

    def work(out):
        out += [shared.ask(q, given=e).probability for q, e in asked]

    threads = [threading.Thread(target=work, args=(out,)) for out in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_what_is_known_at_one_temperature_is_not_taken_for_another():
    theory = lbm.Theory.parse("2: a -> b\n1: b ^ c\na | c")
    reasoner = Reasoner(theory)
    for temperature in (1.0, 0.2, 5.0, 1.0):
        oracle = Oracle(theory, temperature=temperature)
        assert reasoner.ask("b", temperature=temperature).probability == pytest.approx(
            oracle.chance(atom("b"))
        )
        assert reasoner.marginals(temperature=temperature)["b"] == pytest.approx(oracle.chance(atom("b")))
        assert reasoner.log_partition(temperature=temperature) == pytest.approx(oracle.log_partition())


def test_new_evidence_works_out_only_the_components_it_mentions(monkeypatch):
    theory = lbm.Theory.parse("\n".join(f"3: a{i} -> b{i}\n2: b{i} ^ c{i}" for i in range(50)))
    reasoner = Reasoner(theory)
    reasoner.marginals()
    asked = []
    blocks = whole.Blocks
    monkeypatch.setattr(whole, "Blocks", lambda *args: asked.append(args[0]) or blocks(*args))
    reasoner.marginals(given="a7")
    assert [set(component.atoms) for component in asked] == [{"b7", "c7"}]


def test_a_question_past_exact_methods_is_sampled_and_says_so(monkeypatch):
    monkeypatch.setattr(aside, "ganak_installed", lambda: False)
    monkeypatch.setattr(apart, "MAX_FORMULAE", 10**6)
    monkeypatch.setattr(whole, "Blocks", refuse)
    monkeypatch.setattr(trees, "MAX_ENTRIES", 0)
    theory = lbm.Theory.parse("a | b\n2: a -> c\nc | d")
    answer = lbm.ask(theory, "c", seed=3)
    oracle = Oracle(theory).chance(lbm.parse("c"))
    assert (answer.method, answer.converged) == ("sampled", True)
    assert answer.interval[0] <= oracle <= answer.interval[1]
    assert "too much" in answer.note
    assert "not exact, since" in str(answer)
    with pytest.raises(TooManyWorlds):
        lbm.ask(theory, "c", method="exact")
    chances = lbm.marginals(theory, seed=3)
    assert chances.method == "sampled"
    for name, found in chances.estimates.items():
        assert abs(found.probability - Oracle(theory).chance(atom(name))) < 0.05
    drawn = lbm.sample(theory, 500, seed=3)
    assert (drawn.method, drawn.independent, drawn.converged) == ("collapsed", False, True)
    assert all(theory.is_model(world) for world in drawn)


def refuse(*_):
    raise TooManyWorlds("too much", LIMIT=1)


@pytest.mark.parametrize("question", ["ask", "marginals", "sample", "count"])
def test_exact_work_ends_when_the_time_is_over(question, monkeypatch):
    monkeypatch.setattr(aside, "ganak_installed", lambda: False)
    rng = np.random.default_rng(1)
    clauses = [rng.choice(58, 3, replace=False) for _ in range(170)]
    theory = Theory([disjunction(~atom(f"x{i}") if i % 2 else atom(f"x{i}") for i in c) for c in clauses])
    arguments = {"ask": ["x1"], "sample": [3]}.get(question, [])
    options = {} if question == "count" else {"method": "exact"}
    start = time.monotonic()
    with pytest.raises((NoAnswer, TooManyWorlds)):
        getattr(Reasoner(theory), question)(*arguments, seconds=0.3, **options)
    assert time.monotonic() - start < 120  # without a clock it takes longer than anyone waits


def test_a_machine_may_be_asked_instead_of_its_theory():
    theory = lbm.Theory.parse("a -> b\n2: b -> c")
    machine = lbm.translate(theory, epsilon=0.25)
    assert lbm.ask(machine, "c").probability == lbm.ask(theory, "c").probability
    mine = lbm.ask(machine, "c", distribution="machine").probability
    usual = lbm.ask(theory, "c", distribution="machine").probability
    worlds = np.array(list(np.ndindex(2, 2, 2)))
    for found, used in ((mine, machine), (usual, lbm.translate(theory))):
        weights = np.exp(-used.free_energy(worlds))
        assert found == pytest.approx(weights[worlds[:, 2] == 1].sum() / weights.sum(), abs=1e-12)
    assert mine != usual


def test_in_a_machine_evidence_may_break_a_hard_formula():
    theory = lbm.Theory.parse("a")
    answer = lbm.ask(theory, "a", given="~a", distribution="machine")
    assert (answer.probability, answer.status) == (0.0, None)
    with pytest.raises(NoWorlds):
        lbm.ask(theory, "a", given="a & ~a", distribution="machine")


def test_the_same_seed_and_sweeps_give_the_same_answer():
    theory = lbm.Theory.parse("a | b\n2: a -> c\nc | d")
    first = lbm.ask(theory, "c", method="collapsed", seed=5)
    again = lbm.ask(theory, "c", method="collapsed", seed=5, sweeps=first.sweeps)
    assert first == again
    assert lbm.ask(theory, "c", method="collapsed", seed=6) != first
    drawn = [lbm.sample(theory, 50, seed=5).array.tolist() for _ in range(2)]
    assert drawn[0] == drawn[1]


def test_a_run_ended_by_the_clock_says_how_many_sweeps_replay_it(monkeypatch):
    theory = Theory([disjunction(atom(f"x{i + j}") for j in range(3)) for i in range(40)])
    monkeypatch.setattr(runs, "FIRST", 1 << 20)
    looks = chain(repeat(False, 300), repeat(True))  # the time is over when the clock is looked at again
    ask = estimates.ask

    def late(*args):
        *others, limits = args
        return ask(*others, replace(limits, budget=limits.budget.unless(lambda: next(looks))))

    with monkeypatch.context() as patch:
        patch.setattr(estimates, "ask", late)
        found = lbm.ask(theory, "x20 & x21", method="collapsed", seed=1)
    assert found.sweeps == 301
    again = lbm.ask(theory, "x20 & x21", method="collapsed", seed=1, sweeps=301)
    assert 0 < found.probability == again.probability < 1


# --- what is printed ---------------------------------------------------------------------------------------


def test_answers_print_well_in_a_terminal_and_in_a_notebook():
    theory = lbm.Theory.parse(NIXON)
    answer = lbm.ask(theory, "r", given="n & p", why=True)
    assert repr(answer).splitlines() == [
        "P(r | n & p) = 1",
        "preferred: true in every best world",
        "because of:",
        "  1000: n -> r",
        "exact; logical distribution, temperature 1",
    ]
    page = answer._repr_html_()
    assert "P(r | n &amp; p)" in page
    assert "1000: n -&gt; r" in page
    shown = lbm.models(lbm.Theory.parse("'<b>' & a"))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
    assert "<td>0.5</td>" in lbm.marginals(theory, given="n")._repr_html_()
    assert "machine distribution, temperature 1, confidence 5" in repr(
        lbm.ask(theory, "p", distribution="machine")
    )


def test_a_probability_that_is_not_quite_one_does_not_look_like_one():
    assert [number(p) for p in (0.0, 1.0, 0.25, 1 - 1e-9)] == ["0", "1", "0.25", "1 - 1e-09"]


def test_conjunctions_of_everything_are_asked_as_well():
    names = [f"x{i}" for i in range(18)]
    theory = Theory([conjunction(atom(name) for name in names)])
    assert lbm.ask(theory, conjunction(atom(name) for name in names)).status == "entailed"
