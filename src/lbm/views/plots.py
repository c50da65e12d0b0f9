"""Pictures of machines. Each function draws on an Axes and returns it; nothing global is touched."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from lbm.arrays import Floats
from lbm.errors import FileError, MissingExtra
from lbm.knowledge.packed import write_whole
from lbm.knowledge.printed import counted
from lbm.knowledge.theory import Theory
from lbm.machine.equation import number
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate

try:
    from matplotlib import style
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise MissingExtra("plots", "lbm draw", "matplotlib") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lbm.logic.cube import Cube
    from lbm.training.learners.classifier import LBMClassifier
    from lbm.training.learners.unsupervised import LogicalRBM

PICTURED: Final = 60
"""Units in a row that a picture of the network shows; past it, histograms tell more."""

FORMATS: Final = ("svg", "png", "pdf")
"""Endings of the files that :func:`draw` writes."""

POSITIVE, NEGATIVE, INK = "#0072B2", "#D55E00", "#222222"  # the first two differ for every eye
FILLS: Final = {"hard": "#4A4A4A", "soft": "#F2C14E", "definition": "#8FC1A9", "": "#FFFFFF"}

SIGNS: Final = (
    (1, POSITIVE, "solid", "weight > 0: the cube wants the atom true"),
    (-1, NEGATIVE, (0, (3.5, 1.2)), "weight < 0: it wants the atom false"),
)
"""How the edges of each sign look: colour, dashes, and what they mean."""

_NAME: Final = 16  # characters of a name in a label
_CUBE: Final = 40  # characters of a cube in a label
_FONT: Final = 10.0  # points
_LETTER: Final = 0.6 * _FONT / 72  # the width of a character, in inches
_BARS: Final = 12  # distinct values that get a bar each
_RANGES: Final = 30  # bars where there are more
_TURNED: Final = "    "  # between the lines of a label, when it is turned
_WIDE: Final = 13.0  # inches: labels that need more side by side are turned


def draw(
    machine: Machine | Theory | LBMClassifier | LogicalRBM,
    path: str | Path,
    *,
    warn: Callable[[str], object] = warnings.warn,
) -> None:
    """Write the picture of a machine to a file that ends in .svg, .png or .pdf, whole or not at all.

    The same machine gives the same bytes, whatever style the user has set.

    Parameters
    ----------
    machine
        What to draw; of a theory the machine that :func:`lbm.translate` makes, of a LogicalRBM its own. Of a
        fitted classifier its rules and strongest units are drawn, see :mod:`lbm.views.portrait`.
    path
        Where to write.
    warn
        Told if names hold characters that the font lacks.
    """
    if hasattr(machine, "context") and hasattr(machine, "confidences_"):  # a fitted classifier
        from lbm.views.portrait import portrait

        fitted = cast("LBMClassifier", machine)
        save_picture(lambda: portrait(fitted, Figure()), path, warn=warn)
        return
    made = _as_machine(machine)
    save_picture(lambda: network(made), path, warn=warn)


def _as_machine(thing: Machine | Theory | LBMClassifier | LogicalRBM) -> Machine:
    if isinstance(thing, Theory):
        return translate(thing)
    if isinstance(thing, Machine):
        return thing
    if hasattr(thing, "parameters"):  # a learner
        return thing.parameters().machine
    raise TypeError(f"expected a Machine, a Theory or a fitted learner, got {thing!r}")


def save_picture(
    make: Callable[[], Axes], path: str | Path, *, warn: Callable[[str], object] = warnings.warn
) -> None:
    """Write what ``make`` draws to a file, as :func:`draw` does."""
    kind = check_picture(path)
    undated: dict[str, dict[str, Any]] = {
        "svg": {"Date": None},
        "pdf": {"CreationDate": None},
        "png": {"Software": None},
    }
    picture = io.BytesIO()
    with style.context(["default", {"svg.hashsalt": "lbm"}]), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure = make().get_figure()
        assert isinstance(figure, Figure)
        figure.savefig(
            picture, format=kind, dpi=150, bbox_inches="tight", pad_inches=0.15, metadata=undated[kind]
        )
    if any("Glyph" in str(warning.message) for warning in told):
        warn(f"{path}: the font lacks some characters of the names; boxes stand for them")
    write_whole(path, [picture.getvalue()])


def check_picture(path: str | Path) -> str:
    """Return the format that a picture's name asks for."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise FileError(f"cannot write {path}: expected a name that ends in .svg, .png or .pdf")
    return kind


def network(machine: Machine, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw visible units below, hidden units above, and an edge for every weight between them.

    An edge's colour is its weight's sign and its width the weight's size, on a logarithmic scale
    where weights span more than a decade. A hidden unit is labelled by its cube, and by its weight
    unless all weigh the same. Hidden units stand near the atoms they connect to. Beyond PICTURED
    units in a row, histograms of cube sizes and weights take the network's place.

    Parameters
    ----------
    machine
        The machine to draw.
    ax
        Where to draw, labels included; without it, on a new figure that is large enough for them. There
        labels may stand outside the axes: save it with ``bbox_inches="tight"``, as :func:`draw` does.
    legend
        Whether to explain colours, widths and shapes, to the right of the picture.
    """
    if is_large(machine):
        return _summary(machine, Figure(figsize=(11, 4.5)).add_subplot() if ax is None else ax)
    picture = _Network(machine)
    given = ax is not None
    if ax is None:
        ax = Figure(figsize=picture.size()).add_axes((0, 0, 1, 1))
    picture.draw(ax, legend=legend, inside=given)
    return ax


def is_large(machine: Machine) -> bool:
    """Return whether a machine has too many units for a picture of its network."""
    return max(machine.hidden, len(machine.atoms)) > PICTURED


# --- labels --------------------------------------------------------------------------------------


def cube_label(cube: Cube) -> str:
    """Return a cube as a label: long names and long cubes are cut, and say how much is missing.

    >>> from lbm.logic.cube import Cube
    >>> cube_label(Cube((("n", 1), ("r", -1))))
    'n ∧ ¬r'
    >>> cube_label(Cube(tuple((f"signal{i}", 1) for i in range(9))))
    'signal0 ∧ signal1 ∧ signal2 ∧ 6 more'
    """
    literals = [("" if sign > 0 else "¬") + short_name(name) for name, sign in cube.literals]
    text = " ∧ ".join(literals) or "true"
    kept = len(literals)
    while len(text) > _CUBE and kept > 1:
        kept -= 1
        text = f"{' ∧ '.join(literals[:kept])} ∧ {len(literals) - kept} more"
    return text


def short_name(name: str, length: int = _NAME) -> str:
    """Return a name with its middle left out if it is long: names often differ at one end.

    >>> short_name("temperature_of_the_room_2")
    'temperature…oom_2'
    """
    if len(name) <= length:
        return name
    tail = length // 3
    return f"{name[: length - tail]}…{name[-tail:]}"


def _figure(value: float) -> str:
    """Return a number as a label shows it: whole or short ones exactly, others to three digits."""
    exact = number(value)
    return exact if len(exact) <= 7 or "." not in exact else f"{value:.3g}"


def _title(machine: Machine) -> str:
    extra = f" ({len(machine.definitions):,} definitional)" if machine.definitions else ""
    visible = counted(len(machine.atoms), "visible unit") + extra
    return f"{visible}, {counted(machine.hidden, 'hidden unit')}"


def _unit_weights(machine: Machine) -> Floats:
    """Return w of every hidden unit; a machine that was not translated has the largest |w_ij| instead."""
    if len(machine.unit_weights) == machine.hidden:
        return machine.unit_weights
    return np.asarray(abs(machine.weights).max(axis=0).todense(), dtype=np.float64).reshape(-1)


# --- the network ---------------------------------------------------------------------------------


class _Network:
    """The picture of one machine: places, labels and colours, worked out before anything is drawn."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        biases = machine.visible_bias.tolist()
        self.below = [[short_name(name)] for name in machine.atoms]
        if any(biases):
            self.below = [
                [*lines, f"b = {_figure(bias)}"] for lines, bias in zip(self.below, biases, strict=True)
            ]
        weights = _unit_weights(machine).tolist()
        self.above = [[f"h{j}: {cube_label(cube)}"] for j, cube in enumerate(machine.cubes, start=1)]
        if len(set(weights)) > 1:
            self.above = [[*lines, f"w = {_figure(w)}"] for lines, w in zip(self.above, weights, strict=True)]
        self.kinds = [_kind(machine, j) for j in range(machine.hidden)]
        self.visible = _spread(len(machine.atoms))
        self.hidden = np.empty(machine.hidden)
        self.hidden[self._order()] = _spread(machine.hidden)

    def _order(self) -> list[int]:
        """Return the hidden units from left to right: each near the atoms it connects to."""
        starts, atoms = self.machine.weights.indptr, self.machine.weights.indices
        centre = [
            float(self.visible[atoms[starts[j] : starts[j + 1]]].mean()) if starts[j] < starts[j + 1] else 0.5
            for j in range(self.machine.hidden)
        ]
        return sorted(range(self.machine.hidden), key=lambda j: round(centre[j], 9))

    # -- sizes --

    def size(self) -> tuple[float, float]:
        """Return the width and height in inches at which the labels can be read."""
        needed = max(_width(self.above), _width(self.below))
        if needed <= _WIDE:
            return max(needed, 3.0), 2.8
        columns = max(len(self.above), len(self.below))
        return max(columns * 0.3, 8.0), 3.0 + columns / 24

    # -- drawing --

    def draw(self, ax: Axes, *, legend: bool, inside: bool) -> None:
        """Put it all on ``ax``, whose size says which labels must be turned; ``inside``: labels too."""
        figure = ax.get_figure()
        assert figure is not None
        box = ax.get_window_extent()
        width, height = box.width / figure.dpi, box.height / figure.dpi
        dot = min(15.0, 0.5 * width * 72 / max(len(self.above), len(self.below), 1))
        gap = dot / 2 + 4
        above, below = _width(self.above) > width * 1.02, _width(self.below) > width * 1.02
        over = gap / 72 + _height(self.above, above)
        under = gap / 72 + _height(self.below, below)
        between = max(height - over - under, height / 3) if inside else height
        ax.set(xlim=(0, 1), ylim=(-under / between, 1 + over / between) if inside else (0, 1))
        ax.set_axis_off()
        widths = self._edges(ax)
        self._units(ax, dot)
        self._labels(ax, self.visible, 0, self.below, below, -gap)
        self._labels(ax, self.hidden, 1, self.above, above, gap)
        if legend and above and not inside:
            place = (0, -(under + 0.25) / height)
            self._legend(ax, widths, loc="upper left", bbox_to_anchor=place, ncols=3)
        elif legend:
            self._legend(ax, widths, loc="center left", bbox_to_anchor=(1.02, 0.5))

    def _units(self, ax: Axes, dot: float) -> None:
        style: dict[str, Any] = {
            "s": dot**2, "edgecolors": INK, "linewidths": 1.2, "zorder": 3, "clip_on": False
        }  # fmt: skip
        declared = len(self.machine.declared)
        given, defined = self.visible[:declared], self.visible[declared:]
        ax.scatter(given, np.zeros(len(given)), c="#FFFFFF", marker="o", **style)
        ax.scatter(defined, np.zeros(len(defined)), c=FILLS["definition"], marker="D", **style)
        ax.scatter(
            self.hidden, np.ones(len(self.kinds)), c=[FILLS[kind] for kind in self.kinds], marker="s", **style
        )

    def _edges(self, ax: Axes) -> list[tuple[float, float]]:
        """Draw the edges; return (|weight|, width) of the thinnest and the thickest."""
        matrix = self.machine.weights.tocoo()
        widths = edge_widths(matrix.data)
        alpha = 0.85 if matrix.nnz <= 60 else 0.6
        for sign, colour, dashes, _ in SIGNS:
            kept = np.flatnonzero(np.sign(matrix.data) == sign)
            ends = [
                [(self.visible[i], 0.0), (self.hidden[j], 1.0)]
                for i, j in zip(matrix.row[kept].tolist(), matrix.col[kept].tolist(), strict=True)
            ]
            look: dict[str, Any] = {"colors": colour, "linewidths": widths[kept], "linestyles": [dashes]}
            lines = LineCollection(ends, alpha=alpha, clip_on=False, zorder=1, **look)
            ax.add_collection(lines, autolim=False)
        sizes = np.abs(matrix.data)
        ends_of = (sizes.argmin(), sizes.argmax()) if len(sizes) else ()
        return sorted({float(sizes[k]): float(widths[k]) for k in ends_of}.items())

    @staticmethod
    def _labels(
        ax: Axes, places: Floats, y: int, labels: Sequence[Sequence[str]], turned: bool, gap: float
    ) -> None:
        for x, lines in zip(places.tolist(), labels, strict=True):
            ax.annotate(
                (_TURNED if turned else "\n").join(lines),
                (x, y),
                (0, gap),
                textcoords="offset points",
                ha="center",
                va="bottom" if gap > 0 else "top",
                rotation=90 if turned else 0,
                fontsize=_FONT,
                color=INK,
                parse_math=False,  # a name may hold any sign, and none of it is mathematics to typeset
                annotation_clip=False,
            )

    def _legend(self, ax: Axes, widths: Sequence[tuple[float, float]], **place: Any) -> None:
        machine = self.machine
        entries = [_patch("o", "#FFFFFF", "visible unit: an atom")] if machine.declared else []
        if machine.definitions:
            entries.append(_patch("D", FILLS["definition"], "visible unit: a definitional atom"))
        words = {
            "hard": "hidden unit: a cube of a hard formula",
            "soft": "hidden unit: a cube of a soft formula",
            "definition": "hidden unit: a cube of a definition",
            "": "hidden unit: a cube",
        }
        entries += [_patch("s", FILLS[kind], words[kind]) for kind in words if kind in self.kinds]
        for sign, colour, dashes, words_of_sign in SIGNS:
            if (np.sign(machine.weights.data) == sign).any():
                entries.append(Line2D([], [], color=colour, lw=2, ls=dashes, label=words_of_sign))
        if len(widths) > 1:
            entries += [
                Line2D([], [], color="#888888", lw=lw, label=f"|weight| = {_figure(w)}") for w, lw in widths
            ]
        elif widths:
            entries.append(Line2D([], [], ls="none", label=f"every |weight| = {_figure(widths[0][0])}"))
        title = f"{_title(machine)}, {machine.kind}"
        look: dict[str, Any] = {"frameon": False, "fontsize": 9, "title_fontsize": 10, "borderaxespad": 0}
        ax.legend(handles=entries, title=title, alignment="left", **look, **place)


def _width(labels: Sequence[Sequence[str]]) -> float:
    """Return the inches that a row of labels needs side by side."""
    longest = max((len(line) for lines in labels for line in lines), default=0)
    return len(labels) * max((longest + 2) * _LETTER, 0.7)


def _height(labels: Sequence[Sequence[str]], turned: bool) -> float:
    """Return the inches that a row of labels is high."""
    if turned:
        return max(len(_TURNED.join(lines)) for lines in labels) * _LETTER
    return max(map(len, labels), default=0) * 1.3 * _FONT / 72


def _kind(machine: Machine, unit: int) -> str:
    """Return what a hidden unit serves: a definition, or a hard, or a soft formula, or nothing known."""
    if not len(machine.owner):  # made by hand or by training: nothing says what a unit is for
        return ""
    if machine.units[unit].definitions:
        return "definition"
    weights = [statement.weight for statement in machine.units.statements(unit)]
    return "" if not weights else "hard" if None in weights else "soft"


def edge_widths(weights: Floats) -> Floats:
    """Return the width of each edge in points: linear in |w|, or in log |w| past a decade."""
    sizes = np.abs(weights)
    thick = 4.0 if len(sizes) <= 30 else 2.8
    if not len(sizes):
        return sizes
    least, most = sizes.min(), sizes.max()
    if least == most:
        return np.full(len(sizes), 1.6)
    if most > 10 * least:
        return np.asarray(0.8 + (thick - 0.8) * np.log(sizes / least) / math.log(most / least))
    return np.asarray(thick * sizes / most)


def _spread(count: int) -> Floats:
    """Return ``count`` places at even distances on a line from 0 to 1."""
    return (np.arange(count) + 0.5) / max(count, 1)


def _patch(marker: str, fill: str, label: str) -> Line2D:
    return Line2D([], [], ls="none", marker=marker, ms=9, mfc=fill, mec=INK, mew=1.2, label=label)


# --- the summary ---------------------------------------------------------------------------------


def _summary(machine: Machine, ax: Axes) -> Axes:
    """Draw histograms of cube sizes and of unit weights, with the counts as title."""
    ax.set_axis_off()
    weights = counted(machine.weights.nnz, "weight")
    ax.set_title(f"{_title(machine)}, {weights}, {machine.kind}", pad=22)
    left, right = ax.inset_axes((0.0, 0.0, 0.45, 1.0)), ax.inset_axes((0.55, 0.0, 0.45, 1.0))
    _histogram(left, np.diff(machine.weights.indptr).astype(np.float64), "literals in a cube")
    _histogram(right, _unit_weights(machine), "weight of a hidden unit")
    return ax


def _histogram(ax: Axes, values: Floats, label: str) -> None:
    """Draw a bar for each distinct value, or, where there are many, for each range of values."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _BARS:
        texts = [_figure(value) for value in distinct.tolist()]
        bars = ax.bar(range(len(texts)), counts, color=POSITIVE)
        ax.bar_label(bars, [f"{count:,}" for count in counts.tolist()], fontsize=8, padding=2)
        ax.set_xticks(range(len(texts)), texts, rotation=45 if len("".join(texts)) > 40 else 0)
        ax.margins(y=0.12)
    else:
        least, most = float(distinct[0]), float(distinct[-1])
        if least > 0 and most > 100 * least:
            edges = np.geomspace(least, most, _RANGES + 1)
            ax.set_xscale("log")
        else:
            edges = np.linspace(least, most, _RANGES + 1)
        heights, _, _ = ax.hist(values, edges.tolist(), color=POSITIVE, edgecolor="white", linewidth=0.5)
        counts = np.asarray(heights, dtype=np.int64)
    shown = counts[counts > 0]
    if len(shown) and shown.max() > 100 * shown.min():
        ax.set_yscale("log")
        ax.set_ylabel("hidden units (logarithmic)")
    else:
        ax.set_ylabel("hidden units")
        ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(label)
    ax.spines[["top", "right"]].set_visible(False)
