"""A thousand different questions to one reasoner, with evidence that changes.

Theories are made from a seed, and none has an answer that could be remembered: no question is asked twice.

- `clauses`: 3,000 clauses of three literals in 125 components of 8 atoms;
- `rules`: 3,000 formulae like `a & (b | c) -> d` over 1,000 atoms in a row, each over some of 6 neighbours.

Both come with all formulae hard, and with half of them soft (weights 1 to 9). A question is a literal or a
formula of one place of the theory, with evidence about that place: up to nine literals or a disjunction, true
in a world that satisfies every hard formula. *Does it follow* is `entails` of the query and of its negation;
*ask* is the whole of `Reasoner.ask`: probability and status. The first question is apart: it is the first
that a new reasoner of a theory just read is asked, and includes making it.

With `--against SRC` another checkout answers the same questions in the same run, in a process of its own, the
two in turn, and their answers are compared: statuses exactly, probabilities to 1e-12. Times are CPU seconds
of each process and its helpers. A side that has spent 100 seconds on one kind of question is asked no more of
it; ratios are about the questions that both were asked. Run `lbm warm` in both checkouts first.

`--print clauses` (or `rules`, or either with `--soft`) prints a theory and ends.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from measuring.results import ROOT, Row, Run, Section, Table, quartiles, ratio, seconds, spread, times

TITLE = "Repeated questions"
QUESTIONS = 1000
FIRSTS = 5
PATIENCE = 100.0  # CPU seconds of a side for one kind of question about one theory
NEAR = 1e-12
KINDS = {"follows": "does it follow?", "ask": "ask"}
THEORIES = {"clauses": False, "clauses, half soft": True, "rules": False, "rules, half soft": True}

COMPONENTS, ATOMS = 125, 8
CLAUSES = 24  # of a component
IN_A_ROW, RULES, SPAN = 1000, 3000, 6

SHAPES: tuple[tuple[str, Callable[..., bool]], ...] = (
    ("{} & ({} | {}) -> {}", lambda a, b, c, d: not (a and (b or c)) or d),
    ("{} & ({} | {}) -> {}", lambda a, b, c, d: not (a and (b or c)) or d),
    ("{} & {} & ({} | {}) -> {} | {}", lambda a, b, c, d, e, f: not (a and b and (c or d)) or e or f),
    ("{} & {} -> {} | ({} & {})", lambda a, b, c, d, e: not (a and b) or c or (d and e)),
    ("{} & ({} <-> {}) -> {} | {}", lambda a, b, c, d, e: not (a and b == c) or d or e),
)
CLAUSE = ("{} | {} | {}", lambda a, b, c: a or b or c)


# --- theories and questions --------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A theory, a world that satisfies its hard formulae, and its places: atoms that belong together."""

    text: str
    world: dict[str, bool]
    places: tuple[tuple[str, ...], ...]

    @property
    def digest(self) -> str:
        """A short name that no other theory has."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


def literal(name: str, value: bool) -> str:
    return name if value else f"~{name}"


def formula(
    rng: random.Random, names: Sequence[str], shapes: Sequence[Any], world: dict[str, bool] | None
) -> str:
    """Return a formula over some of these atoms, true in the world if there is one."""
    while True:
        pattern, true = rng.choice(shapes)
        chosen = [(name, rng.random() < 0.5) for name in rng.sample(names, pattern.count("{}"))]
        if world is None or true(*(world[name] == value for name, value in chosen)):
            return str(pattern.format(*(literal(*one) for one in chosen)))


def make(theory: str, seed: int) -> Made:
    """Return the theory of a name and a seed."""
    rng = random.Random(f"{theory} {seed}")
    kind, soft = theory.partition(",")[0], THEORIES[theory]
    if kind == "clauses":
        places = tuple(tuple(f"c{c}_{i}" for i in range(ATOMS)) for c in range(COMPONENTS))
        spans = [place for place in places for _ in range(CLAUSES)]
        shapes: Sequence[Any] = (CLAUSE,)
    else:
        row = [f"r{i}" for i in range(IN_A_ROW)]
        places = tuple(tuple(row[i : i + 2 * SPAN]) for i in range(0, IN_A_ROW - 2 * SPAN + 1, SPAN))
        starts = [i * (IN_A_ROW - SPAN + 1) // RULES for i in range(RULES)]
        spans = [tuple(row[start : start + SPAN]) for start in starts]
        shapes = SHAPES
    world = {name: rng.random() < 0.5 for place in places for name in place}
    world |= {name: rng.random() < 0.5 for span in spans for name in span if name not in world}
    lines = []
    for span in spans:
        if soft and rng.random() < 0.5:
            lines.append(f"{rng.randint(1, 9)}: {formula(rng, span, shapes, None)}")
        else:
            lines.append(formula(rng, span, shapes, world))
    return Made("\n".join(lines) + "\n", world, places)


def questions(made: Made, seed: int) -> Iterator[tuple[str, str]]:
    """Yield queries with their evidence, no two alike."""
    rng, met = random.Random(f"questions {seed}"), set()
    while True:
        place = list(rng.choice(made.places))
        rng.shuffle(place)
        about, rest = place[:3], place[3:]
        query = literal(about[0], rng.random() < 0.5)
        if rng.random() < 0.25:
            query = f"{query} & ({literal(about[1], rng.random() < 0.5)} | {about[2]})"
        some = [literal(name, made.world[name]) for name in rest[: rng.randint(2, len(rest))]]
        given = " & ".join(some)
        if rng.random() < 0.25:
            given = f"({some[0]} | {literal(rest[-1], rng.random() < 0.5)}) & {' & '.join(some[1:])}"
        if (query, given) not in met:
            met.add((query, given))
            yield query, given


# --- one side, in a process of its own ---------------------------------------------------------------


def helpers() -> float:
    """Return the CPU seconds of helpers: those that have ended, and those that have not."""
    ended = os.times()
    total = ended.children_user + ended.children_system
    ticks = os.sysconf("SC_CLK_TCK")
    for path in Path("/proc/self/task").glob("*/children"):  # nothing, where there is no such directory
        with suppress(OSError, ValueError):
            for number in path.read_text().split():
                fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def answer(reasoner: Any, kind: str, query: str, given: str) -> Any:
    """Return what a reasoner says, as it is sent."""
    if kind == "follows":
        return [reasoner.entails(one, given=given) for one in (query, f"~({query})")]
    found = reasoner.ask(query, given=given, seed=0)
    return [found.status, found.probability]


def child() -> None:
    """Read a theory, then answer questions about it, a line of JSON each."""
    import lbm
    from lbm.errors import LbmError

    ring = [(f"a{i}", f"a{(i + 1) % 40}", f"a{(i + 3) % 40}") for i in range(40)]
    lines = [f"{a} & {b} -> {c}\n{i % 9 + 1}: {a} <-> ~{c}" for i, (a, b, c) in enumerate(ring)]
    for text in ("a0 -> a1\n1: a1 -> ~a0", "\n".join(lines)):
        small = lbm.Reasoner(lbm.Theory.parse(text))
        for kind in KINDS:  # so that nothing is imported while a clock runs
            answer(small, kind, "a1", "a0")
    print(json.dumps({"lbm": lbm.__file__}), flush=True)
    theory, reasoner = lbm.Theory.parse(json.loads(sys.stdin.readline())), None
    for line in sys.stdin:
        aside, begun = helpers(), time.process_time()
        try:
            if reasoner is None:
                reasoner = lbm.Reasoner(theory)
            said = answer(reasoner, *json.loads(line))
        except LbmError as error:  # that is an answer, too
            said = type(error).__name__
        took = time.process_time() - begun
        print(json.dumps({"cpu": took + helpers() - aside, "said": said}), flush=True)


class Side:
    """A checkout that is asked about a theory, in a process of its own."""

    def __init__(self, src: Path, theory: str) -> None:
        self.src = src
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child"],
            env={**os.environ, "PYTHONPATH": str(src), "LBM_BACKGROUND": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        found = Path(self._reply()["lbm"])
        if not found.is_relative_to(src):
            sys.exit(f"repeated.py: expected lbm from {src}, got {found}")
        self._send(theory)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()  # after the last question it ends by itself, and its helpers with it
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def ask(self, *question: str) -> Row:
        """Return what it says, and the CPU time it took."""
        self._send(question)
        return self._reply()

    def _send(self, said: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()

    def _reply(self) -> Row:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"repeated.py: the process that asks {self.src} has ended")
        return dict(json.loads(line))


# --- measuring ---------------------------------------------------------------------------------------


def measurer(sides: dict[str, Path], number: int) -> Callable[..., Row]:
    """Return what measures one theory: its first questions, or many of one kind."""

    def measure(what: str, theory: str, kind: str, seed: int) -> Row:
        made = make(theory, seed)
        rows: dict[str, list[Row]] = {side: [] for side in sides}
        with ExitStack() as stack:
            asked = {side: stack.enter_context(Side(src, made.text)) for side, src in sides.items()}
            for turn, question in enumerate(islice(questions(made, seed), 1 + number * (what == "many"))):
                order = list(asked.items())
                for side, each in order if turn % 2 else reversed(order):
                    if sum(row["cpu"] for row in rows[side]) < PATIENCE:
                        rows[side].append(each.ask(kind, *question))
        if what == "many":  # the first one is measured elsewhere
            rows = {side: some[1:] for side, some in rows.items()}
        return {"digest": made.digest, "wanted": number, "sides": rows}

    return measure


def same(one: Any, other: Any) -> bool | None:
    """Return whether two answers agree; None: a side has none."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other if one != "NoAnswer" and other != "NoAnswer" else None
    if None in (one[0], other[0]):  # no status in time
        return None
    first, second = one[1], other[1]
    return one[0] == other[0] and (first is second or abs(first - second) <= NEAR)


# --- what is shown -----------------------------------------------------------------------------------


def said(answers: Sequence[Any]) -> str:
    """Return how many answers there are of each sort."""
    names = {(True, False): "entailed", (False, True): "refuted", (False, False): "neither"}
    sorts: dict[str, int] = {}
    for one in answers:
        sort = one if isinstance(one, str) else names.get((one[0], one[1])) or str(one[0])
        sorts[sort] = sorts.get(sort, 0) + 1
    return ", ".join(f"{number} {sort}" for sort, number in sorted(sorts.items()))


def line(name: str, kind: str, some: list[Row]) -> tuple[list[str], list[str], float | None]:
    """Return two lines of tables, times and agreement, and the ratio of the medians."""
    sides = list(some[0]["sides"])
    mine = [[row for one in some for row in one["sides"][side]] for side in sides]
    both = [pair for one in some for pair in zip(*one["sides"].values(), strict=False)]
    middle = [quartiles(row["cpu"] for row in each)[1] for each in zip(*both, strict=True)]
    quicker = ratio(middle[1], middle[0]) if len(sides) == 2 else None
    cells = [f"{spread((row['cpu'] for row in each), seconds)}, {len(each):,} asked" for each in mine if each]
    agree = [same(*(row["said"] for row in pair)) for pair in both] if len(sides) == 2 else []
    verdict = f"{sum(one is True for one in agree):,} same, {sum(one is False for one in agree):,} other"
    if None in agree:
        verdict += f", {agree.count(None):,} with no answer of a side"
    times_said = [name, KINDS[kind], *cells, *([] if quicker is None else [times(quicker)])]
    answers = [name, KINDS[kind], said([row["said"] for row in mine[0]]), *([verdict] if agree else [])]
    return times_said, answers, quicker


def section(rows: list[Row]) -> Section:
    tables: dict[str, list[list[str]]] = {"first": [], "many": []}
    agreed: list[list[str]] = []
    quicker: dict[tuple[str, str], list[float]] = {}
    sides = list(rows[0]["sides"]) if rows else []
    both = len(sides) == 2
    for what, lines in tables.items():
        for name in THEORIES:
            for kind in KINDS:
                some = [row for row in rows if row["key"][:3] == [what, name, kind]]
                if some:
                    shown, answers, found = line(name, kind, some)
                    lines.append(shown)
                    if found is not None:
                        quicker.setdefault((what, kind), []).append(found)
                    if what == "many":
                        agreed.append(answers)
    columns = ["theory", "question", *sides, *(["times quicker"] if both else [])]
    limits = {("many", "follows"): 50.0, ("many", "ask"): 5.0}
    wanted = [
        (f"{KINDS[kind]!r} at least {limit:g} times quicker", min(quicker[what, kind]) >= limit)
        for (what, kind), limit in limits.items()
        if (what, kind) in quicker
    ]
    firsts = [one for (what, _), some in quicker.items() if what == "first" for one in some]
    if firsts:
        wanted.append(("the first question no slower (by more than a tenth)", min(firsts) >= 0.9))
    few = [row for row in rows if row["key"][0] == "many"]
    short = [row for row in few if any(len(each) < row["wanted"] for each in row["sides"].values())]
    note = (
        f"A side stops after {PATIENCE:g} s of a kind of question: it is then asked fewer." if short else ""
    )
    return Section(
        [
            Table(
                "CPU time of a question, the reasoner having been asked before", columns, tables["many"], note
            ),
            Table("CPU time of the first question", columns, tables["first"]),
            Table("Answers", ["theory", "question", sides[0], *(["both sides"] if both else [])], agreed)
            if sides
            else Table("Answers", [], []),
        ],
        wanted,
    )


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--against", type=Path, metavar="SRC", help="the src of another checkout")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="of a kind, about each theory")
    parser.add_argument("--print", choices=("clauses", "rules"), help="print a theory, and end")
    parser.add_argument("--soft", action="store_true", help="print the one that is half soft")


def sources(src: Path) -> str:
    """Return a digest of a checkout."""
    found = hashlib.sha256()
    for path in sorted((src / "lbm").rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        child()
        return
    run = Run("repeated", __doc__, options)
    chosen = run.options
    if chosen.print:
        print(make(f"{chosen.print}, half soft" if chosen.soft else chosen.print, 0).text, end="")
        return
    sides = {"this checkout": ROOT / "src"}
    if chosen.against is not None:
        sides["the other"] = chosen.against.resolve()
        run.head["against"] = sources(sides["the other"])
    number = min(20, chosen.questions) if run.quick else chosen.questions
    run.head["questions"] = number
    for name in THEORIES:
        made = make(name, 0)
        first = made.text.splitlines()
        print(f"{name}: {len(first):,} formulae over {len(made.world):,} atoms, {made.digest}", end="; ")
        print(f"the first ones are {'   '.join(first[:3])}")
    keys = [
        ("first", name, kind, seed)
        for name in THEORIES
        for kind in KINDS
        for seed in range(run.number(FIRSTS))
    ]
    keys += [("many", name, kind, 0) for name in THEORIES for kind in KINDS]
    run.show(section(run.each(keys, measurer(sides, number))))


if __name__ == "__main__":
    main()
