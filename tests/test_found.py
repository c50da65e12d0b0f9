"""Questions that were once answered wrongly are answered rightly, and how they are stored and asked again."""

import json
import random
from pathlib import Path

import pytest

import lbm
from tools import fuzz, fuzz_rounds, fuzz_wide


def test_questions_that_were_once_answered_wrongly_are_answered_rightly():
    assert {file.name: wrong for file in fuzz_rounds.stored() if (wrong := fuzz_rounds.replay(file))} == {}


def test_random_questions_are_answered_rightly():
    for seed in range(10):
        _, wrong = fuzz.examine(seed)
        assert [found.said for found in wrong] == []


@pytest.mark.parametrize("seed", range(4))
def test_random_questions_about_theories_past_64_atoms_are_answered_rightly(seed):
    assert len(fuzz_wide.Wide(seed).theory.atoms) >= 65
    assert fuzz_wide.examine(seed)[1] == []


@pytest.fixture
def off_by_one(monkeypatch):
    """Let counts of theories in which x1 is said to be true be one too many."""
    right = lbm.Reasoner.count

    def count(self, **options):
        return right(self, **options) + any(str(s.formula) == "x1" for s in self.theory)

    monkeypatch.setattr(lbm.Reasoner, "count", count)


def wrong_one(seed=0):
    theory = lbm.Theory.parse("x2 | x3\nx1\n2: x3 -> x4\nx4 | ~x1")
    for number in range(seed, seed + 100):
        for place, said in fuzz.interview(theory, number)[1]:
            return fuzz.Failure(number, str(theory), "lbm", place, said)
    raise AssertionError("nothing was wrong")


def test_a_failure_is_stored_with_no_more_statements_than_it_needs_and_found_again(
    off_by_one, tmp_path, monkeypatch
):
    monkeypatch.setattr(fuzz_rounds, "QUESTIONS", tmp_path / "questions")
    found = fuzz.shrunk(wrong_one())
    theory = lbm.Theory.parse(found.text)
    assert [str(s.formula) for s in theory] == ["x1"]
    assert theory.atoms == ("x2", "x3", "x1", "x4")
    file = fuzz_rounds.store(found)
    assert fuzz_rounds.stored(tmp_path / "questions") == [file]
    assert fuzz_rounds.replay(file) == [found.said]
    assert json.loads(file.read_text())["seed"] == found.seed


def test_a_stored_question_passes_once_it_is_answered_rightly(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzz_rounds, "QUESTIONS", tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(lbm.Reasoner, "count", lambda *_, **__: -1)
        file = fuzz_rounds.store(fuzz.shrunk(wrong_one()))
        wide = fuzz_rounds.store_wide(3, "wrong")
        assert fuzz_rounds.replay(file)
        assert fuzz_rounds.replay(wide)
    assert fuzz_rounds.replay(file) == []
    assert fuzz_rounds.replay(wide) == []


def test_the_text_of_a_random_theory_says_the_same():
    for seed in range(200):
        theory, text, form = fuzz.random_source(random.Random(seed))
        assert fuzz.read_source(text, form) == theory


def test_a_round_runs_only_files_with_hypothesis_tests():
    files = fuzz_rounds.test_files(random.Random(0))
    assert all("from hypothesis" in Path(next(files)).read_text() for _ in range(10))
