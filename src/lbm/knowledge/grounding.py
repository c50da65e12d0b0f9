"""Rules with variables: templates, and the propositional formulae they stand for.

A template is a formula with holes: terms that mention variables, and quantifiers. Grounding fills
the holes with the constants of finite domains, under guards, within limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

from lbm.errors import LimitExceeded
from lbm.knowledge.formula import Formula, atom, conjunction, disjunction, make

MAX_INSTANCES: Final = 1_000_000
"""Ground instances that the rules of one theory may make together."""

MAX_GROUND_TERMS: Final = 5_000_000
"""Terms that the rules of one theory may fill in together: a rule may be long."""

MAX_QUANTIFIERS: Final = 16
"""Quantifiers inside one another."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition on a binding: ``X != Y`` or ``X = a1``; names that are no variables are constants."""

    left: str
    equal: bool
    right: str


@dataclass(frozen=True, slots=True)
class Quantifier:
    """``forall X, Y in drug, X != Y``: variables with their domains' constants, and guards."""

    kind: str
    variables: tuple[str, ...]
    domains: tuple[tuple[str, ...], ...]
    guards: tuple[Guard, ...] = ()

    def size(self) -> int:
        """Return how many bindings there are before the guards."""
        return prod(map(len, self.domains))


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A formula with holes. ``kind`` is a connective, ``term``, ``forall`` or ``exists``.

    The label of a term is (predicate, arguments), of a quantified template its Quantifier.
    """

    kind: str
    label: Any
    args: tuple[Formula | Template, ...]


@dataclass(slots=True)
class Supply:
    """How many more instances and terms may be made; shared by all the rules of a theory."""

    left: int = MAX_INSTANCES
    limit: int = MAX_INSTANCES
    terms: int = MAX_GROUND_TERMS

    def spend(self, instances: int) -> None:
        """Take ``instances`` off, or say that it is too much."""
        self.left -= instances
        if self.left < 0:
            raise LimitExceeded(
                f"the rules make more than {self.limit} ground instances (limit MAX_INSTANCES): "
                "use smaller domains or fewer variables in one rule",
                MAX_INSTANCES=self.limit,
            )

    def spend_term(self) -> None:
        """Take one term off, or say that there are too many."""
        self.terms -= 1
        if self.terms < 0:
            raise LimitExceeded(
                f"the rules fill in more than {MAX_GROUND_TERMS} terms (limit MAX_GROUND_TERMS): "
                "use smaller domains or shorter rules",
                MAX_GROUND_TERMS=MAX_GROUND_TERMS,
            )


def bindings(quantifier: Quantifier, outer: Mapping[str, str], supply: Supply) -> Iterator[dict[str, str]]:
    """Yield every way to bind the variables that the guards allow, the last variable fastest."""
    supply.spend(quantifier.size())
    for constants in product(*quantifier.domains):
        binding = {**outer, **dict(zip(quantifier.variables, constants, strict=True))}
        if all(
            (binding.get(guard.left, guard.left) == binding.get(guard.right, guard.right)) is guard.equal
            for guard in quantifier.guards
        ):
            yield binding


def ground(template: Formula | Template, binding: Mapping[str, str], supply: Supply) -> Formula:
    """Return the formula that ``template`` stands for under ``binding``.

    Recurses on quantifiers only, and the parser admits MAX_QUANTIFIERS of them inside one another.
    """
    if isinstance(template, Formula):
        return template
    results: dict[int, Formula] = {}
    stack: list[tuple[Template, bool]] = [(template, False)]
    while stack:
        node, ready = stack.pop()
        if node.kind == "term":
            supply.spend_term()
            predicate, arguments = node.label
            filled = ", ".join(binding.get(argument, argument) for argument in arguments)
            results[id(node)] = atom(f"{predicate}({filled})")
        elif node.kind in ("forall", "exists"):
            (body,) = node.args
            parts = [ground(body, inner, supply) for inner in bindings(node.label, binding, supply)]
            results[id(node)] = conjunction(parts) if node.kind == "forall" else disjunction(parts)
        elif not ready:
            stack.append((node, True))
            stack.extend((part, False) for part in node.args if isinstance(part, Template))
        else:
            args = tuple([part if isinstance(part, Formula) else results[id(part)] for part in node.args])
            results[id(node)] = make(node.kind, node.label, args)
    return results[id(template)]


def instances(prefix: tuple[Quantifier, ...], body: Formula | Template, supply: Supply) -> Iterator[Formula]:
    """Yield one formula per binding of the leading quantifiers (all ``forall``) in ``prefix``."""
    level: list[Mapping[str, str]] = [{}]
    for quantifier in prefix:
        level = [inner for outer in level for inner in bindings(quantifier, outer, supply)]
    for binding in level:
        yield ground(body, binding, supply)
