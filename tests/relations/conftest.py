"""Relational problems in tests: small ones from texts, and Aleph where it is installed."""

import os
from collections.abc import Callable

import pytest

from lbm.errors import FileError
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.reader import read_clauses
from lbm.trials.learners.aleph import Aleph, find_aleph


@pytest.fixture(scope="session")
def problem_of() -> Callable[..., RelationalProblem]:
    """Return a function that makes a problem of four texts."""

    def make(background: str, positive: str, negative: str, modes: str) -> RelationalProblem:
        texts = {"bk.pl": background, "pos.pl": positive, "neg.pl": negative, "modes.pl": modes}
        return make_problem("small", *(read_clauses(text, source=name) for name, text in texts.items()))

    return make


@pytest.fixture(scope="session")
def aleph() -> Aleph:
    """Return where Aleph is; without it the test is skipped, with CI=true it fails."""
    try:
        return find_aleph()
    except FileError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
