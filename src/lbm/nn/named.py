"""Inputs and queries of a layer by their names: atoms, groups of which exactly one atom is true, formulae."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lbm.errors import LbmError, UnknownAtom
from lbm.knowledge.formula import Formula, atom, atom_name, atoms_of
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory

Choice = tuple[str, ...]
"""An atom by itself, or the atoms of a group in the order of its values."""


@dataclass(frozen=True, slots=True)
class LayerQuery:
    """A query: a choice of atoms, or a formula, by the text it was given as."""

    text: str = field(compare=False)
    choice: Choice
    formula: Formula | None = None


class UnfitInputs(LbmError, ValueError):
    """Inputs or queries that are no whole groups, or hold an atom twice."""


def groups_of_theory(theory: Theory) -> list[Choice]:
    """Return the atoms of which a hard formula says, in so many words, that exactly one is true.

    No atom twice: of groups that share one the larger counts, and else the one that is said first.

    >>> groups_of_theory(Theory(["exactly(1, a, b)", "exactly(1, b, c, d)", "e | f", "~e | ~f"]))
    [('b', 'c', 'd')]
    """
    found = []
    for said in theory:
        formula = said.formula
        if said.weight is None and formula.kind == "exactly" and formula.label == 1:
            names = tuple([part.label for part in formula.args if part.kind == "atom"])
            if len(set(names)) == len(formula.args) > 1:
                found.append(names)
    taken: set[str] = set()
    kept = []
    for names in sorted(found, key=len, reverse=True):
        if taken.isdisjoint(names):
            taken.update(names)
            kept.append(names)
    return kept


def inputs_of(given: object, theory: Theory, groups: Sequence[Choice]) -> tuple[Choice, ...]:
    """Return the choices that inputs name, in their order.

    >>> theory = Theory(["exactly(1, d(0), d(1), d(2))", "a -> d(1)"])
    >>> inputs_of(["a", "d(*)"], theory, [("d(0)", "d(1)", "d(2)")])
    (('a',), ('d(0)', 'd(1)', 'd(2)'))
    """
    items = _items(given, "inputs")
    if not items:
        raise UnfitInputs("expected the names of at least one input, got none")
    names = [name for item in items for name in _matching(item, theory)]
    taken: set[str] = set()
    for name in names:
        if name in taken:
            raise UnfitInputs(f"expected each input once, got {name!r} twice")
        taken.add(name)
    group_of = {name: group for group in groups for name in group}
    found: list[Choice] = []
    while names:
        group = group_of.get(names[0])
        if group is None:
            found.append((names.pop(0),))
            continue
        some = tuple(names[: len(group)])
        if set(some) != set(group):
            raise UnfitInputs(_part_of(group, [name for name in some if name in group]))
        found.append(some)
        del names[: len(group)]
    return tuple(found)


def queries_of(given: object, theory: Theory, groups: Sequence[Choice]) -> tuple[LayerQuery, ...]:
    """Return the queries that were named: a pattern means groups and atoms, any other text a formula."""
    if given is None:
        return ()
    group_of = {name: group for group in groups for name in group}
    found: list[LayerQuery] = []
    for item in _items(given, "queries"):
        if isinstance(item, str) and _is_pattern(item):
            for choice in inputs_of([item], theory, groups):
                text = item if len(choice) > 1 else choice[0]
                found.append(LayerQuery(text, choice))
            continue
        if isinstance(item, tuple | list):
            (choice, *more) = inputs_of([item], theory, groups)
            if more:
                raise UnfitInputs(
                    f"expected the atoms of one group as a query, got {', '.join(map(str, item))}"
                )
            found.append(LayerQuery(choice[0], choice))
            continue
        known = set(theory.atoms)
        if isinstance(item, str) and item.strip() and atom_name(item) in known:
            formula: Formula | None = None
            name = atom_name(item)
        else:
            read = parse(item) if isinstance(item, str) else item
            if not isinstance(read, Formula):
                raise TypeError(f"expected atoms, groups or formulae as queries, got {item!r}")
            formula = read
            for other in atoms_of(formula):
                if other not in known:
                    raise UnknownAtom(other, theory.atoms)
            name = formula.label if formula.kind == "atom" else ""
        if name and name not in group_of:
            found.append(LayerQuery(name, (name,)))
        else:
            found.append(LayerQuery(str(item), (), atom(name) if formula is None else formula))
    if not found:
        raise UnfitInputs("expected queries or None, which asks about the theory itself, got an empty list")
    return tuple(found)


def matching(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the names that a pattern with ``*`` and ``?`` fits.

    >>> matching("d(*)", ["d(0)", "e", "d(1)"])
    ['d(0)', 'd(1)']
    """
    parts = ["".join(part.split()) for part in re.split(r"([*?])", pattern)]
    text = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
    fits = re.compile(text).fullmatch
    return [name for name in names if fits("".join(name.split()))]


def _items(given: object, what: str) -> list[object]:
    if isinstance(given, str | Formula):
        return [given]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise TypeError(f"expected a name or a list of names as {what}, got {given!r}")
    return list(given)


def _is_pattern(text: str) -> bool:
    return "*" in text or "?" in text


def _matching(item: object, theory: Theory) -> list[str]:
    """Return the atoms that an item of inputs names."""
    if isinstance(item, tuple | list):
        return [name for part in item for name in _matching(part, theory)]
    if isinstance(item, Formula) and item.kind == "atom":
        item = item.label
    if not isinstance(item, str):
        raise TypeError(f"expected names of atoms as inputs, got {item!r}")
    known = set(theory.atoms)
    if item in known or (item and atom_name(item) in known):
        return [item if item in known else atom_name(item)]
    if _is_pattern(item):
        found = matching(item, theory.atoms)
        if found:
            return found
    raise UnknownAtom(item, theory.atoms)


def _part_of(group: Choice, some: Sequence[str]) -> str:
    shown = ", ".join(some[:5]) + (", ..." if len(some) > 5 else "")
    missing = [name for name in group if name not in some]
    rest = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
    return (
        f"expected all atoms of a group, of which exactly one is true, one after the other; got {shown} "
        f"without {rest}"
    )
