"""How far a question walks through the package; a change that makes the way longer says so here."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

MOST = 18
"""Files of the package that `lbm ask` on four formulae enters; 30 before all parts shared one problem."""


def walked(*order):
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "walk.py", *order],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not ran.stderr
    _, *files, total = ran.stdout.splitlines()
    return ran.returncode, [line.split()[-1] for line in files], total


def test_ask_walks_through_no_more_files_than_before():
    _, files, total = walked("ask", "examples/nixon.lbm", "p", "--given", "n")
    assert len(files) <= MOST
    assert total.endswith(f"in {len(files)} files")
    assert {"views/entry.py", "views/commands/ask.py", "knowledge/parser.py"} <= set(files)


def test_imports_are_not_counted():
    _, files, _ = walked("--most", "1", "count", "examples/xor.lbm")
    assert len(files) == len(set(files))
    assert not any(name in files for name in ("errors.py", "__init__.py", "views/commands/train.py"))


def test_more_files_than_allowed_are_an_exit_status():
    order = ("count", "examples/xor.lbm")
    _, files, _ = walked(*order)
    assert walked("--most", str(len(files)), *order)[0] == 0
    assert walked("--most", str(len(files) - 1), *order)[0] == 1
