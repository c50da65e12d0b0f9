"""Choose one version of every package that any extra needs, and write them to requirements.lock.

The versions are those pip chooses for the ranges in pyproject.toml, asked from an empty environment and
without installing anything. It runs on the oldest Python we support, where the choice is narrowest.
"""

import json
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)

# Held at one version rather than the newest: figures of trained machines are compared under one version only.
HELD = ("torch==2.13.0",)

# Libraries for graphics cards, which some builds of torch bring along: no computation of ours needs them.
LEFT_OUT = re.compile(r"nvidia-.*|cuda-.*|triton")

HEADER = """\
# One version of every package that any extra needs, on Python {python}: a constraints file for pip,
#     pip install -c requirements.lock -e '.[plots,dev]'
# Made from the ranges in pyproject.toml by tools/lock.py (make lock). Do not edit.
"""


def main() -> None:
    """Resolve, then replace requirements.lock in one step."""
    if sys.version_info[:2] != OLDEST:
        sys.exit(f"lock.py: run it with Python {'.'.join(map(str, OLDEST))}, not {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as directory:
        report = resolve(Path(directory))
    pins = {}
    for item in report["install"]:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        if name != "logical-boltzmann" and not LEFT_OUT.fullmatch(name):
            # 2.13.0, not 2.13.0+cpu: which build of a version is installed is the user's choice
            pins[name] = item["metadata"]["version"].partition("+")[0]
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    new = ROOT / "requirements.lock.new"
    new.write_text(HEADER.format(python=".".join(map(str, OLDEST))) + "".join(lines), encoding="utf-8")
    new.replace(ROOT / "requirements.lock")
    print(f"requirements.lock: {len(pins)} packages")


def resolve(directory: Path) -> dict[str, Any]:
    """Return pip's report on what it would install, seen from an empty environment."""
    venv.create(directory / "venv", with_pip=True)
    python = directory / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    held = directory / "held.txt"
    held.write_text("\n".join(HELD), encoding="utf-8")
    report = directory / "report.json"
    options = ["-qq", "--dry-run", "--prefer-binary", "-c", str(held), "--report", str(report)]
    subprocess.run([python, "-m", "pip", "install", *options, f"{ROOT}[all,bench,dev]"], check=True)
    found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
