"""How tests run: how many examples Hypothesis draws, and where the larger data sets are."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase, ReadOnlyDatabase

from lbm.reasoning.compiling.ready import compile_here

# A process started in the background may be told to ignore interrupts; tests send themselves some.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests of kernels are about kernels: what is not in numba's cache is compiled when it is called.
compile_here()

FOUND = Path(__file__).parent / "found"
"""Examples on which a test once failed: each run tries them first, `make fuzz` adds to them."""

# No deadline and no check for slowness: on a shared machine both measure the neighbours.
_COMMON = {"deadline": None, "print_blob": True, "suppress_health_check": [HealthCheck.too_slow]}
# The seed that pyproject.toml gives Hypothesis makes these examples the same on every machine and day.
settings.register_profile(
    "fixed", max_examples=22, database=ReadOnlyDatabase(DirectoryBasedExampleDatabase(FOUND)), **_COMMON
)
settings.register_profile("quick", settings.get_profile("fixed"), max_examples=20)
# By name, once before a release: hours.
settings.register_profile("deep", settings.get_profile("fixed"), max_examples=1000)
# For `make fuzz`, which gives another seed each time: failures are stored.
settings.register_profile("fuzz", max_examples=200, database=DirectoryBasedExampleDatabase(FOUND), **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], Path]:
    """Return the directory of a data set by name, under LBM_DATA.

    Where it is missing the test is skipped; with CI=true it fails, so that no run that counts skips it.
    """
    return lambda name: _found("LBM_DATA", f"data set {name!r}", name)


class CountedClock:
    """A clock that goes on by ``step`` seconds whenever it is looked at; tests may set ``time``."""

    def __init__(self, step: float = 0.0) -> None:
        self.time, self.step, self.looks = 1000.0, step, 0

    def __call__(self) -> float:
        self.time += self.step
        self.looks += 1
        return self.time


@pytest.fixture
def counted_clock(monkeypatch: pytest.MonkeyPatch) -> CountedClock:
    """Replace the one clock of all budgets by one that is counted: no test of a budget waits."""
    clock = CountedClock()
    monkeypatch.setattr("lbm.reasoning.budget.now", clock)
    return clock


@pytest.fixture(scope="session")
def instances() -> Path:
    """Return the directory of public problems with known answers, LBM_INSTANCES; missing, as for dataset."""
    return _found("LBM_INSTANCES", "instances", ".")


def _found(variable: str, what: str, name: str) -> Path:
    root = os.environ.get(variable)
    if root and (place := Path(root) / name).is_dir():
        return place
    missing = f"no {what}: {variable} is {root!r}, expected a directory that holds it"
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)
