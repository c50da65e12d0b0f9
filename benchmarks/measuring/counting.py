"""One peer of the compiled form on one problem, in a process of its own that can be ended at any moment.

    python counting.py ganak|pysdd|cmsgen|klay FILE [NUMBER]

It imports what it needs, reads FILE (DIMACS for the first three, an .sdd for KLay), prints ``ready``, and
then a line of JSON with CPU seconds and what it found. The first call of KLay is in wall-clock seconds, since
compilers are processes of their own. NUMBER: draws of CMSGen, rows of KLay.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Clauses = tuple[int, list[list[int]], list[int] | None, dict[int, float]]


def read(file: str) -> Clauses:
    """Return variables, clauses, the variables that are shown if the file names some, and weights."""
    number, clauses, shown, weights = 0, [], None, {}
    for line in Path(file).read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[:1] == ["p"]:
            number = max(number, int(words[2]))
        elif words[:3] == ["c", "p", "show"]:
            shown = [*(shown or []), *map(int, words[3:-1])]
        elif words[:3] == ["c", "p", "weight"]:
            above, _, below = words[4].partition("/")
            weights[int(words[3])] = float(above) / float(below or 1)
        elif words and words[0] not in ("c", "%"):
            clauses.append([int(word) for word in words if word != "0"])
    return number, clauses, shown, weights


def told(begun: float, **found: Any) -> None:
    print(json.dumps({"cpu": time.process_time() - begun, **found}), flush=True)


def ganak(file: str, _: int) -> None:
    import pyganak

    variables, clauses, shown, weights = read(file)
    print("ready", flush=True)
    begun = time.process_time()
    counter: Any = pyganak.WeightedCounter() if weights else pyganak.Counter()
    counter.new_vars(variables)
    counter.add_clauses(clauses)
    if shown is not None:
        counter.set_sampling_set(shown)
    for literal, weight in weights.items():
        counter.set_lit_weight(literal, weight)
        if -literal not in weights:
            counter.set_lit_weight(-literal, 1.0 - weight)
    found = counter.count()
    told(begun, said=float(found) if weights else str(found))


def pysdd(file: str, _: int) -> None:
    """PySDD as it compiles a file: its own vtree, balanced, and dynamic minimisation."""
    from pysdd.sdd import SddManager

    variables, clauses, shown, weights = read(file)
    if shown is not None or weights:
        told(time.process_time(), said=None)
        return
    print("ready", flush=True)
    begun = time.process_time()
    manager = SddManager(var_count=variables, auto_gc_and_minimize=True)
    found = manager.true()
    for clause in clauses:
        either = manager.false()
        for literal in clause:
            either = either | manager.literal(literal)
        found = found & either
    told(begun, said=str(found.global_model_count()), size=found.size())


def cmsgen(file: str, number: int) -> None:
    """CMSGen with its own options, asked for one model after the other; it stops after some seconds."""
    import pycmsgen

    _, clauses, _, _ = read(file)
    print("ready", flush=True)
    begun = time.process_time()
    solver = pycmsgen.Solver(seed=1)
    solver.add_clauses(clauses)
    solver.solve()
    print(json.dumps({"made": time.process_time() - begun}), flush=True)
    begun, done = time.process_time(), 0
    while done < number and time.process_time() - begun < PATIENCE:
        solver.solve()
        done += 1
    told(begun, draws=done)


def klay(file: str, rows: int) -> None:
    """KLay on rows at once, forward and backward, without and with a compiler; the first call apart."""
    import torch
    from klay import Circuit  # type: ignore[import-untyped,unused-ignore]

    torch.set_num_threads(1)
    number = max(
        abs(int(line.split()[3])) for line in Path(file).read_text().splitlines() if line[:2] == "L "
    )
    torch.manual_seed(0)
    chances = torch.rand(rows, number, dtype=torch.float64) * 0.98 + 0.01
    circuit = Circuit()
    circuit.add_sdd_from_file(file)
    print("ready", flush=True)
    for compiled in (False, True):
        begun = time.perf_counter()
        module = circuit.to_torch_module(semiring="log", compile=compiled)

        def once(module: Any = module) -> Any:
            logs = chances.log().requires_grad_()
            value = module(logs, torch.log1p(-logs.exp()))
            value.sum().backward()
            return value

        try:
            value = once()
        except RuntimeError as error:  # its compiler needs one for C++
            told(0.0, compiled=compiled, said=type(error).__name__)
            continue
        first = time.perf_counter() - begun
        times = []
        for _ in range(15):
            begun = time.process_time()
            once()
            times.append(time.process_time() - begun)
        told(begun, compiled=compiled, first=first, each=sorted(times)[7], said=value.reshape(-1)[0].item())


PATIENCE = 20.0  # CPU seconds after which CMSGen is asked no more

if __name__ == "__main__":
    peers: dict[str, Callable[[str, int], None]] = {
        "ganak": ganak,
        "pysdd": pysdd,
        "cmsgen": cmsgen,
        "klay": klay,
    }
    peers[sys.argv[1]](sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
