"""The pool: budgets are kept, and who is killed loses nobody else's question."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lbm.views.studio.workers import Workers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

THEORY = {"theory": "a | b"}
LONG = 60.0  # seconds after which a test has failed, on a machine however busy


def run(work):
    return asyncio.run(asyncio.wait_for(work, LONG))


async def busy(pool: Workers) -> int:
    """Return the process that works on a question, once there is one."""
    while not pool.busy:
        await asyncio.sleep(0.01)
    return pool.busy[0]


def lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def begun(pool: Workers) -> None:
    while len(pool.ready) < pool.size + 1:
        await asyncio.sleep(0.02)


def test_a_worker_over_its_budget_or_no_longer_wanted_is_killed_and_the_next_question_answered():
    async def work() -> None:
        async with Workers(1, most=5.0) as pool:
            assert (await pool.ask("count", THEORY)).body == {"count": "3"}
            await begun(pool)
            stopped = []
            # Over budget: it hears nothing and looks at no clock.
            for seconds in (0.2, 5.0):
                for pid in pool.ready:
                    os.kill(pid, signal.SIGSTOP)
                    stopped.append(pid)
                task = asyncio.create_task(pool.ask("count", {**THEORY, "seconds": seconds}))
                if seconds == 5.0:  # taken back
                    await busy(pool)
                    began = time.monotonic()
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    assert time.monotonic() - began < 1
                else:
                    reply = await task
                    assert (reply.status, reply.body["kind"]) == (3, "NoAnswer")
                    assert reply.body["error"] == "no answer within 0.2 seconds: allow more"
                for pid in stopped:
                    if lives(pid):
                        os.kill(pid, signal.SIGCONT)
                assert (await pool.ask("count", THEORY)).body == {"count": "3"}
                await begun(pool)
            assert sum(map(lives, stopped)) < len(set(stopped))

    run(work())


def test_a_killed_worker_loses_no_other_question():
    async def work() -> None:
        async with Workers(2) as pool:
            await begun(pool)
            victim = pool.ready[0]
            os.kill(victim, signal.SIGKILL)  # one that waits for a question
            many = [asyncio.create_task(pool.ask("count", THEORY)) for _ in range(12)]
            replies = await asyncio.gather(*many)
            assert [reply.body for reply in replies].count({"count": "3"}) >= 11
            await begun(pool)
            for pid in pool.ready:  # so that one question is in its hands when it dies
                os.kill(pid, signal.SIGSTOP)
            first = asyncio.create_task(pool.ask("count", THEORY))
            pid = await busy(pool)
            others = [asyncio.create_task(pool.ask("count", THEORY)) for _ in range(5)]
            os.kill(pid, signal.SIGKILL)
            for other in pool.processes:
                if other != pid:
                    os.kill(other, signal.SIGCONT)
            lost = await first
            assert (lost.status, lost.body["kind"]) == (3, "NoAnswer")
            assert "has ended" in lost.body["error"]
            assert [(await other).body for other in others] == [{"count": "3"}] * 5

    run(work())


def test_too_many_questions_are_refused_and_none_is_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("lbm.views.studio.workers.MAX_WAITING", 2)

    async def work() -> None:
        async with Workers(1) as pool:
            replies = await asyncio.gather(*(pool.ask("count", THEORY) for _ in range(4)))
            assert sorted(reply.status for reply in replies) == [0, 0, 3, 3]
            assert "MAX_WAITING" in replies[-1].body["error"]

    run(work())


def test_a_worker_that_has_answered_many_questions_gives_way_to_a_fresh_one(monkeypatch):
    monkeypatch.setattr("lbm.views.studio.workers.MAX_ASKED", 2)

    async def work() -> None:
        async with Workers(1) as pool:
            await begun(pool)
            first = set(pool.processes)
            for _ in range(4):
                assert (await pool.ask("count", THEORY)).status == 0
            assert not first <= set(pool.processes)

    run(work())


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_when_their_caller_is_killed(how):
    script = (
        "import asyncio\nfrom lbm.views.studio.workers import Workers\n"
        "async def main():\n"
        "    async with Workers(1) as pool:\n"
        "        await pool.ask('count', {'theory': 'a'})\n"
        "        print(*pool.processes, flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout is not None
        workers = [int(pid) for pid in caller.stdout.readline().split()]
        assert workers
        assert all(map(lives, workers))
        caller.send_signal(how)
        caller.wait(LONG)
    end = time.monotonic() + LONG
    while any(map(lives, workers)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(lives, workers))
