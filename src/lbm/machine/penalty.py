"""Penalty Logic, the paper's point of comparison: formula -> polynomial -> quadratic form -> machine.

A formula's penalty is 1 where it is false. Written as a multilinear polynomial of the atoms it has terms
of any degree; extra units bring the degree down until a restricted Boltzmann machine is left.
[Pinkas, Artificial Intelligence 77 (1995) 203-247; TG21, section 3, the comparison for XOR]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

import numpy as np

from lbm.errors import LimitExceeded, UnknownAtom
from lbm.knowledge.formula import CARDINALITIES, Formula, atoms_of, bounds, fold, quote
from lbm.knowledge.theory import Theory, hard_weight
from lbm.logic.cube import Cube, pack
from lbm.machine.equation import number
from lbm.machine.rbm import Machine

MAX_MONOMIALS: Final = 1_000_000
"""Terms of a polynomial and those made on the way to it; over thousands of atoms one counts for several."""

Coefficient = int | Fraction
Monomial = tuple[str, ...]
Polynomial = Mapping[Monomial, Coefficient]
"""Coefficients by the atoms they multiply, in atom order and in the order in which they are written."""

Place = tuple[int, ...]
"""A monomial as the places of its atoms, ascending."""

Terms = dict[int, int]
"""Coefficients by monomial, a monomial being a number with a bit for each of its atoms."""

_ONE: Final[Terms] = {0: 1}
_SHORT: Final = re.compile(r"[^\W\d_]\d*")


@dataclass(frozen=True, slots=True)
class Well:
    """A hidden unit that takes ``weight`` off the energy where its cube is true.

    ``formulae`` holds the numbers of the statements whose terms it stands for.
    """

    weight: Coefficient
    cube: Cube
    formulae: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Reduced:
    """A polynomial of low degree, and wells in place of the terms above it.

    p(x) = rest(x) - Σ_j weight_j · [cube_j is true in x]
    """

    atoms: tuple[str, ...]
    rest: Polynomial
    wells: tuple[Well, ...]


# --- the polynomial ------------------------------------------------------------------------------


def penalty_polynomial(
    knowledge: Formula | Theory, *, atoms: Sequence[str] | None = None
) -> dict[Monomial, Coefficient]:
    """Return the penalty of a formula, [it is false], or of a theory, as a multilinear polynomial.

        penalty(x) = Σ_{w > 0} w · [φ false in x] + Σ_{w < 0} |w| · [φ true in x]
                   = constant - (score(x) + W · (number of hard formulae true in x))

    A hard formula weighs W; the constant is the sum of the positive weights, so that a world which keeps
    every promise has penalty 0. Coefficients are exact: an int or a Fraction.

    Parameters
    ----------
    atoms
        The order of the atoms; without it that of the theory, or of first appearance.

    Examples
    --------
    >>> from lbm.knowledge.parser import parse
    >>> print(write_polynomial(penalty_polynomial(parse("(x ^ y) <-> z"))))
    4xyz - 2xy - 2xz - 2yz + x + y + z
    """
    return _Penalty.of(knowledge, atoms).polynomial()


@dataclass(slots=True)
class _Penalty:
    """A penalty term by term: coefficients, the formulae each term comes from, and the constant."""

    atoms: tuple[str, ...]
    terms: dict[Place, Coefficient] = field(default_factory=dict)
    formulae: dict[Place, set[int]] = field(default_factory=dict)
    constant: Coefficient = 0

    @classmethod
    def of(cls, knowledge: Formula | Theory, atoms: Sequence[str] | None) -> _Penalty:
        """Return the penalty of a formula or a theory over ``atoms``, which must name all of theirs."""
        theory = Theory([knowledge]) if isinstance(knowledge, Formula) else knowledge
        order = {name: i for i, name in enumerate(dict.fromkeys(theory.atoms if atoms is None else atoms))}
        for name in theory.atoms:
            if name not in order:
                raise UnknownAtom(name, order, "list of atoms")
        made = cls(tuple(order))
        hard = hard_weight(theory)
        for i, statement in enumerate(theory):
            weight = _plain(Fraction(hard if statement.weight is None else statement.weight))
            made.constant += max(weight, 0)
            # A promise of weight -w is the promise of weight w that the formula is false. [ERRATA 8]
            broken = statement.formula if weight > 0 else ~statement.formula
            for monomial, coefficient in _false(broken, order):
                made.terms[monomial] = made.terms.get(monomial, 0) + _size(weight) * coefficient
                if len(monomial) > 1:
                    made.formulae.setdefault(monomial, set()).add(i)
            _within(len(made.terms))
        return made

    def polynomial(self) -> dict[Monomial, Coefficient]:
        """Return the terms by name, in the order they are written in: xyz, xy, xz, yz, x, y, z, 1."""
        written = sorted(self.terms, key=lambda places: (-len(places), places[::-1]))
        return {
            tuple([self.atoms[i] for i in places]): _plain(self.terms[places])
            for places in written
            if self.terms[places]
        }


def _false(formula: Formula, order: Mapping[str, int]) -> Iterator[tuple[Place, int]]:
    """Yield the terms of [formula is false] and their coefficients."""
    names = sorted(atoms_of(formula), key=order.__getitem__)
    bits = {name: i for i, name in enumerate(names)}
    places = [order[name] for name in names]
    for mask, coefficient in fold(~formula, _Arithmetic(bits).visit).items():
        yield tuple([places[i] for i, digit in enumerate(reversed(f"{mask:b}")) if digit == "1"]), coefficient


class _Arithmetic:
    """Arithmetic of multilinear polynomials (x² = x) that counts the terms it makes."""

    def __init__(self, bits: Mapping[str, int]) -> None:
        self.bits = bits
        self.made = 0
        self.cost = 1 + len(bits) // 1024  # of a term: the numbers that stand for monomials are long

    def spend(self, terms: int) -> None:
        """Count terms about to be made, and stop before there are too many."""
        self.made += terms * self.cost
        _within(self.made)

    def plus(self, p: Terms, times: int, q: Terms) -> Terms:
        """Return p + times·q."""
        self.spend(len(p) + len(q))
        total = p.copy()
        for mask, coefficient in q.items():
            value = total.get(mask, 0) + times * coefficient
            if value:
                total[mask] = value
            else:
                del total[mask]
        return total

    def times(self, p: Terms, q: Terms) -> Terms:
        """Return p·q: monomials unite, because x² = x where x is 0 or 1."""
        self.spend(len(p) * len(q))
        total: Terms = {}
        for left, by in p.items():
            for right, coefficient in q.items():
                both = left | right
                total[both] = total.get(both, 0) + by * coefficient
        return {mask: coefficient for mask, coefficient in total.items() if coefficient}

    def complement(self, p: Terms) -> Terms:
        """Return 1 - p."""
        return self.plus(_ONE, -1, p)

    def visit(self, node: Formula, values: list[Terms]) -> Terms:
        """Return the polynomial that is 1 where ``node`` is true and 0 elsewhere."""
        kind = node.kind
        if kind == "atom":
            return {1 << self.bits[node.label]: 1}
        if kind == "true":
            return _ONE
        if kind == "false":
            return {}
        if kind == "not":
            return self.complement(values[0])
        if kind in CARDINALITIES:
            least, most = bounds(node)
            enough = self.at_least(least, values)
            return enough if kind == "atleast" else self.plus(enough, -1, self.at_least(most + 1, values))
        p, q = values
        both = self.times(p, q)
        if kind == "and":
            return both
        if kind == "implies":
            return self.plus(self.complement(p), 1, both)
        either = self.plus(self.plus(p, 1, q), -1 if kind == "or" else -2, both)
        return self.complement(either) if kind == "iff" else either

    def at_least(self, bound: int, values: list[Terms]) -> Terms:
        """Return [at least ``bound`` of the values]: s_j becomes s_j + value·(s_{j-1} - s_j)."""
        if bound > len(values):
            return {}
        # row[j]: at least j of the values so far; only the cells that the last one needs are made.
        row: list[Terms] = [_ONE] + [{}] * max(bound, 0)
        for i, value in enumerate(values, start=1):
            for j in range(min(i, bound), max(0, bound - len(values) + i - 1), -1):
                row[j] = self.plus(row[j], 1, self.times(value, self.plus(row[j - 1], -1, row[j])))
        return row[max(bound, 0)]


# --- fewer degrees, more units -------------------------------------------------------------------


def reduce_degree(polynomial: Polynomial, atoms: Sequence[str], *, degree: int = 1) -> Reduced:
    """Replace every term above ``degree`` by wells: 2 gives a quadratic form, 1 the form of an RBM.

    From the highest degree down, with x_k the last atom of a term,

        -c · x_1 ... x_k = -c · [x_1 & ... & x_k]
         c · x_1 ... x_k = -c · [x_1 & ... & x_{k-1} & ~x_k] + c · x_1 ... x_{k-1}

    and what the second line leaves is added to the term it meets there. Terms of one degree are taken in
    the order in which the paper numbers its units: those whose atoms are nearest to one another first.
    """
    if degree not in (1, 2):
        raise ValueError(f"a polynomial is reduced to degree 1 or 2, got {degree!r}")
    place = {name: i for i, name in enumerate(dict.fromkeys(atoms))}
    penalty = _Penalty(tuple(place))
    for names, coefficient in polynomial.items():
        for name in names:
            if name not in place:
                raise UnknownAtom(name, place, "list of atoms")
        monomial = tuple(sorted({place[name] for name in names}))
        penalty.terms[monomial] = penalty.terms.get(monomial, 0) + coefficient
    wells = _take_wells(penalty, degree)
    return Reduced(penalty.atoms, penalty.polynomial(), tuple(wells))


def _take_wells(penalty: _Penalty, degree: int) -> list[Well]:
    """Move the terms above ``degree`` from a penalty into wells."""
    terms, formulae = penalty.terms, penalty.formulae
    by_degree: dict[int, set[Place]] = {}
    for monomial in terms:
        by_degree.setdefault(len(monomial), set()).add(monomial)
    wells: list[Well] = []
    made = 0
    for size in range(max(by_degree, default=0), degree, -1):
        for monomial in sorted(by_degree.get(size, ()), key=lambda places: (places[-1] - places[0], places)):
            coefficient, served = terms.pop(monomial), formulae.pop(monomial, set())
            if not coefficient:
                continue
            made += size
            _within(made)
            *names, last = [penalty.atoms[i] for i in monomial]
            cube = Cube((*((name, 1) for name in names), (last, 1 if coefficient < 0 else -1)))
            wells.append(Well(_size(coefficient), cube, frozenset(served)))
            if coefficient > 0:
                below = monomial[:-1]
                terms[below] = terms.get(below, 0) + coefficient
                formulae.setdefault(below, set()).update(served)
                by_degree.setdefault(size - 1, set()).add(below)
    return wells


def energy_polynomial(reduced: Reduced, *, epsilon: float = 0.5) -> dict[Monomial, Coefficient]:
    """Return E(x, h), a hidden unit for each well; min_h E(x, h) is the polynomial that was reduced.

        -c · [cube] = min_h -(c/ε) · h · (Σ_{t ∈ T} x_t - Σ_{k ∈ K} x_k - |T| + ε)

    T and K are the atoms the cube wants true and false. Hidden units are called h1, h2, ...

    Examples
    --------
    >>> from lbm.knowledge.parser import parse
    >>> polynomial = penalty_polynomial(parse("(x ^ y) <-> z"))
    >>> print(write_polynomial(energy_polynomial(reduce_degree(polynomial, "xyz", degree=2))))
    2xy - 2xz - 2yz - 8xh1 - 8yh1 + 8zh1 + x + y + z + 12h1
    """
    small = _epsilon(epsilon)
    pairs: list[list[tuple[Monomial, Coefficient]]] = []
    biases: list[tuple[Monomial, Coefficient]] = []
    for unit, well in zip(hidden_names(reduced.atoms, len(reduced.wells)), reduced.wells, strict=True):
        depth = well.weight / small
        pairs.append([((name, unit), _plain(-sign * depth)) for name, sign in well.cube.literals])
        biases.append(((unit,), _plain(depth * (len(well.cube.true) - small))))
    rest = list(reduced.rest.items())
    high = [term for term in rest if len(term[0]) > 1]
    if high:
        inner = [term for unit_pairs in pairs for term in unit_pairs]
        linear = [term for term in rest if len(term[0]) == 1]
        return dict([*high, *inner, *linear, *biases, *(term for term in rest if not term[0])])
    units = [term for unit_pairs, bias in zip(pairs, biases, strict=True) for term in (*unit_pairs, bias)]
    return dict([*units, *rest])


def hidden_names(atoms: Sequence[str], count: int) -> tuple[str, ...]:
    """Return h1, h2, ... for hidden units; where an atom is called so, _h1, _h2, ...

    >>> hidden_names(("h2", "x"), 2)
    ('_h1', '_h2')
    """
    taken = set(atoms)
    prefix = "h"
    while True:
        names = tuple([f"{prefix}{j}" for j in range(1, count + 1)])
        if taken.isdisjoint(names):
            return names
        prefix = "_" + prefix


# --- the machine ---------------------------------------------------------------------------------


def penalty_machine(theory: Theory, *, epsilon: float = 0.5) -> Machine:
    """Build the machine of Penalty Logic: a hidden unit per product that is left in the penalty.

    It obeys the law of every machine, -min_h E(x, h)/ε + offset = score(x) + W · (hard formulae true in
    x), and ranks worlds as the strict DNF's does, but its visible units have biases and single formulae
    have no wells of their own: a unit serves the formulae whose terms it holds. E is ε times the energy
    that :func:`energy_polynomial` writes, less its constant.
    """
    from scipy.sparse import csc_array

    small = _epsilon(epsilon)
    penalty = _Penalty.of(theory, None)
    wells = _take_wells(penalty, 1)
    visible_bias = np.zeros(len(theory.atoms))
    for places, coefficient in penalty.terms.items():
        if places:
            visible_bias[places[0]] = float(-coefficient * small)
    place = {name: i for i, name in enumerate(theory.atoms, start=1)}
    cubes = pack(([sign * place[name] for name, sign in well.cube.literals] for well in wells), theory.atoms)
    unit_weights = np.array([float(well.weight) for well in wells])
    wanted_true = np.array([len(well.cube.true) for well in wells], dtype=np.int64)
    parts = sorted((i, unit) for unit, well in enumerate(wells) for i in well.formulae)
    owner, unit = np.array(parts, dtype=np.int64).reshape(-1, 2).T.copy()
    data = np.repeat(unit_weights, np.diff(cubes.starts)) * np.sign(cubes.literals)
    shape = (len(theory.atoms), len(wells))
    return Machine(
        atoms=theory.atoms,
        weights=csc_array((data, np.abs(cubes.literals) - 1, cubes.starts), shape=shape),
        visible_bias=visible_bias,
        hidden_bias=unit_weights * (epsilon - wanted_true),
        epsilon=epsilon,
        offset=float(penalty.constant - penalty.terms.get((), 0)),
        unit_weights=unit_weights,
        hard_weight=float(hard_weight(theory)),
        owner=owner,
        unit=unit,
        theory=theory,
    )


# --- words ---------------------------------------------------------------------------------------


def write_polynomial(polynomial: Polynomial) -> str:
    """Return a polynomial as the paper writes it, its terms in the order of the mapping.

    >>> write_polynomial({("x", "y"): 4, ("x",): -1, (): Fraction(1, 2)})
    '4xy - x + 0.5'
    >>> write_polynomial({("rain", "wet"): -2, ("rain",): 1})
    '-2 rain·wet + rain'
    """
    # Without a sign between them only names of one letter, or a letter and a number, can be told apart.
    short = all(_SHORT.fullmatch(name) for monomial in polynomial for name in monomial)
    text = ""
    for monomial, coefficient in polynomial.items():
        product = "".join(monomial) if short else "·".join(map(quote, monomial))
        size = _size(coefficient)
        digits = str(size) if isinstance(size, int) else number(float(size))
        if not product:
            term = digits
        elif size == 1:
            term = product
        else:
            term = f"{digits}{product}" if short else f"{digits} {product}"
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {term}" if text else f"{'-' if coefficient < 0 else ''}{term}"
    return text or "0"


# --- numbers -------------------------------------------------------------------------------------


def _plain(value: Coefficient) -> Coefficient:
    """Return a whole number as an int."""
    return value.numerator if value.denominator == 1 else value


def _size(value: Coefficient) -> Coefficient:
    """Return |value|."""
    return _plain(-value if value < 0 else value)


def _epsilon(epsilon: float) -> Fraction:
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must lie strictly between 0 and 1, got {epsilon}")
    return Fraction(str(epsilon))


def _within(made: int) -> None:
    if made > MAX_MONOMIALS:
        raise LimitExceeded(
            f"the penalty polynomial passes {MAX_MONOMIALS} terms (limit MAX_MONOMIALS): "
            "use encoding='sdnf', which needs no polynomial",
            MAX_MONOMIALS=MAX_MONOMIALS,
        )
