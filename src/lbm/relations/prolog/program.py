"""Clauses -> program: ground facts in indexes by any of their arguments, rules apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from lbm.relations.prolog.reader import Clause
from lbm.relations.prolog.terms import (
    CONS,
    Compound,
    Term,
    Variable,
    arguments,
    is_ground,
    key,
    signature,
    write_short,
)

Signature = tuple[str, int]
"""The name and the arity of a predicate."""


def indicator(predicate: Signature) -> str:
    """Return a predicate as Prolog people write it.

    >>> print(indicator(("bond", 4)))
    bond/4
    """
    return f"{predicate[0]}/{predicate[1]}"


CONTROL: Final = frozenset(
    {
        (",", 2),
        (";", 2),
        ("->", 2),
        ("*->", 2),
        ("\\+", 1),
        ("not", 1),
        ("call", 1),
        ("once", 1),
        ("ignore", 1),
    }
    | {("forall", 2)}
)
"""Goals whose arguments are goals."""

_RESERVED: Final = CONTROL - {("once", 1), ("ignore", 1), ("forall", 2)}
"""Heads that no clause may have; others that are built in may be defined anew."""

MOST_ARGUMENTS: Final = 8
"""Arguments of ``call`` and of ``maplist``, at most."""

META: Final[Mapping[Signature, Mapping[int, int]]] = {
    **{name: dict.fromkeys(range(name[1]), 0) for name in CONTROL},
    **{("call", 1 + more): {0: more} for more in range(1, MOST_ARGUMENTS)},
    **{("maplist", 1 + more): {0: more} for more in range(1, MOST_ARGUMENTS)},
    **{name: {1: 0} for name in (("findall", 3), ("findall", 4), ("bagof", 3), ("setof", 3))},
    **{("aggregate_all", 3): {1: 0}, ("foldl", 4): {0: 3}, ("foldl", 5): {0: 4}},
    **{name: {0: 1} for name in (("include", 3), ("exclude", 3), ("partition", 4))},
}
"""Goals that hold goals: at which places, and how many arguments are added to what stands there."""


@dataclass(frozen=True, slots=True)
class ProgramRule:
    """A clause with a body, or a fact with variables, whose body is ``true``; and how it was read."""

    head: Term
    body: Term
    clause: Clause = field(compare=False)


@dataclass(frozen=True, slots=True)
class Predicate:
    """The clauses of one predicate.

    Attributes
    ----------
    facts
        The arguments of each ground fact, in the order of the file.
    rules
        Each rule with the number of facts that stand before it.
    """

    name: str
    arity: int
    facts: tuple[tuple[Term, ...], ...] = ()
    rules: tuple[tuple[int, ProgramRule], ...] = ()
    tables: dict[tuple[int, ...], dict[tuple[object, ...], list[int]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def rows(self, places: tuple[int, ...], keys: tuple[object, ...]) -> Sequence[int]:
        """Return the numbers of the facts whose arguments at ``places`` (from 0, rising) have these keys.

        The index for a set of places is made when it is first asked for.
        """
        if not places:
            return range(len(self.facts))
        table = self.tables.get(places)
        if table is None:
            table = {}
            for row, fact in enumerate(self.facts):
                table.setdefault(tuple([key(fact[place]) for place in places]), []).append(row)
            self.tables[places] = table
        return table.get(keys, ())

    def __reduce__(self) -> tuple[object, ...]:
        return Predicate, (self.name, self.arity, self.facts, self.rules)


@dataclass(frozen=True, slots=True)
class Program:
    """Predicates by name and arity; one that is declared dynamic may have no clauses at all.

    >>> from lbm.relations.prolog.reader import read_clauses
    >>> program = make_program(read_clauses("bond(a, b). bond(b, c). linked(X, Y) :- bond(X, Y)."))
    >>> program.facts("bond", 2)
    (('a', 'b'), ('b', 'c'))
    >>> sorted(program.predicates)
    [('bond', 2), ('linked', 2)]
    """

    predicates: Mapping[Signature, Predicate] = field(default_factory=dict)

    def facts(self, name: str, arity: int) -> Sequence[tuple[Term, ...]]:
        """Return the arguments of each ground fact of a predicate, in the order of the file."""
        return self.predicates.get((name, arity), Predicate(name, arity)).facts

    def defines(self, predicate: Signature) -> bool:
        """Say whether a predicate has clauses."""
        found = self.predicates.get(predicate)
        return found is not None and bool(found.facts or found.rules)

    def rules(self, name: str, arity: int) -> Sequence[ProgramRule]:
        """Return the rules of a predicate."""
        return tuple(rule for _, rule in self.predicates.get((name, arity), Predicate(name, arity)).rules)


def make_program(clauses: Iterable[Clause]) -> Program:
    """Return the program that clauses make; of directives among them ``dynamic`` alone is looked at."""
    facts: dict[Signature, list[tuple[Term, ...]]] = {}
    rules: dict[Signature, list[tuple[int, ProgramRule]]] = {}
    for clause in clauses:
        head, body = head_and_body(clause)
        if head is None:
            for declared in _dynamic(body):
                facts.setdefault(declared, [])
            continue
        name = signature(head)
        if name is None or name in _RESERVED:
            raise clause.error(f"expected the head of a clause, found {write_short(head)}")
        if body == "true" and is_ground(head):
            facts.setdefault(name, []).append(arguments(head))
        else:
            before = len(facts.setdefault(name, []))
            rules.setdefault(name, []).append((before, ProgramRule(head, body, clause)))
    return Program(
        {
            (name, arity): Predicate(name, arity, tuple(each), tuple(rules.get((name, arity), ())))
            for (name, arity), each in facts.items()
        }
    )


def head_and_body(clause: Clause) -> tuple[Term | None, Term]:
    """Return head and body of a clause; a directive's head is None, a fact's body ``true``."""
    term = clause.term
    if isinstance(term, Compound) and term.functor == ":-":
        if len(term.arguments) == 1:
            return None, term.arguments[0]
        if len(term.arguments) == 2:
            return term.arguments
    if isinstance(term, Compound) and term.functor in ("?-", "-->"):
        raise clause.error(f"expected a fact, a rule or a directive, found {write_short(term)}")
    return term, "true"


def goals_of(body: Term) -> Iterator[Term]:
    """Yield the goals of a body, those inside other goals too, in order of appearance.

    A goal to which arguments are added, as ``maplist`` does, has variables for these.
    """
    todo: list[tuple[Term, int]] = [(body, 0)]
    while todo:
        goal, more = todo.pop()
        while signature(goal) == ("^", 2) and not more:  # of bagof and setof
            goal = arguments(goal)[1]
        found = signature(goal)
        if found is None:
            continue
        if more:
            goal = Compound(found[0], (*arguments(goal), *(Variable(f"_{k}") for k in range(more))))
        name = found[0], found[1] + more
        if name not in CONTROL:
            yield goal
        given = arguments(goal)
        places = META.get(name, {})
        todo.extend((given[place], added) for place, added in reversed(list(places.items())))


def _dynamic(directive: Term) -> Iterator[Signature]:
    """Yield the predicates that a directive declares dynamic."""
    if signature(directive) not in (("dynamic", 1), ("multifile", 1)):
        return
    todo = list(arguments(directive))
    while todo:
        term = todo.pop()
        name = signature(term)
        given = arguments(term)
        if name in ((",", 2), (CONS, 2)):
            todo.extend(reversed(given))
        elif name == ("/", 2) and isinstance(given[0], str) and isinstance(given[1], int):
            yield given[0], given[1]
