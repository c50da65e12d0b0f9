"""Goals -> answers: depth-first search for proofs, as Prolog does it, within a budget of steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from lbm.errors import LimitExceeded, ParseError
from lbm.relations.prolog.arithmetic import evaluate
from lbm.relations.prolog.bindings import (
    Bindings,
    Cell,
    Frame,
    Shape,
    Slot,
    Value,
    compile_rule,
    to_template,
)
from lbm.relations.prolog.builtins import CHOICES, COLLECTING, CONTROL_NAMES, LIBRARY, TESTS
from lbm.relations.prolog.lists import Choice, added, ordered
from lbm.relations.prolog.order import order_key
from lbm.relations.prolog.program import Predicate, Program, ProgramRule, indicator
from lbm.relations.prolog.terms import EMPTY, Compound, Term, Variable, key, make_list, write_short

STEPS: Final = 100_000
"""Goals that may be called until the next answer is found, unless another number is given."""

PROOFS: Final = 100_000
"""Answers to one question, the same ones counted again, that are given at most."""

# A goal that waits: its template, the frame of the rule it is from, the number of choices that were open when
# that rule was called (a cut goes back to them), and the goals after it.
_Goals = tuple[Any, Frame, int, Any] | None


def solve(
    program: Program,
    goals: Term | Sequence[Term],
    *,
    steps: int = STEPS,
    answers: int | None = None,
    proofs: int = PROOFS,
) -> Iterator[dict[str, Term]]:
    """Yield, for each proof of all goals, the values of their variables, in Prolog's order.

    A goal that nothing defines is an error; one that is declared dynamic, and has no clauses, fails. What
    stays unbound is a variable again.

    Parameters
    ----------
    goals
        One goal, or several that are to hold together; a variable is known by its name in all of them.
    steps
        Goals that may be called for one answer; LimitExceeded if that is not enough.
    answers
        How many answers are wanted at most; None: all.
    proofs
        Answers after which there is no end in sight: LimitExceeded.

    Examples
    --------
    >>> from lbm.relations.prolog.reader import read_clauses, read_term
    >>> from lbm.relations.prolog.program import make_program
    >>> program = make_program(read_clauses("p(1). p(2). q(X, Y) :- p(X), Y is X + 1, Y > 2."))
    >>> list(solve(program, read_term("q(A, B)")))
    [{'A': 2, 'B': 3}]
    """
    goals = (goals,) if isinstance(goals, str | int | float | Compound | Variable) else tuple(goals)
    slots: dict[str, Slot] = {}
    templates = [to_template(goal, slots) for goal in goals]
    frame: Frame = [*(Cell() for _ in slots), None]
    proof = _Proof(program, steps, ", ".join(write_short(goal) for goal in goals[:5]))
    waiting: _Goals = None
    for template in reversed(templates):
        waiting = (template, frame, 0, waiting)
    for number, _ in enumerate(islice(proof.run(waiting), answers), start=1):
        if number > proofs:
            raise LimitExceeded(
                f"more than {proofs} answers to {proof.asked} (limit PROOFS): is there a rule that calls "
                "itself without end?",
                PROOFS=proofs,
            )
        names: dict[Cell, Variable] = {}
        yield {name: proof.bindings.resolve(frame[slot.number], names) for name, slot in slots.items()}


class _CutTo:
    """A goal of our own: forget the choices made since a number of them was open."""

    __slots__ = ("height",)

    def __init__(self, height: int) -> None:
        self.height = height


class _Collect:
    """A goal of our own: note what a term stands for, and fail, so that the next answer is looked for."""

    __slots__ = ("bag", "term")

    def __init__(self, term: Value) -> None:
        self.term = term
        self.bag: list[Any] = []


class _Forget:
    """A goal of our own: the alternative of a soft cut is not wanted any more."""

    __slots__ = ("alternative",)

    def __init__(self, alternative: list[_Goals]) -> None:
        self.alternative = alternative


class _Proof:
    """One search: goals that wait, and choices to come back to."""

    def __init__(self, program: Program, steps: int, asked: str) -> None:
        self.program = program
        self.steps = steps
        self.asked = asked
        self.bindings = Bindings()
        self.choices: list[tuple[int, Iterator[_Goals]]] = []

    def run(self, waiting: _Goals) -> Iterator[None]:
        """Yield once for each proof; what it binds is in ``bindings`` until the next one is asked for."""
        bindings, choices = self.bindings, self.choices
        left = self.steps
        failed = False
        while True:
            if failed:
                while choices:
                    mark, others = choices[-1]
                    bindings.undo(mark)
                    found = next(others, _NOTHING)
                    if found is not _NOTHING:
                        waiting = found
                        break
                    choices.pop()
                else:
                    return
                failed = False
            if waiting is None:
                yield
                left = self.steps
                failed = True
                continue
            left -= 1
            if left < 0:
                raise LimitExceeded(
                    f"no answer to {self.asked} within {self.steps} steps, now at "
                    f"{self.shown(waiting)}: is there a rule that calls itself without end?",
                    steps=self.steps,
                )
            goal, frame, cut, rest = waiting
            if type(goal) is Slot:
                goal = frame[goal.number] if frame[goal.number] is not None else Cell()
            if type(goal) is Cell:
                goal = bindings.resolve(goal)
                cut = len(choices)  # a cut inside a variable's goal is local
            if type(goal) is _CutTo:
                del choices[goal.height :]
                waiting = rest
                continue
            if type(goal) is _Collect:
                goal.bag.append(bindings.copied(goal.term))
                failed = True
                continue
            if type(goal) is _Forget:
                goal.alternative.clear()
                waiting = rest
                continue
            if type(goal) is Shape or type(goal) is Compound:
                name = goal.functor, len(goal.arguments)
            elif type(goal) is str:
                name = goal, 0
            else:
                raise self.error(waiting, f"expected a goal, found {self.shown(waiting)}")
            predicate = self.program.predicates.get(name)
            if predicate is None and name in CONTROL_NAMES:
                if name in COLLECTING or (name[0] == "call" and name[1] > 1):
                    waiting = self.meta(waiting, name)
                else:
                    waiting = self.control(name[0], goal, frame, cut, rest)
                continue
            given = tuple([bindings.build(one, frame) for one in goal.arguments]) if name[1] else ()
            test = TESTS.get(name) if predicate is None else None
            if test is not None:
                try:
                    failed = not test(bindings, given)
                except (TypeError, ArithmeticError) as error:
                    raise self.error(waiting, f"{error}, in {self.shown(waiting)}") from None
                waiting = rest
                continue
            choice = CHOICES.get(name) if predicate is None else None
            if choice is not None:
                choices.append((bindings.mark(), self.chosen(choice, given, waiting)))
                failed = True
                continue
            predicate = predicate or LIBRARY.predicates.get(name)
            if predicate is None:
                wanted = "expected a predicate that has clauses or is built in"
                raise self.error(waiting, f"{wanted}, found {indicator(name)} in {self.shown(waiting)}")
            choices.append((bindings.mark(), self.clauses(predicate, given, len(choices), rest)))
            failed = True  # the first clause is taken as any other one is

    def control(self, name: str, goal: Any, frame: Frame, cut: int, rest: _Goals) -> _Goals:
        """Return what waits after a control structure was opened."""
        if name == "!":
            del self.choices[cut:]
            return rest
        first, *more = goal.arguments
        if name == "once":
            return self.once(first, frame, rest)
        if name == "ignore":
            return self.once(first, frame, rest, rest)
        if name == "forall":  # there is no answer to the first without one to the second
            inner = Shape("\\+", (Shape(",", (first, Shape("\\+", (more[0],)))),))
            return inner, frame, cut, rest
        then = (more[0], frame, cut, rest) if more else rest
        if name == ",":
            return first, frame, cut, then
        if name == "call":
            return first, frame, len(self.choices), rest
        if name == "->":
            return self.once(first, frame, then)
        if name == "*->":
            return first, frame, len(self.choices), then
        if name == ";":
            if isinstance(first, Shape | Compound) and first.functor == "->" and len(first.arguments) == 2:
                condition, chosen = first.arguments
                return self.once(condition, frame, (chosen, frame, cut, rest), then)
            if isinstance(first, Shape | Compound) and first.functor == "*->" and len(first.arguments) == 2:
                condition, chosen = first.arguments
                alternative: list[_Goals] = [then]
                self.choices.append((self.bindings.mark(), iter(alternative)))
                after = (_Forget(alternative), frame, 0, (chosen, frame, cut, rest))
                return condition, frame, len(self.choices), after
            self.choices.append((self.bindings.mark(), iter((then,))))
            return first, frame, cut, rest
        # \+ and not: if the goal has a proof, forget it and fail; else go on.
        return self.once(first, frame, ("fail", frame, 0, None), rest)

    def meta(self, waiting: Any, name: tuple[str, int]) -> _Goals:
        """Return what waits after a goal was called with more arguments, or all its answers asked for."""
        goal, frame, _, rest = waiting
        bindings = self.bindings
        given: list[Any] = [bindings.build(one, frame) for one in goal.arguments]
        if name[0] == "call":
            called = bindings.resolve(given[0])
            if type(called) is Compound:
                called = Compound(called.functor, (*called.arguments, *given[1:]))
            elif type(called) is str:
                called = Compound(called, tuple(given[1:]))
            else:
                raise self.error(waiting, f"expected a goal, found {self.shown(waiting)}")
            return called, frame, len(self.choices), rest
        wanted, inner = given[0], bindings.value(given[1])
        kind = name[0]
        free: list[Cell] = []
        if kind in ("bagof", "setof"):
            free = self.free(given)
            while type(inner) is Compound and inner.functor == "^" and len(inner.arguments) == 2:
                inner = bindings.value(inner.arguments[1])
            wanted = Compound("-", (make_list(free), wanted))  # type: ignore[arg-type]
        elif kind == "aggregate_all":
            wanted = self.aggregate(waiting, wanted)
        collect = _Collect(wanted)
        self.choices.append((bindings.mark(), self.collected(kind, collect.bag, given, bool(free), waiting)))
        return inner, frame, len(self.choices), (collect, frame, 0, None)

    def aggregate(self, waiting: Any, what: Value) -> Value:
        """Return the term of which aggregate_all wants all values."""
        what = self.bindings.value(what)
        if what == "count":
            return "count"
        if type(what) is Compound and len(what.arguments) == 1 and what.functor in _AGGREGATES:
            return what.arguments[0]
        known = ", ".join(f"{name}(X)" for name in _AGGREGATES)
        raise self.error(waiting, f"expected count or one of {known}, found {self.shown(waiting)}")

    def collected(
        self, kind: str, bag: list[Any], given: Sequence[Value], grouped: bool, waiting: Any
    ) -> Iterator[_Goals]:
        """Yield what waits after the answers were gathered: once, or once for each group of them."""
        bindings, rest = self.bindings, waiting[3]
        if kind == "findall":
            tail = given[3] if len(given) == 4 else EMPTY
            if bindings.unify(given[2], make_list(bag, tail)):  # type: ignore[arg-type]
                yield rest
            return
        if kind == "aggregate_all":
            try:
                found = _aggregated(bindings, bindings.value(given[0]), bag)
            except (TypeError, ArithmeticError) as error:
                raise self.error(waiting, f"{error}, in {self.shown(waiting)}") from None
            if found is not None and bindings.unify(given[2], found):
                yield rest
            return
        groups: dict[object, list[Any]] = {}
        free = make_list(self.free(given)) if grouped else EMPTY  # type: ignore[arg-type]
        if grouped:  # stable: within a group answers stay in the order in which they came
            bag.sort(key=lambda pair: order_key(pair.arguments[0], bindings))
        for pair in bag:
            groups.setdefault(_variant(pair.arguments[0], bindings), []).append(pair)
        for pairs in groups.values():
            mark = bindings.mark()
            if all(bindings.unify(free, pair.arguments[0]) for pair in pairs):
                items = [pair.arguments[1] for pair in pairs]
                if kind == "setof":
                    items = ordered(items, bindings, once=True)
                if bindings.unify(given[2], make_list(items)):
                    yield rest
            bindings.undo(mark)

    def free(self, given: Sequence[Value]) -> list[Cell]:
        """Return the cells by which bagof and setof group their answers."""
        bindings = self.bindings
        named = bindings.cells(given[0])
        inner = bindings.value(given[1])
        while type(inner) is Compound and inner.functor == "^" and len(inner.arguments) == 2:
            named += bindings.cells(inner.arguments[0])
            inner = bindings.value(inner.arguments[1])
        return [cell for cell in bindings.cells(inner) if cell not in set(named)]

    def chosen(self, choice: Choice, given: tuple[Value, ...], waiting: Any) -> Iterator[_Goals]:
        """Yield what waits after each answer of a built-in predicate."""
        answers = choice(self.bindings, given)
        while True:
            try:
                next(answers)
            except StopIteration:
                return
            except (TypeError, ArithmeticError) as error:
                raise self.error(waiting, f"{error}, in {self.shown(waiting)}") from None
            yield waiting[3]

    def once(self, goal: Any, frame: Frame, then: _Goals, *otherwise: _Goals) -> _Goals:
        """Return what waits where one proof of a goal is enough; without one, it is what stands last."""
        height = len(self.choices)
        self.choices.append((self.bindings.mark(), iter(otherwise)))
        return goal, frame, height, (_CutTo(height), frame, 0, then)

    def clauses(
        self, predicate: Predicate, given: tuple[Value, ...], height: int, rest: _Goals
    ) -> Iterator[_Goals]:
        """Yield what waits after each clause whose head unifies with the goal."""
        bindings = self.bindings
        mark = bindings.mark()
        values = [bindings.value(one) for one in given]
        known = [k for k, value in enumerate(values) if type(value) in (str, int, float)]
        rows: Sequence[int] = ()
        if predicate.facts:
            rows = predicate.rows(tuple(known), tuple([key(values[k]) for k in known]))  # type: ignore[arg-type]
        others = [k for k in range(len(values)) if k not in known] if len(known) < len(values) else []
        place = 0
        for before, rule in (*predicate.rules, (len(predicate.facts), None)):
            while place < len(rows) and rows[place] < before:
                fact = predicate.facts[rows[place]]
                place += 1
                for k in others:
                    if not bindings.unify(values[k], fact[k]):
                        bindings.undo(mark)
                        break
                else:
                    yield rest
            if rule is None:
                return
            compiled = compile_rule(rule)
            frame: Frame = [None] * compiled.size + [rule]
            for template, value in zip(compiled.head, values, strict=True):
                if not bindings.match(template, value, frame):
                    bindings.undo(mark)
                    break
            else:
                yield rest if compiled.body == "true" else (compiled.body, frame, height, rest)

    def shown(self, waiting: Any) -> str:
        """Return the text of the next goal."""
        goal, frame, _, _ = waiting
        if isinstance(goal, _CutTo):
            return "!"
        return write_short(self.bindings.resolve(self.bindings.build(goal, frame), {}))

    def error(self, waiting: Any, message: str) -> ParseError:
        """Return an error that names the rule the next goal is from."""
        rule: ProgramRule | None = waiting[1][-1]
        return ParseError(message) if rule is None else rule.clause.error(message)


_NOTHING: Final[Any] = object()
_AGGREGATES: Final = ("count", "sum", "max", "min", "bag", "set")


def _aggregated(bindings: Bindings, what: Value, bag: list[Any]) -> Value | None:
    """Return what aggregate_all makes of all values; None: there is none to choose from."""
    kind = what.functor if type(what) is Compound else "count"
    if kind == "count":
        return len(bag)
    if kind in ("bag", "set"):
        return make_list(ordered(bag, bindings, once=True) if kind == "set" else bag)
    numbers = [evaluate(one, bindings) for one in bag]
    if kind == "sum":
        return added(numbers)
    return (max if kind == "max" else min)(numbers) if numbers else None


def _variant(term: Value, bindings: Bindings) -> object:
    """Return what two terms have in common that differ in names of variables alone."""
    names: dict[object, int] = {}
    return tuple(
        (0, names.setdefault(part[1], len(names))) if part[0] == 0 else part
        for part in order_key(term, bindings)
    )
