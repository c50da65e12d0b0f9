"""What questions find: answers that say how they were obtained, in a terminal, in a notebook and as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from html import escape
from itertools import islice
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final, overload

from lbm.arrays import Bools, Floats
from lbm.errors import MissingExtra, UnknownAtom
from lbm.knowledge.formula import Formula, quote
from lbm.knowledge.numbers import Weight, exact_sum, plain
from lbm.knowledge.parser import Statement
from lbm.knowledge.printed import counted, some_shown
from lbm.knowledge.theory import Theory, shown, statement_shown

if TYPE_CHECKING:
    import pandas as pd

_SHOWN: Final = 20  # worlds that are printed
_COLUMNS: Final = 40  # atoms of them that a notebook shows
_LISTED: Final = 10  # rows of evidence that are named


class Result(ABC):
    """What a question finds: it tells itself to people and to programs."""

    __slots__ = ()

    @abstractmethod
    def lines(self) -> Iterable[str]:
        """Return it as lines of text."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        first, *others = self.lines()
        rest = "".join(f"<div>{escape(line)}</div>" for line in others)
        return f"<div><strong>{escape(first)}</strong></div><div style='color: gray'>{rest}</div>"


# --- probabilities ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A probability estimated from chains, with what is needed to judge it.

    Attributes
    ----------
    probability
        The share of valid states in which the query is true; nan where no state is valid.
    low, high
        Its 95 % interval, by Wilson with the effective size as number of trials.
    effective_size
        How many independent draws would give the same standard error; nan where that is unknown.
    r_hat
        The largest R-hat of the query's series and of the other series that vary; nan where it is unknown.
    converged
        Whether there are CHAINS chains or more, and every series has its R-hat below R_HAT and its effective
        size above ESS.
    chains, draws
        The number of chains, and of states that each of them gave.
    kept
        The share of states that are valid, and so count.
    missed
        A bound on the probability of a place where a world is known and that chains may have missed; the
        interval allows for it. See ``coverage.py``.
    place
        What is known to be there, where that bound keeps the estimate from being called converged.
    """

    probability: float
    low: float
    high: float
    effective_size: float
    r_hat: float
    converged: bool
    chains: int
    draws: int
    kept: float
    missed: float = 0.0
    place: str = ""

    def allowing_for(self, missed: float, place: str) -> Estimate:
        """Return the estimate where a place of at most this probability may have been missed."""
        if not missed:
            return self
        wide = (self.high - self.low) / 2
        low, high = self.low * (1 - missed), self.high + missed * (1 - self.high)
        fine = missed <= wide
        return replace(
            self,
            low=low,
            high=high,
            converged=self.converged and fine,
            missed=missed,
            place="" if fine else place,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DistributionResult(Result):
    """How probabilities or worlds were found, and what they are about.

    Attributes
    ----------
    method
        ``exact``, or how they were estimated.
    distribution, temperature, confidence
        What they are about; a confidence belongs to the machine distribution alone.
    estimate
        Of chains: how good what they say is; of several things, of the one that is known least.
    sweeps
        Of chains: how many sweeps each did; the same number and seed give the same answer again.
    note
        Why there is no exact answer; of an exact one, whose engine gave it if not ours.
    """

    method: str
    distribution: str
    temperature: float
    confidence: float | None = None
    estimate: Estimate | None = None
    sweeps: int = 0
    note: str = ""

    @property
    def converged(self) -> bool:
        """Whether this can be relied upon: it is exact, or the chains that gave it agree."""
        return self.estimate is None or self.estimate.converged

    def _how(self) -> str:
        """Return the method, and whose engine it was if not ours."""
        return f"{self.method}, {self.note}" if self.note and self.estimate is None else self.method

    def _about(self) -> str:
        """Return what it is about, in words."""
        about = f"{self.distribution} distribution, temperature {self.temperature:g}"
        return about if self.confidence is None else f"{about}, confidence {self.confidence:g}"

    def _about_facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("method", "distribution", "temperature", "confidence")}

    def _trust(self) -> list[str]:
        """Return how far chains can be trusted, as lines of text: none of an exact answer."""
        found = self.estimate
        if found is None:
            return []
        said = "converged" if found.converged else "NOT CONVERGED"
        said += f": {found.chains} chains, {self.sweeps} sweeps each, {found.kept:.3g} of the states kept, "
        lines = [f"{said}{_known('effective size', found.effective_size, '.0f')}, {_r_hat(found.r_hat)}"]
        if found.place:
            where = f"not covered: {found.place}, where worlds are known"
            lines.append(
                f"{where}; what chains say of it leaves room for a probability of {found.missed:.2g}"
            )
        return [*lines, f"not exact, since {self.note}"] if self.note else lines

    def _trust_facts(self) -> dict[str, Any]:
        """Return how far chains can be trusted; of an exact answer all is None but ``converged``."""
        found = self.estimate
        return {
            "converged": self.converged,
            "effective_size": None if found is None else finite(found.effective_size),
            "r_hat": None if found is None else finite(found.r_hat),
            "missed": None if found is None else found.missed,
            "chains": None if found is None else found.chains,
            "sweeps": None if found is None else self.sweeps,
            "note": self.note or None,
        }


@dataclass(frozen=True, repr=False)
class Answer(DistributionResult):
    """How likely a formula is given evidence, whether that is settled, and how it was found out.

    Attributes
    ----------
    query, given
        What was asked, and the evidence.
    probability
        P(query | evidence) under ``distribution``; sampled, the estimate.
    interval
        Where the probability lies: its own value twice if it is exact, else a 95 % interval.
    status
        What is proven of the query among the models that satisfy the evidence: ``entailed`` (true in all),
        ``refuted`` (true in none), ``preferred`` (true in every best one), ``dispreferred`` (false in every
        best one) or ``undecided``. None: not settled in time, or there is no such model.
    method
        ``exact`` or ``sampled``.
    distribution, temperature, confidence
        What the probability is about; a confidence belongs to the machine distribution alone.
    reasons
        Formulae that settle the status, if they were asked for; None otherwise. See ``minimal``.
    minimal
        Whether each of the reasons is proven necessary.
    estimate
        How good the sampled probability is: effective size, R-hat, whether the chains agree.
    sweeps
        Sweeps of each chain; the same number and seed give the same answer again.
    note
        Why it was not answered exactly, or whose engine did so: ``by Ganak``.
    """

    query: Formula
    given: Formula | None
    probability: float
    interval: tuple[float, float]
    status: str | None
    reasons: tuple[Statement, ...] | None = None
    minimal: bool = False

    def lines(self) -> list[str]:
        """Return the answer as lines of text."""
        asked = _inside(self.query) + ("" if self.given is None else f" | {_inside(self.given)}")
        found = [f"P({asked}) {self._size()}", _STATUS[self.status]]
        if self.reasons is not None and self.status not in (None, "undecided"):
            found += _because(self.reasons, self.minimal, self.given is not None)
        return [*found, f"{self._how()}; {self._about()}", *self._trust()]

    def facts(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON; what is unknown or not asked for is None."""
        return {
            "query": str(self.query),
            "given": None if self.given is None else str(self.given),
            "probability": finite(self.probability),
            "interval": list(self.interval),
            "status": self.status,
            **self._about_facts(),
            "reasons": None if self.reasons is None else [each.facts() for each in self.reasons],
            "minimal": self.minimal if self.reasons is not None else None,
            **self._trust_facts(),
        }

    def _size(self) -> str:
        if self.estimate is None:
            return f"= {number(self.probability)}"
        if isnan(self.probability):
            return "unknown: no state of the chains counted"
        low, high = self.interval
        return f"≈ {self.probability:.4g}, 95 % interval {low:.4g} to {high:.4g}"


_STATUS: Final = {
    "entailed": "entailed: true in every model",
    "refuted": "refuted: true in no model",
    "preferred": "preferred: true in every best world",
    "dispreferred": "dispreferred: false in every best world",
    "undecided": "undecided",
    None: "status not settled",
}


@dataclass(frozen=True, eq=False, repr=False)
class Marginals(DistributionResult, Mapping[str, float]):
    """The probability of every atom, by name.

    Attributes
    ----------
    chances
        The probabilities, in the order of the theory's atoms.
    method, distribution, temperature, confidence
        How they were found, and what they are about.
    estimates
        Of sampled ones: how good each of them is; an atom that is settled has none.
    estimate
        That of which least is known.
    sweeps, note
        Of sampled ones: how many sweeps each chain did, and why they are not exact.
    """

    chances: dict[str, float]
    estimates: dict[str, Estimate] | None = None

    def __post_init__(self) -> None:
        each = (self.estimates or {}).values()
        least = min(each, key=lambda one: (one.converged, one.effective_size), default=None)
        object.__setattr__(self, "estimate", least)

    def __getitem__(self, name: str) -> float:
        try:
            return self.chances[name]
        except KeyError:
            raise UnknownAtom(name, self.chances) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.chances)

    def __len__(self) -> int:
        return len(self.chances)

    def lines(self) -> list[str]:
        """Return a line for each atom, and one that says what the probabilities are about."""
        width = max((len(quote(name)) for name in self.chances), default=0)
        found = [f"{quote(name):{width}}  {self._size(name)}" for name in self.chances]
        return [*found, f"{self._how()}; {self._about()}", *self._trust()]

    def facts(self) -> dict[str, Any]:
        """Return the probabilities as plain data for JSON, and how far the least sure one can be trusted."""
        return {
            "marginals": {name: finite(chance) for name, chance in self.chances.items()},
            "intervals": {name: [each.low, each.high] for name, each in (self.estimates or {}).items()},
            **self._about_facts(),
            **self._trust_facts(),
        }

    def _size(self, name: str) -> str:
        found = (self.estimates or {}).get(name)
        said = number(self.chances[name])
        return said if found is None else f"{said}  ({found.low:.4g} to {found.high:.4g})"

    def _repr_html_(self) -> str:
        rows = (f"<tr><td>{escape(name)}</td><td>{escape(self._size(name))}</td></tr>" for name in self)
        return (
            f"<table>{''.join(rows)}</table><div style='color: gray'>{escape(self.lines()[len(self)])}</div>"
        )


# --- probabilities, a row of evidence each ----------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class AnswerRows(DistributionResult):
    """How likely a formula is given each row of evidence.

    No status is worked out; given rows that entail the query the probability is exactly 1, given rows that
    refute it exactly 0.

    Attributes
    ----------
    query
        What was asked.
    probability
        P(query | row), shape (rows,), read-only; nan for a row that is impossible.
    possible
        Whether some world satisfies the row and the hard formulae, shape (rows,), read-only.
    method, distribution, temperature, confidence
        How they were found, and what they are about.
    """

    query: Formula
    probability: Floats
    possible: Bools

    def __post_init__(self) -> None:
        self.probability.setflags(write=False)
        self.possible.setflags(write=False)

    def __len__(self) -> int:
        return len(self.probability)

    def lines(self) -> list[str]:
        """Return between what and what the probabilities are, how many rows are impossible, and so on."""
        found = self.probability[self.possible]
        said = f"P({shown(self.query)} | row) of {counted(len(self), 'row')}"
        if len(found):
            low, high, mean = map(number, (float(found.min()), float(found.max()), float(found.mean())))
            said += f": {low} to {high}, mean {mean}"
        return [said, *_impossible(self.possible), f"{self.method}; {self._about()}"]

    def facts(self) -> dict[str, Any]:
        """Return the answers for JSON: probabilities as an iterator, null where a row is impossible."""
        return {
            "query": str(self.query),
            "rows": len(self),
            "impossible": int((~self.possible).sum()),
            "probabilities": map(finite, self.probability.tolist()),
            **self._about_facts(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class MarginalRows(DistributionResult):
    """The probability of every atom given each row of evidence.

    Attributes
    ----------
    atoms
        The names, in the order of the columns.
    array
        P(atom | row), shape (rows, atoms), read-only; nan in rows that are impossible.
    possible
        Whether some world satisfies the row and the hard formulae, shape (rows,), read-only.
    method, distribution, temperature, confidence
        How they were found, and what they are about.
    """

    atoms: tuple[str, ...]
    array: Floats
    possible: Bools

    def __post_init__(self) -> None:
        self.array.setflags(write=False)
        self.possible.setflags(write=False)

    def __len__(self) -> int:
        return len(self.possible)

    def __getitem__(self, name: str) -> Floats:
        """Return the probabilities of one atom, shape (rows,)."""
        if name not in self.atoms:
            raise UnknownAtom(name, self.atoms)
        found: Floats = self.array[:, self.atoms.index(name)]
        return found

    def frame(self) -> pd.DataFrame:
        """Return the probabilities as a pandas DataFrame, a column an atom."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra("train", "a table as a DataFrame", "pandas") from None
        return pd.DataFrame(self.array, columns=list(self.atoms), copy=True)

    def lines(self) -> list[str]:
        """Return of how much there are probabilities, how many rows are impossible, and so on."""
        said = f"P(atom | row) of {counted(len(self.atoms), 'atom')} in {counted(len(self), 'row')}"
        return [said, *_impossible(self.possible), f"{self.method}; {self._about()}"]

    def facts(self) -> dict[str, Any]:
        """Return the probabilities for JSON: rows as an iterator, null in those that are impossible."""
        return {
            "atoms": list(self.atoms),
            "rows": len(self),
            "impossible": int((~self.possible).sum()),
            "marginals": ([*map(finite, row)] for row in self.array.tolist()),
            **self._about_facts(),
        }


def _impossible(possible: Bools) -> list[str]:
    """Return that rows are impossible, and the first of them, as lines of text."""
    rows = (~possible).nonzero()[0]
    if not len(rows):
        return []
    first = ", ".join(map(str, rows[:_LISTED].tolist())) + (", ..." if len(rows) > _LISTED else "")
    return [f"impossible, counted from 0: {counted(len(rows), 'row')} ({first})"]


# --- worlds ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Worlds(Result, Sequence[dict[str, bool]]):
    """Worlds over named atoms: ``len()``, iteration as named truth values, and all as a matrix.

    Attributes
    ----------
    atoms
        The names, in the order of the columns.
    array
        Shape (worlds, atoms), read-only.
    """

    atoms: tuple[str, ...]
    array: Bools

    def __post_init__(self) -> None:
        self.array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, index: int) -> dict[str, bool]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, bool]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, bool] | list[dict[str, bool]]:
        if isinstance(index, slice):
            return [dict(zip(self.atoms, row, strict=True)) for row in self.array[index].tolist()]
        return dict(zip(self.atoms, self.array[index].tolist(), strict=True))

    def world_lines(self) -> Iterator[str]:
        """Yield each world as ``n=1 r=0``."""
        names = [quote(name) for name in self.atoms]
        for row in self.array:
            yield " ".join(f"{name}={value:d}" for name, value in zip(names, row.tolist(), strict=True))

    def world_facts(self) -> Iterator[list[int]]:
        """Yield each world as 0 and 1 in the order of ``atoms``: as lists of numbers they need much room."""
        return (row.astype(int).tolist() for row in self.array)

    def _repr_html_(self) -> str:
        names = [escape(name) for name in self.atoms[:_COLUMNS]]
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = [
            "<tr>" + "".join(f"<td>{value:d}</td>" for value in row) + "</tr>"
            for row in self.array[:_SHOWN, :_COLUMNS].tolist()
        ]
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        return f"<div>{escape(repr(self))}</div>{table}"


@dataclass(frozen=True, eq=False, repr=False)
class Models(Worlds):
    """Models of a theory in lexicographic order, false first.

    ``complete`` says whether these are all there are; ``in_time`` is false where the time ran out before
    there were as many as were asked for, or before it was known whether these are all.
    """

    complete: bool
    in_time: bool = True

    def lines(self) -> Iterator[str]:
        """Yield a line for each model, and one that says whether these are all."""
        yield from self.world_lines()
        number = f"{len(self):,} model{'' if len(self) == 1 else 's'}"
        if not self.in_time:
            yield f"{number} found in time, and there may be more"
        elif not len(self):
            yield "no models"
        else:
            yield f"{number}, {'all of them' if self.complete else 'and there are more'}"

    def facts(self) -> dict[str, Any]:
        """Return the models for JSON, as an iterator; ``complete`` is None where time ran out."""
        complete = self.complete if self.in_time else None
        return {"atoms": list(self.atoms), "models": self.world_facts(), "complete": complete}

    def __repr__(self) -> str:
        said = "all" if self.complete else "not all" if self.in_time else "perhaps not all"
        return f"<Models: {len(self)} worlds over {len(self.atoms)} atoms, {said}>"


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Worlds, DistributionResult):
    """Worlds drawn at random, in the order drawn.

    Attributes
    ----------
    atoms, array
        The names, in the order of the columns; shape (draws, atoms).
    method, distribution, temperature, confidence
        How they were drawn, and from what.
    estimate
        Of chains: how good they are about the atom of which they know least.
    sweeps
        Of chains: how many sweeps each of them did.
    note
        Why they were not drawn exactly.
    """

    @property
    def independent(self) -> bool:
        """Whether each was drawn by itself; otherwise they are states of chains, near ones alike."""
        return self.method == "exact"

    def lines(self) -> list[str]:
        """Return how the worlds were drawn, as lines of text."""
        if self.independent:
            return [f"{len(self)} independent draws; {self._about()}"]
        if self.method == "fast":
            found = f"{len(self)} models found by annealing in {self.sweeps} sweeps"
            return [f"{found}: not uniform, soft formulae not looked at"]
        first = f"{len(self)} states of chains ({self.method}), not independent draws; {self._about()}"
        return [first, *self._trust()]

    def facts(self) -> dict[str, Any]:
        """Return the worlds for JSON, as an iterator, and how they were drawn."""
        return {
            "atoms": list(self.atoms),
            "worlds": self.world_facts(),
            **self._about_facts(),
            "independent": self.independent,
            **self._trust_facts(),
        }

    def __repr__(self) -> str:
        return f"<Draws: {'; '.join(self.lines())}>"


@dataclass(frozen=True, slots=True, repr=False)
class Best(Result):
    """The best worlds of a theory, as far as they are known.

    Attributes
    ----------
    worlds
        Best first, and in lexicographic order, false first, where they lose the same.
    scores
        Σ w over the soft formulae true in each world, exactly.
    satisfied
        Σ w over the soft formulae of positive weight that are true in the first world.
    lost
        Σ |w| over those of positive weight that are false in it, and those of negative weight that are true.
    broken
        Numbers of the statements that are lost.
    optimal
        Whether it is proven that no other world is better than these.
    bound
        A proven lower bound of the weight that any world loses.
    method
        ``"exact"``; ``"certified"``: proven by an engine, or nothing is lost; ``"annealed"``: the best found.
    complete
        Whether these are all the optimal worlds; known only if all were asked for.
    sweeps
        How many sweeps of annealing were done.
    every
        Whether all optimal worlds were asked for.
    found_by
        Who found the first world: ``"own"``, our own methods, or the name of another engine.
    proved_by
        Who proved the bound; None: nobody did, it is 0 and some weight is lost.
    dropped
        Engines that were not believed any more, or failed, each with the reason.
    theory
        What they are the best worlds of: the formulae that ``broken`` numbers.
    """

    worlds: tuple[dict[str, bool], ...]
    scores: tuple[Weight, ...]
    satisfied: Weight
    lost: Weight
    broken: tuple[int, ...]
    optimal: bool
    bound: Weight
    method: str
    complete: bool = False
    sweeps: int = 0
    every: bool = False
    found_by: str = field(default="own", compare=False)
    proved_by: str | None = field(default=None, compare=False)
    dropped: tuple[str, ...] = field(default=(), compare=False)
    theory: Theory = field(compare=False, kw_only=True)

    def lines(self, most: int | None = None, *, rest: str = "facts()") -> Iterator[str]:
        """Yield the worlds, what the first keeps and loses, how good it is and what it breaks, as text.

        Of the worlds, the first ``most``; of many broken formulae the first, and that ``rest`` lists them.
        """
        several = len(self.worlds) > 1
        for world, score in islice(zip(self.worlds, self.scores, strict=True), most):
            text = _shown(world)
            yield f"{text}   score {score}" if several else text
        if most is not None and len(self.worlds) > most:
            yield f"and {len(self.worlds) - most} more"
        first = "the first: " if several else ""
        yield f"{first}satisfied {self.satisfied}, lost {self.lost}; {self.said}"
        if self.every:
            yield "these are all the best worlds" if self.complete else "there may be more worlds as good"
        if self.broken:
            yield "broken:"
            statements = self.theory.statements
            yield from some_shown(self.broken, lambda number: statement_shown(statements[number]), rest)
        for reason in self.dropped:
            yield f"dropped {reason}"

    def facts(self) -> dict[str, Any]:
        """Return the worlds and what is known of them for JSON; worlds and broken formulae as iterators."""
        return {
            "worlds": map(_bits, self.worlds),
            "scores": [plain(score) for score in self.scores],
            "satisfied": plain(self.satisfied),
            "lost": plain(self.lost),
            "broken": (self.theory.statements[number].facts() for number in self.broken),
            "optimal": self.optimal,
            "bound": plain(self.bound),
            "gap": plain(self.gap),
            "method": self.method,
            "complete": self.complete,
            "found_by": self.found_by,
            "proved_by": self.proved_by,
            "dropped": list(self.dropped),
        }

    def __repr__(self) -> str:
        return "\n".join(self.lines(_SHOWN))

    def _repr_html_(self) -> str:
        lines = [escape(line) for line in self.lines(_SHOWN)]
        worlds = min(len(self.worlds), _SHOWN)
        shown = [f"<div><code>{world}</code></div>" for world in lines[:worlds]]
        return "".join([*shown, *(f"<div>{line}</div>" for line in lines[worlds:])])

    @property
    def world(self) -> dict[str, bool]:
        """The best world."""
        return self.worlds[0]

    @property
    def score(self) -> Weight:
        """The score of the best world."""
        return self.scores[0]

    @property
    def said(self) -> str:
        """How good the world is, in words."""
        if self.optimal:
            if {self.found_by, self.proved_by or "own"} == {"own"}:
                return f"optimal ({self.method})"
            return f"optimal ({self.method}; found by {self.found_by}, proved by {self.proved_by})"
        least = f"any world loses {self.bound} at least"
        if self.proved_by not in (None, "own"):
            least += f" ({self.proved_by})"
        finder = "" if self.found_by == "own" else f" by {self.found_by}"
        return f"best found{finder}: {least}, so the gap is {self.gap}"

    @property
    def gap(self) -> Weight:
        """How much less another world might lose: 0 if this one is optimal."""
        bound = self.bound.copy_negate() if isinstance(self.bound, Decimal) else -self.bound
        return exact_sum([self.lost, bound])


# --- proofs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Proof(Result):
    """What is proven of a theory, or of a formula among the models that keep the evidence, and why.

    Attributes
    ----------
    status
        Of a theory: ``satisfiable`` or ``unsatisfiable``. Of a formula: ``entailed`` (true in every model),
        ``refuted`` (in none), ``preferred`` (in every best one), ``dispreferred`` (in no best one) or
        ``undecided``. None: not settled in time.
    why
        Numbers of the statements that settle it, together with the evidence: for a theory that is not
        satisfiable, statements that clash. Empty if there are none, or none were looked for or found in time.
    minimal
        Whether each of them is proven necessary.
    world
        A model that keeps the evidence: of a formula that is not entailed, one in which it is false.
    theory, query, given
        What was asked: a theory, the formula, if it was about one, and the evidence.
    mode
        What was to be proven of the formula: ``entailed`` or ``preferred``.
    """

    status: str | None
    why: tuple[int, ...] = ()
    minimal: bool = False
    world: dict[str, bool] | None = None
    theory: Theory | None = field(default=None, compare=False)
    query: Formula | None = field(default=None, compare=False)
    given: Formula | None = field(default=None, compare=False)
    mode: str = field(default="preferred", compare=False)

    @property
    def satisfiable(self) -> bool | None:
        """Whether some world keeps the hard formulae and the evidence; None: not settled in time."""
        return None if self.status is None else self.status != "unsatisfiable"

    @property
    def follows(self) -> bool:
        """Whether the formula is true in every model or, if that was asked, in every best one."""
        return self.status in ("entailed", self.mode)

    @property
    def reasons(self) -> tuple[Statement, ...]:
        """The statements that settle it."""
        return tuple(map(self._statement, self.why))

    def _statement(self, number: int) -> Statement:
        assert self.theory is not None  # whoever numbers statements has them
        return self.theory.statements[number]

    def lines(self, late: str = "in time", *, rest: str = "facts()") -> Iterator[str]:
        """Yield what is proven, and why or by which world, as lines of text.

        What is not settled is not settled ``late``; of many statements that clash come the first, and that
        ``rest`` lists them.
        """
        if self.query is None:
            yield from self._satisfiable_lines(late, rest)
        elif self.follows:
            how = "is true in every model" if self.status == "entailed" else "is true in every best world"
            yield f"yes: it {how}"
            yield from _because(self.reasons, self.minimal, self.given is not None)
        elif self.status is None:
            yield f"no answer {late}"
        elif self.mode == "preferred":
            yield f"no: it is false in {'every' if self.status == 'dispreferred' else 'some'} best world"
        else:
            where = "some model" if self.world is None else _shown(self.world) or "the only world there is"
            yield f"no: it is false in {where}"

    def _satisfiable_lines(self, late: str, rest: str) -> Iterator[str]:
        many = len(self.why)
        if self.status is None:
            yield f"no answer {late}"
        elif self.satisfiable:
            nothing = self.theory is not None and None not in self.theory.weights
            yield "satisfiable: nothing is hard" if nothing else "satisfiable"
        elif not many:
            yield f"unsatisfiable; no clash was found {late}"
        elif many == 1:
            yield "unsatisfiable: this hard formula is false in every world"
        elif self.minimal:
            yield f"unsatisfiable: these {many:,} hard formulae clash; without any one the others can be kept"
        else:
            yield f"unsatisfiable: these {many:,} hard formulae clash; fewer may do, but not {late}"
        yield from some_shown(self.why, self._clashing, rest)

    def _clashing(self, number: int) -> str:
        statement = self._statement(number)
        where = f"line {statement.line}" if statement.line is not None else f"clause {number + 1}"
        return f"{where}: {shown(statement.formula)}"

    def facts(self) -> dict[str, Any]:
        """Return the proof as plain data for JSON: what settles it, or a world; a clash as an iterator."""
        if self.query is None:
            return {
                "satisfiable": self.satisfiable,
                "clash": (
                    {"formula": number, "line": statement.line, "text": str(statement.formula)}
                    for number, statement in ((number, self._statement(number)) for number in self.why)
                ),
                "minimal": self.minimal if self.why else None,
            }
        follows = self.follows
        return {
            "entails": follows,
            "mode": self.mode,
            "status": self.status,
            "reasons": [statement.facts() for statement in self.reasons] if follows else [],
            "minimal": self.minimal if follows else None,
            "world": None if follows or self.world is None else _bits(self.world),
        }


# --- words and numbers -----------------------------------------------------------------------------


def _inside(formula: Formula) -> str:
    """Return the text of a formula so that no bar in it looks like the one before the evidence."""
    text = shown(formula)
    return f"({text})" if " | " in text else text


def finite(value: float) -> float | None:
    """Return a number, or None for what JSON has no word for."""
    return value if isfinite(value) else None


def _known(name: str, value: float, form: str) -> str:
    return f"{name} unknown" if isnan(value) else f"{name} {value:{form}}"


def _r_hat(value: float) -> str:
    return "R-hat above 100" if value > 100 else _known("R-hat", value, ".4f")


def _because(reasons: Sequence[Statement], minimal: bool, given: bool) -> list[str]:
    """Return the formulae that settle a question, as lines of text."""
    if not reasons:
        return ["because of the evidence alone" if given else "because of its form alone"]
    least = "" if minimal else " (fewer may do)"
    return [f"because of{least}:", *(f"  {statement_shown(statement)}" for statement in reasons)]


def number(value: float) -> str:
    """Return a probability for people; one that is not quite 1 does not look like 1, and nan is unknown.

    >>> number(0.5), number(1.0), number(1 - 1e-12)
    ('0.5', '1', '1 - 1e-12')
    """
    if isnan(value):
        return "unknown"
    text = f"{value:.6g}"
    return text if text != "1" or value == 1.0 else f"1 - {1.0 - value:.3g}"


def _shown(world: Mapping[str, bool]) -> str:
    """Return a world as ``n=1 r=0``."""
    return " ".join(f"{quote(name)}={value:d}" for name, value in world.items())


def _bits(world: Mapping[str, bool]) -> dict[str, int]:
    """Return a world as 0 and 1 by name."""
    return {name: int(value) for name, value in world.items()}
