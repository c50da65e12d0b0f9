"""One exact solver on one file, in a process that can be ended at any moment.

    python aside.py rc2|cp-sat|toulbar2|toulbar2-vns|ganak FILE SECONDS
    python aside.py rc2-plain|rc2-strata|cp-sat-groups|toulbar2-told|toulbar2-vns-told FILE SECONDS

It reads the file, prints ``ready``, and from then on a line of JSON for every world that it gives out: the
values of the first atoms as 0 and 1, and whether the world is proven best. FILE is a .wcnf file in its old
form; CP-SAT also takes .lbm files of clauses and cardinalities, whose atoms are in the order of the theory.
Ganak takes a .cnf file, and prints counts.

Those of the second line are timed from the start of their process, so they load only what they need. Both
forms of RC2 read .wcnf files; CP-SAT, with two workers, reads .wcnf and .lbm files, and finds the groups of
which exactly one is true; toulbar2 reads variables of several values, a .wcsp file, and prints its solutions
in its own words as it finds them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def give(values: Iterable[bool], proven: bool) -> None:
    print(
        json.dumps({"world": "".join("1" if value else "0" for value in values), "proven": proven}),
        flush=True,
    )


def values_of(model: Iterable[int], number: int) -> list[bool]:
    values = [False] * number
    for literal in model:
        if 0 < abs(literal) <= number:
            values[abs(literal) - 1] = literal > 0
    return values


def rc2(file: str, seconds: float) -> None:
    """Core-guided MaxSAT: worlds come at the end of each stratum of weights, the best one at the end."""
    from pysat.examples.rc2 import RC2Stratified
    from pysat.formula import WCNF

    del seconds  # it has no clock of its own
    formula = WCNF(from_file=file)

    class Telling(RC2Stratified):  # type: ignore[misc]
        def finish_level(self) -> None:
            give(values_of(self.oracle.get_model() or (), formula.nv), False)
            super().finish_level()

    print("ready", flush=True)
    solver = Telling(formula, solver="g3", adapt=True, exhaust=True, minz=True, blo="full")
    model = solver.compute()
    if model is not None:
        give(values_of(model, formula.nv), True)


def rc2_plain(file: str, seconds: float) -> None:
    """RC2 as it comes."""
    from pysat.examples.rc2 import RC2
    from pysat.formula import WCNF

    del seconds
    formula = WCNF(from_file=file)
    print("ready", flush=True)
    model = RC2(formula).compute()
    if model is not None:
        give(values_of(model, formula.nv), True)


def rc2_strata(file: str, seconds: float) -> None:
    """RC2 by strata of weights; the world at the end of each is told."""
    from pysat.examples.rc2 import RC2Stratified
    from pysat.formula import WCNF

    del seconds
    formula = WCNF(from_file=file)

    class Telling(RC2Stratified):  # type: ignore[misc]
        def finish_level(self) -> None:
            give(values_of(self.oracle.get_model() or (), formula.nv), False)
            super().finish_level()

    print("ready", flush=True)
    model = Telling(formula, solver="g3", minz=True).compute()
    if model is not None:
        give(values_of(model, formula.nv), True)


def cp_sat_groups(file: str, seconds: float) -> None:
    """Clauses, cardinalities and groups as its own constraints, two workers."""
    from ortools.sat.python import cp_model

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from measuring.demands import groups, read

    given = read(Path(file))
    model = cp_model.CpModel()
    atoms = [model.new_bool_var("") for _ in range(given.atoms)]
    literal: dict[int, Any] = dict(enumerate(atoms, start=1))
    literal |= {-i: ~atom for i, atom in enumerate(atoms, start=1)}
    chosen, rest = groups(given)
    for names in chosen:
        model.add_exactly_one(literal[name] for name in names)
    lost, constant = [], given.constant
    for demand in rest:
        these = [literal[one] for one in demand.literals]
        if demand.clause:
            if demand.weight is None:
                model.add_bool_or(these)
            elif len(these) == 1:
                lost.append((~these[0], demand.weight))
            else:
                broken = model.new_bool_var("")
                model.add_bool_or([*these, broken])
                lost.append((broken, demand.weight))
            continue
        constraint = model.add_linear_constraint(sum(these), demand.low, demand.high)
        if demand.weight is not None:
            broken = model.new_bool_var("")
            constraint.only_enforce_if(~broken)
            lost.append((broken, demand.weight))
    if lost or constant:
        model.minimize(
            cp_model.LinearExpr.weighted_sum([one for one, _ in lost], [w for _, w in lost]) + constant
        )

    class Telling(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            give([self.boolean_value(variable) for variable in atoms], False)

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 2
    solver.parameters.max_time_in_seconds = seconds
    print("ready", flush=True)
    if solver.solve(model, Telling()) == cp_model.OPTIMAL:
        give([bool(solver.boolean_value(variable)) for variable in atoms], True)


def toulbar2_told(file: str, seconds: float, **options: int) -> None:
    """Branch and bound on variables of several values, which tells its solutions and its proof itself."""
    import pytoulbar2

    network = pytoulbar2.CFN(verbose=0, **options)
    network.Read(file)
    print("ready", flush=True)
    network.Solve(showSolutions=1, timeLimit=max(1, round(seconds)))


def toulbar2_vns_told(file: str, seconds: float) -> None:
    """Its variable neighbourhood search, in the same way."""
    toulbar2_told(file, seconds, vns=-4)


def cp_sat(file: str, seconds: float) -> None:
    """Clauses and cardinalities as its own constraints, one worker."""
    from ortools.sat.python import cp_model

    from lbm.knowledge.clauses import as_clause
    from lbm.knowledge.formula import CARDINALITIES, Formula
    from lbm.knowledge.theory import Theory

    theory = Theory.load(file)
    model = cp_model.CpModel()
    atoms = {name: model.new_bool_var(name) for name in theory.atoms}

    def literal(formula: Formula) -> Any:
        if formula.kind == "not":
            return ~literal(formula.args[0])
        if formula.kind != "atom":
            raise ValueError(f"expected a literal, got {formula}")
        return atoms[formula.label]

    def demand(formula: Formula, if_kept: Any) -> None:
        """Add the formula, or, if it is soft, that it holds where ``if_kept`` is true."""
        found = as_clause(formula)
        if found is not None:
            literals = [atoms[name] if wanted else ~atoms[name] for name, wanted in found]
            model.add_bool_or(literals if if_kept is None else [*literals, ~if_kept])
            return
        if formula.kind not in CARDINALITIES:
            raise ValueError(f"expected a clause or a cardinality, got {formula}")
        total, bound = sum(literal(part) for part in formula.args), formula.label
        bounded = {"atmost": total <= bound, "atleast": total >= bound, "exactly": total == bound}
        constraint = model.add(bounded[formula.kind])
        if if_kept is not None:
            constraint.only_enforce_if(if_kept)

    lost = []
    for number, statement in enumerate(theory):
        weight = statement.weight
        if weight is None:
            demand(statement.formula, None)
            continue
        kept = model.new_bool_var(f"kept {number}")
        demand(statement.formula, kept)
        lost.append(int(weight) * ~kept)
    if lost:
        model.minimize(sum(lost))

    class Telling(cp_model.CpSolverSolutionCallback):
        def on_solution_callback(self) -> None:
            give([self.boolean_value(variable) for variable in atoms.values()], False)

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    print("ready", flush=True)
    if solver.solve(model, Telling()) == cp_model.OPTIMAL:
        give([bool(solver.boolean_value(variable)) for variable in atoms.values()], True)


def toulbar2(file: str, seconds: float, **options: int) -> None:
    """Branch and bound on cost functions; its own limit is in whole seconds of CPU time."""
    import pytoulbar2

    network = pytoulbar2.CFN(verbose=-1, **options)
    network.Read(file)
    print("ready", flush=True)
    found = network.Solve(timeLimit=max(1, round(seconds)))
    if found is not None:
        give([bool(value) for value in found[0]], network.GetDDualBound() >= found[1])


def toulbar2_vns(file: str, seconds: float) -> None:
    """Its variable neighbourhood search, which gives better worlds where there is no time for a proof."""
    toulbar2(file, seconds, vns=-4)


def ganak(file: str, seconds: float) -> None:
    """Exact counts: of all models, then of those in which atom 1, 2 and so on is true, until time is over."""
    import pyganak
    from pysat.formula import CNF

    del seconds  # it has no clock of its own
    formula = CNF(from_file=file)
    print("ready", flush=True)
    for atom in range(formula.nv + 1):
        counter = pyganak.Counter()
        counter.new_vars(formula.nv)
        counter.add_clauses([*formula.clauses, *([[atom]] if atom else [])])
        print(json.dumps({"atom": atom, "count": str(counter.count())}), flush=True)


if __name__ == "__main__":
    solvers = {
        "cp-sat": cp_sat,
        "cp-sat-groups": cp_sat_groups,
        "ganak": ganak,
        "rc2": rc2,
        "rc2-plain": rc2_plain,
        "rc2-strata": rc2_strata,
        "toulbar2": toulbar2,
        "toulbar2-told": toulbar2_told,
        "toulbar2-vns": toulbar2_vns,
        "toulbar2-vns-told": toulbar2_vns_told,
    }
    solvers[sys.argv[1]](sys.argv[2], float(sys.argv[3]))
