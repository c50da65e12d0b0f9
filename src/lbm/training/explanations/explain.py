"""Explanations: a prediction's log-odds as a bias and one term per hidden unit, exactly.

    log p(k | x) / p(l | x) = d·(L_k - L_l) + Σ_j [softplus(s_j(x, k)) - softplus(s_j(x, l))]

L_k are the label atoms of class k and s_j(x, k) the input of hidden unit j. Everything here is computed in
double precision from weights and biases; texts of knowledge only name the units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import fsum, prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csc_array

from lbm.arrays import Bools, Floats, Ints, slices
from lbm.knowledge.formula import atom, quote
from lbm.knowledge.theory import shown
from lbm.machine.calibrated import pull
from lbm.machine.rbm import Machine
from lbm.training.boltzmann.facts import Fact, Groups, every_way, facts_of
from lbm.training.boltzmann.knowledge import atom_of, label_patterns
from lbm.training.boltzmann.parameters import Parameters, parameters_of
from lbm.training.data.names import plain
from lbm.training.explanations.bars import Row, bar_table

if TYPE_CHECKING:
    from lbm.training.boltzmann.network import Network
    from lbm.training.explanations.changes import Change
    from lbm.training.explanations.context import Context
    from lbm.training.explanations.extract import Rule
    from lbm.training.explanations.shapley import ByColumn

    Source = Network | Parameters | Machine
else:
    Source = Any

MAX_COMPLETIONS: Final = 4096
"""Completions of a row with missing values up to which the most likely one is found by trying all."""

CHUNK: Final = 1 << 22
"""Hidden inputs held at once, (rows x classes x units)."""

SPARSE: Final = 0.1
"""The share of weights that are not zero below which a matrix is multiplied as a sparse one."""

LITERALS: Final = 4
"""Literals that the text of a unit shows; the others are counted."""

TERMS: Final = 10
"""Terms that an explanation prints; the others are summed."""


# --- a machine as a classifier -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LabelledMachine:
    """A machine, how many of its atoms, the last, are labels, and columns that hold one fact together."""

    machine: Machine
    labels: int
    groups: Groups = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.machine.atoms[: len(self.machine.atoms) - self.labels]

    @property
    def label_atoms(self) -> tuple[str, ...]:
        """The names of the label atoms."""
        return self.machine.atoms[len(self.columns) :]

    @cached_property
    def patterns(self) -> Floats:
        """Label atoms by class, shape (classes, labels)."""
        return label_patterns(self.labels).astype(np.float64)

    @cached_property
    def column_weights(self) -> csc_array | Floats:
        """W, shape (columns, units): sparse where most of it is zero."""
        weights = csc_array(self.machine.weights[: len(self.columns)])
        return weights if weights.nnz < SPARSE * weights.shape[0] * weights.shape[1] else weights.toarray()

    @cached_property
    def label_weights(self) -> Floats:
        """U, shape (labels, units)."""
        return np.asarray(self.machine.weights[len(self.columns) :].toarray())

    @cached_property
    def shares(self) -> Floats:
        """What part of a literal's weight is the unit's own, shape (units,): w/K where it is calibrated."""
        machine, found = self.machine, np.ones(self.machine.hidden)
        own = machine.unit_weights[: machine.calibrated]
        found[: machine.calibrated] = own / pull(own)
        return found

    @cached_property
    def speaking(self) -> Ints:
        """How many units of each formula touch a label atom, shape (formulae,)."""
        speaks = (self.label_weights != 0).any(axis=0)
        return np.bincount(self.machine.owner[speaks[self.machine.unit]], minlength=self.machine.formulae)

    @property
    def label_bias(self) -> Floats:
        """d, shape (labels,)."""
        return self.machine.visible_bias[len(self.columns) :]

    def class_names(self) -> tuple[str, ...]:
        """Return the classes as literals of label atoms: ``~y`` and ``y``, or one label atom each."""
        names = tuple(literal_text(name, True) for name in self.label_atoms)
        return (f"~{names[0]}", names[0]) if len(names) == 1 else names

    def inputs(self, x: Floats) -> Floats:
        """Return s_j with every label atom false, shape (rows, units), for rows of shape (rows, columns)."""
        return np.asarray((self.column_weights.T @ x.T).T + self.machine.hidden_bias)

    def scores(self, x: Floats, *, joint: bool = False) -> Floats:
        """Return -F(x, k), shape (rows, classes); without ``joint`` less the columns' own biases."""
        added = self.patterns @ self.label_weights
        out = np.tile(self.patterns @ self.label_bias, (len(x), 1))
        step = max(1, CHUNK // max(1, added.size))
        for part in slices(len(x), step):
            out[part] += np.logaddexp(0.0, self.inputs(x[part])[:, None, :] + added).sum(axis=2)
        return out + (x @ self.machine.visible_bias[: len(self.columns)])[:, None] if joint else out


def as_classifier(source: Source, labels: Sequence[str] = ()) -> LabelledMachine:
    """Return a network, or a machine whose last atoms are ``labels``, as a classifier."""
    if isinstance(source, Machine):
        if not labels or source.atoms[-len(labels) :] != tuple(labels):
            raise ValueError(
                f"expected labels= to name the last atoms of the machine, which end in "
                f"{', '.join(source.atoms[-3:])}, got {', '.join(labels) or 'none'}"
            )
        return LabelledMachine(source, len(labels))
    if not source.knowledge.labels:
        raise ValueError("expected a machine with label atoms, got one without: it has no classes to compare")
    learned = source if isinstance(source, Parameters) else parameters_of(source)
    return LabelledMachine(learned.machine, len(learned.knowledge.labels), learned.together)


def unit_literals(machine: Machine, unit: int) -> tuple[list[int], list[float]]:
    """Return the numbers of the atoms that a unit touches, from 1, and their weights, the largest first."""
    column = slice(machine.weights.indptr[unit], machine.weights.indptr[unit + 1])
    numbers, weights = machine.weights.indices[column] + 1, machine.weights.data[column]
    order = np.argsort(-np.abs(weights), kind="stable")
    order = order[weights[order] != 0]
    return numbers[order].tolist(), weights[order].tolist()


def literal_text(name: str, truth: bool) -> str:
    """Return a literal as the text format writes it."""
    known = atom_of(name)
    if known is not None and not truth and " <" in known:  # 'glu > 150' for ~'glu <= 150'
        return str(plain(~atom(known)))
    return ("" if truth else "~") + (repr(name) if known is None else quote(known))


def as_rows(x: Any, columns: Sequence[str]) -> Floats:
    """Return rows as floats, shape (rows, columns); sparse ones become dense."""
    found = np.asarray(x.toarray() if hasattr(x, "toarray") else x, dtype=np.float64)
    if found.ndim != 2 or found.shape[1] != len(columns):
        raise ValueError(f"expected rows of {len(columns)} columns, got an array of shape {found.shape}")
    return found


# --- what people read ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Term:
    """What one hidden unit adds to the log-odds.

    ``rule`` names the unit: the formulae it serves, or its literals with their weights; ``formulae`` holds
    the numbers of those formulae.
    """

    value: float
    unit: int
    rule: str
    formulae: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class About:
    """What an explanation is about: the model's context, a row without gaps, the numbers of two classes."""

    context: Context
    row: Floats
    kind: int
    other: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a class and not another: log_odds = bias + Σ values of the terms.

    Attributes
    ----------
    kind, other
        The class explained and the one it is compared with.
    log_odds
        log p(kind | x) / p(other | x).
    bias
        What the label atoms themselves weigh.
    terms
        One per hidden unit that touches a label atom, the largest |value| first; a unit that touches none
        weighs the same for every class.
    completed
        Literals that stand for missing values: a sum over completions is no sum of terms, so that the most
        likely completion is explained instead. Empty: nothing was missing.
    certain
        Whether no completion is more likely; False: they were too many to try, and a good one was taken.
    about
        What :meth:`by_column`, ``rules`` and :meth:`change` ask; None: there is a machine alone.
    """

    kind: str
    other: str
    log_odds: float
    bias: float
    terms: tuple[Term, ...]
    completed: tuple[str, ...] = ()
    certain: bool = True
    about: About | None = field(default=None, repr=False, compare=False)

    @property
    def compares(self) -> bool:
        """Whether there are background rows, which :meth:`by_column` asks for."""
        return self.about is not None and self.about.context.compares

    def by_column(self) -> ByColumn:
        """Return what each column of the table adds to the log-odds (Shapley values).

        They and the mean over the model's background rows add up to ``log_odds``; each has its error, which
        is 0 where all sets of columns were taken. See :mod:`lbm.training.explanations.shapley`.
        """
        about = self._asked()
        return about.context.by_column(about.row, about.kind, about.other)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules that fire, of those that stand for the machine, the heaviest first.

        They are extracted once for a model, from rows like those of its background.
        """
        about = self._asked()
        return about.context.rules(about.row)

    def change(self, *, keep: Iterable[str] = ()) -> Change:
        """Return what would have to be otherwise for the class ``other`` (a counterfactual).

        The fewest columns that :func:`lbm.best` finds on the extracted rules and the model confirms; columns
        named in ``keep`` stay as they are. Where there is none, :class:`Change` says so.
        """
        about = self._asked()
        return about.context.change(about.row, about.kind, about.other, tuple(keep))

    def _asked(self) -> About:
        if self.about is None:
            raise ValueError(
                "this explanation is of a machine alone, which knows no table: ask LBMClassifier.explain"
            )
        return self.about

    def _repr_html_(self) -> str:
        rows: list[Row] = [("bias", self.bias, 0.0)]
        rows += [(term.rule, term.value, 0.0) for term in self.terms[:TERMS]]
        if rest := self.terms[TERMS:]:
            rows.append((f"{len(rest)} others", fsum(term.value for term in rest), 0.0))
        head = f"log-odds of {self.kind} against {self.other}: {self.log_odds:+.3f}"
        parts = [bar_table(rows, head=head)]
        if self.compares:
            parts.append(bar_table(self.by_column().bars(), head=self.by_column().head()))
        return "".join(parts)

    def text(self, *, terms: int = TERMS) -> str:
        """Return the explanation as lines, the terms past ``terms`` summed in one."""
        lines = [f"log-odds of {self.kind} against {self.other}: {self.log_odds:+.3f}"]
        if self.completed:
            how = "the most likely" if self.certain else "a likely"
            lines.append(f"  with missing values taken as {how}: {', '.join(self.completed)}")
        lines.append(f"  {self.bias:+9.3f}  bias")
        lines += [f"  {term.value:+9.3f}  {term.rule}" for term in self.terms[:terms]]
        if rest := self.terms[terms:]:
            value = fsum(term.value for term in rest)
            lines.append(f"  {value:+9.3f}  {len(rest)} other{'s' if len(rest) > 1 else ''}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as what JSON can hold."""
        found = asdict(replace(self, about=None))
        del found["about"]
        return found


# --- explaining ----------------------------------------------------------------------------------


def explain_rows(
    source: Source,
    x: Any,
    *,
    kinds: ArrayLike | None = None,
    others: ArrayLike | None = None,
    labels: Sequence[str] = (),
    classes: Sequence[object] | None = None,
    context: Context | None = None,
) -> list[Explanation]:
    """Return an explanation per row.

    Parameters
    ----------
    source
        A network, whose columns that hold one fact together are completed together; or a machine, whose last
        atoms are then ``labels``.
    x
        Rows, shape (rows, columns); NaN is a missing value, see :class:`Explanation`.
    kinds, others
        Numbers of the classes to explain and to compare with, one for all or one per row; by default the
        most likely class, and the most likely of the others.
    classes
        The classes as they are to be called; by default by their label atoms.
    context
        What explanations compare rows with, for more than the terms.

    Examples
    --------
    >>> from lbm import Theory
    >>> from lbm.training.boltzmann.knowledge import compile_knowledge
    >>> from lbm.training.boltzmann.network import Network
    >>> rules = compile_knowledge(Theory(["bird -> flies"]), columns=["bird"], labels=["flies"])
    >>> print(explain_rows(Network(rules), [[1]])[0])
    log-odds of flies against ~flies: +2.500
         +0.000  bias
         +2.500  bird -> flies
    """
    model = as_classifier(source, labels)
    rows = as_rows(x, model.columns)
    names = model.class_names() if classes is None else tuple(map(str, classes))
    if len(names) != len(model.patterns):
        raise ValueError(f"expected {len(model.patterns)} classes, got {len(names)}: {', '.join(names)}")
    filled, certain = complete_rows(model, rows)
    scores = model.scores(filled)
    chosen = _chosen(scores.argmax(axis=1) if kinds is None else kinds, len(rows), names)
    rest = scores.copy()
    rest[np.arange(len(rows)), chosen] = -np.inf
    compared = _chosen(rest.argmax(axis=1) if others is None else others, len(rows), names)
    if same := np.flatnonzero(chosen == compared).tolist():
        raise ValueError(
            f"a class is compared with another, got {names[chosen[same[0]]]} twice in row {same[0]}"
        )
    touching = np.flatnonzero((model.label_weights != 0).any(axis=0))
    named = {j: (unit_text(model, j), model.machine.units[j].formulae) for j in touching.tolist()}
    added = model.patterns @ model.label_weights
    found = []
    for number, row in enumerate(filled):
        k, other = int(chosen[number]), int(compared[number])
        inputs = model.inputs(row[None])[0]
        values = np.logaddexp(0.0, inputs + added[k]) - np.logaddexp(0.0, inputs + added[other])
        bias = float((model.patterns[k] - model.patterns[other]) @ model.label_bias)
        order = touching[np.argsort(-np.abs(values[touching]), kind="stable")].tolist()
        missing = np.flatnonzero(np.isnan(rows[number])).tolist()
        found.append(
            Explanation(
                kind=names[k],
                other=names[other],
                log_odds=fsum([bias, *values[touching].tolist()]),
                bias=bias,
                terms=tuple(Term(float(values[j]), j, *named[j]) for j in order),
                completed=tuple(literal_text(model.columns[i], bool(row[i])) for i in missing),
                certain=bool(certain[number]),
                about=None if context is None else About(context, row, k, other),
            )
        )
    return found


def _chosen(kinds: ArrayLike, rows: int, names: Sequence[str]) -> Ints:
    found = np.broadcast_to(np.asarray(kinds, dtype=np.int64), (rows,))
    if ((found < 0) | (found >= len(names))).any():
        raise ValueError(
            f"classes are numbers from 0 to {len(names) - 1}, got {found.min()} to {found.max()}"
        )
    return found


def unit_text(model: LabelledMachine, unit: int) -> str:
    """Return what a hidden unit stands for: the formulae it serves, or its largest weights."""
    machine = model.machine
    formulae = machine.units[unit].formulae
    if formulae and machine.theory is not None:
        text = " and ".join(shown(plain(machine.theory.statements[number].formula)) for number in formulae)
        # A formula with several cubes about the label: say which of them this one is.
        return f"{text} (by {machine.cubes[unit]})" if model.speaking[list(formulae)].max() > 1 else text
    literals = list(zip(*unit_literals(machine, unit), strict=True))
    parts: list[str] = []
    for on_label in (True, False):
        mine = [(n, w) for n, w in literals if (n > len(model.columns)) == on_label]
        parts += [f"{literal_text(machine.atoms[n - 1], True)} {w:+.2f}" for n, w in mine[:LITERALS]]
        parts += [f"{len(mine) - LITERALS} more"] if len(mine) > LITERALS else []
    return f"unit {unit}: {', '.join(parts)}, bias {machine.hidden_bias[unit]:+.2f}"


# --- missing values ------------------------------------------------------------------------------


def complete_rows(model: LabelledMachine, x: Floats) -> tuple[Floats, Bools]:
    """Return rows with their missing values as in the most likely completion, p(x_missing | x_seen).

    Beyond MAX_COMPLETIONS a completion is improved, one missing fact at a time, until none makes it more
    likely; the second array, shape (rows,), is False there.
    """
    filled, certain = x.copy(), np.ones(len(x), dtype=bool)
    for number in np.flatnonzero(np.isnan(x).any(axis=1)).tolist():
        parts = facts_of(np.flatnonzero(np.isnan(x[number])).tolist(), model.groups)
        filled[number, np.isnan(x[number])] = 0.0
        certain[number] = prod(len(patterns) for _, patterns in parts) <= MAX_COMPLETIONS
        filled[number] = (_best_of_all if certain[number] else _climb)(model, filled[number], parts)
    return filled, certain


def _likelihoods(model: LabelledMachine, rows: Floats) -> Floats:
    return np.asarray(np.logaddexp.reduce(model.scores(rows, joint=True), axis=1))


def _best_of_all(model: LabelledMachine, row: Floats, parts: Sequence[Fact]) -> Floats:
    every = every_way(row, parts)
    return np.asarray(every[_likelihoods(model, every).argmax()])


def _climb(model: LabelledMachine, row: Floats, parts: Sequence[Fact]) -> Floats:
    bias = model.machine.visible_bias
    for columns, patterns in parts:
        row[columns] = patterns[(patterns @ bias[columns]).argmax()]
    best = float(_likelihoods(model, row[None])[0])
    better = True
    while better:  # each round is likelier than the last, and there are finitely many
        better = False
        for columns, patterns in parts:
            tried = np.tile(row, (len(patterns), 1))
            tried[:, columns] = patterns
            worth = _likelihoods(model, tried)
            if worth.max() > best:
                row, best, better = tried[worth.argmax()], float(worth.max()), True
    return row
