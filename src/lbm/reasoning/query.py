"""The questions as users ask them: a theory, a question, and evidence as a formula or its text.

A theory that was asked about is kept ready for a while: see :class:`lbm.reasoning.reasoner.Reasoner`.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from lbm.reasoning.reasoner import SECONDS, Evidence, Reasoner

if TYPE_CHECKING:
    import numpy as np

    from lbm.knowledge.theory import Theory
    from lbm.machine.rbm import Machine
    from lbm.reasoning.answer import Answer, Draws, Marginals
    from lbm.reasoning.components.answers import Models, Worlds
    from lbm.reasoning.optimum import Best
    from lbm.reasoning.sampling.uniformity import Distance

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


def ask(
    theory: Theory | Machine,
    query: Evidence,
    *,
    given: Evidence = None,
    why: bool = False,
    distribution: str = "logical",
    temperature: float = 1.0,
    confidence: float = 5.0,
    method: str = "auto",
    sweeps: int | None = None,
    seconds: float | None = SECONDS,
    seed: int | np.random.Generator | None = None,
) -> Answer:
    """Return how likely a formula is given evidence, and whether it is settled.

    The probability is exact where that can be done, else an estimate from chains, with its error; the
    answer says which. Its status is proven: entailed, refuted, preferred or undecided.

    Parameters
    ----------
    theory
        A theory; or a machine, which then is the one the machine distribution is about.
    query, given
        Any formula, its text, or truth values by name. ``given`` is the evidence (observations, what is
        conditioned on).
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
    """
    return reasoner_for(theory).ask(
        query,
        given=given,
        why=why,
        distribution=distribution,
        temperature=temperature,
        confidence=confidence,
        method=method,
        sweeps=sweeps,
        seconds=seconds,
        seed=seed,
    )


def best(
    theory: Theory,
    *,
    given: Evidence = None,
    top: int = 1,
    every: bool = False,
    seconds: float | None = 10.0,
    seed: int | np.random.Generator | None = None,
    on_better: Callable[[Best], None] | None = None,
    start: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
) -> Best:
    r"""Return the model of greatest score, proven best if time allows, else with the gap that is left.

    Parameters
    ----------
    theory, given
        The theory and the evidence.
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

    Examples
    --------
    >>> import lbm
    >>> found = lbm.best(lbm.Theory.parse("a ^ b\n3: a\n2: b"))
    >>> found.world, found.satisfied, found.lost, found.optimal
    ({'a': True, 'b': False}, 3, 2, True)
    """
    return reasoner_for(theory).best(
        given=given,
        top=top,
        every=every,
        seconds=seconds,
        seed=seed,
        on_better=on_better,
        start=start,
        n_jobs=n_jobs,
    )


def count(
    theory: Theory,
    *,
    given: Evidence = None,
    project: Iterable[str] | None = None,
    seconds: float | None = SECONDS,
) -> int:
    """Return the number of models of a theory, exactly: worlds that satisfy every hard formula and ``given``.

    With ``project`` (projected model counting), the number of their distinct restrictions to those atoms; so
    too where a DIMACS file names atoms in lines ``c p show``. What is past our own methods goes to pyganak,
    if it is installed.

    >>> import lbm
    >>> lbm.count(lbm.Theory.parse("a | b | c"), given="~a")
    3
    """
    return reasoner_for(theory).count(given=given, project=project, seconds=seconds)


def entails(
    theory: Theory,
    query: Evidence,
    *,
    given: Evidence = None,
    mode: str = "entailed",
    seconds: float | None = SECONDS,
) -> bool:
    r"""Return whether a formula follows: proven true in every model that satisfies the evidence.

    With ``mode="preferred"``, whether it is true in every best one. If no model satisfies the evidence there
    is nothing to follow from, an error; so is a question not settled in time.

    >>> import lbm
    >>> theory = lbm.Theory.parse("a -> b\n2: a")
    >>> lbm.entails(theory, "b", given="a"), lbm.entails(theory, "b")
    (True, False)
    >>> lbm.entails(theory, "b", mode="preferred")
    True
    """
    return reasoner_for(theory).entails(query, given=given, mode=mode, seconds=seconds)


def log_partition(
    theory: Theory | Machine,
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
    logical distribution only: the number then has an ``error``, its standard error, and a ``note`` that says
    why. ``method="exact"`` is never an estimate.

    >>> import lbm
    >>> round(lbm.log_partition(lbm.Theory.parse("a | b")), 6)
    1.098612
    >>> about = lbm.log_partition(lbm.Theory.parse("a | b"), method="population", seed=0)
    >>> abs(about - 1.098612) < 5 * about.error
    True
    """
    return reasoner_for(theory).log_partition(
        given=given,
        distribution=distribution,
        temperature=temperature,
        confidence=confidence,
        method=method,
        seconds=seconds,
        seed=seed,
    )


def log_probability(
    theory: Theory | Machine,
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
    return reasoner_for(theory).log_probability(
        world,
        given=given,
        distribution=distribution,
        temperature=temperature,
        confidence=confidence,
        seconds=seconds,
    )


def marginals(
    theory: Theory | Machine,
    *,
    given: Evidence = None,
    distribution: str = "logical",
    temperature: float = 1.0,
    confidence: float = 5.0,
    method: str = "auto",
    sweeps: int | None = None,
    seconds: float | None = SECONDS,
    seed: int | np.random.Generator | None = None,
) -> Marginals:
    """Return the probability of every atom given evidence, by name, all in one pass.

    Options are those of :func:`lbm.ask`.

    >>> import lbm
    >>> lbm.marginals(lbm.Theory.parse("a | b"), given="a")
    a  1
    b  0.5
    exact; logical distribution, temperature 1
    """
    return reasoner_for(theory).marginals(
        given=given,
        distribution=distribution,
        temperature=temperature,
        confidence=confidence,
        method=method,
        sweeps=sweeps,
        seconds=seconds,
        seed=seed,
    )


def models(
    theory: Theory,
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
    return reasoner_for(theory).models(given=given, project=project, limit=limit, seconds=seconds)


def sample(
    theory: Theory | Machine,
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
    ``method="fast"`` anneals models out of the hard formulae, many at once: some kinds of model are met more
    often than others, and soft formulae are not looked at.

    >>> import lbm
    >>> lbm.sample(lbm.Theory.parse("a & (b | c)"), 1000, seed=0).array[:, 0].all()
    np.True_
    """
    return reasoner_for(theory).sample(
        n,
        given=given,
        distribution=distribution,
        temperature=temperature,
        confidence=confidence,
        method=method,
        sweeps=sweeps,
        seconds=seconds,
        seed=seed,
    )


def uniformity(
    theory: Theory | Machine, draws: Worlds, *, given: Evidence = None, seconds: float | None = SECONDS
) -> Distance:
    """Return how far drawn worlds are from uniform over the models that satisfy the evidence.

    Where there are few models it is the total variation distance; where there are many, the largest error of
    a marginal; and ``not measured`` where neither can be had in time. Soft formulae are not looked at.

    >>> import lbm
    >>> theory = lbm.Theory.parse("a | b")
    >>> print(lbm.uniformity(theory, lbm.sample(theory, 3000, seed=0)))
    distance from uniform: 0.0... (total variation over 3 models; uniform draws: about 0.0103)
    """
    return reasoner_for(theory).uniformity(draws, given=given, seconds=seconds)


def distance(
    theory: Theory | Machine, draws: Worlds, *, given: Evidence = None, seconds: float | None = SECONDS
) -> Distance:
    """Return what :func:`uniformity` returns: its name in version 0.1, which goes in 0.3."""
    warnings.warn("lbm.distance is now called lbm.uniformity", DeprecationWarning, stacklevel=2)
    return uniformity(theory, draws, given=given, seconds=seconds)
