"""Ask random questions about random theories, and compare every answer with one that shares no code.

    python tools/fuzz.py [--questions 100000] [--seed 0]

Theories are small, up to 12 atoms, so that every world can be looked at: hard, soft, mixed, contradictory,
without atoms, with weights from 1e-9 to 1e30. Whatever is wrong is printed with the theory, the question and
the seed that asks it again, and the exit status is 1. The only errors allowed are those raised on purpose,
where there is reason for them.
"""

import argparse
import math
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lbm
from lbm.errors import LbmError, NoWorlds, ParseError, TooManyCubes, UnknownAtom
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, atoms_of, cardinality, iff
from lbm.knowledge.theory import Theory
from lbm.knowledge.wire import read_theory
from tests.oracles import truth_table
from tests.strategies import random_formula

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

NEAR = 1e-9
"""How far a probability may be from the true one."""

UNLIKELY = 1e-12
"""Draws that a right program gives so rarely are wrong: a run of 100,000 questions is not to meet them."""

SHOWN = 25
"""Failures that are printed; the others are only counted."""


class Wrong(Exception):
    """An answer that is not the true one."""


def demand(true: object, said: str) -> None:
    """Raise Wrong unless something is true."""
    if not true:
        raise Wrong(said)


def near(found: float, right: float, said: str, slack: float = NEAR) -> None:
    """Raise Wrong unless two numbers are as near as their size allows."""
    if found == right:
        return
    demand(
        abs(found - right) <= slack * max(1.0, abs(right)), f"{said} is {found!r}, and should be {right!r}"
    )


# --- the truth -------------------------------------------------------------------------------------


@dataclass
class Sheet:
    """Every world of a theory in lexicographic order, false first, as rows of numbers."""

    theory: Theory
    machine: Any = None
    masks: dict[Formula, Bools] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        """Return the number of worlds."""
        return 1 << len(self.theory.atoms)

    def mask(self, formula: Formula) -> Bools:
        """Return in which worlds a formula is true."""
        found = self.masks.get(formula)
        if found is None:
            table = truth_table(formula, self.theory.atoms[::-1])
            packed = np.frombuffer(table.to_bytes((self.size + 7) // 8, "little"), np.uint8)
            found = np.unpackbits(packed, bitorder="little")[: self.size].astype(bool)
            self.masks[formula] = found
        return found

    @cached_property
    def worlds(self) -> Bools:
        """Return every world, shape (worlds, atoms)."""
        n = len(self.theory.atoms)
        shifts = np.arange(n - 1, -1, -1)
        return (np.arange(self.size)[:, None] >> shifts & 1).astype(bool).reshape(self.size, n)

    def named(self, number: int) -> dict[str, bool]:
        """Return a world by name."""
        return dict(zip(self.theory.atoms, self.worlds[number].tolist(), strict=True))

    def number(self, world: dict[str, bool]) -> int:
        """Return the place of a world, whose atoms must be those of the theory, in its order."""
        demand(tuple(world) == self.theory.atoms, f"a world over {list(world)}")
        return sum(bool(value) << i for i, value in enumerate(reversed(world.values())))

    @cached_property
    def statements(self) -> list[tuple[Formula, Fraction | None]]:
        """Return formulae and weights; None: hard."""
        return [(s.formula, None if s.weight is None else Fraction(s.weight)) for s in self.theory]

    @cached_property
    def hard(self) -> Bools:
        """Return which worlds keep every hard formula."""
        found = np.ones(self.size, bool)
        for formula, weight in self.statements:
            if weight is None:
                found = found & self.mask(formula)
        return found

    @cached_property
    def scale(self) -> int:
        """Return the number that makes every weight whole."""
        return math.lcm(1, *(w.denominator for _, w in self.statements if w is not None))

    @cached_property
    def scores(self) -> NDArray[Any]:
        """Return the score of each world times ``scale``, as whole numbers of any size."""
        return self.lost_or_won(lambda weight: (weight, 0))

    @cached_property
    def losses(self) -> NDArray[Any]:
        """Return the weight each world loses, times ``scale``."""
        return self.lost_or_won(lambda weight: (0, weight) if weight > 0 else (-weight, 0))

    def lost_or_won(
        self, worth: Callable[[int], tuple[int, int]], chosen: Sequence[int] | None = None
    ) -> NDArray[Any]:
        """Return the sum, in each world, of what the chosen soft formulae are worth, if true and if false."""
        total = np.zeros(self.size, object)
        for number in range(len(self.statements)) if chosen is None else chosen:
            formula, weight = self.statements[number]
            if weight is not None:
                true, false = worth(int(weight * self.scale))
                total = total + np.array([false, true], object)[self.mask(formula).astype(int)]
        return total

    def best(self, among: Bools) -> Bools:
        """Return which of these worlds have the greatest score."""
        greatest = max(self.scores[among])
        return np.asarray(among & (self.scores == greatest), bool)

    def logical(self, among: Bools, temperature: float) -> tuple[Floats, float]:
        """Return the probability of each world and log Z; scores are subtracted before they are rounded."""
        greatest = max(self.scores[among])
        tau, powers = Fraction(temperature), {}
        for score in set(self.scores[among]):
            powers[score] = math.exp(float(Fraction(score - greatest, self.scale) / tau))
        weights = np.array(
            [powers[s] if kept else 0.0 for s, kept in zip(self.scores, among.tolist(), strict=True)]
        )
        total = math.fsum(weights)
        return weights / total, float(Fraction(greatest, self.scale) / tau + Fraction(math.log(total)))

    def gap(self, among: Bools, number: int, temperature: float) -> float:
        """Return (score of a world - the greatest)/τ."""
        return float(
            Fraction(self.scores[number] - max(self.scores[among]), self.scale) / Fraction(temperature)
        )

    @cached_property
    def inputs(self) -> tuple[Floats, Floats] | None:
        """Return the inputs of the hidden units and a·x in every world; None: too many definitions."""
        machine, d = self.machine, len(self.machine.definitions)
        weights = machine.weights.toarray()
        if not d:
            x = self.worlds.astype(float)
            return x @ weights + machine.hidden_bias, x @ machine.visible_bias
        if d > 6 or self.size > 256:
            return None
        # A definition weighs more than all that depends on it: among all values of the definitional atoms
        # the right ones have the least energy.
        extra = (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(float)
        rows, biases = [], []
        for world in self.worlds.astype(float):
            x = np.hstack([np.tile(world, (1 << d, 1)), extra])
            s, a = x @ weights + machine.hidden_bias, x @ machine.visible_bias
            chosen = int(np.argmax(np.maximum(s, 0).sum(axis=1) + a))
            rows.append(s[chosen])
            biases.append(a[chosen])
        return np.array(rows).reshape(self.size, machine.hidden), np.array(biases)

    def depths(self, scale: float) -> tuple[Floats, float] | None:
        """Return -F of every world, hidden states summed out one by one, and how far rounding may go."""
        if self.inputs is None:
            return None
        s, a = self.inputs
        machine = self.machine
        numbers = (machine.weights.data, machine.hidden_bias, machine.visible_bias)
        size = scale * sum(float(np.abs(each).sum()) for each in numbers)
        return scale * a + np.logaddexp(0.0, scale * s).sum(axis=1), NEAR + 1e-14 * size


# --- random theories -------------------------------------------------------------------------------


def weight_of(rng: random.Random) -> Any:
    """Return a weight; many are small, some have the same size and the other sign."""
    kind = rng.random()
    if kind < 0.5:
        found: Any = rng.randint(1, 6)
    elif kind < 0.7:
        found = Decimal(rng.randint(1, 9999)).scaleb(-rng.randint(1, 4))
    elif kind < 0.8:
        found = rng.choice([Decimal("1e-9"), Decimal("1e-6"), 10**6, 10**9, Decimal("1e9") + Decimal("1e-9")])
    elif kind < 0.84:
        found = rng.choice([10**30, 10**30 + 1, Decimal("1e30")])
    elif kind < 0.92:
        found = math.exp(rng.uniform(-20, 20))
    else:
        found = Decimal(rng.randint(1, 10**25)).scaleb(-rng.randint(0, 30))
    return -found if rng.random() < 0.25 else found


def sentence(rng: random.Random, atoms: int, nodes: int = 14) -> Formula:
    """Return a formula over x1, x2, ...: random, or one of the shapes that have methods of their own."""
    names = [atom(f"x{i}") for i in range(1, atoms + 1)]
    if not names:
        return rng.choice([TRUE, FALSE, ~FALSE, TRUE & FALSE, cardinality("atleast", 0, [])])
    kind = rng.random()
    if kind < 0.45:
        return random_formula(rng, atoms, nodes)
    some = [
        name if rng.random() < 0.5 else ~name for name in rng.sample(names, rng.randint(1, min(4, atoms)))
    ]
    if kind < 0.6:
        return any_of(some)
    if kind < 0.68:
        return all_of(some)
    if kind < 0.76:
        return all_of(some[:-1]) >> some[-1]
    if kind < 0.86:
        parts = [rng.choice(names) for _ in range(rng.randint(0, 5))]
        return cardinality(rng.choice(["atleast", "atmost", "exactly"]), rng.randint(0, 4), parts)
    if kind < 0.92:
        found = some[0]
        for part in some[1:]:
            found = found ^ part if rng.random() < 0.5 else iff(found, part)
        return found
    if kind < 0.95:
        return rng.choice([TRUE, FALSE, some[0] | ~some[0], some[0] & ~some[0], ~(some[0] ^ some[0])])
    return some[0]


def any_of(parts: Sequence[Formula]) -> Formula:
    """Return a disjunction."""
    found: Formula = FALSE
    for i, part in enumerate(parts):
        found = part if not i else found | part
    return found


def all_of(parts: Sequence[Formula]) -> Formula:
    """Return a conjunction."""
    found: Formula = TRUE
    for i, part in enumerate(parts):
        found = part if not i else found & part
    return found


def random_theory(rng: random.Random) -> Theory:
    """Return a theory of one of many shapes."""
    return random_source(rng)[0]


def random_source(rng: random.Random) -> tuple[Theory, str, str]:
    """Return a theory of one of many shapes, with text that says the same and its format."""
    kind = rng.random()
    atoms = rng.randint(9, 12) if rng.random() < 0.02 else rng.choice([1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8])
    if kind < 0.03:  # nothing to speak of, or hardly
        theory = Theory([(rng.choice([None, 2, -3]), sentence(rng, 0)) for _ in range(rng.randint(0, 2))])
        return theory, str(theory), "lbm"
    if kind < 0.15:
        text, form = packed_text(rng, atoms)
        return read_source(text, form), text, form
    length = rng.randint(0, 6)
    nodes = 40 if rng.random() < 0.1 else 12
    formulae = [sentence(rng, atoms, nodes) for _ in range(length)]
    if formulae and rng.random() < 0.1:
        formulae.append(rng.choice(formulae))
    if formulae and rng.random() < 0.05:
        formulae.append(~rng.choice(formulae))
    if kind < 0.4:
        chance = 0.0
    elif kind < 0.6:
        chance = 1.0
    else:
        chance = 0.6
    statements = [(weight_of(rng) if rng.random() < chance else None, f) for f in formulae]
    if 0.85 < kind < 0.9:  # many scores that are the same
        statements = [(None if w is None else rng.choice([1, 1, -1, 2]), f) for w, f in statements]
    idle = rng.sample([f"x{i}" for i in range(1, atoms + 1)] + ["idle", "idle too"], rng.randint(0, 2))
    theory = Theory(statements, atoms=idle if rng.random() < 0.3 else ())
    return theory, str(theory), "lbm"


def read_source(text: str, form: str) -> Theory:
    """Return the theory that a text says, which may say nothing."""
    return read_theory(text, format=form) if text.strip() else Theory()


def packed_text(rng: random.Random, atoms: int) -> tuple[str, str]:
    """Return a DIMACS file and its format; clauses that are read from it are arrays."""
    soft = rng.random() < 0.5
    lines = []
    for _ in range(rng.randint(0, 2 * atoms)):
        chosen = [
            rng.choice((-1, 1)) * rng.randint(1, atoms)
            for _ in range(rng.randint(0 if rng.random() < 0.05 else 1, 3))
        ]
        head = ["h" if rng.random() < 0.5 else str(rng.choice([1, 2, 5, 10**9]))] if soft else []
        lines.append(" ".join([*head, *map(str, chosen), "0"]))
    if soft:
        return "\n".join([*lines, "h 1 -1 0"]), "wcnf"
    show = f"c p show {' '.join(str(rng.randint(1, atoms)) for _ in range(rng.randint(0, 3)))} 0"
    head = [f"p cnf {atoms} {len(lines)}", *([show] if rng.random() < 0.5 else [])]
    return "\n".join([*head, *lines]) + "\n", "cnf"


# --- questions -------------------------------------------------------------------------------------


@dataclass
class Evidence:
    """Evidence as it is said, and the worlds that keep it."""

    said: Any
    formula: Formula | None
    mask: Bools


class Asker:
    """One theory, asked many questions; what was asked last stands in ``question``."""

    def __init__(self, theory: Theory, rng: random.Random) -> None:
        self.theory, self.rng = theory, rng
        self.door: Any = lbm
        self.about: tuple[Any, ...] = (theory,)
        machine = lbm.translate(theory)
        kind = rng.random()
        if kind < 0.15:
            options = {"epsilon": rng.choice([0.5, 0.1, 0.9]), "merge": rng.random() < 0.5}
            method = rng.choice(["auto", "elimination", "diagram", "full", "definitions"])
            with suppress(TooManyCubes):  # any method but auto may be too much for a formula
                machine = lbm.translate(theory, method=method, **options)
        elif kind < 0.25:  # Penalty Logic's network, with weights of all sizes and biases of atoms
            penalty = lbm.translate(theory, encoding="penalty")
            machine = machine if penalty.definitions else penalty
        if kind < 0.25:
            self.door, self.about = lbm.Reasoner(machine), ()
        elif kind < 0.6:
            self.door, self.about = lbm.Reasoner(theory), ()
        self.sheet = Sheet(theory, machine)
        self.question = ""
        self.asked = 0
        self.blamed: Formula | None = None

    # -- asking --

    def ask(self, name: str, *args: Any, **options: Any) -> Any:
        """Return the answer of the library; None: it says that there is no world."""
        self.asked += 1
        said = [*map(repr, args), *(f"{key}={value!r}" for key, value in options.items())]
        self.question = f"{name}({', '.join(said)})"
        try:
            return getattr(self.door, name)(*self.about, *args, **options)
        except NoWorlds as error:
            self.blamed = error.evidence
            return None

    def formula(self, nodes: int = 8) -> Formula:
        """Return a formula over the atoms of the theory."""
        names = self.theory.atoms
        found = sentence(self.rng, min(len(names), 12), nodes)
        place = {f"x{i}": name for i, name in enumerate(names, start=1)}
        return renamed(found, place)

    def say(self, formula: Formula) -> Any:
        """Return a formula, its text, or truth values, all of which mean the same."""
        if self.rng.random() < 0.5:
            return formula
        return str(formula)

    def evidence(self) -> Evidence:
        """Return evidence of any kind, most often none or literals."""
        kind = self.rng.random()
        names = self.theory.atoms
        if kind < 0.3:
            return Evidence(None, None, np.ones(self.sheet.size, bool))
        if kind < 0.6 and names:
            values = {
                n: self.rng.random() < 0.5
                for n in self.rng.sample(names, self.rng.randint(0, min(3, len(names))))
            }
            formula = all_of([atom(n) if value else ~atom(n) for n, value in values.items()])
            return Evidence(values, formula, self.sheet.mask(formula))
        formula = self.formula()
        return Evidence(self.say(formula), formula, self.sheet.mask(formula))

    def settings(self, given: Evidence) -> dict[str, Any]:
        """Return options of a question about probabilities."""
        rng = self.rng
        found: dict[str, Any] = {} if given.said is None else {"given": given.said}
        if rng.random() < 0.5:
            found["temperature"] = rng.choice([0.1, 0.5, 2, 10.0, 1e3, 10 ** rng.uniform(-1, 3)])
        if rng.random() < 0.35:
            found["distribution"] = "machine"
            if rng.random() < 0.5:
                found["confidence"] = rng.choice([0.1, 1, 5.0, 20, 10 ** rng.uniform(-1, 2)])
        return found

    def law(self, given: Evidence, options: dict[str, Any]) -> tuple[Floats, float, float] | None:
        """Return the probability of each world, log Z and the room for rounding; None: there is no world."""
        temperature = options.get("temperature", 1.0)
        if options.get("distribution") != "machine":
            kept = self.sheet.hard & given.mask
            return (*self.sheet.logical(kept, temperature), NEAR) if kept.any() else None
        if not given.mask.any():
            return None
        found = self.sheet.depths(options.get("confidence", 5.0) / temperature)
        assert found is not None, "asked only where the machine is small"
        depths, room = np.where(given.mask, found[0], -np.inf), found[1]
        greatest = float(depths.max())
        weights = np.exp(depths - greatest)
        total = math.fsum(weights)
        return weights / total, greatest + math.log(total), room

    def nothing(self, answer: Any, law: object, options: dict[str, Any]) -> bool:
        """Return whether there is no world, and demand that the answer says so and blames the right part."""
        demand((answer is None) == (law is None), f"no world: {answer is None}, should be {law is None}")
        if law is None and options.get("distribution") != "machine":
            clash = not self.sheet.hard.any()
            demand((self.blamed is None) == clash, f"blames {self.blamed}, but the theory clashes: {clash}")
        return law is None

    # -- one question after the other --

    def probability(self, given: Evidence) -> None:
        """How likely, and settled or not."""
        query, options = self.formula(), self.settings(given)
        why = self.rng.random() < 0.3
        answer = self.ask("ask", self.say(query), **options, **({"why": True} if why else {}))
        law = self.law(given, options)
        if self.nothing(answer, law, options):
            return
        true = self.sheet.mask(query)
        chances, _, room = law  # type: ignore[misc]
        right = math.fsum(chances[true])
        demand(0 <= answer.probability <= 1, f"probability {answer.probability}")
        if room < 0.01:
            near(answer.probability, right, "the probability", room)
        if not true[given.mask].any() or true[given.mask].all():  # however large energies are
            near(answer.probability, float(true[given.mask].any()), "a probability without doubt")
        demand(answer.method == "exact", f"method {answer.method}")
        demand(answer.interval == (answer.probability, answer.probability), f"interval {answer.interval}")
        demand(answer.converged and str(answer), "converged, and in words")
        self.status(answer.status, query, given)
        if why:
            self.reasons(answer.status, answer.reasons, answer.minimal, query, given)
        else:
            demand(answer.reasons is None, f"reasons {answer.reasons} that nobody asked for")

    def status(self, status: str | None, query: Formula, given: Evidence) -> None:
        """Demand that a status is the right one."""
        kept, true = self.sheet.hard & given.mask, self.sheet.mask(query)
        if not kept.any():
            right = None
        elif true[kept].all():
            right = "entailed"
        elif not true[kept].any():
            right = "refuted"
        else:
            best = self.sheet.best(kept)
            soft = any(weight is not None for _, weight in self.sheet.statements)
            right = "preferred" if soft and true[best].all() else "undecided"
            if soft and not true[best].any():
                right = "dispreferred"
        demand(status == right, f"the status is {status}, and should be {right}")

    def reasons(
        self, status: str | None, reasons: Any, minimal: bool, query: Formula, given: Evidence
    ) -> None:
        """Demand that reasons settle the question, and that none of them can be left out."""
        if status in (None, "undecided"):
            demand(not reasons, f"reasons {reasons} for what is {status}")
            return
        numbers = []
        listed = list(self.theory)
        for reason in reasons:
            same = [i for i, s in enumerate(listed) if s == reason and i not in numbers]
            demand(same, f"the reason {reason} is no statement")
            numbers.append(same[0])
        demand(minimal, "the reasons of a small theory are not minimal")
        demand(self.settles(status, numbers, query, given), f"the reasons {reasons} do not settle it")
        for left in numbers:
            fewer = [i for i in numbers if i != left]
            demand(
                not self.settles(status, fewer, query, given), f"without {listed[left]} they settle it too"
            )

    def settles(self, status: str | None, numbers: Sequence[int], query: Formula, given: Evidence) -> bool:
        """Return whether these statements and the evidence are enough for the status."""
        sheet = self.sheet
        against = given.mask & (
            sheet.mask(query) if status in ("refuted", "dispreferred") else ~sheet.mask(query)
        )
        for i in numbers:
            formula, weight = sheet.statements[i]
            if weight is None:
                against = against & sheet.mask(formula)
        if status not in ("preferred", "dispreferred"):
            return not against.any()
        least = min(sheet.losses[sheet.hard & given.mask])
        lost = sheet.lost_or_won(lambda w: (0, w) if w > 0 else (-w, 0), numbers)
        return all(loss > least for loss in lost[against])

    def count(self, given: Evidence) -> None:
        """How many models."""
        _, options, rows = self.projected(given)
        found = self.ask("count", **options)
        demand(found == len(rows), f"{found} models, should be {len(rows)}")
        demand(type(found) is int, f"a count of type {type(found)}")

    def models(self, given: Evidence) -> None:
        """Which models."""
        names, options, rows = self.projected(given)
        if self.rng.random() < 0.5:
            options["limit"] = self.rng.choice([0, 1, 2, 5, len(rows), len(rows) + 1, 1000])
        found = self.ask("models", **options)
        limit = options.get("limit", len(rows))
        demand(found.atoms == names, f"columns {found.atoms}, should be {names}")
        demand([tuple(r) for r in found.array.tolist()] == rows[:limit], "other models, or another order")
        demand(found.complete == (limit >= len(rows)), f"complete: {found.complete}")

    def projected(self, given: Evidence) -> tuple[tuple[str, ...], dict[str, Any], list[tuple[bool, ...]]]:
        """Return the columns, the options and the models over them, in order."""
        options: dict[str, Any] = {} if given.said is None else {"given": given.said}
        names = self.theory.atoms if self.theory.shown is None else self.theory.shown
        if self.rng.random() < 0.4:
            names = tuple(self.rng.sample(self.theory.atoms, self.rng.randint(0, len(self.theory.atoms))))
            options["project"] = list(names)
        places = [self.theory.atoms.index(name) for name in names]
        rows = self.sheet.worlds[self.sheet.hard & given.mask][:, places]
        return names, options, sorted(set(map(tuple, rows.tolist())))

    def best(self, given: Evidence) -> None:
        """Which worlds are best."""
        options: dict[str, Any] = {} if given.said is None else {"given": given.said}
        kind = self.rng.random()
        if kind < 0.3:
            options["top"] = self.rng.choice([1, 2, 3, 7, 300])
        elif kind < 0.6:
            options["every"] = True
        told: list[Any] = []
        if self.rng.random() < 0.2:
            options["on_better"] = told.append
        found = self.ask("best", **options)
        sheet = self.sheet
        kept = sheet.hard & given.mask
        if self.nothing(found, True if kept.any() else None, {}):
            return
        order = sorted(np.flatnonzero(kept).tolist(), key=lambda i: (sheet.losses[i], i))
        top = options.get("top", 1)
        if options.get("every"):
            top = int(sheet.best(kept).sum())
            demand(found.complete, "not all the best worlds of a small theory")
        numbers = [sheet.number(world) for world in found.worlds]
        demand(found.optimal, f"not optimal: {found.said}")
        right = [sheet.losses[i] for i in order[:top]]
        demand([sheet.losses[i] for i in numbers] == right, f"worlds {numbers}, should be {order[:top]}")
        demand(all(kept[i] for i in numbers), "a world that keeps not every hard formula and the evidence")
        demand(len(set(numbers)) == len(numbers), "a world twice")
        demand(numbers == sorted(numbers, key=lambda i: (sheet.losses[i], i)), "not in order")
        for i, score in zip(numbers, found.scores, strict=True):
            demand(Fraction(score) * sheet.scale == sheet.scores[i], f"score {score}")
        first = numbers[0]
        demand(Fraction(found.lost) * sheet.scale == sheet.losses[first], f"lost {found.lost}")
        demand(found.bound == found.lost and found.gap == 0, f"bound {found.bound} of {found.lost}")
        broken, satisfied = [], Fraction(0)
        for i, (formula, weight) in enumerate(sheet.statements):
            true = bool(sheet.mask(formula)[first])
            if weight is not None and true == (weight < 0):
                broken.append(i)
            elif weight is not None and weight > 0:
                satisfied += weight
        demand(list(found.broken) == broken, f"broken {found.broken}, should be {broken}")
        demand(Fraction(found.satisfied) == satisfied, f"satisfied {found.satisfied}")
        if told:
            demand(told[-1].lost == found.lost, f"last told of {told[-1].lost} lost, not of {found.lost}")

    def entails(self, given: Evidence) -> None:
        """What follows."""
        query = self.formula()
        options: dict[str, Any] = {} if given.said is None else {"given": given.said}
        mode = self.rng.choice(["entailed", "preferred"])
        found = self.ask("entails", self.say(query), **options, mode=mode)
        kept, true = self.sheet.hard & given.mask, self.sheet.mask(query)
        if self.nothing(found, True if kept.any() else None, {}):
            return
        right = bool(true[self.sheet.best(kept) if mode == "preferred" else kept].all())
        demand(found is right, f"{found}, should be {right}")

    def marginals(self, given: Evidence) -> None:
        """How likely is each atom."""
        options = self.settings(given)
        found = self.ask("marginals", **options)
        law = self.law(given, options)
        if self.nothing(found, law, options):
            return
        chances, _, room = law  # type: ignore[misc]
        demand(tuple(found) == self.theory.atoms, f"marginals of {list(found)}")
        for i, name in enumerate(self.theory.atoms):
            demand(0 <= found[name] <= 1, f"P({name}) = {found[name]}")
            if room < 0.01:
                near(found[name], math.fsum(chances[self.sheet.worlds[:, i]]), f"P({name})", room)
        demand(str(found), "in words")

    def log_partition(self, given: Evidence) -> None:
        """The logarithm of the sum over worlds."""
        options = self.settings(given)
        found = self.ask("log_partition", **options)
        law = self.law(given, options)
        if self.nothing(found, law, options):
            return
        _, log, room = law  # type: ignore[misc]
        demand(not math.isnan(found), "log Z is no number")
        if room < 0.01:
            near(found, log, "log Z", room)

    def log_probability(self, given: Evidence) -> None:
        """The logarithm of a world's probability."""
        options, number = self.settings(given), self.rng.randrange(self.sheet.size)
        found = self.ask("log_probability", self.sheet.named(number), **options)
        law = self.law(given, options)
        if self.nothing(found, law, options):
            return
        _, log, room = law  # type: ignore[misc]
        sheet, temperature = self.sheet, options.get("temperature", 1.0)
        if options.get("distribution") == "machine":
            if not given.mask[number]:
                right = -math.inf
            else:
                right = sheet.depths(options.get("confidence", 5.0) / temperature)[0][number] - log  # type: ignore[index]
                if room >= 0.01:
                    return
        elif not (sheet.hard & given.mask)[number]:
            right = -math.inf
        else:
            kept = sheet.hard & given.mask
            # Counted from the best score: log Z itself may have no digits left for what is asked here.
            powers = [math.exp(sheet.gap(kept, i, temperature)) for i in np.flatnonzero(kept).tolist()]
            right = sheet.gap(kept, number, temperature) - math.log(math.fsum(powers))
        near(found, right, "the logarithm", room)
        demand(found <= 0, f"a logarithm of {found}")

    def sample(self, given: Evidence) -> None:
        """Worlds drawn at random: possible ones, and as often as they should be."""
        options, n = self.settings(given), self.rng.choice([1, 2, 40, 40])
        seed = self.rng.randrange(1000)
        found = self.ask("sample", n, **options, seed=seed, method=self.rng.choice(["auto", "exact"]))
        law = self.law(given, options)
        if self.nothing(found, law, options):
            return
        chances, _, room = law  # type: ignore[misc]
        demand(found.array.shape == (n, len(self.theory.atoms)), f"shape {found.array.shape}")
        demand(found.array.dtype == bool and found.method == "exact", f"{found.array.dtype}, {found.method}")
        powers = 1 << np.arange(len(self.theory.atoms) - 1, -1, -1)
        numbers = found.array.astype(np.int64) @ powers if len(powers) else np.zeros(n, np.int64)
        demand(given.mask[numbers].all(), "a draw that does not keep the evidence")
        if options.get("distribution") != "machine":
            demand(self.sheet.hard[numbers].all(), "a draw that breaks a hard formula")
        if room < 0.01:
            worst = float(chances[numbers].min())
            demand(worst > UNLIKELY or room > 2 * NEAR, f"a draw of probability {worst}")
            true = self.sheet.mask(self.formula())
            often, chance = int(true[numbers].sum()), math.fsum(chances[true])
            if NEAR < chance < 1 - NEAR:
                rare = tail(n, often, chance)
                demand(rare > UNLIKELY, f"{often} of {n} draws where {chance:g} is likely")

    def text(self, _: Evidence) -> None:
        """Text that may mean nothing: it is read, or refused on purpose."""
        rng = self.rng
        if rng.random() < 0.4:
            said = bytes(rng.randrange(256) for _ in range(rng.randint(0, 30))).decode(
                rng.choice(["latin-1", "utf-8", "utf-16-le"]), rng.choice(["replace", "ignore"])
            )
        else:
            said = mutated(rng, str(self.formula()))
        name = rng.choice(["ask", "entails", "count", "models", "best", "marginals", "log_partition"])
        args = [said] if name in ("ask", "entails") else []
        options = {"given": said} if not args or rng.random() < 0.3 else {}
        try:
            self.ask(name, *args, **options)
        except (ParseError, UnknownAtom):
            return
        read = lbm.parse(said)
        demand(
            set(atoms_of(read)) <= set(self.theory.atoms), "an atom that is not in the theory was let pass"
        )

    def strangers(self) -> None:
        """Atoms that are not in the theory are refused, wherever they stand."""
        name = "nobody"
        for question, args, options in (
            ("ask", (name,), {}),
            ("entails", (f"{name} | ~{name}",), {}),
            ("count", (), {"project": [name]}),
            ("models", (), {"given": {name: True}}),
            ("log_probability", ({**self.sheet.named(0), name: True},), {}),
            ("sample", (2,), {"given": ~atom(name)}),
        ):
            if self.rng.random() < 0.5:
                continue
            try:
                self.ask(question, *args, **options)
            except UnknownAtom:
                continue
            raise Wrong("an atom that is not in the theory was let pass")

    def nonsense(self, _: Evidence) -> None:
        """Options that make no sense are refused with a ValueError that says what is expected."""
        question, args, options = self.rng.choice(
            [
                ("ask", ("true",), {"temperature": self.rng.choice([0, -1, math.nan, math.inf])}),
                ("ask", ("true",), {"seconds": self.rng.choice([0, -1, math.nan])}),
                ("ask", ("true",), {"method": "guess"}),
                ("ask", ("true",), {"sweeps": 0}),
                ("marginals", (), {"distribution": "machine", "confidence": self.rng.choice([0, math.nan])}),
                ("marginals", (), {"distribution": "normal"}),
                ("sample", (0,), {}),
                ("sample", (-1,), {}),
                ("best", (), {"top": 0}),
                ("best", (), {"seconds": 0}),
                ("entails", ("true",), {"mode": "liked"}),
                ("models", (), {"limit": -1}),
            ]
        )
        try:
            self.ask(question, *args, **options)
        except ValueError as error:
            demand(len(str(error)) > 10, f"a message of few words: {error}")
            return
        raise Wrong("an option without sense was let pass")

    def questions(self) -> Iterator[Callable[[Evidence], None]]:
        """Yield kinds of questions, the frequent ones more often."""
        kinds = [
            *[self.probability] * 5,
            *[self.entails] * 2,
            *[self.best] * 3,
            *[self.marginals] * 3,
            *[self.log_partition] * 3,
            *[self.log_probability] * 3,
            *[self.sample] * 3,
            *[self.count] * 4,
            *[self.models] * 3,
            *[self.text] * 2,
            self.nonsense,
        ]
        while True:
            yield self.rng.choice(kinds)


def renamed(formula: Formula, place: dict[str, str]) -> Formula:
    """Return a formula with other names for its atoms."""
    made: dict[Formula, Formula] = {}

    def build(node: Formula) -> Formula:
        if node not in made:
            below = [build(part) for part in node.args]
            if node.kind == "atom":
                made[node] = atom(place[node.label])
            elif node.kind in ("true", "false"):
                made[node] = node
            elif node.kind == "not":
                made[node] = ~below[0]
            elif node.kind in ("atleast", "atmost", "exactly"):
                made[node] = cardinality(node.kind, node.label, below)
            else:
                left, right = below
                made[node] = {
                    "and": left & right,
                    "or": left | right,
                    "xor": left ^ right,
                    "implies": left >> right,
                    "iff": iff(left, right),
                }[node.kind]
        return made[node]

    return build(formula)


def mutated(rng: random.Random, text: str) -> str:
    """Return text with a few characters changed, doubled, swapped or lost."""
    signs = list(text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(signs) + 1)
        kind = rng.random()
        if kind < 0.4:
            signs.insert(at, rng.choice("()&|~^-><,:'\"#=01x \n\t\\∧¬{}é\u200b"))
        elif kind < 0.7 and signs:
            del signs[min(at, len(signs) - 1)]
        elif signs:
            signs[at:at] = signs[: rng.randint(1, len(signs))]
    return "".join(signs)


def tail(n: int, often: int, chance: float) -> float:
    """Return how likely it is that something of this chance is seen so often, or still farther off."""
    terms = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    return 2 * min(math.fsum(terms[: often + 1]), math.fsum(terms[often:]))


# --- the run ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Failure:
    """A question that was answered wrongly, and all that is needed to ask it again.

    ``place`` is the number of the evidence and of the question about it; None: it was no single question.
    ``alone`` is whether the question is also wrong when it is the only one.
    """

    seed: int
    text: str
    format: str
    place: tuple[int, int] | None
    said: str
    alone: bool = True


def examine(seed: int) -> tuple[int, list[Failure]]:
    """Ask about one random theory; return the number of questions and what was wrong."""
    theory, text, form = random_source(random.Random(seed))
    asked, wrong = interview(theory, seed)
    return asked, [Failure(seed, text, form, place, said) for place, said in wrong]


Place = tuple[int, int] | None


def interview(theory: Theory, seed: int, only: Place = None) -> tuple[int, list[tuple[Place, str]]]:
    """Ask many questions about a theory, or only one of them; return their number, and what was wrong.

    Every question depends on its place, the seed and the theory, not on the questions before it.
    """
    wrong: list[tuple[Place, str]] = []
    try:
        asker = Asker(theory, random.Random(f"{seed}"))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return 1, [(None, failure(seed, theory, "translate", error))]
    small = asker.sheet.inputs is not None
    for block in range(asker.rng.randint(3, 6)) if only is None else [only[0]]:
        asker.rng = random.Random(f"{seed} {block}")
        given, number = asker.evidence(), asker.rng.randint(4, 10)
        for i in range(number) if only is None else [only[1]]:
            asker.rng = random.Random(f"{seed} {block} {i}")
            kind = next(asker.questions())
            if not small and kind in (
                asker.probability,
                asker.marginals,
                asker.sample,
                asker.log_partition,
                asker.log_probability,
            ):
                continue
            try:
                kind(given)
            except (Exception, RecursionError) as error:  # noqa: BLE001 - whatever it is, it is a finding
                wrong.append(((block, i), failure(seed, theory, asker.question, error)))
    if only is None:
        asker.rng = random.Random(f"{seed} strangers")
        try:
            asker.strangers()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            wrong.append((None, failure(seed, theory, asker.question, error)))
    return asker.asked, wrong


def again(found: Failure, theory: Theory | None = None) -> list[str]:
    """Ask a question again, of its own theory or another one; return what is wrong."""
    theory = read_source(found.text, found.format) if theory is None else theory
    return [said for _, said in interview(theory, found.seed, found.place if found.alone else None)[1]]


def shrunk(found: Failure) -> Failure:
    """Return the failure with as few statements as it needs, of the same atoms; as it was if it goes away."""
    if not again(found):
        if not again(replace(found, alone=False)):
            return found
        found = replace(found, alone=False)
    if found.format != "lbm":
        return found
    theory = read_source(found.text, "lbm")
    statements, i = list(theory), 0
    while i < len(statements):
        fewer = Theory(statements[:i] + statements[i + 1 :], atoms=theory.atoms)
        if wrong := again(found, fewer):
            statements = list(fewer)
            found = replace(found, text=str(fewer), said=wrong[0])
        else:
            i += 1
    return found


def failure(seed: int, theory: Theory, question: str, error: BaseException) -> str:
    """Return what is wrong, as lines of text."""
    said = str(error) if isinstance(error, Wrong) else f"{type(error).__name__}: {error}"
    if not isinstance(error, Wrong | LbmError):
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is not None:
            said += f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"
    shown = f", shown {theory.shown}" if theory.shown is not None else ""
    lines = [f"  {line}" for line in str(theory).splitlines()] or ["  (nothing)"]
    head = f"WRONG: {question}: {said}"
    return "\n".join(
        [
            head,
            f"  atoms: {', '.join(theory.atoms)}{shown}",
            *lines,
            f"  again: python tools/fuzz.py --seed {seed} --questions 1",
        ]
    )


def main() -> int:
    """Run, print progress, and return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--questions", type=int, default=100_000, help="how many at least; a theory is never left half asked"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first theory; the next one has the next number"
    )
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    asked, failures, seed, start = 0, 0, chosen.seed, time.monotonic()
    told = start
    while asked < chosen.questions:
        number, wrong = examine(seed)
        seed += 1
        asked += max(1, number)
        for found in wrong:
            failures += 1
            if failures <= SHOWN:
                print(found.said, flush=True)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(
                f"{asked:,} questions, {failures} wrong, {asked / (told - start):.0f} a second",
                file=sys.stderr,
            )
    took = time.monotonic() - start
    print(
        f"{asked:,} questions about {seed - chosen.seed:,} theories (seeds {chosen.seed} to {seed - 1}), "
        f"{failures} answers wrong, {asked / took:.0f} questions a second"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
