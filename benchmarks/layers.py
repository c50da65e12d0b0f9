"""Layers on deep networks: circuits beside KLay, a training step beside all peers, addition from formulae.

One thread. Times are milliseconds of wall clock, since that is what a training step waits for: the least and
the median of many steps, and the load of the machine is kept with them.

- *Circuits* that others compiled, from LBM_DATA; without them nothing is measured there. 128 rows of logits,
  float64; a step is `-log P(circuit)`, summed, and its gradient by the logits. Ours is `lbm.nn.LogicLayer`;
  KLay gets log-probabilities of both literals by torch's logsigmoid, which is part of its step as it is of
  ours, without its compiler and with it (25 seconds for its first call, or it is not measured). They take
  turns of ten steps.
- *A training step* of addition of two digits, the same LeNet, images and sums on all sides, 32 rows: all of
  it, and from kept logits on where a side can do that. KLay gets a circuit with a root for each sum, pylon
  the semantic loss of its own brute-force solver, LTNtorch its own example, DeepProbLog its exact engine with
  its cache. They take turns; the first losses of exact sides must agree. Peers that are not installed (extra
  `bench-neural`), or do not run, are named.
- *Addition* of two numbers of N digits as people write it (digits as exactly one of ten atoms, carries as
  atoms), read from our text format: parsing and compiling in CPU seconds, then a batch of 32: the logits of
  all digits of both numbers in, -log P(sum) out, and back.
"""

from __future__ import annotations

import hashlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from measuring.problems import column_addition, digit_atoms
from measuring.results import ROOT, Row, Run, Section, Table, times

TITLE = "Layers on deep networks"
CIRCUITS = ("road_r", "sudoku_4", "grid_4", "seq_fun")
DIGITS = (1, 2, 4, 15, 100)
BATCH, ROWS = 128, 32
TURN = 10  # steps of a side until the other side has its turn, as steps follow each other in training
COMPILING = 25.0  # seconds for KLay's compiler


def steps(sides: dict[str, Callable[[], Any]], again: int) -> dict[str, dict[str, float]]:
    """Return the least and the median milliseconds of a step of each side; they take turns of ten steps."""
    took: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(-(-again // TURN)):
        for side, step in sides.items():
            for _ in range(TURN):
                begun = time.perf_counter()
                step()
                took[side].append(1e3 * (time.perf_counter() - begun))
    return {side: {"least": min(each), "median": median(each)} for side, each in took.items()}


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in what takes longer; only where there are signals of clocks."""

    def late(*_: object) -> None:
        raise TimeoutError

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def circuit(name: str, again: int) -> Row:
    """Measure a circuit beside KLay."""
    import torch

    import lbm
    import lbm.nn

    path = Path(os.environ["LBM_DATA"]) / "structured" / f"{name}.sdd"
    theory = lbm.Theory.load(path)
    begun = time.process_time()
    layer = lbm.nn.LogicLayer(theory, inputs=theory.atoms)
    compiling = time.process_time() - begun
    torch.manual_seed(0)
    logits = torch.randn(BATCH, len(theory.atoms), dtype=torch.float64).requires_grad_()
    said: dict[str, Any] = {}

    def ours() -> None:
        value = layer(logits).log_kept
        logits.grad = None
        value.sum().backward()
        said["lbm"] = value.detach(), logits.grad

    sides = {"lbm": ours}
    found: Row = {"work": layer.plan.work, "compiling": compiling, "load": os.getloadavg()[0], "first": {}}
    if find_spec("klay"):
        from klay import Circuit  # type: ignore[import-untyped,unused-ignore]

        made = Circuit()
        made.add_sdd_from_file(str(path))
        for side, compiled in (("KLay", False), ("KLay compiled", True)):
            module = made.to_torch_module(semiring="log", compile=compiled)

            def theirs(module: Any = module, side: str = side) -> None:
                yes, no = torch.nn.functional.logsigmoid(logits), torch.nn.functional.logsigmoid(-logits)
                value = module(yes, no).reshape(-1)
                logits.grad = None
                value.sum().backward()
                said[side] = value.detach(), logits.grad

            begun = time.perf_counter()
            try:
                with limited(COMPILING):
                    theirs()
            except (RuntimeError, TimeoutError) as error:  # its compiler needs one for C++, or longer
                found["first"][side] = type(error).__name__
                continue
            found["first"][side] = time.perf_counter() - begun
            sides[side] = theirs
    for step in sides.values():
        step()
    found["sides"] = steps(sides, again)
    values = list(said.values())
    found["apart"] = max(
        (float((one - values[0][i]).abs().max()) for value in values[1:] for i, one in enumerate(value)),
        default=math.nan,
    )
    return found


def addition(digits: int, again: int) -> Row:
    """Measure addition of numbers of so many digits."""
    import torch

    import lbm
    import lbm.nn

    text = column_addition(digits, f"n{again}_")
    mark = f"n{again}_"
    begun = time.process_time()
    theory = lbm.Theory.parse(text)
    read = time.process_time() - begun
    inputs = [tuple(digit_atoms(name, place, mark)) for name in "xy" for place in range(digits)]
    queries = [tuple(digit_atoms("s", place, mark)) for place in range(digits)]
    begun = time.process_time()
    layer = lbm.nn.LogicLayer(theory, inputs=inputs, queries=[*queries, f"{mark}carry{digits}"], seconds=None)
    compiling = time.process_time() - begun
    torch.manual_seed(digits)
    logits = torch.randn(ROWS, 20 * digits).requires_grad_()
    values = torch.randint(10, (2, ROWS, digits)).tolist()
    target = []
    for one, other in zip(*values, strict=True):
        number = sum((a + b) * 10**i for i, (a, b) in enumerate(zip(one, other, strict=True)))
        target.append([*(number // 10**i % 10 for i in range(digits)), int(number >= 10**digits)])
    asked = torch.tensor(target)

    def step() -> None:
        logits.grad = None
        (-layer(logits).log_prob(asked).mean()).backward()

    step()
    return {
        "read": read,
        "compiling": compiling,
        "work": layer.plan.work,
        "load": os.getloadavg()[0],
        "sides": steps({"lbm": step}, again),
    }


def training_step(again: int) -> Row:
    """Measure a training step of addition by all sides that run here."""
    import warnings

    from measuring import neural

    whole: dict[str, Callable[[], Any]] = {}
    layers: dict[str, Callable[[], Any]] = {}
    found: Row = {"load": os.getloadavg()[0], "first": {}, "missing": {}, "sides": {}}
    for side, make in neural.SIDES.items():
        try:
            with limited(COMPILING), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                step, layer = make(ROWS)
                found["first"][side] = step()
                if layer is not None:
                    layer()
                    layers[side] = layer
        except (ImportError, RuntimeError, TypeError, TimeoutError) as error:
            found["missing"][side] = type(error).__name__
            continue
        whole[side] = step
    slow = {side: whole.pop(side) for side in ("DeepProbLog",) if side in whole}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found["sides"] = steps(whole, again) | steps(slow, TURN)
    found["layers"] = steps(layers, again)
    return found


def shown(value: float) -> str:
    return f"{value:.2f} ms" if value < 9.95 else f"{value:.0f} ms"


def section(rows: list[Row]) -> Section:
    lines, wanted = [], []
    for row in rows:
        what, name = row["key"]
        if what != "circuits":
            continue
        sides = {side: each["least"] for side, each in row["sides"].items()}
        peers = [value for side, value in sides.items() if side != "lbm"]
        better = min(peers) / sides["lbm"] if peers else None
        cells = [
            f"{shown(row['sides'][side]['least'])} ({shown(row['sides'][side]['median'])})"
            if side in sides
            else "not measured"
            for side in ("lbm", "KLay", "KLay compiled")
        ]
        ratio = "" if better is None else times(better)
        lines.append([name, f"{row['work']:,}", *cells, ratio, f"{row['apart']:.0e}", f"{row['load']:.1f}"])
        if better is not None:
            wanted.append((f"{name}: 7 times KLay's better mode ({times(better)})", better >= 7))
            wanted.append((f"{name}: within 1e-4 of KLay", row["apart"] <= 1e-4))
    columns = ["circuit", "work", "lbm", "KLay", "KLay compiled", "KLay's better / lbm", "apart", "load"]
    tables = [Table(f"Circuits, {BATCH} rows, forward and backward: least (median)", columns, lines)]
    table, more = step_table(rows)
    tables += table
    wanted += more
    lines, least = [], {}
    for row in rows:
        what, digits = row["key"]
        if what == "addition":
            each = row["sides"]["lbm"]
            least[digits] = each["least"]
            lines.append(
                [
                    str(digits),
                    f"{row['work']:,}",
                    f"{row['read']:.2f} s",
                    f"{row['compiling']:.2f} s",
                    f"{shown(each['least'])} ({shown(each['median'])})",
                    f"{row['load']:.1f}",
                ]
            )
            if digits == 15:
                wanted.append(("15 digits: compiled in 2 s", row["compiling"] <= 2.0))
    columns = ["digits", "work", "reading", "compiling", "forward and backward", "load"]
    tables.append(Table(f"Addition, {ROWS} rows: least (median)", columns, lines))
    if 1 in least:
        wanted.append(("1 digit: at most 1 ms", least[1] <= 1.0))
    if 15 in least:
        wanted.append(("15 digits: at most 15 ms", least[15] <= 15.0))
        if 1 in least:
            wanted.append(("15 digits: at most 20 times 1 digit", least[15] <= 20 * least[1]))
    return Section(tables, wanted)


def step_table(rows: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    """Return the table of a training step, and what was wanted of it."""
    from measuring.neural import EXACT, SIDES

    found: list[Table] = []
    wanted: list[tuple[str, bool]] = []
    for row in rows:
        if row["key"][0] != "step":
            continue
        sides = row["sides"]
        lines = []
        for side in SIDES:
            if side not in sides:
                lines.append([side, f"not measured ({row['missing'].get(side, 'missing')})", "", "", ""])
                continue
            each, layer = sides[side], row["layers"].get(side)
            ratio = "" if side == "lbm" else times(each["least"] / sides["lbm"]["least"])
            part = "" if layer is None else f"{shown(layer['least'])} ({shown(layer['median'])})"
            lines.append(
                [
                    side,
                    f"{shown(each['least'])} ({shown(each['median'])})",
                    part,
                    ratio,
                    f"{row['first'][side]:.6f}",
                ]
            )
        columns = ["side", "whole step", "from logits on", "/ lbm", "first loss"]
        title = f"A training step of addition, {ROWS} rows: least (median); load {row['load']:.1f}"
        found.append(Table(title, columns, lines))
        own = sides["lbm"]["least"]
        wanted.append(("a step: the layer at most 1 ms", row["layers"]["lbm"]["least"] <= 1.0))
        klay = [sides[side]["least"] for side in ("KLay", "KLay compiled") if side in sides]
        if klay:
            wanted.append((f"a step: no slower than KLay's ({times(min(klay) / own)})", own <= min(klay)))
        for side, factor in (("LTNtorch", 5), ("DeepProbLog", 100)):
            if side in sides:
                ratio = sides[side]["least"] / own
                wanted.append((f"a step: {factor} times {side} ({times(ratio)})", ratio >= factor))
        losses = [row["first"][side] for side in EXACT if side in sides]
        wanted.append(("a step: exact sides agree on the loss", max(losses) - min(losses) <= 1e-4))
    return found, wanted


def layers_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src" / "lbm" / "nn").glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    run = Run("layers", __doc__)
    run.head["layers"] = layers_digest()
    import torch

    from lbm.reasoning.engine.warming import compile_piece

    torch.set_num_threads(1)
    compile_piece("sums")
    again = 30 if run.quick else 200
    there = "LBM_DATA" in os.environ
    keys: list[tuple[Any, ...]] = [("addition", digits) for digits in DIGITS]
    keys += [("step", "addition")]
    keys += [("circuits", name) for name in (CIRCUITS if there else ())]

    def measure(what: str, key: Any) -> Row:
        if what == "step":
            return training_step(again)
        return circuit(key, again) if what == "circuits" else addition(key, again)

    run.show(section(run.each(keys, measure)))


if __name__ == "__main__":
    main()
