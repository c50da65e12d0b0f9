"""Compiling all kernels, piece after piece: by calling them on problems as small as can be.

``python -m lbm.reasoning.engine.warming SECONDS`` is the process beside that ready.py starts: it is nice to
others, and ends SECONDS after whoever holds the other end of its standard input.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from typing import Any, Final

import numpy as np

from lbm.reasoning.compiling import ready

_RULES: Final = ("heat bath", "metropolis")
_WEIGHTS: Final = {"int16": (1.0, 2.0), "int32": (30_000.0, 40_001.0), "float64": (0.1, 0.25)}
_WAIT: Final = 0.1  # seconds between two looks at what another process compiles


def warm(pieces: tuple[str, ...] | None = None) -> Iterator[str]:
    """Compile pieces that are not in the cache yet, by default all, and yield the name of each.

    Where another process is at it, its pieces are waited for.
    """
    where = ready.directory()
    waiting = list(pieces or ready.PIECES)
    while waiting:
        with ready.locked(where) if where is not None else nullcontext(True) as mine:
            done = ready.done()
            yield from (piece for piece in waiting if piece in done)
            waiting = [piece for piece in waiting if piece not in done]
            if mine:
                ready.compile_here()
                for piece in waiting:
                    compile_piece(piece)
                    ready.mark(piece)
                    yield piece
                return
        if waiting:
            time.sleep(_WAIT)


def compile_piece(piece: str) -> None:
    """Call every kernel of a piece with the types that questions have."""
    name, *kinds = piece.split()
    _CALLS[name](*kinds)


# --- small problems --------------------------------------------------------------------------------------


def _lanes(weights: str, counts: str) -> None:
    from lbm.reasoning.engine.groups import groups_of
    from lbm.reasoning.engine.lanes import advance, fields, jump, random_states, start, weights_of
    from lbm.reasoning.engine.network import network_of_clauses

    size = 3 if counts == "uint8" else 255
    literals = np.concatenate([np.arange(1, size + 1), [-1, 2, 1, -2]]).astype(np.int32)
    starts = np.array([0, size, size + 2, size + 4])
    soft = np.array([*_WEIGHTS[weights], _WEIGHTS[weights][0] / 3 if weights == "float64" else 0.0])
    network = network_of_clauses(size, literals, starts, soft, np.zeros(3))
    made = weights_of(network, 1.0)
    assert (str(made.numbers.dtype), str(network.wires.low.dtype)) == (weights, counts)
    lanes = start(network, made, random_states(size, 0), seed=0, watch=True)
    for rule in _RULES:
        advance(lanes, [0.0, 0.5], rule=rule)
        advance(lanes, np.zeros((1, 64)), rule=rule)
    fields(lanes, np.arange(2, dtype=np.int32))
    jump(lanes, *groups_of(network), 0.5)


def _problem() -> Any:
    from lbm.knowledge.clauses import Clauses

    rows = [[1, 2, 3], [-1, 2, -4], [3, 4, 5], [-2, -3, -5], [1, 2], [-1, 4], [6], [2, 3, 4, 5], [3, 4, 5]]
    return Clauses.of(rows, [3, 2, 0, 5, 0, 0, 0, 0, 4], variables=6)


def _presolve() -> None:
    from lbm.reasoning.engine.presolve import presolve

    presolve(_problem(), pure=True)
    presolve(_problem(), pure=False, fixed={2: True})


def _walks() -> None:
    from lbm.reasoning.engine.walks import focused, ground_of, walk

    ground = ground_of(_problem())
    assert ground is not None
    column = np.zeros((6, 64), np.uint8)[:, 0]
    for start in (column, column.copy()):  # of states, as chains leave them, and states by themselves
        walk(ground, start, idle=5, seed=0)
        focused(ground, start, flips=5, seed=0)


def _valued() -> None:
    from lbm.reasoning.engine.alternatives import Count
    from lbm.reasoning.engine.duals import ascend, tables_of
    from lbm.reasoning.engine.gains import heavy_of, move, state_of, weigh
    from lbm.reasoning.engine.kicks import kicks, tabu
    from lbm.reasoning.engine.values import values_of

    found = values_of(6, _problem(), [Count((0, 2, 9), 1, 2, 0)])
    assert found is not None
    heavy = heavy_of(found.space)
    state = state_of(found.space, found.space.first[:-1], heavy=heavy, seed=0, number=0)
    kicks(state, length=2, work=100)
    weigh(state, 1)
    tabu(state, step=1, calm=2, idle=3, work=100)
    move(state, 0, int(found.space.first[0]))
    tables = tables_of(found.space, 100)
    assert tables is not None
    ascend(tables, 1)


def _sliced() -> None:
    from lbm.reasoning.engine.lanes import weights_of
    from lbm.reasoning.engine.network import network_of_clauses
    from lbm.reasoning.engine.sliced import advance_sliced, kept, random_rows, sliced_of

    literals, starts = np.array([1, 2, 3, -1, 2], np.int32), np.array([0, 3, 5])
    network = network_of_clauses(3, literals, starts, np.array([1.0, 2.0]), np.zeros(2))
    sliced = sliced_of(network, weights_of(network, 1.0))
    assert sliced is not None
    rows = random_rows(3, seed=0)
    for stop in (False, True):
        advance_sliced(sliced, rows, np.ones(2), seed=0, stop=stop)
    kept(sliced, rows)


def _energy() -> None:
    from lbm.knowledge.theory import Theory
    from lbm.machine.translate import translate
    from lbm.reasoning.engine.energy import advance_energy, energies_of, start_energy

    network = energies_of(translate(Theory.parse("1: a & b -> c\n2: c <-> (a | b)")))
    lanes = start_energy(network, np.zeros((network.atoms, 64)), seed=0)
    for rule in _RULES:
        advance_energy(lanes, [1.0], rule=rule)


def _exact() -> None:
    from lbm.knowledge.circuits import Builder
    from lbm.reasoning.exact.programs import circuit_sums, table_program

    sizes, scopes = (2, 2), [(0, 1), (1,)]
    program = table_program(sizes, scopes, [np.ones((2, 2), bool), np.ones(2, bool)])
    build = Builder(1)
    circuit = build.circuit(build.sum([build.literal(0, True), build.literal(0, False)]))
    for down in (False, True):
        program.swept(np.ones(len(program.value)), np.zeros(2), {0: np.ones((2, 2))}, 2, down=down)
        circuit_sums(circuit, np.ones((1, 2, 2)), down=down)


def _sums() -> None:
    from lbm.knowledge.theory import Theory
    from lbm.reasoning.exact.sums import layered

    form = layered(Theory.parse("1: a -> b\n2: b"), [("a",), ("b",)], 1)
    for down in (False, True):
        form.program.run(np.zeros((2, 1)), np.zeros(len(form.masks)), down=down)
    form.program.run(
        np.full((2, 1), np.inf), np.zeros(len(form.masks)), np.zeros((2, 2), np.int64), down=True
    )
    form.program.worlds(np.zeros((2, 1)), np.zeros(len(form.masks)))


def _dense() -> None:
    from lbm.reasoning.engine.dense import gibbs

    gibbs(np.ones((3, 2)), np.zeros(3), np.zeros(2), np.zeros((3, 64)), 1, np.random.default_rng(0))


def _relations() -> None:
    # By name, since that room comes after this one.
    walk, orders = (importlib.import_module(f"lbm.relations.evidence.{name}") for name in ("walk", "orders"))
    one, small = np.zeros(1, np.int64), np.zeros((1, 1), np.int32)
    wide, starts, signs = small.astype(np.int64), np.array([0, 1]), np.zeros(1, np.int8)
    x = np.ones((1, 1), np.int8)
    walk.prepare(one, starts, one, x, small, small.copy(), wide)
    uniform = np.ones((1, 1))
    walk.sweep(one, starts, one, starts, one, signs, x, small, small.copy(), wide, one, uniform, 1.0)
    orders.put_back(wide, np.zeros((1, 1), bool), uniform, one, uniform)


_CALLS: Final[dict[str, Callable[..., None]]] = {
    "lanes": _lanes,
    "presolve": _presolve,
    "walks": _walks,
    "valued": _valued,
    "sliced": _sliced,
    "energy": _energy,
    "exact": _exact,
    "sums": _sums,
    "dense": _dense,
    "relations": _relations,
}


# --- the process beside ------------------------------------------------------------------------------------


def main() -> None:
    """Compile everything; end in time when the process that asked has ended."""
    threading.Thread(target=_end_after_parent, args=(float(sys.argv[1]),), daemon=True).start()
    with suppress(AttributeError, OSError):  # not on every system
        os.nice(10)
    where = ready.directory()
    if where is None:
        return
    with ready.locked(where) as mine:
        if not mine:
            return
        ready.compile_here()
        for piece in ready.PIECES:
            if piece not in ready.done():
                with suppress(Exception):  # nobody hears it; whoever needs the piece will
                    compile_piece(piece)
                    ready.mark(piece)


def _end_after_parent(linger: float) -> None:
    sys.stdin.buffer.read()
    time.sleep(linger)
    os._exit(0)


if __name__ == "__main__":
    main()
