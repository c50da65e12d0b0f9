"""Passes run in NumPy until they are compiled: what is true of one is true of the other."""

import pytest

from lbm.reasoning.exact import passes, programs, tables


@pytest.fixture(scope="module", params=["compiled", "NumPy"])
def both_loops(request):
    """Run a module's tests twice: with compiled passes, and with those of NumPy."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            import numba  # noqa: F401 - a compiler that is not loaded is not used for small work
        else:
            for module in (passes, programs, tables):
                patch.setattr(module, "usable", lambda _: False)
        yield request.param
