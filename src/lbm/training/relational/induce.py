"""Induction: a relational problem -> columns, a machine, and its scores on folds that it never saw.

For each fold, columns are found and the machine is trained on the other folds alone. The size of chains, the
learning rate and the penalty are chosen there too: the training folds are dealt into a few parts, each part
is predicted by machines trained on the other parts, and the setting that is least surprised wins. Where
examples are few, the best settings score a fold together: see :mod:`lbm.training.relational.average`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.sparse import csc_array

from lbm.arrays import Bools, Floats, Ints
from lbm.errors import ParseError
from lbm.knowledge.formula import atom_name
from lbm.knowledge.parser import Statement
from lbm.knowledge.printed import table
from lbm.knowledge.theory import Theory
from lbm.machine.rbm import Machine
from lbm.relations.columns.relevance import select as select_columns
from lbm.relations.columns.transformer import RelationalColumns
from lbm.relations.learned import LearnedRule
from lbm.relations.model import Member, RelationalModel, RelationRules
from lbm.relations.problem import RelationalProblem
from lbm.relations.prolog.terms import Term
from lbm.training.explanations.explain import as_classifier
from lbm.training.learners.classifier import LBMClassifier
from lbm.training.relational.average import MACHINES, TOGETHER, Average, fit_average, how_many, together
from lbm.training.relational.choosing import (
    DECAYS,
    RATE,
    SHARES,
    SIZE,
    base_odds,
    column_sets,
    rank_sets,
)
from lbm.training.relational.folds import Names, make_folds
from lbm.training.relational.rules import Rules, read_rules
from lbm.training.relational.scores import Scores, mean_and_deviation, score, surprise

PARTS: Final = 3
"""Parts that training folds are dealt into to choose a setting."""

MANY: Final = 500
"""Training examples from which one of the parts is enough to judge by."""

BUDGET: Final = 10_000_000
"""Work that growing columns may take for a fold, where settings are not given: see Language."""

RULES: Final = 10
"""Rules that are shown."""

SCORES: Final = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F1",
    "precision_area": "AUC-PR",
}
"""Fields of :class:`Scores`, and what they are called in a table."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is chosen on training examples.

    Attributes
    ----------
    size
        Literals in a chain, for ``features="constants"``.
    learning_rate, l2
        Adam's rate, and the penalty on weights.
    columns
        How many columns the machine sees, by mRMR; None: all.
    """

    size: int
    learning_rate: float
    l2: float
    columns: int | None = None


def grid(size: int = 2) -> tuple[Setting, ...]:
    """Return settings to try, with chains of up to ``size`` literals: all columns, or the best 20 of them.

    >>> len(grid(2)), len(grid(3))
    (12, 16)
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    columns = [*((number, None) for number in range(1, size + 1)), (size, 20)]
    rates, penalties = (0.001, 0.01), (0.05, 0.5)
    return tuple(
        Setting(number, rate, l2, most) for (number, most), rate, l2 in product(columns, rates, penalties)
    )


GRID: Final = grid()
"""Settings that are tried unless others are given."""


@dataclass(frozen=True, slots=True)
class Tested:
    """One fold: its name, its scores, and what they were reached with.

    ``setting`` is the best; ``share`` is that of rules over relations in the mixture, 0 where there are none,
    and ``alone`` are the scores of the machines without these; ``machines`` were averaged, and ``columns`` is
    how many a machine saw, at most.
    """

    name: str
    examples: int
    scores: Scores
    alone: Scores
    setting: Setting
    columns: int
    share: float = 0.0
    machines: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Induction:
    """What came out.

    Attributes
    ----------
    folds
        One for each fold, in order of names.
    log_odds
        Of every example being positive, as the machines of its fold have it, shape (examples,).
    classifier, columns
        One machine trained on all examples, and the columns it sees; scores are not its own. None: there
        were no columns.
    rules
        The strongest rules of that machine, with their weights, the strongest first.
    model
        All that predicts: as many machines as score a fold. None: it was not asked for.
    """

    name: str
    features: str
    folds: tuple[Tested, ...]
    log_odds: Floats
    classifier: LBMClassifier | None
    columns: RelationalColumns
    rules: tuple[str, ...]
    model: RelationalModel | None = None

    def mean(self, what: str = "accuracy") -> tuple[float, float]:
        """Return mean and standard deviation over folds of a score: a field of :class:`Scores`."""
        return mean_and_deviation([getattr(fold.scores, what) for fold in self.folds])

    def lines(self) -> list[str]:
        """Return a table of the folds, mean and standard deviation of every score in per cent, and rules."""
        rows = [["fold", "examples", "columns", *SCORES.values()]]
        for fold in self.folds:
            scores = [_percent(getattr(fold.scores, name)) for name in SCORES]
            rows.append([fold.name, f"{fold.examples}", f"{fold.columns}", *scores])
        means = [self.mean(name) for name in SCORES]
        rows.append(["mean", "", "", *(_percent(mean) for mean, _ in means)])
        rows.append(["s.d.", "", "", *(_percent(deviation) for _, deviation in means)])
        said = list(table(rows, right=range(1, len(rows[0]))))
        if any(fold.share for fold in self.folds):
            share = sum(fold.share for fold in self.folds) / len(self.folds)
            alone = sum(fold.alone.accuracy for fold in self.folds) / len(self.folds)
            said.append(
                f"rules over relations weigh {share:.0%} of the score, the table the rest "
                f"(mean of the folds); without them accuracy is {_percent(alone)}"
            )
        without = [fold.name for fold in self.folds if not fold.columns]
        if without:
            said.append(
                f"fold {', '.join(without)}: no column tells the classes of the other folds apart; "
                "all examples get the share of positive ones"
            )
        several = max(fold.machines for fold in self.folds)
        if several > 1:
            said.append(
                f"each fold is scored by the mean of {several} machines; rules are those of a single one"
            )
        heading = f"strongest rules of a machine of all examples, {self.features} columns:"
        return [*said, heading, *(f"  {rule}" for rule in self.rules)]

    def facts(self) -> dict[str, Any]:
        """Return folds, means and rules as plain data for JSON; a score that is not defined is None."""
        folds = [
            {
                "name": fold.name,
                "examples": fold.examples,
                **{_key(name): _number(getattr(fold.scores, name)) for name in SCORES},
                "columns": fold.columns,
                **{name: getattr(fold.setting, name) for name in ("size", "learning_rate", "l2")},
                "machines": fold.machines,
                "share": fold.share,
                "accuracy_without_rules": _number(fold.alone.accuracy),
            }
            for fold in self.folds
        ]
        means = {
            _key(name): dict(zip(("mean", "deviation"), map(_number, self.mean(name)), strict=True))
            for name in SCORES
        }
        return {"folds": folds, **means, "rules": list(self.rules)}

    def __str__(self) -> str:
        return "\n".join(self.lines())


def _key(name: str) -> str:
    return "auc_pr" if name == "precision_area" else name


def _number(value: float) -> float | None:
    return None if isnan(value) else round(value, 6)


def _percent(value: float) -> str:
    return "none" if isnan(value) else f"{100 * value:.2f}"


def induce(
    problem: RelationalProblem,
    *,
    features: str = "constants",
    knowledge: Theory | str | Path | None = None,
    folds: int = 10,
    groups: Mapping[Term, str] | str | Path | None = None,
    hidden: int = 50,
    settings: Sequence[Setting] | None = None,
    size: int | None = None,
    max_epochs: int = 100,
    machines: int | None = None,
    select: int | None = None,
    depth: int | None = None,
    random_state: int = 0,
    n_jobs: int = 1,
    progress: Callable[[int], object] | None = None,
    keep: bool = False,
    only: str | None = None,
) -> Induction:
    """Return scores of a machine on each fold, and a machine of all examples with its rules.

    Parameters
    ----------
    features, select, depth
        Of :class:`lbm.relations.columns.transformer.RelationalColumns`.
    knowledge
        Formulae over columns and the target's name, such as ``'adj(A,E)' & 'adj(B,F)' -> illegal``, which the
        machine begins with; or rules over relations, such as ``forall X, Y in d: ~(ex(X, Y) & ex(Y, X))``,
        which score examples beside it: see :mod:`lbm.training.relational.rules`.
    folds, groups
        See :func:`lbm.training.relational.folds.make_folds`.
    hidden, max_epochs
        Of :class:`lbm.LBMClassifier`.
    machines
        How many machines score a fold, by the mean of their log-odds, with the four best settings in turn;
        None: 12 if training examples of the rarer class are fewer than 200, else 1; 4 instead of 12 where
        ``settings`` are not given.
    settings
        What is tried on training examples, by machines; with one, nothing is chosen. None: columns are chosen
        by a quicker model (:mod:`lbm.training.relational.choosing`), and few settings are tried.
    size
        Literals in a chain at most, where ``settings`` are not given; None: 3, and 2 where ``features`` is
        not ``constants``.
    random_state
        Of folds that are drawn, and of every machine.
    n_jobs
        Folds at a time, in processes of their own; scores do not depend on it.
    progress
        Called with the number of folds done, after each of them.
    keep
        Whether to make a :class:`lbm.relations.model.RelationalModel` of all examples: as many machines as
        score a fold are trained on them.
    only
        The one fold to test; classifier, columns, rules and model are then those of the other folds.
    """
    from joblib import Parallel, delayed  # type: ignore[import-untyped]

    if settings is not None and not settings:
        raise ValueError("expected one setting at least, got none")
    if not problem.negative:
        raise ParseError(
            f"no negative examples in {problem.name}: expected some, or types that the background "
            "lists, so that all others can be negative"
        )
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if machines is not None and machines < 1:
        raise ValueError(f"machines must be at least 1, got {machines}")
    names = make_folds(problem, folds=folds, groups=groups, seed=random_state)
    rules, theory = read_rules(knowledge, problem)
    largest = size or (SIZE if features == "constants" else 2)
    if settings is not None:
        largest = max(setting.size for setting in settings)
    also = () if theory is None else tuple(name for name in theory.atoms if name != problem.target[0])
    columns = RelationalColumns(
        problem,
        features=features,
        depth=depth,
        size=largest,
        select=select,
        also=also,
        budget=BUDGET if settings is None else None,
    )
    given = tuple(settings or (Setting(largest, RATE, decay) for decay in DECAYS))
    task = Task(problem, columns, theory, rules, names, hidden, given, max_epochs, random_state, machines)
    task = replace(task, choose=settings is None)
    every = sorted(set(names.tolist()), key=lambda name: (len(name), name) if name.isdigit() else (0, name))
    if only is not None:
        if only not in every:
            raise ValueError(f"expected a fold among {', '.join(every[:20])}, got {only!r}")
        one, odds, fit = try_fold(task, only)
        log_odds = np.full(len(names), np.nan)
        log_odds[names == only] = odds
        if progress is not None:
            progress(1)
        rest = np.flatnonzero(names != only)
        return Induction(problem.name, features, (one,), log_odds, *_with_model(task, rest, fit))
    log_odds = np.zeros(len(names))
    tested = []
    work = Parallel(n_jobs=n_jobs, return_as="generator")(delayed(run_fold)(task, name) for name in every)
    for found, odds in work:
        tested.append(found)
        log_odds[names == found.name] = odds
        if progress is not None:
            progress(len(tested))
    final = _whole(task) if keep else _final(task)
    return Induction(problem.name, features, tuple(tested), log_odds, *final)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """All that the work on one fold depends on, beside the fold's name.

    ``choose``: columns are chosen by a quick model, for each fold; else ``settings`` say which are tried.
    """

    problem: RelationalProblem
    columns: RelationalColumns
    theory: Theory | None
    rules: Rules | None
    names: Names
    hidden: int
    settings: tuple[Setting, ...]
    max_epochs: int
    seed: int
    machines: int | None = 1
    units: str | None = None
    choose: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """What was fitted to some examples: columns, their table, the best settings first, and machines.

    ``held`` are log-odds of the examples by machines that had to do without them; ``share`` is that of rules
    over relations, and ``weight`` that of a label as evidence, None where labels are hard.
    """

    columns: RelationalColumns
    table: Any
    settings: tuple[Setting, ...]
    average: Average
    share: float = 0.0
    weight: float | None = None


def fit_examples(task: Task, train: Ints) -> Fitted:
    """Return columns and machines fitted to the examples with these numbers, and to nothing else."""
    examples, labels = task.problem.examples, np.array(task.problem.labels)
    fitted = _fit_columns(task, train)
    seen = fitted.transform([examples[k] for k in train])
    if not fitted.columns_ or len(set(labels[train].tolist())) < 2:
        average = Average((), base_odds(labels[train]))
        weight = None if task.rules is None else task.rules.trust(train)
        return Fitted(fitted, seen, task.settings, average, 0.0 if task.rules is None else 0.5, weight)
    machines = how_many(labels[train], task.machines, TOGETHER if task.choose else MACHINES)
    if task.choose:
        task = replace(task, settings=choose_settings(task, fitted, seen, train, machines))
    if task.choose and machines > 1 and task.rules is None:  # all of them score together
        settings, held = task.settings, np.full((len(task.settings), len(train)), np.nan)
    else:
        settings, held = rank_settings(task, fitted, seen, train)
    average = fit_average(
        seen,
        labels[train],
        settings,
        machines=machines,
        keep=lambda setting: _kept(fitted, setting, seen, labels[train]),
        make=lambda setting, seed: _machine(replace(task, seed=seed), setting),
        seed=task.seed,
    )
    if task.rules is None:
        return Fitted(fitted, seen, settings, average)
    weight = task.rules.trust(train)
    share = task.rules.share(train, held[: together(machines)].mean(axis=0), task.names, weight)
    return Fitted(fitted, seen, settings, average, share, weight)


def choose_settings(
    task: Task, fitted: RelationalColumns, seen: Any, train: Ints, machines: int
) -> tuple[Setting, ...]:
    """Return settings over the best set of columns, or where several machines score, over the two best."""
    labels = np.array(task.problem.labels)[train]
    rows = np.arange(len(train))
    largest = task.settings[0].size
    sizes = column_sets(largest) if fitted.features == "constants" else column_sets(largest)[-len(SHARES) :]
    judges = list(parts(task.names[train], labels))
    if fitted.features == "constants":  # chains so short may be no columns at all
        least = min(column.size for column in fitted.columns_)
        sizes = tuple(one for one in sizes if one[0] >= min(least, largest))
    ranked = list(sizes[:1])
    if judges:
        ranked = rank_sets(
            sizes,
            seen.to_numpy(dtype=bool),
            labels,
            judges,
            lambda one, part: _kept(
                fitted, Setting(one[0], RATE, DECAYS[0], one[1]), seen.iloc[rows[part]], labels[part]
            ),
        )
    best = ranked[: 2 if machines > 1 else 1]
    return tuple(Setting(number, RATE, decay, most) for decay in DECAYS for number, most in best)


def run_fold(task: Task, name: str) -> tuple[Tested, Floats]:
    """Return the scores of one fold, and the log-odds of its examples in their order."""
    tested, odds, _ = try_fold(task, name)
    return tested, odds


def try_fold(task: Task, name: str) -> tuple[Tested, Floats, Fitted]:
    """Return the scores of one fold, the log-odds of its examples, and what was fitted to the others."""
    examples, labels = task.problem.examples, np.array(task.problem.labels)
    test = task.names == name
    train, asked = np.flatnonzero(~test), np.flatnonzero(test)
    found = fit_examples(task, train)
    average = found.average
    odds = average.decision_function(found.columns.transform([examples[k] for k in asked.tolist()]))
    alone = scores = score(odds, labels[test])
    if task.rules is not None:
        odds = task.rules.mixed(odds, train, asked, found.share, found.weight)
        scores = score(odds, labels[test])
    setting, machines = found.settings[0], max(1, len(average.members))
    tested = Tested(name, len(asked), scores, alone, setting, average.columns, found.share, machines)
    return tested, odds, found


def rank_settings(
    task: Task, fitted: RelationalColumns, seen: Any, train: Ints
) -> tuple[tuple[Setting, ...], Floats]:
    """Return settings, the least surprised by parts of the training examples put aside first, and log-odds.

    Log-odds are those of training examples that a setting was not trained on, of shape (settings, training
    examples), and NaN where no part was judged.
    Columns are those of all training examples: of the test fold nothing is known to either.
    """
    labels = np.array(task.problem.labels)[train]
    nothing = np.full(len(train), np.nan)
    if len(task.settings) == 1 and task.rules is None:
        return task.settings, nothing[np.newaxis]
    judges = list(parts(task.names[train], labels))
    tried = set()
    found: list[tuple[float, Setting, Floats]] = []
    for setting in task.settings:
        odds = nothing.copy()
        kept = [_kept(fitted, setting, seen[~part], labels[~part]) for part in judges]
        same = (setting.learning_rate, setting.l2, tuple(map(tuple, kept)))
        if same in tried:
            continue  # it differs in columns that there are not
        tried.add(same)
        for part, mine in zip(judges, kept, strict=True):
            machine = _machine(task, setting).fit(seen.iloc[~part, mine], labels[~part])
            odds[part] = machine.decision_function(seen.iloc[part, mine])
        judged = ~np.isnan(odds)
        cost = surprise(odds[judged], labels[judged]) if judged.any() else 0.0
        found.append((cost, setting, odds))
    found.sort(key=lambda one: one[0])  # of equals, the one that was tried first
    return tuple(setting for _, setting, _ in found), np.array([odds for _, _, odds in found])


def parts(names: Names, labels: Bools) -> Iterator[Bools]:
    """Yield parts of training examples to judge by, whole folds each, shape (training examples,).

    Of many examples one part is enough; a part is left out if the rest would be of one class.
    """
    every, place = np.unique(names, return_inverse=True)
    for k in range(min(PARTS, len(every))):
        part = place % PARTS == k
        if len(every) > 1 and len(set(labels[~part].tolist())) == 2:
            yield part
            if len(names) >= MANY:
                return


def _fit_columns(task: Task, train: Ints) -> RelationalColumns:
    examples, labels = task.problem.examples, task.problem.labels
    fitted = RelationalColumns(**task.columns.get_params(deep=False))
    return fitted.fit([examples[k] for k in train], [labels[k] for k in train])


def _kept(fitted: RelationalColumns, setting: Setting, seen: Any, labels: Bools) -> list[int]:
    """Return the numbers of the columns that a setting leaves, chosen on these rows if there is a choice."""
    always = set(fitted.mentioned_)
    kept: Sequence[int] = range(len(fitted.columns_))
    if fitted.features == "constants":
        kept = [k for k in kept if k in always or fitted.columns_[k].size <= setting.size]
    if setting.columns is None or len(kept) <= setting.columns:
        return list(kept)
    others = [k for k in kept if k not in always]
    chosen = select_columns(seen.to_numpy(dtype=bool)[:, others], labels, setting.columns)
    return sorted([*always, *(others[k] for k in chosen.tolist())])


def _machine(task: Task, setting: Setting) -> LBMClassifier:
    import torch

    if torch.get_num_threads() > 1:  # folds are what runs side by side: threads of one only get in the way
        torch.set_num_threads(1)
    return LBMClassifier(
        knowledge=task.theory,
        target=task.problem.target[0],
        hidden=task.hidden,
        learning_rate=setting.learning_rate,
        l2=setting.l2,
        max_epochs=task.max_epochs,
        validation_fraction=0.0,  # settings are judged on whole folds; a random tenth would part groups
        in_turn=False,  # what settings are chosen for, and stored results were made with
        encode="never",
        units=task.units,
        random_state=task.seed,
    )


def strongest_rules(machine: LBMClassifier, table: Any, labels: Bools) -> tuple[tuple[str, ...], Theory]:
    """Return the texts of a machine's rules, the strongest first, and the rules as a theory in that order."""
    found = machine.rules(table, labels, max_rules=RULES)
    order = sorted(range(len(found.rules)), key=lambda k: -abs(found.rules[k].weight))
    statements = list(found.theory)
    return tuple(found.rules[k].text for k in order), Theory([statements[k] for k in order])


def make_model(task: Task, train: Ints, found: Fitted, rules: Theory) -> RelationalModel:
    """Return what was fitted to examples as a model that needs none of them."""
    labels = np.array(task.problem.labels)[train]
    names = tuple(found.columns.names_)
    place = {atom_name(name): k for k, name in enumerate(names)}
    members = []
    for machine, _ in found.average.members:
        known = as_classifier(machine.network_).machine
        seen = tuple(place[atom_name(name)] for name in known.atoms[:-1])
        members.append(Member(known, seen))
    if not members:
        nothing = csc_array((1, 0), dtype=np.float64)
        bias = np.array([found.average.base])
        members = [Member(Machine((task.problem.target[0],), nothing, bias, np.zeros(0)), ())]
    table = np.asarray(found.table.to_numpy(), dtype=bool)
    relations = None
    if task.rules is not None:
        relations = RelationRules(
            task.rules.text,
            {task.rules.names[k]: task.rules.labels[k] for k in train.tolist()},
            found.share,
            found.weight,
        )
    return RelationalModel(
        name=task.problem.name,
        target=task.problem.target,
        modes=task.problem.modes,
        features=found.columns.features,
        depth=found.columns.saturation_.depth if found.columns.features == "paper" else None,
        columns=names,
        members=tuple(members),
        rules=tuple(_learned(statement, names, place, table, labels) for statement in rules),
        examples=len(train),
        background=task.problem.background,
        relations=relations,
    )


def _learned(
    statement: Statement, names: Sequence[str], place: Mapping[str, int], table: Bools, labels: Bools
) -> LearnedRule:
    """Return a rule of a machine, ``body -> target`` or ``body -> ~target``, with its figures."""
    formula = statement.formula
    literals: list[tuple[str, bool]] = []
    if formula.kind == "implies":
        todo = [formula.args[0]]
        while todo:
            part = todo.pop()
            if part.kind == "and":
                todo.extend(reversed(part.args))
            else:
                truth = part.kind == "atom"
                literals.append(((part if truth else part.args[0]).label, truth))
        formula = formula.args[1]
    positive = formula.kind == "atom"
    holds = np.ones(len(table), dtype=bool)
    for name, truth in literals:
        holds &= table[:, place[name]] == truth
    body = tuple((names[place[name]], truth) for name, truth in literals)
    right = int((labels[holds] == positive).sum())
    assert statement.weight is not None, "rules of a machine are weighted"
    return LearnedRule(float(statement.weight), positive, body, int(holds.sum()), right)


def _final(task: Task) -> tuple[LBMClassifier | None, RelationalColumns, tuple[str, ...]]:
    """Return a machine of all examples, its columns, and its strongest rules; without columns no machine."""
    labels = np.array(task.problem.labels)
    every = np.arange(len(labels))
    fitted = _fit_columns(task, every)
    table = fitted.transform(task.problem.examples)
    if not fitted.columns_:
        return None, fitted, ()
    if task.choose:
        machines = how_many(labels, task.machines, TOGETHER)
        task = replace(task, settings=choose_settings(task, fitted, table, every, machines))
    several = task.choose and how_many(labels, task.machines, TOGETHER) > 1 and task.rules is None
    setting = task.settings[0]
    if not several:
        setting = rank_settings(replace(task, rules=None), fitted, table, every)[0][0]
    kept = _kept(fitted, setting, table, labels)
    fitted.keep(kept)
    table = table.iloc[:, kept]
    machine = _machine(task, setting).fit(table, labels)
    return machine, fitted, strongest_rules(machine, table, labels)[0]


def _whole(task: Task) -> tuple[LBMClassifier | None, RelationalColumns, tuple[str, ...], RelationalModel]:
    """Return what :func:`_final` returns, and a model of as many machines as score a fold."""
    every = np.arange(len(task.problem.labels))
    return _with_model(task, every, fit_examples(task, every))


def _with_model(
    task: Task, train: Ints, found: Fitted
) -> tuple[LBMClassifier | None, RelationalColumns, tuple[str, ...], RelationalModel]:
    if not found.average.members:
        return None, found.columns, (), make_model(task, train, found, Theory())
    machine, kept = found.average.members[0]
    labels = np.array(task.problem.labels)[train]
    texts, rules = strongest_rules(machine, found.table.iloc[:, list(kept)], labels)
    model = make_model(task, train, found, rules)
    return machine, found.columns.keep(kept), texts, model
