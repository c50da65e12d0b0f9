"""A theory made ready for an exact layer: its programs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from lbm.errors import NoAnswer, NoWorlds, TooManyWorlds
from lbm.knowledge.theory import Theory
from lbm.nn.asked import SHOWN, AskedLayer, LayerPlan
from lbm.nn.inside import Pass
from lbm.nn.named import Choice
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import take_apart
from lbm.reasoning.exact.determined import undetermined
from lbm.reasoning.exact.sums import Layered, formulae_of, layered, projected
from lbm.reasoning.proof import satisfiable


class Run:
    """A program with its pass, and which soft formulae are true at its marks."""

    def __init__(self, run: Pass, incidence: Tensor, choices: Sequence[Choice]) -> None:
        self.run, self.incidence, self.choices = run, incidence, tuple(choices)

    @property
    def marks(self) -> int:
        """How many marks there are."""
        return len(self.incidence)

    def of(self, weights: Tensor) -> Tensor:
        """Return the weights of marks: the sums of those of the soft formulae that are true there."""
        if not len(weights):
            return weights.new_zeros(len(self.incidence))
        return self.incidence.to(weights) @ weights

    def formulae(self, marks: Tensor) -> Tensor:
        """Return what marks, shape (rows, marks), say of the soft formulae, shape (rows, formulae)."""
        if not self.incidence.shape[1]:
            return marks.new_zeros((len(marks), 0))
        return marks @ self.incidence.to(marks)


class CompiledLayer(AskedLayer):
    """A theory with its inputs and queries, compiled; parameters are those of a LogicLayer.

    ``plain``: run operations of torch, on the CPU too.
    """

    def _ready(self, budget: Budget) -> None:
        self.plain = False
        self._form = self._layered(self.extended, self.choices, budget)
        self.lean = self._run(self._form, self.choices)

    # -- how it is made --

    def _layered(self, theory: Theory, choices: Sequence[Choice], budget: Budget) -> Layered:
        try:
            return layered(theory, choices, len(self.inputs), budget)
        except NoWorlds:
            if self.given is not None:
                self._check_theory(budget)
                raise NoWorlds(self.given) from None
            raise
        except (TooManyWorlds, NoAnswer) as error:
            raise self._too_wide(error) from error

    def _check_theory(self, budget: Budget) -> None:
        """Raise NoWorlds, without evidence, where the theory itself has no model."""
        if satisfiable(self.theory, budget=budget) is False:
            raise NoWorlds

    def _run(self, form: Layered, choices: Sequence[Choice]) -> Run:
        number = sum(said.weight is not None for said in self.base)
        return Run(Pass(form.program), torch.from_numpy(formulae_of(form.masks, number)), choices)

    def _too_wide(self, error: TooManyWorlds | NoAnswer) -> TooManyWorlds | NoAnswer:
        """Return the error for a theory that is too wide, with the atoms that are tied together."""
        split = take_apart(self.base)
        parts = () if split is None else split.components
        names = max((part.atoms for part in parts), key=len, default=self.atoms)
        shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        message = (
            f"this theory is too wide for an exact layer: {len(names)} atoms are tied together ({shown}). "
            f"{error}. What helps: certain evidence as given=, formulae of fewer atoms, definitions of parts "
            "by atoms of their own, several layers, one for each part that could stand alone, or "
            "method='phases', which estimates by chains"
        )
        if isinstance(error, NoAnswer):
            return NoAnswer(message + "; or more seconds")
        return TooManyWorlds(message, **{error.limit: error.value})

    @cached_property
    def whole(self) -> Run:
        """The theory with all atoms as columns, made when worlds or marginals are first asked for."""
        choices = [*self.inputs, *((name,) for name in self.atoms if name not in set(self.columns))]
        if choices == list(self.lean.choices):
            return self.lean
        return self._run(self._layered(self.base, choices, Budget.of(self.seconds)), choices)

    @cached_property
    def order(self) -> Tensor:
        """Where each atom stands among the columns of the whole."""
        place = {name: i for i, name in enumerate(name for choice in self.whole.choices for name in choice)}
        return torch.tensor([place[name] for name in self.atoms])

    @cached_property
    def kept(self) -> Run:
        """The values of inputs that some model has, made when ``log_kept`` is first asked for."""
        if len(self.columns) == len(self.atoms) and self.lean.choices == self.inputs:
            return self.lean
        budget = Budget.of(self.seconds)
        try:
            open_ = undetermined(self.base, set(self.columns), budget)
            program = projected(self.base, self.inputs, open_, budget)
        except (TooManyWorlds, NoAnswer) as error:
            raise self._too_wide(error) from error
        return Run(Pass(program), torch.zeros((1, 0), dtype=torch.float64), self.inputs)

    @property
    def always(self) -> int:
        """Which soft formulae are true in all models: bit i is formula i among the soft ones."""
        return self._form.always

    @property
    def plan(self) -> LayerPlan:
        """How it is computed.

        >>> CompiledLayer("a -> b", ["a", "b"], None, None, True, None).plan
        2 columns, 1 component; 6 numbers a row in one pass
        2 atoms by tables: 4 terms
        """
        program = self._form.program
        return LayerPlan(program.columns, program.work, self._form.parts)
