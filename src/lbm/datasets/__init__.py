"""Small problems to try it on: generated tables, each with the knowledge that explains it, and relations.

Names are loaded on first use; the tables need pandas, the relational problems nothing.

>>> from lbm.datasets import monk
>>> print(monk(1).rules[0])
'a1 = 1' & 'a2 = 1' -> member
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Dataset": "lbm.datasets.dataset",
    "family": "lbm.datasets.problems",
    "krk": "lbm.datasets.chess",
    "krk_relations": "lbm.datasets.problems",
    "monk": "lbm.datasets.robots",
    "tic_tac_toe": "lbm.datasets.noughts",
    "trains": "lbm.datasets.problems",
    "write_problem": "lbm.datasets.problems",
}

__all__ = [
    "Dataset",
    "family",
    "krk",
    "krk_relations",
    "monk",
    "tic_tac_toe",
    "trains",
    "write_problem",
]

if TYPE_CHECKING:
    from lbm.datasets.chess import krk
    from lbm.datasets.dataset import Dataset
    from lbm.datasets.noughts import tic_tac_toe
    from lbm.datasets.problems import family, krk_relations, trains, write_problem
    from lbm.datasets.robots import monk


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'lbm.datasets' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
