"""Why a layer answers as it does: hidden units by weight, or formulae and the values of inputs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lbm.arrays import Floats
from lbm.errors import LimitExceeded
from lbm.knowledge.formula import Formula, atom, conjunction, quote
from lbm.nn.compiled import CompiledLayer
from lbm.nn.heads import Blend
from lbm.nn.inside import literals
from lbm.reasoning.answers import Result
from lbm.reasoning.budget import Budget
from lbm.reasoning.exact.apart import Component, fall_apart
from lbm.reasoning.exact.cubes import MAX_CUBES, ByCubes

_SECONDS = 2.0  # for cubes, which may be too many


@dataclass(frozen=True, slots=True)
class Unit:
    """A hidden unit: a cube, as text, the formulae it belongs to, and P(cube | theory, logits, target)."""

    cube: str
    formulae: tuple[str, ...]
    probability: float


@dataclass(frozen=True, slots=True)
class Carried:
    """A soft formula, or a value of an input: how likely it is with the target, and without it."""

    what: str
    kind: str
    probability: float
    before: float


@dataclass(frozen=True, slots=True, repr=False)
class Reasons(Result):
    """What carries an answer: units, likeliest first, or formulae and input values; the shares of heads."""

    units: tuple[Unit, ...]
    carried: tuple[Carried, ...]
    heads: tuple[float, ...] = ()

    def lines(self) -> Iterable[str]:
        """Return it as lines of text."""
        if self.heads:
            yield "heads by share: " + ", ".join(f"{share:.2%}" for share in self.heads)
        if self.units:
            yield "hidden units, likeliest first"
            for unit in self.units:
                more = "" if len(unit.formulae) == 1 else f" and {len(unit.formulae) - 1} more"
                yield f"{unit.probability:7.2%}  {unit.cube}  of  {unit.formulae[0]}{more}"
            return
        yield "formulae and input values, likeliest with the target first"
        for one in self.carried:
            yield f"{one.probability:7.2%} (before {one.before:.2%})  {one.what}"

    def facts(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {
            "units": [asdict(unit) for unit in self.units],
            "carried": [asdict(one) for one in self.carried],
            **({"heads": list(self.heads)} if self.heads else {}),
        }


def reasons_of(
    layer: CompiledLayer, logits: Tensor, told: Tensor | None, free: Blend, tied: Blend, most: int
) -> Reasons:
    """Return the reasons for the answer in one row, ``logits`` of shape (heads, columns)."""
    heads = () if tied.shares is None else tuple(tied.shares[0].tolist())
    if not torch.isneginf(tied.logs[0]):
        units = _units(layer, logits, heads or (1.0,), told)
        if units is not None:
            units.sort(key=lambda unit: -unit.probability)
            return Reasons(tuple(units[:most]), (), heads)
    return Reasons((), tuple(_carried(layer, free, tied, most)), heads)


def _target(layer: CompiledLayer, told: Tensor) -> Iterator[Formula]:
    """Yield what values that are told say, as formulae."""
    asked = {places[0]: query for query, (places, _) in zip(layer.queries, layer.values, strict=True)}
    for place, value in enumerate(told[0].tolist()):
        if value >= 0:
            choice = layer.lean.choices[place]
            if len(choice) > 1:
                yield atom(choice[value])
            else:
                formula = asked[place].formula
                true = atom(choice[0]) if formula is None else formula
                yield true if value else ~true


def _units(
    layer: CompiledLayer, logits: Tensor, heads: Sequence[float], told: Tensor | None
) -> list[Unit] | None:
    """Return the cubes of all components with their probabilities; None: there are none of few cubes.

    ``heads``: the shares of heads with the target; each has a row of logits.
    """
    statements = list(layer.base)
    if any(said.weight is not None for said in statements):
        return None
    hard = [said.formula for said in statements]
    if told is not None:
        hard.append(conjunction(list(_target(layer, told))))
    budget = Budget.of(_SECONDS)
    split = fall_apart(layer.atoms, hard, (), budget)
    if split is None:
        return None
    program = layer.lean.run.program
    given = len(layer.columns)
    no, yes = (each[:given].cpu().numpy().T for each in literals(logits, program.starts, program.columns))
    weights = [
        {name: (float(no[head, i]), float(yes[head, i])) for i, name in enumerate(layer.columns)}
        for head in range(len(heads))
    ]
    found: list[Unit] = []
    try:
        for component in split.components:
            cubes = ByCubes(component, MAX_CUBES, budget).cubes
            shares = np.zeros(len(cubes))
            for share, of_head in zip(heads, weights, strict=True):
                if share > 0:
                    shares += share * _shares(component, cubes, of_head)
            texts = tuple([str(formula) for formula in component.hard])
            found += [
                Unit(_cube(component, *cube), texts, float(share))
                for cube, share in zip(cubes, shares, strict=True)
                if share > 0
            ]
    except (LimitExceeded, TimeoutError):
        return None
    settled = [(name, value) for name, value in split.fixed.items() if name in weights[0]]
    if settled and not found:
        text = " & ".join(quote(name) if value else f"~{quote(name)}" for name, value in settled)
        found.append(Unit(text, tuple([str(formula) for formula in hard]), 1.0))
    return found or None


def _shares(
    component: Component, cubes: list[tuple[int, int]], weights: dict[str, tuple[float, float]]
) -> Floats:
    """Return P(cube) of cubes that exclude one another: a softmax of summed log-literals."""
    logs = np.zeros(len(cubes))
    for j, (true, false) in enumerate(cubes):
        for i, name in enumerate(component.atoms):
            no, yes = weights.get(name, (0.0, 0.0))
            if true >> i & 1:
                logs[j] += yes
            elif false >> i & 1:
                logs[j] += no
            else:
                logs[j] += np.logaddexp(no, yes)
    top = logs.max(initial=-math.inf)
    if top == -math.inf:
        return np.zeros(len(cubes))
    shares = np.exp(logs - top)
    return np.asarray(shares / shares.sum(), np.float64)


def _cube(component: Component, true: int, false: int) -> str:
    """Return a cube as text; false atoms are left out where others are true."""
    names = component.atoms
    said = [quote(name) for i, name in enumerate(names) if true >> i & 1]
    if not said:
        said = [f"~{quote(name)}" for i, name in enumerate(names) if false >> i & 1]
    return " & ".join(said) or "true"


def _carried(layer: CompiledLayer, free: Blend, tied: Blend, most: int) -> list[Carried]:
    """Return soft formulae and input values by how likely they are."""
    incidence = layer.lean.incidence.to(free.marks)
    soft = [said for said in layer.base if said.weight is not None]
    after, before = (tied.marks @ incidence)[0].tolist(), (free.marks @ incidence)[0].tolist()
    always = layer.always
    found = []
    for i, said in enumerate(soft):
        sure = bool(always >> i & 1)
        found.append(
            Carried(str(said.formula), "formula", 1.0 if sure else after[i], 1.0 if sure else before[i])
        )
    values = [
        Carried(quote(name), "input", tied.chances[0, i].item(), free.chances[0, i].item())
        for i, name in enumerate(layer.columns)
    ]
    return sorted([*found, *values], key=lambda one: -one.probability)[:most]
