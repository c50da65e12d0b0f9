"""Whoever is right first: engines are named, share what they know, and are believed as far as we evaluate."""

import time
from contextlib import contextmanager

import pytest

import lbm
from lbm.knowledge.theory import Theory
from lbm.reasoning.optimum import best
from lbm.reasoning.search import engines, hearing, invited, panel, routes
from lbm.reasoning.solvers import aside
from lbm.reasoning.solvers.aside import Message


@pytest.fixture(autouse=True)
def searched(monkeypatch):
    """No question is settled by exact methods or bounds of our own, however small it is."""
    monkeypatch.setattr(routes, "_exact", lambda *_: None)
    monkeypatch.setattr(routes.Search, "_lower", lambda *_: None)
    monkeypatch.setattr(routes, "HEAD_START", 0.0)


SMALL = Theory(["a | b", (3, "~a"), (2, "~b")])
"""Its best world, 01, loses 2."""


@contextmanager
def saying(*events):
    """Return an engine that says these things, and then nothing."""
    left = list(events)

    class Said:
        def next(self, until):
            return left.pop(0) if left else None

    yield Said()


# --- names -------------------------------------------------------------------------------------------


def test_engines_are_named_or_forbidden(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: name in ("pysat", "ortools") or None)
    assert engines.installed() == ("own", "rc2", "cp-sat")
    assert engines.chosen(None) == {"own", "rc2", "cp-sat"}
    assert engines.chosen("own,rc2") == engines.chosen(["rc2", "own"]) == {"own", "rc2"}
    assert engines.chosen("-cp-sat") == {"own", "rc2"}
    assert engines.chosen("own,rc2,-rc2") == {"own"}
    for said, why in (
        ("own,rc3", "no engine 'rc3': installed are own, rc2, cp-sat; .*solvers.* brings toulbar2"),
        ("toulbar2", "'toulbar2' is not installed: .* pip install 'logical-boltzmann"),
        ("-own,-rc2,-cp-sat", "no engine is left"),
        ("rc2,-rc2", "no engine is left"),
    ):
        with pytest.raises(ValueError, match=why):
            best(SMALL, engines=said)
    with pytest.raises(TypeError, match="engines are names"):
        engines.chosen([3])


def test_own_methods_alone_start_no_process(monkeypatch):
    monkeypatch.setattr(hearing, "maxsat", lambda *_, **__: pytest.fail("it was asked"))
    found = best(SMALL, engines="own", seconds=None, seed=0)
    assert (found.lost, found.optimal, found.found_by, found.proved_by) == (2, False, "own", None)


def test_rc2_alone_finds_and_proves():
    found = best(SMALL, engines="rc2", seconds=None, seed=0)
    assert (found.lost, found.optimal, found.method) == (2, True, "certified")
    assert (found.found_by, found.proved_by, found.dropped) == ("rc2", "rc2", ())
    assert "optimal (certified; found by rc2, proved by rc2)" in repr(found)


# --- engines that are wrong ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        ([Message("world", world="00")], "a world that breaks what is hard"),
        ([Message("next", lost=0, world="00")], "a world that breaks what is hard"),
        ([Message("next", lost=1, world="01")], "a world that loses another weight"),
        ([Message("bound", lost=100)], "a bound above what a world loses"),
        ([Message("end", all=True)], "it finds no world where there is one"),
        ([Message("failed")], "its process ended without an answer"),
    ],
)
def test_an_engine_that_lies_or_dies_is_dropped_and_named(lie, why, monkeypatch):
    monkeypatch.setattr(hearing, "maxsat", lambda *_, **__: saying(*lie))
    found = best(SMALL, engines="own,rc2", seconds=None, seed=0)
    assert (found.lost, found.bound, found.optimal) == (2, 0, False)
    assert found.world == {"a": False, "b": True}
    assert found.dropped == (f"rc2: {why}",)
    assert f"dropped rc2: {why}" in found.lines()
    assert found.facts()["dropped"] == [f"rc2: {why}"]


def test_an_engine_that_hangs_costs_no_more_than_the_time_that_was_given(monkeypatch):
    monkeypatch.setattr(hearing, "maxsat", lambda *_, **__: saying())
    found = best(SMALL, seconds=0.5, seed=0, engines="own,rc2")
    assert (found.lost, found.optimal, found.found_by, found.dropped) == (2, False, "own", ())


# --- what is shared ------------------------------------------------------------------------------------


class Deaf:
    """An engine that listens, and says nothing."""

    def __init__(self, events=()):
        self.heard, self.left = [], list(events)

    def next(self, until):
        return self.left.pop(0) if self.left else None

    def tell(self, world, lost):
        self.heard.append((world, lost))
        return True

    def pause(self):
        pass

    def go_on(self):
        pass


@pytest.fixture
def guests(monkeypatch):
    """Ask fakes of CP-SAT and toulbar2 at once; they and how they were asked."""
    asked = []
    monkeypatch.setattr(engines, "find_spec", lambda _: True)
    monkeypatch.setattr(hearing, "SOON", 0.0)
    monkeypatch.setattr(panel, "RESTART", (0.0, 0.0))
    monkeypatch.setattr(invited, "SOON", 0.0)
    monkeypatch.setattr(invited, "SECOND", 0.0)

    @contextmanager
    def demanded(module, demands, **options):
        fake = Deaf(events.get(module, ()))
        asked.append((module, options, fake))
        yield fake

    events = {}
    monkeypatch.setattr(hearing, "demanded", demanded)
    return asked, events


MIXED = Theory(["a | b", "exactly(1, c, d, e)", (3, "~a"), (2, "~b"), (4, "c -> a"), (5, "c"), (1, "d")])


def test_a_better_world_goes_to_everybody_whom_it_helps(guests):
    asked, events = guests
    events[aside.TOULBAR2] = [Message("bound", lost=1)]
    found = best(MIXED, engines="-rc2", seconds=1, seed=0)
    by_module = {}
    for module, options, fake in asked:
        by_module.setdefault(module, []).append((options, fake))
    ((_, cp_sat),) = by_module[aside.CP_SAT]
    assert cp_sat.heard[-1][1] == found.lost
    assert MIXED.score({name: c == "1" for name, c in zip(MIXED.atoms, cp_sat.heard[-1][0], strict=True)})
    assert by_module[aside.TOULBAR2][-1][0]["upper"] == found.lost
    assert (found.found_by, found.proved_by, found.bound) == ("own", "toulbar2", 1)
    assert "any world loses 1 at least (toulbar2)" in found.said


@pytest.mark.parametrize("read", ["at once", "beside"])
def test_the_first_proof_ends_all(read, guests, monkeypatch):
    _, events = guests
    if read == "beside":  # in a thread, as large problems are
        monkeypatch.setattr(hearing, "QUICK", 0)
    events[aside.CP_SAT] = [Message("bound", lost=4), Message("end")]
    found = best(MIXED, engines="-rc2", seconds=60, seed=0)
    assert (found.lost, found.optimal, found.proved_by, found.method) == (4, True, "cp-sat", "certified")


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (Message("world", world="00000", lost=0), "a world that breaks what is hard"),
        (Message("world", world="11000", lost=0), "a world that breaks what is hard"),
        (Message("world", world="10010", lost=0), "a world that loses another weight"),
        (Message("bound", lost=100), "a bound above what a world loses"),
        (Message("end", all=True), "it finds no world where there is one"),
        (Message("failed"), "its process ended without an answer"),
    ],
)
def test_guests_that_lie_are_dropped_and_named(lie, why, guests):
    _, events = guests
    events[aside.CP_SAT] = [lie]
    found = best(MIXED, engines="own,cp-sat", seconds=0.5, seed=0)
    assert (found.lost, found.bound, found.dropped) == (4, 0, (f"cp-sat: {why}",))


def test_who_declines_is_neither_asked_again_nor_dropped(guests):
    asked, events = guests
    events[aside.TOULBAR2] = [Message("declined")]
    found = best(MIXED, engines="own,toulbar2", seconds=0.5, seed=0)
    assert (found.lost, found.dropped, len(asked)) == (4, (), 1)


def test_what_would_take_too_long_to_read_is_not_sent(guests, monkeypatch):
    asked, _ = guests
    monkeypatch.setattr(hearing, "LITERALS", {"cp-sat": 3, "toulbar2": 3})
    assert best(MIXED, engines="-rc2", seconds=0.5, seed=0).lost == 4
    assert asked == []


def test_who_gives_one_world_is_not_asked_for_several():
    if "cp-sat" in engines.installed():
        with pytest.raises(ValueError, match="only own and rc2 give more than one world"):
            best(SMALL, engines="cp-sat", top=2)


@pytest.mark.parametrize("names", ["own", "own,rc2", None])
def test_the_cheap_attempt_is_made_however_short_the_time(names):
    found = best(MIXED, engines=names, seconds=0.05, seed=0)
    assert MIXED.is_model(found.world)


def test_engines_are_named_at_the_front_door():
    found = lbm.best(SMALL, engines="rc2", seed=0)
    assert (found.found_by, found.optimal) == ("rc2", True)
    assert lbm.Reasoner(SMALL).best(engines=["rc2"]).lost == 2


# --- what they cannot take, and who is not there ---------------------------------------------------------


@pytest.mark.parametrize("kind", ["cp-sat", "toulbar2", None])
def test_guests_that_hang_cost_no_more_than_the_time_that_was_given(kind, guests):
    asked, _ = guests
    begun = time.monotonic()
    found = best(MIXED, engines="-rc2" if kind is None else f"own,{kind}", seconds=0.5, seed=0)
    assert (found.lost, found.optimal, found.dropped) == (4, False, ())
    assert len({module for module, _, _ in asked}) == (2 if kind is None else 1)
    assert time.monotonic() - begun < 30  # and not for ever


@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (Message("world", world="00000", lost=0), "a world that breaks what is hard"),
        (Message("world", world="10010", lost=0), "a world that loses another weight"),
        (Message("bound", lost=100), "a bound above what a world loses"),
        (Message("end", all=True), "it finds no world where there is one"),
        (Message("failed"), "its process ended without an answer"),
    ],
)
def test_who_lies_is_dropped_and_the_others_go_on(lie, why, guests):
    _, events = guests
    events[aside.TOULBAR2] = [lie]
    events[aside.CP_SAT] = [Message("bound", lost=3)]
    found = best(MIXED, engines="-rc2", seconds=0.5, seed=0)
    assert (found.lost, found.bound, found.proved_by) == (4, 3, "cp-sat")
    assert found.dropped == (f"toulbar2: {why}",)


def heavier(theory, factor, more=0):
    """The same theory with weights so many times as large, the first of them larger still."""
    rows = [
        (statement.weight * factor + more * (place == 2), str(statement.formula))
        if statement.weight is not None
        else str(statement.formula)
        for place, statement in enumerate(theory)
    ]
    return Theory(rows, atoms=theory.atoms)


def test_weights_that_all_have_a_divisor_are_sent_divided_by_it(guests, monkeypatch):
    _, events = guests
    sent = []
    fake = hearing.demanded

    @contextmanager
    def demanded(module, demands, **options):
        sent.append(aside.header_of(demands) | {"weights": aside._in_units(demands).tolist()})
        with fake(module, demands, **options) as answers:
            yield answers

    monkeypatch.setattr(hearing, "demanded", demanded)
    events[aside.CP_SAT] = [Message("bound", lost=4 * 10**40), Message("end")]
    found = best(heavier(MIXED, 10**40), engines="own,cp-sat", seconds=60, seed=0)
    assert (found.lost, found.optimal, found.proved_by) == (4 * 10**40, True, "cp-sat")
    assert (sent[0]["unit"], max(sent[0]["weights"])) == (10**40, 5)


def test_weights_past_what_an_engine_counts_in_are_not_sent(guests):
    asked, _ = guests
    found = best(heavier(MIXED, 10**40, 1), engines="-rc2", seconds=1.0, seed=0)
    assert found.lost == 4 * 10**40 + 1
    assert asked == []


def test_without_any_engine_but_ours_there_is_an_answer(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    assert engines.installed() == ("own",)
    monkeypatch.setattr(hearing, "maxsat", lambda *_, **__: pytest.fail("it was asked"))
    found = best(MIXED, seconds=1.0, seed=0)
    assert (found.lost, found.found_by, found.dropped) == (4, "own", ())
    with pytest.raises(ValueError, match="'rc2' is not installed"):
        best(MIXED, engines="rc2")


@pytest.mark.parametrize(
    ("names", "error", "said"),
    [
        ("", None, ""),
        (" own , rc2,", None, ""),
        (["own", "-rc2"], None, ""),
        ("own,own", None, ""),
        ("--rc2", ValueError, "there is no engine"),
        ("-own,-rc2,-cp-sat,-toulbar2", ValueError, "no engine is left"),
        ("own,-own", ValueError, "no engine is left"),
        ("Own", ValueError, "there is no engine 'Own'"),
        ([3], TypeError, "engines are names"),
    ],
)
def test_every_form_of_engines_is_taken_or_refused_in_one_line(names, error, said):
    if error is None:
        assert best(SMALL, engines=names, seconds=0.3, seed=0).lost == 2
        return
    with pytest.raises(error, match=said) as raised:
        best(SMALL, engines=names, seconds=5.0)
    assert "\n" not in str(raised.value)
