"""What is answered exactly, up to where: the largest of each kind within ten seconds and 4 GiB.

Each try is a process of its own: it makes a problem, asks one question of it for the first time, and has ten
seconds of wall-clock time and 4 GiB of resident memory for the answer, imports and reading apart. Compiling
is part of the time. Questions are those of users, by exact methods: `count`, `ask` for one probability (and
its status, as far as time allows), `marginals` of all atoms, `best`, proven, and `sample` for 1,000 draws.
Sizes go up in steps, and are tried by halving: between the largest that was answered and the next one, which
was not, nothing is known. Where the last size was answered "and more" stands behind it.

Where formulae are soft, `count` is asked of as many hard ones, or it would have nothing to do.

- *entangled*: n atoms, a soft atleast(n/2, ...) over all of them, and 4 n soft clauses of three literals;
  nothing can be taken apart.
- *random 3-CNF*: 3 n clauses of three literals over n atoms; half of them soft but for counts and draws.
- *grid*: k x k atoms, each tied to its neighbours by soft equivalences.
- *a row*: 40 variables, each tied to the w before it: atoms, or groups of ten atoms, one of which is true.
- *exactly* n/2 of n atoms, and the *parity* of n atoms: one hard formula, a soft weight on each atom.
- *chain*: n atoms, each tied to the next by a soft implication.
- Public feature models, and s1196a, a circuit: those of LBM_INSTANCES.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from measuring.problems import random_clauses
from measuring.results import Row, Run, Section, Table

TITLE = "What is exact, up to where"
SECONDS = 10.0
MEMORY = 4 << 30
QUESTIONS = {
    "count": "count",
    "ask": "one probability",
    "marginals": "all marginals",
    "best": "best world",
    "sample": "1,000 draws",
}


# --- problems of each kind ---------------------------------------------------------------------------


def entangled(size: int, hard: bool) -> str:
    rng = random.Random(f"entangled {size}")
    names = [f"x{i}" for i in range(size)]
    lines = [f"atleast({size // 2}, {', '.join(names)})"]
    lines += [three(rng, names) for _ in range((1 if hard else 4) * size)]
    return "\n".join(lines if hard else [f"{rng.randint(1, 9)}: {line}" for line in lines])


def three(rng: random.Random, names: list[str]) -> str:
    return " | ".join(rng.choice(("", "~")) + name for name in rng.sample(names, 3))


def cnf(size: int, half: bool) -> str:
    rows = random_clauses(size, 3 * size, 3, seed=0).rows()
    lines = [" | ".join(f"{'' if one > 0 else '~'}x{abs(one)}" for one in row) for row in rows]
    return "\n".join(f"{1 + i % 9}: {line}" if half and i % 2 else line for i, line in enumerate(lines))


def grid(size: int, hard: bool) -> str:
    """Return the text of a grid; hard: no two neighbours are true."""
    rng = random.Random(f"grid {size}")
    places = [(i, j) for i in range(size) for j in range(size)]
    near = [(a, b) for i, j in places for a, b in (((i, j), (i + 1, j)), ((i, j), (i, j + 1)))]
    pairs = [[f"x{i}_{j}" for i, j in pair] for pair in near if max(pair[1]) < size]
    if hard:
        return "\n".join(f"~{one} | ~{other}" for one, other in pairs)
    lines = [f"{rng.choice((-1, 1)) * rng.randint(1, 9)}: x{i}_{j}" for i, j in places]
    return "\n".join([*lines, *(f"{rng.randint(1, 9)}: {one} <-> {other}" for one, other in pairs)])


def row_of(width: int, values: int, hard: bool) -> str:
    """Return the text of 40 variables in a row, any w + 1 neighbours tied two by two."""
    rng = random.Random(f"row {width} {values}")
    variables = [[f"v{i}"] if values == 2 else [f"v{i}_{k}" for k in range(values)] for i in range(40)]
    lines = [f"exactly(1, {', '.join(names)})" for names in variables if values > 2]
    for i in range(40):
        for j in range(i + 1, min(i + width + 1, 40)):
            for _ in range(1 if values == 2 else values):
                one, other = rng.choice(variables[i]), rng.choice(variables[j])
                said = f"{one} & {'' if hard else rng.choice(('', '~'))}{other}"
                lines.append(f"~({said})" if hard else f"{rng.randint(1, 9) / 10}: {said}")
    return "\n".join(lines)


def some_of(size: int) -> str:
    names = [f"x{i}" for i in range(size)]
    return "\n".join(
        [
            f"exactly({size // 2}, {', '.join(names)})",
            *(f"{1 + i % 7}: {name}" for i, name in enumerate(names)),
        ]
    )


def parity(size: int) -> str:
    names = [f"x{i}" for i in range(size)]
    return "\n".join([" ^ ".join(names), *(f"{1 + i % 7}: {name}" for i, name in enumerate(names))])


def chain(size: int, hard: bool) -> str:
    pairs = pairwise(f"x{i}" for i in range(size))
    return "\n".join(
        f"{'' if hard else f'{1 + i % 7}: '}{one} -> {other}" for i, (one, other) in enumerate(pairs)
    )


def steps(*sizes: int) -> tuple[int, ...]:
    return sizes


KINDS: dict[str, tuple[str, Callable[[int, str], str], tuple[int, ...]]] = {
    "entangled": (
        "atoms, all entangled: n",
        lambda n, question: entangled(n, question == "count"),
        (16, 20, 22, 24, 26, 28, 30, 34, 40),
    ),
    "cnf": (
        "random 3-CNF: n",
        lambda n, question: cnf(n, question not in ("count", "sample")),
        (20, 30, 40, 50, 60, 70, 80, 100, 120),
    ),
    "grid": (
        "grid: k",
        lambda n, question: grid(n, question == "count"),
        (8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 30),
    ),
    "atoms": (
        "40 atoms in a row: width",
        lambda n, question: row_of(n, 2, question == "count"),
        (8, 12, 16, 18, 20, 22, 24, 26, 30),
    ),
    "values": (
        "40 variables of 10 values in a row: width",
        lambda n, question: row_of(n, 10, question == "count"),
        (1, 2, 3, 4, 5, 6, 7),
    ),
    "exactly": ("exactly n/2 of n: n", lambda n, _: some_of(n), (20, 50, 100, 200, 500, 1000, 2000)),
    "parity": ("parity: n", lambda n, _: parity(n), (20, 100, 500, 1000, 2000, 5000, 10000)),
    "chain": (
        "chain: n",
        lambda n, question: chain(n, question == "count"),
        (100, 1000, 2000, 5000, 10000, 20000, 50000),
    ),
}
MODELS = ("count/toybox2.cnf", "count/axTLS.cnf", "count/busybox.dimacs", "count/s1196a_3_2.cnf")


# --- one try, in a process of its own ----------------------------------------------------------------


def child() -> None:
    """Ask one question, and say how long it took and how much memory."""
    import lbm
    from lbm.errors import LbmError
    from lbm.knowledge.wire import load_theory
    from lbm.reasoning.compiling.ready import compile_here

    asked = json.loads(sys.stdin.read())
    compile_here()
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))  # what is far too large ends at once
    small = lbm.Reasoner(lbm.Theory.parse("1: a -> b\n2: b -> ~c\na | c"))
    questions: dict[str, Callable[[Any, float], Any]] = {
        "count": lambda r, s: r.count(weighted=False, seconds=s),
        "ask": lambda r, s: r.ask(r.theory.atoms[-1], method="exact", seconds=s).probability,
        "marginals": lambda r, s: r.marginals(method="exact", seconds=s),
        "best": lambda r, s: r.best(seconds=s, seed=0),
        "sample": lambda r, s: r.sample(1000, method="exact", seconds=s, seed=0),
    }
    question = questions[asked["question"]]
    question(small, SECONDS)  # so that nothing is imported while the clock runs
    theory = load_theory(asked["file"], lenient=True) if asked["file"] else lbm.Theory.parse(asked["text"])
    begun = time.perf_counter()
    why = ""
    try:
        found = question(lbm.Reasoner(theory), SECONDS)
        done = asked["question"] != "best" or bool(found.optimal)
        why = "" if done else "not proven"
    except (LbmError, MemoryError, RecursionError) as error:
        done, why = False, f"{type(error).__name__} {getattr(error, 'limit', '') or ''}".strip()
    took = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(json.dumps({"done": done, "seconds": took, "memory": memory, "why": why}), flush=True)


def tried(question: str, text: str = "", file: str = "") -> Row:
    """Return whether a question is answered in time and memory."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, "--child"],
        env={**os.environ, "LBM_BACKGROUND": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        said, _ = process.communicate(
            json.dumps({"question": question, "text": text, "file": file}), timeout=4 * SECONDS
        )
        found = json.loads(said.splitlines()[-1]) if said else {"done": False, "why": "ended"}
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        found = {"done": False, "why": "later than told"}
    late = found.get("seconds", 0.0) > 1.1 * SECONDS
    if found["done"] and (late or found["memory"] > MEMORY):
        found = {**found, "done": False, "why": "late" if late else "memory"}
    return dict(found)


def measure(kind: str, question: str) -> Row:
    """Return the largest size that is answered: by halving, for what is larger is harder."""
    if kind == "features":
        each = {}
        directory = os.environ.get("LBM_INSTANCES")
        for name in MODELS if directory else ():
            each[Path(name).stem] = tried(question, file=str(Path(str(directory)) / name))
        return {"each": each}
    _, make, sizes = KINDS[kind]
    low, high = -1, len(sizes)
    tries: dict[int, Row] = {}
    while high - low > 1:
        middle = (low + high + 1) // 2 if low < 0 else (low + high) // 2
        tries[sizes[middle]] = tried(question, make(sizes[middle], question))
        if tries[sizes[middle]]["done"]:
            low = middle
        else:
            high = middle
    return {
        "largest": sizes[low] if low >= 0 else None,
        "next": sizes[high] if high < len(sizes) else None,
        "tries": {str(size): one for size, one in sorted(tries.items())},
    }


# --- what is shown -----------------------------------------------------------------------------------


def section(rows: list[Row]) -> Section:
    by = {tuple(row["key"]): row for row in rows}
    lines = []
    for kind, (name, _, sizes) in KINDS.items():
        cells = []
        for question in QUESTIONS:
            row = by.get((kind, question))
            if row is None:
                cells.append("not measured")
            elif row["largest"] is None:
                cells.append(f"below {sizes[0]:,}")
            else:
                one = row["tries"][str(row["largest"])]
                more = "" if row["next"] else " and more"
                cells.append(f"{row['largest']:,}{more} ({one['seconds']:.2g} s)")
        lines.append([name, *cells])
    names = sorted({name for row in rows if "each" in row for name in row["each"]})
    models = []
    for name in names:
        found = [by.get(("features", question), {"each": {}})["each"].get(name) for question in QUESTIONS]
        said = [
            "not measured" if one is None else f"{one['seconds']:.2g} s" if one["done"] else "no"
            for one in found
        ]
        models.append([name, *said])
    note = f"In parentheses: the time of that size, of {SECONDS:g} s."
    return Section(
        [
            Table("The largest that is answered exactly", ["kind", *QUESTIONS.values()], lines, note),
            Table("Feature models, and a circuit", ["file", *QUESTIONS.values()], models),
        ]
    )


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    run = Run("reach", __doc__)
    kinds = [*KINDS, *(["features"] if os.environ.get("LBM_INSTANCES") else [])]
    keys = [(kind, question) for kind in kinds for question in QUESTIONS]
    run.show(section(run.each(keys[:2] if run.quick else keys, measure)))


if __name__ == "__main__":
    main()
