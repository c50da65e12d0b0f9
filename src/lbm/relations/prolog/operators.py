"""Prolog's table of operators, with those that Aleph declares, and directives that add to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lbm.relations.prolog.terms import Compound, Term, list_items

_STANDARD: Final = """
1200 xfx :- -->
1200 fx :- ?-
1100 xfy ;
1050 xfy -> *->
1000 xfy ,
990 xfx :=
900 xfy because
900 fy \\+
700 xfx = \\= == \\== < =< > >= =:= =\\= =.. is @< @=< @> @>= =@= \\=@=
700 xfx #= #\\= #< #> #=< #>=
600 xfy :
500 yfx + - /\\ \\/ xor
500 fy # *
400 yfx * / // mod rem div << >>
200 xfx **
200 xfy ^
200 fy - + \\
1150 fx dynamic discontiguous initialization multifile module_transparent table thread_local
"""
# `not` is left out of the table: it is written not(p) in all files met, and Aleph declares no operator of it.

_KINDS: Final = frozenset("xfx xfy yfx fy fx xf yf".split())


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator; ``left`` and ``right``: the largest priorities its arguments may have, -1: none there."""

    name: str
    priority: int
    left: int
    right: int


class Operators:
    """The operators in force while a file is read: prefix ones, and those between or after arguments."""

    def __init__(self) -> None:
        self.prefix: dict[str, Operator] = {}
        self.infix: dict[str, Operator] = {}
        for line in _STANDARD.split("\n"):
            priority, kind, *names = line.split() or ("0", "")
            for name in names:
                self.add(int(priority), kind, name)

    def add(self, priority: int, kind: str, name: str) -> None:
        """Declare an operator; priority 0 takes it away."""
        table = self.prefix if kind in ("fy", "fx") else self.infix
        if priority == 0:
            table.pop(name, None)
            return
        before, _, after = kind.partition("f")
        largest = {"": -1, "x": priority - 1, "y": priority}
        table[name] = Operator(name, priority, largest[before], largest[after])

    def declare(self, directive: Term) -> str | None:
        """Obey ``op(Priority, Kind, Names)``; return what is wrong with it, None if nothing is."""
        if not (isinstance(directive, Compound) and len(directive.arguments) == 3):
            return "expected op(Priority, Kind, Names)"
        priority, kind, names = directive.arguments
        if not (isinstance(priority, int) and 0 <= priority <= 1200):
            return "expected a priority from 0 to 1200"
        if kind not in _KINDS:
            return "expected one of " + ", ".join(sorted(_KINDS))
        items, tail = list_items(names)
        for name in items if items and tail == "[]" else [names]:
            if not isinstance(name, str) or name in (",", "|", "[]", "{}"):
                return "expected the name of an operator"
            self.add(priority, str(kind), name)
        return None
