"""Rows of bit-sliced chains where they are compiled: one vector of 512 bits, and what is done with it.

Loading this module teaches numba what the functions on rows in sliced.py become.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

from lbm.reasoning.compiling.compiled import BYTES, I32, prefetch
from lbm.reasoning.engine.sliced import WORDS, fetch, put, row, some, splat, spread


class _RowType(types.Type):
    """A row where it is compiled: one vector of 512 bits, which loops over words seldom become."""

    def __init__(self) -> None:
        super().__init__(name="Row")


_VECTOR: Final = ir.VectorType(ir.IntType(64), WORDS)
_WIDE: Final = ir.IntType(64 * WORDS)


@register_model(_RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


def _becomes(
    function: Callable[..., Any], kinds: tuple[Any, ...], result: Any, emit: Callable[..., Any]
) -> None:
    """Say what a function becomes where it is compiled: ``emit(context, builder, signature, values)``."""

    def typed(*given: Any) -> Any:
        return result if len(given) == len(kinds) and all(map(isinstance, given, kinds)) else None

    typed.pysig = inspect.signature(function)  # type: ignore[attr-defined]
    type_callable(function)(lambda context: typed)  # noqa: ARG005 - numba's signature, here and below
    lower_builtin(function, *kinds)(emit)  # type: ignore[no-untyped-call]


def _place(context: Any, builder: Any, signature: Any, values: Any, kind: Any) -> Any:
    """Return the address of a row."""
    number = context.cast(builder, values[1], signature.args[1], types.uint64)
    rows = context.make_array(signature.args[0])(context, builder, values[0])
    first = builder.mul(number, ir.Constant(number.type, WORDS))
    return builder.bitcast(builder.gep(rows.data, [first]), kind)


def _load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.load(_place(context, builder, signature, values, _VECTOR.as_pointer()), align=8)


def _store(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    builder.store(values[2], _place(context, builder, signature, values, _VECTOR.as_pointer()), align=8)
    return context.get_dummy_value()


def _prefetch(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    prefetch(builder, _place(context, builder, signature, values, BYTES), write=False)
    return context.get_dummy_value()


def _fill(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _filled(builder, context.cast(builder, values[0], signature.args[0], types.uint64))


def _fill_bits(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _filled(builder, builder.neg(context.cast(builder, values[0], signature.args[0], types.uint64)))


def _filled(builder: Any, word: Any) -> Any:
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), word, ir.Constant(I32, 0))
    return builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(I32, WORDS), [0] * WORDS))


def _test(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
    return builder.icmp_unsigned("!=", builder.bitcast(values[0], _WIDE), ir.Constant(_WIDE, 0))


def _instruction(name: str) -> Callable[..., Any]:
    return lambda context, builder, signature, values: getattr(builder, name)(*values)  # noqa: ARG005


_ROW: Final = _RowType()
_becomes(row, (types.Array, types.Integer), _ROW, _load)
_becomes(put, (types.Array, types.Integer, _RowType), types.none, _store)
_becomes(fetch, (types.Array, types.Integer), types.none, _prefetch)
_becomes(splat, (types.Integer,), _ROW, _fill)
_becomes(spread, (types.Integer,), _ROW, _fill_bits)
_becomes(some, (_RowType,), types.boolean, _test)
_becomes(operator.and_, (_RowType, _RowType), _ROW, _instruction("and_"))
_becomes(operator.or_, (_RowType, _RowType), _ROW, _instruction("or_"))
_becomes(operator.xor, (_RowType, _RowType), _ROW, _instruction("xor"))
_becomes(operator.mul, (_RowType, _RowType), _ROW, _instruction("mul"))
_becomes(operator.lshift, (_RowType, _RowType), _ROW, _instruction("shl"))
_becomes(operator.rshift, (_RowType, _RowType), _ROW, _instruction("lshr"))
_becomes(operator.invert, (_RowType,), _ROW, _instruction("not_"))
