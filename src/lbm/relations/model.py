"""A relational model: columns as queries, machines as numbers, rules over relations, and the background.

    log-odds(e) = (1 - w)·mean over machines of [F(x_e, no) - F(x_e, yes)] + w·rules(e)

x_e says which columns are true of example e, F is a machine's free energy. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

from lbm.arrays import Bools, Floats
from lbm.errors import ParseError
from lbm.knowledge.formula import atom_name
from lbm.machine.rbm import Machine
from lbm.relations.columns.answers import Background
from lbm.relations.columns.paper import bodies, occurrences
from lbm.relations.columns.queries import Column, read_column
from lbm.relations.evidence import ground, log_odds, marginals, prepare
from lbm.relations.learned import LearnedRule, body_goals, prolog_lines, rule_head
from lbm.relations.modes import Modes
from lbm.relations.problem import RelationalProblem, check_goals
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.program import Program, Signature, head_and_body, indicator, make_program
from lbm.relations.prolog.reader import Clause, read_clauses, read_file
from lbm.relations.prolog.terms import Term, is_ground, signature, subterms, write, write_short
from lbm.relations.saturate import Saturation
from lbm.relations.written import program_lines

SWEEPS: Final = 512
"""Sweeps of each chain by which rules with soft labels score examples.

Wrong labels leave many orders nearly as good, among which chains may never agree; to score an example, its
chance to a hundredth is enough.
"""

REASONS: Final = 5
"""Columns that the reasons of a prediction name, at most, beside the rules."""


@dataclass(frozen=True, slots=True)
class RelationRules:
    """Rules over relations, with the labels that are their evidence.

    Attributes
    ----------
    text
        In the text format; an empty domain is filled with the constants of examples.
    labels
        Known examples as atoms, and whether each is positive.
    share
        w, their part in the log-odds.
    weight
        Of a label as evidence; None: labels are hard.
    """

    text: str
    labels: Mapping[str, bool]
    share: float
    weight: float | None

    def mixed(self, table: Floats, examples: Sequence[Term]) -> Floats:
        """Return the log-odds of examples, from those of a table and from the rules."""
        if not self.share:
            return table
        queries = [atom_name(write(example)) for example in examples]
        distinct = list(dict.fromkeys(queries))
        ready = prepare(ground(self.text, [*self.labels, *distinct]))
        sweeps = None if self.weight is None else SWEEPS
        found = marginals(ready, dict(self.labels), distinct, weight=self.weight, sweeps=sweeps, seed=0)
        return mix_odds(table, log_odds([found[name] for name in queries]), self.share)


def mix_odds(table: Floats, rules: Floats, share: float) -> Floats:
    """Return (1 - w)·table + w·rules: a table may be surer than rules ever are, so both are bounded alike."""
    bounded = log_odds(1 / (1 + np.exp(-np.clip(table, -500, 500))))
    return np.asarray((1 - share) * bounded + share * rules)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A machine of the model: its atoms are the columns it sees, by number, and last the target."""

    machine: Machine
    columns: tuple[int, ...]

    def log_odds(self, table: Bools) -> Floats:
        """Return F(x, no) - F(x, yes) for rows over all columns, shape (rows,)."""
        seen = table[:, list(self.columns)].astype(np.float64)
        no, yes = (
            self.machine.free_energy(np.column_stack([seen, np.full(len(seen), label)]), confidence=1.0)
            for label in (0.0, 1.0)
        )
        return np.asarray(no - yes)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an example is predicted as it is.

    Attributes
    ----------
    rules
        Numbers of the model's rules, from 1, whose bodies hold, with the rules.
    columns
        Columns that change the log-odds most: the text, whether it holds, and by how much the log-odds are
        higher than if it were the other way.
    """

    example: Term
    log_odds: float
    rules: tuple[tuple[int, LearnedRule], ...]
    columns: tuple[tuple[str, bool, float], ...]

    def lines(self, model: RelationalModel) -> Iterator[str]:
        """Yield the reason as text."""
        for number, rule in self.rules:
            yield f"r{number}, weight {rule.weight:+.3f}: {model.clause(rule)}"
        for text, holds, change in self.columns:
            yield f"{change:+.3f} since {'' if holds else 'not '}[{text}]"

    def facts(self, model: RelationalModel) -> dict[str, Any]:
        """Return the reason as plain data."""
        return {
            "rules": [
                {"number": k, "weight": rule.weight, "clause": model.clause(rule)} for k, rule in self.rules
            ],
            "columns": [
                {"column": text, "holds": holds, "change": change} for text, holds, change in self.columns
            ],
        }


@dataclass(frozen=True)
class Prediction:
    """What a model says of examples.

    Attributes
    ----------
    log_odds
        For the target, shape (examples,); above 0 is a yes.
    warnings
        What was odd, one line each.
    """

    examples: tuple[Term, ...]
    log_odds: Floats
    warnings: tuple[str, ...] = ()

    @property
    def labels(self) -> Bools:
        """Whether each example is predicted to be positive."""
        return np.asarray(self.log_odds > 0)

    @property
    def probabilities(self) -> Floats:
        """How likely each example is positive."""
        found: Floats = 1 / (1 + np.exp(-np.clip(self.log_odds, -700, 700)))
        return found


@dataclass(frozen=True, eq=False)
class RelationalModel:
    """What was learned from a relational problem; it predicts examples that nobody has seen.

    ``lbm induce PROBLEM --save MODEL`` writes one, :func:`lbm.load` reads it.

    Attributes
    ----------
    target
        The name and the arity of examples.
    modes
        Of the problem that it was learned from.
    features, depth
        What columns are: queries, or with ``paper`` literals of bottom clauses down to a depth.
    columns
        Their texts.
    members
        Machines whose mean log-odds count.
    rules
        Weighted clauses that stand for the first machine, the strongest first.
    examples
        How many it was trained on.
    background
        Clauses that it was trained with; None: they are in the file ``place``, whose SHA-256 was ``digest``.
    relations
        Rules over relations, if there are any.
    """

    name: str
    target: Signature
    modes: Modes
    features: str
    depth: int | None
    columns: tuple[str, ...]
    members: tuple[Member, ...]
    rules: tuple[LearnedRule, ...]
    examples: int
    background: Program | None
    place: str | None = None
    digest: str | None = None
    relations: RelationRules | None = None

    @cached_property
    def queries(self) -> tuple[Column, ...]:
        """The columns as queries; literals of bottom clauses are none."""
        return () if self.features == "paper" else tuple(map(read_column, self.columns))

    # -- answers --

    def predict(
        self, asked: RelationalProblem | Iterable[Term | str], *, more: Iterable[Clause] = ()
    ) -> Prediction:
        """Return what the model says of examples.

        Parameters
        ----------
        asked
            Terms, or their texts, described by the model's own background and by ``more`` clauses; or a
            problem, whose examples are asked about: its background goes before the model's, predicate by
            predicate.
        """
        if isinstance(asked, RelationalProblem):
            examples: tuple[Term, ...] = asked.examples
            program, warnings = self._program(asked.background, list(more))
        else:
            texts = [_example(one) if isinstance(one, str) else one for one in asked]
            examples = tuple(texts)
            program, warnings = self._program(None, list(more))
        self.check(examples)
        warnings += _unknown(program, examples)
        table = self.table(program, examples)
        return Prediction(examples, self._odds(table, examples), tuple(warnings))

    def explain(
        self, asked: RelationalProblem | Iterable[Term | str], *, more: Iterable[Clause] = ()
    ) -> list[Reason]:
        """Return the reasons for each example's prediction: see :class:`Reason`."""
        more = list(more)
        asked = asked if isinstance(asked, RelationalProblem) else list(asked)
        found = self.predict(asked, more=more)
        own = asked.background if isinstance(asked, RelationalProblem) else None
        table = self.table(self._program(own, more)[0], found.examples)
        place = {text: k for k, text in enumerate(self.columns)}
        changes = self._changes(table)
        reasons = []
        for row, example in enumerate(found.examples):
            holds = table[row]
            fired = tuple(
                (number, rule)
                for number, rule in enumerate(self.rules, start=1)
                if all(bool(holds[place[text]]) == truth for text, truth in rule.body)
            )
            best = np.argsort(-np.abs(changes[row]), kind="stable")[:REASONS]
            columns = tuple(
                (self.columns[k], bool(holds[k]), round(float(changes[row, k]), 6))
                for k in best.tolist()
                if abs(changes[row, k]) > 1e-9
            )
            reasons.append(Reason(example, float(found.log_odds[row]), fired, columns))
        return reasons

    def check(self, examples: Sequence[Term]) -> None:
        """Raise an error unless these are examples of the target."""
        for example in examples:
            found = signature(example)
            if found != self.target or not is_ground(example):
                shown = write_short(example)
                raise ParseError(
                    f"expected examples of {indicator(self.target)} without variables, found {shown}"
                )

    def table(self, program: Program, examples: Sequence[Term]) -> Bools:
        """Return which columns are true of which examples, shape (examples, columns)."""
        if not examples:
            return np.zeros((0, len(self.columns)), dtype=bool)
        problem = RelationalProblem(self.name, program, tuple(examples), (), self.modes)
        if self.features == "paper":
            found = bodies(Saturation(problem, depth=self.depth), examples)
            return occurrences(found, self.columns)
        return Background(problem).evaluate(self.queries, examples)

    # -- words --

    def clause(self, rule: LearnedRule) -> str:
        """Return a rule as one line of Prolog, or where columns are no queries as a formula."""
        if self.features == "paper" or not rule.body:
            return rule.formula(self.target[0]).partition(": ")[2]
        known = dict(zip(self.columns, self.queries, strict=True))
        goals = body_goals([(known[text], truth) for text, truth in rule.body], self.target[1])
        return f"{rule_head(*self.target, positive=rule.positive)} :- {', '.join(goals)}."

    def prolog(self) -> str:
        """Return the rules as a Prolog program."""
        if self.features == "paper":
            raise ParseError(
                "expected columns that are queries, found literals of bottom clauses, which no Prolog clause "
                "says: try --form lbm"
            )
        known = dict(zip(self.columns, self.queries, strict=True))
        return "\n".join(prolog_lines(self.rules, known, self.target, self.examples))

    def theory(self) -> str:
        """Return the rules in the text format, weights as log-odds."""
        lines = [f"# {indicator(self.target)}: {len(self.rules)} rules, {self.examples} training examples"]
        for number, rule in enumerate(self.rules, start=1):
            lines += [f"# r{number}: {rule.said(self.examples)}", rule.formula(self.target[0])]
        return "\n".join(lines)

    # -- inside --

    def _odds(self, table: Bools, examples: Sequence[Term]) -> Floats:
        odds = np.mean([member.log_odds(table) for member in self.members], axis=0)
        return np.asarray(odds if self.relations is None else self.relations.mixed(odds, examples))

    def _changes(self, table: Bools) -> Floats:
        """Return by how much each column's value raises the log-odds over its other value."""
        changes = np.zeros(table.shape)
        for k in sorted({k for member in self.members for k in member.columns}):
            turned = table.copy()
            turned[:, k] = ~turned[:, k]
            for member in self.members:
                if k in member.columns:
                    changes[:, k] += member.log_odds(table) - member.log_odds(turned)
        share = 0.0 if self.relations is None else self.relations.share
        found: Floats = changes * ((1 - share) / len(self.members))
        return found

    def _program(self, own: Program | None, more: Sequence[Clause]) -> tuple[Program, list[str]]:
        """Return what describes examples: the model's background, another problem's, and more clauses."""
        known, warnings = self._known(needed=own is None)
        predicates = dict(known.predicates)
        if own is not None:
            predicates |= {name: one for name, one in own.predicates.items() if own.defines(name)}
        if more:
            for clause in more:
                head = head_and_body(clause)[0]
                if head is not None and signature(head) == self.target:
                    raise clause.error(f"expected background, found an example of {indicator(self.target)}")
            added = [*_clauses(Program(predicates)), *more]
            predicates = dict(make_program(added).predicates)
        program = Program(predicates)
        asked = [
            name
            for column in self.queries
            for step in (*column.steps, *(column.fewer or ()))
            for goal in step.goals
            if (name := signature(goal.template)) is not None
        ]
        missing = [name for name in dict.fromkeys(asked) if name not in predicates and name not in BUILTINS]
        if missing:
            shown = ", ".join(map(indicator, missing[:5]))
            raise ParseError(
                f"expected a background that defines what the model asks, found no {shown}: "
                "add it with --bk, or declare it dynamic"
            )
        check_goals(program, asked)
        return program, warnings

    def _known(self, *, needed: bool) -> tuple[Program, list[str]]:
        """Return the background that the model was trained with, and a word where it is another one now."""
        if self.background is not None:
            return self.background, []
        assert self.place is not None, "a model has its background, or says where it is"
        try:
            clauses = read_file(self.place)
        except OSError:
            if needed:
                raise
            return Program(), []
        changed = file_digest(self.place) != self.digest
        said = f"{self.place}: the background has changed since the model was trained with it"
        return make_program(clauses), [said] if changed else []


def file_digest(path: Path | str) -> str:
    """Return the SHA-256 of a file's bytes."""
    return sha256(Path(path).read_bytes()).hexdigest()


def program_text(program: Program) -> str:
    """Return a program as text that gives the same program."""
    return "".join(f"{line}\n" for line in program_lines(program))


def _clauses(program: Program) -> list[Clause]:
    return read_clauses(program_text(program), source="the model's background")


def _example(text: str) -> Term:
    clauses = read_clauses(text if text.rstrip().endswith(".") else f"{text}\n.")
    if len(clauses) != 1:
        raise ParseError(f"expected one example, found {len(clauses)} in {text[:80]!r}")
    return clauses[0].term


def _unknown(program: Program, examples: Sequence[Term]) -> list[str]:
    """Return a warning for examples with constants that the background never mentions."""
    constants = {
        part
        for predicate in program.predicates.values()
        for terms in (*predicate.facts, *((rule.head, rule.body) for _, rule in predicate.rules))
        for term in terms
        for part in subterms(term)
        if isinstance(part, str)
    }
    odd: dict[str, Term] = {}
    for example in examples:
        for part in subterms(example):
            if isinstance(part, str) and part not in constants and part != "[]" and part != example:
                odd.setdefault(part, example)
    if not odd:
        return []
    first, example = next(iter(odd.items()))
    return [
        f"the background mentions {len(odd)} constants of examples nowhere, {write(first)} of "
        f"{write_short(example)} first: add what is known of them with --bk"
    ]


def with_place(model: RelationalModel, path: Path | str) -> RelationalModel:
    """Return a model that keeps the place and the hash of its background, not its clauses."""
    return replace(model, background=None, place=str(Path(path).resolve()), digest=file_digest(path))
