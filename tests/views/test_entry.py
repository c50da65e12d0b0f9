"""Whatever goes wrong, the command line says it in one line, with the right status and no traceback."""

import io
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest

import lbm
from lbm.errors import LbmError, NoAnswer
from lbm.views import entry
from lbm.views.commands import shared
from lbm.views.entry import main, one_line

PIGEONS = "\n".join(
    [" | ".join(f"sits(p{p}, h{h})" for h in range(14)) for p in range(15)]
    + [f"~sits(p{p}, h{h}) | ~sits(p{q}, h{h})" for h in range(14) for p in range(15) for q in range(p)]
)


@pytest.fixture
def failing(monkeypatch):
    """Make every command fail with an error of our choice once it reads its file."""

    def fail(error):
        def read(*_, **__):
            raise error

        monkeypatch.setattr(shared, "read_theory", read)

    return fail


def one_complaint(capsys):
    """Return the one line on standard error; nothing else may have been printed."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("lbm: ")
    return err


def run(*arguments, stdin=b"", **environment):
    """Run the command line as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "lbm", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


# --- version and help ----------------------------------------------------------------------------


def test_the_version_is_the_package_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"lbm {lbm.__version__}\n"


def least_seconds(*arguments):
    """Return how long Python takes with these arguments, when nothing else is in its way."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_the_version_is_told_within_three_tenths_of_a_second():
    # Or, where that is little even for Python, in a few times what it takes to start and end.
    assert least_seconds("-m", "lbm", "--version") < max(0.3, 6 * least_seconds("-c", "pass"))


@pytest.mark.parametrize(
    ("argument", "absent"),
    [("--version", {"typer", "click", "numpy"}), ("--help", {"numpy", "scipy", "rich"})],
)
def test_version_and_help_load_only_what_they_need(argument, absent):
    script = f"import sys; from lbm.views.entry import main; main([{argument!r}]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not absent & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_names_every_command(capsys, arguments):
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {command} " in out for command in ("compile", "check", "convert", "draw"))


@pytest.mark.parametrize("command", ["compile", "check", "convert", "draw"])
def test_every_command_explains_its_json_and_takes_a_seed(capsys, command):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert "With --json" in out
    assert "--seed" in out


def test_the_version_also_stands_among_the_options(capsys):
    assert main(["--version", "check"]) == 0
    assert capsys.readouterr().out == f"lbm {lbm.__version__}\n"


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], ["frobnicate", "'lbm --help'"]),
        (["complie", "x"], ["complie", "'compile'"]),
        (["--frobnicate"], ["--frobnicate", "'lbm --help'"]),
        (["compile"], ["FILE", "'lbm compile --help'"]),
        (["check", "a.lbm", "b.lbm"], ["b.lbm", "'lbm check --help'"]),
        (["draw", "a.lbm"], ["-o", "'lbm draw --help'"]),
        (["compile", "a.lbm", "--frobnicate"], ["--frobnicate", "'lbm compile --help'"]),
        (["compile", "a.lbm", "--method", "magic"], ["--method", "magic", "elimination"]),
        (["compile", "a.lbm", "--encoding", "magic"], ["--encoding", "magic", "penalty"]),
        (["compile", "a.lbm", "--epsilon", "1"], ["--epsilon", "between 0 and 1"]),
        (["compile", "a.lbm", "--epsilon", "0"], ["--epsilon", "between 0 and 1"]),
        (["compile", "a.lbm", "--epsilon", "nan"], ["--epsilon", "between 0 and 1"]),
        (["draw", "a.lbm", "-o", "a.svg", "--epsilon", "-1"], ["--epsilon", "between 0 and 1"]),
        (["compile", "a.lbm", "--epsilon", "half"], ["--epsilon", "number"]),
        (["compile", "a.lbm", "--budget", "0"], ["--budget", "1"]),
        (["compile", "a.lbm", "--budget", "many"], ["--budget", "integer"]),
        (["compile", "a.lbm", "-o"], ["-o"]),
        (["check", "a.lbm", "--seconds", "0"], ["--seconds", "above 0"]),
        (["check", "a.lbm", "--seconds", "nan"], ["--seconds", "above 0"]),
        (["convert", "a.lbm", "--to", "pdf"], ["--to", "wcnf-old"]),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_problem(capsys, arguments, words):
    assert main(arguments) == 2
    line = one_complaint(capsys)
    assert all(word in line for word in words)


def test_an_unexpected_error_is_called_a_bug(capsys, failing):
    failing(ZeroDivisionError("division\nby zero"))
    assert main(["check", "a.lbm"]) == 2
    assert one_complaint(capsys) == (
        "lbm: a bug in lbm, please report it: ZeroDivisionError: division by zero; "
        "LBM_DEBUG=1 shows the traceback\n"
    )


def test_an_error_without_words_is_named_by_its_type(capsys, failing):
    failing(AssertionError())
    assert main(["check", "a.lbm"]) == 2
    assert "AssertionError;" in one_complaint(capsys)


def test_running_out_of_memory_is_one_line(capsys, failing):
    failing(MemoryError())
    assert main(["check", "a.lbm"]) == 3
    assert "LBM_MEMORY" in one_complaint(capsys)


def test_an_interrupt_is_one_line_and_status_130(capsys, failing):
    failing(KeyboardInterrupt())
    assert main(["check", "a.lbm"]) == 130
    assert one_complaint(capsys) == "lbm: interrupted\n"


@pytest.mark.parametrize(
    ("interrupt", "said"), [(KeyboardInterrupt, "interrupted"), (entry.Terminated, "terminated")]
)
def test_an_interrupt_behind_another_error_is_one(capsys, failing, interrupt, said):
    """While a class is made, Python 3.11 turns what one of its parts raises into a RuntimeError."""
    error = RuntimeError("Error calling __set_name__ on 'cached_property' instance")
    error.__cause__ = interrupt()
    failing(error)
    assert main(["check", "a.lbm"]) == 130
    assert one_complaint(capsys) == f"lbm: {said}\n"


def test_a_reader_that_goes_away_is_not_complained_about(capsys, failing):
    failing(BrokenPipeError())
    assert main(["check", "a.lbm"]) == 141
    assert capsys.readouterr() == ("", "")


def test_what_a_reader_left_unread_is_thrown_away(monkeypatch, tmp_path):
    def read(*_, **__):
        print("half a line")
        raise BrokenPipeError

    monkeypatch.setattr(shared, "read_theory", read)
    with (tmp_path / "reader").open("w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main(["check", "a.lbm"]) == 141
    assert (tmp_path / "reader").read_text() == ""


def test_a_full_disk_is_one_line(capsys, failing):
    failing(OSError(28, "No space left on device"))
    assert main(["check", "a.lbm"]) == 2
    assert "No space left" in one_complaint(capsys)


def test_with_lbm_debug_the_traceback_stands_before_the_line(capsys, failing, monkeypatch):
    monkeypatch.setenv("LBM_DEBUG", "1")
    failing(ZeroDivisionError("division by zero"))
    assert main(["check", "a.lbm"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("lbm: a bug")


def test_a_python_warning_becomes_one_line(capsys, monkeypatch):
    def read(*_, **__):
        warnings.warn("careful\nhere", stacklevel=1)
        return lbm.Theory(["a"])

    monkeypatch.setattr(shared, "read_theory", read)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        shown = warnings.showwarning
        assert main(["check", "a.lbm"]) == 0
        assert warnings.showwarning is shown
    assert capsys.readouterr().err == "lbm: warning: careful here\n"


def test_a_line_holds_nothing_that_a_terminal_obeys():
    assert one_line("a\x1b[2Jb\n\tc\x00\u202e") == "a\\x1b[2Jb c\\x00\\u202e"
    assert one_line("naïve ¬ ∧ 变量") == "naïve ¬ ∧ 变量"


def test_closed_streams_do_no_harm(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["--version"]) == 0
    assert main(["frobnicate"]) == 2
    shared.warn("nobody hears")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a")))
    assert main(["convert", "-", "--to", "lbm"]) == 2


def test_output_is_utf8_whatever_the_console_says(monkeypatch, tmp_path):
    (tmp_path / "a.lbm").write_text("变量 -> 'naïve'", encoding="utf-8")
    console = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", console)
    assert main(["compile", str(tmp_path / "a.lbm")]) == 0
    assert "变量 -> naïve" in console.buffer.getvalue().decode("utf-8")


def test_a_stream_that_cannot_be_reconfigured_is_left_as_it_is(monkeypatch):
    plain = io.StringIO()
    monkeypatch.setattr(sys, "stdout", plain)
    assert main(["--version"]) == 0
    assert plain.getvalue().startswith("lbm ")


def test_python_m_lbm_is_the_same_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["lbm", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("lbm", run_name="__main__")
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"lbm {lbm.__version__}\n"


def test_the_console_script_is_this_function():
    assert entry.main is main


# --- as a process --------------------------------------------------------------------------------


def test_a_process_reads_standard_input_and_exits_with_the_answer():
    done = run("check", "-", stdin=b"a\n~a\n")
    assert done.returncode == 1
    assert done.stderr == b""
    assert b"line 2: ~a" in done.stdout


def test_a_process_that_fails_says_one_line_and_leaves_no_file(tmp_path):
    done = run("compile", "-", "-o", str(tmp_path / "m.lbmm"), stdin=b"a &\n")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"lbm: <stdin>:1:")
    assert done.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


BEGUN = """
import runpy
from lbm.reasoning.solvers.sat import Solver

def first(self, *assumptions, **options):
    Solver.solve = solve
    print("begun", flush=True)
    return solve(self, *assumptions, **options)

solve, Solver.solve = Solver.solve, first
runpy.run_module("lbm", run_name="__main__")
"""  # the command line, but it says when the search begins


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_an_interrupted_process_stops_at_once(tmp_path):
    (tmp_path / "pigeons.lbm").write_text(PIGEONS)
    # Where the tests run in the background the shell has them ignore it, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", BEGUN, "check", str(tmp_path / "pigeons.lbm"), "--seconds", "3000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout.readline() == b"begun\n"
        time.sleep(0.2)  # by now it is deep in its search
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130
    assert out == b""
    assert err == b"lbm: interrupted\n"


INTERRUPTED_AT = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
moment, sys.argv = sys.argv[1], ["lbm", "check", "-"]
for name in ("enum", "signal", "typing", "contextvars"):
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Interrupting())
from lbm.views.entry import main
sys.exit(main())
"""  # the command line, interrupted where it begins to import a module


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize(
    "module", ["enum", "signal", "contextvars", "typer", "lbm.errors", "lbm.views.commands", "numpy"]
)
def test_an_interrupt_while_modules_are_loaded_is_one_line(module):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT, module], input=b"a\n", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"lbm: interrupted\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
def test_a_process_that_is_told_to_end_says_so_in_one_line(tmp_path):
    (tmp_path / "pigeons.lbm").write_text(PIGEONS)
    program = "import sys; sys.argv[0] = 'lbm'\n" + BEGUN
    arguments = [sys.executable, "-c", program, "check", str(tmp_path / "pigeons.lbm"), "--seconds", "3000"]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"begun\n"
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (130, b"", b"lbm: terminated\n")


LOST = """
import os, signal, sys, time
number, sys.argv[0] = getattr(signal, sys.argv.pop()), "lbm"
signal.signal(signal.SIGINT, signal.default_int_handler)
from lbm.views import entry
from lbm.views.commands import shared

class Heavy:
    def __del__(self):
        os.kill(os.getpid(), number)

def read(*_, **__):
    Heavy()
    time.sleep(60)

shared.read_theory = read
sys.exit(entry.main())
"""  # the command line, but the signal comes in a destructor, whose exceptions Python drops

BUSY = """
import threading, time
begin = threading.Thread.start

def start(self):
    begin(self)
    time.sleep(0.3)

threading.Thread.start = start
"""  # a thread that was started goes on before the one that started it


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize(("number", "said"), [("SIGINT", b"interrupted"), ("SIGTERM", b"terminated")])
@pytest.mark.parametrize("before", ["", BUSY], ids=["quiet", "busy"])
def test_a_signal_that_python_drops_is_heard_all_the_same(number, said, before):
    done = subprocess.run(
        [sys.executable, "-c", before + LOST, "check", "-", number],
        capture_output=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"lbm: " + said + b"\n")


FOUND = """
import sys; sys.argv[0] = 'lbm'
from lbm.views.entry import main
from lbm.reasoning.search import routes

def add(self, values):
    found = kept(self, values)
    print("found", file=sys.stderr, flush=True)
    return found

kept, routes.Search._add = routes.Search._add, add
sys.exit(main())
"""  # the command line, but it says when a world was looked at


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way there")
@pytest.mark.parametrize(("number", "said"), [("SIGINT", b"interrupted"), ("SIGTERM", b"terminated")])
def test_a_search_that_is_told_to_end_prints_the_best_world_so_far(number, said, tmp_path):
    rng = random.Random(0)
    rows = [
        f"{rng.randint(1, 50)}: "
        + " | ".join(rng.choice(["", "~"]) + f"x{i}" for i in rng.sample(range(100), 3))
        for _ in range(700)
    ]
    (tmp_path / "hard.lbm").write_text("\n".join(rows))
    arguments = [
        sys.executable,
        "-c",
        FOUND,
        "best",
        str(tmp_path / "hard.lbm"),
        "--seconds",
        "3000",
        "--json",
    ]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        try:
            assert process.stderr.readline() == b"found\n"
            process.send_signal(getattr(signal, number))
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 130
    assert err.splitlines()[-1] == b"lbm: " + said
    found = json.loads(out)
    assert len(found["worlds"][0]) == 100
    assert not found["optimal"]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX knows this limit")
def test_a_command_that_needs_more_memory_than_it_may_use_says_so_in_one_line():
    program = (
        "import sys; sys.argv[0] = 'lbm'\n"
        "from lbm.views import entry\n"
        "from lbm.views.commands import shared\n"
        "shared.read_theory = lambda *_, **__: bytearray(1 << 30)\n"
        "sys.exit(entry.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "check", "-"],
        capture_output=True,
        env={**os.environ, "LBM_MEMORY": "512M"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"LBM_MEMORY" in done.stderr


@pytest.mark.parametrize("said", ["much", "-1", "0", "4X", "1.5G", "٤G", "511M", "1"])
def test_a_memory_budget_that_is_no_number_is_refused(said, monkeypatch):
    monkeypatch.setenv("LBM_MEMORY", said)
    with pytest.raises(LbmError, match="LBM_MEMORY is a number of bytes"):
        entry.memory_allowed()


@pytest.mark.parametrize(
    ("said", "allowed"),
    [("", 4 << 30), ("512M", 512 << 20), ("8g", 8 << 30), ("1000000000", 10**9), ("none", None)],
)
def test_the_memory_budget_of_a_command_has_a_name(said, allowed, monkeypatch):
    monkeypatch.setenv("LBM_MEMORY", said)
    assert entry.memory_allowed() == allowed


def test_a_command_counts_its_time_from_the_start_of_its_process():
    program = (
        "import time; time.sleep(0.3)\nimport sys; sys.argv[0] = 'lbm'\n"
        "from lbm.views import entry\nprint(time.monotonic() - entry.started() > 0.3)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ("True\n" if Path("/proc/self/stat").exists() else "False\n")


def test_a_shell_that_became_the_command_had_no_part_in_its_time(monkeypatch):
    much_later = time.monotonic() + 1e6
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    assert entry.started(much_later) == much_later - entry.LATEST


def test_solvers_are_started_before_a_long_file_is_read(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr("lbm.reasoning.solvers.aside.prepare", lambda: started.append(1))
    (tmp_path / "short.lbm").write_text("a")
    (tmp_path / "long.lbm").write_text("a\n" * 1000)
    for arguments in (
        ["best", str(tmp_path / "short.lbm")],
        ["best", str(tmp_path / "missing.lbm")],
        ["best", str(tmp_path / "long.lbm"), "--help"],
        ["compile", str(tmp_path / "long.lbm")],
        [],
    ):
        entry._prepare(arguments)
        assert not started
    entry._prepare(["best", "--seconds", "1", str(tmp_path / "long.lbm")])
    assert started


# --- no answer, for programs -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "answer"),
    [
        (["ask", "-", "a", "--json"], 1, False),
        (["best", "-", "--json"], 1, []),
        (["entails", "-", "a", "--json"], 1, False),
        (["log-partition", "-", "--json"], 1, False),
        (["log-probability", "-", "a=1", "--json"], 1, False),
        (["sample", "-", "-n", "2", "--json"], 1, False),
        (["count", "-", "--json", "--given", "b"], 2, None),
    ],
)
def test_no_is_an_object_too_and_bad_input_is_none(capsys, monkeypatch, arguments, status, answer):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n~a\n")))
    assert main(arguments) == status
    out = capsys.readouterr().out
    if status == 2:
        assert out == ""
    else:
        found = json.loads(out)
        assert found.get("answer", found.get("worlds")) == answer


@pytest.mark.parametrize("command", [["ask", "-", "a"], ["best", "-"], ["count", "-"]])
def test_no_answer_in_time_is_an_object_too(capsys, failing, command):
    failing(NoAnswer("too late"))
    assert main([*command, "--json"]) == 3
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["reason"] == "too late"
    assert found["answer"] is None
    assert err == "lbm: too late\n"


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break in another way there")
def test_a_process_whose_reader_goes_away_is_quiet(tmp_path):
    (tmp_path / "many.lbm").write_text("\n".join(f"a{i} -> b{i}" for i in range(20_000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "lbm", "compile", str(tmp_path / "many.lbm"), "--all"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=300) == 141
