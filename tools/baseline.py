"""Store what the command line answers to thousands of questions, and compare two such stores.

    python tools/baseline.py OUT.json [--against OTHER.json] [--src SRC] [--only TEXT]
    python tools/baseline.py OUT.json --against OTHER.json --stored        # both are there: only compare

For changes that must leave every answer as it is. The corpus: every theory in examples/, every file of
LBM_INSTANCES in a format that lbm reads, and 200 theories made from fixed seeds. Each is asked every question
of the command line with --json: seeds are fixed and chains bounded in sweeps. Questions are asked in this
process, by the function that `python -m lbm` calls, because a process for each would take hours; budgets of
time then count from the call, memory is not bounded, and nothing else differs.

Stored for each command: exit status, standard output as JSON (its digest, where it is long), standard error,
digests of files written, and CPU seconds, which are not compared. --against prints every difference with its
command, and the exit status is 1 if there is one: floats may differ by NEAR, all else must be equal.
LEFT_OUT names what depends on the clock: not asked, or not compared.

lbm is imported from --src, else from PYTHONPATH, so that any checkout can be asked; run `lbm warm` there
first, or chains take minutes. The examples are always those beside this file.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import io
import json
import math
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
FORMATS = (".cnf", ".dimacs", ".lbm", ".wcnf")
GENERATED = 200
NEAR = 1e-12
"""How far floats may differ, relative to those above 1."""

LIMIT = 30.0
"""Seconds after which a question is interrupted; one that takes half of them is called late."""

SLOW = 2.0
"""CPU seconds past which a question is printed: too many of them, and a run takes too long."""

LONG = 50_000
"""Characters of standard output past which a digest of it is stored."""

SWEEPS = "100"

Given = dict[str, Any]


@dataclass(frozen=True)
class LeftOut:
    """What is not compared: some fields or, if none is named, the whole question, which is not asked.

    ``commands`` are words, ``files`` and ``options`` patterns; ``where`` looks at an answer, and what it says
    of one side is true for both.
    """

    commands: str
    files: str
    reason: str
    fields: str = ""
    options: str = "*"
    where: Callable[[Given], bool] = lambda _: True

    def covers(self, question: Sequence[str]) -> bool:
        """Return whether it is about this question."""
        command, file, *rest = question
        return (
            command in self.commands.split()
            and any(fnmatch.fnmatchcase(file, pattern) for pattern in self.files.split())
            and fnmatch.fnmatchcase(" ".join(rest), self.options)
        )


def _raced(answer: Given) -> bool:
    """Return whether the best world is the one of whoever was first."""
    return isinstance(answer["stdout"], dict) and answer["stdout"].get("method") != "exact"


SUMS = "count ask sample log-partition log-probability"
LONG_SUMS = "a sum of many seconds: on a busy machine half of the time is over before it ends"
UNPROVEN = "what is found before the time is over depends on the machine"
OPEN = "*/brock200_4.wcnf */t5pm3-7777-spn.wcnf */ubcsat-sample.wcnf"  # no best world is proven in 30 seconds

LEFT_OUT: tuple[LeftOut, ...] = (
    LeftOut(
        "best",
        "*",
        "a solver in a process beside and methods in this one race: all prove the same weight, which many "
        "worlds may have",
        fields="worlds broken method",
        where=_raced,
    ),
    LeftOut(SUMS, "*/s1196a_3_2.cnf */bmc-2810.cnf", LONG_SUMS),
    LeftOut("count", "*/jnh-sat.cnf */jnh-unsat.cnf", LONG_SUMS, options="--given*"),
    LeftOut(SUMS, f"{OPEN} */staff-scheduling-1.wcnf", UNPROVEN),
    LeftOut("best", f"{OPEN} */cap131-dir.wcnf", UNPROVEN),
    LeftOut("entails", f"{OPEN} */cap131-dir.wcnf", UNPROVEN, options="*preferred*"),
    LeftOut("ask", "*/cap131-dir.wcnf", UNPROVEN, options="*machine*"),
    LeftOut(f"models entails {SUMS}", "*/f600.cnf", "a SAT solver needs ten seconds and more"),
    LeftOut(
        "log-partition",
        "*/mpe-pedigree1.wcnf */flat200-1.cnf */Segmentation_11.lbm",
        "log Z is estimated for longer than LIMIT on a busy machine",
    ),
    LeftOut(
        "ask",
        "*/Segmentation_11.lbm",
        "chains do not agree before LIMIT ends them",
        options="* --seed 2 --json",
    ),
)


# --- formulae as nested tuples -----------------------------------------------------------------------

Term = tuple[Any, ...]
World = dict[str, bool]


def holds(term: Term, world: World) -> bool:
    """Return whether a formula is true in a world."""
    kind, *parts = term
    if kind == "atom":
        return world[parts[0]]
    if kind in ("atleast", "atmost", "exactly"):
        bound, number = parts[0], sum(holds(part, world) for part in parts[1:])
        return {"atleast": number >= bound, "atmost": number <= bound, "exactly": number == bound}[kind]
    values = [holds(part, world) for part in parts]
    if kind == "~":
        return not values[0]
    if kind == "&":
        return all(values)
    if kind == "|":
        return any(values)
    if kind == "^":
        return sum(values) % 2 == 1
    return values[0] == values[1] if kind == "<->" else not values[0] or values[1]


def text(term: Term) -> str:
    """Return a formula as it is written."""
    kind, *parts = term
    if kind == "atom":
        return str(parts[0])
    if kind in ("atleast", "atmost", "exactly"):
        return f"{kind}({', '.join([str(parts[0]), *map(text, parts[1:])])})"
    if kind == "~":
        return f"~{text(parts[0])}"
    return "(" + f" {kind} ".join(map(text, parts)) + ")"


def atom(name: str) -> Term:
    """Return an atom."""
    return ("atom", name)


def literal(rng: random.Random, name: str) -> Term:
    """Return an atom or its negation."""
    return atom(name) if rng.random() < 0.5 else ("~", atom(name))


def some(rng: random.Random, names: Sequence[str], number: int, *, near: bool) -> list[str]:
    """Return different atoms: any or, if they are to be near, of a few that follow one another."""
    number = min(number, len(names))
    if near:
        reach = min(len(names), number + 3)
        start = rng.randrange(len(names) - reach + 1)
        names = names[start : start + reach]
    return rng.sample(list(names), number)


def clause(rng: random.Random, names: Sequence[str], near: bool) -> Term:
    """Return a disjunction of one to three literals, mostly three."""
    return ("|", *(literal(rng, n) for n in some(rng, names, rng.choice((1, 2, 2, 3, 3, 3, 3)), near=near)))


def rule(rng: random.Random, names: Sequence[str], near: bool) -> Term:
    """Return a formula with a body, a head, and something nested."""
    a, b, c, *rest = (literal(rng, name) for name in (some(rng, names, 4, near=near) * 4)[:4])
    shapes: list[Term] = [
        ("->", ("&", a, ("|", b, c)), *rest),
        ("->", a, ("|", b, ("&", c, *rest))),
        ("<->", a, ("&", b, c)),
        ("->", ("&", a, b), c),
        ("|", ("&", a, b), ("&", c, *rest)),
        ("~", ("&", a, ("->", b, c))),
    ]
    return rng.choice(shapes)


def cardinality(rng: random.Random, names: Sequence[str], near: bool) -> Term:
    """Return a bound on how many atoms are true."""
    chosen = some(rng, names, rng.randint(3, 6), near=near)
    kind = rng.choice(("atleast", "atmost", "exactly"))
    return (kind, rng.randint(1, len(chosen) - 1), *map(atom, chosen))


def parity(rng: random.Random, names: Sequence[str], near: bool) -> Term:
    """Return an exclusive or of a few literals."""
    return ("^", *(literal(rng, name) for name in some(rng, names, rng.randint(2, 5), near=near)))


# --- theories made from seeds ------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A theory in a file, and what it is asked about."""

    file: str
    atoms: tuple[str, ...]
    query: str
    given: str
    world: str
    options: tuple[str, ...] = ()
    number: int = 0


SHAPES: dict[str, Sequence[Callable[[random.Random, Sequence[str], bool], Term]]] = {
    "hard": (clause, rule),
    "soft": (clause, rule),
    "mixed": (clause, rule, rule),
    "negative": (clause, rule),
    "cardinalities": (clause, cardinality),
    "parities": (clause, parity),
    "groups": (clause, rule),
    "clash": (clause, rule),
    "cnf": (clause,),
    "wcnf": (clause,),
}
WIDE = "wide"
HARD = {"hard": 1.0, "cnf": 1.0, "clash": 0.9, "soft": 0.0, "negative": 0.0, WIDE: 0.1}
"""The share of formulae that are hard, of those kinds that do not have the usual one."""


def weight(rng: random.Random, kind: str) -> str:
    """Return a weight as it is written."""
    size = rng.choice((str(rng.randint(1, 9)), f"{rng.uniform(0.1, 4):.2f}", f"{rng.randint(1, 40) / 8}"))
    return f"-{size}" if kind == "negative" and rng.random() < 0.5 else size


def made(number: int, place: Path) -> Case:
    """Write the theory of a number to a file, and return it with its questions.

    Hard formulae are true in a world that is drawn first, except where the kind is `clash`. Those of the kind
    `wide` are too entangled for exact methods; all of their clauses are true there, so that it is soon
    known to be the best world.
    """
    rng = random.Random(f"baseline {number}")
    kind = WIDE if number % 28 == 6 else tuple(SHAPES)[number % len(SHAPES)]
    atoms = rng.randint(65, 129) if number % 7 == 6 else rng.randint(3, 40)
    atoms = 80 if kind == WIDE else atoms
    names = [f"x{i}" for i in range(1, atoms + 1)]
    groups = [names[i : i + 4] for i in range(0, atoms - 3, 4)] if kind == "groups" else []
    world = {name: rng.random() < 0.5 for name in names}
    for group in groups:
        chosen = rng.choice(group)
        world.update({name: name == chosen for name in group})
    near = kind != WIDE and (atoms > 40 or rng.random() < 0.7)
    statements: list[tuple[str | None, Term]] = [(None, ("exactly", 1, *map(atom, g))) for g in groups]
    for _ in range(round(atoms * (5.5 if kind == WIDE else rng.uniform(0.7, 2.2)))):
        term = rng.choice(SHAPES.get(kind, (clause,)))(rng, names, near)
        hard = rng.random() < HARD.get(kind, 0.4)
        if not (hard or kind == WIDE) or kind == "clash" or holds(term, world):
            statements.append((None if hard else weight(rng, kind), term))
    if kind == "wcnf":  # whose newer form does not say how many atoms there are
        names = names[: max(abs(int(n)) for _, term in statements for n in _numbers(term).split())]
    suffix = {"cnf": "cnf", "wcnf": "wcnf"}.get(kind, "lbm")
    file = f"made/{number:03}-{kind}.{suffix}"
    writer = {"cnf": as_cnf, "wcnf": as_wcnf}.get(kind, as_lbm)
    (place / file).write_text(writer(statements, names), encoding="utf-8")
    return asked_about(file, names, rng, number, world)


def as_lbm(statements: Sequence[tuple[str | None, Term]], names: Sequence[str]) -> str:
    """Return a theory in our own format."""
    lines = [f"{text(term)}" if size is None else f"{size}: {text(term)}" for size, term in statements]
    return "\n".join([f"atoms {', '.join(names)}", *lines]) + "\n"


def _numbers(term: Term) -> str:
    return " ".join(p[1][1:] if p[0] == "atom" else f"-{p[1][1][1:]}" for p in term[1:]) + " 0"


def as_cnf(statements: Sequence[tuple[str | None, Term]], names: Sequence[str]) -> str:
    """Return hard clauses as DIMACS."""
    lines = [_numbers(term) for _, term in statements]
    return "\n".join([f"p cnf {len(names)} {len(lines)}", *lines]) + "\n"


def as_wcnf(statements: Sequence[tuple[str | None, Term]], names: Sequence[str]) -> str:
    """Return clauses as weighted DIMACS: the newer form, or the old one for theories of even size."""
    whole = [None if size is None else max(1, math.ceil(float(size))) for size, _ in statements]
    top = 1 + sum(size or 0 for size in whole)
    old = len(names) % 2 == 0
    firm = str(top) if old else "h"
    lines = [
        f"{firm if size is None else size} {_numbers(term)}"
        for size, (_, term) in zip(whole, statements, strict=True)
    ]
    return "\n".join([*([f"p wcnf {len(names)} {len(lines)} {top}"] if old else []), *lines]) + "\n"


# --- the corpus --------------------------------------------------------------------------------------


def asked_about(
    file: str,
    names: Sequence[str],
    rng: random.Random,
    number: int,
    world: World,
    options: tuple[str, ...] = (),
) -> Case:
    """Return a theory with a query and evidence: literals, or formulae of any shape."""
    shapes = (rule, clause, cardinality, parity) if len(names) > 3 else (clause,)
    query = literal(rng, rng.choice(names)) if number % 2 else rng.choice(shapes)(rng, names, True)
    evidence: Term = ("&", *(literal(rng, name) for name in some(rng, names, 2, near=False)))
    for _ in range(3 if number % 4 == 3 else 0):  # any formula, true in the world where that can be had
        evidence = rng.choice(shapes)(rng, names, True)
        if holds(evidence, world):
            break
    values = " ".join(f"{name}={world[name]:d}" for name in names)
    return Case(file, tuple(names), text(query), text(evidence), values, options, number)


def corpus(place: Path) -> Iterator[Case]:
    """Write all theories below a directory, and yield them."""
    (place / "made").mkdir()
    found = [("examples", path) for path in sorted((ROOT / "examples").rglob("*"))]
    instances = os.environ.get("LBM_INSTANCES")
    if instances:
        found += [("instances", path) for path in sorted(Path(instances).rglob("*"))]
    else:
        note("LBM_INSTANCES is not set: no public problems are asked")
    number = 0
    for kind, path in found:
        if path.suffix not in FORMATS:
            continue
        top = ROOT / "examples" if kind == "examples" else Path(str(instances))
        file = f"{kind}/{path.relative_to(top).as_posix()}"
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place / file)
        names = atoms_in(path)
        rng = random.Random(file)
        options = () if path.suffix == ".lbm" else ("--lenient",)
        yield asked_about(file, names, rng, number, dict.fromkeys(names, False), options)
        number += 1
    for number in range(GENERATED):
        yield made(number, place)


def atoms_in(path: Path) -> list[str]:
    """Return the names of a theory's atoms, as lbm reads them."""
    if path.suffix != ".lbm":
        lines = [line.split() for line in path.read_text().splitlines() if not line.startswith("c")]
        sizes = [int(line[2]) for line in lines if line[:1] == ["p"]]  # the newer .wcnf has no such line
        size = sizes[0] if sizes else max(abs(int(word)) for line in lines for word in line[1:])
        return [f"x{i}" for i in range(1, size + 1)]
    import lbm
    from lbm.errors import LbmError

    try:
        return [str(lbm.atom(name)) for name in lbm.Theory.load(path).atoms]
    except LbmError:  # knowledge about a domain that data fills: every command says so
        return list("abcd")


def questions(case: Case) -> Iterator[list[str]]:
    """Yield the commands about a theory: those that all get, and some of those that only some get."""
    query, given, world = case.query, ["--given", case.given], case.world
    few = ",".join(case.atoms[::2][:4])
    chains = ["--sweeps", SWEEPS, "--seed", str(case.number)]
    drawn = ["-n", "4", *chains]
    endings = ("lbm", "cnf", "wcnf")
    usual: list[list[str]] = [
        ["check"],
        ["compile"],
        ["models", "--limit", "4"],
        ["models", "--limit", "4", *given],
        ["count"],
        ["count", *given],
        ["best", "--seed", "1"],
        ["best", "--seed", "1", *given],
        ["ask", query, *chains],
        ["ask", query, *given, *chains],
        ["ask", query, "--why", *chains],
        ["ask", query, *given, "--why", *chains],
        ["entails", query],
        ["entails", query, *given],
        ["entails", query, "--mode", "preferred"],
        ["sample", *drawn],
        ["log-partition", "--seed", "1"],
        ["log-probability", world],
        ["convert", "-o", f"out/theory.{endings[case.number % 3]}"],
    ]
    machine = ["--distribution", "machine"]
    others: list[list[str]] = [
        ["models", "--limit", "300"],
        ["models", "--limit", "4", "--project", few],
        ["models", "--limit", "4", "--soft-as-hard"],
        ["count", "--project", few],
        ["count", "--soft-as-hard"],
        ["best", "--seed", "1", "--top", "3"],
        ["best", "--seed", "1", *(["--all"] if len(case.atoms) <= 20 else ["--top", "2"])],
        ["best", "--seed", "1", "--certify", *given],
        ["ask", query, *machine, *chains],
        ["ask", query, "--seed", "2"],
        ["ask", query, *given, "--method", "exact", "--temperature", "2.5"],
        ["ask", query, "--method", "collapsed", *chains],
        ["ask", query, *given, "--method", "tempered", *chains],
        ["ask", query, "--method", "gibbs", *machine, *chains],
        ["ask", query, "--soft-as-hard", "--why", *chains],
        ["ask", f"({query}"],
        ["ask", "nobody_said_this"],
        ["entails", query, *given, "--mode", "preferred"],
        ["entails", query, "--soft-as-hard"],
        ["entails", f"{case.atoms[0]} | ~{case.atoms[0]}"],
        ["sample", *given, *drawn],
        ["sample", "--method", "collapsed", *drawn],
        ["sample", "--method", "tempered", *given, *drawn],
        ["sample", "--method", "gibbs", *machine, *drawn],
        ["sample", "--method", "fast", *drawn],
        ["sample", "--distance", "-n", "100", *chains],
        ["log-partition", *given, "--temperature", "0.5", "--seed", "1"],
        ["log-partition", *machine],
        ["log-probability", world, *given],
        ["log-probability", world, *machine, "--confidence", "2"],
        ["compile", "--encoding", "penalty"],
        ["compile", "--method", "definitions"],
        ["compile", "--method", "diagram", "--no-merge", "--epsilon", "0.25"],
        ["compile", "-o", "out/machine.qubo"],
        ["convert", "-o", "out/old.wcnf", "--to", "wcnf-old"],
        ["convert", "-o", "out/again.lbm"],
    ]
    each = 6  # of them, so that in turn theories of every kind get all
    start = each * (case.number + case.number // len(SHAPES))
    usual += [others[(start + i) % len(others)] for i in range(each)]
    for command, *rest in usual:
        yield [command, case.file, *rest, *case.options, "--json"]


# --- asking ------------------------------------------------------------------------------------------


def interrupt(*_: object) -> None:
    """End a question that takes too long."""
    raise KeyboardInterrupt


def ask(main: Callable[[Sequence[str]], int], question: Sequence[str]) -> Given:
    """Return what a command says, as it is stored."""
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    streams = sys.stdout, sys.stderr
    said = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in streams]
    begun, cpu = time.monotonic(), time.process_time()
    sys.stdout, sys.stderr = said
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        status = main(question)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout, sys.stderr = streams
        for stream in said:
            stream.flush()
    out, error = (stream.buffer.getvalue().decode() for stream in said)  # type: ignore[attr-defined]
    found: Given = {"status": status, "stdout": parsed(out), "stderr": error}
    found["written"] = {path.name: digest(path.read_bytes()) for path in sorted(Path("out").iterdir())}
    found["seconds"] = round(time.process_time() - cpu, 3)
    if time.monotonic() - begun > LIMIT / 2:
        found["late"] = round(time.monotonic() - begun, 1)
    return found


def parsed(out: str) -> Any:
    """Return standard output as it is stored: JSON, or a digest of it."""
    if len(out) > LONG:
        return {"digest": digest(out.encode()), "characters": len(out)}
    with suppress(ValueError):
        return json.loads(out)
    return out


def digest(data: bytes) -> str:
    """Return a short name of bytes that no others have."""
    return hashlib.sha256(data).hexdigest()[:24]


def note(line: str) -> None:
    """Tell how far it is."""
    print(line, file=sys.stderr, flush=True)


def left_out(question: Sequence[str]) -> bool:
    """Return whether a question is not asked at all."""
    return any(not one.fields and one.covers(question) for one in LEFT_OUT)


def ask_all(only: str) -> Given:
    """Return all answers by command, in the order in which they were asked."""
    from lbm.__main__ import main

    signal.signal(signal.SIGALRM, interrupt)
    answers: Given = {}
    files: dict[str, str] = {}
    cpu = time.process_time()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            for case in corpus(Path(name)):
                files[case.file] = digest(Path(case.file).read_bytes())
                begun = time.process_time()
                for question in questions(case):
                    key = shlex.join(question)
                    if only in key and not left_out(question):
                        answers[key] = found = {"question": question, **ask(main, question)}
                        if found["seconds"] > SLOW or "late" in found:
                            note(f"    {found['seconds']:.1f} s, exit {found['status']}: {key[:200]}")
                if only in case.file or not only:
                    note(f"{case.file:44} {time.process_time() - begun:6.1f} s")
        finally:
            os.chdir(here)
    import lbm

    note(f"{len(answers):,} questions in {time.process_time() - cpu:.0f} CPU seconds")
    return {"lbm": str(Path(lbm.__file__).parent), "files": files, "answers": answers}


# --- comparing ---------------------------------------------------------------------------------------


def differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Yield where two values differ: floats by more than NEAR, anything else at all."""
    if type(one) is float and type(other) is float:
        if not abs(one - other) <= NEAR * max(1.0, abs(one), abs(other)) and repr(one) != repr(other):
            yield f"{path}: {one!r}, {other!r}"
    elif type(one) is not type(other):
        yield f"{path}: {shown(one)}, {shown(other)}"
    elif isinstance(one, dict):
        for key in dict.fromkeys([*one, *other]):
            below = f"{path}.{key}" if path else str(key)
            if key not in one or key not in other:
                yield f"{below}: only in the {'first' if key in one else 'second'}"
            else:
                yield from differences(one[key], other[key], below)
        if list(one) != list(other) and one.keys() == other.keys():
            yield f"{path}: the order of its keys"
    elif isinstance(one, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(left, right, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {shown(one)}, {shown(other)}"


def shown(value: Any) -> str:
    """Return a value in at most a line."""
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= 200 else f"{line[:200]}..."


def compared(answer: Given, question: Sequence[str], both: Sequence[Given]) -> Given:
    """Return the part of an answer that is compared; ``both`` are this one and the other."""
    kept = {name: answer[name] for name in ("status", "stdout", "stderr", "written")}
    for one in LEFT_OUT:
        if one.fields and one.covers(question) and any(one.where(each) for each in both):
            names = one.fields.split()
            kept = {name: value for name, value in kept.items() if name not in names}
            if isinstance(kept.get("stdout"), dict):
                kept["stdout"] = {name: value for name, value in kept["stdout"].items() if name not in names}
    return kept


def compare(one: Given, other: Given) -> int:
    """Print every difference, and return how many questions differ."""
    for file in [*one["files"], *(f for f in other["files"] if f not in one["files"])]:
        if one["files"].get(file) != other["files"].get(file):
            print(f"{file}: not the same file in both")
    first, second = (  # a question that came to be left out may be stored all the same
        {key: found for key, found in side["answers"].items() if not left_out(found["question"])}
        for side in (one, other)
    )
    differ: Counter[str] = Counter()
    for key in dict.fromkeys([*first, *second]):
        if key not in first or key not in second:
            found = [f"asked only in the {'first' if key in first else 'second'}"]
        else:
            both = [first[key], second[key]]
            question = first[key]["question"]
            found = list(differences(*(compared(each, question, both) for each in both)))
            if found and any("late" in each for each in both):
                found.append("(late: the clock may have decided)")
        if found:
            differ[key.split()[0]] += 1
            print("\n  ".join([f"lbm {key}", *found[:12], *(["..."] if len(found) > 12 else [])]))
    same = len(first.keys() | second.keys()) - differ.total()
    each = "".join(f"; {command} {number}" for command, number in differ.items())
    print(f"{same:,} questions with the same answer, {differ.total():,} with another{each}")
    return differ.total()


def main() -> int:
    """Ask, store and compare; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("out", type=Path, metavar="OUT.json", help="where answers are stored")
    parser.add_argument("--against", type=Path, metavar="OTHER.json", help="compare with these answers")
    parser.add_argument("--stored", action="store_true", help="OUT.json is there: ask nothing")
    parser.add_argument("--src", type=Path, help="where the package is; by default as PYTHONPATH says")
    parser.add_argument("--only", default="", metavar="TEXT", help="only commands that contain this")
    options = parser.parse_args()
    if options.src is not None:
        sys.path.insert(0, str(options.src.resolve()))
    if not options.stored:
        answers = ask_all(options.only)
        options.out.write_text(json.dumps(answers, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.against is None:
        return 0
    sides = [json.loads(path.read_text(encoding="utf-8")) for path in (options.against, options.out)]
    for side in sides:
        side["answers"] = {key: found for key, found in side["answers"].items() if options.only in key}
    return 1 if compare(*sides) else 0


if __name__ == "__main__":
    sys.exit(main())
