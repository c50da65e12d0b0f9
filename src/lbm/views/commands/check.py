"""``lbm check``: can it be read, how large is it, and can all its hard formulae be satisfied?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from lbm.knowledge.printed import counted
from lbm.views.commands import shared

if TYPE_CHECKING:
    from lbm.knowledge.formula import Formula
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.answers import Proof

ESTIMATED: Final = 10_000
"""Parts of a theory, cells of counters among them, up to which the number of its cubes is estimated."""


def check_theory(
    file: shared.File,
    seconds: shared.Seconds = 60.0,
    *,
    reading: shared.FileOptions,
    as_json: shared.Json = False,
) -> int:
    """Read a theory, tell its size, and prove that its hard formulae can all be satisfied, or not.

    If they cannot, a minimal set of hard formulae that clash is named: leave any one of them out and
    the others can be satisfied. Exit status 0: satisfiable; 1: not; 3: no answer in time.

    With --json: file, atoms, hard, soft, clauses, literals, parts, depth, cubes (an upper bound before
    merging), each a number or null where it was not worked out; satisfiable (true, false or null),
    clash (list of formula, a position from 0, with line, null if unknown, and text), minimal (whether
    the clash is proven so).
    """
    theory = reading.theory(file)
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.search.satisfy import prove

    size = size_of(theory)
    with shared.working("looking for a world that satisfies every hard formula"):
        proof = prove(theory, budget=Budget.of(seconds))
    name = shared.name_of(file)
    if as_json:
        shared.say_json({"file": name, "atoms": len(theory.atoms), **asdict(size), **proof.facts()})
    else:
        shared.say_each(_lines(name, theory, size, proof, seconds))
    return 3 if proof.satisfiable is None else 0 if proof.satisfiable else 1


# --- how large -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """How large a theory is; None: not worked out.

    ``literals`` counts those of all clauses, ``parts`` the distinct subformulae and ``depth`` the
    connectives above the deepest atom; ``cubes`` is how many there are at most.
    """

    hard: int
    soft: int
    clauses: int
    literals: int
    parts: int | None = None
    depth: int | None = None
    cubes: int | None = None


def size_of(theory: Theory) -> Size:
    """Return how large a theory is."""
    from lbm.knowledge.clauses import as_clause
    from lbm.knowledge.formula import postorder
    from lbm.knowledge.weighted import counter_cells

    hard, soft = shared.count_statements(theory)
    if theory.clauses is not None:
        literals = len(theory.clauses.literals)  # a clause of k literals has k cubes
        return Size(hard, soft, len(theory), literals, cubes=literals)
    clauses = literals = 0
    depth: dict[Formula, int] = {}
    for node in postorder(*(statement.formula for statement in theory)):
        depth[node] = 1 + max(depth[part] for part in node.args) if node.args else 0
    for statement in theory:
        clause = as_clause(statement.formula)
        if clause is not None:
            clauses += 1
            literals += len(clause)
    cubes = _estimate(theory) if len(depth) + counter_cells(*depth) <= ESTIMATED else None
    return Size(hard, soft, clauses, literals, len(depth), max(depth.values(), default=0), cubes)


def _estimate(theory: Theory) -> int:
    """Return how many cubes the formulae have at most, definitions included, nothing merged."""
    from lbm.logic.sdnf import estimate_size

    weights = [statement.weight or 1 for statement in theory]
    return sum(
        estimate_size(statement.formula if weight > 0 else ~statement.formula, atoms=theory.atoms)
        for statement, weight in zip(theory, weights, strict=True)
    )


# --- for people ----------------------------------------------------------------------------------


def _lines(name: str, theory: Theory, size: Size, proof: Proof, seconds: float) -> Iterator[str]:
    yield f"{name}: {counted(len(theory.atoms), 'atom')}, {shared.formulae_counted(size.hard, size.soft)}"
    parts = [f"{counted(size.clauses, 'clause')} with {counted(size.literals, 'literal')}"]
    if size.parts is not None and size.depth is not None:
        parts.append(f"{counted(size.parts, 'distinct part')}, {size.depth:,} deep")
    if size.cubes is not None:
        parts.append(f"at most {counted(size.cubes, 'cube')}")
    yield "  " + "; ".join(parts)
    late = f"within {seconds:g} seconds: --seconds allows more"
    yield from proof.lines(late, rest="--json")
