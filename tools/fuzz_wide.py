"""Ask random questions about theories of 65 to 300 atoms that fall apart, and compare with each part's truth.

    python tools/fuzz_wide.py [--theories 100] [--seed 0]

A theory is made of small ones over atoms of their own, so that whatever is asked is a sum or a product of
what is known of the parts, each of which is looked at world by world.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lbm
from lbm.errors import NoWorlds
from lbm.knowledge.formula import Formula
from lbm.knowledge.theory import Theory
from tools.fuzz import UNLIKELY, Sheet, all_of, demand, near, renamed, sentence, tail

FEWEST, MOST = 65, 300
"""Atoms of a theory."""


class Wide:
    """A theory of many parts, and questions about it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"wide {seed}")
        self.parts: list[Sheet] = []
        atoms = self.rng.randint(FEWEST, MOST)
        while sum(len(part.theory.atoms) for part in self.parts) < atoms:
            self.parts.append(Sheet(self.part(len(self.parts))))
        statements = [statement for part in self.parts for statement in part.theory]
        self.rng.shuffle(statements)
        names = [name for part in self.parts for name in part.theory.atoms]
        self.theory = Theory(statements, atoms=self.rng.sample(names, len(names)))
        self.question = "nothing"

    def part(self, number: int) -> Theory:
        """Return a small theory over atoms of its own, which nearly always has a model."""
        rng = self.rng
        size = rng.randint(1, 5)
        place = {f"x{i}": f"p{number}x{i}" for i in range(1, size + 1)}
        while True:
            said = []
            for _ in range(rng.randint(0, 3)):
                weight = Decimal(rng.randint(1, 300)).scaleb(-2) * rng.choice([1, 1, 1, -1])
                said.append((None if rng.random() < 0.4 else weight, renamed(sentence(rng, size), place)))
            theory = Theory(said, atoms=list(place.values()))
            if Sheet(theory).hard.any() or rng.random() < 0.002:
                return theory

    @cached_property
    def laws(self) -> list[tuple[Any, float]] | None:
        """Return for each part the probabilities of its worlds and log Z; None: there is no world."""
        if not all(part.hard.any() for part in self.parts):
            return None
        return [part.logical(part.hard, 1.0) for part in self.parts]

    def ask(self, name: str, *args: Any, **options: Any) -> Any:
        """Return the answer of the library; None: it says that there is no world."""
        said = [*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())]
        self.question = f"{name}({', '.join(said)[:200]})"
        try:
            found = getattr(lbm, name)(self.theory, *args, **options)
        except NoWorlds:
            demand(self.laws is None, "no world, it says")
            return None
        demand(self.laws is not None or name in ("count", "models"), "an answer, though there is no world")
        return found

    def asked(self) -> tuple[Formula, int]:
        """Return a formula about one part, and the number of that part."""
        number = self.rng.randrange(len(self.parts))
        names = self.parts[number].theory.atoms
        place = {f"x{i}": name for i, name in enumerate(names, start=1)}
        return renamed(sentence(self.rng, len(names), 8), place), number

    def count(self) -> None:
        """How many models."""
        right = math.prod(int(part.hard.sum()) for part in self.parts)
        found = self.ask("count")
        demand(found == right, f"{found}, should be {right}")

    def models(self) -> None:
        """The first models."""
        found = self.ask("models", limit=3)
        least = min(3, math.prod(int(part.hard.sum()) for part in self.parts))
        demand(len(found) == least, f"{len(found)} models, should be {least}")
        self.possible(found.atoms, found.array)

    def possible(self, names: tuple[str, ...], array: Any) -> list[Any]:
        """Demand that worlds are models; return for each part the numbers of its worlds."""
        place = {name: i for i, name in enumerate(names)}
        demand(sorted(names) == sorted(self.theory.atoms), "worlds over other atoms")
        found = []
        for part in self.parts:
            own = part.theory.atoms
            columns = np.asarray(array)[:, [place[name] for name in own]].astype(np.int64)
            numbers = columns @ (1 << np.arange(len(own) - 1, -1, -1))
            demand(part.hard[numbers].all(), "a world that breaks a hard formula")
            found.append(numbers)
        return found

    def best(self) -> None:
        """The best world."""
        found = self.ask("best", seed=self.rng.randrange(100))
        if found is None:
            return
        names = tuple(found.world)
        self.possible(names, [list(found.world.values())])
        right = sum((Fraction(max(p.scores[p.hard])) / p.scale for p in self.parts), Fraction(0))
        demand(found.optimal, "parts of a few atoms, and not optimal")
        demand(Fraction(found.scores[0]) == right, f"score {found.scores[0]}, should be {right}")

    def probability(self) -> None:
        """How likely something about one part or two is."""
        query, number = self.asked()
        other, another = self.asked()
        double = another != number and self.rng.random() < 0.5
        found = self.ask("ask", all_of([query, other]) if double else query)
        if found is None or self.laws is None:
            return
        right = math.fsum(self.laws[number][0][self.parts[number].mask(query)])
        if double:
            right *= math.fsum(self.laws[another][0][self.parts[another].mask(other)])
        near(found.probability, right, "the probability")

    def entails(self) -> None:
        """What follows."""
        query, number = self.asked()
        found = self.ask("entails", query)
        if found is None:
            return
        part = self.parts[number]
        demand(found == bool(part.mask(query)[part.hard].all()), f"{found} is wrong")

    def marginals(self) -> None:
        """How likely each atom is."""
        found = self.ask("marginals")
        if found is None or self.laws is None:
            return
        for part, (chances, _) in zip(self.parts, self.laws, strict=True):
            for i, name in enumerate(part.theory.atoms):
                near(found[name], math.fsum(chances[part.worlds[:, i]]), f"P({name})")

    def log_partition(self) -> None:
        """The logarithm of the sum over worlds."""
        found = self.ask("log_partition")
        if found is None or self.laws is None:
            return
        near(found, math.fsum(log for _, log in self.laws), "log Z")

    def sample(self) -> None:
        """Worlds drawn at random."""
        n = self.rng.choice([1, 40])
        found = self.ask("sample", n, seed=self.rng.randrange(1000))
        if found is None or self.laws is None:
            return
        numbers = self.possible(found.atoms, found.array)
        query, number = self.asked()
        true = self.parts[number].mask(query)
        chance = math.fsum(self.laws[number][0][true])
        if 1e-9 < chance < 1 - 1e-9:
            often = int(true[numbers[number]].sum())
            demand(tail(n, often, chance) > UNLIKELY, f"{often} of {n} draws where {chance:g} is likely")

    def log_probability(self) -> None:
        """The logarithm of a world's probability."""
        chosen = [self.rng.randrange(part.size) for part in self.parts]
        world = {n: v for part, i in zip(self.parts, chosen, strict=True) for n, v in part.named(i).items()}
        found = self.ask("log_probability", world)
        if found is None or self.laws is None:
            return
        if not all(part.hard[i] for part, i in zip(self.parts, chosen, strict=True)):
            demand(found == -math.inf, f"{found} of a world that is no model")
            return
        logs = [math.log(chances[i]) for (chances, _), i in zip(self.laws, chosen, strict=True)]
        near(found, math.fsum(logs), "the logarithm")

    def questions(self) -> list[Callable[[], None]]:
        """Return every kind of question."""
        return [
            self.count,
            self.models,
            self.best,
            self.probability,
            self.entails,
            self.marginals,
            self.log_partition,
            self.sample,
            self.log_probability,
        ]


def examine(seed: int) -> tuple[int, list[str]]:
    """Ask about one theory; return the number of questions and what was wrong."""
    wide = Wide(seed)
    wrong = []
    for kind in wide.questions():
        try:
            kind()
        except (Exception, RecursionError) as error:  # noqa: BLE001 - whatever it is, it is a finding
            said = f"WRONG: {wide.question}: {type(error).__name__}: {error}"
            wrong.append(f"{said}\n  again: python tools/fuzz_wide.py --seed {seed} --theories 1")
    return len(wide.questions()), wrong


def main() -> int:
    """Run, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--theories", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    asked = failures = 0
    for seed in range(chosen.seed, chosen.seed + chosen.theories):
        number, wrong = examine(seed)
        asked, failures = asked + number, failures + len(wrong)
        for text in wrong:
            print(text, flush=True)
    print(f"{asked} questions about {chosen.theories} theories, {failures} answers wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
