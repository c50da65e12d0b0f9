"""Rule extraction: weights and biases -> weighted rules, without a look at the text that knowledge began as.

    rules_of_machine   every hidden unit as the cubes it is: exact for machines made of knowledge
    faithful           few rules body -> label, chosen and weighted so that their P(y | x) is the machine's
    confidence         the published fixed point, one rule per hidden unit

An extracted classifier is a theory: class k has the log-odds score(x, k) - score(x, l) against class l.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array
from scipy.sparse.linalg import lsqr

from lbm.arrays import Floats, Ints
from lbm.knowledge.formula import atom, exactly, holds
from lbm.knowledge.numbers import Weight
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory, shown
from lbm.machine.calibrated import MARGIN
from lbm.machine.rbm import Machine
from lbm.training.boltzmann.conjectures import cube_formula
from lbm.training.boltzmann.facts import Groups, facts_of
from lbm.training.boltzmann.knowledge import Numbers, atom_of, known_as, ordered
from lbm.training.data.names import plain
from lbm.training.explanations.explain import (
    LabelledMachine,
    Source,
    as_classifier,
    as_rows,
    literal_text,
    unit_literals,
)
from lbm.training.explanations.faithful import fit_rules

METHODS: Final = ("faithful", "confidence")

PIECES: Final = 64
"""Parts that the worlds of one unit are split into, where it is not a cube."""

MEASURED_ROWS: Final = 1 << 16
"""Rows that fidelity is measured on; of more, so many are drawn."""

FITTED_ROWS: Final = 4096
"""Rows that rules are fitted to, of those."""


# --- results -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a formula of the knowledge has moved: its confidence at first and now.

    ``spread`` is the largest distance of a literal's weight from its unit's mean, as a share of that mean;
    it is 0 while literals are tied.
    """

    formula: str
    began: float
    now: float
    spread: float

    def __str__(self) -> str:
        apart = f", literals up to {self.spread:.0%} apart" if self.spread > 1e-6 else ""
        return f"{self.formula}: confidence {self.began:.3g}, now {self.now:.3g}{apart}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One extracted rule: its text, its weight, the literals of its body.

    ``drift`` is there where the literals are those of a unit of the knowledge: how its formulae have moved.
    """

    text: str
    weight: float
    literals: tuple[str, ...]
    drift: tuple[Drift, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """A theory that stands for a trained machine. Its text, figures as comments, parses as that theory.

    Attributes
    ----------
    theory, rules
        The rules, and their facts in the same order. With more than two classes the theory ends with the hard
        formula that exactly one label atom is true.
    fidelity, accuracy, undecided
        Shares of rows: on which theory and machine predict the same class; whose class the theory predicts
        (None: classes were not given); on which no class is ahead in the theory, so that it predicts the
        first of the best.
    rows, drawn
        How many rows these shares are over, and whether they were drawn for want of data.
    knowledge
        How far each formula of the knowledge has moved.
    method
        ``faithful`` or ``confidence``.
    classifier
        The rules as a classifier of tables like those that the machine was fitted to: ``predict`` and
        ``predict_proba`` ask it. None: they were extracted from a network, which knows no table.
    """

    theory: Theory
    rules: tuple[Rule, ...]
    fidelity: float
    accuracy: float | None
    undecided: float
    rows: int
    drawn: bool
    knowledge: tuple[Drift, ...]
    method: str
    classifier: Any = field(default=None, repr=False, compare=False)

    def predict(self, X: Any) -> Any:
        """Return the class that the rules alone give each row; ``fidelity``: how often the machine agrees."""
        return self._asked().predict(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return P(class | row) of the rules alone, shape (rows, classes), as :func:`lbm.ask` says it."""
        found: Floats = self._asked().predict_proba(X)
        return found

    def _asked(self) -> Any:
        if self.classifier is None:
            raise ValueError(
                "these rules were extracted from a network, which knows no table: "
                "LBMClassifier.rules gives rules that predict"
            )
        return self.classifier

    def __str__(self) -> str:
        literals = sum(len(rule.literals) for rule in self.rules)
        figures = f"fidelity {self.fidelity:.2%} of {self.rows} {'drawn ' if self.drawn else ''}rows"
        figures += "" if self.accuracy is None else f", accuracy {self.accuracy:.2%}"
        figures += f", undecided {self.undecided:.2%}" if self.undecided else ""
        facts = [f"rules {len(self.rules)}, literals {literals}, method {self.method}", figures]
        facts += [f"began as {drift}" for drift in self.knowledge]
        return "\n".join([*(f"# {fact}" for fact in facts), self.text()])

    def text(self) -> str:
        """Return the theory as people say it: ``'glu > 150'`` for a negated ``'glu <= 150'``.

        ``LBMClassifier.from_knowledge`` takes it for what it says.
        """
        return str(Theory([_said(statement) for statement in self.theory], atoms=self.theory.atoms))

    def to_dict(self) -> dict[str, Any]:
        """Return the extraction as what JSON can hold, the theory as text."""
        facts = asdict(replace(self, classifier=None))
        del facts["classifier"]
        return {**facts, "theory": self.text()}


def _said(statement: Statement) -> Statement:
    return replace(statement, formula=plain(statement.formula))


# --- a machine as the cubes it is ----------------------------------------------------------------


def rules_of_machine(machine: Machine, *, pieces: int = PIECES) -> Theory:
    """Return soft formulae whose score is the machine's, up to a constant, in every world.

        -min_h E(x, h)/ε = Σ_i a_i x_i/ε + Σ_j max(0, s_j(x))/ε

    Of a machine with calibrated units it is Σ_i a_i x_i + Σ_j w_j [cube j is true in x] + Σ_j max(0, s_j(x)),
    the last sum over the other units: then nothing is divided by ε.

    A unit that only one assignment of its literals switches on is that cube. Such are all units of a
    translated theory, whose score (and W for each hard formula) comes back; definitional atoms stay atoms.
    Of another unit, worlds are split by its literals, the strongest first, until max(0, s_j) is linear in
    each part; past ``pieces`` parts, lines through its least and largest value stand for it.

    Examples
    --------
    >>> from lbm import Theory, translate
    >>> print(rules_of_machine(translate(Theory.parse("2: a -> b"))))
    2: a & b
    2: ~a
    """
    found: dict[Numbers, float] = {(i + 1,): bias for i, bias in enumerate(machine.visible_bias.tolist())}
    for unit in range(machine.hidden):
        for cube, value in _cubes_of_unit(machine, unit, pieces):
            found[cube] = found.get(cube, 0.0) + value
    rules = ((cube_formula(cube, machine.atoms), value) for cube, value in found.items() if cube)
    depth = 1.0 if machine.calibrated else machine.epsilon
    weighed = ((formula, _weight(value / depth, digits=12)) for formula, value in rules)
    return Theory([Statement(formula, weight) for formula, weight in weighed if weight], atoms=machine.atoms)


def _cubes_of_unit(machine: Machine, unit: int, pieces: int) -> Iterator[tuple[Numbers, float]]:
    """Yield cubes and weights that add up to max(0, s_j(x)) = max(0, low + Σ_i |w_i| [wanted literal i])."""
    numbers, weights = unit_literals(machine, unit)
    wanted = [number if w > 0 else -number for number, w in zip(numbers, weights, strict=True)]
    if unit < machine.calibrated:
        yield ordered(wanted), float(machine.unit_weights[unit])
        return
    gains = np.abs(weights)
    left = [*np.cumsum(gains[::-1])[::-1].tolist(), 0.0]  # Σ of the gains from each place on
    least = float(gains[-1]) if wanted else 0.0

    def error(low: float, place: int) -> float:
        high = low + left[place]
        return 0.0 if low >= 0 or high <= least else -low * high / left[place]

    low = float(machine.hidden_bias[unit]) + sum(w for w in weights if w < 0)
    tie = count()
    parts: list[tuple[float, int, float, Numbers]] = [(-error(low, 0), next(tie), low, ())]
    while parts[0][0] < 0 and len(parts) < pieces:
        _, _, low, cube = heappop(parts)
        place = len(cube)
        for value, literal in ((low, -wanted[place]), (low + float(gains[place]), wanted[place])):
            heappush(parts, (-error(value, place + 1), next(tie), value, (*cube, literal)))
    for _, _, low, cube in parts:
        place, high = len(cube), low + left[len(cube)]
        if high <= 0:
            continue
        if place < len(wanted) and high <= least:
            yield ordered((*cube, *wanted[place:])), high
            continue
        yield ordered(cube), max(low, 0.0)
        slope = 1.0 if low >= 0 else high / left[place]
        for literal, gain in zip(wanted[place:], gains[place:].tolist(), strict=True):
            yield ordered((*cube, literal)), slope * gain


def _weight(value: float, *, digits: int) -> Weight:
    rounded = Decimal(f"{value:.{digits}g}")
    return int(rounded) if rounded == rounded.to_integral_value() else rounded


# --- a machine as a classifier -------------------------------------------------------------------


def extract_rules(
    source: Source,
    x: Any = None,
    y: ArrayLike | None = None,
    *,
    method: str = "faithful",
    max_rules: int = 40,
    fidelity: float = 0.99,
    labels: Sequence[str] = (),
    seed: int = 0,
) -> Extraction:
    """Return weighted rules that stand for a trained machine.

    ``faithful`` tries conjunctions of the literals that switch hidden units on or off. The one that, improved
    by a literal more or less, brings P(y | x) of the rules nearest to the machine's becomes a rule, all
    weights are fitted anew, and so on; what is left is a rule on the label itself. ``confidence``: for each
    hidden unit begin with the signs of its weights and c = mean |w|; drop literals with |w| ≤ c/2 and
    recompute c, until nothing changes. The published rule ``c: h <-> literals`` becomes ``c: literals``, as
    in a machine of cubes. Biases play no part, nor do units that keep no label atom.
    [Tran and d'Avila Garcez, Deep Logic Networks, 2018]

    Parameters
    ----------
    source
        A network, whose columns that hold one fact together are drawn together; or a machine, whose last
        atoms are then ``labels``.
    x
        Rows that rules are fitted to and fidelity is measured on, shape (rows, columns); those with missing
        values are left out. They need no classes: more rows make rules that are faithful to more. None: rows
        are drawn evenly, or all are taken where they are few.
    y
        Numbers of the classes, shape (rows,), for accuracy alone.
    max_rules, fidelity
        Of ``faithful``: at most so many rules, and no more once so large a share of rows agrees.
    seed
        Of every draw.
    """
    if method not in METHODS:
        raise ValueError(f"expected the method 'faithful' or 'confidence', got {method!r}")
    if max_rules < 1:
        raise ValueError(f"max_rules is a whole number from 1 up, got {max_rules}")
    if not 0 < fidelity <= 1:
        raise ValueError(f"fidelity is a share, above 0 and up to 1, got {fidelity}")
    model, random = as_classifier(source, labels), np.random.default_rng(seed)
    rows, kinds = _given(model, x, y, random)
    drawn = not len(rows)
    if drawn:
        rows, kinds = draw_rows(len(model.columns), FITTED_ROWS, random, model.groups), None
    wanted = model.scores(rows)
    first = len(model.columns) + 1  # the number of the first label atom
    if method == "confidence":
        found = [
            (cube, value, cube_formula(cube, model.machine.atoms)) for cube, value in fixed_points(model)
        ]
    else:
        part = random.permutation(len(rows))[:FITTED_ROWS]
        found = []
        for body, label, value in fit_rules(model, rows[part], wanted[part], max_rules, fidelity):
            head = (first + label) * (1 if value > 0 else -1)
            said = cube_formula([head], model.machine.atoms)
            told = _without_sisters(body, model.groups)
            formula = cube_formula(told, model.machine.atoms) >> said if body else said
            found.append(((*body, head), abs(value), formula))
    drifts, by_cube = _drifts(source, model.machine)
    statements, rules = [], []
    for cube, value, formula in found:
        if weight := _weight(value, digits=3):
            statements.append(Statement(formula, weight))
            body = _without_sisters([n for n in cube if abs(n) < first], model.groups)
            literals = tuple(literal_text(model.columns[abs(n) - 1], n > 0) for n in body)
            moved = tuple(drifts[number] for number in by_cube.get(cube, ()))
            rules.append(Rule(str(_said(statements[-1])), float(weight), literals, moved))
    if model.labels > 1:
        statements.append(Statement(exactly(1, *map(atom, model.label_atoms))))
    theory = Theory(statements, atoms=[name for name in model.machine.atoms if atom_of(name) is not None])
    behind = [_behind(theory_scores(theory, model, rows)), _behind(wanted)]
    predicted, chosen = (gaps.argmin(axis=1) for gaps in behind)
    return Extraction(
        theory=theory,
        rules=tuple(rules),
        fidelity=float((predicted == chosen).mean()),
        accuracy=None if kinds is None else float((predicted == kinds).mean()),
        undecided=float(((behind[0] == 0).sum(axis=1) > 1).mean()),
        rows=len(rows),
        drawn=drawn,
        knowledge=tuple(drifts),
        method=method,
    )


def _without_sisters(body: Iterable[int], groups: Groups) -> Numbers:
    """Return a body in which the other one of two categories stands for a negated one.

    Literals that others of the same column imply are left out, such as ``age <= 30`` beside ``age <= 20``.
    """
    other: dict[int, int] = {}
    for columns, patterns in groups:
        ways = np.asarray(patterns)
        ways = ways[ways.any(axis=1)]  # rows of which no category is kept have no sister
        if ways.shape == (2, 2) and (ways.sum(axis=1) == 1).all():
            one, two = columns
            other |= {-one - 1: two + 1, -two - 1: one + 1}
    found = {other.get(n, n) for n in body}
    for columns, patterns in groups:
        ways = np.asarray(patterns, dtype=np.float64) > 0.5
        where = {
            n: ways[:, list(columns).index(abs(n) - 1)] == (n > 0)
            for n in sorted(found, key=lambda n: (n > 0, abs(n)))
            if abs(n) - 1 in columns
        }
        for n in list(where):
            rest = [true for m, true in where.items() if m != n]
            if rest and not (np.all(rest, axis=0) & ~where[n]).any():
                del where[n]
                found.remove(n)
    return ordered(found)


def _behind(scores: Floats) -> Floats:
    """Return how far each class is behind the best, without the rounding errors of sums."""
    best = scores.max(axis=1, keepdims=True)
    gaps = best - scores
    return np.where(gaps <= 1e-12 * np.maximum(abs(scores).max(axis=1, keepdims=True), 1e-12), 0.0, gaps)


def _given(
    model: LabelledMachine, x: Any, y: ArrayLike | None, random: np.random.Generator
) -> tuple[Floats, Ints | None]:
    """Return the rows that miss nothing, at most MEASURED_ROWS of them, and their classes."""
    if x is None:
        return np.zeros((0, len(model.columns))), None
    x = x.tocsr() if hasattr(x, "tocsr") else np.asarray(x)
    kinds = None if y is None else np.asarray(y, dtype=np.int64)
    if kinds is not None and kinds.shape != (x.shape[0],):
        raise ValueError(
            f"expected a class for each of {x.shape[0]} rows, got an array of shape {kinds.shape}"
        )
    part = np.sort(random.permutation(x.shape[0])[:MEASURED_ROWS])
    rows = as_rows(x[part], model.columns)
    whole = ~np.isnan(rows).any(axis=1)
    return rows[whole], None if kinds is None else kinds[part][whole]


def draw_rows(columns: int, number: int, random: np.random.Generator, groups: Groups = ()) -> Floats:
    """Return rows drawn evenly, shape (rows, columns); all there are, where they are at most ``number``."""
    parts = facts_of(range(columns), groups)
    total = 1
    for _, patterns in parts:
        total = min(total * len(patterns), number + 1)
    rows, which = np.zeros((min(total, number), columns)), np.arange(total)
    for places, patterns in parts:
        size = len(patterns)
        rows[:, places] = patterns[which % size if total <= number else random.integers(size, size=number)]
        which //= size
    return rows


def theory_scores(theory: Theory, model: LabelledMachine, x: Floats) -> Floats:
    """Return the score of every row and class in a theory over columns and label atoms, (rows, classes)."""
    world: dict[str, Any] = {
        known_as(name): values for name, values in zip(model.columns, x.T > 0.5, strict=True)
    }
    scores = np.zeros((len(x), len(model.patterns)))
    for k, pattern in enumerate(model.patterns):
        world |= {known_as(name): v > 0 for name, v in zip(model.label_atoms, pattern, strict=True)}
        for statement in theory:
            if statement.weight is not None:
                scores[:, k] += float(statement.weight) * np.asarray(holds(statement.formula, world))
    return scores


def fixed_points(model: LabelledMachine) -> Iterator[tuple[Numbers, float]]:
    """Yield literals and confidence of the hidden units that keep a label atom, see :func:`extract_rules`."""
    for unit in range(model.machine.hidden):
        numbers, weights = map(np.array, unit_literals(model.machine, unit))
        kept = len(weights)  # of the largest
        while kept and (left := int((abs(weights[:kept]) > abs(weights[:kept]).mean() / 2).sum())) < kept:
            kept = left
        if (numbers[:kept] > len(model.columns)).any():
            cube = (numbers[:kept] * np.sign(weights[:kept]).astype(np.int64)).tolist()
            known = unit < model.machine.calibrated  # its literals weigh 30 more than it does
            yield (
                ordered(cube),
                float(model.machine.unit_weights[unit] if known else abs(weights[:kept]).mean()),
            )


def _drifts(source: Source, machine: Machine) -> tuple[list[Drift], dict[Numbers, list[int]]]:
    """Return how each formula has moved, and the formulae by the cube of a unit that serves them.

    Confidences κ_i come from the weights of units, κ_j = Σ_{i owns j} κ_i, as the least change that fits.
    """
    known = None if isinstance(source, Machine) else source.knowledge
    if known is None or not known.statements:
        return [], {}
    signs = csc_array(known.signs, dtype=np.float64)
    sizes = np.diff(signs.indptr)
    said = sizes > 0  # a unit without literals weighs the same in every world
    aligned = csc_array(machine.weights[:, : known.units].multiply(signs))
    mean = np.asarray(aligned.sum(axis=0)) / np.maximum(sizes, 1) - (MARGIN if machine.calibrated else 0.0)
    apart = mean + (MARGIN if machine.calibrated else 0.0)
    off = abs(aligned - abs(signs) * apart).max(axis=0).toarray().ravel()
    spread = off / np.maximum(abs(mean), np.finfo(float).tiny)
    owns = csc_array(
        (np.ones(len(known.unit)), (known.unit, known.owner)), shape=(known.units, len(known.initial))
    )
    change = lsqr(owns.tocsr()[said], (mean - owns @ known.initial)[said], atol=1e-12, btol=1e-12)[0]
    widest = np.zeros(len(known.initial))
    np.maximum.at(widest, known.owner, spread[known.unit])
    drifts = [
        Drift(
            shown(plain(s.formula if s.weight is None or s.weight > 0 else ~s.formula)), *map(float, figures)
        )
        for s, *figures in zip(
            known.statements, known.initial, np.round(known.initial + change, 9) + 0.0, widest, strict=True
        )
    ]
    by_cube: dict[Numbers, list[int]] = {}
    for unit, owner in zip(known.unit.tolist(), known.owner.tolist(), strict=True):
        numbers, weights = unit_literals(machine, unit)
        cube = ordered(n if w > 0 else -n for n, w in zip(numbers, weights, strict=True))
        by_cube.setdefault(cube, []).append(owner)
    return drifts, by_cube
