"""Run the Python blocks of README.md and docs/*.md as tests.

Plain ``doctest`` would take a closing code fence for expected output, so Sybil reads the fences. A block with
``>>>`` prompts is checked against what it prints; one without is run. Blocks of one page share their names.
"""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["*.md"],
).pytest()
