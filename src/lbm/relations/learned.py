"""Rules that were learned: weighted clauses over columns, as Prolog that SWI-Prolog loads.

A rule says that its columns, each with its sign, speak for the target or against it. In Prolog it is a
clause for ``target`` or for ``not_target``; what a column counts is counted with ``findall`` and ``sort``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from lbm.knowledge.formula import quote
from lbm.relations.columns.queries import Absent, Column, Goal, Step, is_comparison, rename
from lbm.relations.prolog.program import Signature
from lbm.relations.prolog.terms import Term, Variable, write, write_atom
from lbm.relations.questions import variable_name


@dataclass(frozen=True, slots=True)
class LearnedRule:
    """A weighted clause.

    Attributes
    ----------
    weight
        What it adds to the log-odds of what it speaks for, where its body holds; below 0 it takes away.
    positive
        Whether it speaks for the target.
    body
        Columns by their text, and whether each is to hold.
    covers, right
        Training examples of which the body holds, and how many of them are what the rule says.
    """

    weight: float
    positive: bool
    body: tuple[tuple[str, bool], ...]
    covers: int
    right: int

    @property
    def precision(self) -> float:
        """The share of covered training examples that are what the rule says; NaN where it covers none."""
        return self.right / self.covers if self.covers else float("nan")

    def formula(self, target: str) -> str:
        """Return the rule in the text format, with its weight."""
        literals = [("" if truth else "~") + quote(text) for text, truth in self.body]
        head = ("" if self.positive else "~") + quote(target)
        return f"{self.weight:.6g}: " + (f"{' & '.join(literals)} -> {head}" if literals else head)

    def said(self, examples: int) -> str:
        """Return weight, coverage and precision in words."""
        share = f", precision {self.precision:.2%}" if self.covers else ""
        return f"weight {self.weight:.4g}, covers {self.covers} of {examples} examples{share}"


def prolog_lines(
    rules: Sequence[LearnedRule], columns: Mapping[str, Column], target: Signature, examples: int
) -> Iterator[str]:
    """Yield learned rules as a Prolog program: for each a comment with figures, and a clause."""
    name, arity = target
    yield f"% rules for {name}/{arity}, of {examples} examples; weights are log-odds"
    yield "% load the background first: clauses call its predicates"
    for number, rule in enumerate(rules, start=1):
        yield f"% r{number}: {rule.said(examples)}"
        if not rule.body:
            yield f"%   always, for {'' if rule.positive else 'not '}{name}"
            continue
        goals = body_goals([(columns[text], truth) for text, truth in rule.body], arity)
        yield f"{rule_head(name, arity, positive=rule.positive)} :-\n    " + ",\n    ".join(goals) + "."


def rule_head(name: str, arity: int, *, positive: bool) -> str:
    """Return the head of a clause, for the target or against it."""
    given = ",".join(map(variable_name, range(arity)))
    called = write_atom(name if positive else f"not_{name}")
    return f"{called}({given})" if arity else called


def body_goals(body: Sequence[tuple[Column, bool]], arity: int) -> list[str]:
    """Return the goals that say that each column holds, or does not; no two columns share a variable."""
    fresh = count(arity)
    goals: list[str] = []
    for column, truth in body:
        found = _column_goals(column, arity, fresh)
        if truth:
            goals += found
        else:
            goals.append(f"\\+ ({', '.join(found)})")
    return goals


def _column_goals(column: Column, arity: int, fresh: Iterator[int]) -> list[str]:
    if column.least == 1 and column.fewer is None:
        return _goals(_apart(column.steps, arity, fresh))
    goals, first = _counted(column.steps, arity, fresh)
    if column.fewer is None:
        return [*goals, f"{first} >= {column.least}"]
    more, second = _counted(column.fewer, arity, fresh)
    return [*goals, *more, f"{first} > {second}"]


def _counted(steps: Sequence[Step], arity: int, fresh: Iterator[int]) -> tuple[list[str], str]:
    """Return goals that count the answers of a query, and the variable that holds the number."""
    apart = _apart(steps, arity, fresh)
    known = {variable_name(k) for k in range(arity)}
    inner = [name for name in dict.fromkeys(_named(apart)) if name not in known]
    answers, distinct, number = (variable_name(next(fresh)) for _ in range(3))
    inside = ", ".join(_goals(apart)) or "true"
    gathered = f"findall([{','.join(inner)}], ({inside}), {answers})"
    return [gathered, f"sort({answers}, {distinct})", f"length({distinct}, {number})"], number


def _named(steps: Sequence[Step]) -> Iterator[str]:
    """Yield the names of the variables that answers differ by: not those that only an absent part has."""
    for step in steps:
        if isinstance(step, Goal):
            yield from (term.name for term in step.arguments if isinstance(term, Variable))


def _apart(steps: Sequence[Step], arity: int, fresh: Iterator[int]) -> tuple[Step, ...]:
    """Return a query whose own variables have new names."""
    names: dict[str, Term] = {variable_name(k): Variable(variable_name(k)) for k in range(arity)}
    for step in steps:
        for goal in step.goals:
            for term in goal.arguments:
                if isinstance(term, Variable) and term.name not in names:
                    names[term.name] = Variable(variable_name(next(fresh)))
    return rename(steps, names)


def _goals(steps: Sequence[Step]) -> list[str]:
    found: list[str] = []
    for step in steps:
        if isinstance(step, Absent):
            found.append(f"\\+ ({', '.join(_goals(step.goals))})")
            continue
        if is_comparison(step):  # false, and no error, where something is no number
            found += [f"number({write(one)})" for one in step.arguments if isinstance(one, Variable)]
        found.append(str(step))
    return found
