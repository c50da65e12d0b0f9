"""The questions as users ask them: a theory made ready once, and asked often.

A theory is asked by the methods of its reasoner, or by functions of the same names, which keep the reasoners
of theories asked lately.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial, update_wrapper
from threading import Lock
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Final,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from lbm.arrays import Bools, Floats
from lbm.errors import EvidenceError, LimitExceeded, NoAnswer, NoWorlds, TooManyWorlds, WrongDistribution
from lbm.knowledge.formula import Formula, atom, conjunction
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory, unweighted
from lbm.reasoning.answers import (
    Answer,
    AnswerRows,
    Best,
    DistributionResult,
    Draws,
    MarginalRows,
    Marginals,
    Models,
    Proof,
    Worlds,
)
from lbm.reasoning.assign import assign
from lbm.reasoning.beside import (
    BY_GANAK,
    PATIENCE,
    Rival,
    count_beside,
    log_partition_beside,
    probability_beside,
)
from lbm.reasoning.budget import Budget
from lbm.reasoning.choices import DISTRIBUTIONS, FAST, METHODS, MODES, POPULATION
from lbm.reasoning.distributions import Distribution, Logical, OfMachine
from lbm.reasoning.exact.apart import split_of
from lbm.reasoning.exact.by_row import ByRow
from lbm.reasoning.exact.evidence import Table, is_table, rows_of
from lbm.reasoning.exact.form import EvidenceRows, FormPlan
from lbm.reasoning.exact.questions import Exact, check_listed
from lbm.reasoning.exact.rows import MAX_LISTED, check_room
from lbm.reasoning.exact.trees import Trees, Weighed
from lbm.reasoning.exact.whole import How
from lbm.reasoning.problem import Known, Problem
from lbm.reasoning.proof import satisfiable
from lbm.reasoning.status import follows, prefer, settle

if TYPE_CHECKING:
    import numpy as np

    from lbm.machine.rbm import Machine
    from lbm.reasoning.sampling.estimates import Ran
    from lbm.reasoning.sampling.runs import Limits
    from lbm.reasoning.sampling.targets import Target
    from lbm.reasoning.sampling.uniformity import Distance

Evidence = Formula | str | Mapping[str, Any] | None
"""Any formula, its text, or truth values by name."""

Values: TypeAlias = "Mapping[str, float | np.bool_]"
"""Truth values by name."""

_ONE: Final = (str, Formula, type(None))  # evidence that is no table

SECONDS: Final = 60.0
"""Time for an answer, where none is given."""

TRYING: Final = 10.0
"""Seconds that an exact answer is tried for where chains could give another."""

UNSURE: Final = 1.0
"""Seconds of these for a circuit of mostly soft formulae that are too wide for tables."""

FEW: Final = 256
"""Models up to which the first ones are looked for by a SAT solver, and never counted."""

# Of plain chains, after which those that do not agree are tempered.
_FIRST_TRY: Final[dict[str, Any]] = {"most": 2048, "patient": False}

_FOR_STATUS: Final = 0.25  # of the time for an answer, before its probability is looked for
_FOR_CHAINS: Final = 0.8  # of what is then left

_P = ParamSpec("_P")
_O = TypeVar("_O", bound=DistributionResult)
_T = TypeVar("_T")
_Q = ParamSpec("_Q")
_R = TypeVar("_R")
_Said_co = TypeVar("_Said_co", covariant=True)
_Rows_co = TypeVar("_Rows_co", covariant=True)
_Run = Callable[["Target", str, "Limits"], tuple[_O, "Ran"]]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked about, given which evidence, how an answer is looked for, and for how long."""

    about: Distribution
    given: Formula | None
    method: str
    sweeps: int | None
    budget: Budget
    rng: np.random.Generator

    @property
    def said(self) -> dict[str, Any]:
        """What an answer says of the distribution."""
        return {
            "distribution": self.about.name,
            "temperature": self.about.temperature,
            "confidence": self.about.confidence,
        }

    def settled(self) -> dict[str, bool]:
        """Return the atoms that chains leave out, since the evidence settles them."""
        return self.about.settled(self.given, self.budget)

    def rival(self, work: Callable[[Budget], _T | None]) -> Rival[_T]:
        """Return the work of another engine, where there is one and it answers what is asked exactly."""
        exact = self.method in ("auto", "exact") and isinstance(self.about, Logical)
        return Rival(work if exact else None, self.budget)

    def either(
        self,
        exactly: Callable[[Budget], _T],
        otherwise: Callable[[str], _T],
        rival: Rival[_T] | None = None,
    ) -> _T:
        """Return an exact answer or, if that is too much or not wanted, another one, told the reason.

        Where both are allowed, the exact one has half of the time, TRYING at most, and UNSURE where it is
        likely to fail: what is hopeless shows it late, and chains answer in seconds. A rival may be first.
        """
        note = ""
        if self.method in ("auto", "exact"):
            try:
                rival = rival or Rival(None, self.budget)
                if self.method == "exact":
                    return rival.first(exactly, self.budget)
                part = self.budget.half().at_most(TRYING).trying(UNSURE)
                return rival.first(exactly, part, PATIENCE)
            except (TooManyWorlds, NoAnswer) as error:
                if self.method == "exact":
                    raise
                note = (
                    str(error) if isinstance(error, TooManyWorlds) else "that takes more time than there is"
                )
        return otherwise(note)

    def answer(
        self,
        exactly: Callable[[Budget], _O],
        by_chains: _Run[_O],
        *,
        query: Formula | None = None,
        share: float = 1.0,
        rival: Rival[_O] | None = None,
    ) -> _O:
        """Return an exact answer or one by chains, in this share of the time that is then left.

        ``by_chains`` gets what chains run on, their method and their limits, and returns the answer with how
        they ran. Where plain chains do not agree, tempered ones follow, and begin where some of them ended.
        """
        return self.either(exactly, lambda note: self._by_chains(by_chains, note, query, share), rival)

    def _by_chains(self, run: _Run[_O], note: str, query: Formula | None, share: float) -> _O:
        from lbm.reasoning.sampling import runs

        limits = runs.Limits(self.sweeps, self.budget.part(share))
        chosen = self.method in ("collapsed", "tempered", "gibbs")
        tempering = not chosen and self.sweeps is None and self.about.name == "logical"

        def ran(how: str, ends: Bools | None, limits: Limits) -> tuple[_O, Bools]:
            target = self.about.target(query, self.given, how, self.rng, self.budget, ends)
            found, ran = run(target, how, limits)
            return replace(found, sweeps=ran.sweeps), ran.ends

        how = self.method if chosen else "collapsed"
        found, ends = ran(how, None, replace(limits, **_FIRST_TRY) if tempering else limits)
        if tempering and not found.converged and not limits.budget.spent():
            note = "; ".join(filter(None, [note, "plain chains did not agree"]))
            with suppress(NoAnswer):  # too late: then what plain chains say must do
                found, _ = ran("tempered", ends, limits)
        return replace(found, note=note)


class Reasoner:
    r"""A theory made ready once, and asked often.

    What a question needed is kept for the next one: evidence works only on the components it mentions,
    and components met before are not worked out again. Threads may share a reasoner.

    Parameters
    ----------
    theory
        A theory, or a machine: questions about the machine distribution are then about this machine,
        not about the one that :func:`lbm.translate` makes of the theory.

    Examples
    --------
    >>> from lbm import Theory
    >>> reasoner = Reasoner(Theory.parse("1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"))
    >>> reasoner.ask("p", given="n").probability
    0.5
    >>> reasoner.ask("r", given="n & p").status
    'preferred'
    """

    def __init__(self, theory: Theory | Machine) -> None:
        self.asked = theory
        self._machine: Machine | None = None
        if not isinstance(theory, Theory):
            from lbm.machine.rbm import Machine

            if not isinstance(theory, Machine):
                raise TypeError(f"expected a theory or a machine, got {theory!r}: Theory.parse reads text")
            self._machine = theory
            theory = Theory(atoms=theory.declared) if theory.theory is None else theory.theory
        self.theory = theory
        self._problem = Problem(theory)
        self._known = self._problem.known
        self._trees = Known(size=4)  # by temperature: they are large
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<Reasoner: {self.theory!r}>"

    @cached_property
    def _by_row(self) -> ByRow:
        """The theory as rows of evidence are asked about it."""
        return ByRow(self.theory, self._known)

    @property
    def machine(self) -> Machine:
        """The machine that questions about the machine distribution are about."""
        with self._lock:
            if self._machine is None:
                from lbm.machine.translate import translate

                self._machine = translate(self.theory)
            return self._machine

    # -- models --

    def count(
        self,
        *,
        given: Evidence = None,
        project: Iterable[str] | None = None,
        weighted: bool | None = None,
        seconds: float | None = SECONDS,
    ) -> int | Fraction:
        """Return the number of models, exactly: worlds that satisfy every hard formula and ``given``.

        With ``project`` (projected model counting), the number of their distinct restrictions to those
        atoms; so too where a DIMACS file names atoms in lines ``c p show``. Where pyganak is installed it
        counts beside our own methods what takes more than a moment.

        Where literals weigh something, the sum over models of the products of their literals' weights, a
        Fraction (weighted model counting); ``weighted=False`` counts the models.

        >>> import lbm
        >>> lbm.count(lbm.Theory.parse("a | b | c"), given="~a")
        3
        """
        evidence, budget = self._evidence(given), Budget.of(seconds)
        kept = self._projected(project)
        if weighted or (weighted is None and self.theory.literal_weights):
            from lbm.reasoning.exact.weighted import weighted_count

            return weighted_count(self.theory, evidence, kept, How(known=self._known, budget=budget))
        if self.theory.literal_weights:  # a literal that weighs nothing may be true in a model
            bare = Reasoner(unweighted(self.theory))
            return bare.count(given=evidence, project=kept, seconds=seconds)
        with Rival(partial(count_beside, self._problem, evidence, kept), budget) as rival:
            return rival.first(lambda budget: self._exactly(budget).count(evidence, kept), budget)

    def models(
        self,
        *,
        given: Evidence = None,
        project: Iterable[str] | None = None,
        limit: int | None = None,
        seconds: float | None = SECONDS,
    ) -> Models:
        """Return the models of a theory, the first ``limit`` of them in lexicographic order.

        A few are found by a SAT solver, without counting the others. Out of time, those found so far are
        returned, and ``in_time`` is false.

        ``len()`` counts them, iteration gives each as a mapping by name, ``.array`` all as a matrix.

        >>> import lbm
        >>> list(lbm.models(lbm.Theory.parse("a ^ b")))
        [{'a': False, 'b': True}, {'a': True, 'b': False}]
        """
        evidence, kept, budget = self._evidence(given), self._projected(project), Budget.of(seconds)
        check_listed(self.theory, kept, limit)
        if limit is not None and limit <= FEW:
            try:
                return self._first(evidence, kept, limit, budget)
            except LimitExceeded:  # no clauses of that size: exact methods may do without
                return self._exactly(budget).models(evidence, kept, limit)
        try:
            return self._exactly(budget.half()).models(evidence, kept, limit)
        except (TooManyWorlds, NoAnswer) as error:
            if isinstance(error, TooManyWorlds) and error.limit == "MAX_LISTED":
                raise
            try:
                return self._first(evidence, kept, limit, budget)
            except LimitExceeded:
                raise error from None

    def _first(
        self, given: Formula | None, kept: Iterable[str] | None, limit: int | None, budget: Budget
    ) -> Models:
        """Return the first models as a SAT solver finds them."""
        from lbm.reasoning.listing import first_models

        names = self.theory.atoms if kept is None else tuple(dict.fromkeys(kept))
        most = MAX_LISTED // max(1, len(names))
        if limit is not None:
            check_room(limit, len(names))
        found = first_models(
            self._problem, names, most if limit is None else limit, given=given, budget=budget
        )
        if limit is None and found.in_time and not found.complete:
            check_room(most + 1, len(names))
        return found

    def best(
        self,
        *,
        given: Evidence = None,
        top: int = 1,
        every: bool = False,
        seconds: float | None = 10.0,
        seed: int | np.random.Generator | None = None,
        on_better: Callable[[Best], None] | None = None,
        start: Mapping[str, Any] | None = None,
        n_jobs: int = 1,
        engines: str | Iterable[str] | None = None,
    ) -> Best:
        r"""Return the model of greatest score, proven best if time allows, else with the gap that is left.

        Parameters
        ----------
        given
            The evidence.
        top
            How many worlds, best first.
        every
            Whether to list every world that is as good as the best.
        seconds
            Time for the search and the proof; None: until it is proven.
        seed
            Of the search.
        on_better
            Called with every better world as it is found.
        start
            A world to begin the search from, where no exact answer is in reach.
        n_jobs
            How many processes search; -1: as many as there are cores. Inside ``joblib.parallel_config`` they
            are those of its backend, a Dask cluster for one.
        engines
            Who is asked: names of ``own``, ``rc2``, ``cp-sat`` and ``toulbar2``, as in ``"own,rc2"``, or who
            is not, as in ``"-cp-sat"``. None: all that are installed; the extra ``solvers`` brings more.

        Examples
        --------
        >>> import lbm
        >>> found = lbm.best(lbm.Theory.parse("a ^ b\n3: a\n2: b"))
        >>> found.world, found.satisfied, found.lost, found.optimal
        ({'a': True, 'b': False}, 3, 2, True)
        """
        from lbm.reasoning.optimum import best

        evidence = self._evidence(given)
        return best(
            self._problem,
            given=evidence,
            top=top,
            every=every,
            seconds=seconds,
            seed=seed,
            on_better=on_better,
            start=start,
            n_jobs=n_jobs,
            engines=engines,
        )

    def entails(
        self,
        query: Evidence,
        *,
        given: Evidence = None,
        mode: str = "entailed",
        seconds: float | None = SECONDS,
    ) -> bool:
        r"""Return whether a formula follows: proven true in every model that satisfies the evidence.

        With ``mode="preferred"``, whether it is true in every best one. If no model satisfies the evidence
        there is nothing to follow from, an error; so is a question not settled in time.

        >>> import lbm
        >>> theory = lbm.Theory.parse("a -> b\n2: a")
        >>> lbm.entails(theory, "b", given="a"), lbm.entails(theory, "b")
        (True, False)
        >>> lbm.entails(theory, "b", mode="preferred")
        True
        """
        _check_choice("mode", mode, MODES)
        if mode == "preferred":
            return self._prefers(query, given, seconds)
        asked, evidence = self._formula(query, "query"), self._evidence(given)
        found = follows(self._problem, asked, given=evidence, budget=Budget.of(seconds))
        if found is None:
            raise NoAnswer(f"no answer within {seconds:g} seconds: allow more")
        return found

    def _prefers(self, query: Evidence, given: Evidence, seconds: float | None) -> bool:
        """Return whether a formula is true in every best world; whether it is false in all is not asked."""
        from lbm.reasoning.preference import preferred

        budget = Budget.of(seconds)
        asked, evidence = self._formula(query, "query"), self._evidence(given)
        found = settle(self._problem, asked, given=evidence, mode="entailed", budget=budget)
        answer = None if found.status is None else found.status == "entailed"
        if found.status == "undecided" and self._problem.has_soft:
            spent = budget.spent()
            answer = None if spent else preferred(self._problem, asked, given=evidence, budget=budget)
        if answer is None:
            raise NoAnswer(f"no answer within {seconds:g} seconds: allow more")
        return answer

    def settle(
        self,
        query: Evidence,
        *,
        given: Evidence = None,
        mode: str = "preferred",
        why: bool = False,
        seconds: float | None = SECONDS,
    ) -> Proof:
        """Return what is proven of a formula, with its reasons or a world that speaks against it."""
        _check_choice("mode", mode, MODES)
        asked, evidence = self._formula(query, "query"), self._evidence(given)
        found = settle(self._problem, asked, given=evidence, mode=mode, why=why, budget=Budget.of(seconds))
        if found.status is None:
            raise NoAnswer(f"no answer within {seconds:g} seconds: allow more")
        return found

    # -- probabilities --

    @overload
    def ask(
        self,
        query: Evidence,
        *,
        given: Formula | str | Values | None = None,
        why: bool = False,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        method: str = "auto",
        sweeps: int | None = None,
        seconds: float | None = SECONDS,
        seed: int | np.random.Generator | None = None,
    ) -> Answer: ...
    @overload
    def ask(
        self,
        query: Evidence,
        *,
        given: Table,
        temperature: float = 1.0,
        method: str = "auto",
        seconds: float | None = SECONDS,
    ) -> AnswerRows: ...
    def ask(
        self,
        query: Evidence,
        *,
        given: Evidence | Table = None,
        why: bool = False,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        method: str = "auto",
        sweeps: int | None = None,
        seconds: float | None = SECONDS,
        seed: int | np.random.Generator | None = None,
    ) -> Answer | AnswerRows:
        """Return how likely a formula is given evidence, and whether it is settled.

        The probability is exact where that can be done, else an estimate from chains, with its error; the
        answer says which. Where pyganak is installed an exact one may be by Ganak, to the precision of
        doubles. Its status is proven: entailed, refuted, preferred, dispreferred (false
        in every best world) or undecided.

        Parameters
        ----------
        query, given
            Any formula, its text, or truth values by name. ``given`` is the evidence (observations, what is
            conditioned on), or a table of it: see below.
        why
            Whether to look for a minimal set of formulae that settles the status.
        distribution
            ``logical``: P(x) ∝ exp(score(x)/τ) over the models; ``machine``: P(x) ∝ exp(-F(x)), the paper's
            free energy, over all worlds.
        temperature, confidence
            τ, and c of the machine distribution.
        method
            ``exact`` or ``collapsed`` or, for the machine distribution, ``gibbs``; ``auto`` is exact and,
            where that is too much, collapsed.
        sweeps
            How many sweeps chains do; by default until they agree.
        seconds
            Time for the answer; None: as long as it takes. Without enough of it the status is None.
        seed
            Of the chains.

        Examples
        --------
        >>> import lbm
        >>> lbm.ask(lbm.Theory.parse("a | b"), "a & b", given="a")
        P(a & b | a) = 0.5
        undecided
        exact; logical distribution, temperature 1

        Given a table, a row of evidence each, there is a probability for each row, and no status. The theory
        and the query are compiled once, and further rows compile nothing. A table is a DataFrame whose
        columns are atoms, a matrix with a column for each atom, or lists by name. A cell is 0 or 1; nan or
        None for what was not seen; or a probability p, soft evidence (virtual evidence, Pearl): worlds with
        the atom are multiplied by p, the others by 1 - p. Of a group, atoms of which a hard formula says
        that exactly one is true, only the one that is true counts: by its p or, if it was not seen, by 1 - p
        of each one that was. A row that is impossible has probability nan, and the others go on.

        >>> lbm.ask(lbm.Theory.parse("a -> b"), "b", given={"a": [1, None, 0.9]}).probability.round(4)
        array([1.    , 0.6667, 0.9091])
        """
        asked = self._formula(query, "query")
        if not isinstance(given, _ONE) and is_table(given):
            _check_plain(distribution, sweeps, why=why)
            return self._ask_rows(asked, given=given, temperature=temperature, method=method, seconds=seconds)
        one = cast(Evidence, given)
        question = self._question(one, distribution, temperature, confidence, method, sweeps, seconds, seed)
        evidence, budget, logical = question.given, question.budget, distribution == "logical"

        def known(found: float, status: str | None = None) -> Answer:
            return Answer(asked, evidence, found, (found, found), status, method="exact", **question.said)

        def beside(budget: Budget) -> Answer | None:
            found = probability_beside(self._problem, asked, evidence, temperature, budget)
            return None if found is None else replace(known(found), note=BY_GANAK)

        def exactly(budget: Budget) -> Answer:
            return known(question.about.exactly(budget).probability(asked, evidence))

        def by_chains(target: Target, _: str, limits: Limits) -> tuple[Answer, Ran]:
            from lbm.reasoning.sampling import estimates

            left = assign(asked, question.settled(), budget)
            found, ran = estimates.ask(target, left, question.rng, limits)
            interval = found.low, found.high
            said = {"method": "sampled", "estimate": found, **question.said}
            return Answer(asked, evidence, found.probability, interval, None, **said), ran

        if logical and method in ("auto", "exact") and not why:
            weighed = self._weighed(asked, evidence, temperature, budget)
            if weighed is not None:
                return known(weighed.probability, weighed.status)
        with question.rival(beside) as rival:
            try:
                part = budget.part(_FOR_STATUS)
                settled = settle(self._problem, asked, given=evidence, mode="entailed", why=why, budget=part)
            except NoWorlds:
                if logical:
                    raise
                settled = Proof(None)  # in a machine, worlds that break hard formulae have their share too
            if logical and settled.status in ("entailed", "refuted"):
                answer = known(float(settled.status == "entailed"))
            else:  # whatever chains leave of the time is for the status
                answer = question.answer(exactly, by_chains, query=asked, share=_FOR_CHAINS, rival=rival)
        if settled.status == "undecided":
            settled = prefer(settled, self._problem, why=why, budget=budget)
        reasons = settled.reasons if why else None
        return replace(answer, status=settled.status, reasons=reasons, minimal=settled.minimal)

    def _weighed(
        self,
        query: Formula,
        given: Formula | None,
        temperature: float,
        budget: Budget,
    ) -> Weighed | None:
        """Return what tables kept ready say of a query, all at once; None: its theory is too large for that.

        It may take no longer than a solver is given for the status alone.
        """
        part = budget.part(_FOR_STATUS)

        def make() -> Trees:
            split = split_of(self.theory, None, self._known, part)
            if split is None:
                raise self._exactly(part).nothing(None)
            return Trees(split, temperature)

        with suppress(NoAnswer, TooManyWorlds):
            trees = self._trees.get(temperature, make)
            found = trees.weigh(query, given, part)
            possible = trees.satisfiable
            if found is not None and possible is None:  # a solver is quicker about all the others
                possible = self._known.get("satisfiable", lambda: satisfiable(self._problem, budget=part))
            if found is None or possible is False:
                raise self._exactly(part).nothing(given)
            return found if possible else None
        return None

    @overload
    def marginals(
        self,
        *,
        given: Formula | str | Values | None = None,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        method: str = "auto",
        sweeps: int | None = None,
        seconds: float | None = SECONDS,
        seed: int | np.random.Generator | None = None,
    ) -> Marginals: ...
    @overload
    def marginals(
        self,
        *,
        given: Table,
        temperature: float = 1.0,
        method: str = "auto",
        seconds: float | None = SECONDS,
    ) -> MarginalRows: ...
    def marginals(
        self,
        *,
        given: Evidence | Table = None,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        method: str = "auto",
        sweeps: int | None = None,
        seconds: float | None = SECONDS,
        seed: int | np.random.Generator | None = None,
    ) -> Marginals | MarginalRows:
        """Return the probability of every atom given evidence, by name, all in one pass.

        Options are those of :func:`lbm.ask`; so is what a table of evidence means, a row each.

        >>> import lbm
        >>> lbm.marginals(lbm.Theory.parse("a | b"), given="a")
        a  1
        b  0.5
        exact; logical distribution, temperature 1
        >>> lbm.marginals(lbm.Theory.parse("a | b"), given={"a": [1, 0]}).array
        array([[1. , 0.5],
               [0. , 1. ]])
        """
        if not isinstance(given, _ONE) and is_table(given):
            _check_plain(distribution, sweeps)
            return self._marginal_rows(given=given, temperature=temperature, method=method, seconds=seconds)
        one = cast(Evidence, given)
        question = self._question(one, distribution, temperature, confidence, method, sweeps, seconds, seed)

        def exactly(budget: Budget) -> Marginals:
            chances = None
            if distribution == "logical" and method in ("auto", "exact"):
                chances = self._by_row.again(question.given, temperature, budget)
            if chances is None:
                chances = question.about.exactly(budget).marginals(question.given)
            return Marginals(chances, method="exact", **question.said)

        def by_chains(target: Target, _: str, limits: Limits) -> tuple[Marginals, Ran]:
            from lbm.reasoning.sampling import estimates

            each, ran = estimates.marginals(target, question.rng, limits)
            chances = {name: float(value) for name, value in question.settled().items()}
            chances.update((name, found.probability) for name, found in each.items())
            ordered = {name: chances[name] for name in self.theory.atoms}
            return Marginals(ordered, each, method="sampled", **question.said), ran

        return question.answer(exactly, by_chains)

    def pair_marginals(
        self,
        atoms: Iterable[str] | None = None,
        *,
        given: Values | None = None,
        temperature: float = 1.0,
        seconds: float | None = SECONDS,
    ) -> Floats:
        """Return P(a and b | evidence) of every two atoms, shape (atoms, atoms), exactly.

        ``given``: truth values, or probabilities as in a table of evidence, by name.

        >>> import lbm
        >>> lbm.Reasoner(lbm.Theory.parse("a | b")).pair_marginals()
        array([[0.666..., 0.333...],
               [0.333..., 0.666...]])
        """
        names = check_listed(self.theory, atoms, None) or self.theory.atoms
        said = {name: [float(value)] for name, value in (given or {}).items()}
        row, _ = self._rows(said, temperature, "exact") if said else (None, None)
        found = self._by_row.pairs(names, row, temperature, Budget.of(seconds))
        if found is None:
            raise NoWorlds(self._evidence(given))
        return found

    def _ask_rows(
        self,
        query: Evidence,
        *,
        given: Table,
        temperature: float = 1.0,
        method: str = "auto",
        seconds: float | None = SECONDS,
    ) -> AnswerRows:
        """Return how likely a formula is given each row of a table."""
        budget, asked = Budget.of(seconds), self._formula(query, "query")
        rows, said = self._rows(given, temperature, method)
        found, possible = self._by_row.probability(asked, rows, temperature, budget)
        return AnswerRows(query=asked, probability=found, possible=possible, **said)

    def _marginal_rows(
        self,
        *,
        given: Table,
        temperature: float = 1.0,
        method: str = "auto",
        seconds: float | None = SECONDS,
    ) -> MarginalRows:
        """Return the probability of every atom given each row of a table."""
        budget = Budget.of(seconds)
        rows, said = self._rows(given, temperature, method)
        array, possible = self._by_row.marginals(rows, temperature, budget)
        return MarginalRows(atoms=self.theory.atoms, array=array, possible=possible, **said)

    def _rows(self, table: Table, temperature: float, method: str) -> tuple[EvidenceRows, dict[str, Any]]:
        """Return rows of evidence, checked, and what answers say of how they are found."""
        _check_choice("method", method, METHODS)
        if method not in ("auto", "exact"):
            raise ValueError(f"rows of evidence are answered exactly: ask for method='exact', not {method!r}")
        about = self._about("logical", temperature, 1.0)
        said = {"method": "exact", "distribution": about.name, "temperature": temperature}
        return rows_of(table, self.theory.atoms), said

    def plan(self, *, seconds: float | None = SECONDS) -> FormPlan:
        r"""Return how the theory is answered exactly: what each component is compiled to, and how large.

        It is compiled if it has not been. What is too large says which limit it passes.

        >>> import lbm
        >>> lbm.Reasoner(lbm.Theory.parse("exactly(1, a, b, c)\na -> d")).plan()
        0 atoms fixed, 0 free, 1 component
        4 atoms by tables: 8 entries, 6 in the largest
        """
        return self._by_row.plan(Budget.of(seconds))

    def log_partition(
        self,
        *,
        given: Evidence = None,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        method: str = "auto",
        seconds: float | None = SECONDS,
        seed: int | np.random.Generator | None = None,
    ) -> float:
        """Return log Z (log of the partition function, or of a weighted model count).

        Z sums exp(score(x)/τ) over models, or exp(-F(x)) over worlds of a machine.

        Where it cannot be summed it is estimated by population annealing (``method="population"``), of the
        logical distribution only: the number then has an ``error``, its standard error, and a ``note`` that
        says why. ``method="exact"`` is never an estimate.

        >>> import lbm
        >>> round(lbm.log_partition(lbm.Theory.parse("a | b")), 6)
        1.098612
        >>> about = lbm.log_partition(lbm.Theory.parse("a | b"), method="population", seed=0)
        >>> abs(about - 1.098612) < 5 * about.error
        True
        """
        methods = "auto", "exact", POPULATION
        question = self._question(
            given, distribution, temperature, confidence, method, None, seconds, seed, methods
        )
        about, evidence, budget = question.about, question.given, question.budget
        if not isinstance(about, Logical):
            if method == POPULATION:
                raise WrongDistribution(
                    "population annealing weighs models of a theory, not the worlds of a machine: "
                    "ask for method='exact'"
                )
            return about.exactly(budget).log_partition(evidence)

        def by_population(note: str) -> float:
            from lbm.reasoning.sampling.partition import log_partition

            split = about.exactly(budget).possible(evidence)
            return log_partition(split, temperature, question.rng, budget, note)

        def exactly(budget: Budget) -> float:
            return about.exactly(budget).log_partition(evidence)

        def beside(budget: Budget) -> float | None:
            return log_partition_beside(self._problem, evidence, temperature, budget)

        with question.rival(beside) as rival:
            return question.either(exactly, by_population, rival)

    def log_probability(
        self,
        world: Mapping[str, Any],
        *,
        given: Evidence = None,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        seconds: float | None = SECONDS,
    ) -> float:
        """Return log P(world | evidence), exactly; minus infinity for a world that cannot be.

        If it is not worked out within ``seconds``, that is an error.

        >>> import lbm
        >>> round(lbm.log_probability(lbm.Theory.parse("a | b"), {"a": True, "b": False}), 6)
        -1.098612
        """
        budget = Budget.of(seconds)
        evidence = self._evidence(given)
        about = self._about(distribution, temperature, confidence)
        return about.exactly(budget).log_probability(world, evidence)

    def sample(
        self,
        n: int,
        *,
        given: Evidence = None,
        distribution: str = "logical",
        temperature: float = 1.0,
        confidence: float = 5.0,
        method: str = "auto",
        sweeps: int | None = None,
        seconds: float | None = SECONDS,
        seed: int | np.random.Generator | None = None,
    ) -> Draws:
        """Return ``n`` worlds drawn at random: ``.array`` as a matrix, or one by one by name.

        Options are those of :func:`lbm.ask`. Exact draws are independent of one another; where nothing is
        soft they are uniform over the models. Others are states of chains, and say how far to trust them.
        ``method="fast"`` anneals models out of the hard formulae, many at once: some kinds of model are met
        more often than others, and soft formulae are not looked at.

        >>> import lbm
        >>> lbm.sample(lbm.Theory.parse("a & (b | c)"), 1000, seed=0).array[:, 0].all()
        np.True_
        """
        if n < 1:
            raise ValueError(f"n is a number of draws from 1 up, got {n}")
        methods = *METHODS, FAST
        question = self._question(
            given, distribution, temperature, confidence, method, sweeps, seconds, seed, methods
        )
        names, rng = self.theory.atoms, question.rng
        check_room(n, len(names))

        def exactly(budget: Budget) -> Draws:
            array = question.about.exactly(budget).draw(n, rng, question.given)
            return Draws(names, array, method="exact", **question.said)

        def by_chains(target: Target, how: str, limits: Limits) -> tuple[Draws, Ran]:
            import numpy as np

            from lbm.reasoning.sampling import estimates

            states, found, ran = estimates.draw(target, n, rng, limits)
            columns = dict(zip(target.atoms, states.T, strict=True))
            known = question.settled()
            array = np.zeros((n, len(names)), bool)
            for i, name in enumerate(names):
                array[:, i] = columns[name] if name in columns else known[name]
            return Draws(names, array, method=how, estimate=found, **question.said), ran

        if method == FAST:
            from lbm.reasoning.search.harvest import harvest

            if distribution != "logical":
                raise WrongDistribution(
                    "annealing finds models of a theory, not states of a machine: ask for method='collapsed'"
                )
            array, done = harvest(self._problem, n, rng, given=question.given, budget=question.budget)
            return Draws(names, array, method=FAST, sweeps=done, **question.said)
        return question.answer(exactly, by_chains)

    def uniformity(
        self, draws: Worlds, *, given: Evidence = None, seconds: float | None = SECONDS
    ) -> Distance:
        """Return how far drawn worlds are from uniform over the models that satisfy the evidence.

        Where there are few models it is the total variation distance; where there are many, the largest
        error of a marginal; and ``not measured`` where neither can be had in time. Soft formulae are not
        looked at.

        >>> import lbm
        >>> theory = lbm.Theory.parse("a | b")
        >>> print(lbm.uniformity(theory, lbm.sample(theory, 3000, seed=0)))
        distance from uniform: 0.0... (total variation over 3 models; uniform draws: about 0.0103)
        """
        from lbm.reasoning.sampling.uniformity import distance

        evidence = self._evidence(given)
        if draws.atoms != self.theory.atoms:
            raise ValueError(
                f"expected worlds over the {len(self.theory.atoms)} atoms of this theory, in their order, "
                f"got worlds over {len(draws.atoms)} atoms: pass what lbm.sample returned for it"
            )
        if not len(draws):
            raise ValueError("expected one world at least, got none")
        return distance(self.theory, draws.array, evidence, Budget.of(seconds))

    def distance(self, draws: Worlds, *, given: Evidence = None, seconds: float | None = SECONDS) -> Distance:
        """Return what :meth:`uniformity` returns: its name in version 0.1, which goes in 0.3."""
        warnings.warn("Reasoner.distance is now called Reasoner.uniformity", DeprecationWarning, stacklevel=2)
        return self.uniformity(draws, given=given, seconds=seconds)

    # -- at the door --

    def _exactly(self, budget: Budget) -> Exact:
        """Return exact answers about the models."""
        return Exact(self.theory, How(known=self._known, budget=budget))

    def _about(self, distribution: str, temperature: float, confidence: float) -> Distribution:
        _check_choice("distribution", distribution, DISTRIBUTIONS)
        for name, value in (("temperature", temperature), ("confidence", confidence)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is a positive, finite number, got {value}")
        if distribution == "machine":
            return OfMachine(self.machine, confidence, temperature)
        return Logical(self.theory, self._known, temperature)

    def _question(
        self,
        given: Evidence,
        distribution: str,
        temperature: float,
        confidence: float,
        method: str,
        sweeps: int | None,
        seconds: float | None,
        seed: int | np.random.Generator | None,
        methods: tuple[str, ...] = METHODS,
    ) -> _Asked:
        import numpy as np

        evidence = self._evidence(given)
        about = self._about(distribution, temperature, confidence)
        _check_choice("method", method, methods)
        if sweeps is not None and sweeps < 1:
            raise ValueError(f"sweeps is a number from 1 up, got {sweeps}")
        return _Asked(about, evidence, method, sweeps, Budget.of(seconds), np.random.default_rng(seed))

    def _projected(self, project: Iterable[str] | None) -> Iterable[str] | None:
        """Return the atoms that models are projected to: those asked for, else those the theory shows."""
        if project is None:
            return self.theory.shown
        return project if isinstance(project, str) else tuple(project)

    def _evidence(self, given: Evidence) -> Formula | None:
        return None if given is None else self._formula(given, "evidence")

    def _formula(self, said: Evidence, role: str) -> Formula:
        """Return evidence or a query as a formula over atoms of the theory."""
        if isinstance(said, str):
            said = parse(said, source="given" if role == "evidence" else role)
        elif not isinstance(said, Formula) and is_table(said):
            raise EvidenceError(
                f"expected a formula or a truth value for each name as {role}, got a table: rows of evidence "
                "are for `given` of lbm.ask and lbm.marginals"
            )
        elif isinstance(said, Mapping):
            literals = [atom(name) if value else ~atom(name) for name, value in said.items()]
            said = conjunction(literals)
        self._problem.check(said, role)  # type: ignore[arg-type]  # which tells what it is not
        assert isinstance(said, Formula)
        return said


# --- the questions as functions of a theory --------------------------------------------------------

READY: Final = 8
"""Theories that are kept ready."""

HELD: Final = 200_000
"""Formulae that theories kept ready may have together; the one that was asked last is kept in any case."""

_ready: OrderedDict[int, Reasoner] = OrderedDict()
_lock = Lock()


def reasoner_for(theory: Theory | Machine) -> Reasoner:
    """Return the reasoner of a theory, the one made before if it was asked about lately."""
    key = id(theory)  # no other object has it while the reasoner holds on to this one
    with _lock:
        found = _ready.get(key)
        if found is None:
            found = _ready[key] = Reasoner(theory)
        _ready.move_to_end(key)
        while len(_ready) > READY or (len(_ready) > 1 and _held() > HELD):
            _ready.popitem(last=False)
    return found


def _held() -> int:
    return sum(len(reasoner.theory) for reasoner in _ready.values())


def _check_choice(what: str, chosen: str, choices: tuple[str, ...]) -> None:
    if chosen not in choices:
        raise ValueError(f"expected a {what} among {', '.join(choices)}, got {chosen!r}")


def _check_plain(distribution: str, sweeps: int | None, *, why: bool = False) -> None:
    """Raise where more is asked of rows of evidence than probabilities, exactly and of models."""
    _check_choice("distribution", distribution, DISTRIBUTIONS)
    if distribution != "logical":
        raise WrongDistribution(
            "rows of evidence are about the logical distribution: ask about the machine's row by row"
        )
    if sweeps is not None:
        raise ValueError("rows of evidence are answered exactly, without chains: leave out sweeps")
    if why:
        raise ValueError("rows of evidence are answered without reasons: ask with why=True row by row")


class _Function(Protocol[_P, _Said_co]):
    def __call__(self, theory: Theory | Machine, *args: _P.args, **kwargs: _P.kwargs) -> _Said_co: ...


class _RowsToo(Protocol[_P, _Said_co, _Q, _Rows_co]):
    @overload
    def __call__(self, theory: Theory | Machine, *args: _P.args, **kwargs: _P.kwargs) -> _Said_co: ...
    @overload
    def __call__(self, theory: Theory | Machine, *args: _Q.args, **kwargs: _Q.kwargs) -> _Rows_co: ...


def _function(method: Callable[Concatenate[Reasoner, _P], _T]) -> _Function[_P, _T]:
    """Return a question as a function: of a theory, which is kept ready for a while, or of a machine."""
    like = inspect.signature(method)
    of, *others = like.parameters.values()
    parameters = [of.replace(name="theory", annotation="Theory | Machine"), *others]

    def asked(theory: Theory | Machine, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        found: _T = getattr(reasoner_for(theory), method.__name__)(*args, **kwargs)
        return found

    update_wrapper(asked, method)
    asked.__doc__ = inspect.getdoc(method)
    del asked.__wrapped__  # type: ignore[attr-defined]  # which would have another signature
    asked.__qualname__ = method.__name__
    asked.__signature__ = like.replace(parameters=parameters)  # type: ignore[attr-defined]
    return asked


def _rows_too(
    method: Callable[Concatenate[Reasoner, _P], _T],
    for_rows: Callable[Concatenate[Reasoner, _Q], _R],  # noqa: ARG001 - for its type alone
) -> _RowsToo[_P, _T, _Q, _R]:
    """Return a question as a function that says for types, too, what it finds given rows."""
    return cast("_RowsToo[_P, _T, _Q, _R]", _function(method))


ask = _rows_too(Reasoner.ask, Reasoner._ask_rows)
best = _function(Reasoner.best)
count = _function(Reasoner.count)
entails = _function(Reasoner.entails)
log_partition = _function(Reasoner.log_partition)
log_probability = _function(Reasoner.log_probability)
marginals = _rows_too(Reasoner.marginals, Reasoner._marginal_rows)
models = _function(Reasoner.models)
sample = _function(Reasoner.sample)
uniformity = _function(Reasoner.uniformity)


def distance(
    theory: Theory | Machine, draws: Worlds, *, given: Evidence = None, seconds: float | None = SECONDS
) -> Distance:
    """Return what :func:`uniformity` returns: its name in version 0.1, which goes in 0.3."""
    warnings.warn("lbm.distance is now called lbm.uniformity", DeprecationWarning, stacklevel=2)
    return uniformity(theory, draws, given=given, seconds=seconds)
