"""Run the Python blocks of README.md and docs/*.md as tests, and all tests in another order where asked to.

Plain ``doctest`` would take a closing code fence for expected output, so Sybil reads the fences. A block with
``>>>`` prompts is checked against what it prints; one without is run. Blocks of one page share their names.
"""

from __future__ import annotations

import random
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["*.md"],
).pytest()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--shuffle SEED``."""
    parser.addoption("--shuffle", type=int, help="run tests in an order that depends on this number")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Shuffle tests inside their files, and the files; blocks of a page share names and stay in order."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    rng = random.Random(seed)
    files: dict[object, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    for path, some in files.items():
        if not str(path).endswith(".md"):
            rng.shuffle(some)
    order = list(files)
    rng.shuffle(order)
    items[:] = [item for path in order for item in files[path]]
