"""How kernels are compiled: cached where that is possible, without Python's lock, arithmetic as written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import carray, types  # type: ignore[attr-defined]  # exported, but not by name
from numba.core import cgutils, event
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

__all__ = ["carray", "compiled", "inlined", "seconds_compiling", "stack"]

_njit: Any = numba.njit
_pointer: Any = types.CPointer
_place: Any = cgutils.alloca_once

_clock: Any = event.TimingListener()  # type: ignore[no-untyped-call]
event.register("numba:compile", _clock)  # type: ignore[no-untyped-call]


def seconds_compiling() -> float:
    """Return the time that this process has spent on compiling: no budget of an answer has to pay for it."""
    return float(_clock.duration) if _clock.done else 0.0


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call, or take it from numba's cache.

    Where neither the package's directory nor the user's can be written, every process compiles for itself.
    """
    return _compiled(function)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function that other kernels call: its body is put into theirs before anything else is done.

    Only then does the compiler see that its arrays do not overlap.
    """
    return _compiled(function, inline="always")


def _compiled(function: Callable[..., Any], **options: bool | str) -> Any:
    options |= {"nogil": True}
    try:
        return _njit(cache=True, error_model="numpy", **options)(function)
    except RuntimeError:  # no place for a cache
        return _njit(error_model="numpy", **options)(function)


@intrinsic(prefer_literal=True)
def stack(context: Any, like: Any, size: Any) -> Any:  # noqa: ARG001 - numba's signature
    """Return a pointer to ``size`` numbers on the stack, of the type that the array ``like`` holds.

    The compiler knows that nothing else points there: loops over lanes then need no checks for overlap,
    which takes a third off a sweep.
    """
    if not isinstance(size, types.IntegerLiteral):
        raise RequireLiteralValue("the size of a place on the stack is a literal number")
    kind, number = like.dtype, size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return _place(builder, context.get_data_type(kind), size=number)

    return _pointer(kind)(like, size), generate
