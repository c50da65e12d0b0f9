"""Answers that say how they were obtained, in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any, Final

from lbm.errors import UnknownAtom
from lbm.knowledge.formula import Formula, quote
from lbm.knowledge.theory import shown, statement_shown
from lbm.reasoning.components.answers import Worlds

if TYPE_CHECKING:
    from lbm.knowledge.parser import Statement
    from lbm.reasoning.sampling.diagnostics import Estimate


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
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
        ``refuted`` (true in none), ``preferred`` (true in every best one) or ``undecided``. None: not
        settled in time, or there is no such model.
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
        Why it was not answered exactly.
    """

    query: Formula
    given: Formula | None
    probability: float
    interval: tuple[float, float]
    status: str | None
    method: str
    distribution: str
    temperature: float
    confidence: float | None = None
    reasons: tuple[Statement, ...] | None = None
    minimal: bool = False
    estimate: Estimate | None = None
    sweeps: int = 0
    note: str = ""

    @property
    def converged(self) -> bool:
        """Whether the probability can be relied upon: it is exact, or the chains that gave it agree."""
        return self.estimate is None or self.estimate.converged

    def lines(self) -> list[str]:
        """Return the answer as lines of text."""
        asked = _inside(self.query) + ("" if self.given is None else f" | {_inside(self.given)}")
        found = [f"P({asked}) {self._size()}", _STATUS[self.status]]
        if self.reasons is not None and self.status is not None:
            settled = self.status != "undecided"
            found += because(self.reasons, self.minimal, self.given is not None) if settled else []
        about = f"{self.method}; {self.distribution} distribution, temperature {self.temperature:g}"
        found.append(about + ("" if self.confidence is None else f", confidence {self.confidence:g}"))
        if self.estimate is not None:
            found += sampled_lines(self.estimate, self.sweeps, self.note)
        return found

    def facts(self) -> dict[str, Any]:
        """Return the answer as plain data for JSON; what is unknown or not asked for is None."""
        return {
            "query": str(self.query),
            "given": None if self.given is None else str(self.given),
            "probability": finite(self.probability),
            "interval": list(self.interval),
            "status": self.status,
            "method": self.method,
            "distribution": self.distribution,
            "temperature": self.temperature,
            "confidence": self.confidence,
            "reasons": None if self.reasons is None else [each.facts() for each in self.reasons],
            "minimal": self.minimal if self.reasons is not None else None,
            **sampled_facts(self.estimate, self.sweeps, self.note),
        }

    def _size(self) -> str:
        if self.estimate is None:
            return f"= {number(self.probability)}"
        if isnan(self.probability):
            return "unknown: no state of the chains counted"
        low, high = self.interval
        return f"≈ {self.probability:.4g}, 95 % interval {low:.4g} to {high:.4g}"

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        first, *others = self.lines()
        rest = "".join(f"<div>{escape(line)}</div>" for line in others)
        return f"<div><strong>{escape(first)}</strong></div><div style='color: gray'>{rest}</div>"


_STATUS: Final = {
    "entailed": "entailed: true in every model",
    "refuted": "refuted: true in no model",
    "preferred": "preferred: true in every best world",
    "undecided": "undecided",
    None: "status not settled",
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Draws(Worlds):
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

    method: str
    distribution: str
    temperature: float
    confidence: float | None = None
    estimate: Estimate | None = None
    sweeps: int = 0
    note: str = ""

    @property
    def independent(self) -> bool:
        """Whether each was drawn by itself; otherwise they are states of chains, near ones alike."""
        return self.method == "exact"

    @property
    def converged(self) -> bool:
        """Whether they can be relied upon: they are exact, or the chains that gave them agree."""
        return self.estimate is None or self.estimate.converged

    def lines(self) -> list[str]:
        """Return how the worlds were drawn, as lines of text."""
        about = f"{self.distribution} distribution, temperature {self.temperature:g}"
        about += "" if self.confidence is None else f", confidence {self.confidence:g}"
        if self.independent:
            return [f"{len(self)} independent draws; {about}"]
        if self.method == "fast":
            found = f"{len(self)} models found by annealing in {self.sweeps} sweeps"
            return [f"{found}: not uniform, soft formulae not looked at"]
        first = f"{len(self)} states of chains ({self.method}), not independent draws; {about}"
        return [
            first,
            *([] if self.estimate is None else sampled_lines(self.estimate, self.sweeps, self.note)),
        ]

    def facts(self) -> dict[str, Any]:
        """Return the worlds for JSON, as an iterator, and how they were drawn."""
        return {
            "atoms": list(self.atoms),
            "worlds": self.world_facts(),
            "method": self.method,
            "distribution": self.distribution,
            "temperature": self.temperature,
            "confidence": self.confidence,
            "independent": self.independent,
            **sampled_facts(self.estimate, self.sweeps, self.note),
        }

    def __repr__(self) -> str:
        return f"<Draws: {'; '.join(self.lines())}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Marginals(Mapping[str, float]):
    """The probability of every atom, by name.

    Attributes
    ----------
    chances
        The probabilities, in the order of the theory's atoms.
    method, distribution, temperature, confidence
        How they were found, and what they are about.
    estimates
        Of sampled ones: how good each of them is; an atom that is settled has none.
    sweeps, note
        Of sampled ones: how many sweeps each chain did, and why they are not exact.
    """

    chances: dict[str, float]
    method: str
    distribution: str
    temperature: float
    confidence: float | None = None
    estimates: dict[str, Estimate] | None = None
    sweeps: int = 0
    note: str = ""

    def __getitem__(self, name: str) -> float:
        try:
            return self.chances[name]
        except KeyError:
            raise UnknownAtom(name, self.chances) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.chances)

    def __len__(self) -> int:
        return len(self.chances)

    @property
    def converged(self) -> bool:
        """Whether all of them can be relied upon: they are exact, or the chains that gave them agree."""
        return self.estimates is None or all(found.converged for found in self.estimates.values())

    def lines(self) -> list[str]:
        """Return a line for each atom, and one that says what the probabilities are about."""
        width = max((len(quote(name)) for name in self.chances), default=0)
        found = [
            f"{quote(name):{width}}  {number(chance)}{self._error(name)}"
            for name, chance in self.chances.items()
        ]
        about = f"{self.method}; {self.distribution} distribution, temperature {self.temperature:g}"
        about += "" if self.confidence is None else f", confidence {self.confidence:g}"
        worst = self._worst()
        return [*found, about, *([] if worst is None else sampled_lines(worst, self.sweeps, self.note))]

    def facts(self) -> dict[str, Any]:
        """Return the probabilities as plain data for JSON, and how far the least sure one can be trusted."""
        return {
            "marginals": {name: finite(chance) for name, chance in self.chances.items()},
            "intervals": {name: [each.low, each.high] for name, each in (self.estimates or {}).items()},
            "method": self.method,
            "distribution": self.distribution,
            "temperature": self.temperature,
            "confidence": self.confidence,
            **sampled_facts(self._worst(), self.sweeps, self.note),
        }

    def _worst(self) -> Estimate | None:
        """Return the estimate of which least is known; None: there is none."""
        each = (self.estimates or {}).values()
        return min(each, key=lambda one: (one.converged, one.effective_size), default=None)

    def _error(self, name: str) -> str:
        if self.estimates is None or name not in self.estimates:
            return ""
        return f"  ({self.estimates[name].low:.4g} to {self.estimates[name].high:.4g})"

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{number(chance)}{escape(self._error(name))}</td></tr>"
            for name, chance in self.chances.items()
        )
        return f"<table>{rows}</table><div style='color: gray'>{escape(self.lines()[len(self)])}</div>"


def _inside(formula: Formula) -> str:
    """Return the text of a formula so that no bar in it looks like the one before the evidence."""
    text = shown(formula)
    return f"({text})" if " | " in text else text


def sampled_lines(estimate: Estimate, sweeps: int, note: str) -> list[str]:
    """Return how good an estimate from chains is, as lines of text."""
    said = "converged" if estimate.converged else "NOT CONVERGED"
    found = [
        f"{said}: {estimate.chains} chains, {sweeps} sweeps each, {estimate.kept:.3g} of the states kept, "
        + ", ".join([_known("effective size", estimate.effective_size, ".0f"), _r_hat(estimate.r_hat)])
    ]
    if estimate.place:
        found.append(
            f"not covered: {estimate.place}, where worlds are known; what chains say of it leaves room for a "
            f"probability of {estimate.missed:.2g}"
        )
    return [*found, f"not exact, since {note}"] if note else found


def sampled_facts(estimate: Estimate | None, sweeps: int, note: str) -> dict[str, Any]:
    """Return how far chains can be trusted; of an exact answer all is None but ``converged``."""
    return {
        "converged": estimate is None or estimate.converged,
        "effective_size": None if estimate is None else finite(estimate.effective_size),
        "r_hat": None if estimate is None else finite(estimate.r_hat),
        "missed": None if estimate is None else estimate.missed,
        "chains": None if estimate is None else estimate.chains,
        "sweeps": None if estimate is None else sweeps,
        "note": note or None,
    }


def finite(value: float) -> float | None:
    """Return a number, or None for what JSON has no word for."""
    return value if isfinite(value) else None


def _known(name: str, value: float, form: str) -> str:
    return f"{name} unknown" if isnan(value) else f"{name} {value:{form}}"


def _r_hat(value: float) -> str:
    return "R-hat above 100" if value > 100 else _known("R-hat", value, ".4f")


def because(reasons: Sequence[Statement], minimal: bool, given: bool) -> list[str]:
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


def world_shown(atoms: Iterable[str], values: Iterable[bool]) -> str:
    """Return a world as ``n=1 r=0``."""
    return " ".join(f"{quote(name)}={value:d}" for name, value in zip(atoms, values, strict=True))


def world_facts(world: Mapping[str, Any]) -> dict[str, int]:
    """Return a world as 0 and 1 by name."""
    return {name: int(value) for name, value in world.items()}
