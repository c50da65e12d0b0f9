"""What is compiled is known without numba, and compiled beside: once, and not for ever."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from numba.core import event

from lbm.reasoning.compiling import compiled, ready
from lbm.reasoning.compiling.ready import Kernel, kernel
from lbm.reasoning.engine import kernels, plain, warming


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Let this process be one that has asked nothing yet, with an empty cache; return the cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(ready, "_seen", set())
    for name, value in {"here": False, "looked": -1.0, "asked": False, "beside": None}.items():
        monkeypatch.setattr(ready._Process, name, value)
    ready.directory.cache_clear()
    yield tmp_path
    ready.directory.cache_clear()


@pytest.fixture
def started(fresh, monkeypatch):
    """Return the calls that would have started a process."""
    calls = []

    class Process:
        def __init__(self, command, **options):
            calls.append((command, options))

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr("atexit.register", lambda *_: None)
    return calls


def doubled(x):
    return 2 * x


def test_with_an_empty_cache_chains_are_plain_and_one_process_is_started(started):
    assert not ready.is_warm("lanes")
    assert ready.loops() is plain
    assert ready.loops(np.dtype(np.float64), np.dtype(np.uint32)) is plain
    assert len(started) == 1
    command, options = started[0]
    assert command[1:] == ["-m", "lbm.reasoning.engine.warming", "60.0"]
    assert options["stdin"] == subprocess.PIPE
    assert ready.warm_aside()
    assert len(started) == 1


def test_without_leave_to_stay_the_process_ends_with_the_command(started, monkeypatch):
    monkeypatch.setenv("LBM_BACKGROUND", "0")
    ready.warm_aside()
    assert started[0][0][-1] == "0.0"


def test_a_run_changes_over_when_its_piece_is_there_and_not_before(started, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(ready.time, "monotonic", lambda: clock[0])
    assert ready.loops() is plain
    with (ready.directory() / f"lbm-kernels-{ready.key()}.txt").open("a") as file:
        file.write("lanes int16 uint8\n")
    assert ready.loops() is plain  # one looks now and then
    clock[0] += 1.0
    assert ready.loops() is kernels
    assert ready.loops(np.dtype(np.int32), np.dtype(np.uint8)) is plain
    assert ready.is_warm("lanes")
    assert not ready.is_warm("walks")


def test_other_sources_versions_or_settings_are_another_key(monkeypatch):
    """The file of a key says nothing about another: then all is cold."""
    first = ready.key.__wrapped__()
    assert ready.key.__wrapped__() == first
    monkeypatch.setenv("NUMBA_OPT", "1")
    assert ready.key.__wrapped__() != first
    monkeypatch.delenv("NUMBA_OPT")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert ready.key.__wrapped__() == first
    monkeypatch.setattr(ready, "_processor", lambda: "another")
    assert ready.key.__wrapped__() != first


def test_where_nothing_can_be_written_nothing_is_started_and_one_line_says_so(started, monkeypatch, tmp_path):
    """Even root cannot make a directory where there is a file."""
    (tmp_path / "file").touch()
    for place in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(place, str(tmp_path / "file"))
    real = ready._writable
    monkeypatch.setattr(ready, "_writable", lambda place: place.name != "__pycache__" and real(place))
    ready.directory.cache_clear()
    said = []
    monkeypatch.setattr(ready, "tell", said.append)
    assert ready.directory() is None
    assert ready.loops() is plain
    assert ready.loops() is plain
    assert started == []
    assert len(said) == 1
    assert "NUMBA_CACHE_DIR" in said[0]
    monkeypatch.setattr(ready, "tell", None)
    ready._Process.asked = False
    assert not ready.warm_aside()


def test_who_comes_second_leaves_it_to_the_first(started, fresh):
    with ready.locked(fresh) as mine:
        assert mine
        assert not ready.warm_aside()
    assert started == []


def test_a_lock_ends_with_its_holder(fresh):
    script = (
        "import sys; from pathlib import Path; from lbm.reasoning.compiling.ready import locked\n"
        "with locked(Path(sys.argv[1])) as mine:\n    print(mine, flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(fresh)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline().strip() == b"True"
    with ready.locked(fresh) as mine:
        assert not mine
    holder.kill()
    holder.communicate()
    with ready.locked(fresh) as mine:
        assert mine


def test_a_loop_is_python_until_its_piece_is_compiled(started, monkeypatch):
    made = Kernel("walks", doubled)
    monkeypatch.setattr(compiled, "compiled", lambda function, inline: lambda x: ("fast", function(x)))
    assert made(21) == 42
    ready.mark("walks")
    assert made(21) == ("fast", 42)
    assert kernel("walks", inline=True)(doubled)(21) == 42


def test_a_compiled_loop_calls_compiled_ones():
    from lbm.reasoning.engine import walks

    around = walks._walk.fast.py_func.__globals__
    assert around["_words"] is walks._words.fast
    assert walks._walk.fast.py_func.__code__ is walks._walk.py_func.__code__


def test_knowing_what_is_compiled_does_not_load_the_compiler():
    script = (
        "import sys\nimport lbm.reasoning.search.routes, lbm.reasoning.engine.walks\n"
        "import lbm.reasoning.engine.sliced, lbm.reasoning.engine.tempering\n"
        "import lbm.reasoning.engine.population\n"
        "from lbm.reasoning.compiling import ready\nready.is_warm('lanes')\n"
        "assert not {'numba', 'llvmlite'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# --- compiling -------------------------------------------------------------------------------------------


def test_pieces_are_compiled_in_turn_each_written_down_at_once(fresh, monkeypatch):
    done = []
    monkeypatch.setattr(warming, "compile_piece", lambda piece: done.append((piece, ready.done())))
    ready.mark("walks")
    assert sorted(warming.warm()) == sorted(ready.PIECES)
    assert [piece for piece, _ in done] == [piece for piece in ready.PIECES if piece != "walks"]
    for number, (_, before) in enumerate(done):
        assert before == {"walks", *(piece for piece, _ in done[:number])}
    assert ready.done() == set(ready.PIECES)
    assert list(warming.warm(("walks",))) == ["walks"]


def test_pieces_that_another_process_compiles_are_waited_for(fresh, monkeypatch):
    monkeypatch.setattr(warming, "compile_piece", None)  # nothing is compiled here
    waits = []

    def other(seconds):
        waits.append(seconds)
        ready.mark(list(ready.PIECES)[len(waits) - 1])

    monkeypatch.setattr(warming.time, "sleep", other)
    with ready.locked(fresh) as mine:
        assert mine
        assert list(warming.warm()) == list(ready.PIECES)
    assert len(waits) == len(ready.PIECES)


def test_one_piece_that_fails_does_not_stop_the_others(fresh, monkeypatch):
    def fail(piece):
        if piece == "presolve":
            raise RuntimeError(piece)

    monkeypatch.setattr(warming, "compile_piece", fail)
    monkeypatch.setattr(warming.os, "nice", lambda _: None)
    monkeypatch.setattr(warming.threading.Thread, "start", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["warming", "60"])
    warming.main()
    assert ready.done() == set(ready.PIECES) - {"presolve"}
    with ready.locked(fresh):
        warming.main()  # and who finds it under way has nothing to do


def test_the_process_beside_ends_with_whoever_asked(tmp_path):
    """With no seconds to stay: as soon as the other end of its input is closed."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-m", "lbm.reasoning.engine.warming", "0"], stdin=subprocess.PIPE, env=environment
    )
    process.stdin.close()
    began = time.monotonic()
    assert process.wait(timeout=60) == 0
    assert time.monotonic() - began < 60
    assert "dense" not in "".join(path.read_text() for path in Path(tmp_path).glob("*.txt"))


@pytest.mark.parametrize("piece", ready.PIECES)
def test_every_piece_is_compiled_for_the_types_that_questions_have(piece):
    """Compiled anew nothing is: a second call finds what the first one made."""
    warming.compile_piece(piece)
    with event.install_recorder("numba:compile") as heard:
        warming.compile_piece(piece)
    assert not heard.buffer
