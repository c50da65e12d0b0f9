"""Relational problems that come with the package: trains, a family, and positions of chess.

Each is kept as the text of the four files that Aleph and Progol read, so that it can be written to a
directory, changed there, and given to ``lbm induce`` like any other problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import permutations
from pathlib import Path
from typing import Final

import numpy as np

from lbm.datasets.chess import COORDINATES, PIECES, illegal_positions
from lbm.datasets.dataset import Seed
from lbm.errors import FileError
from lbm.knowledge.packed import write_whole
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.operators import Operators
from lbm.relations.prolog.reader import read_clauses

Files = Mapping[str, str]
"""The text of each file by its name: bk.pl, pos.pl, neg.pl and modes.pl."""


# --- ten trains ----------------------------------------------------------------------------------

# Each car, from the engine on: its train, length, shape, roof, wheels, what it carries and how many.
# [Larson & Michalski 1977]
_CARS: Final = """\
east1 long rectangle open 2 rectangle 3
east1 short rectangle flat 2 triangle 1
east1 long rectangle open 3 hexagon 1
east1 short rectangle open 2 circle 1
east2 short u_shaped open 2 triangle 1
east2 short u_shaped open 2 rectangle 1
east2 short rectangle flat 2 circle 2
east3 short rectangle open 2 circle 1
east3 short hexagon flat 2 triangle 1
east3 long rectangle flat 3 triangle 1
east4 short u_shaped open 2 triangle 1
east4 short double open 2 triangle 1
east4 short ellipse arched 2 rectangle 1
east4 short rectangle open 2 rectangle 1
east5 short double open 2 triangle 1
east5 long rectangle flat 3 rectangle 1
east5 short rectangle flat 2 circle 1
west6 long rectangle flat 2 circle 3
west6 short rectangle open 2 triangle 1
west7 short double open 2 circle 1
west7 short u_shaped open 2 triangle 1
west7 long rectangle jagged 2 nothing 0
west8 long rectangle flat 3 rectangle 1
west8 short u_shaped open 2 circle 1
west9 short u_shaped open 2 circle 1
west9 long rectangle jagged 2 rectangle 1
west9 short rectangle open 2 rectangle 1
west9 short u_shaped open 2 circle 1
west10 short u_shaped open 2 rectangle 1
west10 long rectangle open 2 rectangle 2
"""

_TRAIN_MODES: Final = (
    "* has_car(+train, -car)",
    "1 long(+car)",
    "1 short(+car)",
    "1 open(+car)",
    "1 closed(+car)",
    "1 shape(+car, #shape)",
    "1 roof(+car, #roof)",
    "1 wheels(+car, #number)",
    "1 load(+car, #load, #number)",
)


def _train_files() -> Files:
    facts = ["% Cars are numbered from the engine.", "closed(Car) :- roof(Car, Roof), Roof \\= open.", ""]
    cars = Counter[str]()
    for line in _CARS.splitlines():
        train, length, shape, roof, wheels, load, count = line.split()
        cars[train] += 1
        car = f"{train}_{cars[train]}"
        facts.append(f"has_car({train}, {car}).")
        facts += [f"{length}({car}).", f"shape({car}, {shape}).", f"roof({car}, {roof})."]
        facts += [f"open({car})."] if roof == "open" else []
        facts += [f"wheels({car}, {wheels}).", f"load({car}, {load}, {count})."]
    facts.sort(key=lambda fact: fact.partition("(")[0] if fact.endswith(".") and ":-" not in fact else "")
    east, west = (
        [f"eastbound({train})." for train in cars if train.startswith(way)] for way in ("east", "west")
    )
    return _files(facts, east, west, _modes("eastbound(+train)", _TRAIN_MODES))


def trains() -> RelationalProblem:
    """Return Michalski's ten trains: five go east, five west, and the cars tell which.

    Every train that goes east, and no other, has a short car that is closed. [Larson & Michalski 1977]

    >>> trains().labels.count(True), len(trains().background.facts("has_car", 2))
    (5, 30)
    """
    return _problem("trains", _train_files())


# --- a family ------------------------------------------------------------------------------------

_COUPLES: Final = {
    "anna otto": "fritz greta",
    "berta paul": "heinz ida",
    "clara hans": "jakob karla",
    "dora emil": "lena moritz",
    "ida fritz": "nina oskar",
    "karla heinz": "pia",
    "lena jakob": "quirin rosa",
    "greta moritz": "sven tilda",
}
_WOMEN: Final = "anna berta clara dora greta ida karla lena nina pia rosa tilda".split()

_FAMILY_MODES: Final = (
    "* parent(+person, -person)",
    "* parent(-person, +person)",
    "1 male(+person)",
    "1 female(+person)",
)


def _family_files(*, seed: Seed = 0) -> Files:
    parents = [
        (a, b) for couple, children in _COUPLES.items() for a in couple.split() for b in children.split()
    ]
    people = sorted({person for pair in parents for person in pair})
    facts = [f"parent({a}, {b})." for a, b in parents]
    facts += [f"{'female' if person in _WOMEN else 'male'}({person})." for person in people]
    true = {(a, c) for a, b in parents for also, c in parents if b == also}
    false = [pair for pair in permutations(people, 2) if pair not in true]
    drawn = np.random.default_rng(seed).choice(len(false), size=2 * len(true), replace=False)
    positive = [f"grandparent({a}, {b})." for a, b in sorted(true)]
    negative = [f"grandparent({a}, {b})." for a, b in (false[number] for number in sorted(drawn.tolist()))]
    return _files(facts, positive, negative, _modes("grandparent(+person, +person)", _FAMILY_MODES))


def family(*, seed: Seed = 0) -> RelationalProblem:
    """Return a family of three generations: who is a grandparent of whom?

    All 28 such pairs are positive examples, twice as many of the others, drawn by the seed, negative ones.

    >>> problem = family()
    >>> len(problem.positive), len(problem.negative), len(problem.background.facts("parent", 2))
    (28, 56, 30)
    """
    return _problem("family", _family_files(seed=seed))


# --- positions of chess --------------------------------------------------------------------------


def _krk_files(n: int = 1000, *, seed: Seed = 0) -> Files:
    numbers = range(1, 9)
    facts = [f"lt({a}, {b})." for a in numbers for b in numbers if a < b]
    facts += [f"adj({a}, {b})." for a in numbers for b in numbers if abs(a - b) <= 1]
    places, illegal = illegal_positions(n, seed=seed)
    said = [
        f"illegal({', '.join(map(str, row))})." for row in np.column_stack(list(places.values())).tolist()
    ]
    modes: list[str] = []
    for axis in "fr":
        for one, two in permutations([piece + axis for piece in PIECES], 2):
            modes.append(f"1 lt(+{one}, +{two})")
            if COORDINATES.index(one) < COORDINATES.index(two):
                modes.append(f"1 adj(+{one}, +{two})")
    head = f"illegal({', '.join(f'+{name}' for name in COORDINATES)})"
    positive = [line for line, yes in zip(said, illegal.tolist(), strict=True) if yes]
    negative = [line for line, yes in zip(said, illegal.tolist(), strict=True) if not yes]
    return _files(facts, positive, negative, _modes(head, modes))


def krk_relations(n: int = 1000, *, seed: Seed = 0) -> RelationalProblem:
    """Return positions of king and rook against king, as :func:`lbm.datasets.krk` draws them, with relations.

    ``illegal(wkf, wkr, wrf, wrr, bkf, bkr)`` has the file and the rank of white king, white rook and black
    king, from 1 to 8; the background knows which numbers are less than others, and which are the same or
    neighbours.

    >>> len(krk_relations(100).examples)
    100
    """
    return _problem("krk", _krk_files(n, seed=seed))


# --- as files ------------------------------------------------------------------------------------

PROBLEMS: Final[Mapping[str, Callable[[], Files]]] = {
    "family": _family_files,
    "krk": _krk_files,
    "trains": _train_files,
}
"""The problems that have a name, with what makes their files."""


def problem_files(name: str) -> Files:
    """Return the text of the files of a problem: ``trains``, ``family`` or ``krk``.

    >>> print(problem_files("trains")["pos.pl"].splitlines()[0])
    eastbound(east1).
    """
    if name not in PROBLEMS:
        raise FileError(f"no problem {name!r} comes with lbm; those that do are {', '.join(PROBLEMS)}")
    return PROBLEMS[name]()


def named_problem(name: str) -> RelationalProblem:
    """Return a problem by its name: ``trains``, ``family`` or ``krk``."""
    return _problem(name, problem_files(name))


def write_problem(name: str, directory: str | Path) -> None:
    """Write the files of a problem to a directory, which is made if it is not there."""
    files = problem_files(name)
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot write {directory}: {error.strerror or error}") from error
    for file, text in files.items():
        write_whole(Path(directory) / file, [text])


def _files(background: list[str], positive: list[str], negative: list[str], modes: str) -> Files:
    lines = {"bk.pl": background, "pos.pl": positive, "neg.pl": negative}
    return {name: "\n".join(each) + "\n" for name, each in lines.items()} | {"modes.pl": modes}


def _modes(head: str, body: Iterable[str]) -> str:
    """Return declarations: the head's, one for each ``recall literal`` of a body, and what may define it."""
    declared = [mode.partition(" ")[::2] for mode in body]
    kinds = dict.fromkeys(_kind(literal) for _, literal in declared)
    lines = [f":- modeh(1, {head})."]
    lines += [f":- modeb({recall}, {literal})." for recall, literal in declared]
    lines += [f":- determination({_kind(head)}, {kind})." for kind in kinds]
    return "\n".join(lines) + "\n"


def _kind(literal: str) -> str:
    """Return name and arity, as in ``parent/2``."""
    name, _, arguments = literal.partition("(")
    return f"{name}/{arguments.count(',') + 1}"


def _problem(name: str, files: Files) -> RelationalProblem:
    operators = Operators()
    read = {
        file: read_clauses(text, source=f"{name}/{file}", operators=operators) for file, text in files.items()
    }
    return make_problem(name, read["bk.pl"], read["pos.pl"], read["neg.pl"], read["modes.pl"])
