"""Sums of products say of batches what enumeration says, by any method, plain and in logarithms."""

import math
import random
from itertools import product

import numpy as np
import pytest

import lbm
from lbm.errors import NoWorlds, TooManyWorlds
from lbm.reasoning.budget import NO_LIMIT
from lbm.reasoning.exact import sum_loops, sums
from lbm.reasoning.exact.determined import undetermined
from lbm.reasoning.exact.sums import formulae_of, layered, projected, with_floor
from tests.nn.enumerated import Worlds, drawn, log_sum

LOOPS = "_literals _shares _up _down _unshare _row_literals _row_up _term _row_down _mixed".split()


def made(case):
    """Return a drawn theory with all its atoms as columns, and its worlds; None: it has none."""
    worlds = Worlds(case.theory)
    named = {name for choice in case.inputs for name in choice}
    choices = [*case.inputs, *((name,) for name in case.theory.atoms if name not in named)]
    if not worlds.models.any():
        with pytest.raises(NoWorlds):
            layered(case.theory, choices, len(case.inputs))
        return None
    return layered(case.theory, choices, len(case.inputs)), choices, worlds


def numbers_of(case, seed, rows=3):
    rng = np.random.default_rng(seed)
    soft = sum(said.weight is not None for said in case.theory)
    return rng.normal(0, 2, (rows, sum(map(len, case.inputs)))), rng.normal(0, 1.5, soft)


def check(form, choices, worlds, inputs, logits, weights, told=None):
    program = form.program
    incidence = formulae_of(form.masks, len(weights))
    found = program.run(logits, incidence @ weights, told, down=True)
    only = program.run(logits, incidence @ weights, told, down=False)[0]
    assert np.array_equal(only, found[0])
    always = np.array([form.always >> i & 1 for i in range(len(weights))], float)
    for row, a in enumerate(logits):
        scores = worlds.scores(inputs, a, weights)
        for choice, names in enumerate(choices):
            value = -1 if told is None else told[row, choice]
            if value >= 0:
                right = worlds.true(names[value]) if len(names) > 1 else worlds.true(names[0]) == bool(value)
                scores = np.where(right, scores, -np.inf)
        log = log_sum(scores)
        assert found[0][row] + always @ weights == pytest.approx(log, rel=1e-9, abs=1e-9)
        columns = [name for choice in choices for name in choice]
        if log == -math.inf:
            assert not found[1][row].any()
            continue
        shares = np.exp(scores - log)
        expected = [shares[worlds.true(name)].sum() for name in columns]
        assert found[1][row] == pytest.approx(expected, abs=1e-9)
        assert found[2][row] @ incidence == pytest.approx(worlds.soft @ shares * (1 - always), abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_sums_chances_and_marks_are_those_of_enumeration(seed):
    case = drawn(seed, 10)
    if (some := made(case)) is None:
        return
    form, choices, worlds = some
    logits, weights = numbers_of(case, seed)
    check(form, choices, worlds, case.inputs, logits, weights)
    rng = random.Random(seed)
    told = np.array(
        [[rng.choice((-1, -1, -1, rng.randrange(max(2, len(choice))))) for choice in choices] for _ in logits]
    )
    check(form, choices, worlds, case.inputs, logits, weights, told)


@pytest.mark.parametrize("seed", range(40))
def test_circuits_and_logarithms_say_the_same(seed, monkeypatch):
    case = drawn(seed, 9)

    def too_many(*_):
        raise TooManyWorlds("no tables", MAX_TABLE=0)

    plain = made(case)
    if plain is None:
        return
    monkeypatch.setattr(sums, "tables_of", too_many)
    form, choices, worlds = made(case)
    assert {part.method for part in form.parts} <= {"circuit"}
    logits, weights = numbers_of(case, seed)
    check(form, choices, worlds, case.inputs, logits, weights)
    for each in (form, plain[0]):
        incidence = formulae_of(each.masks, len(weights))
        usual = each.program.run(logits, incidence @ weights, down=True)
        logs = with_floor(each.program, math.inf).run(logits, incidence @ weights, down=True)
        for one, other in zip(usual[:3], logs[:3], strict=True):
            assert one[:, 1:] == pytest.approx(other[:, 1:], abs=1e-12) if one.ndim > 1 else True
        assert usual[0] == pytest.approx(logs[0], abs=1e-12)


@pytest.mark.parametrize("circuits", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_best_worlds_have_the_best_score_and_draws_their_shares(seed, circuits, monkeypatch):
    case = drawn(seed, 7)
    if circuits:
        monkeypatch.setattr(sums, "MAX_ENTRIES", 0)
    if (some := made(case)) is None:
        return
    form, choices, worlds = some
    logits, weights = numbers_of(case, seed, rows=2)
    incidence = formulae_of(form.masks, len(weights)) @ weights
    columns = [name for choice in choices for name in choice]
    order = [columns.index(name) for name in case.theory.atoms]
    bits = 1 << np.arange(len(order))
    best = form.program.worlds(logits, incidence)[0][:, order]
    draws = form.program.worlds(logits, incidence, draws=4000, seed=seed)[:, :, order]
    again = form.program.worlds(logits[1:], incidence, draws=50, seed=seed, begin=1)[:, :, order]
    assert np.array_equal(draws[:50, 1:], again)  # rows are drawn alike in any batch
    for row, a in enumerate(logits):
        scores = worlds.scores(case.inputs, a, weights)
        assert scores[(best[row] * bits).sum()] == pytest.approx(scores.max(), abs=1e-9)
        shares = np.exp(scores - log_sum(scores))
        met = np.bincount((draws[:, row] * bits).sum(axis=1), minlength=len(shares)) / 4000
        assert met[~worlds.models].sum() == 0
        assert np.abs(met - shares).max() < 5 * math.sqrt(0.25 / 4000)


@pytest.mark.parametrize("seed", range(40))
def test_a_projected_sum_counts_values_of_inputs_that_some_model_has_once(seed):
    case = drawn(seed, 8)
    worlds = Worlds(case.theory)
    named = {name for choice in case.inputs for name in choice}
    if not worlds.models.any():
        return
    open_ = undetermined(case.theory, named, NO_LIMIT)
    shown = np.array([worlds.true(name) for name in case.theory.atoms if name in named])
    keys = (1 << np.arange(len(shown))) @ shown
    for name in case.theory.atoms:  # by enumeration: two models that differ there and agree on inputs
        here = worlds.true(name)
        both = np.intersect1d(keys[worlds.models & here], keys[worlds.models & ~here])
        assert (name in open_) == bool(len(both) and name not in named)
    program = projected(case.theory, case.inputs, open_)
    logits, _ = numbers_of(case, seed)
    for row, log in enumerate(program.run(logits, np.zeros(1), down=True)[0]):
        likely = worlds.likely(case.inputs, logits[row])
        _, first = np.unique(np.where(worlds.models, keys, -1), return_index=True)
        first = first[worlds.models[first]]
        assert log == pytest.approx(log_sum(likely[first]), abs=1e-9)


def test_loops_in_python_do_the_same(monkeypatch):
    case = drawn(3, 7)
    form, choices, _ = made(case)
    logits, weights = numbers_of(case, 3)
    logits = np.concatenate([logits, [[1e4] * logits.shape[1], [-np.inf] * logits.shape[1]]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "MAX_ENTRIES", 0)
        other, *_ = made(case)
    told = np.full((len(logits), len(choices)), -1)
    told[0, 0] = 0

    def everything():
        found = []
        for each in (form, other):
            incidence = formulae_of(each.masks, len(weights)) @ weights
            for given, down in product((None, told), (False, True)):
                found += each.program.run(logits, incidence, given, down=down)
            found.append(each.program.worlds(logits[:3], incidence))
            found.append(each.program.worlds(logits[:3], incidence, draws=20, seed=5))
        return found

    compiled = everything()
    for name in LOOPS:
        monkeypatch.setattr(sum_loops, name, getattr(sum_loops, name).py_func)
    for name in ("sweep", "sweep_logs", "choose"):
        monkeypatch.setattr(sums, name, getattr(sum_loops, name).py_func)
    for one, two in zip(compiled, everything(), strict=True):
        if one.dtype == bool:
            assert np.array_equal(one, two)
        else:
            assert np.allclose(one, two, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("digits", [1, 8, 40])
def test_addition_of_any_size_has_the_chances_of_a_table_of_carries(digits):
    from tests.additions import addition, group, sums_to

    theory = lbm.Theory.parse(addition(digits))
    choices = [tuple(group(name, i)) for name in "ab" for i in range(digits)]
    asked = [tuple(group("s", i)) for i in range(digits)] + [(f"c{digits}",)]
    form = layered(theory, choices + asked, len(choices))
    logits = np.random.default_rng(0).normal(size=(5, 20 * digits))
    total = int("7" * digits)
    told = np.full((5, len(choices) + len(asked)), -1)
    told[:, len(choices) :] = [*(total // 10**i % 10 for i in range(digits)), 0]
    found = form.program.run(logits, np.zeros(1), told, down=True)[0]
    assert sums_to(total, digits)
    shares = np.exp(logits).reshape(5, 2, digits, 10)
    shares /= shares.sum(axis=-1, keepdims=True)
    for row in range(5):
        carries = [1.0, 0.0]
        for i in range(digits):
            after = [0.0, 0.0]
            for a, b, carry in product(range(10), range(10), (0, 1)):
                if (a + b + carry) % 10 == 7:
                    after[a + b + carry > 9] += carries[carry] * shares[row, 0, i, a] * shares[row, 1, i, b]
            carries = after
        assert found[row] == pytest.approx(math.log(carries[0]), rel=1e-11)


@pytest.mark.parametrize("atoms", [10, 65, 129, 1000])
def test_long_chains_are_summed_whatever_the_range_of_floats(atoms):
    lines = [f"x{i} -> x{i + 1}" for i in range(atoms - 1)]
    theory = lbm.Theory.parse("\n".join(lines))
    form = layered(theory, [(name,) for name in theory.atoms], atoms)
    logits = np.stack([np.full(atoms, 5.0), np.full(atoms, -9.0), np.linspace(-30, 30, atoms)])
    logs, chances, _, _ = form.program.run(logits, np.zeros(1), down=True)
    for row, a in enumerate(logits):
        yes, no = -np.logaddexp(0, -a), -np.logaddexp(0, a)
        ways = np.array([no[:k].sum() + yes[k:].sum() for k in range(atoms + 1)])
        assert logs[row] == pytest.approx(log_sum(ways), rel=1e-11)
        shares = np.exp(ways - log_sum(ways))
        assert chances[row] == pytest.approx(np.cumsum(shares)[:-1], abs=1e-10)


def test_a_theory_past_the_limits_of_tables_and_circuits_is_refused():
    rng = random.Random(0)
    names = [f"x{i}" for i in range(90)]
    lines = [" | ".join(rng.choice(("", "~")) + name for name in rng.sample(names, 3)) for _ in range(270)]
    with pytest.raises(TooManyWorlds):
        layered(lbm.Theory.parse("\n".join(lines)), [(name,) for name in names], 90)
