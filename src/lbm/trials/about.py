"""What a run says of itself: machine, versions, command and date."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = (
    "logical-boltzmann",
    "numpy",
    "scipy",
    "numba",
    "python-sat",
    "joblib",
    "scikit-learn",
    "torch",
    "pandas",
    "matplotlib",
    "python-rdm",  # which holds Aleph
)


def about_run(command: str, *, quick: bool) -> dict[str, Any]:
    """Return what is known of this run, as plain data."""
    return {
        "command": command,
        "quick": quick,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": machine(),
        "python": platform.python_version(),
        "versions": versions(),
    }


def machine() -> str:
    """Return processor, cores and system in words."""
    cores = os.cpu_count() or 1
    name = _processor() or platform.processor() or platform.machine()
    return f"{name}, {cores} core{'' if cores == 1 else 's'}, {platform.system()}"


def _processor() -> str:
    """Return the name of the processor where Linux tells it."""
    if sys.platform != "linux":
        return ""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def versions() -> dict[str, str]:
    """Return the versions of what is installed of PACKAGES, and of the Prolog that Aleph runs on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if prolog := _prolog():
        found["SWI-Prolog"] = prolog
    return found


def _prolog() -> str:
    """Return the version of SWI-Prolog, if it is installed."""
    program = shutil.which("swipl")
    if program is None:
        return ""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    words = said.stdout.split()
    return words[2] if len(words) > 2 else ""
