"""Generated problems of the kinds that people bring, with weights: everything depends on its numbers only.

Each is clauses with weights or text in our language, never both; ``families`` lists them in sizes for tests,
for tables, and larger ones that are only reported.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from pathlib import Path

import numpy as np

from measuring.problems import Problem, pigeonholes, problem, roster


@dataclass
class Rows:
    """Clauses being collected; a weight of 0 is hard."""

    atoms: int = 0
    clauses: list[tuple[int, ...]] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)

    def new(self, number: int) -> list[int]:
        """Return new atoms."""
        first = self.atoms + 1
        self.atoms += number
        return list(range(first, self.atoms + 1))

    def hard(self, *literals: int) -> None:
        """Add a hard clause."""
        self.clauses.append(literals)
        self.weights.append(0)

    def soft(self, weight: int, *literals: int) -> None:
        """Add a soft clause; one of weight 0 says nothing."""
        if weight:
            self.clauses.append(literals)
            self.weights.append(weight)

    def group(self, number: int) -> list[int]:
        """Return new atoms of which exactly one is true."""
        atoms = self.new(number)
        self.hard(*atoms)
        self.apart(atoms)
        return atoms

    def apart(self, atoms: Sequence[int]) -> None:
        """Say that no two of them are true."""
        for a, b in combinations(atoms, 2):
            self.hard(-a, -b)

    def made(self) -> Problem:
        """Return the problem."""
        return problem(self.atoms, self.clauses, np.array(self.weights, dtype=np.int64))


@dataclass(frozen=True)
class Made:
    """A problem: clauses, or text; the least cost where it is known."""

    family: str
    name: str
    clauses: Problem | None = None
    text: str | None = None
    least: int | None = None

    def write(self, directory: Path) -> Path:
        """Write the file that every side is given, and return its path."""
        stem = "".join(each for each in self.name.replace(" ", "-") if each not in ",#")
        if self.text is not None:
            file = directory / f"{stem}.lbm"
            file.write_text(self.text + "\n", encoding="utf-8")
            return file
        assert self.clauses is not None
        file = directory / f"{stem}.wcnf"
        file.write_text(wcnf(self.clauses), encoding="utf-8")
        return file


def wcnf(given: Problem) -> str:
    """Return clauses as a .wcnf file in its old form, whose atoms are all known from its head."""
    weights = [0] * len(given) if given.weights is None else given.weights.tolist()
    top = sum(weights) + 1
    lines = [f"p wcnf {given.atoms} {len(given)} {top}"]
    for row, weight in zip(given.rows(), weights, strict=True):
        lines.append(" ".join(map(str, (weight or top, *row, 0))))
    return "\n".join(lines) + "\n"


# --- places and costs --------------------------------------------------------------------------------


def _warehouse_costs(sites: int, stores: int, rng: random.Random) -> tuple[list[int], list[list[int]]]:
    """Return what it costs to open each site, and to serve each store from each site: way times demand."""
    places = [(rng.random(), rng.random()) for _ in range(sites + stores)]
    demand = [rng.randint(20, 400) for _ in range(stores)]
    opening = [rng.choice((7_500, 7_500, 12_500, 17_500)) for _ in range(sites)]
    serving = [
        [round(100 * demand[s] * math.dist(places[w], places[sites + s])) for w in range(sites)]
        for s in range(stores)
    ]
    return opening, serving


def warehouse(sites: int, stores: int, *, seed: int) -> Problem:
    """Return warehouse location as clauses: a store is served from one site, which is then open."""
    opening, serving = _warehouse_costs(sites, stores, random.Random(f"warehouse {sites} {stores} {seed}"))
    rows = Rows()
    opened = rows.new(sites)
    for atom, cost in zip(opened, opening, strict=True):
        rows.soft(cost, -atom)
    for costs in serving:
        served = rows.group(sites)
        for at, atom, cost in zip(opened, served, costs, strict=True):
            rows.hard(-atom, at)
            rows.soft(cost, -atom)
    return rows.made()


def warehouse_text(sites: int, stores: int, *, seed: int) -> str:
    """Return the same problem as people write it, with ``exactly``."""
    opening, serving = _warehouse_costs(sites, stores, random.Random(f"warehouse {sites} {stores} {seed}"))
    lines = [f"{cost}: ~open(w{w})" for w, cost in enumerate(opening)]
    for s, costs in enumerate(serving):
        lines.append(f"exactly(1, {', '.join(f'serves(w{w}, s{s})' for w in range(sites))})")
        for w, cost in enumerate(costs):
            lines.append(f"serves(w{w}, s{s}) -> open(w{w})")
            if cost:
                lines.append(f"{cost}: ~serves(w{w}, s{s})")
    return "\n".join(lines)


# --- frequencies -------------------------------------------------------------------------------------

TIED = 238  # between the two frequencies of a link
PENALTIES = (1_000, 100, 10, 1)


def _bands(values: int, rng: random.Random) -> list[int]:
    """Return so many frequencies, in pairs that are ``TIED`` apart, from four bands in steps of 14."""
    each = max(11, -(-values // 4))
    lower = [start + 14 * i for start in (16, 16 + TIED + 14 * each + 6) for i in range(each)]
    chosen = rng.sample(lower, values // 2)
    return sorted([*chosen, *(one + TIED for one in chosen)])


def frequencies(
    links: int, *, least: int = 20, most: int = 44, degree: float = 7.0, hard: float = 0.0, seed: int
) -> Problem:
    """Return frequency assignment: tied links are 238 apart, near ones far enough, or a penalty is paid.

    Links 2k and 2k + 1 are tied by hard clauses, with the same ``least`` to ``most`` frequencies; so are the
    distances of a share ``hard`` of the pairs, as far as a hidden assignment allows.
    """
    rng = random.Random(f"frequencies {links} {least} {most} {degree} {hard} {seed}")
    rows = Rows()
    places = [(rng.random(), rng.random()) for _ in range(links // 2)]
    domains, atoms, hidden = [], [], []
    for _ in range(links // 2):
        size = rng.choice([n for n in range(least, most + 1) if n % 2 == 0])
        domain = _bands(size, rng)
        one = rng.choice(domain)
        other = rng.choice([x for x in domain if abs(x - one) == TIED])
        domains += [domain, domain]
        atoms += [rows.group(size), rows.group(size)]
        hidden += [one, other]
    for a in range(0, links, 2):
        for (x, left), (y, right) in product(
            zip(domains[a], atoms[a], strict=True), zip(domains[a + 1], atoms[a + 1], strict=True)
        ):
            if abs(x - y) != TIED:
                rows.hard(-left, -right)
    pairs = [(a, b) for a, b in combinations(range(links), 2) if a // 2 != b // 2]
    pairs.sort(key=lambda pair: (math.dist(places[pair[0] // 2], places[pair[1] // 2]), rng.random()))
    for rank, (a, b) in enumerate(near := pairs[: round(degree * links / 2)]):
        penalty = PENALTIES[min(3, 4 * rank // max(1, len(near)))]
        gap = rng.choice((20, 60, 100, 140, 200, 280)) if penalty > 10 else rng.choice((14, 28, 50, 90))
        must = rng.random() < hard and abs(hidden[a] - hidden[b]) > gap
        for (x, left), (y, right) in product(
            zip(domains[a], atoms[a], strict=True), zip(domains[b], atoms[b], strict=True)
        ):
            if abs(x - y) <= gap:
                if must:
                    rows.hard(-left, -right)
                else:
                    rows.soft(penalty, -left, -right)
    return rows.made()


def few_frequencies(links: int, *, values: int = 24, degree: float = 5.0, seed: int) -> Problem:
    """Return frequency assignment with hard distances, in which every frequency that is used costs 1."""
    rng = random.Random(f"few frequencies {links} {values} {degree} {seed}")
    rows = Rows()
    domain = _bands(values, rng)
    used = rows.new(values)
    for atom in used:
        rows.soft(1, -atom)
    atoms, hidden = [], []
    for link in range(links):
        if link % 2 == 0:
            hidden.append(rng.choice(domain))
        else:
            hidden.append(rng.choice([x for x in domain if abs(x - hidden[-1]) == TIED]))
        atoms.append(rows.group(values))
        for atom, at in zip(atoms[-1], used, strict=True):
            rows.hard(-atom, at)
    pairs = [(a, b) for a, b in combinations(range(links), 2) if a // 2 != b // 2]
    rng.shuffle(pairs)
    wanted = [(a, a + 1, TIED, TIED) for a in range(0, links - 1, 2)]
    for a, b in pairs[: round(degree * links / 2)]:
        gaps = [gap for gap in (14, 28, 50, 90) if abs(hidden[a] - hidden[b]) > gap]
        if gaps:
            wanted.append((a, b, rng.choice(gaps) + 1, max(domain)))
    for a, b, low, high in wanted:
        for (x, left), (y, right) in product(
            zip(domain, atoms[a], strict=True), zip(domain, atoms[b], strict=True)
        ):
            if not low <= abs(x - y) <= high:
                rows.hard(-left, -right)
    return rows.made()


# --- auctions ----------------------------------------------------------------------------------------


def _auction(bids: Sequence[tuple[frozenset[object], int]]) -> Problem:
    rows = Rows()
    atoms = rows.new(len(bids))
    for atom, (_, price) in zip(atoms, bids, strict=True):
        rows.soft(price, atom)
    for i, j in combinations(range(len(bids)), 2):
        if bids[i][0] & bids[j][0]:
            rows.hard(-atoms[i], -atoms[j])
    return rows.made()


def auction_of_paths(cities: int, bids: int, *, seed: int) -> Problem:
    """Return an auction whose bids are ways between two cities; a price goes with the length."""
    rng = random.Random(f"paths {cities} {bids} {seed}")
    places = [(rng.random(), rng.random()) for _ in range(cities)]
    near = {
        a: sorted((b for b in range(cities) if b != a), key=lambda b: math.dist(places[a], places[b]))[:4]
        for a in range(cities)
    }
    edges: dict[int, set[int]] = {a: set() for a in range(cities)}
    for a, others in near.items():
        for b in others:
            edges[a].add(b)
            edges[b].add(a)
    made: list[tuple[frozenset[object], int]] = []
    while len(made) < bids:
        start, end = rng.sample(range(cities), 2)
        way = _way(start, end, edges, places, {e: rng.uniform(1, 1.6) for e in _pairs(edges)})
        if way:
            length = sum(math.dist(places[a], places[b]) for a, b in way)
            made.append((frozenset(way), max(1, round(1_000 * length * rng.uniform(0.7, 1.4)))))
    return _auction(made)


def _pairs(edges: dict[int, set[int]]) -> list[tuple[int, int]]:
    return sorted({(min(a, b), max(a, b)) for a, others in edges.items() for b in others})


def _way(
    start: int,
    end: int,
    edges: dict[int, set[int]],
    places: Sequence[tuple[float, float]],
    factor: dict[tuple[int, int], float],
) -> list[tuple[int, int]]:
    """Return the pairs of a shortest way, empty if there is none."""
    best, before, left = {start: 0.0}, dict[int, int](), {start}
    while left:
        here = min(left, key=lambda a: (best[a], a))
        left.discard(here)
        if here == end:
            break
        for b in sorted(edges[here]):
            pair = min(here, b), max(here, b)
            length = best[here] + factor[pair] * math.dist(places[here], places[b])
            if length < best.get(b, math.inf):
                best[b], before[b] = length, here
                left.add(b)
    way = []
    while end in before:
        way.append((min(end, before[end]), max(end, before[end])))
        end = before[end]
    return way


def auction_of_regions(side: int, bids: int, *, seed: int) -> Problem:
    """Return an auction whose bids are connected fields of a square, some bidders making two that exclude."""
    rng = random.Random(f"regions {side} {bids} {seed}")
    worth = {(x, y): rng.randint(1, 100) for x in range(side) for y in range(side)}
    made: list[tuple[frozenset[object], int]] = []
    while len(made) < bids:
        field_ = {(rng.randrange(side), rng.randrange(side))}
        while rng.random() < 0.8:
            x, y = rng.choice(sorted(field_))
            step = rng.choice(((0, 1), (1, 0), (0, -1), (-1, 0)))
            if (x + step[0], y + step[1]) in worth:
                field_.add((x + step[0], y + step[1]))
        bidder = ("bidder", rng.randrange(max(1, bids // 2)))
        price = sum(worth[one] for one in sorted(field_)) * rng.uniform(0.8, 1.3)
        made.append((frozenset([*field_, bidder]), max(1, round(price * len(field_) ** 0.2))))
    return _auction(made)


# --- pictures from a satellite -----------------------------------------------------------------------


def pictures(number: int, *, seed: int) -> Problem:
    """Return which pictures to take: one of three cameras for each, and no two or three that clash."""
    rng = random.Random(f"pictures {number} {seed}")
    rows = Rows()
    cameras = [rows.new(1 if rng.random() < 0.2 else 3) for _ in range(number)]
    for atoms in cameras:
        rows.apart(atoms)
        rows.soft(rng.choice((1, 1, 1, 2, 2, 1000)), *atoms)
    for a in range(number):
        for b in range(a + 1, min(number, a + 12)):
            if rng.random() < 0.5:
                for x, y in product(cameras[a], cameras[b]):
                    if rng.random() < 0.45:
                        rows.hard(-x, -y)
        if a + 2 < number and rng.random() < 0.6:
            b, c = (
                sorted(rng.sample(range(a + 1, min(number, a + 12)), 2)) if a + 3 < number else (a + 1, a + 2)
            )
            for three in product(cameras[a], cameras[b], cameras[c]):
                if rng.random() < 0.4:
                    rows.hard(*(-x for x in three))
    return rows.made()


# --- most probable explanations ----------------------------------------------------------------------


def explanation(
    variables: int, *, values: int = 3, parents: int = 2, near: int = 12, sharp: float = 0.3, seed: int
) -> Problem:
    """Return the most probable explanation of a Bayesian network with evidence, as clauses.

    A value costs -1000 ln p; a share ``sharp`` of the tables is deterministic, and what is impossible is
    hard. The evidence is what a drawn world says of a fifth of the variables.
    """
    rng = random.Random(f"explanation {variables} {values} {parents} {near} {sharp} {seed}")
    rows = Rows()
    atoms: list[list[int]] = []
    world: list[int] = []
    for v in range(variables):
        before = range(max(0, v - near), v)
        above = sorted(rng.sample(before, min(parents, len(before))))
        size = rng.randint(2, values)
        atoms.append(rows.group(size))
        decided = above and rng.random() < sharp
        for case in product(*(range(len(atoms[u])) for u in above)):
            if decided:
                chances = [0.0] * size
                chances[rng.randrange(size)] = 1.0
            else:
                shares = [rng.expovariate(1.0) ** 3 + 1e-4 for _ in range(size)]
                chances = [share / sum(shares) for share in shares]
            literals = [-atoms[u][k] for u, k in zip(above, case, strict=True)]
            for atom, chance in zip(atoms[-1], chances, strict=True):
                if chance == 0:
                    rows.hard(*literals, -atom)
                else:
                    rows.soft(round(-1_000 * math.log(chance)), *literals, -atom)
            if all(world[u] == k for u, k in zip(above, case, strict=True)):
                drawn = rng.choices(range(size), chances)[0]
        world.append(drawn)
    for v in rng.sample(range(variables), variables // 5):
        rows.hard(atoms[v][world[v]])
    return rows.made()


# --- graphs ------------------------------------------------------------------------------------------


def clique(nodes: int, density: float, *, hidden: int = 0, seed: int) -> Problem:
    """Return the largest clique of a random graph; a hidden one shows in no degree."""
    rng = random.Random(f"clique {nodes} {density} {hidden} {seed}")
    inside = set(rng.sample(range(nodes), hidden))
    rest = nodes - hidden
    less = (density * (nodes - 1) - (hidden - 1)) / rest if hidden else density
    rows = Rows()
    atoms = rows.new(nodes)
    for atom in atoms:
        rows.soft(1, atom)
    for a, b in combinations(range(nodes), 2):
        both = (a in inside) + (b in inside)
        share = 1.0 if both == 2 else less if both else density
        if rng.random() >= share:
            rows.hard(-atoms[a], -atoms[b])
    return rows.made()


def colouring(nodes: int, colours: int, degree: float, *, seed: int) -> Problem:
    """Return weighted colouring: a node has one colour, and an edge of one colour costs its weight."""
    rng = random.Random(f"colouring {nodes} {colours} {degree} {seed}")
    rows = Rows()
    atoms = [rows.group(colours) for _ in range(nodes)]
    edges: set[tuple[int, int]] = set()
    while len(edges) < min(round(degree * nodes / 2), nodes * (nodes - 1) // 2):
        a, b = rng.sample(range(nodes), 2)
        edges.add((min(a, b), max(a, b)))
    for a, b in sorted(edges):
        weight = rng.randint(1, 10)
        for x, y in zip(atoms[a], atoms[b], strict=True):
            rows.soft(weight, -x, -y)
    for node in range(nodes):  # some nodes like a colour
        if rng.random() < 0.2:
            rows.soft(rng.randint(1, 3), rng.choice(atoms[node]))
    return rows.made()


def hidden_model(atoms: int, clauses: int, *, heaviest: int = 100, seed: int) -> Problem:
    """Return soft clauses of three literals, all of which a hidden world satisfies: the least cost is 0."""
    rng = random.Random(f"hidden {atoms} {clauses} {heaviest} {seed}")
    world = [rng.random() < 0.5 for _ in range(atoms)]
    rows = Rows(atoms)
    while len(rows.clauses) < clauses:
        chosen = [a if rng.random() < 0.5 else -a for a in rng.sample(range(1, atoms + 1), 3)]
        if any(world[abs(literal) - 1] == (literal > 0) for literal in chosen):
            rows.soft(rng.randint(1, heaviest), *chosen)
    return rows.made()


# --- families ----------------------------------------------------------------------------------------


def _clauses(make: Callable[..., Problem], least: int | None = None) -> Callable[..., Made]:
    def made(family: str, name: str, *numbers: object, seed: int, **named: object) -> Made:
        return Made(family, name, make(*numbers, seed=seed, **named), least=least)

    return made


def _text(make: Callable[..., str]) -> Callable[..., Made]:
    def made(family: str, name: str, *numbers: object, seed: int, **named: object) -> Made:
        return Made(family, name, text=make(*numbers, seed=seed, **named))

    return made


def _pigeons(family: str, name: str, pigeons: int, holes: int, *, seed: int) -> Made:
    text, least = pigeonholes(pigeons, holes, seed=seed)
    return Made(family, name, text=text, least=least)


MAKERS: dict[str, Callable[..., Made]] = {
    "warehouse": _clauses(warehouse),
    "warehouse, text": _text(warehouse_text),
    "frequencies": _clauses(frequencies),
    "frequencies, hard": _clauses(frequencies),
    "few frequencies": _clauses(few_frequencies),
    "auction of paths": _clauses(auction_of_paths),
    "auction of regions": _clauses(auction_of_regions),
    "pictures": _clauses(pictures),
    "explanation": _clauses(explanation),
    "clique, hidden": _clauses(clique),
    "clique": _clauses(clique),
    "colouring": _clauses(colouring),
    "hidden model": _clauses(hidden_model, least=0),
    "pigeons": _pigeons,
    "roster": _text(roster),
}

SIZES: dict[str, dict[str, tuple[tuple[tuple[object, ...], dict[str, object]], ...]]] = {
    "small": {
        "warehouse": (((3, 3), {}),),
        "warehouse, text": (((3, 3), {}),),
        "frequencies": (((4,), {"least": 4, "most": 4, "degree": 2.0}),),
        "frequencies, hard": (((4,), {"least": 4, "most": 4, "degree": 2.0, "hard": 0.5}),),
        "few frequencies": (((3,), {"values": 4, "degree": 1.5}),),
        "auction of paths": (((6, 12), {}),),
        "auction of regions": (((4, 12), {}),),
        "pictures": (((5,), {}),),
        "explanation": (((5,), {}),),
        "clique, hidden": (((14, 0.6), {"hidden": 6}),),
        "clique": (((14, 0.5), {}),),
        "colouring": (((5, 3, 3.5), {}),),
        "hidden model": (((14, 50), {}),),
        "pigeons": (((5, 3), {}),),
        "roster": (((9, 1), {}),),
    },
    "usual": {
        "warehouse": (((16, 50), {}), ((25, 50), {}), ((50, 50), {})),
        "warehouse, text": (((16, 50), {}),),
        "frequencies": (
            ((16,), {"least": 36, "degree": 12.0}),
            ((28,), {"degree": 14.0}),
            ((50,), {"most": 50, "degree": 15.0}),
        ),
        "frequencies, hard": (((40,), {"hard": 0.5, "degree": 8.0}),),
        "few frequencies": (((40,), {"values": 24}),),
        "auction of paths": (((40, 100), {}), ((60, 200), {})),
        "auction of regions": (((12, 120), {}),),
        "pictures": (((100,), {}), ((250,), {})),
        "explanation": (((150,), {}), ((300,), {"near": 20})),
        "clique, hidden": (((200, 0.65), {"hidden": 18}),),
        "clique": (((150, 0.5), {}), ((250, 0.7), {})),
        "colouring": (((60, 4, 8.0), {}), ((150, 4, 9.0), {})),
        "hidden model": (((250, 1_050), {}), ((2_000, 8_000), {})),
        "pigeons": (((30, 24), {}),),
        "roster": (((20, 14), {}), ((40, 28), {})),
    },
    "large": {
        "warehouse": (((100, 100), {}),),
        "frequencies": (((100,), {"degree": 15.0}), ((200,), {"degree": 12.0})),
        "few frequencies": (((100,), {"values": 44}),),
        "auction of regions": (((30, 600), {}),),
        "pictures": (((800,), {}),),
        "explanation": (((1_500,), {"near": 40}),),
        "clique, hidden": (((400, 0.75), {"hidden": 29}),),
        "colouring": (((500, 8, 14.0), {}),),
        "hidden model": (((20_000, 80_000), {}),),
        "pigeons": (((90, 72), {}),),
        "roster": (((100, 56), {}),),
    },
}


def label(family: str, numbers: Sequence[object], named: dict[str, object], seed: int) -> str:
    """Return a name for people: the family, its numbers and its seed."""
    said = [" x ".join(map(str, numbers)), *(f"{key} {value}" for key, value in named.items())]
    return f"{family}, {', '.join(said)} #{seed}"


def families(size: str) -> list[tuple[str, int]]:
    """Return the families of a size, and how many problems each has there."""
    return [(family, len(some)) for family, some in SIZES[size].items()]


def make(size: str, family: str, which: int, seed: int) -> Made:
    """Return one problem of a family."""
    numbers, named = SIZES[size][family][which]
    return MAKERS[family](family, label(family, numbers, named, seed), *numbers, seed=seed, **named)
