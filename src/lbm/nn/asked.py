"""What a layer is asked: a theory with named inputs and queries, and what their values mean in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Ints
from lbm.errors import UnknownAtom
from lbm.knowledge.formula import Formula, atom, atoms_of, iff
from lbm.knowledge.parser import Statement, parse
from lbm.knowledge.theory import Theory
from lbm.nn.named import Choice, LayerQuery, UnfitInputs, groups_of_theory, inputs_of, queries_of
from lbm.reasoning.answers import Result
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.sums import SummedPart

SHOWN: Final = 20
"""Components that a plan prints, and atoms that an error names."""


@dataclass(frozen=True, slots=True, repr=False)
class LayerPlan(Result):
    """How a layer is computed: each component's method and terms, and multiplications a row of one pass."""

    columns: int
    work: int
    parts: tuple[SummedPart, ...]

    def lines(self) -> list[str]:
        """Return it as lines of text, large components first."""
        number = len(self.parts)
        components = "1 component" if number == 1 else f"{number} components"
        parts = sorted(self.parts, key=lambda part: -part.terms)[:SHOWN]
        return [
            f"{self.columns} columns, {components}; {self.work:,} numbers a row in one pass",
            *(f"{len(part.atoms)} atoms by {part.method}: {part.terms:,} terms" for part in parts),
        ]

    def facts(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {
            "columns": self.columns,
            "work": self.work,
            "components": [{**asdict(part), "atoms": len(part.atoms)} for part in self.parts],
        }


class AskedLayer:
    """A theory with its inputs and queries; parameters are those of a LogicLayer.

    Attributes
    ----------
    base
        The theory with the evidence that is certain.
    extended
        That with an atom for each query that is a formula.
    choices
        Those of the inputs, then those of the queries that are no inputs.
    values
        Of each query the choices that its value settles, and what each value of it makes them.
    warned
        Whether rows that contradict it were warned of.
    energy
        The free energy, where that is the loss.
    """

    def __init__(
        self,
        theory: Theory | str,
        inputs: Iterable[Any] | str,
        queries: Iterable[Any] | str | Formula | None,
        given: Formula | str | None,
        groups: bool,
        seconds: float | None,
        samples: int = 1000,
    ) -> None:
        if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
            raise ValueError(f"expected a number of samples from 1 up, got {samples!r}")
        self.samples = samples
        self.theory = Theory.parse(theory) if isinstance(theory, str) else theory
        if not isinstance(self.theory, Theory):
            raise TypeError(f"expected a Theory or its text, got {theory!r}")
        self.given = parse(given) if isinstance(given, str) else given
        self.groups, self.seconds = groups, seconds
        self.warned = False
        self.energy: Callable[[Tensor, Tensor | None], Tensor] | None = None
        self.atoms = self.theory.atoms
        self.base = self.theory
        if self.given is not None:
            known = set(self.atoms)
            for name in atoms_of(self.given):
                if name not in known:
                    raise UnknownAtom(name, self.atoms)
            self.base = Theory.from_parts(self.atoms, (*self.theory, Statement(self.given)))
        found = groups_of_theory(self.base)
        self.inputs: tuple[Choice, ...] = inputs_of(inputs, self.theory, found if groups else [])
        self.columns = tuple(name for choice in self.inputs for name in choice)
        self.queries: tuple[LayerQuery, ...] = queries_of(queries, self.theory, found)
        self._extend()
        self._ready(Budget.of(seconds))

    def _ready(self, budget: Budget) -> None:
        """Work out what rows need."""

    def _extend(self) -> None:
        """Give each query choices, behind those of the inputs, and an atom if it is a formula."""
        taken: dict[str, int] = {name: i for i, choice in enumerate(self.inputs) for name in choice}
        choices = list(self.inputs)
        statements: list[Statement] = []
        names = set(self.atoms)
        self.values: list[tuple[tuple[int, ...], Ints]] = []
        for number, asked in enumerate(self.queries):
            choice = asked.choice
            if asked.formula is not None:
                name = f"query {number}"
                while name in names:
                    name += "'"
                choice = (name,)
                statements.append(Statement(iff(atom(name), asked.formula)))
            if taken.keys().isdisjoint(choice):
                taken.update(dict.fromkeys(choice, len(choices)))
                choices.append(choice)
            places = tuple(dict.fromkeys([taken.get(name, -1) for name in choice]))
            if -1 in places or {name for place in places for name in choices[place]} != set(choice):
                raise UnfitInputs(
                    f"expected all atoms of {', '.join(choice[:5])} among the inputs, or none: it is one "
                    "query"
                )
            if len(choice) == 1:
                means = [[0], [1]]
            elif len(places) == 1:
                means = [[choices[places[0]].index(name)] for name in choice]
            else:  # a group whose atoms are inputs by themselves
                means = [[int(i == value) for i in range(len(choice))] for value in range(len(choice))]
            self.values.append((places, np.array(means, np.int64)))
        atoms = (
            *self.atoms,
            *(choice[0] for choice in choices[len(self.inputs) :] if choice[0] not in names),
        )
        self.extended = Theory.from_parts(atoms, (*self.base, *statements)) if statements else self.base
        self.choices = tuple(choices)

    # -- values --

    def told_queries(self, target: Tensor, rows: int, device: torch.device) -> Tensor:
        """Return the values of the queries as those of choices, shape (rows, choices)."""
        target = torch.as_tensor(target)
        number = len(self.values)
        if target.ndim == 1 and number == 1:
            target = target[:, None]
        if target.shape != (rows, number):
            what = "a query" if number == 1 else f"each of {number} queries"
            raise ValueError(
                f"expected a value for {what} in each of {rows} rows, got a target of shape "
                f"{tuple(target.shape)}"
            )
        given = _whole(target, "a target").cpu().numpy()  # small arrays: quicker than tensors
        told = np.full((rows, len(self.choices)), -1, np.int64)
        for column, (places, means) in enumerate(self.values):
            values = given[:, column]
            if (values >= len(means)).any():
                _check_values(target[:, column], len(means), f"query {self.queries[column].text!r}")
            some = means[np.maximum(values, 0)]
            for i, place in enumerate(places):
                here, before = some[:, i], told[:, place]
                known = values >= 0
                clash = known & (before >= 0) & (before != here)
                if clash.any():
                    row, text = int(clash.argmax()), self.queries[column].text
                    raise ValueError(f"expected one value for {text!r}, got two in row {row}")
                told[:, place] = np.where(known, here, before)
        return torch.from_numpy(told).to(device)

    def told_inputs(self, labels: Tensor, rows: int, device: torch.device) -> Tensor:
        """Return the values of the inputs as those of choices, shape (rows, choices)."""
        labels = torch.as_tensor(labels)
        number, columns = len(self.inputs), len(self.columns)
        if labels.ndim != 2 or len(labels) != rows or labels.shape[1] not in (number, columns):
            either = f"{number}" if number == columns else f"{number} or {columns}"
            raise ValueError(
                f"expected labels of shape ({rows}, {either}), a value for each input, got "
                f"{tuple(labels.shape)}"
            )
        labels = _whole(labels, "labels").to(device)
        told = torch.full((rows, len(self.choices)), -1, dtype=torch.int64, device=device)
        start = 0
        for place, choice in enumerate(self.inputs):
            size = len(choice)
            by_atom = labels.shape[1] == columns and number != columns
            values = labels[:, start if by_atom else place]
            if by_atom and size > 1:
                some = labels[:, start : start + size]
                unknown = (some < 0).all(dim=1)
                wrong = ((some > 1).any(dim=1) | ((some == 1).sum(dim=1) != 1)) & ~unknown
                if wrong.any():
                    row = int(wrong.nonzero()[0, 0])
                    raise ValueError(
                        f"expected exactly one true label of {choice[0]!r} and its group in row {row}"
                    )
                values = torch.where(unknown, -1, (some == 1).to(torch.int64).argmax(dim=1))
            _check_values(values, max(size, 2), f"input {choice[0]!r}")
            told[:, place] = values.clamp(min=-1)
            start += size
        return told


def _whole(values: Tensor, what: str) -> Tensor:
    """Return whole numbers, whatever type they come in."""
    if values.is_floating_point() and not (values == values.round()).all():
        raise ValueError(f"expected {what} of whole numbers or truth values, got {values.dtype}")
    return values.detach().to(torch.int64)


def _check_values(values: Tensor, size: int, what: str) -> None:
    wrong = values >= size
    if wrong.any():
        row = int(wrong.nonzero()[0, 0])
        raise ValueError(
            f"expected values from 0 to {size - 1}, or -1, of {what}, got {int(values[row])} in row {row}"
        )
