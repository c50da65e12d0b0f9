"""How kernels are compiled: cached where that is possible, without Python's lock, arithmetic as written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, types  # type: ignore[attr-defined]  # exported, but not by name
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic

__all__ = ["BYTES", "I32", "bring", "carray", "compiled", "inlined", "prefetch", "same_bits", "stack"]

_njit: Any = numba.njit
_pointer: Any = types.CPointer
_place: Any = cgutils.alloca_once

I32: Any = ir.IntType(32)
BYTES: Any = ir.IntType(8).as_pointer()


def compiled(function: Callable[..., Any], *, inline: bool = False) -> Any:
    """Compile a function on its first call, or take it from numba's cache.

    Where neither the package's directory nor the user's can be written, every process compiles for itself.

    With ``inline`` it is one that other kernels call: its body is put into theirs before anything else is
    done. Only then does the compiler see that its arrays do not overlap.
    """
    options = {"nogil": True, "error_model": "numpy", "inline": "always" if inline else "never"}
    try:
        return _njit(cache=True, **options)(function)
    except RuntimeError:  # no place for a cache
        return _njit(**options)(function)


inlined = partial(compiled, inline=True)
"""Compile a function that other kernels call."""


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


@intrinsic
def bring(context: Any, array: Any, number: Any) -> Any:  # noqa: ARG001 - numba's signature
    """Ask for row ``number`` of an array, or its first 64 bytes, to be brought near; nothing else happens."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_array(signature.args[0])(context, builder, arguments[0])
        index = context.cast(builder, arguments[1], signature.args[1], types.int64)
        offset = builder.mul(index, builder.extract_value(rows.strides, 0))
        prefetch(builder, builder.gep(builder.bitcast(rows.data, BYTES), [offset]), write=True)
        return context.get_dummy_value()

    return types.none(array, number), generate


def prefetch(builder: Any, place: Any, *, write: bool) -> None:
    """Ask for the 64 bytes at a place to be brought near: data, to be read or written soon."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES, I32, I32, I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [BYTES], kind)
    builder.call(function, [place, *(ir.Constant(I32, number) for number in (int(write), 3, 1))])


def same_bits(given: Any, returned: Any) -> Any:
    """Return a function that takes a number of one type for a number of another, which has the same bits."""

    @intrinsic
    def cast(context: Any, number: Any) -> Any:  # noqa: ARG001 - numba's signature
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            return builder.bitcast(arguments[0], context.get_value_type(returned))

        return returned(given), generate

    return cast
