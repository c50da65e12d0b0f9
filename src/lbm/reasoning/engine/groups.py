"""Groups: atoms that flip together (block moves), where single flips would break something.

Where exactly one of some literals is true, another can be only as the first becomes false: two flips. An
equivalence is kept if both its sides flip. So these are worth offering, whatever the signs of the literals:

- pairs inside a gate that asks for an exact number of its literals, or for a parity;
- pairs inside a clause whose literals exclude one another, by clauses of two literals or an at-most-one gate;
- both sides of an equivalence or exclusive or, be it one gate or two clauses, and whole classes of atoms that
  these, or circles of implications, join;
- an atom that names a formula, with each atom of that formula.

What is offered changes how fast chains move, never where they go.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from lbm.arrays import Bools, Ints
from lbm.reasoning.engine.network import GateNetwork, are_clauses, over_atoms

MEMBERS: Final = 4
"""Members of all groups together, per atom of the network; what is over is thinned evenly, rings last."""

PAIRS: Final = 64
"""Pairs up to which a gate's are all offered; a larger gate has rings of a few strides."""

STRIDES: Final = (0, 1 / 2, 1 / 4, 3 / 4)
"""Rings of a larger gate of k atoms: their strides are about 1, k^(1/2), k^(1/4) and k^(3/4)."""

CLASS: Final = 64
"""Atoms of a class up to which it is offered as a whole."""

OFFERED: Final = 1 << 14
"""Members that are offered in one sweep, so that it stays short; the others follow in the next sweeps."""

Groups = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Members and starts: group k is ``members[starts[k]:starts[k + 1]]``."""


def groups_of(network: GateNetwork) -> Groups:
    """Return the groups of atoms worth offering: members, shape (members,), and starts, shape (groups + 1,).

    No group holds an atom twice, and no two are the same. Hard formulae come before soft ones where MEMBERS
    does not allow all.
    """
    gates = _Kinds(network)
    hard, soft = _edges(gates)
    known: set[tuple[int, ...]] = set()
    hard_rings, soft_rings = _rings(gates, firm=True), _rings(gates, firm=False)
    hard_names, soft_names = _names(gates)
    layers = [_classes(hard, network.atoms, known), [hard, hard_names], *hard_rings[:1]]
    layers += [_classes(np.concatenate([hard, soft]), network.atoms, known)]
    layers += [[soft, soft_names], *soft_rings[:1]]
    none: list[Ints] = []
    for further in zip_longest(hard_rings[1:], soft_rings[1:], fillvalue=none):
        layers += further
    return _packed(layers, network.atoms)


def parts_of(groups: Groups) -> list[NDArray[np.int32]]:
    """Return the starts of the groups that one sweep offers, then those of the next, and so around.

    Each part has at most OFFERED members, or is a single group.
    """
    starts = groups[1]
    parts = []
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + OFFERED, side="right")) - 1
        last = max(last, first + 1)
        parts.append(np.ascontiguousarray(starts[first : last + 1]))
        first = last
    return parts


# --- what the gates say ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kinds:
    """The kinds of gates, by what they ask for; literals are codes: 2·atom, and one more where negated."""

    network: GateNetwork

    @cached_property
    def sizes(self) -> Ints:
        return np.diff(self.network.first_child)

    @cached_property
    def wanted(self) -> Bools:
        """Whether a gate is better true."""
        hard = self.network.hard
        return np.asarray((hard > 0) | ((hard == 0) & (self.network.soft > 0)))

    @cached_property
    def simple(self) -> Bools:
        """Whether the children of a gate are different atoms."""
        return over_atoms(self.network.atoms, self.network.child, self.network.first_child)

    @cached_property
    def odd(self) -> Bools:
        """Whether a gate is a parity that matters."""
        network = self.network
        return np.asarray((network.wires.mask == 1) & ((network.hard != 0) | (network.soft != 0)))

    @cached_property
    def clause(self) -> Bools:
        wires = self.network.wires
        return are_clauses(wires.low, wires.span) & self.wanted & self.simple

    def shaped(self, low: int, span: int) -> Bools:
        """Return which gates are better true and ask for low..low + span of their atoms."""
        wires = self.network.wires
        right = (wires.low == low) & (wires.span == span) & (wires.mask != 1)
        return np.asarray(right & self.wanted & self.simple & ~self.clause)

    @cached_property
    def exact(self) -> Bools:
        """Which gates ask for an exact number of their atoms, neither none nor all."""
        wires = self.network.wires
        right = (wires.span == 0) & (wires.mask != 1) & (wires.low > 0) & (wires.low < self.sizes)
        return np.asarray(right & self.wanted & self.simple)

    def atoms(self, gates: NDArray[np.intp]) -> Ints:
        """Return the atoms of gates of one size, shape (gates, size)."""
        return self.network.child[self._places(gates)].astype(np.int64)

    def codes(self, gates: NDArray[np.intp]) -> Ints:
        """Return the literals of gates of one size, shape (gates, size)."""
        return 2 * self.atoms(gates) + (self.network.child_sign[self._places(gates)] < 0)

    def _places(self, gates: NDArray[np.intp]) -> Ints:
        width = int(self.sizes[gates[0]])
        return self.network.first_child[gates][:, None] + np.arange(width)

    def by_size(self, chosen: Bools, least: int = 2) -> Iterator[NDArray[np.intp]]:
        """Yield the chosen gates, all of one size at a time."""
        at = np.flatnonzero(chosen & (self.sizes >= least))
        for size in np.unique(self.sizes[at]):
            yield at[self.sizes[at] == size]

    @cached_property
    def binary(self) -> tuple[Ints, Bools]:
        """Clauses of two literals, shape (clauses, 2), the smaller code first; and whether they are hard."""
        at = np.flatnonzero(self.clause & (self.sizes == 2))
        if not len(at):
            return np.zeros((0, 2), np.int64), np.zeros(0, bool)
        return np.sort(self.codes(at), axis=1), self.network.hard[at] > 0


# --- pairs and classes -------------------------------------------------------------------------------


def _edges(gates: _Kinds) -> tuple[Ints, Ints]:
    """Return the pairs of atoms that hard formulae make equal or opposite, and those that soft ones do."""
    network = gates.network
    hard, soft = [_two_clauses(gates, firm=True), _circles(gates)], [_two_clauses(gates, firm=False)]
    pairs = np.flatnonzero((gates.odd & gates.simple | gates.exact) & (gates.sizes == 2))
    if len(pairs):
        firm = network.hard[pairs] != 0
        hard.append(gates.atoms(pairs)[firm])
        soft.append(gates.atoms(pairs)[~firm])
    return _unique(hard, network.atoms), _unique(soft, network.atoms)


def _names(gates: _Kinds) -> tuple[Ints, Ints]:
    """Return pairs of an atom that names a formula and an atom of it, by hard formulae and by soft ones."""
    found: tuple[list[Ints], list[Ints]] = [], []
    for gate in np.flatnonzero(gates.odd & ~gates.simple):
        found[not gates.network.hard[gate]].append(_naming(gates.network, int(gate)))
    return _unique(found[0], gates.network.atoms), _unique(found[1], gates.network.atoms)


def _naming(network: GateNetwork, gate: int) -> Ints:
    """Return an atom that a parity joins to another gate, with each atom of that gate, as pairs."""

    def below(g: int) -> list[int]:
        return list(network.child[network.first_child[g] : network.first_child[g + 1]].tolist())

    own = below(gate)
    found = [
        (name, other)
        for name in own
        if name < network.atoms
        for inner in own
        if inner >= network.atoms
        for other in below(inner - network.atoms)
        if other < network.atoms and other != name
    ]
    return np.array(found[:PAIRS], np.int64).reshape(-1, 2)


def _two_clauses(gates: _Kinds, *, firm: bool) -> Ints:
    """Return the pairs that two clauses make equivalent, ~a|b with a|~b, or opposite, a|b with ~a|~b."""
    codes, hard = gates.binary
    codes = codes[hard] if firm else codes
    keys = np.unique(4 * _key(codes >> 1, gates.network.atoms) + 2 * (codes[:, 0] & 1) + (codes[:, 1] & 1))
    keys = keys[_within(keys ^ 3, keys)] >> 2
    return np.stack([keys // gates.network.atoms, keys % gates.network.atoms], axis=1)


def _circles(gates: _Kinds) -> Ints:
    """Return pairs that link the atoms of each circle of hard implications: they are equal or opposite."""
    codes, hard = gates.binary
    codes = codes[hard]
    if not len(codes):
        return codes
    tail = np.concatenate([codes[:, 0] ^ 1, codes[:, 1] ^ 1])
    head = np.concatenate([codes[:, 1], codes[:, 0]])
    return _chains(tail, head, 2 * gates.network.atoms, strong=True) >> 1


def _chains(tail: Ints, head: Ints, nodes: int, *, strong: bool = False) -> Ints:
    """Return pairs that link the nodes of each component of a graph, in the order of their numbers."""
    graph = coo_array((np.ones(len(tail), np.int8), (tail, head)), shape=(nodes, nodes)).tocsr()
    _, label = connected_components(graph, connection="strong" if strong else "weak")
    order = np.argsort(label, kind="stable")
    same = label[order][1:] == label[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1).astype(np.int64)


def _classes(edges: Ints, atoms: int, known: set[tuple[int, ...]]) -> list[Ints]:
    """Return the sets of three atoms or more that edges join, by size; known ones are left out."""
    if not len(edges):
        return []
    links = _chains(edges[:, 0], edges[:, 1], atoms)  # class by class, each one's links in a row
    cuts = np.flatnonzero(links[1:, 0] != links[:-1, 1]) + 1
    found: dict[int, list[tuple[int, ...]]] = {}
    for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), len(links)], strict=True):
        if 2 <= last - first < CLASS:
            members = (*links[first:last, 0].tolist(), int(links[last - 1, 1]))
            if members not in known:
                known.add(members)
                found.setdefault(len(members), []).append(members)
    return [np.array(found[size], np.int64) for size in sorted(found)]


# --- rings -------------------------------------------------------------------------------------------


def _rings(gates: _Kinds, *, firm: bool) -> list[list[Ints]]:
    """Return pairs inside exact gates, exclusive clauses and parities: a list of arrays for each stride."""
    mine = (gates.network.hard != 0) == firm
    rows = [gates.atoms(some) for some in gates.by_size(gates.exact & mine)]
    rows += _exclusive(gates, mine)
    found: list[list[Ints]] = []
    for row in rows:
        for layer, stride in enumerate(_strides(row.shape[1])):
            while len(found) <= layer:
                found.append([])
            found[layer].append(_ring(row, stride))
    parities = [gates.atoms(some) for some in gates.by_size(gates.odd & gates.simple & mine, 3)]
    if parities:
        found = found or [[]]
        found[0] += [_ring(row, 1) for row in parities]
    return found


def _strides(size: int) -> list[int]:
    """Return how far apart the atoms of a pair are in a ring of so many: all distances of a small ring."""
    few = dict.fromkeys(min(round(size**power), size // 2) for power in STRIDES)
    return list(few if size * (size - 1) // 2 > PAIRS else {**few, **dict.fromkeys(range(1, size // 2 + 1))})


def _ring(rows: Ints, stride: int) -> Ints:
    """Return the pairs at that distance, around each row; shape (pairs, 2)."""
    other = np.roll(rows, -stride, axis=1)
    width = stride if 2 * stride == rows.shape[1] else rows.shape[1]  # half way around, pairs come twice
    return np.stack([rows[:, :width].ravel(), other[:, :width].ravel()], axis=1)


def _exclusive(gates: _Kinds, mine: Bools) -> list[Ints]:
    """Return the atoms of clauses of which no two literals can be true, by size: exactly one is."""
    codes, _ = gates.binary
    width = 2 * gates.network.atoms
    excluded = np.unique(_key(np.sort(codes ^ 1, axis=1), width))
    single = {
        np.sort(row).tobytes() for some in gates.by_size(gates.shaped(0, 1), 3) for row in gates.codes(some)
    }
    found: list[Ints] = []
    if not len(excluded) and not single:
        return found
    for some in gates.by_size(gates.clause & mine, 3):
        rows = np.sort(gates.codes(some), axis=1)
        named = np.array([row.tobytes() in single for row in rows] if single else np.zeros(len(rows)), bool)
        left = np.flatnonzero(~named)
        for i in range(rows.shape[1] - 1):
            if not len(left) or not len(excluded):
                left = left[:0]
                break
            firsts = np.broadcast_to(rows[left, i : i + 1], (len(left), rows.shape[1] - 1 - i))
            keys = firsts * width + rows[left, i + 1 :]
            left = left[_within(keys, excluded).all(axis=1)]
        named[left] = True
        if named.any():
            found.append(rows[named] >> 1)
    return found


# --- packing -----------------------------------------------------------------------------------------


def _key(pairs: Ints, base: int) -> Ints:
    return np.asarray(pairs[:, 0] * base + pairs[:, 1])


def _within(keys: Ints, known: Ints) -> Bools:
    """Return which keys are among the known ones, which are sorted."""
    if not len(known):
        return np.zeros(keys.shape, bool)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.asarray(known[at] == keys)


def _unique(parts: list[Ints], atoms: int) -> Ints:
    """Return the different pairs of two atoms, the smaller first, in order."""
    pairs = np.sort(np.concatenate([np.zeros((0, 2), np.int64), *parts]), axis=1)
    keys = np.unique(_key(pairs[pairs[:, 0] != pairs[:, 1]], max(1, atoms)))
    return np.stack([keys // max(1, atoms), keys % max(1, atoms)], axis=1)


def _packed(layers: list[list[Ints]], atoms: int) -> Groups:
    """Return the groups of the layers, no pair twice, up to MEMBERS; a layer that does not fit is thinned."""
    room = MEMBERS * atoms
    chosen: list[Ints] = []
    known = np.zeros(0, np.int64)
    for layer in layers:
        for groups in (each for each in layer if each.shape[1] > 2):
            chosen.append(groups[: room // groups.shape[1]])
            room -= chosen[-1].size
        pairs = _unique([each for each in layer if each.shape[1] == 2], atoms)
        pairs = pairs[~_within(_key(pairs, atoms), known)]
        keep = min(len(pairs), room // 2)
        if keep < len(pairs):
            pairs = pairs[np.arange(keep) * len(pairs) // max(1, keep)]
        room -= pairs.size
        known = np.sort(np.concatenate([known, _key(pairs, atoms)]))
        chosen.append(pairs)
    lengths = np.repeat([each.shape[1] for each in chosen], [len(each) for each in chosen])
    members = np.concatenate([each.ravel() for each in chosen]).astype(np.int32)
    return members, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
