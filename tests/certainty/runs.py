"""One question asked of chains, and how far its answer is from the truth.

Work is bounded by sweeps, so that the seed decides what is found and not the clock.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
from scipy.special import stdtrit

import lbm
from lbm.errors import LbmError, TooManyWorlds
from lbm.reasoning.exact import trees
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.sampling import runs as sampling_runs
from lbm.reasoning.sampling.diagnostics import wilson
from lbm.reasoning.sampling.runs import Limits
from lbm.reasoning.solvers import aside
from tests.certainty.theories import BENIGN, HARD, KINDS, Case, make

SWEEPS = 2048
"""Sweeps after which most runs give up."""

MANY_SWEEPS = 16_384
"""Sweeps after which a few of the hard runs give up: chains that agree at last may be the most wrong."""

FEW_SWEEPS = 512
"""Sweeps after which the runs of the test suite give up."""

SECONDS = 600.0
"""Far more than a run takes, kernels that must be compiled first included."""

DRAWS = 1000
"""Worlds of a question for draws."""

LOOKED_AT = 8
"""Atoms whose marginals are compared with the truth."""

FAR = 5.0
"""Half-widths of its interval that no answer called converged may be off."""

QUESTIONS = (
    ("ask", "auto"),
    ("ask", "collapsed"),
    ("ask", "tempered"),
    ("marginals", "auto"),
    ("ask", "auto"),
    ("sample", "collapsed"),
    ("log_partition", "population"),
    ("marginals", "tempered"),
    ("ask", "auto"),
    ("sample", "auto"),
    ("ask", "tempered"),
    ("marginals", "collapsed"),
)
"""What is asked, and by which method; one run after the other takes the next."""


@dataclass(frozen=True)
class Plan:
    """One run: a theory, a question and a seed, all decided by a number."""

    kind: str
    number: int
    question: str
    method: str
    query: int
    seed: int
    sweeps: int = SWEEPS

    @property
    def key(self) -> str:
        """Return the name of the run in files."""
        asked = f"{self.question}{self.query}" if self.question in ("ask", "sample") else self.question
        return f"{self.kind}/{self.number}/{asked}/{self.method}/{self.seed}"


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    ``covered`` is 1 if the truth lies in the interval, else 0; of several marginals, the mean. ``off`` is the
    error in half-widths of the interval, of several marginals the largest.
    """

    plan: Plan
    converged: bool
    answer: float
    truth: float
    low: float
    high: float
    covered: float
    off: float
    seconds: float
    said: str = ""
    crashed: bool = False

    @property
    def benign(self) -> bool:
        """Return whether chains have no excuse."""
        return self.plan.kind in BENIGN

    @property
    def right(self) -> bool:
        """Return whether the answer calls itself converged and is not far off."""
        return self.converged and self.off <= FAR


def plans(runs: int, seed: int = 0, only: str = "") -> list[Plan]:
    """Return what to run: every kind as often as the others, and every question of a kind in turn."""
    kinds = [kind for kind in KINDS if only in kind]
    found = []
    for i in range(runs):
        kind, turn = kinds[i % len(kinds)], i // len(kinds)
        rng = random.Random(f"{kind} {turn} {seed}")
        question, method = QUESTIONS[turn % len(QUESTIONS)]
        number = turn // 2 % 10 + 10 * (turn // 60) + 1000 * seed
        sweeps = MANY_SWEEPS if kind in HARD and number % 20 == 0 else SWEEPS
        found.append(Plan(kind, number, question, method, rng.randrange(100), rng.randrange(1 << 30), sweeps))
    return found


def few_plans() -> list[Plan]:
    """Return the hundred runs of the test suite: five or six of each kind, of many questions."""
    found = []
    for turn in range(6):
        for k, kind in enumerate(KINDS):
            question, method = QUESTIONS[(k + 5 * turn) % len(QUESTIONS)]
            found.append(Plan(kind, turn, question, method, k + turn, 100 * k + turn, FEW_SWEEPS))
    return found[:100]


@contextmanager
def only_chains(atoms: int, sweeps: int = SWEEPS) -> Iterator[None]:
    """Let no exact method answer, and let chains do no more than so many sweeps."""

    def too_much(*_: object, **__: object) -> Any:
        raise TooManyWorlds("not in this run", LIMIT=0)

    with ExitStack() as stack:
        for name in ("probability", "marginals", "draw", "log_partition"):
            stack.enter_context(mock.patch.object(Exact, name, too_much))
        stack.enter_context(mock.patch.object(trees, "MAX_ENTRIES", 0))
        stack.enter_context(mock.patch.object(aside, "ganak_installed", return_value=False))
        limits = partial(Limits, updates=64 * max(1, atoms) * sweeps)
        stack.enter_context(mock.patch.object(sampling_runs, "Limits", limits))
        yield


def run(plan: Plan) -> Outcome:
    """Return what a run gives; an answer refused with a reason is one that does not call itself converged."""
    case = make(plan.kind, plan.number)
    query = case.queries[plan.query % len(case.queries)]
    theory = lbm.Theory(list(case.theory), atoms=case.theory.atoms)  # nothing is known of it from other runs
    with only_chains(len(theory.atoms), plan.sweeps):
        began = time.process_time()
        try:
            found = _ask(plan, theory, query)
        except Exception as error:  # noqa: BLE001 - a crash is reported as one
            found = error
        taken = time.process_time() - began
    if isinstance(found, Exception):
        nan = math.nan
        return Outcome(
            plan,
            False,
            nan,
            nan,
            nan,
            nan,
            0.0,
            math.inf,
            taken,
            repr(found),
            not isinstance(found, LbmError),
        )
    converged, compared = _compared(plan, case, query, found)
    judged = [_judged(*each) for each in compared]
    worst = max(range(len(judged)), key=lambda i: judged[i][1])
    answer, truth, low, high = compared[worst]
    covered = sum(inside for inside, _ in judged) / len(judged)
    return Outcome(plan, converged, answer, truth, low, high, covered, judged[worst][1], taken)


def _ask(plan: Plan, theory: lbm.Theory, query: Any) -> Any:
    options: dict[str, Any] = {"seed": plan.seed, "seconds": SECONDS, "method": plan.method}
    if plan.question == "ask":
        return lbm.ask(theory, query, **options)
    if plan.question == "sample":
        return lbm.sample(theory, DRAWS, **options)
    return getattr(lbm, plan.question)(theory, **options)


def _compared(
    plan: Plan, case: Case, query: Any, found: Any
) -> tuple[bool, list[tuple[float, float, float, float]]]:
    """Return whether an answer calls itself converged; and answers, truths and intervals."""
    truth = case.truth
    if plan.question == "ask":
        return found.converged, [(found.probability, truth.chance(query), *found.interval)]
    if plan.question == "marginals":
        names = case.theory.atoms
        step = max(1, len(names) // LOOKED_AT)
        compared = []
        for name in names[::step][:LOOKED_AT]:
            told = found.estimates.get(name) if found.estimates else None
            low, high = (found[name], found[name]) if told is None else (told.low, told.high)
            compared.append((found[name], truth.chance(lbm.atom(name)), low, high))
        return found.converged, compared
    if plan.question == "sample":
        columns = dict(zip(found.atoms, found.array.T, strict=True))
        true = np.broadcast_to(lbm.holds(query, columns), len(found.array))
        share, size = float(true.mean()), float(DRAWS)
        if found.estimate is not None and found.estimate.effective_size < size:  # False where it is not known
            size = found.estimate.effective_size
        return found.converged, [(share, truth.chance(query), *wilson(share * size, size))]
    error = getattr(found, "error", 0.0)
    if getattr(found, "interval", None) is not None:
        low, high = found.interval
    else:  # a standard error that was found from the spread of a few populations
        room = error * float(stdtrit(max(1, getattr(found, "populations", 2) - 1), 0.975))
        low, high = found - room, found + room
    return getattr(found, "converged", True), [(float(found), truth.log_partition(), low, high)]


def _judged(answer: float, truth: float, low: float, high: float) -> tuple[bool, float]:
    """Return whether an interval covers the truth, and the error in half-widths of the interval."""
    room = 1e-9 * max(1.0, abs(truth))  # what rounding may do to an interval of no width
    half = max((high - low) / 2, room)
    off = abs(answer - truth) / half if not math.isnan(answer) else math.inf
    return low - room <= truth <= high + room, off
