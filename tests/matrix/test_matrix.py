"""Every public question, by every method, of every sort of theory, is answered or refused by name.

``make matrix`` asks the same of theories of up to 10,000 atoms, in processes with limits.
"""

import inspect
import math
from pathlib import Path

import pytest

import lbm
from tests.matrix.cells import COMMANDS, QUESTIONS, cell, command
from tests.matrix.shapes import ALL, SORTS, shape
from tests.oracles import truth, worlds

SECONDS = 1.0
"""Time for one question; whether it is answered in time is not judged here."""

SWEEPS = 64
"""Sweeps of chains, in place of as many as agreement takes."""


def endless(sort, atoms, question):
    """Return whether a question would take minutes, and takes no budget of time."""
    return (sort, atoms) == ("clauses", 65) and "seconds" not in inspect.signature(
        getattr(lbm, question)
    ).parameters


@pytest.mark.parametrize(("question", "way"), QUESTIONS)
@pytest.mark.parametrize("atoms", [10, 65])
@pytest.mark.parametrize("sort", ALL)
def test_a_question_is_answered_rightly_or_refused_by_name(sort, atoms, question, way):
    if endless(sort, atoms, question):
        return
    found = cell(shape(sort, atoms), question, way, SECONDS, SWEEPS)
    assert not found.failed, f"{found.outcome}: {found.said}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_with_a_status_that_means_something(name):
    atoms = 10 if COMMANDS.index(name) % 2 else 65
    found, _ = command(shape("evidence", atoms), name, 20.0, 300.0)
    assert not found.failed, f"{found.outcome}: {found.said}"


# --- the theories themselves --------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ALL)
def test_what_is_known_of_a_theory_is_true(sort):
    made = shape(sort, 11)
    theory, known = made.theory, made.known
    given, query = lbm.parse(made.given or "true"), lbm.parse(made.query)
    kept = [world for world in worlds(theory.atoms) if theory.is_model(world) and truth(given, world)]
    scores = [float(theory.score(world)) for world in kept]
    whole = math.fsum(map(math.exp, scores))
    right = math.fsum(math.exp(s) for s, world in zip(scores, kept, strict=True) if truth(query, world))
    assert len(theory.atoms) == 11
    assert known.world is None or dict(known.world) in kept
    if known.count is not None:
        assert known.count == len(kept)
        assert known.best == max(scores)
        assert known.log_partition == pytest.approx(math.log(whole))
        assert known.chance == pytest.approx(right / whole)


def test_sorts_hold_what_their_names_say():
    assert all(s.weight is None for s in shape("hard", 65).theory)
    assert all(s.weight is not None for s in shape("soft", 65).theory)
    assert {s.weight is None for s in shape("mixed", 65).theory} == {True, False}
    assert set(SORTS) >= {"hard", "soft", "mixed", "cardinalities", "parities", "groups", "evidence"}
    for atoms in (10, 65, 129, 1000):
        assert all(len(shape(sort, atoms).theory.atoms) == atoms for sort in SORTS)


def test_a_wrong_answer_a_foreign_error_and_a_refusal_are_told_apart(monkeypatch):
    made = shape("hard", 10)

    def says(answer):
        def count(theory, *, given=None, seconds=None):
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(lbm, "count", count)
        return cell(made, "count", "auto", SECONDS)

    assert says(made.known.count).outcome == "answered"
    assert says(made.known.count + 1).outcome == "wrong"
    assert says(ZeroDivisionError()).outcome == "foreign"
    assert says(ValueError("zip() argument 2 is longer than argument 1")).outcome == "foreign"
    assert says(lbm.errors.NoWorlds()).outcome == "wrong"
    assert says(lbm.errors.NoAnswer("no answer in time")).outcome == "refused"


def test_a_command_without_end_is_ended(tmp_path: Path):
    found, _ = command(shape("hard", 10), "count", 20.0, 0.0)
    assert found.outcome == "no end"
