"""How a formula is put together, whatever connectives it was written with.

A view looks through negations and nested connectives of one kind: ``~(a & b -> c)`` is seen as the
conjunction of a, b and ~c. The parts of a view are (formula, positive) pairs.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from lbm.knowledge.formula import CARDINALITIES, Formula, bounds

Signed = tuple[Formula, bool]
"""A formula, and whether it is seen as it is; else its negation is."""


@dataclass(frozen=True, slots=True)
class View:
    """What a formula, or its negation, is at the top.

    ``op`` is ``literal`` (label: name), ``constant`` (label: its truth), ``and``, ``or``, ``xor`` (an
    odd number of parts is true; label False: an even number), or ``count`` (label: least and most
    number of true parts, and whether the formula is true inside or outside that range).
    """

    op: str
    parts: tuple[Signed, ...]
    label: Any = None


def strip(formula: Formula, positive: bool = True) -> Signed:
    """Return the formula below any negations on top, and whether it is seen as it is."""
    while formula.kind == "not":
        formula, positive = formula.args[0], not positive
    return formula, positive


def view(formula: Formula, positive: bool = True, whole: Container[Formula] = ()) -> View:
    """Return what ``formula`` (or, not ``positive``, its negation) is at the top.

    Formulae in ``whole`` are not looked into: they stay parts.
    """
    node, positive = strip(formula, positive)
    kind = node.kind
    if kind == "atom":
        return View("literal", ((node, positive),), node.label)
    if kind in ("true", "false"):
        return View("constant", (), (kind == "true") is positive)
    if kind in CARDINALITIES:
        return View("count", tuple([strip(part) for part in node.args]), (*bounds(node), positive))
    if kind in ("xor", "iff"):
        return _parity(node, positive, whole)
    op = "and" if _op(kind, positive) == "and" else "or"
    found: list[Signed] = []
    seen: set[Signed] = set()  # p | p is p: a part that is met again adds nothing
    stack = _halves(node, positive)
    while stack:
        part, sign = strip(*stack.pop())
        if (part, sign) in seen:
            continue
        seen.add((part, sign))
        if part not in whole and _op(part.kind, sign) == op:
            stack += _halves(part, sign)
        else:
            found.append((part, sign))
    return View(op, tuple(found))


def _op(kind: str, positive: bool) -> str | None:
    """Return ``and`` or ``or`` for a connective seen through a sign; None for other kinds."""
    if kind == "and":
        return "and" if positive else "or"
    if kind in ("or", "implies"):
        return "or" if positive else "and"
    return None


def _halves(node: Formula, positive: bool) -> list[Signed]:
    """Return the two arguments with their signs, the first one last, as a stack wants them."""
    left, right = node.args
    return [(right, positive), (left, positive ^ (node.kind == "implies"))]


def _parity(node: Formula, positive: bool, whole: Container[Formula]) -> View:
    odd = positive ^ (node.kind == "iff")
    found: list[Signed] = []
    seen: set[Formula] = set()  # looked into once: a shared part that is met again stays a part
    stack = [node.args[1], node.args[0]]
    while stack:
        part, sign = strip(stack.pop())
        odd ^= not sign
        if part.kind in ("xor", "iff") and part not in whole and part not in seen:
            seen.add(part)
            odd ^= part.kind == "iff"
            stack += [part.args[1], part.args[0]]
        else:
            found.append((part, True))
    return View("xor", tuple(found), odd)
