"""Whoever is right first: engines are named, share what they know, and are believed as far as we evaluate."""

from contextlib import contextmanager

import pytest

from lbm.knowledge.theory import Theory
from lbm.reasoning.optimum import best
from lbm.reasoning.search import engines, routes
from lbm.reasoning.solvers.aside import Message


@pytest.fixture(autouse=True)
def searched(monkeypatch):
    """No question is settled by exact methods, however small it is."""
    monkeypatch.setattr(routes, "_exact", lambda *_: None)
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
    monkeypatch.setattr(routes, "maxsat", lambda *_, **__: pytest.fail("it was asked"))
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
    monkeypatch.setattr(routes, "maxsat", lambda *_, **__: saying(*lie))
    found = best(SMALL, engines="own,rc2", seconds=None, seed=0)
    assert (found.lost, found.bound, found.optimal) == (2, 0, False)
    assert found.world == {"a": False, "b": True}
    assert found.dropped == (f"rc2: {why}",)
    assert f"dropped rc2: {why}" in found.lines()
    assert found.facts()["dropped"] == [f"rc2: {why}"]


def test_an_engine_that_hangs_costs_no_more_than_the_time_that_was_given(monkeypatch):
    monkeypatch.setattr(routes, "maxsat", lambda *_, **__: saying())
    found = best(SMALL, seconds=0.5, seed=0, engines="own,rc2")
    assert (found.lost, found.optimal, found.found_by, found.dropped) == (2, False, "own", ())
