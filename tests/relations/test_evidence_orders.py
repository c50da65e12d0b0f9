"""Orders as evidence-driven knowledge: against all permutations, exactly and by chains."""

import csv
import itertools
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.relations.evidence import (
    constants_of,
    ground,
    infer,
    labels_of,
    marginals,
    orders,
    prepare,
    walk,
)
from lbm.relations.evidence.residual import reduce
from lbm.relations.problem import load_problem

ORDER = Path(__file__).parents[2] / "examples" / "order.lbm"
OTHER_WORDS = """
domain d = {}
forall X, Y in d, X != Y: ex(X, Y) <-> ~ex(Y, X)
forall X, Y, Z in d, X != Y, Y != Z, X != Z: ~(ex(X, Y) & ex(Y, Z) & ex(Z, X))
"""
THINGS = "abcdefgh"


def by_permutations(
    number: int, labels: Mapping[tuple[str, str], bool], weight: float | None
) -> dict[tuple[str, str], float] | None:
    """Return P(x before y) of every pair, from all permutations; None: none of them keeps the labels."""
    total, mass = 0.0, dict.fromkeys(itertools.permutations(THINGS[:number], 2), 0.0)
    for line in itertools.permutations(THINGS[:number]):
        kept = sum((line.index(x) < line.index(y)) is value for (x, y), value in labels.items())
        if weight is None and kept < len(labels):
            continue
        here = math.exp((weight or 0.0) * kept)
        total += here
        for i, x in enumerate(line):
            for y in line[i + 1 :]:
                mass[x, y] += here
    return None if not total else {pair: part / total for pair, part in mass.items()}


def atom(pair: tuple[str, str]) -> str:
    return f"ex({pair[0]}, {pair[1]})"


@st.composite
def labelled(draw, most=6):
    number = draw(st.integers(3, most))
    pairs = st.sampled_from(list(itertools.permutations(THINGS[:number], 2)))
    return number, draw(st.dictionaries(pairs, st.booleans(), max_size=5))


@given(labelled(), st.sampled_from([None, 0.5, 3.0]), st.sampled_from([ORDER, OTHER_WORDS]))
def test_marginals_of_an_order_are_those_of_all_permutations(problem, weight, rules):
    number, labels = problem
    pairs = list(itertools.permutations(THINGS[:number], 2))
    wanted = by_permutations(number, labels, weight)
    given_ = {atom(pair): value for pair, value in labels.items()}
    if wanted is None:
        with pytest.raises(ValueError, match="expected labels that the rules allow together"):
            infer(rules, given_, [atom(pair) for pair in pairs])
        return
    found = infer(rules, given_, [atom(pair) for pair in pairs], weight=weight)
    assert found.method == "exact"
    for pair in pairs:
        assert found[atom(pair)] == pytest.approx(wanted[pair], abs=1e-9)
        assert (atom(pair) in found.even) == (abs(wanted[pair] - 0.5) < 1e-9)


@pytest.mark.parametrize("weight", [None, 0.75])
def test_chains_of_orders_reach_the_marginals_of_all_permutations(monkeypatch, weight):
    labels = {("a", "b"): True, ("b", "c"): True, ("e", "d"): False, ("h", "b"): True}
    wanted = by_permutations(8, labels, weight)
    monkeypatch.setattr(orders, "MAX_SETS", 0)
    pairs = list(itertools.permutations(THINGS, 2))
    found = infer(
        ORDER,
        {atom(pair): value for pair, value in labels.items()},
        [*map(atom, pairs)],
        weight=weight,
        seed=3,
    )
    assert found.method == "sampled"
    assert found.converged
    for pair in pairs:
        error = math.sqrt(
            wanted[pair] * (1 - wanted[pair]) / 400
        )  # converged: an effective size of 400 or more
        assert abs(found[atom(pair)] - wanted[pair]) <= 4 * error
        assert found[atom(pair)] == pytest.approx(1 - found[atom(pair[::-1])])
    # f and g are in no label: that they may change places is proven, not sampled.
    assert {"ex(f, g)", "ex(g, f)"} <= set(found.even)


def test_a_thing_without_labels_has_every_place_in_a_line_alike():
    line = [f"c{i:02}" for i in range(12)]
    labels = {f"ex({x}, {y})": True for x, y in itertools.pairwise(line)}
    found = infer(ORDER, labels, [f"ex(new, {x})" for x in line] + ["ex(new, newer)"] + ["ex(newer, c07)"])
    for i, x in enumerate(line):
        assert found[f"ex(new, {x})"] == pytest.approx((i + 1) / 13)
    assert found.even == ("ex(new, newer)",)


def test_orders_are_recognised_in_other_words_and_not_where_more_is_said():
    assert len(prepare(ground(OTHER_WORDS, domains={"d": THINGS})).orders) == 1
    assert len(prepare(ground(ORDER, domains={"compound": THINGS})).orders) == 1
    more = ORDER.read_text() + "ex(a, b) -> ex(c, d)\n"
    soft = ORDER.read_text() + "2: ex(a, b) | ex(c, d)\n"
    no_totality = "\n".join(line for line in ORDER.read_text().splitlines() if " | " not in line)
    for text in (more, soft, no_totality):
        assert not prepare(ground(text, domains={"compound": THINGS[:4]})).orders


def test_weighted_facts_count_in_an_order():
    text = ORDER.read_text() + "0.75: ex(a, b)\n0.75: ~ex(c, b)\n"
    found = infer(text, {}, ["ex(a, c)", "ex(a, b)"], domains={"compound": "abc"})
    wanted = by_permutations(3, {("a", "b"): True, ("c", "b"): False}, 0.75)
    assert found["ex(a, c)"] == pytest.approx(wanted["a", "c"])
    assert found["ex(a, b)"] == pytest.approx(wanted["a", "b"])


def test_an_extra_rule_agrees_with_the_permutations_that_keep_it():
    text = ORDER.read_text() + "ex(a, b) -> ex(c, d)\n"
    found = infer(text, {"ex(b, c)": True}, ["ex(a, d)", "ex(a, b)"], domains={"compound": "abcd"})
    kept = [
        line
        for line in itertools.permutations("abcd")
        if line.index("b") < line.index("c")
        and (line.index("a") > line.index("b") or line.index("c") < line.index("d"))
    ]
    assert found["ex(a, d)"] == pytest.approx(np.mean([x.index("a") < x.index("d") for x in kept]))


def test_counters_of_a_walk_stay_what_a_fresh_count_says():
    """Compiled and not compiled, a sweep keeps every hard clause, its counters and its scores right."""
    text = ORDER.read_text() + "1.5: ex(a, b) | ex(c, d)\n0.5: ex(d, a)\n2: ex(b, c) & ex(c, a) -> ex(d, b)\n"
    ready = prepare(ground(text, domains={"compound": "abcd"}))
    open_ = reduce(ready.clauses, {})
    assert open_ is not None
    clauses, _ = open_.part(0)
    rng = np.random.default_rng(5)
    models, _ = walk.begin(clauses, range(clauses.variables), rng)
    literals = clauses.literals.astype(np.int64)
    codes = 2 * (np.abs(literals) - 1) + (literals < 0)
    owner = np.repeat(np.arange(len(clauses)), np.diff(clauses.starts))
    by_atom = np.argsort(codes >> 1, kind="stable")
    first = np.searchsorted(codes[by_atom] >> 1, np.arange(clauses.variables + 1))
    within, signs = owner[by_atom], (codes[by_atom] & 1).astype(np.int8)

    def counted(x, prepare_):
        true = np.zeros((len(x), len(clauses)), np.int32)
        breaks = np.zeros((len(x), clauses.variables), np.int32)
        change = np.zeros((len(x), clauses.variables), np.int64)
        prepare_(codes, clauses.starts, clauses.weights, x, true, breaks, change)
        return true, breaks, change

    for prepare_, sweep in ((walk.prepare, walk.sweep), (walk.prepare.py_func, walk.sweep.py_func)):
        x = models[:6].astype(np.int8)
        counters = counted(x, prepare_)
        for _ in range(20):
            before = (counters[0] > 0) @ clauses.weights
            gained = sweep(
                codes, clauses.starts, clauses.weights, first, within, signs, x, *counters,
                rng.permutation(clauses.variables), rng.random((len(x), clauses.variables)), 10.0,
            )  # fmt: skip
            assert (counters[0][:, clauses.weights == 0] > 0).all()
            assert ((counters[0] > 0) @ clauses.weights == before + gained).all()
            for kept, fresh in zip(counters, counted(x, prepare_), strict=True):
                assert (kept == fresh).all()


def test_things_put_back_keep_what_must_be_compiled_or_not():
    must = np.zeros((5, 5), bool)
    must[0, 1] = must[1, 2] = must[0, 2] = must[3, 2] = True
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(5, 5))
    turn -= turn.T
    lines = [np.array([[3, 0, 1, 2, 4], [0, 1, 3, 4, 2]]) for _ in range(2)]
    for _ in range(30):
        chosen, uniform = rng.permutation(5), rng.random((2, 5))
        orders.put_back(lines[0], must, turn, chosen, uniform)
        orders.put_back.py_func(lines[1], must, turn, chosen, uniform)
        assert (lines[0] == lines[1]).all()
        for line in lines[0].tolist():
            assert sorted(line) == [0, 1, 2, 3, 4]
            assert all(line.index(i) < line.index(j) for i, j in zip(*np.nonzero(must), strict=True))


# --- Alzheimer's drugs ---------------------------------------------------------------------------------


def test_the_examples_of_a_problem_are_labels(dataset):
    place = dataset("alz_amine")
    labels = labels_of(load_problem(place))
    assert sum(labels.values()) == 343
    assert labels["ex(b1, a1)"] is True
    assert labels["ex(a1, b1)"] is False
    assert constants_of(labels) == sorted({name for atom_ in labels for name in atom_[3:-1].split(", ")})


def accuracy(place: Path, folds: list[str]) -> list[float]:
    """Return the share of right labels in each fold, the others' labels being the evidence."""
    with (place / "folds.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    ready = prepare(ground(ORDER, [row["example"] for row in rows]))
    shares = []
    for fold in folds:
        known = {row["example"]: row["label"] == "pos" for row in rows if row["fold"] != fold}
        held = {row["example"]: row["label"] == "pos" for row in rows if row["fold"] == fold}
        found = marginals(ready, known, list(held), seed=0).labels()
        shares.append(float(np.mean([found[name] == value for name, value in held.items()])))
    return shares


def test_order_rules_label_a_fold_of_amine(dataset):
    assert np.mean(accuracy(dataset("alz_amine"), ["1", "2", "3"])) >= 0.99


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alz_amine", "alz_acetyl", "alz_memory", "alz_toxic"])
def test_order_rules_label_random_folds_at_99_percent(dataset, name):
    assert np.mean(accuracy(dataset(name), [str(k) for k in range(1, 11)])) >= 0.99
