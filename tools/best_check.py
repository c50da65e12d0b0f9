"""Ask `best` thousands of generated questions of all shapes, and compare with what shares no code with it.

    python tools/best_check.py [--questions 10000] [--seed 0] [--seconds 0.5] [--minutes 20]

A theory mixes what theories are made of: clauses, cardinalities, parities, groups of which exactly one atom
is true, said by a formula or by clauses, groups tied one to one, that share atoms or lie inside one another;
hard and soft, with negative weights and with decimals, with evidence, without anything soft, and without a
model. Up to 16 atoms every world is looked at; up to 40, RC2 is asked, on an encoding of its own. Half of the
theories are kept from exact answers, and a tenth from RC2 too, so that searches and engines have to find and
prove; where `lbm.best` takes engines, they are asked in turn.

Whatever the route: every world is a model and loses what is said, `optimal` is the true optimum, no bound is
above it, and an error says that there is no world only where there is none. What is wrong is printed and
stored in tests/found/questions with as few statements as it needs; `make test` asks it again. The exit status
is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations, count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from pysat.examples.rc2 import RC2
from pysat.formula import WCNF

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import lbm
from lbm.errors import NoAnswer, NoWorlds

Node = Any
"""A formula: a literal as in DIMACS, or a list of a word and its parts."""

Bools = NDArray[np.bool_]

SCALE = 1000  # of weights: they have three decimals at most
ROUTES = ("any", "searched", "alone")
ALONE = 0.1  # seconds for a search that nobody ends with a proof
LOOKED_AT = 16  # atoms up to which every world is
FOUND = Path(__file__).resolve().parent.parent / "tests" / "found" / "questions"
ENGINES = ("own", "own,rc2", "own,cp-sat", "own,toulbar2", "rc2", "cp-sat", "toulbar2")


# --- questions ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """Statements over x1..xn with their weights in thousandths (None: hard), and how they are asked.

    ``route`` is one of ROUTES: any, not the exact one, or neither that one nor RC2.
    """

    atoms: int
    statements: tuple[tuple[int | None, Node], ...]
    given: Node = None
    top: int = 1
    every: bool = False
    route: str = "any"
    engines: str | None = None
    seed: int = 0

    @property
    def text(self) -> str:
        """The theory as it is read."""
        lines = [f"atoms {', '.join(f'x{i}' for i in range(1, self.atoms + 1))}"] if self.atoms else []
        for weight, node in self.statements:
            lines.append(written(node) if weight is None else f"{decimal(weight)}: {written(node)}")
        return "\n".join(lines) + "\n"


def decimal(weight: int) -> str:
    """Return thousandths as a decimal number, however many digits it has."""
    whole, rest = divmod(abs(weight), SCALE)
    return f"{'-' if weight < 0 else ''}{whole}" + (f".{rest:03d}".rstrip("0") if rest else "")


def written(node: Node) -> str:
    """Return a formula as text; parts that are more than a literal stand in parentheses."""
    if isinstance(node, int):
        return f"x{node}" if node > 0 else f"~x{-node}"
    kind, *parts = node
    if kind in ("true", "false"):
        return str(kind)
    if kind in ("atleast", "atmost", "exactly"):
        return f"{kind}({', '.join([str(parts[0]), *map(written, parts[1:])])})"
    inside = [written(part) if isinstance(part, int) else f"({written(part)})" for part in parts]
    if kind == "not":
        return f"~({written(parts[0])})"
    return f" {({'or': '|', 'and': '&', 'xor': '^', 'iff': '<->', 'implies': '->'})[kind]} ".join(inside)


def held(node: Node, worlds: Bools) -> Bools:
    """Return in which worlds, one a row, a formula is true."""
    if isinstance(node, int):
        return worlds[:, abs(node) - 1] == (node > 0)
    kind, *parts = node
    if kind in ("true", "false"):
        return np.full(len(worlds), kind == "true")
    if kind in ("atleast", "atmost", "exactly"):
        number = sum((held(part, worlds).astype(np.int64) for part in parts[1:]), np.zeros(len(worlds), int))
        bound = parts[0]
        return {"atleast": number >= bound, "atmost": number <= bound, "exactly": number == bound}[kind]
    below = [held(part, worlds) for part in parts]
    if kind == "not":
        return ~below[0]
    if kind == "or":
        return np.logical_or.reduce(below)
    if kind == "and":
        return np.logical_and.reduce(below)
    if kind == "xor":
        return np.logical_xor.reduce(below)
    return below[0] == below[1] if kind == "iff" else ~below[0] | below[1]


# --- shapes ------------------------------------------------------------------------------------------


class Shapes:
    """A theory being made, one shape after another."""

    def __init__(self, rng: random.Random, atoms: int) -> None:
        self.rng, self.atoms = rng, atoms
        self.statements: list[tuple[int | None, Node]] = []
        self.groups: list[list[int]] = []
        self.plain = rng.random() < 0.5  # weights are whole and positive
        self.heavy = rng.random() < 0.04  # some are past what fits 64 bits
        self.soft_left = 40  # more are left out: the oracle is to be quick
        self.largest = 6 if atoms <= LOOKED_AT else 12  # of groups

    def some(self, least: int, most: int) -> list[int]:
        """Return distinct literals."""
        number = min(self.atoms, self.rng.randint(least, most))
        return [self.sign(atom) for atom in self.rng.sample(range(1, self.atoms + 1), number)]

    def sign(self, atom: int) -> int:
        """Return the atom or its negation."""
        return atom if self.rng.random() < 0.5 else -atom

    def weight(self) -> int:
        """Return a weight in thousandths, not 0."""
        rng = self.rng
        if self.heavy and rng.random() < 0.3:
            return SCALE * rng.randint(1, 9) * 10 ** rng.randint(12, 30) + rng.randint(0, 1)
        if self.plain:
            return SCALE * rng.choice((1, 1, rng.randint(1, 10), rng.randint(1, 1000)))
        found = rng.choice((SCALE * rng.randint(1, 9), rng.randint(1, 3000), 10 ** rng.randint(0, 9), 250))
        return found if rng.random() < 0.7 else -found

    def say(self, node: Node, *, soft: float = 0.5) -> None:
        """Add a statement, soft with this probability."""
        if self.rng.random() >= soft:
            self.statements.append((None, node))
        elif self.soft_left:
            self.soft_left -= 1
            self.statements.append((self.weight(), node))

    def clauses(self) -> None:
        """Clauses of up to four literals."""
        for _ in range(self.rng.randint(1, 2 * self.atoms)):
            some = self.some(1, 4)
            self.say(["or", *some] if len(some) > 1 else some[0], soft=0.6 if len(some) > 1 else 0.95)

    def units(self) -> None:
        """Something soft about many atoms."""
        for atom in range(1, self.atoms + 1):
            if self.rng.random() < 0.6:
                self.say(self.sign(atom), soft=1.0)

    def cardinality(self) -> None:
        """So many of some literals."""
        some = self.some(2, 8)
        kind = self.rng.choice(("atleast", "atmost", "exactly"))
        self.say([kind, self.rng.randint(0, len(some)), *some], soft=0.4)

    def parity(self) -> None:
        """An odd number of some literals."""
        some = self.some(2, 6)
        self.say(["xor", *some], soft=0.4)

    def group(self) -> None:
        """Exactly one of some atoms, said by a formula or by clauses; values are liked and disliked."""
        free = [atom for atom in range(1, self.atoms + 1) if not any(atom in group for group in self.groups)]
        rng = self.rng
        if len(free) < 2 or rng.random() < 0.15:  # it shares atoms with others
            free = list(range(1, self.atoms + 1))
        number = min(len(free), rng.randint(1, self.largest))
        atoms = rng.sample(free, number)
        self.groups.append(atoms)
        if rng.random() < 0.5:
            self.say(["exactly", 1, *atoms], soft=0.05)
        else:
            self.statements.append((None, ["or", *atoms] if number > 1 else atoms[0]))
            self.statements += [(None, ["or", -a, -b]) for a, b in combinations(atoms, 2)]
        for atom in atoms:
            if rng.random() < 0.5:
                self.say(self.sign(atom), soft=1.0)

    def nested(self) -> None:
        """A group inside another one, or one whose member stands for a group."""
        if not self.groups:
            self.group()
        rng, group = self.rng, self.rng.choice(self.groups)
        inner = rng.sample(group, rng.randint(1, len(group)))
        if rng.random() < 0.5:
            self.say([rng.choice(("exactly", "atmost")), 1, *inner], soft=0.3)
        else:
            others = [atom for atom in range(1, self.atoms + 1) if atom not in group]
            if others:
                self.say(["iff", rng.choice(others), ["or", *inner, *inner[:1]]], soft=0.0)

    def tied(self) -> None:
        """A second group that is a one-to-one function of the first, by equivalences or by clauses."""
        rng = self.rng
        taken = {atom for group in self.groups for atom in group}
        free = [atom for atom in range(1, self.atoms + 1) if atom not in taken]
        size = min(len(free) // 2, rng.randint(2, self.largest))
        if size < 2:
            return
        chosen = rng.sample(free, 2 * size)
        one, other = chosen[:size], chosen[size:]
        self.groups += [one, other]
        for group in (one, other):
            if rng.random() < 0.5:
                self.say(["exactly", 1, *group], soft=0.0)
            else:
                self.statements.append((None, ["or", *group]))
                self.statements += [(None, ["or", -a, -b]) for a, b in combinations(group, 2)]
        how = rng.random()
        if how < 0.3:
            self.statements += [(None, ["iff", a, b]) for a, b in zip(one, other, strict=True)]
        elif how < 0.5:
            self.statements += [(None, ["implies", a, b]) for a, b in zip(one, other, strict=True)]
        else:
            wrong = [(a, b) for i, a in enumerate(one) for j, b in enumerate(other) if i != j]
            self.statements += [(None, ["or", -a, -b]) for a, b in wrong]
        for a in one:
            for b in rng.sample(other, 1):
                self.say(["or", -a, -b] if rng.random() < 0.5 else self.sign(b), soft=1.0)

    def pairs(self) -> None:
        """Costs of pairs of values of two groups, as in frequency assignment."""
        while len(self.groups) < 2:
            self.group()
        one, other = self.rng.sample(self.groups, 2)
        for a in one:
            for b in other:
                if a != b and self.rng.random() < 0.5:
                    self.say(["or", -a, -b], soft=0.85)

    def formula(self) -> None:
        """Formulae inside formulae."""

        def build(depth: int) -> Node:
            if depth == 0 or self.rng.random() < 0.2:
                return self.sign(self.rng.randint(1, self.atoms))
            kind = self.rng.choice(("and", "or", "xor", "iff", "implies", "not", "atleast", "exactly"))
            if kind == "not":
                return ["not", build(depth - 1)]
            if kind in ("atleast", "exactly"):
                number = self.rng.randint(2, 4)
                return [kind, self.rng.randint(0, number), *(build(depth - 1) for _ in range(number))]
            return [kind, build(depth - 1), build(depth - 1)]

        for _ in range(self.rng.randint(1, 4)):
            self.say(build(self.rng.randint(1, 3)), soft=0.6)

    def empty(self) -> None:
        """Soft formulae that say nothing."""
        self.say([self.rng.choice(("true", "false"))], soft=1.0)

    def contradiction(self) -> None:
        """Two formulae that no world satisfies."""
        some = self.some(2, 5)
        k = self.rng.randint(1, len(some))
        self.statements += [(None, ["atleast", k, *some]), (None, ["atmost", k - 1, *some])]


def question(rng: random.Random, seed: int) -> Question:
    """Return a question; its search has this seed."""
    size = rng.random()
    atoms = (
        rng.randint(1, 9) if size < 0.5 else rng.randint(10, LOOKED_AT) if size < 0.8 else rng.randint(18, 40)
    )
    made = Shapes(rng, atoms)
    kinds = [made.clauses, made.units, made.cardinality, made.parity, made.group, made.nested, made.tied]
    kinds += [made.pairs, made.formula, made.group, made.tied, made.pairs]
    for shape in rng.choices(kinds, k=rng.randint(1, 6)):
        shape()
    if rng.random() < 0.1:
        made.empty()
    if rng.random() < 0.04:
        made.contradiction()
    if rng.random() < 0.05:  # nothing is soft
        made.statements = [(None, node) for _, node in made.statements]
    if rng.random() < 0.5:
        rng.shuffle(made.statements)
    given: Node = None
    if rng.random() < 0.2:
        some = made.some(1, 3)
        given = [rng.choice(("and", "or", "xor")), *some] if len(some) > 1 else some[0]
    small = atoms <= LOOKED_AT
    more = rng.random()
    return Question(
        atoms,
        tuple(made.statements),
        given,
        top=rng.randint(2, 5) if small and more < 0.08 else 1,
        every=small and 0.08 <= more < 0.14,
        route=rng.choices(ROUTES, (5, 4, 1))[0],
        seed=seed,
    )


# --- the truth ---------------------------------------------------------------------------------------


@dataclass
class Truth:
    """What is true of a question: the least loss, in thousandths, None if there is no world."""

    asked: Question
    least: int | None = field(init=False)
    every: list[int] | None = None  # the losses of all models, least first, where all were looked at

    def __post_init__(self) -> None:
        n = self.asked.atoms
        if n <= LOOKED_AT:
            numbers = np.arange(1 << n)
            worlds = (numbers[:, None] >> np.arange(n) & 1).astype(bool)
            lost, right = self.losses(worlds)
            self.every = sorted(lost[right].tolist())
            self.least = self.every[0] if self.every else None
        else:
            self.least = asked_of_rc2(self.asked)

    def losses(self, worlds: Bools) -> tuple[NDArray[Any], Bools]:
        """Return what worlds lose, and which of them are models that keep the evidence."""
        large = sum(abs(weight or 0) for weight, _ in self.asked.statements) >= 1 << 62
        lost = np.zeros(len(worlds), object if large else np.int64)
        right = np.ones(len(worlds), bool)
        if self.asked.given is not None:
            right &= held(self.asked.given, worlds)
        for weight, node in self.asked.statements:
            kept = held(node, worlds)
            if weight is None:
                right &= kept
            elif weight > 0:
                lost[~kept] += weight
            else:
                lost[kept] -= weight
        return lost, right

    @cached_property
    def text(self) -> str:
        """The theory as it is read."""
        return self.asked.text


def asked_of_rc2(asked: Question) -> int | None:
    """Return the least loss that RC2 finds, formulae written out as clauses here."""
    formula = WCNF()
    numbers = count(asked.atoms + 1)
    known: dict[str, int] = {}

    def name(node: Node) -> int:
        """Return a literal that is true where a formula is, in both directions."""
        if isinstance(node, int):
            return node
        key = json.dumps(node)
        if key not in known:
            known[key] = define(node)
        return known[key]

    def define(node: Node) -> int:
        kind, *parts = node
        if kind == "not":
            return -name(parts[0])
        if kind in ("true", "and", "false", "or"):
            conjunctive = kind in ("true", "and")
            below = [name(part) if conjunctive else -name(part) for part in parts]
            own = next(numbers)
            for literal in below:
                formula.append([-own, literal])
            formula.append([own, *(-literal for literal in below)])
            return own if conjunctive else -own
        if kind == "implies":
            return name(["or", -name(parts[0]), name(parts[1])])
        if kind == "iff":
            return -name(["xor", *parts])
        if kind == "xor":
            total = name(parts[0])
            for part in parts[1:]:
                a, b, own = total, name(part), next(numbers)
                for clause in ([-own, a, b], [-own, -a, -b], [own, -a, b], [own, a, -b]):
                    formula.append(clause)
                total = own
            return total
        bound, below = parts[0], [name(part) for part in parts[1:]]
        if kind == "exactly":
            return name(["and", name(["atleast", bound, *below]), name(["atmost", bound, *below])])
        return reached(below, bound) if kind == "atleast" else -reached(below, bound + 1)

    def reached(below: Sequence[int], bound: int) -> int:
        """Return a literal that is true where at least so many literals are: one sum after another."""
        sums = [name(["true"]), *[-name(["true"])] * max(0, bound)]
        for literal in below:
            sums = [
                sums[0],
                *(name(["or", sums[k], name(["and", sums[k - 1], literal])]) for k in range(1, len(sums))),
            ]
        return sums[max(0, bound)]

    for weight, node in asked.statements:
        if weight is None:
            formula.append([name(node)])
        else:
            formula.append([name(node) if weight > 0 else -name(node)], weight=abs(weight))
    if asked.given is not None:
        formula.append([name(asked.given)])
    with RC2(formula) as solver:
        return None if solver.compute() is None else int(solver.cost)


def generated(seed: int) -> tuple[Question, Truth]:
    """Return the question of a seed and what is true of it; most theories have a model."""
    rng = random.Random(f"best {seed}")
    while True:
        asked = question(rng, seed)
        known = Truth(asked)
        if known.least is not None or rng.random() < 0.3:
            return asked, known


# --- asking ------------------------------------------------------------------------------------------


@contextmanager
def kept_to(route: str) -> Iterator[None]:
    """Let no theory be small enough for an exact answer, and no process of RC2 be started."""
    from lbm.reasoning.search import hearing, routes

    def refused(*_: Any, **__: Any) -> None:
        raise OSError("no process of RC2 is wanted here")

    with ExitStack() as stack:
        if route != "any":
            stack.enter_context(patch.object(routes, "MAX_EXACT", -1))
        if route == "alone":
            stack.enter_context(patch.object(hearing, "maxsat", refused))
        yield


def takes_engines() -> bool:
    """Whether `lbm.best` can be told whom to ask."""
    return "engines" in inspect.signature(lbm.best).parameters


def examine(asked: Question, seconds: float = 0.5, truth: Truth | None = None) -> tuple[str, list[str]]:
    """Ask a question; return how it ended, in a word, and what is wrong."""
    known = truth or Truth(asked)
    theory = lbm.Theory.parse(known.text)
    told: list[Any] = []
    engines = asked.engines or ("own" if asked.route == "alone" and takes_engines() else None)
    options: dict[str, Any] = {} if engines is None else {"engines": engines}
    try:
        with kept_to(asked.route):
            found = lbm.best(
                theory,
                given=None if asked.given is None else lbm.parse(written(asked.given)),
                top=asked.top,
                every=asked.every,
                seconds=min(seconds, ALONE) if asked.route == "alone" else seconds,
                seed=asked.seed,
                on_better=told.append,
                **options,
            )
    except NoWorlds:
        return "no world", [] if known.least is None else [f"no world, it says; one loses {known.least}"]
    except NoAnswer:
        return "no answer", []
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return "failed", [f"{type(error).__name__}: {error}"]
    wrong = []
    for one in [*told, found]:
        wrong += wrong_with(one, asked, known)
    if told and any(
        later.lost > earlier.lost for earlier, later in zip(told, [*told[1:], found], strict=True)
    ):
        wrong.append("worlds that were told get worse")
    return f"{'proven' if found.optimal else 'found'}, {found.method}", list(dict.fromkeys(wrong))


def wrong_with(found: Any, asked: Question, known: Truth) -> list[str]:
    """Return what is wrong with one answer."""
    if known.least is None:
        return ["a world, though there is none"]
    names = [f"x{i}" for i in range(1, asked.atoms + 1)]
    wrong = []
    worlds = np.array([[world[name] for name in names] for world in found.worlds], dtype=bool)
    lost, right = known.losses(worlds)
    losses = lost.tolist()
    if not right.all():
        wrong.append("a world that is no model")
    said = Fraction(found.lost) * SCALE
    if said != losses[0]:
        wrong.append(f"it says that the best world loses {said}, and it loses {losses[0]}")
    if losses != sorted(losses):
        wrong.append(f"worlds in the wrong order: they lose {losses}")
    if len({world.tobytes() for world in worlds}) < len(worlds):
        wrong.append("a world twice")
    if losses[0] < known.least:
        wrong.append(f"the oracle is wrong: {losses[0]} is below its {known.least}")
    if Fraction(found.bound) * SCALE > known.least:
        wrong.append(f"the bound is {Fraction(found.bound) * SCALE}, and the optimum {known.least}")
    if found.optimal and losses[0] != known.least:
        wrong.append(f"{losses[0]} is said to be optimal, and the optimum is {known.least}")
    if found.optimal and asked.top > 1 and known.every is not None:
        wanted = known.every[: asked.top]
        if losses != wanted:
            wrong.append(f"the best {asked.top} lose {wanted}, not {losses}")
    if asked.every and known.every is not None and found.complete:
        number = known.every.count(known.least)
        if len(worlds) != number:
            wrong.append(f"{number} worlds are best, not {len(worlds)}")
    return wrong


# --- failures ----------------------------------------------------------------------------------------


def shrunk(asked: Question, still: Callable[[Question], bool], tries: int = 200) -> Question:
    """Return the question with as few statements as it needs to be answered wrongly."""
    size = max(1, len(asked.statements) // 2)
    while tries > 0:
        for first in range(0, len(asked.statements), size):
            fewer = asked.statements[:first] + asked.statements[first + size :]
            tries -= 1
            if still(smaller := replace(asked, statements=fewer)):
                asked = smaller
                break
        else:
            if size == 1:
                break
            size //= 2
    if asked.given is not None and still(smaller := replace(asked, given=None)):
        asked = smaller
    return asked


def store(asked: Question, said: str, place: Path = FOUND) -> Path:
    """Write a question that was answered wrongly to a file of its own, and return the file."""
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"best": asdict(asked), "said": said, "text": asked.text}, indent=1) + "\n"
    file = place / f"best-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    file.write_text(text, encoding="utf-8")
    return file


def replay(told: dict[str, Any], seconds: float = 0.5) -> list[str]:
    """Ask a stored question again, and return what is wrong now."""
    given = dict(told["best"])
    given["statements"] = tuple((weight, node) for weight, node in given["statements"])
    if not takes_engines():
        given["engines"] = None
    return examine(Question(**given), seconds)[1]


def ask_each(
    seed: int, engines: Sequence[str] = (), seconds: float = 0.5, route: str | None = None
) -> Iterator[tuple[Question, str, list[str]]]:
    """Ask the question of a seed as it is, and of one of these engines; yield how each ended."""
    asked, truth = generated(seed)
    sides = [asked if route is None else replace(asked, route=route)]
    if engines:
        engine = random.Random(f"engine {seed}").choice(list(engines))
        sides.append(replace(asked, engines=engine, route="searched", top=1, every=False))
    for side in sides:
        yield side, *examine(side, seconds, truth)


@cache
def installed() -> list[str]:
    """Return the choices of engines that can be asked here."""
    if not takes_engines():
        return []
    theory, found = lbm.Theory.parse("x1 | x2\n1: ~x1"), []
    for choice in ENGINES:
        try:
            lbm.best(theory, engines=choice, seconds=5.0)  # type: ignore[call-arg]
        except (ValueError, ImportError) as error:
            print(f"not asked: {choice}: {error}", flush=True)
            continue
        found.append(choice)
    return found


def main() -> int:
    """Ask questions until there are enough or time is over, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--questions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first question")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each search")
    parser.add_argument("--minutes", type=float, default=20.0, help="begin no question after so many")
    parser.add_argument(
        "--engines-every", type=int, default=2, metavar="N", help="ask an engine each N questions"
    )
    parser.add_argument("--route", choices=ROUTES, help="for all questions; by default as it comes")
    parser.add_argument("--slow", action="store_true", help="print questions that took long")
    chosen = parser.parse_args()
    warnings.simplefilter("error")
    engines = installed()
    start = time.monotonic()
    ended: Counter[str] = Counter()
    failures = number = 0
    for number in range(chosen.questions):
        seed = chosen.seed + number
        begun = time.monotonic()
        if begun - start > 60 * chosen.minutes:
            break
        some = engines if number % chosen.engines_every == 0 else ()
        for asked, how, wrong in ask_each(seed, some, chosen.seconds, chosen.route):
            ended[f"{asked.engines or 'by default'}, {asked.route} route: {how}"] += 1
            if wrong:
                failures += 1

                def still(other: Question) -> bool:
                    return bool(examine(other, chosen.seconds)[1])

                small = shrunk(asked, still)
                file = store(small, "; ".join(wrong))
                print(f"seed {seed}: {'; '.join(wrong)}\n  stored: {file}\n{small.text}", flush=True)
        if chosen.slow and (took := time.monotonic() - begun) > 2 * chosen.seconds + 0.5:
            print(f"seed {seed}: {took:.1f} s, {generated(seed)[0].atoms} atoms", flush=True)
        if number % 500 == 499:
            print(f"{number + 1} questions, {time.monotonic() - start:.0f} s, {failures} wrong", flush=True)
    for how, times in sorted(ended.items()):
        print(f"{times:7d}  {how}")
    asked_in_all = sum(ended.values())
    print(f"{asked_in_all} answers in {(time.monotonic() - start) / 60:.1f} minutes: {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
