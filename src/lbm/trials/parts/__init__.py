"""The parts, one module each, by the name that the command line has for them, in the order of the report.

A new part is a module with the names of :class:`lbm.trials.part.Part`, a line here, and for its prose a
Markdown file of the same name (see :func:`lbm.trials.part.prose`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from lbm.trials.part import Part

_MODULES: Final = ("xor", "softplus", "coverage", "timing", "sat", "table", "noise", "permuted", "neural")
# The part about times is called time, but its module is not: Python has one of that name.
PARTS: Final = {name.replace("timing", "time"): f"lbm.trials.parts.{name}" for name in _MODULES}


def part_named(name: str) -> Part:
    """Return the module of a part."""
    if name not in PARTS:
        raise ValueError(f"expected a part among {', '.join(PARTS)}, got {name!r}")
    return cast("Part", import_module(PARTS[name]))


if TYPE_CHECKING:
    from lbm.trials.parts import coverage, neural, noise, permuted, sat, softplus, table, timing, xor

    # Each has all the names, say the types.
    _all: tuple[Part, ...] = (xor, softplus, coverage, timing, sat, table, noise, permuted, neural)
