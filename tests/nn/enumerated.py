"""Layers on theories that are drawn, and what they are to say, by looking at every world."""

import math
import random
from dataclasses import dataclass

import numpy as np

import lbm
from tests.oracles import truth_table


@dataclass(frozen=True)
class Drawn:
    """A theory, its inputs as choices of atoms, and queries."""

    theory: lbm.Theory
    inputs: tuple
    queries: tuple


def some_formula(rng, names, size):
    """Return a formula over some of these atoms, as text."""
    if size <= 1:
        return rng.choice(("", "~")) + rng.choice(names)
    kind = rng.random()
    if kind < 0.1 and len(names) > 3:
        word = rng.choice(("atleast(1", "atmost(1", "atleast(2", "exactly(2"))
        return f"{word}, {', '.join(rng.sample(names, 3))})"
    left = rng.randint(1, size - 1)
    operator = rng.choice(("&", "|", "|", "->", "<->", "^"))
    return f"({some_formula(rng, names, left)} {operator} {some_formula(rng, names, size - left)})"


def drawn(seed, atoms=12):
    """Return a theory with groups, hard and soft formulae, of at most so many atoms."""
    rng = random.Random(seed)
    groups, names = [], []
    for number in range(rng.randint(0, 2)):
        groups.append(tuple(f"g{number}({value})" for value in range(rng.randint(3, 4))))
        names += groups[-1]
    singles = [f"x{i}" for i in range(rng.randint(1, max(1, atoms - len(names))))]
    names += singles
    lines = [f"atoms {', '.join(names)}"]
    lines += [f"exactly(1, {', '.join(group)})" for group in groups]
    lines += [some_formula(rng, names, rng.randint(2, 5)) for _ in range(rng.randint(0, 5))]
    lines += [
        f"{rng.uniform(-2, 2):.3f}: {some_formula(rng, names, rng.randint(1, 5))}"
        for _ in range(rng.randint(0, 4))
    ]
    choices = [*groups, *((name,) for name in singles)]
    rng.shuffle(choices)
    inputs = tuple(choices[: rng.randint(1, len(choices))])
    asked = [some_formula(rng, names, 3)]
    asked += [
        choice[0] if len(choice) == 1 else choice for choice in rng.sample(choices, min(2, len(choices)))
    ]
    return Drawn(lbm.Theory.parse("\n".join(lines)), inputs, tuple(asked))


class Worlds:
    """Every world of a theory: which are models, and which soft formulae are true in them."""

    def __init__(self, theory):
        self.atoms = theory.atoms
        size = 1 << len(self.atoms)
        self.table = np.array([np.arange(size) >> j & 1 for j in range(len(self.atoms))], bool)
        self.models = np.ones(size, bool)
        soft = []
        for said in theory:
            true = self.where(said.formula)
            if said.weight is None:
                self.models &= true
            else:
                soft.append(true)
        self.soft = np.array(soft, float).reshape(-1, size)
        self.place = {name: i for i, name in enumerate(self.atoms)}

    def where(self, formula):
        """Return in which worlds a formula is true."""
        size = 1 << len(self.atoms)
        bits = truth_table(formula, self.atoms).to_bytes((size + 7) // 8, "little")
        return np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:size].astype(bool)

    def true(self, name):
        return self.table[self.place[name]]

    def likely(self, inputs, logits):
        """Return the logarithm of what the logits of one row say of each world; other atoms count for 1."""
        total, column = np.zeros(self.table.shape[1]), 0
        for choice in inputs:
            a = logits[column : column + len(choice)]
            column += len(choice)
            if len(choice) == 1:
                here = self.true(choice[0])
                total += np.where(here, -np.logaddexp(0, -a[0]), -np.logaddexp(0, a[0]))
                continue
            top = a.max()
            shares = a - top - math.log(np.exp(a - top).sum())
            for name, share in zip(choice, shares, strict=True):
                total += np.where(self.true(name), share, 0.0)
        return total

    def scores(self, inputs, logits, weights):
        """Return the logarithm of each world's share in Z; -inf: it is no model."""
        found = self.likely(inputs, logits) + weights @ self.soft
        return np.where(self.models, found, -np.inf)


def log_sum(values):
    top = values.max(initial=-math.inf)
    return top if top == -math.inf else top + math.log(np.exp(values - top).sum())
