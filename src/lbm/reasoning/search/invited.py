"""Who else is asked, and when: engines that know more than clauses, chosen by what a problem is made of.

RC2 begins alone. Where groups of many values are most of a problem, toulbar2 joins it first, else CP-SAT.
Where nothing is hard and no formula counts, as in cuts and spin glasses, walks and chains are the better
searchers: there others only get what is left of the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import cpu_count
from typing import Final

from lbm.reasoning.search.engines import CP_SAT, RC2, TOULBAR2
from lbm.reasoning.solvers.demands import Demands

MOST: Final = 1 << 50
"""What a world may lose at most, in units, where an engine counts in doubles."""

LITERALS: Final = {CP_SAT: 2_000_000, TOULBAR2: 1_000_000}
"""Literals past which an engine takes too long to read a problem."""

SOON: Final = 0.1
"""Seconds after which those join that fit a problem best; what is settled by then needs none of them."""

SECOND: Final = 0.25
"""Seconds after which the others do."""

_THIRD: Final = 1.0  # seconds after which those do that are only there for the proof
_MANY: Final = 3  # values of a group from which on it is more than a formula of two atoms
_SHARE: Final = 0.3  # of the atoms that such groups hold where they are what a problem is made of


@dataclass(frozen=True, slots=True)
class Invitation:
    """An engine, after how many seconds it is asked, and how many threads it may use.

    ``favoured``: the problem is one for it above all others.
    """

    name: str
    after: float
    workers: int = 1
    favoured: bool = False


@dataclass(frozen=True, slots=True)
class Guests:
    """Who is asked, in order.

    ``loose``: whether nothing holds the problem together but soft clauses. ``valued``: whether variables of
    many values are what it is made of, and there is somebody for these.
    """

    invitations: tuple[Invitation, ...]
    loose: bool
    valued: bool


def guests_of(demands: Demands, names: frozenset[str], jobs: int = 1) -> Guests:
    """Return which engines are asked about a problem; ``jobs``: how many processes may anneal."""
    clauses = demands.clauses
    loose = not bool((clauses.weights == 0).any()) and not demands.counts
    able = [
        name
        for name in (CP_SAT, TOULBAR2)
        if name in names and demands.most < MOST and len(clauses.literals) <= LITERALS[name]
    ]
    held = {abs(literal) for group in demands.groups if len(group) >= _MANY for literal in group}
    valued = len(held) >= _SHARE * clauses.variables
    order = [TOULBAR2, CP_SAT] if valued or loose else [CP_SAT, TOULBAR2]
    first = SOON if RC2 in names else 0.0
    times = [SECOND, _THIRD] if loose or valued else [first, SECOND]
    if valued:
        times[0] = first
    threads = 1 if loose or valued else max(2, min(jobs if jobs > 0 else cpu_count() or 1, 8))
    chosen = [name for name in order if name in able]
    return Guests(
        tuple(
            Invitation(name, after if RC2 in names else 0.0, threads, name == order[0])
            for name, after in zip(chosen, times, strict=False)
        ),
        loose,
        valued and TOULBAR2 in able,
    )
