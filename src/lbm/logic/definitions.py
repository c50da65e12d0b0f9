"""Definitions (Tseitin encoding): new atoms, where a flat strict DNF would explode.

A part g of a formula is replaced by a new atom t together with the definition t <-> g, a full
equivalence: every world extends to the new atoms in exactly one way. Pieces are kept so small that
their strict DNFs, and with them the whole, stay linear in the size of the formula.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from lbm.errors import LimitExceeded
from lbm.knowledge.clauses import counter
from lbm.knowledge.formula import (
    CARDINALITIES,
    FALSE,
    TRUE,
    Formula,
    conjunction,
    disjunction,
    fold,
    make,
    postorder,
)
from lbm.knowledge.weighted import counter_cells
from lbm.logic.anatomy import View, strip, view
from lbm.logic.elimination import capped_sum, count_up

WIDE: Final = 16
"""Literals side by side in one piece."""

CELLS: Final = 100_000
"""Cells of the counters that a formula's cardinalities may need; each becomes a definition or two."""

PRODUCT: Final = 4
"""How far the sizes of the parts of one piece may multiply."""


@dataclass(frozen=True, slots=True)
class Sized:
    """A formula with its parts already replaced, and how many cubes it and its negation take."""

    formula: Formula
    yes: int
    no: int

    def negated(self) -> Sized:
        """Return the piece seen the other way round."""
        formula = self.formula
        return Sized(formula.args[0] if formula.kind == "not" else ~formula, self.no, self.yes)


@dataclass(slots=True)
class Definer:
    """Rewrites formulae with definitional atoms; equal parts of one theory are defined once.

    ``definitions`` maps each new atom's name to the formula it stands for, in an order in which every
    definition mentions only atoms of the theory and earlier new ones.
    """

    prefix: str
    definitions: dict[str, Formula] = field(default_factory=dict)
    _known: dict[Formula, Formula] = field(default_factory=dict)

    @classmethod
    def beside(cls, atoms: Iterable[str]) -> Definer:
        """Return a definer whose names clash with none of ``atoms``."""
        taken = {match[1] for name in atoms if name[0] == "_" and (match := re.fullmatch(r"(_+t)\d+", name))}
        prefix = "_t"
        while prefix in taken:
            prefix = "_" + prefix
        return cls(prefix)

    def rewrite(self, formula: Formula) -> Formula:
        """Return ``formula`` with its larger parts replaced by definitional atoms."""
        if (cells := counter_cells(formula)) > CELLS:
            raise LimitExceeded(
                f"the cardinalities of this formula need about {cells} counter cells, more than {CELLS} "
                "(limit CELLS): as a machine it would be too large; questions about the theory need none",
                CELLS=CELLS,
            )
        plain = fold(formula, _without_large_cardinalities)
        shared = _shared(plain)
        done: dict[Formula, Sized] = {}
        root = strip(plain)
        stack = [(root[0], False)]
        views: dict[Formula, View] = {}
        while stack:
            node, ready = stack.pop()
            if node in done:
                continue
            if not ready:
                views[node] = view(node, whole=shared)
                stack.append((node, True))
                stack.extend((part, False) for part, _ in views[node].parts if part is not node)
            else:
                piece = self._piece(node, views.pop(node), done)
                done[node] = self._cut(piece) if node in shared and node is not root[0] else piece
        piece = done[root[0]]
        return piece.formula if root[1] else piece.negated().formula

    def _piece(self, node: Formula, seen: View, done: dict[Formula, Sized]) -> Sized:
        if seen.op == "literal":
            return Sized(node, 1, 1)
        if seen.op == "constant":
            return Sized(TRUE, 1, 0) if seen.label else Sized(FALSE, 0, 1)
        parts = [done[part] if sign else done[part].negated() for part, sign in seen.parts]
        if seen.op == "or":
            return self._any(parts)
        if seen.op == "and":
            return self._any([part.negated() for part in parts]).negated()
        if seen.op == "xor":
            return self._odd(parts) if seen.label else self._odd(parts).negated()
        cut = [self._cut(part) for part in parts]
        ones = [(1, 1)] * len(cut)
        least, most, inside = seen.label
        yes, no = (count_up(ones, (least, most, way), 1, 0, capped_sum) for way in (inside, not inside))
        return Sized(make(node.kind, node.label, tuple([part.formula for part in cut])), yes, no)

    def _any(self, parts: list[Sized]) -> Sized:
        """Return the disjunction of pieces; those whose sizes would multiply too far are cut."""
        kept: list[Sized] = []
        room = PRODUCT
        for whole in sorted(parts, key=lambda part: part.no):
            part = self._cut(whole) if whole.no > room else whole
            room //= max(1, part.no)
            kept.append(part)
        while len(kept) > WIDE:
            groups = [kept[i : i + WIDE] for i in range(0, len(kept), WIDE)]
            kept = [self._cut(_or(group)) if len(group) > 1 else group[0] for group in groups]
        return _or(kept)

    def _odd(self, parts: list[Sized]) -> Sized:
        """Return the exclusive or of pieces, cutting what has grown too large."""
        total = Sized(FALSE, 0, 1)
        for whole in parts:
            part = self._cut(whole) if whole.yes + whole.no > PRODUCT else whole
            if (total.yes + total.no) * (part.yes + part.no) > 2 * PRODUCT:
                total = self._cut(total)
            joined = part.formula if total.formula is FALSE else total.formula ^ part.formula
            yes = total.yes * part.no + total.no * part.yes
            total = Sized(joined, yes, total.yes * part.yes + total.no * part.no)
        return total

    def _cut(self, piece: Sized) -> Sized:
        """Replace a piece by the literal of its definitional atom."""
        formula, positive = strip(piece.formula)
        if formula.kind == "atom":
            return piece
        found = self._known.get(formula)
        if found is None:
            name = f"{self.prefix}{len(self.definitions) + 1}"
            self.definitions[name] = formula
            found = self._known[formula] = make("atom", name, ())
        return Sized(found if positive else ~found, 1, 1)


def _or(parts: list[Sized]) -> Sized:
    """Return the disjunction of pieces as it is written: cheapest negation first."""
    yes, no = 0, 1
    for part in parts:
        yes += no * part.yes
        no *= part.no
    if parts and all(part.formula.kind == "not" for part in parts):
        return Sized(~conjunction([part.negated().formula for part in parts]), yes, no)
    return Sized(disjunction([part.formula for part in parts]), yes, no)


def _without_large_cardinalities(node: Formula, parts: list[Formula]) -> Formula:
    same = make(node.kind, node.label, tuple(parts))
    if node.kind not in CARDINALITIES:
        return same
    ones = [(1, 1)] * min(len(parts), WIDE + 1)
    small = len(parts) <= WIDE and count_up(ones, view(same).label, 1, 0, capped_sum) <= WIDE
    return same if small else counter(same)


def _shared(formula: Formula) -> set[Formula]:
    """Return the parts, literals and constants apart, that stand in more than one place."""
    times: Counter[Formula] = Counter()
    for node in postorder(formula):
        times.update({strip(part)[0] for part in node.args} if node.kind != "not" else ())
    return {node for node, number in times.items() if number > 1 and node.args}
