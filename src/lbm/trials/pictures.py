"""Pictures as plain data: what is on the axes, and nothing about how it is painted."""

from __future__ import annotations

from dataclasses import dataclass

LOOKS = ("line", "dashes", "dots", "bars")
"""How a curve may look; bars are short and black, for what is given from elsewhere."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of one series, shape (points,) each; ``low`` and ``high`` are the ends of a band around ``y``.

    Curves of one ``colour``, a number from 0 up, belong together in every picture of a part.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    colour: int
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    look: str = "line"

    def __post_init__(self) -> None:
        if self.look not in LOOKS:
            raise ValueError(f"expected a look among {', '.join(LOOKS)}, got {self.look!r}")
        if not len(self.x) == len(self.y) or {len(self.low), len(self.high)} not in ({0}, {len(self.x)}):
            raise ValueError(f"expected as many values as places along the curve {self.label!r}")


@dataclass(frozen=True, slots=True)
class Mark:
    """A point with words beside it; without ``y`` a line across the picture."""

    x: float
    text: str
    y: float | None = None


@dataclass(frozen=True, slots=True)
class Chart:
    """Curves on one pair of axes.

    ``name`` is that of its file; ``caption`` says in full sentences what is seen. With ``space`` a second
    axis above shows x as a share of it. With ``places``, these names stand at x = 1, 2, ... in place of
    numbers.
    """

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    x_log: bool = False
    y_log: bool = False
    y_range: tuple[float, float] | None = None
    space: float | None = None
    places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """The network of a theory, given as text; ``encoding`` as of ``translate``."""

    name: str
    title: str
    caption: str
    theory: str
    encoding: str = "sdnf"


Picture = Chart | Drawing
