"""Theory -> Machine: a visible unit per atom, a hidden unit per cube. [TG21, Theorem 1, Proposition 2]"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import inf, prod
from typing import Final

import numpy as np

from lbm.arrays import Floats
from lbm.knowledge.clauses import Clauses, as_clause
from lbm.knowledge.formula import Formula, atom, iff
from lbm.knowledge.theory import Theory, hard_weight
from lbm.logic.cube import CubeRows, merge
from lbm.logic.definitions import Definer
from lbm.logic.many import Rows, clause_choices, eliminate
from lbm.logic.sdnf import BUDGET, check_method, choices, flat_choices
from lbm.machine.calibrated import MARGIN, bias, check_units, check_weights, pull
from lbm.machine.rbm import Machine

SHARED_CLAUSES: Final = 500
"""Clauses up to which each is eliminated in the order that shares most; past it, all in one order."""

COMBINATIONS: Final = 2000
"""Combinations of strict DNFs up to which all are tried for the sake of sharing."""

ROUNDS: Final = 10
"""How often every formula may change its choice for the sake of sharing."""


def translate(
    theory: Theory | Formula,
    *,
    epsilon: float = 0.5,
    merge: bool = True,
    method: str = "auto",
    budget: int = BUDGET,
    encoding: str = "sdnf",
    units: str = "paper",
) -> Machine:
    """Build the machine whose energy wells are the models of the formulae.

        E(x, h) = -Σ_j h_j w_j (Σ_{t ∈ T_j} x_t - Σ_{k ∈ K_j} x_k - |T_j| + ε)

    T_j and K_j are the atoms that cube j wants true and false. Cubes of one formula exclude one
    another, so that -min_h E(x, h)/ε + offset = score(x) + W · (number of hard formulae true in x).
    A formula of negative weight -w enters as w: ~formula, the rest as offset. [TG21, Theorem 1 and
    Proposition 2; ERRATA 8]

    Parameters
    ----------
    theory
        A theory, or one formula, which is taken as hard.
    epsilon
        ε, strictly between 0 and 1.
    merge
        Whether identical cubes of different formulae become one unit of added weight.
    method, budget
        How each formula becomes a strict DNF: see :func:`lbm.logic.sdnf.to_sdnf`.
    encoding
        ``sdnf``, or ``penalty``: Penalty Logic's network, the paper's point of comparison.
    units
        ``paper``: as above. ``calibrated``: a unit of weight w has the input

            s_j(x) = log(e^w - 1) + K (literals of its cube that hold - literals of its cube),    K = w + 30

        so that the free energy itself is the score, not only the least energy: at confidence 1

            |-F(x) + offset - score(x) - W · (number of hard formulae true in x)| ≤ (hidden units) · e^-30

        and the machine's own distribution, among worlds that satisfy the hard formulae, is the logical one.
        ε plays no part. See the page of equations.

    Examples
    --------
    >>> from lbm import Theory
    >>> translate(Theory.parse("1000: n -> r"))
    <Machine: 2 visible and 2 hidden units, ε = 0.5>
    """
    if isinstance(theory, Formula):
        theory = Theory([theory])
    if not isinstance(theory, Theory):
        raise TypeError(f"expected a theory or a formula, got {theory!r}: Theory.parse reads text")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must lie strictly between 0 and 1, got {epsilon}")
    check_units(units)
    if encoding == "penalty":
        if units != "paper":
            raise ValueError("encoding='penalty' is a network of its own: units='calibrated' is for cubes")
        from lbm.machine.penalty import penalty_machine

        return penalty_machine(theory, epsilon=epsilon)
    if encoding != "sdnf":
        raise ValueError(f"expected the encoding 'sdnf' or 'penalty', got {encoding!r}")
    check_method(method, budget)
    cubes = _TheoryCubes.of(theory, method, budget)
    return _assemble(theory, cubes, epsilon, merge, calibrated=units == "calibrated")


@dataclass(slots=True)
class _TheoryCubes:
    """The cubes of a theory's formulae, then of the definitions they brought in."""

    atoms: tuple[str, ...]
    groups: list[CubeRows] = field(default_factory=list)
    definitions: tuple[str, ...] = ()
    uses: dict[int, set[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, theory: Theory, method: str, budget: int) -> _TheoryCubes:
        """Return the cubes of every formula of a theory."""
        clauses, general = _sort_out(theory, method, budget)
        packed = (clauses.literals, clauses.starts, clauses.owners, len(theory.atoms))
        groups: list[CubeRows] = []
        found: dict[int, list[Rows]] = {}
        if len(clauses) <= SHARED_CLAUSES:
            found = clause_choices(*packed)
        else:
            groups = eliminate(*packed)
            if not general:  # a million clauses need no names
                return cls(theory.atoms, groups)
        place = {name: number for number, name in enumerate(theory.atoms, start=1)}
        definer = Definer.beside(theory.atoms)
        uses: dict[int, set[int]] = {}
        for number, formula in general:
            found[number] = choices(formula, place, definer, method=method, budget=budget)
            uses[number] = _mentioned(found[number][0], len(theory.atoms))
        for number, (name, piece) in enumerate(definer.definitions.items(), start=len(theory)):
            found[number] = flat_choices(iff(atom(name), piece), place)
            uses[number] = _mentioned(found[number][0], len(theory.atoms)) - {number - len(theory)}
        groups += cube_rows(_most_shared(found, groups))
        return cls(tuple(place), groups, tuple(definer.definitions), uses)


def _mentioned(cubes: Rows, atoms: int) -> set[int]:
    """Return the definitions, by their numbers, that cubes mention."""
    return {abs(literal) - atoms - 1 for cube in cubes for literal in cube if abs(literal) > atoms}


def _sort_out(theory: Theory, method: str, budget: int) -> tuple[Clauses, list[tuple[int, Formula]]]:
    """Return the clauses of a theory, packed, and the other formulae with their numbers.

    A formula of negative weight is negated here, once and for all.
    """
    longest = {"auto": budget, "elimination": inf}.get(method, -1)  # of a clause that is eliminated as one
    clauses = theory.clauses
    if clauses is not None:
        long = clauses.sizes > longest
        others = [(number, clauses[number].formula) for number in np.flatnonzero(long).tolist()]
        return clauses.where(~long), others
    place = {name: i + 1 for i, name in enumerate(theory.atoms)}
    rows: list[list[int]] = []
    owners: list[int] = []
    general: list[tuple[int, Formula]] = []
    for number, statement in enumerate(theory):
        formula = statement.formula
        if statement.weight is not None and statement.weight < 0:
            formula = ~formula
        clause = as_clause(formula) if longest > 0 else None
        if clause is None or len(clause) > longest:
            general.append((number, formula))
        else:
            rows.append([place[name] if wanted else -place[name] for name, wanted in clause])
            owners.append(number)
    return Clauses.of(rows, atoms=theory.atoms, groups=owners), general


def _most_shared(choices: dict[int, list[Rows]], groups: Sequence[CubeRows]) -> dict[int, Rows]:
    """Return for each formula the strict DNF, among equally short ones, that shares most cubes.

    Where the combinations are few all are tried. Otherwise one formula after the other takes the way
    that adds fewest new cubes to those of all others, until none changes: from the first way of each,
    and from the way that could be shared most; the better of the two ends is taken.
    """
    ways = {number: [[tuple(cube) for cube in way] for way in found] for number, found in choices.items()}
    if all(len(found) == 1 for found in ways.values()):
        return {number: found[0] for number, found in choices.items()}
    possible = Counter(cube for found in ways.values() for way in found for cube in set(way))
    fixed = {cube for group in groups for cube in map(tuple, group.rows.tolist()) if cube in possible}
    if prod(map(len, ways.values())) <= COMBINATIONS:
        best = min(
            product(*map(range, map(len, ways.values()))),
            key=lambda pick: len(
                {cube for found, i in zip(ways.values(), pick, strict=True) for cube in found[i]} - fixed
            ),
        )
        return {number: choices[number][index] for number, index in zip(ways, best, strict=True)}
    starts = [
        dict.fromkeys(ways, 0),
        {
            number: max(range(len(found)), key=lambda i: sum(possible[cube] for cube in found[i]))
            for number, found in ways.items()
        },
    ]
    taken, _ = min((_settle(ways, start, fixed) for start in starts), key=lambda end: end[1])
    return {number: choices[number][index] for number, index in taken.items()}


def _settle(
    ways: dict[int, list[list[tuple[int, ...]]]], taken: dict[int, int], fixed: set[tuple[int, ...]]
) -> tuple[dict[int, int], int]:
    """Change one choice at a time while that makes fewer cubes; return the choices and their number."""
    used = Counter(cube for number, index in taken.items() for cube in ways[number][index])
    for _ in range(ROUNDS):
        changed = False
        for number, found in ways.items():
            if len(found) == 1:
                continue
            used.subtract(found[taken[number]])
            new = [sum(not used[cube] and cube not in fixed for cube in way) for way in found]
            least = min(new)
            if new[taken[number]] > least:
                taken[number], changed = new.index(least), True
            used.update(found[taken[number]])
        if not changed:
            break
    return taken, sum(count > 0 and cube not in fixed for cube, count in used.items())


def cube_rows(chosen: Mapping[int, Iterable[list[int]]]) -> list[CubeRows]:
    """Return the cubes of formulae, by their numbers, as arrays: those of one length together."""
    by_length: dict[int, tuple[list[list[int]], list[int], list[int]]] = {}
    for number, cubes in chosen.items():
        for place, cube in enumerate(cubes):
            rows, owners, places = by_length.setdefault(len(cube), ([], [], []))
            rows.append(cube)
            owners.append(number)
            places.append(place)
    return [
        CubeRows(
            np.array(rows, dtype=np.int32).reshape(len(rows), length),
            np.array(owners, dtype=np.int64),
            np.array(places, dtype=np.int64),
        )
        for length, (rows, owners, places) in by_length.items()
    ]


def _assemble(
    theory: Theory, cubes: _TheoryCubes, epsilon: float, identical: bool, *, calibrated: bool
) -> Machine:
    """Give every cube its unit, weight and bias."""
    from scipy.sparse import csc_array

    formulae, names = len(theory), cubes.definitions
    hard = float(hard_weight(theory))
    weights, offset = _formula_weights(theory, hard)
    if names:
        # Where units are calibrated, every value of a definitional atom but the computed one has next to no
        # probability: summed over these atoms, too, the distribution is that of the formulae.
        defined = _definition_weights(cubes, weights) + (MARGIN if calibrated else 0.0)
        weights = np.concatenate([weights, defined])
        offset -= float(defined.sum())
    merged = merge(cubes.groups, formulae + len(names), len(cubes.atoms), identical=identical)
    hidden = len(merged.starts) - 1
    unit_weights: Floats = np.bincount(merged.unit, weights=weights[merged.owner], minlength=hidden).astype(
        np.float64
    )
    if calibrated:
        check_weights(unit_weights)
    data = np.repeat(pull(unit_weights) if calibrated else unit_weights, np.diff(merged.starts))
    np.negative(data, out=data, where=merged.literals < 0)
    rows = np.abs(merged.literals)
    rows -= 1
    small = merged.starts[-1] < np.iinfo(np.int32).max  # scipy wants both index arrays of one kind
    starts = merged.starts.astype(np.int32) if small else merged.starts
    matrix = csc_array((data, rows, starts), shape=(len(cubes.atoms), hidden))
    return Machine(
        atoms=cubes.atoms,
        weights=matrix,
        visible_bias=np.zeros(len(cubes.atoms)),
        hidden_bias=(
            bias(unit_weights, merged.positive.astype(np.float64))
            if calibrated
            else unit_weights * (epsilon - merged.positive)
        ),
        epsilon=epsilon,
        calibrated=hidden if calibrated else 0,
        offset=offset,
        unit_weights=unit_weights,
        hard_weight=hard,
        owner=merged.owner,
        unit=merged.unit,
        definitions=names,
        theory=theory,
    )


def _formula_weights(theory: Theory, hard: float) -> tuple[Floats, float]:
    """Return |w| of every formula, W for the hard ones, and what negative weights leave behind."""
    signed = np.array([hard if w is None else float(w) for w in theory.weights], dtype=np.float64)
    return np.abs(signed), float(signed[signed < 0].sum())


def _definition_weights(cubes: _TheoryCubes, weights: Floats) -> Floats:
    """Return a weight for every definition that exceeds all formulae that depend on it.

    Breaking a definition can then never pay: mending it and recomputing the atoms that depend on it
    loses at most the weights of those formulae.
    """
    formulae = len(weights)
    dependants = [0] * len(cubes.definitions)  # bit sets of formulae
    for number, used in cubes.uses.items():
        if number < formulae:
            for definition in used:
                dependants[definition] |= 1 << number
    for i in range(len(dependants) - 1, -1, -1):  # a definition mentions only earlier ones
        for definition in cubes.uses[formulae + i]:
            dependants[definition] |= dependants[i]
    known: dict[int, float] = {}
    for users in dependants:
        if users not in known:
            bits = [i for i in range(users.bit_length()) if users >> i & 1]
            known[users] = 1.0 + float(weights[bits].sum())
    return np.array([known[users] for users in dependants])
