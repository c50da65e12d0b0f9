"""Which engines a search may use: those that are installed and not forbidden, and compiled code of our own.

Compiled code is used only if it is compiled, and there is time to load it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Final

from lbm.reasoning.budget import Budget

OWN: Final = "own"
"""Exact methods, walks, chains and a SAT solver in this process."""

RC2: Final = "rc2"
CP_SAT: Final = "cp-sat"
TOULBAR2: Final = "toulbar2"

NAMES: Final = (OWN, RC2, CP_SAT, TOULBAR2)
"""Every engine that there is."""

PACKAGES: Final = {RC2: "pysat", CP_SAT: "ortools", TOULBAR2: "pytoulbar2"}
"""What each of them is imported from."""

LOADING: Final = 1.5
"""Seconds that must be left for a compiler to be loaded: that takes 0.6, or 1.2 on a busy machine."""


def installed() -> tuple[str, ...]:
    """Return the names of the engines that can be asked; they are looked for, not loaded."""
    return tuple(name for name in NAMES if name not in PACKAGES or find_spec(PACKAGES[name]) is not None)


def chosen(engines: str | Iterable[str] | None) -> frozenset[str]:
    """Return the engines that are named, or all but those forbidden; None: all that are installed.

    Names are given one by one or in one string, with commas. One behind a minus is forbidden.

    >>> sorted(chosen("own, rc2"))
    ['own', 'rc2']
    >>> "own" in chosen("-own"), "rc2" in chosen(["-own"])
    (False, True)
    """
    there = installed()
    if engines is None:
        return frozenset(there)
    words = engines.split(",") if isinstance(engines, str) else list(engines)
    if not all(isinstance(word, str) for word in words):
        raise TypeError(f"engines are names, as in 'own,rc2', got {engines!r}")
    words = [word.strip() for word in words if word.strip()]
    for word in words:
        if word.removeprefix("-") not in NAMES:
            raise ValueError(f"there is no engine {word.removeprefix('-')!r}: {_known(there)}")
    wanted = {word for word in words if not word.startswith("-")}
    for name in NAMES:
        if name in wanted and name not in there:
            raise ValueError(f"the engine {name!r} is not installed: {_known(there)}")
    found = (wanted or set(there)) - {word[1:] for word in words if word.startswith("-")}
    if not found:
        raise ValueError(f"no engine is left of {', '.join(words) or 'none'}: {_known(there)}")
    return frozenset(found)


def _known(there: Iterable[str]) -> str:
    missing = [name for name in NAMES if name not in there]
    said = f"installed are {', '.join(there)}"
    if not missing:
        return f"{said}; one behind a minus is forbidden"
    return f"{said}; pip install 'logical-boltzmann[solvers]' brings {' and '.join(missing)}"


def loaded() -> bool:
    """Return whether compiled code can be used at once."""
    return "numba" in sys.modules


def usable(piece: str, budget: Budget) -> bool:
    """Return whether compiled loops can be used: they are compiled, and loaded or there is time for that.

    Where they are not, they are compiled in a process beside.
    """
    from lbm.reasoning.compiling.ready import is_warm, warm_aside

    if not is_warm(piece):
        warm_aside()
        return False
    return loaded() or budget.left() > LOADING
