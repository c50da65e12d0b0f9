"""What rules call things: ``'glu > 150'``, ``'107.5 < glu <= 147.5'``, ``'sex = women'``, ``'kind = class'``.

An encoder has an atom for every cut and every category; a rule may say the same in other words. Here they
become formulae over those atoms, and what fits nothing becomes an error that suggests what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, isfinite, nextafter
from operator import eq, ge, gt, le, lt
from typing import Final

from lbm.errors import UnknownAtom
from lbm.knowledge.formula import FALSE, TRUE, Formula, atom, atoms_of, fold, make
from lbm.knowledge.parser import Statement
from lbm.knowledge.theory import Theory
from lbm.training.boltzmann.knowledge import known_as
from lbm.training.data.columns import Group

_COMPARE: Final = {"<=": le, ">=": ge, "<": lt, ">": gt, "=": eq}
_TURNED: Final = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "="}
_OPPOSITE: Final = {"<=": ">", ">": "<=", "<": ">=", ">=": "<"}
_SIGN: Final = re.compile(r"\s*(<=|>=|<|>|=)\s*")
_TRUTHS: Final = {"true": "1", "false": "0"}

Bounds = tuple[tuple[str, str], ...]
"""Relations and values that a column is compared with, all of which are to hold."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an atom says of a column: ``107.5 < glu <= 147.5`` is (('>', '107.5'), ('<=', '147.5'))."""

    name: str
    column: str
    bounds: Bounds

    def cuts(self) -> list[float]:
        """Return the cuts, of ``column <= cut``, that say this."""
        found = []
        for relation, text in self.bounds:
            value = number(text)
            if value is None:
                raise ValueError(
                    f"a rule says {self.name!r}, and column {self.column!r} holds numbers, not {text!r}: "
                    f"write for example '{self.column} > 1.5'"
                )
            below = nextafter(value, -inf)
            found += {"<=": [value], ">": [value], "<": [below], ">=": [below], "=": [below, value]}[relation]
        return found

    def formula(self) -> Formula:
        """Return the same over atoms ``column <= cut``."""
        parts: list[Formula] = []
        for relation, text in self.bounds:
            cuts = Comparison(self.name, self.column, ((relation, text),)).cuts()
            said = [atom(cut_name(self.column, cut)) for cut in cuts]
            negative = relation in (">", ">=", "=")
            parts.append(~said[0] if negative else said[0])
            parts += said[1:]
        return _all(parts)

    def truth(self) -> Formula:
        """Return the same of a column of 0 and 1, which is an atom."""
        bounds = [(relation, number(_TRUTHS.get(text.lower(), text))) for relation, text in self.bounds]
        if any(value is None or (relation == "=" and value not in (0, 1)) for relation, value in bounds):
            raise ValueError(
                f"a rule says {self.name!r}, and column {self.column!r} holds only 0 and 1: "
                f"write '{self.column}' or ~'{self.column}'"
            )
        no, yes = (
            all(_COMPARE[relation](x, value) for relation, value in bounds if value is not None)
            for x in (0.0, 1.0)
        )
        column = atom(known_as(self.column))
        if no == yes:
            return TRUE if yes else FALSE
        return column if yes else ~column


def number(text: str) -> float | None:
    """Return a finite number as text has it; None: it is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def cut_name(column: str, cut: float) -> str:
    """Return what the atom of a cut is called: ``glu <= 150``, or ``glu < 150`` for the next number below."""
    return Group(column, "threshold", cuts=(cut,)).atoms[0]


def comparisons(name: str) -> Iterator[Comparison]:
    """Yield the ways to read an atom as a comparison of some column, ranges first."""
    signs = list(_SIGN.finditer(name))
    for one, two in combinations(signs, 2):
        middle = name[one.end() : two.start()]
        low, high = name[: one.start()], name[two.end() :]
        if low and middle and high and one[1][0] == two[1][0] and one[1] != "=":
            yield Comparison(name, middle, ((_TURNED[one[1]], low), (two[1], high)))
    for sign in signs:
        left, relation, right = name[: sign.start()], sign[1], name[sign.end() :]
        if left and right:
            yield Comparison(name, left, ((relation, right),))
            if relation != "=":
                yield Comparison(name, right, ((_TURNED[relation], left),))


def comparison(name: str, columns: Mapping[str, str]) -> Comparison | None:
    """Return an atom as a comparison of one of these columns, given by what they are known as."""
    for found in comparisons(name):
        if found.column in columns and _cut_in(found.column) is None:  # a cut is compared with nothing
            return Comparison(name, columns[found.column], found.bounds)
    return None


def known_columns(columns: Iterable[str]) -> dict[str, str]:
    """Return columns by what atoms call them."""
    return {known_as(column): column for column in columns}


# --- what an encoder has to have -----------------------------------------------------------------


def numeric(found: Iterable[Comparison]) -> bool:
    """Return whether what is said of a column nobody has seen makes it one of numbers."""
    return any(relation != "=" for one in found for relation, _ in one.bounds)


def check_category(found: Comparison, known: Collection[str] | None) -> str:
    """Return the category that a comparison names; ``known`` are those there are, None: nobody knows."""
    (relation, text), *more = found.bounds
    if relation != "=" or more:
        raise ValueError(
            f"a rule says {found.name!r}, and column {found.column!r} holds no numbers but words: "
            f"write for example '{found.column} = {next(iter(sorted(known or ())), 'red')}'"
        )
    if known is not None and text not in known:
        raise UnknownAtom(found.name, [f"{found.column} = {other}" for other in known], "table")
    return text


# --- theories in the atoms there are -------------------------------------------------------------


def understood(
    theory: Theory | None,
    atoms: Sequence[str],
    groups: Sequence[Group] = (),
    *,
    target: str | None = None,
    classes: Sequence[object] = (),
) -> Theory | None:
    """Return a theory over atoms, the groups of encoded columns and a target, in their names alone.

    With two classes ``target = class`` names either: the target's atom, or its negation.

    >>> print(understood(Theory(["'tall > 0' -> 'y = no'"]), ["tall"], target="y", classes=["no", "yes"]))
    tall -> ~y
    """
    if theory is None:
        return None
    own = frozenset(map(known_as, atoms))
    labels = {known_as(f"{target} = {kind}") for kind in classes} | {known_as(str(target))}
    encoded = {group.column: group for group in groups}
    columns = known_columns([*atoms, *encoded])
    two = target is not None and len(classes) == 2
    meant: dict[str, Formula] = {}
    for name in atoms_of(*(statement.formula for statement in theory)):
        if name in own:
            continue
        label = comparison(name, known_columns([str(target)])) if two else None
        if label is not None:
            meant[name] = _class_meant(label, str(target), classes)
        elif name not in labels:
            found = _meant(name, columns, encoded, own)
            if found is not None:
                meant[name] = found
    return rewritten(theory, meant) if meant else theory


def _meant(
    name: str, columns: Mapping[str, str], encoded: Mapping[str, Group], own: frozenset[str]
) -> Formula | None:
    found = comparison(name, columns)
    if found is None:
        return over_cuts(name, own)
    group = encoded.get(found.column)
    if group is None or group.kind == "boolean":
        return found.truth()
    if group.kind == "threshold":
        return found.formula()
    return atom(known_as(f"{found.column} = {check_category(found, group.categories or None)}"))


def over_cuts(name: str, own: frozenset[str]) -> Formula | None:
    """Return what an atom says over columns that are themselves called after cuts; None: nothing."""
    for one in comparisons(name):
        if all(number(text) is not None for _, text in one.bounds):
            formula = one.formula()
            if own.issuperset(atoms_of(formula)):
                return formula
    return None


def _class_meant(label: Comparison, target: str, classes: Sequence[object]) -> Formula:
    """Return what ``target = class`` says where there are two classes."""
    (relation, text), *more = label.bounds
    for place, kind in enumerate(classes):
        same = text == str(kind) or (text.lower() == str(kind).lower() and isinstance(kind, bool))
        same = same or (isinstance(kind, (bool, int, float)) and number(text) == kind)
        if relation == "=" and not more and same:
            return atom(known_as(target)) if place else ~atom(known_as(target))
    raise UnknownAtom(label.name, [f"{target} = {kind}" for kind in classes], "table")


def rewritten(theory: Theory, meant: Mapping[str, Formula]) -> Theory:
    """Return a theory in which some atoms are the formulae that they mean."""

    def visit(node: Formula, parts: list[Formula]) -> Formula:
        if node.kind == "atom":
            return meant.get(node.label, node)
        if not parts:
            return node
        if node.kind == "not" and parts[0].kind == "not":
            return parts[0].args[0]
        return make(node.kind, node.label, tuple(parts))

    return Theory([Statement(fold(each.formula, visit), each.weight, each.line) for each in theory])


def _all(parts: Sequence[Formula]) -> Formula:
    found = parts[0]
    for part in parts[1:]:
        found = found & part
    return found


# --- and back ------------------------------------------------------------------------------------


def plain(formula: Formula) -> Formula:
    """Return a formula as people say it, which :func:`understood` takes back: comparisons without negations.

    >>> from lbm.knowledge.parser import parse
    >>> print(plain(parse("~'glu <= 107.5' & 'glu <= 147.5' & ~'age < 30' -> y")))
    '107.5 < glu <= 147.5' & 'age >= 30' -> y
    """
    if not any(" <" in name for name in atoms_of(formula)):
        return formula

    def visit(node: Formula, parts: list[Formula]) -> Formula:
        if not parts:
            return node
        if node.kind == "not" and parts[0].kind == "atom":
            found = _cut_in(parts[0].label)
            if found is not None:
                column, relation, value = found
                return atom(f"{column} {_OPPOSITE[relation]} {value}")
        if node.kind == "and":
            return _all(_ranges([*_conjuncts(parts[0]), *_conjuncts(parts[1])]))
        return make(node.kind, node.label, tuple(parts))

    return fold(formula, visit)


def _cut_in(name: str) -> tuple[str, str, str] | None:
    """Return column, relation and value of an atom that compares a column with one number."""
    signs = list(_SIGN.finditer(name))
    if len(signs) != 1 or signs[0][1] == "=":
        return None
    column, value = name[: signs[0].start()], name[signs[0].end() :]
    return (column, signs[0][1], value) if column and number(value) is not None else None


def _conjuncts(formula: Formula) -> list[Formula]:
    found: list[Formula] = []
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        if part.kind == "and":
            waiting += reversed(part.args)
        else:
            found.append(part)
    return found


def _ranges(parts: Sequence[Formula]) -> list[Formula]:
    """Return conjuncts in which a lower and an upper bound of a column are one range."""
    lows: dict[str, int] = {}
    highs: dict[str, int] = {}
    bounds = {i: _cut_in(part.label) for i, part in enumerate(parts) if part.kind == "atom"}
    for i, found in bounds.items():
        if found is not None:
            (lows if found[1] in (">", ">=") else highs).setdefault(found[0], i)
    merged: dict[int, Formula] = {}
    gone: set[int] = set()
    for column in lows.keys() & highs.keys():
        low, high = bounds[lows[column]], bounds[highs[column]]
        assert low is not None
        assert high is not None
        first, second = sorted((lows[column], highs[column]))
        merged[first] = atom(f"{low[2]} {_TURNED[low[1]]} {column} {high[1]} {high[2]}")
        gone.add(second)
    return [merged.get(i, part) for i, part in enumerate(parts) if i not in gone]
