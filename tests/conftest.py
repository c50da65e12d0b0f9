"""How tests run: how many examples Hypothesis draws, and where the larger data sets are."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A process started in the background may be told to ignore interrupts; tests send themselves some.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline and no check for slowness: on a shared machine both measure the neighbours.
_COMMON = {
    "deadline": None,
    "derandomize": os.environ.get("CI") == "true",  # a red run there must be one that anybody can repeat
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("ci", max_examples=22, **_COMMON)
settings.register_profile("quick", max_examples=20, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="session")
def dataset() -> Callable[[str], Path]:
    """Return the directory of a data set by name, under LBM_DATA.

    Where it is missing the test is skipped; with CI=true it fails, so that no run that counts skips it.
    """

    def find(name: str) -> Path:
        root = os.environ.get("LBM_DATA")
        if root and (place := Path(root) / name).is_dir():
            return place
        missing = f"no data set {name!r}: LBM_DATA is {root!r}, expected a directory that holds it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)

    return find
