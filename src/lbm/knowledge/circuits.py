"""Circuits (negation normal form, NNF): formulae as sums and products that share their parts, as arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lbm.arrays import Ints

PRODUCT: Final = 0
"""A gate that is true where all its parts are (a conjunction); without parts it is always true."""

SUM: Final = 1
"""A gate that is true where one of its parts is (a disjunction); without parts it is never true."""


@dataclass(frozen=True, eq=False, slots=True)
class Circuit:
    """Gates over the literals of some variables, parts before wholes.

    Slots number literals and gates alike: slot 2·v + 1 is the variable v (from 0), slot 2·v its negation, and
    slot 2·variables + g the gate g. Answers are read off circuits that are *decomposable* (the parts of a
    product share no variable) and *deterministic* (no world makes two parts of a sum true): then a sum of
    products of weights over the gates is one over the models (d-DNNF). They are *smooth* if the parts of a
    sum mention the same variables.

    Attributes
    ----------
    variables
        How many there are.
    kinds
        Shape (gates,), PRODUCT or SUM.
    starts, parts
        Gate g has the slots ``parts[starts[g]:starts[g + 1]]`` as parts, all of them below its own slot.
    root
        The slot of the whole.
    """

    variables: int
    kinds: NDArray[np.uint8]
    starts: Ints
    parts: Ints
    root: int

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def edges(self) -> int:
        """How many parts all gates have together, which is what one pass over the circuit costs."""
        return len(self.parts)


class Builder:
    """Circuits made gate by gate; equal gates are made once, and what is trivial is never made.

    ``edges`` counts the parts of all gates made so far.

    >>> build = Builder(2)
    >>> one = build.product([build.literal(0, True), build.literal(1, False)])
    >>> either = build.sum([one, build.literal(0, False)])
    >>> build.circuit(either).edges
    4
    """

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.first = 2 * variables
        self.gates: list[tuple[int, tuple[int, ...]]] = []
        self.edges = 0
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self.true = self._gate(PRODUCT, ())
        self.false = self._gate(SUM, ())

    def literal(self, variable: int, value: bool) -> int:
        """Return the slot of a literal."""
        return 2 * variable + value

    def product(self, parts: Iterable[int]) -> int:
        """Return the slot of a product."""
        flat: list[int] = []
        for part in parts:
            if part == self.false:
                return self.false
            if part >= self.first and self.gates[part - self.first][0] == PRODUCT:
                inner = self.gates[part - self.first][1]
                if len(inner) <= 2:  # longer ones may be shared, and are then worked out once
                    flat += inner
                    continue
            flat.append(part)
        return flat[0] if len(flat) == 1 else self._gate(PRODUCT, tuple(sorted(flat)))

    def sum(self, parts: Iterable[int]) -> int:
        """Return the slot of a sum."""
        left = tuple(sorted(part for part in parts if part != self.false))
        return left[0] if len(left) == 1 else self._gate(SUM, left)

    def add(self, circuit: Circuit, literals: Sequence[int], made: Sequence[int] = ()) -> list[int]:
        """Return what the slots of another circuit become, with other slots in place of its literals.

        Parameters
        ----------
        literals
            A slot for each literal of the circuit; ``true`` or ``false`` gives it a value.
        made
            Slots of gates that are there already, -1 for one that is not; none: none is.

        >>> build = Builder(2)
        >>> both = build.circuit(build.product([build.literal(0, True), build.literal(1, True)]))
        >>> build.add(both, [build.false, build.true, 2, 3])[both.root] == build.literal(1, True)
        True
        """
        slots = list(literals)
        starts, parts = circuit.starts.tolist(), circuit.parts.tolist()
        for gate, kind in enumerate(circuit.kinds.tolist()):
            if made and made[gate] >= 0:
                slots.append(made[gate])
            else:
                row = [slots[part] for part in parts[starts[gate] : starts[gate + 1]]]
                slots.append(self.product(row) if kind == PRODUCT else self.sum(row))
        return slots

    def circuit(self, root: int) -> Circuit:
        """Return the circuit of a slot: its gates, and no others."""
        import numpy as np

        wanted = bytearray(len(self.gates))
        stack = [root] if root >= self.first else []
        while stack:
            slot = stack.pop()
            if not wanted[slot - self.first]:
                wanted[slot - self.first] = 1
                stack += [part for part in self.gates[slot - self.first][1] if part >= self.first]
        place = list(range(self.first + len(self.gates)))
        kinds: list[int] = []
        counts = [0]
        flat: list[int] = []
        for number, (kind, parts) in enumerate(self.gates):
            if wanted[number]:
                place[self.first + number] = self.first + len(kinds)
                kinds.append(kind)
                counts.append(len(parts))
                flat += [place[part] for part in parts]
        starts = np.cumsum(counts, dtype=np.int64)
        return Circuit(
            self.variables, np.array(kinds, np.uint8), starts, np.array(flat, np.int64), place[root]
        )

    def _gate(self, kind: int, parts: tuple[int, ...]) -> int:
        key = kind, parts
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.first + len(self.gates)
            self.gates.append(key)
            self.edges += len(parts)
        return found
