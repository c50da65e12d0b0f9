"""A fixed part of tools/best_check.py: questions of all shapes, and checks that would see a wrong answer."""

import dataclasses
import json
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import lbm
from lbm.errors import NoWorlds
from tests.oracles import truth
from tools import best_check, fuzz_rounds


@pytest.mark.parametrize("seed", range(0, 150, 15))
def test_best_is_right_about_theories_of_all_shapes(seed):
    engines = best_check.installed()
    for number in range(seed, seed + 15):
        for asked, _, wrong in best_check.ask_each(number, engines):
            assert not wrong, f"seed {number}: {wrong}\n{asked.text}"


def test_what_is_generated_has_every_shape_and_every_route():
    some = [best_check.generated(seed) for seed in range(250)]
    assert best_check.generated(7)[0] == some[7][0]
    routes = Counter(asked.route for asked, _ in some)
    assert set(routes) == set(best_check.ROUTES)
    assert 0.02 < np.mean([known.least is None for _, known in some]) < 0.2
    assert np.mean([asked.atoms > best_check.LOOKED_AT for asked, _ in some]) > 0.1
    heads = Counter(
        "literal" if isinstance(node, int) else node[0] for asked, _ in some for _, node in asked.statements
    )
    kinds = "and or xor iff implies not atleast atmost exactly true false literal".split()
    assert set(heads) == set(kinds)
    weights = [weight for asked, _ in some for weight, _ in asked.statements if weight is not None]
    assert min(weights) < 0
    assert any(weight % best_check.SCALE for weight in weights)
    assert max(weights) > 1 << 63
    assert any(asked.given is not None for asked, _ in some)
    assert any(asked.top > 1 for asked, _ in some)
    assert any(asked.every for asked, _ in some)


def test_a_formula_as_text_means_what_the_oracle_thinks():
    rng = random.Random(0)
    for seed in range(100):
        asked, _ = best_check.generated(seed)
        theory = lbm.Theory.parse(asked.text)
        worlds = np.array([[rng.random() < 0.5 for _ in range(asked.atoms)] for _ in range(20)])
        for statement, (weight, node) in zip(theory, asked.statements, strict=True):
            said = None if weight is None else Fraction(weight, best_check.SCALE)
            assert (None if statement.weight is None else Fraction(statement.weight)) == said
            for world, held in zip(worlds, best_check.held(node, worlds), strict=True):
                named = {f"x{i}": bool(value) for i, value in enumerate(world, start=1)}
                assert truth(statement.formula, named) == held


def test_rc2_on_its_own_encoding_finds_what_looking_at_every_world_finds():
    for seed in range(120):
        asked, known = best_check.generated(seed)
        if asked.atoms <= best_check.LOOKED_AT:
            assert best_check.asked_of_rc2(asked) == known.least


def said_by(monkeypatch, change):
    right = lbm.best
    monkeypatch.setattr(lbm, "best", lambda *some, **more: change(right(*some, **more)))


@pytest.fixture
def asked():
    """Return a question whose best world loses something, and not all lose the same."""
    for seed in range(100):
        asked, known = best_check.generated(seed)
        if asked.atoms > 12 or asked.top > 1 or asked.every:
            continue
        if known.least and known.every[-1] > known.least:
            return asked
    raise AssertionError("no such question")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda found: dataclasses.replace(found, lost=found.lost + 1), "it says that the best world loses"),
        (lambda found: dataclasses.replace(found, bound=found.lost + 1), "the bound is"),
        (lambda found: dataclasses.replace(found, worlds=found.worlds * 2), "a world twice"),
    ],
)
def test_a_wrong_answer_is_seen(monkeypatch, asked, change, said):
    assert best_check.examine(asked)[1] == []
    said_by(monkeypatch, change)
    assert any(text.startswith(said) for text in best_check.examine(asked)[1])


def test_a_world_that_is_not_best_is_seen_where_it_is_called_optimal(monkeypatch, asked):
    def worse(found):
        worlds = np.array(list(product((False, True), repeat=asked.atoms)))
        lost, right = best_check.Truth(asked).losses(worlds)
        least = lost[right].min()
        place = next(i for i in range(len(worlds)) if right[i] and lost[i] > least)
        world = dict(zip(found.worlds[0], worlds[place].tolist(), strict=True))
        said = Decimal(int(lost[place])).scaleb(-3)
        return dataclasses.replace(found, worlds=(world,), lost=said)

    said_by(monkeypatch, worse)
    assert any("is said to be optimal" in text for text in best_check.examine(asked)[1])


def test_an_error_that_says_there_is_no_world_is_checked(monkeypatch, asked):
    def refused(*_, **__):
        raise NoWorlds(lbm.parse("x1"))

    monkeypatch.setattr(lbm, "best", refused)
    assert best_check.examine(asked)[1][0].startswith("no world, it says")


def test_whatever_else_is_raised_is_a_finding(monkeypatch, asked):
    def refused(*_, **__):
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(lbm, "best", refused)
    assert best_check.examine(asked) == ("failed", ["ZeroDivisionError: of all things"])


def test_what_is_wrong_is_stored_with_few_statements_and_asked_again(monkeypatch, tmp_path, asked):
    with monkeypatch.context() as patched:
        said_by(patched, lambda found: dataclasses.replace(found, bound=found.lost + 1))

        def still(other):
            return bool(best_check.examine(other)[1])

        small = best_check.shrunk(asked, still)
        assert len(small.statements) <= 1 < len(asked.statements)
        file = best_check.store(small, "the bound is too high", tmp_path)
        assert fuzz_rounds.replay(file)
    assert json.loads(file.read_text())["text"] == small.text
    assert fuzz_rounds.replay(file) == []
