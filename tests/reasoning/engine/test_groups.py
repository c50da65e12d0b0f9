"""Groups are what their theories need: flipping them goes from model to model where single flips cannot."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.knowledge.formula import atom, conjunction, disjunction, exactly, iff
from lbm.knowledge.parser import parse
from lbm.reasoning.engine import groups as module
from lbm.reasoning.engine.groups import CLASS, MEMBERS, PAIRS, groups_of, parts_of
from lbm.reasoning.engine.lanes import LANES, advance, jump, random_states, start, weights_of
from lbm.reasoning.engine.network import network_of, network_of_clauses
from tests.oracles import truth
from tests.reference.groups import NO_GROUPS
from tests.strategies import NAMES, formulae

NAMED = "abcdefgh"


def listed(groups):
    """Return the groups as tuples of numbers."""
    members, starts = groups
    return [tuple(members[first:last].tolist()) for first, last in pairwise(starts.tolist())]


def named(hard, soft=()):
    network = network_of(NAMED, [parse(text) for text in hard], [(parse(text), 1.5) for text in soft])
    return {"".join(sorted(NAMED[i] for i in group)) for group in listed(groups_of(network))}


@pytest.mark.parametrize(
    ("hard", "soft", "expected"),
    [
        ("exactly(1, a, b, c)", "", "ab ac bc"),
        ("exactly(1, ~a, b, ~c)", "", "ab ac bc"),
        ("", "exactly(1, a, b, c)", "ab ac bc"),
        ("exactly(2, a, b, c)", "", "ab ac bc"),
        ("exactly(1, a, b)", "", "ab"),
        ("a | b | c; ~a | ~b; ~a | ~c; ~b | ~c", "", "ab ac bc"),
        ("a | ~b | c; ~a | b; ~a | ~c; b | ~c", "", "ab ac bc"),
        ("a | b | c; ~a | ~b; ~b | ~c", "", ""),  # a and c may both be true
        ("a | b | c; atmost(1, a, b, c)", "", "ab ac bc"),
        ("a | b | c; atmost(1, a, b, d)", "", ""),
        ("a <-> b", "", "ab"),
        ("a ^ b", "", "ab"),
        ("", "a <-> ~b", "ab"),
        ("~a | b; a | ~b", "", "ab"),
        ("a | b; ~a | ~b", "", "ab"),
        ("a | b; ~a | b", "", ""),
        ("a <-> b; b <-> c", "c <-> d", "ab bc abc cd abcd"),
        ("a -> b; b -> c; c -> a", "", "ab bc abc"),
        ("a ^ b ^ c ^ d", "", "ab bc cd ad"),
        ("a <-> (b & c)", "", "ab ac"),
        ("~exactly(1, a, b, c)", "", ""),
        ("atleast(2, a, b, c); atmost(1, d, e, f)", "", ""),
        ("a | b | ~c; ~a | b | d", "a -> b; c", ""),
        ("", "", ""),
    ],
)
def test_groups_of_named_theories(hard, soft, expected):
    texts = [[text for text in some.split(";") if text.strip()] for some in (hard, soft)]
    assert named(*texts) == set(expected.split())


# --- laws ------------------------------------------------------------------------------------------


@given(st.lists(formulae(), max_size=4), st.lists(formulae(), max_size=4))
def test_groups_are_few_different_and_hold_no_atom_twice(hard, soft):
    network = network_of(NAMES, hard, [(formula, 2.0) for formula in soft])
    members, starts = groups = groups_of(network)
    assert members.dtype == starts.dtype == np.int32
    assert len(members) <= MEMBERS * network.atoms
    found = [frozenset(group) for group in listed(groups)]
    assert len(set(found)) == len(found)
    assert [len(group) for group in found] == np.diff(starts).tolist()
    assert all(group <= set(range(len(NAMES))) and len(group) > 1 for group in found)
    for mine, again in zip(groups, groups_of(network), strict=True):
        assert (mine == again).all()


def exactly_some(parts, number):
    return [exactly(1 + number % (len(parts) - 1), *parts)]


def one_as_clauses(parts, _):
    return [disjunction(parts), *[~a | ~b for a, b in combinations(parts, 2)]]


def parity(parts, _):
    return [parse(" ^ ".join(f"({part})" for part in parts))]


def equivalences(parts, _):
    return [iff(a, b) for a, b in pairwise(parts)]


def equivalences_as_clauses(parts, _):
    return [clause for a, b in pairwise(parts) for clause in (~a | b, a | ~b)]


def circle(parts, _):
    return [a >> b for a, b in zip(parts, [*parts[1:], parts[0]], strict=True)]


RIGID = [exactly_some, one_as_clauses, parity, equivalences, equivalences_as_clauses]


@pytest.mark.parametrize(
    ("rigid", "hard"),
    [(circle, True), *product(RIGID, [True, False])],  # soft implications are not followed
)
@given(signs=st.lists(st.booleans(), min_size=2, max_size=7), number=st.integers(0, 5))
@settings(max_examples=15)
def test_groups_lead_from_every_model_of_a_rigid_theory_to_every_other(rigid, hard, signs, number):
    names = NAMED[: len(signs)]
    formulas = rigid(
        [atom(name) if sign else ~atom(name) for name, sign in zip(names, signs, strict=True)], number
    )
    whole = conjunction(formulas)
    network = network_of(names, formulas if hard else (), () if hard else [(f, 1.0) for f in formulas])
    flips = [sum(1 << i for i in group) for group in listed(groups_of(network))]
    models = {
        sum(bit << i for i, bit in enumerate(bits))
        for bits in product((0, 1), repeat=len(names))
        if truth(whole, dict(zip(names, bits, strict=True)))
    }
    assert not any(model ^ 1 << i in models for model in models for i in range(len(names)))
    reached, waiting = set(), [min(models)]
    while waiting:
        model = waiting.pop()
        if model not in reached:
            reached.add(model)
            waiting += [model ^ flip for flip in flips if model ^ flip in models]
    assert reached == models


def test_clauses_that_are_packed_have_the_groups_of_those_that_are_not():
    rows = [[1, 2, 3], [-1, -2], [-3, -1], [-2, -3], [4, -5], [5, -4], [6, 7, 8]]
    literals = np.array([literal for row in rows for literal in row], np.int32)
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    ones = np.ones(len(rows))
    for soft, hard in ((ones, 0 * ones), (0 * ones, ones)):
        found = listed(groups_of(network_of_clauses(8, literals, starts, soft, hard)))
        assert sorted(found) == [(0, 1), (0, 2), (1, 2), (3, 4)]


# --- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [5, 11, 12, 1000])
def test_a_gate_has_all_pairs_while_they_are_few_and_short_ways_when_they_are_many(size):
    parts = [atom(f"x{i}") for i in range(size)]
    spare = [atom(f"y{i}") for i in range(1000)]  # so that MEMBERS allows all
    network = network_of([part.label for part in parts + spare], [exactly(1, *parts)], [])
    found = listed(groups_of(network))
    if size * (size - 1) // 2 <= PAIRS:
        assert sorted(found) == list(combinations(range(size), 2))
    else:
        assert len(found) <= 4 * size
    near = np.eye(size, dtype=bool)
    for a, b in found:
        near[a, b] = near[b, a] = True
    reached, steps = near[0], 1
    while not reached.all():
        reached, steps = near[reached].any(axis=0), steps + 1
    assert steps <= max(2, 1 + size ** (1 / 2))


def test_groups_that_are_too_many_are_thinned_evenly_and_hard_ones_stay():
    names = [f"x{i}" for i in range(40)]
    hard = [iff(atom(a), atom(b)) for a, b in pairwise(names[:4])]
    soft = [(iff(atom(a), atom(b)), 1.0) for a, b in combinations(names, 2)]
    found = listed(groups_of(network_of(names, hard, soft)))
    assert MEMBERS * 40 - 2 < sum(map(len, found)) <= MEMBERS * 40
    assert {(0, 1), (1, 2), (2, 3), (0, 1, 2, 3), tuple(range(40))} <= set(found)
    assert len({a for a, _ in (group for group in found if len(group) == 2)}) > 20


def test_a_class_past_the_limit_is_offered_in_pairs_only():
    for size in (CLASS, CLASS + 1):
        names = [f"x{i}" for i in range(size)]
        hard = [iff(atom(a), atom(b)) for a, b in pairwise(names)]
        found = listed(groups_of(network_of(names, hard, [])))
        assert (tuple(range(size)) in found) is (size == CLASS)
        assert set(pairwise(range(size))) <= set(found)


@given(st.lists(st.integers(2, 9), max_size=30), st.integers(1, 40))
def test_parts_are_all_groups_once_in_order(sizes, most):
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "OFFERED", most)
        parts = parts_of((np.zeros(int(starts[-1]), np.int32), starts))
    assert [pair for part in parts for pair in pairwise(part.tolist())] == list(pairwise(starts.tolist()))
    assert all(len(part) > 1 and (part[-1] - part[0] <= most or len(part) == 2) for part in parts)


# --- chains ----------------------------------------------------------------------------------------


def test_offered_groups_let_frozen_chains_reach_the_exact_marginals():
    """From one state, in 200 sweeps, with gaps of e^-12 around each well."""
    hard = [parse("exactly(1, a, b, c)"), parse("d <-> e"), parse("e <-> ~f")]
    soft = [(parse("a -> d"), 2), (parse("(b & d) | (c & e)"), 1)]
    weigh = {}
    for bits in product((0, 1), repeat=6):
        world = dict(zip("abcdef", bits, strict=True))
        if all(truth(formula, world) for formula in hard):
            weigh[bits] = np.exp(sum(weight for formula, weight in soft if truth(formula, world)))
    exact = sum(np.array(bits) * w for bits, w in weigh.items()) / sum(weigh.values())

    network = network_of("abcdef", hard, soft)
    weights = weights_of(network, 12)
    x = np.repeat([[1], [0], [0], [0], [0], [1]], LANES, axis=1)
    means = []
    for groups in (groups_of(network), NO_GROUPS):
        found = []
        for block in range(4):
            lanes = start(network, weights, x, seed=11, lane=LANES * block)
            for sweep in range(200):
                advance(lanes, [1.0])
                jump(lanes, *groups, np.ones(LANES))
                if sweep >= 20:
                    found.append(lanes.x.copy())
            fresh = start(network, weights, lanes.x, seed=0)
            assert (fresh.counts == lanes.counts).all()
            np.testing.assert_allclose(fresh.total, lanes.total)
        series = np.array(found, float).reshape(4, 180, 6, LANES).mean(axis=1)
        means.append((series.mean(axis=(0, 2)), series.std(axis=(0, 2)) / np.sqrt(4 * LANES)))
    (reached, error), (frozen, _) = means
    assert (np.abs(reached - exact) <= 4 * error).all()
    assert np.abs(frozen - exact).max() > 0.3


def test_groups_whose_flip_changes_nothing_are_flipped_as_often_forth_as_back():
    """Added up forth and back, what such a flip changes is 0 but for rounding: a rule must not leap at 0."""
    size, likes, wants = 10, (0.84, 0.64, 0.5, 0.48), (0.46, 0.47, 0.23, 0.47, 0.69)
    hard = [parse(f"{block}{i} <-> {block}{i + 1}") for block in "abcde" for i in range(size - 1)]
    soft = [(parse(f"{a}{size - 1} <-> {b}0"), w) for (a, b), w in zip(pairwise("abcde"), likes, strict=True)]
    soft += [(parse(f"{block}0"), weight) for block, weight in zip("abcde", wants, strict=True)]
    weigh = {}
    for bits in product((0, 1), repeat=5):
        score = sum(w for (a, b), w in zip(pairwise(bits), likes, strict=True) if a == b)
        weigh[bits] = np.exp(score + np.dot(wants, bits))
    exact = sum(np.array(bits) * w for bits, w in weigh.items()) / sum(weigh.values())

    network = network_of([f"{block}{i}" for block in "abcde" for i in range(size)], hard, soft)
    lanes = start(network, weights_of(network, 4.0), random_states(5 * size, 3), seed=3)
    groups = groups_of(network)
    true, valid = np.zeros((5, LANES)), np.zeros(LANES)
    for sweep in range(1500):
        advance(lanes, [1.0])
        jump(lanes, *groups)
        if sweep >= 100:
            keeps = lanes.broken() == 0
            true += lanes.x[::size] * keeps
            valid += keeps
    shares = true / valid
    error = shares.std(axis=1) / np.sqrt(LANES)
    assert (np.abs(shares.mean(axis=1) - exact) <= 4 * error).all()
