"""Independent blocks of work over cores and machines: the same results wherever each of them was done.

A block is known by its number, and whatever it draws is keyed by (seed, number). So its result does not
depend on who does it, or when, or whether somebody else began it before and died: what is missing is simply
done again.

No file of ours is a pickle. What travels to a worker and back is pickled in flight by joblib, loky or Dask,
which is theirs: the callable with the data that it holds, and what it returns.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar

from lbm.errors import WorkersDied

T = TypeVar("T")

RETRIES: Final = 3
"""How often a block is begun again after a worker that had it died."""


def spread(
    work: Callable[[int], T],
    blocks: Iterable[int],
    *,
    n_jobs: int = 1,
    retries: int = RETRIES,
    on_done: Callable[[int, T], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> dict[int, T]:
    """Return the result of ``work`` for each block, by number and in the order of ``blocks``.

    With one job everything is done here, and joblib is not imported. With more the blocks go to processes on
    this machine or, unchanged, wherever joblib is configured to send them:

        with joblib.parallel_config(backend="dask"):  # a dask.distributed.Client is connected
            spread(work, range(1000), n_jobs=-1)

    What ``work`` raises is raised here as it is, without another try, and ends the rest. A number that comes
    twice is done once. A block should take a tenth of a second or more: to hand it out costs about a
    millisecond, on a cluster about twenty. ``work`` must fit in memory once for each worker.

    >>> spread(abs, [3, -4, 3])
    {3: 3, -4: 4}

    Parameters
    ----------
    work
        Gives the result of one block, from its number alone. Must survive a pickle if ``n_jobs`` is not 1: a
        ``functools.partial`` of a module's function over plain data does. It must not change that data, which
        several blocks may share; arrays in it arrive as arrays that numba takes for ordinary ones.
    blocks
        The numbers; read one by one as workers become free, so that there may be infinitely many.
    n_jobs
        How many blocks are under way at once; negative: all cores but ``-1 - n_jobs`` of this machine, or of
        the cluster.
    retries
        How often a block is begun again after its worker died. Where a pool breaks as a whole, every block
        under way counts as one whose worker died; the last try is made with nothing else under way, so that
        a block which needs all the memory gets it, and one which kills its worker is known. Dask itself moves
        a block of a dead worker three times before that counts as one death here.
    on_done
        Called in this thread with each number and result, once, in the order of completion. What it raises
        ends the work.
    stop
        Asked before each block, with several jobs perhaps from another thread. When it says true, no further
        block is begun; those under way are finished and kept, unless their worker dies.

    Raises
    ------
    WorkersDied
        If the workers of a block died more than ``retries`` times.
    KeyboardInterrupt
        On Ctrl-C: blocks under way are given up, though those on a cluster end there unheard;
        ``on_done`` was called for all that were finished.
    """
    if n_jobs == 0:
        raise ValueError("expected n_jobs from 1 up, or -1 for all cores, got 0: nobody would do the work")
    if retries < 0:
        raise ValueError(f"expected retries from 0 up, got {retries}; with 0 the first death is final")
    feed = _Feed(iter(blocks), stop)
    results: dict[int, T] = {}

    def take(block: int, result: T) -> None:
        feed.out.discard(block)
        results[block] = result
        if on_done is not None:
            on_done(block, result)

    crew = _here if n_jobs == 1 else _crew(n_jobs)
    deaths: Counter[int] = Counter()
    while not feed.ended:
        try:
            crew(work, feed, take)
        except _Died as died:
            deaths.update(died.blocks)
            lost = [block for block in died.blocks if deaths[block] > retries]
            if lost:
                raise WorkersDied(lost, retries + 1, str(died.__cause__)) from died.__cause__
            feed.put_back(last=[block for block in feed.out if 0 < deaths[block] == retries])
    assert not feed.out, "a block that was handed out comes back, or its worker died"
    return {block: results[block] for block in feed.seen if block in results}


# --- what is left to do ----------------------------------------------------------------------------


@dataclass(slots=True)
class _Feed:
    """Hands out the numbers of blocks, to one thread at a time.

    Attributes
    ----------
    rest
        Numbers not read yet.
    stop
        Says whether to hand out no more; asked no more once it said so.
    seen
        Every number read, in order; the values mean nothing.
    out
        Numbers handed out whose results have not come.
    again, alone
        Numbers to hand out again, those of ``alone`` with nothing else under way.
    stopped, exhausted
        Whether ``stop`` said so, and whether all numbers were read.
    """

    rest: Iterator[int]
    stop: Callable[[], bool] | None
    seen: dict[int, None] = field(default_factory=dict)
    out: set[int] = field(default_factory=set)
    again: deque[int] = field(default_factory=deque)
    alone: deque[int] = field(default_factory=deque)
    stopped: bool = False
    exhausted: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will be handed out."""
        return self.stopped or (self.exhausted and not self.again and not self.alone)

    def next(self, *, alone: bool = False) -> int | None:
        """Return the next number, or None where there is none; ``alone``: of those to be done alone."""
        if self.ended:
            return None
        if self.stop is not None and self.stop():
            self.stopped = True
            return None
        queue = self.alone if alone else self.again
        block = queue.popleft() if queue else None if alone else self._unseen()
        if block is not None:
            self.out.add(block)
        return block

    def put_back(self, *, last: Iterable[int]) -> None:
        """Take back all that is out; what is in ``last`` will be handed out alone."""
        self.alone.extend(sorted(last))
        self.again.extend(sorted(self.out.difference(self.alone)))
        self.out.clear()

    def _unseen(self) -> int | None:
        for block in self.rest:
            if block not in self.seen:
                self.seen[block] = None
                return block
        self.exhausted = True
        return None


class _Died(Exception):
    """Workers died that had these blocks; the cause is what their keeper said."""

    def __init__(self, blocks: Iterable[int]) -> None:
        super().__init__()
        self.blocks = sorted(blocks)


Work = Callable[[int], Any]
Take = Callable[[int, Any], None]
Crew = Callable[[Work, _Feed, Take], None]
"""Does what the feed hands out, or some of it; raises _Died where workers did."""


# --- who does it -----------------------------------------------------------------------------------


def _here(work: Work, feed: _Feed, take: Take) -> None:
    """Do everything in this thread."""
    while (block := feed.next()) is not None:
        take(block, work(block))


def _crew(n_jobs: int) -> Crew:
    """Return the crew that joblib's configuration asks for."""
    import joblib  # type: ignore[import-untyped]
    from joblib.parallel import get_active_backend  # type: ignore[import-untyped]

    width = int(joblib.effective_n_jobs(n_jobs))  # with Dask, waits for a first worker and says if none comes
    backend, _ = get_active_backend()
    client = getattr(backend, "client", None)
    distributed = sys.modules.get("distributed")
    if distributed is not None and isinstance(client, distributed.Client):
        return partial(_with_dask, client, n_jobs, dict(getattr(backend, "submit_kwargs", {})))
    return _here if width == 1 else partial(_with_joblib, n_jobs, width)


def _do(work: Callable[[int], T], block: int) -> tuple[int, T]:
    """Return the number of a block with its result."""
    return block, work(block)


# -- joblib's own workers --


def _with_joblib(n_jobs: int, width: int, work: Work, feed: _Feed, take: Take) -> None:
    """Hand blocks to the workers of joblib's backend, ``width`` at once, until the feed ends or one dies."""
    from concurrent.futures.process import BrokenProcessPool

    from joblib import Parallel, delayed

    alone = bool(feed.alone)
    width = 1 if alone else width
    # Large arrays are mapped from a file. In joblib's usual mode they cannot be written to, which makes them
    # another type to numba, and kernels of fixed signature do not take them; "c" copies what is written to.
    options: dict[str, Any] = {"n_jobs": n_jobs, "batch_size": 1, "pre_dispatch": width, "mmap_mode": "c"}
    tasks = _Tasks(feed, width, partial(delayed(_do), work), alone=alone)
    try:
        pool, one_by_one = Parallel(return_as="generator_unordered", **options), True
    except ValueError:
        pool, one_by_one = Parallel(**options), False
    # Where results come all at once, do one block for each worker, and return. So, too, after a block done
    # alone: when a worker dies, results that came and were not taken are lost, and their blocks look guilty.
    results = _results(pool, tasks if one_by_one and not alone else itertools.islice(tasks, width))
    taken = 0
    try:
        while True:
            try:
                pair = next(results, None)
            except BrokenProcessPool as error:
                raise _Died(feed.out) from error
            if pair is None:
                break
            taken += 1
            take(*pair)
    except KeyboardInterrupt:
        # Results may have come while ``take`` was at work; none is left if joblib itself was interrupted.
        with suppress(Exception):  # whatever else is wrong by now, the news is the interrupt
            while taken < pool.n_completed_tasks and (pair := next(results, None)) is not None:
                taken += 1
                take(*pair)
        raise
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of results that nobody took, which is meant
            results.close()
    if tasks.error is not None:
        raise tasks.error


def _results(pool: Any, tasks: Iterator[Any]) -> Generator[tuple[int, Any], None, None]:
    """Yield what the tasks return; the first of them is begun when the first result is asked for."""
    yield from pool(tasks)


class _Tasks(Iterator[Any]):
    """Tasks for joblib, from a feed: ``width`` of them at first, then one whenever a worker is free.

    Whenever a worker is free, joblib reads as many tasks as it has workers, and those it has read are begun
    even if ``stop`` says true by then. So after each task the reading ends once, and goes on when joblib asks
    again. A joblib that did not ask again would cost time only: the work is not over before the feed is.
    """

    def __init__(self, feed: _Feed, width: int, task: Callable[[int], Any], *, alone: bool) -> None:
        self.feed, self.width, self.task, self.alone = feed, width, task, alone
        self.given = 0
        self.pause = False
        self.error: BaseException | None = None

    def __next__(self) -> Any:
        if self.pause or self.error is not None:
            self.pause = False
            raise StopIteration
        try:
            block = self.feed.next(alone=self.alone)
        except BaseException as error:  # noqa: BLE001 - raised in joblib's thread, some would not be heard of
            self.error = error
            block = None
        if block is None:
            raise StopIteration
        self.given += 1
        self.pause = self.given > self.width
        return self.task(block)


# -- Dask --


def _with_dask(
    client: Any, n_jobs: int, options: dict[str, Any], work: Work, feed: _Feed, take: Take
) -> None:
    """Hand blocks to the workers of a Dask cluster until the feed ends, or Dask gives one of them up.

    The cluster is asked directly: joblib waits for ever for a block that Dask has given up.
    """
    from concurrent.futures import CancelledError

    import distributed

    alone = bool(feed.alone)
    # ``work`` travels once, as the result of a task of its own: if its holder dies, Dask makes it again from
    # what the scheduler keeps, where data that was only put on a worker would be lost.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")
        held = client.submit(_itself, work, pure=False, **options)
    running: dict[Any, tuple[int, str | None]] = {}  # by future: the block, and the worker meant for it
    as_completed: Any = distributed.as_completed  # in some versions it has no types
    come = as_completed(loop=client.loop)
    dead: list[int] = []
    cause: Exception | None = None
    try:
        while True:
            if not dead:
                for block, home in _hand_out(client.ncores(), 1 if alone else n_jobs, feed, running, alone):
                    where = {"workers": [home], "allow_other_workers": True} if home else {}
                    future = client.submit(_do, held, block, pure=False, **(where | options))
                    running[future] = block, home
                    come.add(future)
            if not running:
                break
            future = next(come)
            try:
                block, result = future.result()
            except (distributed.KilledWorker, CancelledError) as error:
                dead.append(running.pop(future)[0])
                cause = error
                continue
            del running[future]
            take(block, result)
    except KeyboardInterrupt:
        for future in [future for future in running if future.status == "finished"]:
            del running[future]
            take(*future.result())
        raise
    finally:
        for future in running:
            future.release()
    if dead:
        raise _Died(dead) from cause


def _hand_out(
    cores: Mapping[str, int],
    n_jobs: int,
    feed: _Feed,
    running: Mapping[Any, tuple[int, str | None]],
    alone: bool,
) -> Iterator[tuple[int, str | None]]:
    """Yield blocks as long as the cluster has cores for them, each with the worker that has most to spare.

    Left to itself, Dask would queue blocks where ``work`` is, while other workers wait.
    """
    total = sum(cores.values())
    width = max(1, min(n_jobs, total) if n_jobs > 0 else total + 1 + n_jobs)
    busy = Counter(home for _, home in running.values())
    for _ in range(width - len(running)):
        block = feed.next(alone=alone)
        if block is None:
            return
        home = max(cores, key=lambda address: cores[address] - busy[address], default=None)
        busy[home] += 1
        yield block, home


def _itself(work: T) -> T:
    """Return what is given, to be kept by a worker."""
    return work
