"""Decision diagrams: one manager for all of them, whatever happens to one."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from lbm.errors import TooManyCubes
from lbm.knowledge.formula import Formula, atom, disjunction
from lbm.knowledge.parser import parse
from lbm.logic import sdnf
from lbm.logic.sdnf import to_sdnf

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and /proc/self/status are Linux's")


def general(number: int, seed: int = 0) -> list[str]:
    """Return formulae that no clause says, over 50 atoms in every order."""
    rng = random.Random(seed)
    return ["x{} -> x{} & (x{} | x{})".format(*rng.sample(range(50), 4)) for _ in range(number)]


def crossed() -> Formula:
    """Return the OR of 32 pairs whose diagram is too large with all first atoms before all second ones."""
    return disjunction(atom(f"x{i}") & atom(f"x{i + 32}") for i in range(32))


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )


COMPILE = """
import resource, sys
from lbm.views.entry import main
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
status = main(["compile", sys.argv[1]])
with open("/proc/self/status") as lines:
    peak = next(line for line in lines if line.startswith("VmPeak"))
print("peak", int(peak.split()[1]) << 10)
sys.exit(status)
"""


@on_linux
def test_many_general_formulae_take_less_than_four_gibibytes_of_addresses(tmp_path) -> None:
    file = tmp_path / "general.lbm"
    file.write_text("".join(f"3: {formula}\n" for formula in general(300)))
    done = run(COMPILE, str(file), "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.split()[-1]) < 4 << 30
    done = run(COMPILE, str(file), str(3 << 30))
    assert (done.returncode, done.stderr) == (0, "")


@on_linux
def test_too_few_addresses_for_a_diagram_are_one_line_and_exit_2(tmp_path) -> None:
    file = tmp_path / "general.lbm"
    file.write_text("".join(f"3: {formula}\n" for formula in general(3)))
    done = run(COMPILE, str(file), str(1 << 30))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "GiB of addresses" in done.stderr
    assert "ulimit -v" in done.stderr


def test_threads_that_share_the_manager_get_the_same_cubes() -> None:
    formulae = [parse(text) for text in general(60)]
    alone = [str(to_sdnf(formula, method="diagram")) for formula in formulae]
    sdnf._shapes.clear()
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda formula: str(to_sdnf(formula, method="diagram")), formulae))
    assert together == alone


def test_a_diagram_that_was_too_large_leaves_no_trace() -> None:
    formula = parse("(a <-> b) | c & (d ^ e)")
    before = str(to_sdnf(formula, method="diagram"))
    for _ in range(3):
        sdnf._shapes.clear()
        with pytest.raises(TooManyCubes, match="MAX_NODES"):
            to_sdnf(crossed(), method="diagram", atoms=[f"x{i}" for i in range(64)])
        assert str(to_sdnf(formula, method="diagram")) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_makes_diagrams_too() -> None:
    done = run(
        """
import os, signal, warnings
warnings.simplefilter("ignore")
from lbm.knowledge.parser import parse
from lbm.logic.sdnf import to_sdnf
before = str(to_sdnf(parse("(a <-> b) | c & d"), method="diagram"))
child = os.fork()
if not child:
    signal.alarm(60)
    os._exit(0 if str(to_sdnf(parse("(p <-> b) | c & d | e"), method="diagram")) else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    assert (done.stdout.strip(), done.stderr) == ("0", "")
