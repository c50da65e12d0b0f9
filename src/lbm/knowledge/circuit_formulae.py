"""Circuits as formulae of ``&``, ``|`` and ``~``, which share what the circuit shares, and back again.

A formula that was made from a circuit is known to be one for as long as anybody has it: its conjunctions
share no atoms (decomposable), and no world makes two parts of a disjunction true (deterministic). Atoms
with values leave it so. What is known of a formula is no part of it: an equal one is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from lbm.knowledge.circuits import PRODUCT, Builder, Circuit
from lbm.knowledge.formula import Formula, atom, conjunction, disjunction, postorder

_known: Final[WeakKeyDictionary[Formula, bool]] = WeakKeyDictionary()


def formula_of_circuit(circuit: Circuit, names: Sequence[str]) -> Formula:
    """Return the formula with the models of a circuit, and remember that it is one.

    ``names`` are those of the circuit's variables.

    >>> build = Builder(2)
    >>> whole = build.sum([build.literal(0, False), build.product([build.literal(0, True), 3])])
    >>> print(formula_of_circuit(build.circuit(whole), ["a", "b"]))
    ~a | a & b
    """
    made: list[Formula | None] = [None] * (2 * circuit.variables)
    starts, parts = circuit.starts.tolist(), circuit.parts.tolist()

    def part_of(slot: int) -> Formula:
        found = made[slot]
        if found is None:  # a literal that is met for the first time
            found = atom(names[slot >> 1])
            found = made[slot] = found if slot & 1 else ~found
        return found

    for gate, kind in enumerate(circuit.kinds.tolist()):
        row = [part_of(slot) for slot in parts[starts[gate] : starts[gate + 1]]]
        made.append(conjunction(row) if kind == PRODUCT else disjunction(row))
    found = part_of(circuit.root)
    believe([found])
    return found


def believe(formulae: Iterable[Formula]) -> None:
    """Remember that formulae are circuits; literals and constants say so themselves."""
    for formula in formulae:
        if formula.kind in ("and", "or"):
            _known.setdefault(formula, False)


def known_circuits(formulae: Iterable[Formula]) -> tuple[Formula, ...]:
    """Return those that are known to be circuits."""
    return tuple(formula for formula in formulae if formula in _known)


def is_circuit_formula(formula: Formula) -> bool:
    """Return whether a formula is known to be a circuit."""
    return formula in _known


def inherit(formula: Formula, others: Iterable[Formula]) -> None:
    """Remember of parts of a formula, or of what is left of it under some values, what is known of it."""
    checked = _known.get(formula)
    if checked is not None:
        for other in others:
            if other.kind in ("and", "or"):
                _known.setdefault(other, checked)


def looked_at(formula: Formula, *, is_one: bool) -> None:
    """Remember that worlds were drawn from a circuit, and whether it turned out to be one."""
    if is_one:
        _known[formula] = True
    else:
        _known.pop(formula, None)


def was_looked_at(formula: Formula) -> bool:
    """Return whether worlds were drawn from a circuit."""
    return _known.get(formula, False)


def circuit_of_formula(formula: Formula, place: Mapping[str, int], build: Builder) -> int:
    """Return the slot of a formula that is a circuit; ``place`` numbers the variables of its atoms from 0."""
    order = list(postorder(formula))
    uses: dict[Formula, int] = {}
    for node in order:
        for part in node.args:
            uses[part] = uses.get(part, 0) + 1
    slots: dict[Formula, int] = {}
    rows: dict[
        Formula, list[int]
    ] = {}  # parts of conjunctions or disjunctions that stand in one of their kind

    def is_inner(part: Formula, kind: str) -> bool:
        return part.kind == kind and uses[part] == 1

    wanted = {
        part
        for node in order
        if node.kind in ("and", "or")
        for part in node.args
        if is_inner(part, node.kind)
    }
    for node in order:
        kind = node.kind
        if kind == "atom":
            slots[node] = build.literal(place[node.label], True)
        elif kind == "not":
            (below,) = node.args
            assert below.kind == "atom", "only atoms are negated in a circuit"
            slots[node] = build.literal(place[below.label], False)
        elif kind in ("and", "or"):
            left, right = node.args
            row = rows.pop(left) if is_inner(left, kind) else [slots[left]]
            row += rows.pop(right) if is_inner(right, kind) else [slots[right]]
            if node in wanted:
                rows[node] = row
            else:
                slots[node] = build.product(row) if kind == "and" else build.sum(row)
        else:
            assert kind in ("true", "false"), f"{kind} has no place in a circuit"
            slots[node] = build.true if kind == "true" else build.false
    return slots[formula]
