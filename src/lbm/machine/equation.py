"""The energy function in words, as the paper writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from lbm.errors import LimitExceeded
from lbm.knowledge.formula import quote

if TYPE_CHECKING:
    from lbm.machine.rbm import Machine

MAX_TERMS: Final = 1_000_000
"""Weights that an equation may write out."""

_LATEX: Final = str.maketrans(
    {sign: f"\\{sign}" for sign in "&%$#_{}"} | {"\\": r"\textbackslash{}", "~": r"\sim{}", "^": r"\hat{}"}
)


def write_equation(machine: Machine, *, latex: bool = False) -> str:
    """Return E(x, h) as text or LaTeX: one term per hidden unit, then visible biases."""
    if machine.weights.nnz > MAX_TERMS:
        raise LimitExceeded(
            f"this machine has {machine.weights.nnz} weights and an equation writes at most {MAX_TERMS} "
            "(limit MAX_TERMS): look at machine.units instead",
            MAX_TERMS=MAX_TERMS,
        )
    terms = [f"-{unit}({inside})" for unit, inside in _wells(machine, latex)]
    biases = [(-bias, name) for bias, name in zip(machine.visible_bias.tolist(), machine.atoms, strict=True)]
    visible = _sum([(bias, name) for bias, name in biases if bias], latex)
    text = "".join(terms).replace(")-", ") - ")
    if visible:
        text += (f" - {visible[1:]}" if visible[0] == "-" else f" + {visible}") if text else visible
    return f"E = {text or '0'}"


def _wells(machine: Machine, latex: bool) -> Iterator[tuple[str, str]]:
    """Yield the name of each hidden unit and its input s_j as text."""
    pointer, index, data = (
        part.tolist() for part in (machine.weights.indptr, machine.weights.indices, machine.weights.data)
    )
    for j, bias in enumerate(machine.hidden_bias.tolist()):
        column = range(pointer[j], pointer[j + 1])
        parts = [(data[k], machine.atoms[index[k]]) for k in column]
        unit = f"h_{{{j + 1}}}" if latex else f"h{j + 1}"
        yield unit, _sum([*parts, (bias, "")], latex)


def _sum(parts: Sequence[tuple[float, str]], latex: bool) -> str:
    """Return ``1000n + 1000r - 1500``."""
    text = ""
    for value, name in parts:
        if not value and (text or name):
            continue
        size = number(abs(value))
        if name:
            symbol = _symbol(name) if latex else quote(name)
            plain = name.isidentifier() or latex
            size = symbol if size == "1" else f"{size}{symbol}" if plain else f"{size} {symbol}"
        sign = "-" if value < 0 else "+"
        text += f" {sign} {size}" if text else f"{'-' if value < 0 else ''}{size}"
    return text


def number(value: float) -> str:
    """Return a number as short as it can be said: ``1500``, ``0.5``, ``2.5e+10``.

    >>> number(1500.0), number(0.1 + 0.2)
    ('1500', '0.3')
    """
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.12g}"


def _symbol(name: str) -> str:
    """Return an atom's name in LaTeX: ``x1`` as x_{1}, longer names upright."""
    if len(name) == 1 and name.isalpha():
        return name
    if name[0].isalpha() and name[0].isascii() and name[1:].isdecimal():
        return f"{name[0]}_{{{name[1:]}}}"
    return rf"\mathrm{{{name.translate(_LATEX)}}}"
