"""A theory as one circuit: a product of literals that units settle, and of its components, each compiled."""

from __future__ import annotations

from pathlib import Path

from lbm.errors import WeightError
from lbm.knowledge.circuit_files import write_nnf
from lbm.knowledge.circuit_formulae import circuit_of_formula, is_circuit_formula
from lbm.knowledge.circuits import Builder, Circuit
from lbm.knowledge.theory import Theory, statement_shown
from lbm.reasoning.budget import NO_LIMIT, Budget
from lbm.reasoning.exact.apart import take_apart
from lbm.reasoning.exact.whole import circuit_of


def circuit_of_theory(theory: Theory, budget: Budget = NO_LIMIT) -> Circuit:
    """Return a deterministic decomposable circuit over the atoms of a theory, in order, with its models.

    The theory has no soft formulae: a circuit has no weights.

    >>> circuit_of_theory(Theory(["a | b", "c"], atoms=["a", "b", "c", "d"])).variables
    4
    """
    soft = next((statement for statement in theory if statement.weight is not None), None)
    if soft is not None:
        what = statement_shown(soft)
        raise WeightError(f"a circuit has no weights, and this theory says {what!r}: write .wcnf or .lbm")
    place = {name: i for i, name in enumerate(theory.atoms)}
    build = Builder(len(place))
    if len(theory) == 1 and is_circuit_formula(theory.statements[0].formula):
        return build.circuit(circuit_of_formula(theory.statements[0].formula, place, build))
    split = take_apart(theory, budget=budget)
    if split is None:
        return build.circuit(build.false)
    parts = [build.literal(place[name], value) for name, value in split.fixed.items()]
    for component in split.components:
        budget.tick()
        circuit = circuit_of(component, None, budget).passes.circuit
        literals = [slot for name in component.atoms for slot in (2 * place[name], 2 * place[name] + 1)]
        # Definitions are functions of the atoms: what they say is said without them, too, and no world makes
        # two parts of a sum true that it did not before, since it would then be counted twice.
        literals += [build.true] * (2 * circuit.variables - len(literals))
        parts.append(build.add(circuit, literals)[circuit.root])
    return build.circuit(build.product(parts))


def save_circuit(theory: Theory, path: str | Path, budget: Budget = NO_LIMIT) -> None:
    """Write a theory as .nnf, compiled to a circuit if it is none, whole or not at all."""
    write_nnf(circuit_of_theory(theory, budget), path, atoms=theory.atoms)
