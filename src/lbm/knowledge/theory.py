"""Theory: hard and weighted formulae over one ordered vocabulary.

A formula is hard (a hard constraint), or soft (a soft constraint) and has a weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from lbm.errors import ParseError, UnknownAtom, WeightError
from lbm.knowledge.circuit_formulae import believe, known_circuits
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import TRUE, Formula, atom_name, atoms_of, holds, make, quote
from lbm.knowledge.numbers import Weight, as_weight, exact_sum, magnitude, unscaled
from lbm.knowledge.parser import Statement, parse, read_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ATOMS_PER_LINE: Final = 1000
"""Names on one ``atoms`` line of what we write: a line has its limit, a vocabulary has none."""

LiteralWeights = Mapping[str, tuple[Fraction, Fraction]]
"""What an atom weighs where it is true, and where it is false."""

_NO_WEIGHTS: Final[LiteralWeights] = MappingProxyType({})
_LAST: Final = Decimal("1e-15")  # the last digit of a logarithm of a weight
_LOGS: Final = Context(prec=30)


class Theory:
    """Formulae over named atoms; with a weight a formula is soft, without one hard.

    Theories of the same atoms, statements and literal weights are equal. ``shown`` is no part of what they
    say: a DIMACS file may name atoms that models are projected to, unless a question says otherwise; None:
    all of them. ``literal_weights`` are those of :func:`weighing`, by atom; most theories have none.

    Parameters
    ----------
    statements
        Formulae, items of formulae, pairs (weight, formula or text), or Statements.
    atoms
        Names that come first, in this order; the others follow as they appear.

    Examples
    --------
    >>> theory = Theory(["n", (10, "n -> r")])
    >>> theory.atoms
    ('n', 'r')
    >>> print(theory)
    n
    10: n -> r
    >>> theory.score({"n": True, "r": False})
    0
    """

    __slots__ = ("_hash", "atoms", "literal_weights", "shown", "statements")

    atoms: tuple[str, ...]
    statements: Sequence[Statement]
    shown: tuple[str, ...] | None
    literal_weights: LiteralWeights
    _hash: int | None

    def __init__(
        self,
        statements: Iterable[Formula | str | tuple[Any, Formula | str] | Statement] = (),
        *,
        atoms: Iterable[str] = (),
    ) -> None:
        made = tuple(_statement(item) for item in statements)
        order = dict.fromkeys(atom_name(name) for name in atoms)
        order.update(dict.fromkeys(atoms_of(*(statement.formula for statement in made))))
        self._fill(atoms=tuple(order), statements=made, literal_weights=_NO_WEIGHTS)

    def _fill(self, **parts: object) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, parts.get(name))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a theory never changes: build another one")

    def __reduce__(self) -> tuple[object, ...]:
        circuits = () if self.clauses is not None else known_circuits(said.formula for said in self)
        return _restored, (self.atoms, self.statements, self.shown, dict(self.literal_weights), circuits)

    @classmethod
    def from_parts(
        cls,
        atoms: tuple[str, ...],
        statements: Sequence[Statement],
        shown: tuple[str, ...] | None = None,
        *,
        literal_weights: LiteralWeights = _NO_WEIGHTS,
    ) -> Theory:
        """Return the theory with these parts as they are; every atom must be named in ``atoms``.

        Statements that say what ``literal_weights`` mean, as :func:`weighing` adds them, must be among them.
        """
        theory = cls.__new__(cls)
        theory._fill(atoms=atoms, statements=statements, shown=shown, literal_weights=literal_weights)
        return theory

    @classmethod
    def from_clauses(
        cls,
        clauses: Clauses,
        weights: NDArray[np.int64] | None = None,
        *,
        shown: tuple[str, ...] | None = None,
    ) -> Theory:
        """Return a theory of packed clauses; a weight of 0 marks a hard one, and none is negative.

        ``weights`` are those of the clauses, if these have none of their own yet.
        """
        if weights is not None:
            clauses = replace(clauses, weights=weights)
        if (clauses.weights < 0).any():
            raise WeightError(
                f"packed clauses have weights from 1 up, or 0 for a hard one, got {clauses.weights.min()}: "
                "give a negative weight to a formula, as in Theory([(-2, 'a | b')])"
            )
        return cls.from_parts(clauses.atoms, clauses, shown)

    @classmethod
    def parse(
        cls, text: str, *, source: str | None = None, domains: Mapping[str, Iterable[str]] | None = None
    ) -> Theory:
        r"""Read a theory from text in the ``.lbm`` format.

        ``domains`` says which constants are in the domains that the text declares, in place of its own: one
        text of rules then serves many problems.

        >>> len(Theory.parse("1000: n -> r\n10: r -> ~p"))
        2
        """
        filled = {name: tuple(dict.fromkeys(members)) for name, members in (domains or {}).items()}
        reading = read_text(text, source=source, domains=filled)
        if not reading.statements and not reading.atoms:
            raise ParseError("expected at least one formula or an 'atoms' line, found none", source=source)
        return cls.from_parts(tuple(reading.atoms), tuple(reading.statements))

    @classmethod
    def load(cls, path: str | Path) -> Theory:
        """Read a theory from a file in any format we know, by its name's ending."""
        # wire.py stands behind this file: it reads theories, so it needs to know what one is.
        from lbm.knowledge.wire import load_theory

        return load_theory(path)

    @property
    def clauses(self) -> Clauses | None:
        """The statements, where these are packed clauses; None: they are formulae."""
        return self.statements if isinstance(self.statements, Clauses) else None

    @property
    def weights(self) -> list[Weight | None]:
        """The weight of each statement, None for a hard one."""
        if self.clauses is None:
            return [statement.weight for statement in self]
        digits = self.clauses.digits
        return [unscaled(weight, digits) or None for weight in self.clauses.weights.tolist()]

    def __len__(self) -> int:
        return len(self.statements)

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Theory):
            return NotImplemented
        return (
            self.atoms == other.atoms
            and len(self) == len(other)
            and self.literal_weights == other.literal_weights
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )

    def __hash__(self) -> int:
        if self._hash is None:
            object.__setattr__(self, "_hash", hash((self.atoms, tuple(self.statements))))
        assert self._hash is not None
        return self._hash

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in to_lines(self)).rstrip("\n")

    def __repr__(self) -> str:
        if len(self) > 10_000:
            return f"<Theory: {len(self.atoms)} atoms, {len(self)} formulae>"
        hard = self.weights.count(None)
        return f"<Theory: {len(self.atoms)} atoms, {hard} hard and {len(self) - hard} soft formulae>"

    def score(self, world: Mapping[str, Any]) -> Weight:
        """Return Σ w_i over the soft formulae true in ``world``, exactly."""
        packed = self.clauses
        if packed is not None:
            return unscaled(sum(packed.weights[packed.true_in(world)].tolist()), packed.digits)
        return exact_sum(s.weight for s in self if s.weight is not None and holds(s.formula, world))

    def all_hard(self) -> Theory:
        """Return the theory that demands every formula: weights are dropped, and so are those of literals."""
        if self.literal_weights:
            return unweighted(self).all_hard()
        packed = self.clauses
        if packed is not None:
            return Theory.from_clauses(
                replace(packed, weights=0 * packed.weights, digits=0), shown=self.shown
            )
        return Theory.from_parts(self.atoms, tuple(replace(s, weight=None) for s in self), self.shown)

    def is_model(self, world: Mapping[str, Any]) -> bool:
        """Return whether ``world`` is a model (satisfying assignment): every hard formula is true in it."""
        packed = self.clauses
        if packed is not None:
            return bool((packed.true_in(world) | (packed.weights != 0)).all())
        return all(holds(s.formula, world) for s in self if s.weight is None)


def weighing(theory: Theory, weights: Mapping[str, tuple[Fraction, Fraction]]) -> Theory:
    """Return the theory in which literals weigh something as well.

    Parameters
    ----------
    weights
        The weight of an atom where it is true, and where it is false: fractions from 0 up.

    Notes
    -----
    The weight of a world is the product of those of its literals (weighted model counting), and the theory
    says so: for weights p and q above 0 a soft literal of weight |ln p - ln q|, for one of 0 a hard one, and
    a last soft ``true`` with what all worlds have in common, so that score(x) = ln(weight of x) to 14 digits.
    The fractions stay beside that, in ``literal_weights``, and counts use them.

    Examples
    --------
    >>> weights = {"a": (Fraction(1, 3), Fraction(2, 3)), "b": (Fraction(1), Fraction(0))}
    >>> print(weighing(Theory(["a | b"]), weights))
    a | b
    0.693147180559945: ~a
    b
    -1.098612288668110: true
    """
    found = dict(theory.literal_weights)
    known = set(theory.atoms)
    for name, (positive, negative) in weights.items():
        if name not in known:
            raise UnknownAtom(name, theory.atoms)
        for weight in (positive, negative):
            if weight < 0:
                raise WeightError(f"literals weigh 0 or more, got {weight} for {name!r}")
        found[name] = Fraction(positive), Fraction(negative)
    bare = unweighted(theory)
    statements = bare.statements if bare.clauses is None else bare.clauses.statements()
    return Theory.from_parts(
        bare.atoms, (*statements, *_said(found)), bare.shown, literal_weights=MappingProxyType(found)
    )


def unweighted(theory: Theory) -> Theory:
    """Return the theory without the weights of literals, and without what says them.

    >>> weights = {"a": (Fraction(1, 3), Fraction(0))}
    >>> unweighted(weighing(Theory(["a | b"]), weights)) == Theory(["a | b"])
    True
    """
    if not theory.literal_weights:
        return theory
    said = len(_said(theory.literal_weights))
    return Theory.from_parts(theory.atoms, theory.statements[: len(theory) - said], theory.shown)


def _said(weights: LiteralWeights) -> list[Statement]:
    """Return the statements that say what literals weigh; they stand last in a theory."""
    found: list[Statement] = []
    common = Decimal(0)
    with localcontext(_LOGS):
        for name, pair in weights.items():
            literal = make("atom", name, ())
            positive, negative = (_ln(weight) if weight else None for weight in pair)
            if positive is None or negative is None:
                found += [Statement(literal)] if negative is None else []
                found += [Statement(~literal)] if positive is None else []
                common += positive or negative or 0
                continue
            common += min(positive, negative)
            apart = (positive - negative).quantize(_LAST)
            if apart:
                found.append(Statement(literal if apart > 0 else ~literal, apart.copy_abs()))
        common = common.quantize(_LAST)
    return found + ([Statement(TRUE, common)] if common else [])


@lru_cache(maxsize=1 << 16)
def _ln(weight: Fraction) -> Decimal:
    return _LOGS.ln(_LOGS.divide(Decimal(weight.numerator), Decimal(weight.denominator)))


def _restored(
    atoms: tuple[str, ...],
    statements: Sequence[Statement],
    shown: tuple[str, ...] | None,
    literal_weights: dict[str, tuple[Fraction, Fraction]],
    circuits: Sequence[Formula],
) -> Theory:
    """Return a theory that was pickled."""
    believe(circuits)
    weights = MappingProxyType(literal_weights) if literal_weights else _NO_WEIGHTS
    return Theory.from_parts(atoms, statements, shown, literal_weights=weights)


def hard_weight(theory: Theory) -> Weight:
    """Return W, the weight of a hard formula in a machine: 1 if nothing is soft, else 1 + Σ|w|."""
    return exact_sum([1, *(magnitude(weight) for weight in theory.weights if weight is not None)])


def to_lines(theory: Theory) -> Iterator[str]:
    """Yield the theory in the ``.lbm`` format, a line at a time, so that it parses back the same."""
    met = dict.fromkeys(atoms_of(*(s.formula for s in theory)))
    if tuple(met) != theory.atoms:
        for first in range(0, len(theory.atoms), ATOMS_PER_LINE):
            yield "atoms " + ", ".join(map(quote, theory.atoms[first : first + ATOMS_PER_LINE]))
    for statement in theory:
        yield str(statement)


def shown(formula: Formula) -> str:
    """Return the text of a formula, cut at a hundred characters."""
    text = repr(formula)[1:-1]  # which, unlike str(), stops early
    return text if len(text) <= 100 else text[:96].rstrip() + " ..."


def statement_shown(statement: Statement) -> str:
    """Return the text of a formula with its weight, cut if it is long."""
    text = shown(statement.formula)
    return text if statement.weight is None else f"{statement.weight}: {text}"


def _statement(item: object) -> Statement:
    if isinstance(item, Statement):
        return item if item.weight is None else replace(item, weight=as_weight(item.weight))
    if isinstance(item, Formula):
        return Statement(item)
    if isinstance(item, str):
        return Statement(parse(item))
    if isinstance(item, tuple) and len(item) == 2:
        weight, formula = item
        if isinstance(formula, str):
            formula = parse(formula)
        if isinstance(formula, Formula):
            return Statement(formula, None if weight is None else as_weight(weight))
    raise TypeError(f"expected a formula, its text, or a pair (weight, formula), got {item!r}")
