"""Blocks give the same results wherever they are done, and whoever dies meanwhile."""

import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from importlib import import_module
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lbm.errors import LbmError, WorkersDied
from lbm.reasoning.parallel import spread

SEED = 7
FOREVER = 60
"""Seconds that only a block which is killed or given up would wait."""

# --- work, done in other processes too -------------------------------------------------------------


def draw(seed, block):
    """Return numbers that (seed, block) alone determine."""
    rng = random.Random(f"{seed}, {block}")
    return [rng.random() for _ in range(4)]


def logged(directory, block):
    """Leave a line for each time a block is begun."""
    with (directory / "begun").open("a") as log:
        log.write(f"{block}\n")
    return draw(SEED, block)


def deadly(directory, victim, block):
    """Kill the own process at the first try of one block."""
    marker = directory / "killed"
    if block == victim and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return logged(directory, block)


def always_deadly(directory, victim, block):
    if block == victim:
        os.kill(os.getpid(), signal.SIGKILL)
    return logged(directory, block)


def waits_to_be_killed(directory, victim, block):
    """At the first try of one block, say who does it, and wait."""
    marker = directory / "pid"
    if block == victim and not marker.exists():
        (directory / "writing").write_text(str(os.getpid()))
        (directory / "writing").rename(marker)
        time.sleep(FOREVER)
    return logged(directory, block)


def hangs_from(first, directory, block):
    """Do not end, from some block on, before the test does."""
    result = logged(directory, block)
    while block >= first and not (directory / "over").exists():
        time.sleep(0.01)
    return result


def says_stop(directory, last, block):
    """Say stop in one block; no block after it ends before it has begun."""
    if block == last:
        (directory / "stop").touch()
    while block > last and not (directory / "stop").exists():
        time.sleep(0.01)
    time.sleep(0.03)  # longer than it takes to hand out the next block
    return logged(directory, block)


def breaks(directory, victim, block):
    logged(directory, block)
    if block == victim:
        raise WorkersDied([block], 1, "made up")
    return block


def breaks_pool(tries, poison, block):
    """Look like a block whose worker dies, each time or a number of times."""
    tries[block] = tries.get(block, 0) + 1
    if tries[block] <= poison.get(block, 0):
        raise BrokenProcessPool
    return draw(SEED, block)


def looks_at(array, block):
    return block, bool(array.flags.writeable), bool(array.flags.c_contiguous), int(array[block])


def begun(directory):
    return sorted(int(line) for line in (directory / "begun").read_text().split())


class Quit(BaseException):
    pass


# --- where it is done ------------------------------------------------------------------------------


@contextmanager
def threads():
    import joblib

    with joblib.parallel_config(backend="threading"):
        yield


@contextmanager
def all_at_once():
    """A backend that does not give results one by one."""
    import joblib
    from joblib.parallel import ThreadingBackend

    class AllAtOnce(ThreadingBackend):
        supports_return_generator = False

    with joblib.parallel_config(backend=AllAtOnce()):
        yield


@pytest.fixture(scope="module", autouse=True)
def light():
    """Let functions of this module travel with their code: new workers need not import what tests do."""
    kinds = []
    for name in (
        "cloudpickle",
        "joblib.externals.cloudpickle",
    ):  # Dask's, and that of older versions of joblib
        with suppress(ImportError):
            kinds.append(import_module(name))
    for kind in kinds:
        kind.register_pickle_by_value(sys.modules[__name__])
    yield
    for kind in kinds:
        kind.unregister_pickle_by_value(sys.modules[__name__])


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes of a real local cluster."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("distributed")
    from dask.distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as local, Client(local):
        yield local


@pytest.fixture
def dask(cluster):
    """joblib configured for that cluster, with both workers there."""
    import joblib

    usual = cluster.scheduler.allowed_failures
    cluster.scale(2)  # a nanny whose worker dies while it starts gives up
    cluster.wait_for_workers(2, timeout=30)
    with joblib.parallel_config(backend="dask"):
        yield cluster
    cluster.scheduler.allowed_failures = usual


@pytest.fixture(params=["processes", "dask"])
def workers(request):
    """Two workers that are processes: joblib's own, or a cluster's."""
    if request.param == "dask":
        return request.getfixturevalue("dask")
    return None


# --- one result for each block ---------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(st.integers(-50, 50), max_size=20), st.sampled_from(["here", "threads", "all at once"]))
def test_every_block_is_done_once_and_results_keep_the_order_of_blocks(blocks, where):
    done = []
    place, n_jobs = {"here": (threads, 1), "threads": (threads, 3), "all at once": (all_at_once, 3)}[where]
    with place():
        results = spread(
            partial(draw, SEED), iter(blocks), n_jobs=n_jobs, on_done=lambda *pair: done.append(pair)
        )
    expected = {block: draw(SEED, block) for block in blocks}
    assert results == expected
    assert list(results) == list(expected)
    assert sorted(done) == sorted(expected.items())


def test_results_are_told_in_the_order_of_completion_and_returned_in_that_of_blocks():
    done, last_is_done = [], threading.Event()

    def work(block):
        if block == 5:
            last_is_done.set()
        if block == 0:
            last_is_done.wait()
        return -block

    with threads():
        results = spread(work, range(6), n_jobs=2, on_done=lambda block, _: done.append(block))
    assert list(results.items()) == [(block, -block) for block in range(6)]
    assert done[:4] == [1, 2, 3, 4]
    assert sorted(done) == list(results)


def test_processes_give_what_one_process_gives(workers, tmp_path):
    done = {}
    results = spread(
        partial(logged, tmp_path),
        range(9),
        n_jobs=2,
        on_done=lambda block, _: done.setdefault(block, threading.get_ident()),
    )
    assert results == spread(partial(draw, SEED), range(9))
    assert list(results) == list(range(9))
    assert begun(tmp_path) == list(range(9))
    assert set(done.values()) == {threading.get_ident()}


def test_large_arrays_arrive_as_kernels_want_them(workers):
    array = np.arange(300_000) * 3
    results = spread(partial(looks_at, array), range(4), n_jobs=-1)
    assert list(results.values()) == [(block, True, True, 3 * block) for block in range(4)]


def test_one_job_needs_no_joblib():
    code = (
        "import sys; from lbm.reasoning.parallel import spread; "
        "assert spread(abs, [-1]) == {-1: 1}; "
        "assert not {'joblib', 'numba', 'numpy', 'distributed'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- workers that die ------------------------------------------------------------------------------


def test_a_block_whose_process_is_killed_is_done_again_and_all_others_once_in_the_result(tmp_path):
    done = []
    results = spread(
        partial(deadly, tmp_path, 4), range(10), n_jobs=2, on_done=lambda *pair: done.append(pair)
    )
    assert (tmp_path / "killed").exists()
    assert results == spread(partial(draw, SEED), range(10))
    assert sorted(done) == list(results.items())


@pytest.mark.parametrize("allowed", [3, 0])
def test_a_cluster_that_loses_a_worker_in_mid_run_gives_what_one_process_gives(dask, tmp_path, allowed):
    """Three failures allowed: Dask moves the block; none: it gives the block up, and we begin it again."""
    dask.scheduler.allowed_failures = allowed
    done, killed, others = [], [], []

    def kill(block, result):
        done.append((block, result))
        marker = tmp_path / "pid"
        if not killed and marker.exists():
            killed.append(int(marker.read_text()))
            os.kill(killed[0], signal.SIGKILL)

    def numbers():
        """Go on for as long as it takes to kill a worker, and some blocks more."""
        for block in count():
            others.append(block - len(done))
            yield block
            if block >= 10 and killed:
                return

    work = partial(waits_to_be_killed, tmp_path, 2)
    results = spread(work, numbers(), n_jobs=-1, retries=1, on_done=kill)
    assert killed
    assert max(others) == 1  # one for each of two cores: no block waits in a queue while another is begun
    assert results == spread(partial(draw, SEED), range(len(results)))
    assert sorted(done) == list(results.items())


def test_a_block_that_always_kills_its_worker_is_named_and_no_other(dask, tmp_path):
    dask.scheduler.allowed_failures = 0
    done = []
    work = partial(always_deadly, tmp_path, 3)
    with pytest.raises(WorkersDied, match="block 3: begun once") as caught:
        spread(work, range(8), n_jobs=2, retries=0, on_done=lambda block, _: done.append(block))
    assert caught.value.blocks == (3,)
    assert "killed" in type(caught.value.__cause__).__name__.lower()
    assert sorted(done) == sorted(set(begun(tmp_path)))


@settings(max_examples=15)
@given(st.integers(1, 7), st.sets(st.integers(0, 6), max_size=2), st.integers(1, 3))
def test_only_blocks_that_break_the_pool_each_time_are_named_and_without_any_all_is_done(n, deadly, retries):
    poison = {block: 100 for block in deadly if block < n}
    done = []

    def run():
        work = partial(breaks_pool, {}, poison)
        return spread(work, range(n), n_jobs=2, retries=retries, on_done=lambda block, _: done.append(block))

    with threads():
        if poison:
            with pytest.raises(WorkersDied, match=f"begun {retries + 1} times") as caught:
                run()
            assert len(caught.value.blocks) == 1
            assert caught.value.blocks[0] in poison
        else:
            assert run() == spread(partial(draw, SEED), range(n))
    assert len(set(done)) == len(done)
    assert not poison.keys() & set(done)


@settings(max_examples=15)
@given(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3))
def test_a_block_may_break_the_pool_as_often_as_there_are_retries(victim, often, retries):
    done = []
    with threads():
        work = partial(breaks_pool, {}, {victim: often})
        if often > retries:
            with pytest.raises(WorkersDied) as caught:
                spread(work, range(10), n_jobs=2, retries=retries)
            assert victim in caught.value.blocks
        else:
            results = spread(
                work, range(10), n_jobs=2, retries=retries, on_done=lambda *pair: done.append(pair)
            )
            assert results == spread(partial(draw, SEED), range(10))
            assert sorted(done) == list(results.items())


def test_workers_died_names_blocks_teaches_and_survives_a_pickle():
    error = WorkersDied(range(20), 4, "exit code -9\nand more")
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(error, LbmError)
    assert error.exit_status == 3
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert error.one_line().startswith("blocks 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...: begun 4 times")
    assert "n_jobs" in error.one_line()
    assert "exit code -9" in str(error)
    assert "heard" not in str(WorkersDied([1], 1))


# --- ends ------------------------------------------------------------------------------------------


@given(st.integers(0, 12))
def test_alone_in_its_process_stop_ends_before_the_next_block(number):
    done = []
    results = spread(
        partial(draw, SEED),
        count(),
        on_done=lambda block, _: done.append(block),
        stop=lambda: len(done) == number,
    )
    assert list(results) == done == list(range(number))


def test_once_stop_says_so_no_block_is_begun_and_those_under_way_are_kept(workers, tmp_path):
    results = spread(partial(says_stop, tmp_path, 5), count(), n_jobs=2, stop=(tmp_path / "stop").exists)
    # Two are under way at once, so that of the blocks after the one which says stop only the next may be.
    assert list(results) in (list(range(6)), list(range(7)))
    assert begun(tmp_path) == list(results)


def test_an_error_of_the_work_is_raised_as_it_is_and_the_block_not_begun_again(workers, tmp_path):
    with pytest.raises(WorkersDied, match="made up") as caught:
        spread(partial(breaks, tmp_path, 2), range(6), n_jobs=2)
    assert caught.value.blocks == (2,)
    assert begun(tmp_path).count(2) == 1


@pytest.mark.parametrize("error", [OSError, Quit])
def test_what_stop_or_blocks_raise_is_raised_here_after_the_blocks_under_way(error):
    def numbers():
        yield from range(5)
        raise error

    def stop():
        if len(done) >= 2:
            raise error
        return False

    done = []
    for options in ({"blocks": numbers()}, {"blocks": count(), "stop": stop}):
        done.clear()
        with threads(), pytest.raises(error):
            spread(partial(draw, SEED), n_jobs=2, on_done=lambda block, _: done.append(block), **options)
        assert done


@pytest.mark.parametrize("where", ["threads", "dask"])
def test_what_on_done_raises_ends_the_work(request, where):
    def fail(block, result):
        raise OSError("disk full")

    place = threads() if where == "threads" else nullcontext(request.getfixturevalue("dask"))
    with place, pytest.raises(OSError, match="disk full"):
        spread(partial(draw, SEED), count(), n_jobs=2, on_done=fail)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_while_we_wait_keeps_all_that_is_finished(workers, tmp_path):
    done = []

    def on_done(block, result):
        done.append(block)
        if len(done) == 3:
            threading.Timer(0.1, interrupt).start()

    with pytest.raises(KeyboardInterrupt):
        spread(partial(hangs_from, 3, tmp_path), count(), n_jobs=2, on_done=on_done)
    (tmp_path / "over").touch()
    assert sorted(done) == [0, 1, 2]


def test_an_interrupt_while_a_result_is_handled_keeps_all_that_is_finished(workers, tmp_path):
    read, done = [], []
    if workers is not None:
        from dask.distributed import get_client

        client = get_client()
        before = set(client.futures)

    def numbers():
        for block in count():
            read.append(block)
            yield block

    def others_are_finished():
        if workers is None:  # of two at once, block k + 2 is read when k + 1 are finished
            return len(read) == 5
        new = {key: state.status for key, state in client.futures.items() if key not in before}
        return set(new.values()) == {"finished"}

    def on_done(block, result):
        done.append(block)
        if len(done) == 1:
            while not others_are_finished():
                time.sleep(0.01)
            interrupt()
            time.sleep(FOREVER)

    with pytest.raises(KeyboardInterrupt):
        spread(partial(hangs_from, 3, tmp_path), numbers(), n_jobs=2, on_done=on_done)
    (tmp_path / "over").touch()
    # A cluster gets its next block when a result was handled, so that no more than two were begun.
    assert sorted(done) == ([0, 1, 2] if workers is None else [0, 1])


# --- options ---------------------------------------------------------------------------------------


def test_nobody_to_do_the_work_is_an_error_that_says_what_to_pass():
    with pytest.raises(ValueError, match="expected n_jobs from 1 up, or -1 for all cores, got 0"):
        spread(abs, [1], n_jobs=0)
    with pytest.raises(ValueError, match="expected retries from 0 up, got -1"):
        spread(abs, [1], retries=-1)
