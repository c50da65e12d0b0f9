"""What every world loses at least, by our own means: costs are moved between tables, a moment at a time.

Where a problem is made of variables of many values, this proves in a moment what clauses alone do not tell:
for warehouses it often meets the best world. Elsewhere it says how far from the best a world may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lbm.reasoning.budget import NO_LIMIT, Budget, now
from lbm.reasoning.engine.duals import CostTables, ascend, tables_of
from lbm.reasoning.search.valued import Valued

_SWEEPS: Final = 64  # that may raise nothing before it is given up
_CALL: Final = 0.01  # seconds of one compiled call, about
_EACH: Final = 4e-8  # seconds that a cell takes in a sweep, at first


@dataclass(eq=False)
class Lowered:
    """Tables whose bound rises, until it does not any more.

    Attributes
    ----------
    bound
        What every world loses at least.
    rising
        Whether it has risen not long ago.
    """

    valued: Valued
    tables: CostTables
    bound: int = 0
    rising: bool = True
    idle: int = 0  # sweeps that raised nothing
    calls: int = 0
    pace: float = 0.0  # seconds of a sweep
    seconds: float = 0.0  # that all took

    def rise(self, budget: Budget = NO_LIMIT) -> int:
        """Return the bound, raised as far as time allows; something is done however short it is."""
        while self.rising:
            sweeps = max(2, min(_SWEEPS // 2, int(_CALL / max(self.pace, 1e-6))))
            begun = now()
            ascend(self.tables, sweeps, back=self.calls % 2 == 1)
            took = now() - begun
            self.pace, self.calls, self.seconds = took / sweeps, self.calls + 1, self.seconds + took
            bound = self.valued.lost + self.valued.divisor * self.tables.bound
            self.idle = 0 if bound > self.bound else self.idle + sweeps
            self.bound = max(bound, self.bound)
            self.rising = self.idle < _SWEEPS
            if budget.spent():
                break
        return self.bound


def lowered_of(valued: Valued, lost: int) -> Lowered | None:
    """Return the bound of a problem of which a world loses so much; None: it is too large, or was rounded."""
    if not valued.exact:
        return None
    tables = tables_of(valued.values.space, max(1, 1 + (lost - valued.lost) // valued.divisor))
    if tables is None or not len(tables.cells):
        return None
    return Lowered(valued, tables, pace=_EACH * len(tables.cells))
