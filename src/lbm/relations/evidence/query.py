"""Labels as evidence, other atoms as queries: all marginals in one run, each with how it was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import ClashingLabels, LimitExceeded, NoAnswer, NoWorlds
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.theory import Theory
from lbm.reasoning.answers import Estimate, Marginals
from lbm.reasoning.budget import Budget
from lbm.reasoning.reasoner import Reasoner
from lbm.reasoning.sampling.runs import MAX_CHEAP_UPDATES, MOST_CHEAP, Limits
from lbm.relations.evidence import orders
from lbm.relations.evidence.residual import GroundRules, label_weight, prepare, reduce
from lbm.relations.evidence.rules import ground
from lbm.relations.evidence.walk import agreed, begin, clashing, is_possible, walk

SECONDS: Final = 60.0
"""Time for an answer, where none is given."""

EXACT_ATOMS: Final = 24
"""Open atoms of a component up to which all its worlds are summed."""

EVEN: Final = 1e-12
"""How near to 1/2 an exact probability is taken to be 1/2: sums of many worlds round."""


@dataclass(frozen=True, slots=True)
class _Said:
    """How likely an atom is, whether that is proven, and how good it is if it was sampled."""

    chance: float
    proven: bool = False
    estimate: Estimate | None = None

    @property
    def status(self) -> str:
        """What is proven of the atom."""
        return ("entailed" if self.chance else "refuted") if self.proven else "undecided"

    def negated(self) -> _Said:
        """Return the same about the negation."""
        chance, said = 1.0 - self.chance, self.estimate
        if said is not None:
            said = replace(said, probability=chance, low=1.0 - said.high, high=1.0 - said.low)
        return _Said(chance, self.proven, said)


@dataclass(frozen=True, eq=False, repr=False)
class Chances(Marginals):
    """How likely each query is, given labels and rules; by name, as asked.

    Attributes
    ----------
    statuses
        What is proven of each query, given rules and hard labels: ``entailed``, ``refuted`` or ``undecided``.
    """

    statuses: dict[str, str] = field(default_factory=dict)

    @property
    def even(self) -> tuple[str, ...]:
        """The queries that are exactly as likely as not: rules and labels do not tell."""
        sampled = self.estimates or {}
        return tuple(name for name, chance in self.chances.items() if chance == 0.5 and name not in sampled)

    def labels(self) -> dict[str, bool]:
        """Return whether each query is more likely than not; those in ``even`` are not."""
        return {name: chance > 0.5 for name, chance in self.chances.items()}

    def lines(self) -> list[str]:
        """Return a line for each query, and what may be said of all of them."""
        said = super().lines()
        return [*said, f"exactly as likely as not: {len(self.even)} of {len(self)}"] if self.even else said


def infer(
    rules: str | Path | Theory,
    labels: Mapping[str, bool],
    queries: Sequence[str],
    *,
    weight: float | None = None,
    domains: Mapping[str, Iterable[str]] | None = None,
    sweeps: int | None = None,
    seconds: float | None = SECONDS,
    seed: int | np.random.Generator | None = None,
) -> Chances:
    r"""Return how likely each query is, given labelled examples and rules over their constants.

    The rules are grounded over the constants of labels and queries: see :func:`ground`; options are those of
    :func:`marginals`.

    Examples
    --------
    >>> order = "domain d = {}\nforall X, Y in d, X != Y: ex(X, Y) <-> ~ex(Y, X)\n"
    >>> order += "forall X, Y, Z in d, X != Y, X != Z, Y != Z: ex(X, Y) & ex(Y, Z) -> ex(X, Z)"
    >>> infer(order, {"ex(a, b)": True, "ex(b, c)": True}, ["ex(a, c)", "ex(d, c)"])
    ex(a, c)  1
    ex(d, c)  0.75
    exact; logical distribution, temperature 1
    """
    theory = ground(rules, [*labels, *queries], domains=domains)
    return marginals(theory, labels, queries, weight=weight, sweeps=sweeps, seconds=seconds, seed=seed)


def marginals(
    theory: Theory | GroundRules,
    evidence: Mapping[str, bool],
    queries: Sequence[str],
    *,
    weight: float | None = None,
    temperature: float = 1.0,
    sweeps: int | None = None,
    seconds: float | None = SECONDS,
    seed: int | np.random.Generator | None = None,
) -> Chances:
    """Return P(query | evidence) of every query, all in one run.

    A relation that the rules make a strict total order is worked out as one, exactly if labels settle enough.
    Elsewhere, what follows by propagation is settled first; components of at most EXACT_ATOMS open atoms are
    summed; in larger ones a solver proves what is settled, and chains among the models estimate the rest.

    Parameters
    ----------
    theory
        Ground rules; :func:`prepare` makes them ready once for many calls.
    evidence
        Labels by atom.
    queries
        Atoms of the theory; a labelled one may be asked, too.
    weight
        None: the labels are hard, and a clash with the rules is the error ClashingLabels, which names a
        minimal set of them. A number: each label is soft, with this weight, and none has to be kept.
    sweeps
        Sweeps of each chain; None: as many as they need to agree.
    """
    ready = theory if isinstance(theory, GroundRules) else prepare(theory)
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature is a positive, finite number, got {temperature}")
    if sweeps is not None and sweeps < 2:
        raise ValueError(f"sweeps is a number from 2 up, got {sweeps}")
    if weight is not None:
        weight = float(label_weight(weight))
    labels = {ready.number(name): bool(value) for name, value in evidence.items()}
    asked = {name: ready.number(name) for name in queries}
    limits = Limits(sweeps, Budget.of(seconds), MOST_CHEAP, MAX_CHEAP_UPDATES)
    run = _Inference(ready, weight, temperature, np.random.default_rng(seed), limits)
    try:
        run.answer(labels, sorted(set(asked.values())))
    except NoWorlds:
        raise _clash(ready, labels if weight is None else {}) from None
    return run.told(asked)


@dataclass(slots=True)
class _Inference:
    """One run: what is found of the atoms that are asked about, by their numbers."""

    ready: GroundRules
    weight: float | None
    temperature: float
    rng: np.random.Generator
    limits: Limits
    found: dict[int, _Said] = field(default_factory=dict)
    done: int = 0
    note: str = ""

    def answer(self, labels: Mapping[int, bool], asked: Sequence[int]) -> None:
        """Find the probability of all that is asked; raise NoWorlds if hard labels clash with the rules."""
        pairs = self.ready.pairs
        home = {number: pairs[number][0] for number in (*labels, *asked) if number in pairs}
        for place in sorted(set(home.values())):
            mine = {number: value for number, value in labels.items() if home.get(number) == place}
            self._order(place, mine, [number for number in asked if home.get(number) == place])
        others = {number: value for number, value in labels.items() if number not in home}
        rest = [number for number in asked if number not in home]
        if others or rest:
            self._others(others, rest)

    # -- orders --

    def _order(self, place: int, labels: Mapping[int, bool], asked: Sequence[int]) -> None:
        """Answer what is asked about one strict total order."""
        order = self.ready.orders[place]
        pairs = {number: self.ready.pairs[number][1:] for number in (*labels, *asked)}
        known = [pairs[number] if value else pairs[number][::-1] for number, value in labels.items()]
        must = orders.closure(order.things, known if self.weight is None else [])
        if must is None:
            raise NoWorlds
        log_gain = order.gain / 10**self.ready.clauses.digits
        if self.weight is not None:
            for ends in known:
                log_gain[ends] += self.weight
        log_gain = log_gain / self.temperature
        open_: dict[int, tuple[int, int]] = {}
        for number in asked:
            ends = pairs[number]
            if must[ends] or must[ends[::-1]]:
                self.found[number] = _Said(float(must[ends]), proven=True)
            else:
                open_[number] = ends
        for block in orders.blocks(must):
            here = {int(thing): i for i, thing in enumerate(block)}
            inside = {n: (here[a], here[b]) for n, (a, b) in open_.items() if a in here}
            if inside:
                self._block(must[np.ix_(block, block)], log_gain[np.ix_(block, block)], inside)

    def _block(self, must: Bools, log_gain: Floats, pairs: Mapping[int, tuple[int, int]]) -> None:
        """Answer what is asked about open pairs of an order."""
        table = orders.exactly(must, log_gain)
        unknown: dict[tuple[int, int], list[int]] = {}
        for number, ends in pairs.items():
            if table is not None:
                self.found[number] = _Said(_rounded(float(table[ends])))
            elif orders.is_even(must, log_gain, *ends):
                self.found[number] = _Said(0.5)
            else:
                unknown.setdefault((min(ends), max(ends)), []).append(number)
        if not unknown:
            return
        columns = np.array(list(unknown))
        seen = (
            (places[:, columns[:, 0]] < places[:, columns[:, 1]], score)
            for places, score in orders.walk_orders(must, log_gain, self.rng)
        )
        found, done = agreed(seen, len(must) ** 2, self.limits)
        self.done = max(self.done, done)
        self.note = f"there are more than {orders.MAX_SETS} ways to begin an order of {len(must)}"
        for ((first, _), numbers), estimate in zip(unknown.items(), found, strict=True):
            said = _Said(estimate.probability, estimate=estimate)
            for number in numbers:
                self.found[number] = said if pairs[number][0] == first else said.negated()

    # -- other rules --

    def _others(self, labels: Mapping[int, bool], asked: Sequence[int]) -> None:
        """Answer what is asked about atoms of no order."""
        clauses = self.ready.clauses
        if self.weight is not None and labels:
            clauses, labels = self.ready.with_labels(labels, self.weight), {}
        residual = reduce(clauses, labels)
        # What is asked may lie elsewhere, and hard labels still have to be possible.
        if residual is None or (labels and not is_possible(residual.clauses)):
            raise NoWorlds
        wanted: dict[int, list[int]] = {}  # by atom of the residual
        for number in asked:
            value, code = int(residual.value[number - 1]), int(residual.code[number - 1])
            if value or code < 0:  # settled, or as likely as not
                self.found[number] = _Said((1 + value) / 2, proven=bool(value))
            else:
                wanted.setdefault(code >> 1, []).append(number)
        temperature = self.temperature * 10**clauses.digits
        for component in sorted({int(residual.components[atom]) for atom in wanted}):
            clauses, old = residual.part(component)
            mine = [i for i, atom in enumerate(old.tolist()) if atom in wanted]
            answer = self._exactly if clauses.variables <= EXACT_ATOMS else self._by_chains
            for i, said in answer(clauses, mine, temperature).items():
                for number in wanted[int(old[i])]:
                    self.found[number] = said.negated() if residual.code[number - 1] & 1 else said

    def _exactly(self, clauses: Clauses, asked: Sequence[int], temperature: float) -> dict[int, _Said]:
        theory = _as_theory(clauses)
        seconds = self.limits.budget.seconds()
        found = Reasoner(theory).marginals(method="exact", temperature=temperature, seconds=seconds)
        chances = {i: _rounded(found[theory.atoms[i]]) for i in asked}
        # Large weights may round a chance to 0 or 1 that is neither: what is settled, a solver proves.
        extreme = [i for i, chance in chances.items() if chance in (0.0, 1.0)]
        fixed = begin(clauses, extreme, self.rng)[1] if extreme else {}
        return {i: _Said(chance, proven=i in fixed) for i, chance in chances.items()}

    def _by_chains(self, clauses: Clauses, asked: Sequence[int], temperature: float) -> dict[int, _Said]:
        models, fixed = begin(clauses, asked, self.rng)
        if not len(models):
            raise NoWorlds
        told = {i: _Said(float(value), proven=True) for i, value in fixed.items()}
        watched = [i for i in asked if i not in fixed]
        if not watched:
            return told
        found, done = walk(clauses, temperature, models, watched, self.rng, self.limits)
        self.done = max(self.done, done)
        self.note = f"{clauses.variables} open atoms are too many to sum over"
        if self.limits.sweeps is None and not all(said.converged for said in found.values()):
            found = self._otherwise(clauses, found, temperature)
        return told | {i: _Said(said.probability, estimate=said) for i, said in found.items()}

    def _otherwise(
        self, clauses: Clauses, found: dict[int, Estimate], temperature: float
    ) -> dict[int, Estimate]:
        """Return what chains say that may break a clause on their way, if more of them agree."""
        self.note += "; chains among the models did not agree"
        if self.limits.budget.spent():
            return found
        theory = _as_theory(clauses)
        try:
            said = Reasoner(theory).marginals(
                method="tempered",
                temperature=temperature,
                seconds=self.limits.budget.seconds(),
                seed=self.rng,
            )
        except (LimitExceeded, NoAnswer):
            return found
        other = {i: (said.estimates or {})[theory.atoms[i]] for i in found}
        if sum(each.converged for each in other.values()) < sum(each.converged for each in found.values()):
            return found
        self.done = max(self.done, said.sweeps)
        return other

    def told(self, asked: Mapping[str, int]) -> Chances:
        """Return the answer, by the names that were asked."""
        found = {name: self.found[number] for name, number in asked.items()}
        estimates = {name: said.estimate for name, said in found.items() if said.estimate is not None}
        return Chances(
            {name: said.chance for name, said in found.items()},
            estimates or None,
            {name: said.status for name, said in found.items()},
            method="sampled" if estimates else "exact",
            distribution="logical",
            temperature=self.temperature,
            sweeps=self.done,
            note=self.note,
        )


def _rounded(chance: float) -> float:
    return 0.5 if abs(chance - 0.5) < EVEN else chance


def _as_theory(clauses: Clauses) -> Theory:
    names = tuple(f"x{i}" for i in range(1, clauses.variables + 1))
    return Theory.from_clauses(replace(clauses, atoms=names))


def _clash(ready: GroundRules, labels: Mapping[int, bool]) -> NoWorlds:
    """Return the error for labels that clash with the rules; it names a minimal set of them."""
    kept = clashing(ready.clauses, [number if value else -number for number, value in labels.items()])
    named = {ready.clauses.atoms[abs(literal) - 1]: literal > 0 for literal in kept}
    return ClashingLabels(named) if named else NoWorlds()
