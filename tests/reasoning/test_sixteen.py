"""Answers about theories of up to sixteen atoms, against sums over all their worlds in exact arithmetic."""

import random
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import lbm
from lbm.knowledge.formula import atom
from lbm.knowledge.theory import Theory
from tests.oracles import PRECISE, truth_table
from tests.strategies import random_formula

WEIGHTS = (1, 3, -2, Decimal("0.5"), Decimal("-1.25"), 10**9, Decimal("1e-9"), 40, -(10**12))


def made(seed):
    """Return a theory of some hard and some soft formulae, a query and evidence."""
    rng = random.Random(seed)
    hard = [random_formula(rng, 16, 24) for _ in range(rng.randint(0, 4))]
    soft = [(rng.choice(WEIGHTS), random_formula(rng, 16, 20)) for _ in range(rng.randint(0, 5))]
    names = [f"x{i}" for i in range(1, rng.randint(13, 17))]
    theory = Theory([*hard, *soft], atoms=names)
    query, evidence = random_formula(rng, 12, 12), random_formula(rng, 12, 10)
    known = set(theory.atoms)
    if not known.issuperset(lbm.knowledge.formula.atoms_of(query, evidence)):
        theory = Theory(list(theory), atoms=[f"x{i}" for i in range(1, 17)])
    return theory, query, evidence


class Classes:
    """Worlds by which soft formulae are true in them, as sets of bits: few classes, each with one score."""

    def __init__(self, theory, evidence):
        self.names = theory.atoms
        allowed = truth_table(evidence, self.names)
        soft = []
        for statement in theory:
            table = truth_table(statement.formula, self.names)
            if statement.weight is None:
                allowed &= table
            else:
                soft.append((table, Fraction(statement.weight)))
        every = (1 << (1 << len(self.names))) - 1
        self.classes = []
        for kept in product([False, True], repeat=len(soft)):
            worlds = allowed
            for (table, _), true in zip(soft, kept, strict=True):
                worlds &= table if true else every & ~table
            if worlds:
                self.classes.append(
                    (sum((w for (_, w), true in zip(soft, kept, strict=True) if true), Fraction(0)), worlds)
                )
        self.count = allowed.bit_count()
        if self.classes:
            self.top = max(score for score, _ in self.classes)
            self.best = sum(worlds for score, worlds in self.classes if score == self.top)
            self.weights = [(self._weight(score - self.top), worlds) for score, worlds in self.classes]
            self.total = sum(weight * worlds.bit_count() for weight, worlds in self.weights)

    @staticmethod
    def _weight(less):
        if less < -5000:
            return Decimal(0)
        return PRECISE.exp(PRECISE.divide(Decimal(less.numerator), Decimal(less.denominator)))

    def chance(self, query):
        table = truth_table(query, self.names)
        return float(
            sum(weight * (worlds & table).bit_count() for weight, worlds in self.weights) / self.total
        )

    def status(self, query):
        table = truth_table(query, self.names)
        all_worlds = sum(worlds for _, worlds in self.classes)
        if not all_worlds & ~table:
            return "entailed"
        if not all_worlds & table:
            return "refuted"
        if not self.best & ~table:
            return "preferred"
        return "undecided" if self.best & table else "dispreferred"


@pytest.mark.parametrize("seed", range(30))
def test_logical_answers_about_sixteen_atoms_are_those_of_all_worlds(seed):
    theory, query, evidence = made(seed)
    oracle = Classes(theory, evidence)
    reasoner = lbm.Reasoner(theory)
    assert reasoner.count(given=evidence) == oracle.count
    if not oracle.count:
        with pytest.raises(ValueError, match="world"):
            reasoner.ask(query, given=evidence)
        return
    answer = reasoner.ask(query, given=evidence)
    assert answer.method == "exact"
    assert answer.probability == pytest.approx(oracle.chance(query), abs=1e-9)
    assert answer.status == oracle.status(query)
    for name, chance in reasoner.marginals(given=evidence).items():
        assert chance == pytest.approx(oracle.chance(atom(name)), abs=1e-9)
    best = reasoner.best(given=evidence)
    assert best.optimal
    assert Fraction(best.score) == oracle.top
    models = reasoner.models(given=evidence).array
    numbers = (models.astype(np.int64) << np.arange(len(theory.atoms))).sum(axis=1)
    found = sum(1 << number for number in numbers.tolist()) if len(numbers) < 4000 else None
    assert len(models) == oracle.count
    assert found in (None, sum(worlds for _, worlds in oracle.classes))


@pytest.mark.parametrize("seed", range(12))
def test_machine_answers_about_sixteen_atoms_are_those_of_all_worlds_and_hidden_states(seed):
    theory, query, evidence = made(seed)
    theory = Theory(
        [(s.weight if s.weight is None or abs(s.weight) < 100 else 7, s.formula) for s in theory],
        atoms=theory.atoms,
    )
    machine = lbm.translate(theory)
    size = len(machine.declared)
    worlds = (np.arange(1 << size)[:, None] >> np.arange(size) & 1).astype(float)
    inputs = machine.visible(worlds) @ machine.weights.toarray() + machine.hidden_bias
    # Hidden units are independent given a world: Σ_h exp(Σ_j h_j k_j) = Π_j (1 + exp(k_j)).
    logs = np.zeros(len(worlds))
    for column in (5.0 * inputs).T:
        logs += np.where(
            column > 0, column + np.log1p(np.exp(-np.abs(column))), np.log1p(np.exp(-np.abs(column)))
        )
    weights = np.exp(logs - logs.max())
    tables = {
        formula: np.frombuffer(
            truth_table(formula, machine.declared).to_bytes(max(1, len(worlds) // 8), "little"), np.uint8
        )
        for formula in (query, evidence)
    }
    bits = {f: np.unpackbits(t, bitorder="little")[: len(worlds)].astype(bool) for f, t in tables.items()}
    if not bits[evidence].any():
        with pytest.raises(ValueError, match="world"):
            lbm.ask(machine, query, given=evidence, distribution="machine")
        return
    answer = lbm.ask(machine, query, given=evidence, distribution="machine")
    assert answer.method == "exact"
    expected = weights[bits[query] & bits[evidence]].sum() / weights[bits[evidence]].sum()
    assert answer.probability == pytest.approx(expected, abs=1e-9)
    chances = lbm.marginals(machine, given=evidence, distribution="machine")
    for i, name in enumerate(machine.declared):
        expected = weights[(worlds[:, i] > 0) & bits[evidence]].sum() / weights[bits[evidence]].sum()
        assert chances[name] == pytest.approx(expected, abs=1e-9)
