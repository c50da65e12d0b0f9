"""Examples -> bottom clauses (most specific clauses): all that background and modes let us say of an example.

The algorithm is that of Progol and Aleph. Layer by layer, up to ``depth``, every predicate that may define
the target is asked with the terms found so far as inputs, one of them found in the layer before; its outputs
are the terms of the next layer. Then each term becomes a variable, one for each type it was met with, and
constants stay. Aleph's order is kept (newest terms first): variables are named A, B, C ... as they appear.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, product
from typing import Final

from lbm.errors import LimitExceeded, ParseError
from lbm.relations.modes import CONSTANT, INPUT, OUTPUT, Mode
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.engine import STEPS
from lbm.relations.prolog.program import indicator
from lbm.relations.prolog.terms import Term, arguments, write_short
from lbm.relations.questions import Caller, Form, Literal, Match, Numbers, fits, reach, variable_name

LITERALS: Final = 100_000
"""Literals that a bottom clause may have, unless another number is given."""

CALLS: Final = 20
"""Choices of inputs that may be tried for each literal allowed."""


@dataclass(frozen=True, slots=True)
class BottomClause:
    """All that was found about an example.

    Attributes
    ----------
    head, body
        Literals as text, with variables A, B, C ... in order of appearance; no literal is there twice.
    terms
        What each variable stood for, in the order of names: ``terms[2]`` is C's.
    """

    example: Term
    label: bool
    head: str
    body: tuple[str, ...]
    terms: tuple[Term, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return f"{self.head}." if not self.body else f"{self.head} :-\n    " + ",\n    ".join(self.body) + "."


def saturate(
    problem: RelationalProblem,
    example: Term,
    *,
    depth: int | None = None,
    literals: int = LITERALS,
    steps: int = STEPS,
) -> BottomClause:
    """Return the bottom clause of one example, which need not be one of the problem's.

    Parameters
    ----------
    depth
        Layers of new terms, Aleph's ``i``; None: as the problem's settings say, else 2.
    literals, steps
        Budgets: literals in the clause, and steps of a proof; LimitExceeded past them.
    """
    return Saturation(problem, depth=depth, literals=literals, steps=steps).clause(
        example, example in set(problem.positive)
    )


def saturate_all(
    problem: RelationalProblem,
    *,
    depth: int | None = None,
    n_jobs: int = 1,
    literals: int = LITERALS,
    steps: int = STEPS,
    progress: Callable[[int], object] | None = None,
) -> list[BottomClause]:
    """Return the bottom clause of every example, positive ones first.

    Parameters
    ----------
    n_jobs
        Processes, as joblib counts them: -1 means one for each core.
    progress
        Called with the number of clauses that are done.
    """
    saturation = Saturation(problem, depth=depth, literals=literals, steps=steps)
    pairs = list(zip(problem.examples, problem.labels, strict=True))
    found: list[BottomClause] = []
    for some in _shares(saturation, pairs, n_jobs):
        found.extend(some)
        if progress is not None:
            progress(len(found))
    return found


def _shares(
    saturation: Saturation, pairs: Sequence[tuple[Term, bool]], n_jobs: int
) -> Iterator[list[BottomClause]]:
    if n_jobs == 1:
        for example, label in pairs:
            yield [saturation.clause(example, label)]
        return
    from joblib import Parallel, delayed, effective_n_jobs  # type: ignore[import-untyped]

    size = max(1, len(pairs) // (4 * effective_n_jobs(n_jobs)) + 1)
    shares = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    work = (delayed(_clauses)(saturation, share) for share in shares)
    yield from Parallel(n_jobs=n_jobs, return_as="generator")(work)


def _clauses(saturation: Saturation, pairs: Iterable[tuple[Term, bool]]) -> list[BottomClause]:
    return [saturation.clause(example, label) for example, label in pairs]


class _Terms:
    """The terms that one example met: in which layer, in which order, and which of them literals give.

    Terms are numbers; ``layer`` None is for outputs of the head that nothing gave yet.
    """

    def __init__(self) -> None:
        self.layer: dict[int, int | None] = {}
        self.order: dict[int, int] = {}
        self.given: dict[tuple[Term, int], list[tuple[int, int]]] = {}
        self.is_given: set[int] = set()
        self.met = count()

    def meet(self, number: int, layer: int | None) -> None:
        """Note a term; one that was met before keeps its first layer."""
        if number not in self.layer or (self.layer[number] is None and layer is not None):
            self.layer[number] = layer
            self.order[number] = next(self.met)

    def give(self, number: int, kind: Term) -> None:
        """Let a term be an input of later literals."""
        layer = self.layer[number]
        if number not in self.is_given and layer is not None:
            self.is_given.add(number)
            insort(self.given.setdefault((kind, layer), []), (self.order[number], number))

    def new(self, kind: Term, layer: int) -> list[int]:
        """Return the terms of a type that were given in a layer, newest first."""
        return [number for _, number in reversed(self.given.get((kind, layer), ()))]

    def all(self, kind: Term, layer: int) -> list[int]:
        """Return the terms of a type that were given up to a layer, newest first."""
        found = [pair for one in range(layer + 1) for pair in self.given.get((kind, one), ())]
        return [number for _, number in sorted(found, reverse=True)]


class Saturation:
    """Bottom clauses of one problem: what the background answers is remembered from example to example."""

    def __init__(
        self,
        problem: RelationalProblem,
        *,
        depth: int | None = None,
        literals: int = LITERALS,
        steps: int = STEPS,
    ) -> None:
        self.depth = _depth(problem, depth)
        self.literals = literals
        self.numbers = Numbers()
        target = indicator(problem.target)
        self.groups = [
            [Caller(mode, problem.background, self.numbers, steps) for mode in modes]
            for name, modes in problem.modes.for_target(problem.target)
            if name in problem.background.predicates or name in BUILTINS
        ]
        if not self.groups:
            raise ParseError(f"expected a body mode for {target} that can be used, found none")
        self.heads = [Form(mode) for mode in problem.modes.head if mode.predicate == problem.target]
        if not self.heads:
            raise ParseError(f"expected a mode of the head for {target}, ':- modeh(1, ...).', found none")

    def clause(self, example: Term, label: bool) -> BottomClause:
        """Return the bottom clause of an example."""
        head = next((form for form in self.heads if fits(form.mode, example)), None)
        if head is None:
            raise ParseError(
                f"expected an example that fits a mode of the head, found {write_short(example)}"
            )
        terms, given = _Terms(), arguments(example)
        wanted = set()
        for sign, layer in ((OUTPUT, None), (INPUT, 0), (CONSTANT, 0)):
            for place in head.mode.at(sign):
                number = self.numbers.of(reach(given, place.path), place.type)
                terms.meet(number, layer)
                if sign == OUTPUT:
                    wanted.add(number)
                elif sign == INPUT:
                    terms.give(number, place.type)
        first = head.literal(given, self.numbers)
        body = self._body(terms, wanted)
        body.pop(first, None)
        return self._written(example, label, first, body)

    def _body(self, terms: _Terms, wanted: set[int]) -> dict[Literal, None]:
        """Return the literals of a body, in order; ``wanted`` are the outputs of the head."""
        body: dict[Literal, None] = {}
        left = CALLS * self.literals
        for layer in range(1, self.depth + 1):
            if layer - 1 not in terms.layer.values():
                break
            last = layer == self.depth
            for group in self.groups:
                # All modes of a predicate are asked before what they find counts.
                found: list[tuple[Caller, Match]] = []
                for caller in group:
                    if len(caller.types) == 1 and (caller.types[0], layer - 1) not in terms.given:
                        continue
                    for inputs in _inputs(caller.types, terms, layer - 1):
                        matches = caller.matches(inputs)
                        left -= 1 + len(matches)
                        if left < 0:
                            raise self._limit(caller.mode)
                        found.extend([(caller, match) for match in matches])
                for caller, (literal, outputs, constants) in found:
                    for number in chain(outputs, constants):
                        terms.meet(number, layer)
                    if last and wanted and outputs and wanted.isdisjoint(outputs):
                        continue  # in the last layer a literal has to lead to an output of the head
                    for number, place in zip(outputs, caller.outputs, strict=True):
                        terms.give(number, place.type)
                    body[literal] = None
                if len(body) > self.literals:
                    raise self._limit(group[0].mode)
        return body

    def _limit(self, mode: Mode) -> LimitExceeded:
        return LimitExceeded(
            f"a bottom clause would pass {self.literals} literals, at the mode ({mode}) of "
            f"{mode.clause.place}: try a smaller recall or depth, or pass literals=",
            literals=self.literals,
        )

    def _written(self, example: Term, label: bool, head: Literal, body: Iterable[Literal]) -> BottomClause:
        """Return the clause with its variables named in order of appearance."""
        names: dict[int, str] = {}
        shown = []
        for text, numbers in (head, *body):
            for number in numbers:
                if number not in names:
                    names[number] = variable_name(len(names))
            shown.append(text % tuple([names[number] for number in numbers]))
        return BottomClause(
            example,
            label,
            shown[0],
            tuple(shown[1:]),
            tuple([self.numbers.terms[number] for number in names]),
        )


def _inputs(types: Sequence[Term], terms: _Terms, layer: int) -> Iterator[tuple[int, ...]]:
    """Yield each choice of inputs, one of them given in the layer and the others in it or before."""
    if len(types) == 1:  # as most modes have: a shorter way, since none can come twice
        for number in terms.new(types[0], layer):
            yield (number,)
        return
    if not types:
        yield ()
        return
    seen: set[tuple[int, ...]] = set()
    for place, kind in enumerate(types):
        first = terms.new(kind, layer)
        if first:
            others = [terms.all(other, layer) for k, other in enumerate(types) if k != place]
            for one, *rest in product(first, *others):
                given = (*rest[:place], one, *rest[place:])
                if given not in seen:
                    seen.add(given)
                    yield given


def _depth(problem: RelationalProblem, depth: int | None) -> int:
    wanted = problem.modes.settings.get("i", 2) if depth is None else depth
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
        raise ValueError(f"depth must be an integer of at least 1, got {wanted!r}")
    return wanted
