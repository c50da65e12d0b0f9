"""The questions as users ask them: evidence and queries may be text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lbm.knowledge.formula import Formula
from lbm.knowledge.parser import parse

if TYPE_CHECKING:
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.exact import Models

Evidence = Formula | str | None
"""Any formula, or its text."""


def count(theory: Theory, *, given: Evidence = None, project: Iterable[str] | None = None) -> int:
    """Return the number of models of a theory, exactly: worlds that keep every hard formula and ``given``.

    With ``project``, the number of their distinct restrictions to those atoms.

    >>> import lbm
    >>> lbm.count(lbm.Theory.parse("a | b | c"), given="~a")
    3
    """
    from lbm.reasoning import exact

    return exact.count(theory, given=as_formula(given), project=project)


def models(
    theory: Theory,
    *,
    given: Evidence = None,
    project: Iterable[str] | None = None,
    limit: int | None = None,
) -> Models:
    """Return the models of a theory, the first ``limit`` of them in lexicographic order.

    ``len()`` counts them, iteration gives each as a mapping by name, ``.array`` all as a matrix.

    >>> import lbm
    >>> list(lbm.models(lbm.Theory.parse("a ^ b")))
    [{'a': False, 'b': True}, {'a': True, 'b': False}]
    """
    from lbm.reasoning import exact

    return exact.models(theory, given=as_formula(given), project=project, limit=limit)


def as_formula(given: Evidence) -> Formula | None:
    """Return evidence as a formula: text is parsed."""
    return parse(given, source="given") if isinstance(given, str) else given
