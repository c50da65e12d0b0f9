"""One compiled form, a pass for every question: rows of evidence, marginals, draws and counts beside peers.

Feature models, a segmentation network and the circuits are public files, those of LBM_INSTANCES and
LBM_DATA; without them nothing is measured there. Networks of many values and additions are generated. Times
are CPU seconds, of every process that works on an answer, unless it says otherwise. The compiler of our
passes is loaded before any clock starts, as it is in a process that has run chains; the children load none.

- *Rows*: 1,000 rows of evidence, ten atoms each as in a drawn model; of every fourth row the first atom has
  its other value, so that some are impossible. They are asked at once; one by one, by name; and one by one
  of another checkout, ``--against SRC``. One by one stops after some seconds, and 1,000 take as long as the
  mean says. The first answer, which compiles or prepares, is apart.
- *All marginals* beside one probability, given evidence that was not met before, the theory compiled.
- *Elimination*: log Z and all marginals, beside a few lines of NumPy that do the same two passes in the same
  order. *Passes* have the order and the tables; *from nothing* includes taking the theory apart, finding the
  order and making tables, which the NumPy side is given.
- *Draws*: 10,000 models of feature models, ours exactly uniform, beside CMSGen with its own options, which
  promises no distribution and is asked for one after the other. Ours come as one matrix, its as a tuple each.
- *Counts*: `lbm.count`, with Ganak beside it where pyganak is installed, and without it; Ganak itself, in a
  process that has read the file; PySDD, which is given ten seconds. These are wall-clock times.
- *Addition* of two numbers as people write it, digits as exactly one of ten atoms, carries as atoms: reading
  the text is apart; then compiling, and 128 rows of soft evidence about all digits of both numbers.
- *Circuits* that others compiled: 128 rows forward and backward, which is what our marginals are, beside KLay
  with and without its compiler, which has 25 seconds for the first call.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from signal import SIGKILL
from statistics import mean, median
from threading import Timer
from typing import Any

import numpy as np
from measuring.plain import elimination
from measuring.problems import (
    bayesian_network,
    column_addition,
    digit_atoms,
    pairwise_network,
    total_is,
)
from measuring.results import ROOT, Row, Run, Section, Table, ratio, seconds, times
from repeated import helpers, sources

TITLE = "Compiled forms"
ROWS, TOLD = 1000, 10  # rows of evidence, and atoms that one tells of
PATIENCE = {"the other": 10.0, "today": 4.0}  # CPU seconds of one by one
AT_MOST = 50  # questions one by one
DRAWS, BATCH = 10_000, 128
AGAIN = 15  # times that a small thing is measured
LONG = 30.0  # seconds for a question
ALONE = 10.0  # seconds for PySDD
COMPILING = 25.0  # seconds for KLay's compiler

FEATURES = {"toybox2": "count/toybox2.cnf", "axTLS": "count/axTLS.cnf", "busybox": "count/busybox.dimacs"}
SEGMENTATION = "uai/Segmentation_11.uai"
NETWORKS: dict[str, Callable[[], str]] = {
    "60 variables of 4 values, 2 parents": lambda: bayesian_network(60, 4, 2, 5, seed=0),
    "60 variables of 4 values, 3 parents": lambda: bayesian_network(60, 4, 3, 6, seed=0),
}
WIDE: dict[str, Callable[[], str]] = {
    "100 atoms, 200 edges": lambda: pairwise_network(100, 2, 200, seed=1),
    "60 variables of 4 values, 85 edges": lambda: pairwise_network(60, 4, 85, seed=0),
    "60 variables of 4 values, 90 edges": lambda: pairwise_network(60, 4, 90, seed=0),
    "60 variables of 4 values, 3 parents of 8": lambda: bayesian_network(60, 4, 3, 8, seed=0),
}
COUNTS = {
    **FEATURES,
    "s1196a_3_2": "count/s1196a_3_2.cnf",
    "mc2024_track3_131": "count/mc2024_track3_131.cnf",
    "ganak-mode1": "weighted/ganak-mode1.cnf",
}
DIGITS = (1, 2, 4, 8, 15)
CIRCUITS = ("road_r", "sudoku_4", "grid_4", "seq_fun")
KINDS = {"ask": "one probability", "marginals": "all marginals"}


# --- problems ----------------------------------------------------------------------------------------


def loaded() -> None:
    """Load our compiler, and the passes that it has compiled."""
    from lbm.reasoning.engine.warming import compile_piece

    compile_piece("exact")


def place(variable: str, file: str) -> Path | None:
    """Return a public file; None: it is not here."""
    directory = os.environ.get(variable)
    found = None if directory is None else Path(directory) / file
    return found if found is not None and found.exists() else None


@cache
def theory_of(name: str) -> Any:
    """Return the theory of a feature model or network; None: its file is not here."""
    import lbm

    if name in (made := {**NETWORKS, **WIDE}):
        from lbm.knowledge.networks import network_theory, read_network

        return network_theory(read_network(made[name]().encode()))
    path = place("LBM_INSTANCES", SEGMENTATION if name == "Segmentation_11" else COUNTS[name])
    return None if path is None else lbm.Theory.load(path)


def evidence(name: str, number: int) -> tuple[str, Any]:
    """Return a query and rows of evidence, one column for each atom, nan where nothing is told."""
    import lbm

    theory = theory_of(name)
    reasoner = lbm.Reasoner(theory)
    chances = reasoner.marginals(method="exact", seconds=None)
    query = min(theory.atoms, key=lambda atom: abs(chances[atom] - 0.5))
    others = [i for i, atom in enumerate(theory.atoms) if atom != query and 0 < chances[atom] < 1]
    drawn = reasoner.sample(number, seed=1).array
    rng = np.random.default_rng(0)
    table = np.full(drawn.shape, np.nan)
    for i in range(number):
        told = rng.choice(others, min(TOLD, len(others)), replace=False)
        table[i, told] = drawn[i, told]
        if not i % 4:
            table[i, told[0]] = 1 - table[i, told[0]]
    return query, table


def by_name(atoms: Sequence[str], row: Any) -> dict[str, bool]:
    return {atom: bool(value) for atom, value in zip(atoms, row.tolist(), strict=True) if value == value}


# --- rows --------------------------------------------------------------------------------------------


def child() -> None:
    """Answer questions about a theory one by one, until there are no more or it has taken long enough."""
    import lbm
    from lbm.errors import LbmError, NoWorlds
    from lbm.knowledge.formula import quote

    asked = json.loads(sys.stdin.read())
    small = lbm.Reasoner(lbm.Theory.parse("a -> b\n1: b -> ~c\n2: c -> a"))
    small.ask("a", given={"c": True})  # so that nothing is imported while a clock runs
    small.marginals(given={"c": True})
    theory = lbm.Theory.load(asked["file"])
    reasoner, found = lbm.Reasoner(theory), []
    for given in asked["given"]:
        aside, begun = helpers(), time.process_time()
        try:
            if asked["kind"] == "ask":
                answer: Any = reasoner.ask(quote(asked["query"]), given=given, seconds=10, seed=0)
                said: Any = [answer.method, answer.probability]
            else:
                answer = reasoner.marginals(given=given, seconds=10, seed=0)
                said = [answer.method, answer[asked["query"]]]
        except NoWorlds:
            said = ["exact", None]
        except LbmError as error:  # that is an answer, too
            said = [type(error).__name__, None]
        found.append({"cpu": time.process_time() - begun + helpers() - aside, "said": said})
        if sum(one["cpu"] for one in found) > asked["patience"]:
            break
    print(json.dumps({"lbm": lbm.__file__, "answers": found}), flush=True)


def singly(src: Path, asked: dict[str, Any]) -> list[Row]:
    """Return what a checkout says one by one, in a process of its own; the first answer comes first."""
    ran = subprocess.run(
        [sys.executable, __file__, "--child"],
        env={**os.environ, "PYTHONPATH": str(src), "LBM_BACKGROUND": "0"},
        input=json.dumps(asked),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if ran.returncode:
        sys.exit(f"compiled.py: the process that asks {src} ended with {ran.returncode}")
    said = dict(json.loads(ran.stdout.splitlines()[-1]))
    if not Path(said["lbm"]).is_relative_to(src):
        sys.exit(f"compiled.py: expected lbm from {src}, got {said['lbm']}")
    return list(said["answers"])


def rows(name: str, kind: str, number: int, sides: Mapping[str, Path], patience: float) -> Row:
    """Measure rows at once, and one by one."""
    import lbm
    from lbm.knowledge.formula import quote
    from lbm.knowledge.wire import save_theory

    theory = theory_of(name)
    query, table = evidence(name, number)
    reasoner = lbm.Reasoner(theory)

    def at_once(some: Any) -> tuple[float, Any, Any]:
        begun = time.process_time()
        if kind == "ask":
            answer: Any = reasoner.ask(quote(query), given=some, seconds=None)
            return time.process_time() - begun, answer.probability, answer.possible
        answer = reasoner.marginals(given=some, seconds=None)
        return time.process_time() - begun, answer[query], answer.possible

    first = at_once(table[:1])[0]
    took, said, possible = min((at_once(table) for _ in range(2)), key=lambda each: each[0])
    row: Row = {
        "atoms": len(theory.atoms),
        "possible": int(possible.sum()),
        "first": first,
        "batch": took,
        "number": number,
        "sides": {},
    }
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "theory.lbm"
        save_theory(theory, file)
        given = [by_name(theory.atoms, each) for each in table[: AT_MOST + 1]]
        asked = {"file": str(file), "query": query, "kind": kind, "given": given}
        for side, src in sides.items():
            found = singly(src, {**asked, "patience": patience * PATIENCE[side]})
            apart = []
            for one, p, can in zip(found, said, possible, strict=False):
                method, other = one["said"]
                if method == "exact":
                    apart.append(math.inf if (other is not None) != bool(can) else abs((other or 0) - p))
            apart = [each for each in apart if each == each]
            row["sides"][side] = {
                "first": found[0]["cpu"],
                "each": [one["cpu"] for one in found[1:]] or [found[0]["cpu"]],
                "exact": sum(one["said"][0] == "exact" for one in found),
                "asked": len(found),
                "apart": max(apart, default=0.0),
            }
    return row


# --- passes ------------------------------------------------------------------------------------------


def cpu(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def costs(name: str, again: int) -> Row:
    """Measure all marginals beside one probability, at both doors."""
    import lbm
    from lbm.knowledge.formula import quote

    theory = theory_of(name)
    query, table = evidence(name, 8 * again + 8)
    table = table[[i for i in range(len(table)) if i % 4]]  # rows that are possible
    reasoner = lbm.Reasoner(theory)
    ask: Any = lambda given: reasoner.ask(quote(query), given=given, seconds=LONG)  # noqa: E731
    every: Any = lambda given: reasoner.marginals(given=given, seconds=LONG)  # noqa: E731
    found: Row = {"sides": {}}
    for side in ("row", "by name"):
        given = [
            table[i : i + 1] if side == "row" else by_name(theory.atoms, table[i]) for i in range(len(table))
        ]
        row = found["sides"][side] = {}
        for what, question in (("one", ask), ("all", every)):
            question(given.pop())
            took: list[float] = []
            while len(took) < again and sum(took) < 2.0:
                took.append(cpu(lambda: question(given.pop())))  # noqa: B023 - called at once
            row[what] = median(took)
    return found


def eliminated(name: str, again: int) -> Row:
    """Measure log Z and all marginals beside plain NumPy."""
    import lbm
    from lbm.knowledge.networks import read_network
    from lbm.reasoning.budget import NO_LIMIT
    from lbm.reasoning.exact.apart import split_of
    from lbm.reasoning.exact.tables import Tables
    from lbm.reasoning.problem import Known

    path = place("LBM_INSTANCES", SEGMENTATION)
    text = WIDE[name]().encode() if name in WIDE else path.read_bytes() if path else b""
    network = read_network(text)
    factors = [
        (each.scope, np.array(each.entries, float).reshape([network.sizes[v] for v in each.scope]))
        for each in network.tables
    ]
    theory = theory_of(name)
    found: dict[str, Any] = {}

    def door() -> None:
        reasoner = lbm.Reasoner(lbm.Theory.from_parts(theory.atoms, tuple(theory)))
        found["marginals"] = reasoner.marginals(method="exact", seconds=None)
        found["log"] = reasoner.log_partition(method="exact", seconds=None)

    whole = cpu(door)
    split = split_of(theory, None, Known(), NO_LIMIT)
    tables = [Tables(component, NO_LIMIT) for component in split.components]
    order = []
    for part in tables:
        names = part.component.atoms
        by_place: dict[int, int] = {}
        for atom in names:
            by_place[part.cells.place[atom][0]] = int(atom.split(" ")[0][1:])
        order += [by_place[v] for v in part.order]
    order += [v for v in range(len(network.sizes)) if v not in set(order)]
    ours, plain = [], []
    for _ in range(again):
        ours.append(cpu(lambda: [part.all_marginals(split.scale, 1.0, {}) for part in tables]))
        begun = time.process_time()
        log_z, chances = elimination(network.sizes, factors, order)
        plain.append(time.process_time() - begun)
    mine = network.chances(found["marginals"])
    apart = max(float(np.abs(np.array(a) - b).max()) for a, b in zip(mine, chances, strict=True))
    return {
        "variables": len(network.sizes),
        "largest": max(part.largest for part in tables),
        "order": sum(part.work for part in tables),
        "passes": ours,
        "door": whole,
        "plain": plain,
        "apart": max(apart, abs(found["log"] - log_z) / max(1.0, abs(log_z))),
    }


# --- peers -------------------------------------------------------------------------------------------


def installed(package: str) -> bool:
    from importlib.util import find_spec

    return find_spec(package) is not None


def peer(name: str, path: Path, limit: float, *more: int) -> tuple[list[Row], float]:
    """Return what a peer says in a time, and the wall-clock seconds from its being ready."""
    clock = Timer(limit, print)
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.Popen(
            [
                sys.executable,
                str(ROOT / "benchmarks" / "measuring" / "counting.py"),
                name,
                str(path),
                *map(str, more),
            ],
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": directory, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        said: list[str] = []
        begun = time.perf_counter()
        for line in process.stdout:
            if line == "ready\n":
                begun = time.perf_counter()
                clock = Timer(limit, os.killpg, (process.pid, SIGKILL))  # it and its compilers
                clock.start()
            else:
                said.append(line)
        took = time.perf_counter() - begun
        clock.cancel()
        process.wait()
    return [json.loads(line) for line in said if line.startswith("{")], took


def draws(name: str, number: int) -> Row:
    import lbm

    theory = theory_of(name)
    reasoner = lbm.Reasoner(theory)
    compiling = cpu(lambda: reasoner.sample(1, seed=0))
    found: dict[str, Any] = {}
    each = [cpu(lambda: found.update(drawn=reasoner.sample(number, seed=seed))) for seed in range(5)]  # noqa: B023
    row: Row = {"number": number, "compile": compiling, "draw": each, "method": found["drawn"].method}
    path = place("LBM_INSTANCES", COUNTS[name])
    assert path is not None
    if installed("pycmsgen"):
        asked = [peer("cmsgen", path, 60.0, number)[0] for _ in range(3)]
        if all(len(one) == 2 for one in asked):
            row["CMSGen"] = {
                "made": median(one[0]["made"] for one in asked),
                "draw": median(one[1]["cpu"] * number / one[1]["draws"] for one in asked),
                "draws": asked[0][1]["draws"],
            }
    return row


def counts(name: str, again: int) -> Row:
    import lbm
    from lbm.errors import NoAnswer
    from lbm.knowledge.wire import load_theory
    from lbm.reasoning.exact import whole
    from lbm.reasoning.problem import Known
    from lbm.reasoning.solvers import aside

    path = place("LBM_INSTANCES", COUNTS[name])
    assert path is not None
    found: Row = {"sides": {}}

    def ours() -> tuple[float, str | None]:
        whole._tables, whole._circuits = Known(16), Known(16)  # nothing of it was met before
        theory = load_theory(path, lenient=True)
        begun = time.perf_counter()
        try:
            said: str | None = str(lbm.count(theory, seconds=30))
        except NoAnswer:
            said = None
        return time.perf_counter() - begun, said

    there = aside.ganak_installed
    for side in ("with Ganak", "ours alone"):
        if side == "with Ganak" and not installed("pyganak"):
            continue
        aside.ganak_installed = there if side == "with Ganak" else lambda: False
        try:
            tried = [ours() for _ in range(again)]
        finally:
            aside.ganak_installed = there
        found["sides"][side] = {"each": [took if said else None for took, said in tried], "said": tried[0][1]}
    for side, number in (("ganak", again), ("pysdd", 1)):
        if not installed("pyganak" if side == "ganak" else side):
            continue
        asked = [peer(side, path, 30.0 if side == "ganak" else ALONE) for _ in range(number)]
        if asked[0][0] and asked[0][0][0]["said"] is None:
            continue  # a kind of count that it has not
        found["sides"][side] = {
            "each": [one[0]["cpu"] if one else None for one, _ in asked],
            "said": asked[0][0][0]["said"] if asked[0][0] else None,
        }
    return found


def addition(digits: int, again: int) -> Row:
    import lbm

    rng = np.random.default_rng(digits)
    found: Row = {"parse": [], "compile": [], "rows": [], "apart": 0.0}
    for number in range(again):
        mark = f"t{number}_"
        begun = time.process_time()
        theory = lbm.Theory.parse(column_addition(digits, mark))
        found["parse"].append(time.process_time() - begun)
        given, shares = {}, []
        for name in "xy":
            for at in range(digits):
                likely = rng.dirichlet(np.full(10, 0.3), BATCH)
                shares.append(likely)
                given.update(zip(digit_atoms(name, at, mark), likely.T, strict=True))
        total = int("5" * digits)
        query, reasoner = total_is(total, digits, mark), lbm.Reasoner(theory)
        found["compile"].append(
            cpu(lambda: reasoner.ask(query, given={atom: p[:1] for atom, p in given.items()}))  # noqa: B023
        )
        answers: dict[str, Any] = {}
        took = [cpu(lambda: answers.update(a=reasoner.ask(query, given=given))) for _ in range(5)]  # noqa: B023
        found["rows"] += took
        expected = chances(shares, digits, total)
        apart = np.abs(answers["a"].probability - expected) / np.maximum(expected, 1e-30)
        found["apart"] = max(found["apart"], float(apart.max()))
    found["atoms"], found["formulae"] = len(theory.atoms), len(theory)
    return found


def chances(shares: Sequence[Any], digits: int, total: int) -> Any:
    """Return P(sum) of each row by a table of carries, digit by digit."""
    carries = np.zeros((BATCH, 2))
    carries[:, 0] = 1.0
    for at in range(digits):
        one, other = shares[at], shares[digits + at]
        one, other = one / one.sum(axis=1, keepdims=True), other / other.sum(axis=1, keepdims=True)
        after = np.zeros_like(carries)
        for x in range(10):
            for carry in (0, 1):
                y = (total // 10**at - x - carry) % 10
                after[:, int(x + y + carry > 9)] += carries[:, carry] * one[:, x] * other[:, y]
        carries = after
    return carries[:, int(total >= 10**digits)]


def circuit(name: str, again: int) -> Row:
    from lbm.knowledge.circuit_files import read_circuit
    from lbm.reasoning.exact.passes import Passes

    path = place("LBM_DATA", f"structured/{name}.sdd")
    assert path is not None
    passes = Passes(read_circuit(path))
    likely = np.random.default_rng(0).uniform(0.01, 0.99, (BATCH, passes.circuit.variables))
    weights = np.stack([1 - likely, likely], axis=-1)
    logs = np.log(weights)
    row: Row = {"edges": passes.circuit.edges}
    row["first"] = cpu(lambda: passes.marginals(weights))
    row["ours"] = median(cpu(lambda: passes.marginals(weights)) for _ in range(again))
    row["in logs"] = median(cpu(lambda: passes.marginals(logs, logs=True)) for _ in range(again))
    if installed("klay") and installed("torch"):
        said, _ = peer("klay", path, COMPILING + 5.0, BATCH)
        for one in said:
            if "each" in one:
                row["compiled" if one["compiled"] else "KLay"] = {"each": one["each"], "first": one["first"]}
    return row


# --- what is shown -----------------------------------------------------------------------------------


def shown(found: list[Row], what: str) -> list[Row]:
    return [row for row in found if row["key"][0] == what]


def of_rows(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted = [], []
    sides = list(dict.fromkeys(side for row in found for side in row["sides"]))
    for row in found:
        name, kind = row["key"][1:3]
        cells = [
            name,
            KINDS[kind],
            f"{row['possible']:,} of {row['number']:,}",
            seconds(row["first"]),
            seconds(row["batch"]),
        ]
        for side in sides:
            one = row["sides"][side]
            thousand = mean(one["each"]) * row["number"]
            gain = thousand / row["batch"]
            cells += [f"{seconds(thousand)} ({one['asked']} asked, {one['exact']} exactly)", times(gain)]
            if side == "the other":
                wanted.append(
                    (
                        f"{name}, {KINDS[kind]}: rows at once in at most 1/100 of the time ({times(gain)})",
                        gain >= 100,
                    )
                )
        apart = max((one["apart"] for one in row["sides"].values()), default=0.0)
        lines.append([*cells, f"{apart:.0e}"])
    heads = [head for side in sides for head in (f"one by one, {side}", f"{side} / at once")]
    columns = ["theory", "asked for", "rows possible", "first row", "at once", *heads, "largest difference"]
    note = "One by one: extrapolated from the questions asked."
    return [Table("Rows of evidence", columns, lines, note)], wanted


def of_costs(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted = [], []
    for row in found:
        cells = [row["key"][1]]
        for side, each in row["sides"].items():
            share = each["all"] / each["one"]
            cells += [seconds(each["one"]), seconds(each["all"]), times(share)]
            if side == "row":
                wanted.append(
                    (
                        f"{row['key'][1]}: all marginals at most 3 times the cost of one probability",
                        share <= 3,
                    )
                )
        lines.append(cells)
    heads = [
        f"{what}, {side}"
        for side in ("a row", "by name")
        for what in ("one probability", "all marginals", "ratio")
    ]
    return [Table("All marginals beside one probability", ["theory", *heads], lines)], wanted


def of_elimination(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted = [], []
    for row in found:
        share = median(row["passes"]) / median(row["plain"])
        largest = row["largest"]
        lines.append(
            [
                row["key"][1],
                str(row["variables"]),
                f"2^{math.log2(largest):.3g}",
                f"{row['order']:,}",
                seconds(median(row["plain"])),
                seconds(median(row["passes"])),
                times(share),
                seconds(row["door"]),
                times(row["door"] / median(row["plain"])),
                f"{row['apart']:.0e}",
            ]
        )
        wanted.append((f"{row['key'][1]}: at most 3 times plain NumPy ({times(share)})", share <= 3))
    columns = "network,variables,largest table,all entries,NumPy,lbm: passes,/ NumPy"
    columns += ",lbm: from nothing,/ NumPy,largest difference"
    return [Table("log Z and all marginals by elimination", columns.split(","), lines)], wanted


def of_draws(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted = [], []
    for row in found:
        name, its, mine = row["key"][1], row.get("CMSGen"), median(row["draw"])
        lines.append(
            [
                name,
                f"{row['number']:,} {row['method']}",
                seconds(row["compile"]),
                seconds(mine),
                *(
                    (seconds(its["made"]), seconds(its["draw"]), times(its["draw"] / mine))
                    if its
                    else ("not installed",) * 3
                ),
            ]
        )
        if its:
            wanted.append(
                (
                    f"{name}: exact draws at least as fast as CMSGen's",
                    row["method"] == "exact" and mine <= its["draw"],
                )
            )
            wanted.append((f"{name}: compiling takes at most 1 s more", row["compile"] <= its["made"] + 1))
    columns = (
        "feature model,draws,lbm: compiling and one,lbm: drawing,CMSGen: reading,CMSGen: drawing,CMSGen / lbm"
    )
    return [Table("Draws", columns.split(","), lines)], wanted


def of_counts(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted = [], []
    names = {
        "with Ganak": "lbm with Ganak",
        "ours alone": "lbm alone",
        "ganak": "Ganak",
        "pysdd": f"PySDD, {ALONE:g} s",
    }
    for row in found:
        took: dict[str, float | None] = {}
        for side, one in row["sides"].items():
            took[side] = median(one["each"]) if None not in one["each"] else None
        best = min((took[side] for side in ("ganak", "pysdd") if took.get(side) is not None), default=None)
        cells = []
        for side in names:
            if side not in took:
                cells.append("not asked" if side == "pysdd" else "not installed")
            else:
                cells.append("no answer" if took[side] is None else seconds(took[side]))  # type: ignore[arg-type]
        said = {same(one["said"]) for one in row["sides"].values() if one["said"] is not None}
        mine = took.get("with Ganak", took.get("ours alone"))
        share = ratio(mine, best)
        lines.append(
            [row["key"][1], *cells, times(share) if share else "", "yes" if len(said) == 1 else "NO"]
        )
        if best is not None:
            met = mine is not None and mine <= 2 * best + 0.5
            wanted.append((f"{row['key'][1]}: at most twice the best peer's time and half a second", met))
            if "ganak" in row["sides"]:
                wanted.append((f"{row['key'][1]}: the counts are the same", len(said) == 1))
    return [Table("Counts", ["file", *names.values(), "lbm / best peer", "all the same"], lines)], wanted


def same(said: Any) -> str:
    """Return a count so that fractions and floats compare."""
    from fractions import Fraction

    return f"{float(Fraction(said)):.9g}" if not str(said).isdigit() else str(said)


def of_addition(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted, each = [], [], {}
    for row in found:
        digits = row["key"][1]
        each[digits] = {what: median(row[what]) for what in ("parse", "compile", "rows")}
        now = each[digits]
        lines.append(
            [
                str(digits),
                f"{row['atoms']:,}",
                f"{row['formulae']:,}",
                *(seconds(now[what]) for what in now),
                f"{row['apart']:.0e}",
            ]
        )
        if digits == 4:
            wanted.append(("4 digits: compiling takes at most 1 s", now["compile"] <= 1))
            wanted.append((f"4 digits: {BATCH} rows in at most 50 ms", now["rows"] <= 0.05))
    if {4, 15} <= each.keys():
        said = {"compile": "compiling takes", "rows": f"{BATCH} rows take"}
        for what, takes in said.items():
            share = each[15][what] / each[4][what]
            wanted.append(
                (
                    f"15 digits: {takes} {times(share)} times as long as of 4; linear is 3.75",
                    share <= 1.5 * 3.75,
                )
            )
    columns = [
        "digits",
        "atoms",
        "formulae",
        "reading the text",
        "compiling and one row",
        f"{BATCH} rows",
        "largest relative difference",
    ]
    return [Table("Addition: P(the sum is 55...5 | soft evidence)", columns, lines)], wanted


def of_circuits(found: list[Row]) -> tuple[list[Table], list[tuple[str, bool]]]:
    lines, wanted = [], []
    for row in found:
        its, compiled = row.get("KLay"), row.get("compiled")
        best = min((one["each"] for one in (its, compiled) if one), default=None)
        lines.append(
            [
                row["key"][1],
                f"{row['edges']:,}",
                seconds(row["ours"]),
                seconds(row["in logs"]),
                seconds(row["first"]),
                seconds(its["each"]) if its else "not installed",
                f"{seconds(compiled['each'])} (first {seconds(compiled['first'])})"
                if compiled
                else "not in time"
                if its
                else "",
                times(best / row["ours"]) if best else "",
                times(best / row["in logs"]) if best else "",
            ]
        )
        if best:
            wanted.append(
                (
                    f"{row['key'][1]}: no slower than KLay at its best",
                    row["ours"] <= best,
                )
            )
    columns = (
        "circuit,edges,lbm,lbm in logarithms,lbm: first,KLay,KLay compiled,KLay / lbm,/ lbm in logarithms"
    )
    return [Table(f"Circuits, {BATCH} rows forward and backward", columns.split(","), lines)], wanted


PARTS: dict[str, Callable[[list[Row]], tuple[list[Table], list[tuple[str, bool]]]]] = {
    "rows": of_rows,
    "costs": of_costs,
    "elimination": of_elimination,
    "draws": of_draws,
    "counts": of_counts,
    "addition": of_addition,
    "circuits": of_circuits,
}


def section(rows: list[Row]) -> Section:
    tables, wanted = [], []
    for what, made in PARTS.items():
        some = shown(rows, what)
        failed = [row for row in some if "error" in row]
        wanted += [(f"{' '.join(map(str, row['key']))}: {row['error']}", False) for row in failed]
        if len(some) > len(failed):
            more, goals = made([row for row in some if "error" not in row])
            tables += more
            wanted += goals
    return Section(tables, wanted)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, metavar="SRC", help="the src of another checkout")


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    run = Run("compiled", __doc__, options)
    loaded()
    sides = {}
    if run.options.against is not None:
        sides["the other"] = run.options.against.resolve()
        run.head["against"] = sources(sides["the other"])
    sides["today"] = ROOT / "src"
    again, number, patience = (5, 100, 0.2) if run.quick else (AGAIN, ROWS, 1.0)
    instances = place("LBM_INSTANCES", SEGMENTATION) is not None
    public = [*FEATURES, "Segmentation_11"] if instances else []
    circuits = CIRCUITS if place("LBM_DATA", "structured/grid_4.sdd") else ()
    few = 1 if run.quick else 3
    work: dict[str, Callable[..., Row]] = {
        "rows": lambda name, kind: rows(name, kind, number, sides, patience),
        "costs": lambda name: costs(name, again),
        "elimination": lambda name: eliminated(name, few),
        "draws": lambda name: draws(name, DRAWS),
        "counts": lambda name: counts(name, few),
        "addition": lambda digits: addition(digits, few),
        "circuits": lambda name: circuit(name, again),
    }
    keys: list[tuple[Any, ...]] = [("addition", digits) for digits in DIGITS]
    keys += [("counts", name) for name in (COUNTS if instances else ())]
    keys += [("draws", name) for name in public if name in FEATURES]
    keys += [("circuits", name) for name in circuits]
    keys += [("costs", name) for name in (*public, *NETWORKS)]
    keys += [("elimination", name) for name in ((["Segmentation_11"] if instances else []) + [*WIDE])]
    keys += [("rows", name, kind) for name in (*public, *NETWORKS) for kind in KINDS]

    def measure(what: str, *key: Any) -> Row:
        from lbm.errors import LbmError

        try:
            return work[what](*key)
        except LbmError as error:  # what it did not do is said, and the others go on
            return {"error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}

    run.show(section(run.each(keys, measure)))


if __name__ == "__main__":
    main()
