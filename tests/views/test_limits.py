"""Commands end in time, within their memory, and with an answer, on problems of real sizes."""

import random
import subprocess
import sys
import time
from contextlib import suppress
from contextvars import copy_context

import pytest

from lbm.errors import NoAnswer, TooManyWorlds
from lbm.reasoning.exact.questions import Exact
from lbm.reasoning.search import satisfy
from lbm.views import entry
from lbm.views.entry import main

QUESTIONS = {
    "check": [],
    "ask": ["x1"],
    "entails": ["x1"],
    "best": [],
    "models": ["--limit", "300"],
    "count": [],
    "sample": ["-n", "5"],
    "log-partition": [],
    "log-probability": ["*"],
}
"""Commands that answer a question about a theory, and what they want to know; *: a world."""


@pytest.fixture
def write(tmp_path):
    """Write a file and return its name."""

    def make(name, content):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return str(path)

    return make


def clauses(atoms, number, seed=0):
    """Return random clauses of three literals."""
    rng = random.Random(seed)
    rows = [rng.sample(range(1, atoms + 1), 3) for _ in range(number)]
    return "\n".join(" | ".join(rng.choice(["", "~"]) + f"x{i}" for i in row) for row in rows) + "\n"


def mixed(atoms, number, seed=0):
    """Return formulae that are no clauses, hard and soft, which the all-false world keeps."""
    rng = random.Random(seed)
    rows = []
    for i in range(number):
        a, b, c, d = (f"x{j}" for j in rng.sample(range(1, atoms + 1), 4))
        rows.append(f"{'' if i % 3 else f'{rng.randint(1, 9)}: '}({a} & {b}) | ({c} <-> {d})")
    return "\n".join(rows) + "\n"


def asked(command, file, atoms):
    world = " ".join(f"x{i}=0" for i in range(1, atoms + 1))
    return [command, file, *(world if word == "*" else word for word in QUESTIONS[command])]


# --- time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("atoms", [10, 65, 129])
@pytest.mark.parametrize("command", QUESTIONS)
def test_every_question_has_seconds_and_keeps_them(command, atoms, write, counted_clock, capsys):
    file = write("mixed.lbm", mixed(atoms, 2 * atoms))
    counted_clock.step = 0.01
    begun = counted_clock.time
    assert main([*asked(command, file, atoms), "--seconds", "4"]) in (0, 1, 3)
    assert counted_clock.time - begun <= 4 + 0.5


@pytest.mark.parametrize(("late", "left"), [(3, 1), (100, 0.2)])
@pytest.mark.parametrize("command", QUESTIONS)
def test_seconds_count_from_the_start_of_the_process(command, late, left, write, counted_clock, capsys):
    """What came before the question is part of it; past the time one attempt is made."""
    file = write("mixed.lbm", mixed(65, 130))
    counted_clock.step = 0.01
    begun = counted_clock.time
    arguments = [*asked(command, file, 65), "--seconds", "4"]
    with suppress(NoAnswer, TooManyWorlds):  # status 3
        assert copy_context().run(entry._run, arguments, begun - late) in (0, 1, 3)
    assert counted_clock.time - begun <= left + 0.5
    if command == "best":
        assert "satisfied" in capsys.readouterr().out


class Endless:
    """A SAT solver that goes on until it is interrupted."""

    def __init__(self, **_):
        self.stop = False

    def add_clause(self, _):
        pass

    def solve_limited(self, *_, **__):
        while not self.stop:
            time.sleep(0.001)

    def interrupt(self):
        self.stop = True

    def delete(self):
        pass


def test_check_finds_a_world_by_walks_where_the_solver_finds_none(write, monkeypatch, capsys):
    monkeypatch.setattr(satisfy, "ALONE", 0.0)
    monkeypatch.setattr("pysat.solvers.Solver", Endless)
    assert main(["check", write("sat.lbm", clauses(250, 750)), "--seconds", "60"]) == 0
    assert capsys.readouterr().out.endswith("satisfiable\n")


# --- answers -----------------------------------------------------------------------------------------


def test_worlds_of_a_hundred_atoms_are_drawn_with_no_more_said_than_their_number(write, capsys):
    """Which is past exact methods."""
    assert main(["sample", write("sat.lbm", clauses(100, 200)), "-n", "3"]) in (0, 3)
    out, err = capsys.readouterr()
    assert [len(line.split()) for line in out.splitlines()] == [100] * 3
    assert "states of chains" in err


def pairs(number):
    return " | ".join(f"(x{2 * i} & x{2 * i + 1})" for i in range(number))


def names(number):
    return ", ".join(f"x{i}" for i in range(number))


@pytest.mark.parametrize(
    ("text", "atoms"),
    [
        (pairs(200), 400),
        (f"exactly(100, {names(200)})", 200),
        (f"atoms {names(100_000)}\nx0 | x1", 100_000),
    ],
    ids=["an OR of 200 pairs", "half of 200 atoms", "100,000 free atoms"],
)
def test_two_models_are_found_where_to_count_them_all_takes_long(text, atoms, write, monkeypatch, capsys):
    for name in ("models", "count"):
        monkeypatch.setattr(Exact, name, lambda *_, **__: pytest.fail("all are counted"))
    assert main(["models", write("many.lbm", text), "--limit", "2", "--seconds", "60"]) == 0
    *worlds, last = capsys.readouterr().out.splitlines()
    assert [len(world.split()) for world in worlds] == [atoms] * 2
    assert last == "2 models, and there are more"


# --- memory ------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="Linux keeps this limit")
def test_twenty_thousand_equivalences_in_a_line_are_solved_in_a_gibibyte(write):
    rng = random.Random(0)
    file = write("deep.lbm", "3: " + " <-> ".join(f"x{rng.randrange(20)}" for _ in range(20_001)))

    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    done = subprocess.run(
        [sys.executable, "-m", "lbm", "best", file, "--seconds", "60"],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "optimal" in done.stdout
