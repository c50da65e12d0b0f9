"""Theory -> arrays of a trainable machine: cubes over columns and label atoms, the label last.

A class is a pattern of label atoms. With two classes there is one label atom, false and true; with K > 2
there are K, of which exactly one is true. For a formula f let f_k be what it says of the columns once the
label atoms are those of class k. Then, in every world whose labels are one of these patterns,

    f = ⋀_k f_k  ∨  ⋁_k [class k] ∧ f_k ∧ ¬⋀_{l≠k} f_l

and the parts exclude one another. Each becomes a strict DNF over columns, so that the label comes last
whatever the order of the atoms: the first part weighs the same for every class, and where the others are
false the formula says nothing about the class. Classes with the same f_k share their parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import ContradictoryKnowledge, TooManyCubes, UnknownAtom, WeightError
from lbm.knowledge.formula import CARDINALITIES, FALSE, TRUE, Formula, atom, atom_name, exactly, fold, make
from lbm.knowledge.formula import atoms_of as names_of
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory, shown
from lbm.logic.cube import merge
from lbm.logic.sdnf import flat_choices
from lbm.machine.calibrated import MARGIN, check_units
from lbm.machine.translate import cube_rows
from lbm.reasoning.proof import prove

MAX_KNOWLEDGE_CUBES: Final = 4096
"""Cubes that one formula may become; knowledge is compiled without definitional atoms."""

MAX_CONFIDENCE: Final = 1e9
"""The largest confidence: past it sums in single precision lose the smaller ones."""

Numbers = tuple[int, ...]
"""A conjunction: signed numbers of atoms from 1, in the order of the atoms."""


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A theory as arrays; a hidden unit per cube, as in :class:`lbm.machine.rbm.Machine`.

        s_j(x, k) = κ_j (Σ_i signs_ij (x, L_k)_i - positive_j + ε),    κ_j = Σ_{i owns j} κ_i

    and if units are calibrated, so that softplus(s_j) is κ_j where the cube is true and next to 0 elsewhere,

        s_j(x, k) = log(e^κ_j - 1) + (κ_j + 30) (Σ_i signs_ij (x, L_k)_i - positive_j)

    Attributes
    ----------
    columns, labels
        Names of the visible units: the columns of a table, then the label atoms.
    signs
        Sparse int8, shape (columns + labels, units): +1 on the atoms a cube wants true, -1 on the others.
    positive
        Shape (units,): how many atoms each cube wants true.
    owner, unit
        Shape (parts,): formula ``owner[i]`` has a cube that became part of unit ``unit[i]``.
    initial
        Shape (formulae,): the confidence κ_i that each formula begins with.
    fixed
        Shape (formulae,): whether it stays as it is.
    statements
        The formulae, as they were given.
    epsilon
        ε, strictly between 0 and 1.
    calibrated
        Whether a confidence is what a formula adds to the score, no more and no less: see
        :mod:`lbm.machine.calibrated`.
    learned
        How many formulae, the last, data brought: see :mod:`lbm.training.boltzmann.cubes`.
    """

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    signs: csc_array
    positive: Ints
    owner: Ints
    unit: Ints
    initial: Floats
    fixed: Bools
    statements: tuple[Statement, ...] = ()
    epsilon: float = 0.5
    calibrated: bool = False
    learned: int = 0

    @property
    def given(self) -> int:
        """The number of formulae that data did not bring."""
        return len(self.initial) - self.learned

    @property
    def units(self) -> int:
        """The number of hidden units."""
        return int(self.signs.shape[1])

    def unit_confidences(self, confidences: Floats) -> Floats:
        """Return κ_j = Σ_{i owns j} κ_i of every unit, for confidences κ_i of the formulae."""
        return np.asarray(np.bincount(self.unit, confidences[self.owner], self.units), dtype=np.float64)


def label_patterns(labels: int) -> NDArray[np.int8]:
    """Return the truth values of label atoms by class, shape (classes, labels).

    No label atom: one class. One: false, then true. More: class k has the k-th alone.

    >>> label_patterns(1).tolist(), label_patterns(3).tolist()
    ([[0], [1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    """
    if labels <= 1:
        return np.arange(labels + 1, dtype=np.int8).reshape(labels + 1, 1)[:, :labels]
    return np.eye(labels, dtype=np.int8)


def label_names(target: str, classes: Sequence[object]) -> tuple[str, ...]:
    """Return the label atoms: ``target`` for two classes, true for the second; else ``target = class``.

    >>> label_names("win", [False, True]), label_names("kind", ["a", "b", "c"])
    (('win',), ('kind = a', 'kind = b', 'kind = c'))
    """
    return (target,) if len(classes) == 2 else tuple(f"{target} = {kind}" for kind in classes)


def compile_knowledge(
    theory: Theory | None,
    *,
    columns: Iterable[str],
    labels: Iterable[str] = (),
    encoding: str = "sdnf",
    confidence: float = 5.0,
    hard: bool = False,
    epsilon: float = 0.5,
    units: str = "paper",
) -> Knowledge:
    """Return a theory as the arrays of a trainable machine.

    Parameters
    ----------
    theory
        Formulae over columns and label atoms; None: no knowledge.
    columns, labels
        The visible units, see :func:`label_names`.
    encoding
        ``sdnf``: the whole formula, see above. ``rule``: only what a rule says when it fires, as the paper's
        authors did: ``body -> y`` becomes the cubes of y ∧ body. With the label last both give the same
        p(y | x); they differ in p(x), where ``sdnf`` also prefers rows that no rule fires on to rows that
        break one. [TG21, section 6]
    confidence
        The confidence that a formula without a weight begins with; one with a weight begins with its size,
        and -w: f enters as w: ~f.
    hard
        Whether formulae without a weight keep their confidence. They must then be satisfiable together.
        Where units are calibrated that confidence is W = 31 + Σ|w| + the confidence, whatever else is said:
        no soft formula outweighs a hard one.
    epsilon
        ε, strictly between 0 and 1.
    units
        ``paper`` or ``calibrated``: see :class:`Knowledge`.

    Examples
    --------
    >>> rules = compile_knowledge(Theory(["a & b -> y"]), columns=["a", "b"], labels=["y"])
    >>> rules.signs.toarray().T.tolist()
    [[1, -1, 0], [-1, 0, 0], [1, 1, 1]]
    """
    if encoding not in ("sdnf", "rule"):
        raise ValueError(f"expected the encoding 'sdnf' or 'rule', got {encoding!r}")
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must lie strictly between 0 and 1, got {epsilon}")
    if not 0 < confidence <= MAX_CONFIDENCE:
        raise ValueError(f"a confidence is a number above 0 and up to {MAX_CONFIDENCE:g}, got {confidence}")
    check_units(units)
    calibrated = units == "calibrated"
    columns, labels = tuple(columns), tuple(labels)
    place = _places(columns, labels)
    heads = tuple(map(known_as, labels))
    statements = () if theory is None else tuple(theory.statements)
    for name in names_of(*(statement.formula for statement in statements)):
        if name not in place:
            raise UnknownAtom(name, place, "table")
    if hard and theory is not None:
        _check_consistent(theory, heads)
    cubes = {
        number: [list(ordered(cube)) for cube in _cubes(statement, place, heads, encoding)]
        for number, statement in enumerate(statements)
    }
    merged = merge(cube_rows(cubes), len(statements), len(columns) + len(labels))
    signs = csc_array(
        (np.sign(merged.literals).astype(np.int8), np.abs(merged.literals) - 1, merged.starts),
        shape=(len(columns) + len(labels), len(merged.starts) - 1),
    )
    fixed = np.array([statement.weight is None for statement in statements], dtype=bool) & hard
    initial = np.array([_confidence(statement, confidence) for statement in statements], dtype=np.float64)
    if calibrated and fixed.any():
        initial[fixed] = _hard_confidence(initial[~fixed], confidence)
    return Knowledge(
        columns=columns,
        labels=labels,
        signs=signs,
        positive=merged.positive,
        owner=merged.owner,
        unit=merged.unit,
        initial=initial,
        fixed=fixed,
        statements=statements,
        epsilon=epsilon,
        calibrated=calibrated and len(merged.starts) > 1,
    )


def _places(columns: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    """Return the number of every visible unit by its name as atoms carry it, from 1."""
    place: dict[str, int] = {}
    for number, name in enumerate((*columns, *labels), start=1):
        known = known_as(name)
        if known in place:
            target = number > len(columns)
            what = "the target has the name of a column" if target else "two columns have one name"
            raise ValueError(
                f"every visible unit needs its own name, and {what}: {name!r}; rename one of them"
            )
        place[known] = number
    return place


def atom_of(name: str) -> str | None:
    """Return the name of a column as atoms carry it: near(a, b), whatever blanks it has; None: none can."""
    try:
        return atom_name(name)
    except ValueError:
        return None


def known_as(name: str) -> str:
    """Return the name of a column as atoms carry it; one that no formula can mention stays as it is."""
    return atom_of(name) or name


def ordered(cube: Iterable[int]) -> Numbers:
    """Return literals in the order of the atoms."""
    return tuple(sorted(cube, key=abs))


def _confidence(statement: Statement, confidence: float) -> float:
    if statement.weight is None:
        return confidence
    size = abs(float(statement.weight))
    if not 0 < size <= MAX_CONFIDENCE:
        raise WeightError(
            f"a trained formula's weight goes up to {MAX_CONFIDENCE:g} (limit MAX_CONFIDENCE) and is not too "
            f"small for a float, got {statement.weight}: {shown(statement.formula)}"
        )
    return size


def _hard_confidence(soft: Floats, confidence: float) -> float:
    """Return what no soft formulae outweigh: to break a hard one leaves at most e^-31 of a world."""
    found = 1.0 + MARGIN + float(soft.sum()) + confidence
    if found > MAX_CONFIDENCE:
        raise WeightError(
            f"hard formulae must outweigh all soft ones, which weigh {soft.sum():g} together: this leaves "
            f"no room below {MAX_CONFIDENCE:g} (limit MAX_CONFIDENCE): divide the weights"
        )
    return found


def _check_consistent(theory: Theory, labels: Sequence[str]) -> None:
    """Refuse formulae without weights that no row and no class could keep together."""
    given = exactly(1, *map(atom, labels)) if len(labels) > 1 else None
    found = prove(Theory(theory, atoms=labels), given=given)
    if found.satisfiable is False:
        raise ContradictoryKnowledge([str(statement) for statement in found.reasons])


# --- one formula ---------------------------------------------------------------------------------


def _cubes(
    statement: Statement, place: Mapping[str, int], labels: Sequence[str], encoding: str
) -> list[list[int]]:
    """Return the cubes of one formula as signed numbers of visible units."""
    parts = _rule_parts(statement, labels) if encoding == "rule" else _parts(statement, labels)
    cubes: list[list[int]] = []
    for heads, body in parts:
        try:
            flat = flat_choices(body, place, budget=MAX_KNOWLEDGE_CUBES)[0]
            if len(cubes) + len(heads) * len(flat) > MAX_KNOWLEDGE_CUBES:
                raise TooManyCubes("", MAX_KNOWLEDGE_CUBES=MAX_KNOWLEDGE_CUBES)
        except TooManyCubes:
            raise TooManyCubes(
                f"a formula of knowledge may become {MAX_KNOWLEDGE_CUBES} cubes (limit MAX_KNOWLEDGE_CUBES), "
                f"and this one needs more: {shown(statement.formula)}; give a part of it as its own column",
                MAX_KNOWLEDGE_CUBES=MAX_KNOWLEDGE_CUBES,
            ) from None
        cubes += [
            [*cube, *(place[name] if wanted else -place[name] for name, wanted in head)]
            for head in heads
            for cube in flat
        ]
    return cubes


Head = tuple[tuple[str, bool], ...]
"""Literals of label atoms, all to be true."""

Branch = tuple[list[Head], Formula]
"""Heads that exclude one another, and a formula over columns that each is joined with."""


def _parts(statement: Statement, labels: Sequence[str]) -> list[Branch]:
    """Return the parts of a formula, which exclude one another, the one without label atoms first."""
    formula = statement.formula
    if statement.weight is not None and statement.weight < 0:
        formula = ~formula
    mentioned = set(names_of(formula)) & set(labels)
    said: dict[Formula, list[int]] = {}  # f_k -> its classes; -1: all classes that are not mentioned
    kinds = [k for k in range(len(label_patterns(len(labels)))) if len(labels) <= 1 or labels[k] in mentioned]
    if len(labels) > len(kinds):
        kinds.append(-1)
    for k in kinds:
        truth = {labels[0]: k == 1} if len(labels) == 1 else {name: i == k for i, name in enumerate(labels)}
        said.setdefault(restrict(formula, truth), []).append(k)
    if len(said) == 1:
        return [([()], next(iter(said)))]
    bodies = list(said)
    parts: list[Branch] = [([()], reduce(_both, bodies))]
    for number, (body, kinds) in enumerate(said.items()):
        others = reduce(_both, bodies[:number] + bodies[number + 1 :])
        parts.append((_heads(kinds, labels, mentioned), _both(body, _negated(others))))
    return parts


def _heads(kinds: list[int], labels: Sequence[str], mentioned: set[str]) -> list[Head]:
    """Return heads that are true exactly for these classes, one of them at a time."""
    if len(labels) == 1:
        return [((labels[0], bool(k)),) for k in kinds]
    if -1 in kinds:
        return [tuple((name, False) for k, name in enumerate(labels) if name in mentioned and k not in kinds)]
    return [((labels[k], True),) for k in kinds]


def _rule_parts(statement: Statement, labels: Sequence[str]) -> list[Branch]:
    """Return the one part of a rule: its head, a literal of a label atom, and its body."""
    formula = statement.formula
    body, head = formula.args if formula.kind == "implies" else (TRUE, formula)
    bare = head.args[0] if head.kind == "not" else head
    negative = statement.weight is not None and statement.weight < 0
    if bare.kind != "atom" or bare.label not in labels or set(names_of(body)) & set(labels) or negative:
        raise ValueError(
            "encoding='rule' takes rules body -> y whose head is a label atom or its negation and whose body "
            f"mentions none, got {shown(formula)}{' of negative weight' if negative else ''}: "
            "use encoding='sdnf' for other formulae"
        )
    return [([((bare.label, head is bare),)], body)]


# --- formulae with some atoms known --------------------------------------------------------------


def restrict(formula: Formula, truth: Mapping[str, bool]) -> Formula:
    """Return ``formula`` with the atoms of ``truth`` replaced by their values, and constants folded away.

    >>> from lbm.knowledge.parser import parse
    >>> print(restrict(parse("a & b -> y"), {"y": False}))
    ~(a & b)
    """

    def visit(node: Formula, parts: list[Formula]) -> Formula:
        kind = node.kind
        if kind == "atom":
            return (TRUE if truth[node.label] else FALSE) if node.label in truth else node
        if kind == "not":
            return _negated(parts[0])
        if kind == "and":
            return _both(*parts)
        if kind in ("or", "implies", "iff", "xor") and not _known(parts):
            return make(kind, None, tuple(parts))
        if kind in ("or", "implies"):
            left = _negated(parts[0]) if kind == "or" else parts[0]
            return _negated(_both(left, _negated(parts[1])))
        if kind in ("iff", "xor"):
            first, second = parts if _known(parts[:1]) else reversed(parts)
            return second if (first is TRUE) == (kind == "iff") else _negated(second)
        return _count(node, parts) if kind in CARDINALITIES else node

    return fold(formula, visit)


def _known(parts: list[Formula]) -> bool:
    return any(part is TRUE or part is FALSE for part in parts)


def _negated(formula: Formula) -> Formula:
    if formula is TRUE or formula is FALSE:
        return FALSE if formula is TRUE else TRUE
    return formula.args[0] if formula.kind == "not" else ~formula


def _both(left: Formula, right: Formula) -> Formula:
    if left is FALSE or right is FALSE or left is _negated(right):
        return FALSE
    if left is TRUE or left is right:
        return right
    return left if right is TRUE else left & right


def _count(node: Formula, parts: list[Formula]) -> Formula:
    """Return a cardinality without the parts that are known."""
    bound = node.label - sum(part is TRUE for part in parts)
    left = tuple(part for part in parts if part is not TRUE and part is not FALSE)
    least = 0 if node.kind == "atmost" else bound
    most = len(left) if node.kind == "atleast" else bound
    if least > len(left) or most < 0:  # more wanted than there are; more there than wanted
        return FALSE
    return TRUE if least <= 0 and most >= len(left) else make(node.kind, bound, left)
