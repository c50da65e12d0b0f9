"""The picture of a trained classifier: its rules, and the units that move its answers most.

A network of fifty units that all touch all columns is a ball of hair. What can be read is drawn instead: what
became of the rules it was given, the rules that stand for it, and its strongest units by their literals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from lbm.knowledge.printed import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lbm.arrays import Floats
    from lbm.training.explanations.context import Context
    from lbm.training.learners.classifier import LBMClassifier

RULES: Final = 12
"""Rules of each kind that are drawn, the heaviest."""

UNITS: Final = 6
"""Units that are drawn, the strongest."""

LITERALS: Final = 4
"""Literals that name a unit."""

LETTERS: Final = 76
"""Letters of a label."""

FOR, AGAINST, HARD, INK = "#0072B2", "#D55E00", "#4A4A4A", "#222222"  # the first two differ for every eye


@dataclass(frozen=True, slots=True)
class Bar:
    """A line of the picture: what it is, how long its bar is, in which colour, and where a tick stands."""

    label: str
    value: float
    colour: str
    began: float | None = None


@dataclass(frozen=True, slots=True)
class PortraitPart:
    """A part of the picture, with its title and what its bars measure."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


def panels(model: LBMClassifier) -> list[PortraitPart]:
    """Return the parts of the picture of a fitted classifier; those with nothing to show are left out."""
    context = model.context()
    parts = [_given(model), _extracted(context), _strongest(context)]
    return [part for part in parts if part.bars]


def _given(model: LBMClassifier) -> PortraitPart:
    """Return the rules that it was given: soft ones with the confidence they have, hard ones as such."""
    each = sorted(model.confidences_, key=lambda one: (not one.fixed, -one.final))
    shown = each[:RULES]
    soft = max((one.final for one in shown if not one.fixed), default=1.0)
    bars = tuple(
        Bar(f"{_bare(one.formula)}  (hard)", soft, HARD)
        if one.fixed
        else Bar(f"{_bare(one.formula)}  ({one.initial:.3g} → {one.final:.3g})", one.final, FOR, one.initial)
        for one in shown
    )
    more = f", {len(shown)} of {len(each)}" if len(each) > len(shown) else ""
    return PortraitPart(f"rules it was given{more}", "confidence (a tick: where it began)", bars)


def _bare(formula: str) -> str:
    """Return a statement without the weight it was given, which is said beside it."""
    weight, colon, rest = formula.partition(": ")
    try:
        float(weight)
    except ValueError:
        return formula
    return rest if colon else formula


def _extracted(context: Context) -> PortraitPart:
    """Return the rules that stand for it, those against a class in another colour."""
    found = context.extraction
    each = sorted(zip(found.rules, found.theory, strict=False), key=lambda pair: -pair[0].weight)
    bars = []
    for rule, statement in each[:RULES]:
        head = statement.formula.args[1] if statement.formula.kind == "implies" else statement.formula
        colour = AGAINST if head.kind == "not" else FOR
        bars.append(Bar(f"{_bare(rule.text)}  ({rule.weight:.3g})", rule.weight, colour))
    more = f"{len(bars)} of " if len(each) > len(bars) else ""
    rows = "drawn rows" if found.drawn else "rows like those it was trained on"
    size = f"{more}{counted(len(each), 'rule')}"
    title = f"rules that stand for it: {size}, fidelity {found.fidelity:.0%} on {rows}"
    return PortraitPart(title, "weight (log-odds)", tuple(bars))


def _strongest(context: Context) -> PortraitPart:
    """Return the units beside the knowledge that move the log-odds between two classes most."""
    from lbm.training.explanations.explain import literal_text, unit_literals

    learned, model = context.parameters, context.model
    first = learned.knowledge.units
    if not learned.hidden:
        return PortraitPart("", "", ())
    rows = context.background if context.compares else np.eye(len(model.columns))
    moved = np.ptp(_moves(learned.inputs(rows)[:, first:], learned.patterns @ learned.label_weights), axis=0)
    strength = moved.max(axis=0)  # over classes
    bars = []
    for unit in np.argsort(-strength, kind="stable")[:UNITS].tolist():
        if not strength[unit]:
            break
        numbers, weights = unit_literals(model.machine, first + unit)
        mine = [(n, w) for n, w in zip(numbers, weights, strict=True) if n <= len(model.columns)][:LITERALS]
        names = [f"{literal_text(model.columns[n - 1], w > 0)}" for n, w in mine]
        rest = sum(n <= len(model.columns) for n in numbers) - len(mine)
        label = ", ".join(names) + (f", {rest} more" if rest else "")
        bars.append(Bar(f"{label}  ({strength[unit]:.2g})", float(strength[unit]), "#8FC1A9"))
    title = f"the strongest of {counted(learned.hidden, 'unit')} that are no rules, by what switches them on"
    return PortraitPart(title, "how far it moves the log-odds between rows", tuple(bars))


def _moves(inputs: Floats, added: Floats) -> Floats:
    """Return what units add to the log-odds of each class against the mean of all, (rows, classes, units)."""
    gains = np.logaddexp(0.0, inputs[:, None, :] + added)
    return np.asarray(gains - gains.mean(axis=1, keepdims=True))


def _cut(label: str) -> str:
    """Return a label with its middle left out if it is long: its end says how much it weighs."""
    if len(label) <= LETTERS:
        return label
    tail = LETTERS // 2
    return f"{label[: LETTERS - tail - 1]}…{label[-tail:]}"


def portrait(model: LBMClassifier, figure: Figure) -> Axes:
    """Draw it on a figure, which gets as high as it needs; return the first Axes."""
    parts: Sequence[PortraitPart] = panels(model)
    sizes = [len(part.bars) + 1.6 for part in parts] or [1.0]
    figure.set_size_inches(10.5, 0.27 * sum(sizes) + 0.6)
    grid = figure.subplots(len(sizes), 1, height_ratios=sizes, squeeze=False)[:, 0]
    kinds = ", ".join(map(str, model.classes_.tolist()[:6])) + (", ..." if len(model.classes_) > 6 else "")
    figure.suptitle(f"{model.target_}: {kinds}", x=0.01, ha="left", fontsize=11, color=INK, parse_math=False)
    for ax, part in zip(grid, parts, strict=False):
        _panel(ax, part)
    if not parts:
        grid[0].set_axis_off()
        grid[0].set_title("it has neither rules nor units", fontsize=10, loc="left")
    figure.subplots_adjust(left=0.02, right=0.98, hspace=0.9)
    first: Axes = grid[0]
    return first


def _panel(ax: Axes, part: PortraitPart) -> None:
    """Draw bars on the left, and what they are to the right of each."""
    most = max((max(bar.value, bar.began or 0.0) for bar in part.bars), default=1.0) or 1.0
    places = np.arange(len(part.bars))
    ax.barh(places, [bar.value for bar in part.bars], color=[bar.colour for bar in part.bars], height=0.7)
    for place, bar in zip(places.tolist(), part.bars, strict=True):
        if bar.began is not None:
            ax.plot([bar.began] * 2, [place - 0.42, place + 0.42], color=INK, lw=1.2)
        ax.text(
            most * 1.03,
            place,
            _cut(bar.label),
            va="center",
            fontsize=8.5,
            color=INK,
            parse_math=False,  # a name may hold any sign, and none of it is mathematics to typeset
        )
    ax.set(xlim=(0, most * 4.2), ylim=(len(part.bars) - 0.4, -0.6), yticks=[])
    ax.set_xticks([0, most], ["0", f"{most:.2g}"], fontsize=7)
    ax.set_title(part.title, fontsize=9.5, loc="left", color=INK, parse_math=False)
    ax.set_xlabel(part.unit, fontsize=7, loc="left", labelpad=1)
    ax.spines[["top", "right", "bottom"]].set_visible(False)
