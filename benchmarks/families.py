"""Families of problems that people bring: lbm with and without other engines beside its peers.

Public files are those of LBM_INSTANCES; the others are generated: warehouses, frequencies, auctions,
pictures, explanations of Bayesian networks, cliques, colourings, pigeons, rosters, and clauses that a hidden
world satisfies. Every side is a new process that reads the same file, and every time is from the start of
that process; kernels of ours were compiled before. Costs are those of the worlds told until then, judged by
code that no side shares. Ours are medians over five seeds, of `lbm best FILE --dimacs --seconds S`: *base* is
what a base installation does (`--engines own,rc2`), *extra* has all engines that are installed.

RC2 is at every moment the better of `RC2Stratified(solver="g3", minz=True)` and `RC2()`, which run one after
the other. CP-SAT has two workers, clauses and cardinalities as its own constraints, and groups of which
exactly one atom is true. toulbar2 is given variables of several values, one for each such group, made before
its clock starts; it is the better of its default search and its neighbourhood search (VNS), one core each. A
proof is wanted of the fastest peer. Peers run once.

All is measured twice: on a machine that does nothing else, as far as it is known, and beside two processes
that only count; `--busy 0` or `--busy 2` measures one of the two. `--peers FILE` keeps what the peers did and
takes it from there, whatever became of our sources. `--large` has larger problems, of which nothing is
wanted. `--also FILE ...` takes other files in place of all of these. `--quick`: one problem of a family, one
seed, and 4 s in place of 10. What is lost stands first in every table.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from measuring import race
from measuring.demands import Demands, Valued, read, valued
from measuring.race import Course, best_of, of_row
from measuring.results import Row, Run, Section, Table, quartiles, seconds, times, versions, whole
from measuring.weighted import families, make

TITLE = "Families of problems that people bring"
SEEDS = 5
LATE, QUICK_LATE = 10.0, 4.0
PEERS = {
    "RC2": ("RC2, plain", "RC2, strata"),
    "CP-SAT": ("CP-SAT",),
    "toulbar2": ("toulbar2", "toulbar2, VNS"),
}
NEAR = {"warehouse": 0.005, "frequencies": 0.02}  # of toulbar2's cost in the base installation, by family
PUBLIC_NEAR = {"cap131-dir": "warehouse", "warehouse0": "warehouse"}
MODES = ("base", "extra")


# --- the problems ------------------------------------------------------------------------------------


def public() -> list[Path]:
    """Return the public files, none where LBM_INSTANCES is not set."""
    place = Path(os.environ.get("LBM_INSTANCES", "")) / "maxsat"
    return sorted(place.glob("*.wcnf"))


def written(key: Sequence[Any], place: Path) -> tuple[Path, str, str]:
    """Return the file of a key, its name, and the family whose figures it is counted among."""
    if key[0] in ("public", "also"):
        files = {path.stem: path for path in public()} if key[0] == "public" else {}
        path = files.get(key[1]) or Path(key[1])
        return path, path.stem, PUBLIC_NEAR.get(path.stem, "")
    size, family, which, seed = key
    made = make(size, family, which, seed)
    return made.write(place), made.name, family.partition(",")[0]


def forms(file: Path, place: Path) -> tuple[Demands, Path, Valued | None]:
    """Return the demands of a file, it as clauses for RC2, and its variables of several values."""
    from lbm.knowledge.theory import Theory
    from lbm.knowledge.wire import save_theory

    given = read(file)
    clauses = file
    if file.suffix != ".wcnf":
        clauses = place / f"{file.stem}-clauses.wcnf"
        save_theory(Theory.load(file), clauses, format="wcnf-old")
    return given, clauses, valued(given)


# --- measuring ---------------------------------------------------------------------------------------


@cache
def help_text() -> str:
    order = [sys.executable, "-m", "lbm", "best", "--help"]
    return subprocess.run(order, capture_output=True, text=True, check=True, env={**os.environ}).stdout


def options_of(mode: str) -> list[str]:
    """Return the options of a mode; before there were engines to name, there was one mode."""
    return ["--engines", "own,rc2"] if mode == "base" and "--engines" in help_text() else []


def who(file: Path, limit: float, options: Sequence[str], seed: int) -> dict[str, str]:
    """Return who found and who proved, from a run of its own that tells it."""
    if "found_by" not in help_text():
        return {}
    order = [sys.executable, "-m", "lbm", "best", str(file), "--json", "--seconds", f"{limit:g}"]
    order += ["--seed", str(seed), *options]
    said, _, _ = race.lines(order, limit, race.GRACE)
    try:
        found = json.loads("\n".join(line for _, line in said))
    except json.JSONDecodeError:
        return {}
    return {f"{verb} by": str(found[f"{verb}_by"]) for verb in ("found", "proved") if found.get(f"{verb}_by")}


class Kept:
    """What the peers did, in a file of its own where there is one; it holds on whatever we change in ours."""

    def __init__(self, path: Path | None, busy: int) -> None:
        self.path, self.busy = path, busy
        self.known: dict[str, Row] = {}
        if path is not None and path.exists():
            self.known = json.loads(path.read_text(encoding="utf-8"))

    def of(self, file: Path, limit: float, measure: Callable[[], dict[str, Course]]) -> dict[str, Row]:
        """Return the courses of peers on a file as rows, measured unless they are known."""
        theirs = {name: version for name, version in versions().items() if name != "lbm"}
        said = [limit, self.busy, theirs, hashlib.sha256(file.read_bytes()).hexdigest()]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:16]
        if digest not in self.known:
            self.known[digest] = {name: course.row() for name, course in measure().items()}
            if self.path is not None:
                self.path.write_text(json.dumps(self.known) + "\n", encoding="utf-8")
        return self.known[digest]


def measurer(run: Run) -> Callable[..., Row]:
    chosen = run.options
    late = QUICK_LATE if run.quick else LATE
    seeds = 1 if run.quick else chosen.seeds
    modes = MODES if "--engines" in help_text() else MODES[:1]

    def measure(*key: Any) -> Row:
        key, busy = key[:-1], key[-1]
        kept = Kept(chosen.peers, busy)
        with tempfile.TemporaryDirectory() as directory, race.Busy(busy):
            place = Path(directory)
            file, name, family = written(key, place)
            given, clauses, form = forms(file, place)
            theirs = kept.of(file, late, lambda: race.peers(file, clauses, given, form, place, late))
            proofs = [row["proven"] for row in theirs.values() if row["proven"] is not None]
            limit = max(late, math.ceil(2.5 * min(proofs, default=0.0) + 1.5))
            lenient = ["--lenient"] if key[0] in ("public", "also") and file.suffix == ".wcnf" else []
            found = {}
            for mode in modes:
                more = [*lenient, *options_of(mode)]
                courses = [race.ours(file, given, limit, seed=seed, more=more) for seed in range(seeds)]
                told = {} if "found by" in courses[0].told else who(file, limit, more, 0)
                found[mode] = [{**course.row(), "told": {**told, **course.told}} for course in courses]
        return {
            "name": name,
            "family": family,
            "wanted": key[0] != "large",
            "size": given.described(),
            "late": late,
            "limit": limit,
            "busy": busy,
            "peers": theirs,
            "ours": found,
        }

    return measure


# --- what is shown -----------------------------------------------------------------------------------


def median(values: Iterable[float | None]) -> float:
    """Return the median; what never came is past all."""
    return quartiles(values)[1]


def cost_at(courses: Sequence[Course], when: float) -> float:
    """Return the median of the costs that several runs had reached by then."""
    return median(course.cost_at(when) for course in courses)


def proof(courses: Sequence[Course]) -> float:
    return median(course.proven for course in courses)


def excess(ours: float, theirs: float) -> float:
    """Return by how much of theirs a cost is above theirs; below it is negative."""
    if math.isinf(theirs):
        return 0.0 if math.isinf(ours) else -math.inf
    return (ours - theirs) / max(1.0, abs(theirs))


def percent(value: float) -> str:
    """Return an excess for people."""
    if math.isinf(value):
        return "no world" if value > 0 else "they: none"
    return "same" if value == 0 else f"{100 * value:+.3g} %"


def quicker(ours: float, theirs: float) -> str:
    """Return a ratio of times, as far as both ended."""
    return "" if math.isinf(theirs) else "never" if math.isinf(ours) else times(ours / theirs)


class Judged:
    """One row as courses, and what was wanted of it: sentences, and whether they are so."""

    def __init__(self, row: Row) -> None:
        self.row, self.late = row, row["late"]
        each = {name: of_row(course) for name, course in row["peers"].items()}
        self.peers = {
            peer: best_of(each[part] for part in parts if part in each) for peer, parts in PEERS.items()
        }
        self.all = best_of(self.peers.values())
        self.ours = {mode: [of_row(one) for one in some] for mode, some in row["ours"].items()}
        self.wanted: dict[tuple[str, str], bool] = {}
        self.worst: dict[str, float] = {}
        for mode, courses in self.ours.items():
            self._judge(mode, courses)

    def _judge(self, mode: str, courses: list[Course]) -> None:
        late, allowed = self.late, 1.5 if self.row["busy"] else 0.6
        rc2 = [self.peers["RC2"]]
        if mode == "base":
            self._cost(
                mode, f"cost after 1 s at most RC2's, {mode}", cost_at(courses, 1.0), cost_at(rc2, 1.0)
            )
            said = f"cost after {late:g} s at most RC2's, {mode}"
            self._cost(mode, said, cost_at(courses, late), cost_at(rc2, late))
            said = f"proof at most 1.5 times RC2's time plus {allowed:g} s, {mode}"
            self._proof(mode, said, proof(courses), proof(rc2), 1.5, allowed)
            share = NEAR.get(self.row["family"])
            if share is not None:
                near = f"cost after {late:g} s within {100 * share:g} % of toulbar2's"
                said = f"{self.row['family']}: {near}, {mode}"
                theirs = cost_at([self.peers["toulbar2"]], late)
                self._cost(mode, said, cost_at(courses, late), theirs * (1 + share))
        else:
            best = [self.all]
            said = f"cost after {late:g} s at most the best peer's after 4 s, {mode}"
            self._cost(mode, said, cost_at(courses, late), cost_at(best, 4.0))
            said = f"cost after 2 s at most the best peer's after 0.5 s, {mode}"
            self._cost(mode, said, cost_at(courses, 2.0), cost_at(best, 0.5))
            said = f"proof at most 2.5 times the fastest's plus 1.5 s, {mode}"
            self._proof(mode, said, proof(courses), self.all.proven or math.inf, 2.5, 1.5)
        right = not any("wrong" in course.told for course in courses)
        self.wanted[mode, f"worlds lose what is said, {mode}"] = right
        best = min(
            (course.cost_at(math.inf) or 0 for course in (*courses, self.all) if course.steps), default=0
        )
        proofs = [course for course in (*courses, *self.peers.values()) if course.proven is not None]
        agreed = all(course.steps[-1][1] == best for course in proofs)
        self.wanted[mode, f"nobody has a world below what another proved, {mode}"] = agreed
        on_time = all(course.seconds <= self.row["limit"] + 0.5 for course in courses)
        self.wanted[mode, f"ended at most 0.5 s late, {mode}"] = on_time

    def _cost(self, mode: str, said: str, ours: float, theirs: float) -> None:
        self.wanted[mode, said] = ours <= theirs
        self.worst[mode] = max(self.worst.get(mode, -math.inf), excess(ours, theirs))

    def _proof(self, mode: str, said: str, ours: float, theirs: float, factor: float, more: float) -> None:
        if not math.isinf(theirs):
            self.wanted[mode, said] = ours <= factor * theirs + more

    def lost(self, mode: str) -> list[str]:
        """Return what was wanted and is not so."""
        return [said for (of, said), met in self.wanted.items() if of == mode and not met]

    def order(self, mode: str) -> tuple[float, float]:
        """Return a key that puts losses first, and the greatest of them before the others."""
        return (-len(self.lost(mode)), -self.worst.get(mode, -math.inf))

    def spent(self, peer: str) -> str:
        """Return the CPU time that a peer took for its proof."""
        each = [of_row(self.row["peers"][part]) for part in PEERS[peer] if part in self.row["peers"]]
        return seconds(min((course.cpu for course in each if course.proven is not None), default=math.inf))

    def fastest(self) -> str:
        """Return which peer proved first, or has the best cost if none did."""
        proofs = {peer: course.proven for peer, course in self.peers.items() if course.proven is not None}
        if proofs:
            return min(proofs, key=lambda peer: proofs[peer])
        costs = {peer: course.cost_at(4.0) for peer, course in self.peers.items()}
        known = {peer: cost for peer, cost in costs.items() if cost is not None}
        return min(known, key=lambda peer: known[peer]) if known else "none"


def told(courses: Sequence[Course], key: str) -> str:
    """Return who is named by most runs."""
    names = [course.told[key] for course in courses if course.told.get(key)]
    return max(dict.fromkeys(names), key=names.count) if names else "not told"


def spent_by(courses: Sequence[Course]) -> str:
    """Return the median of the CPU time of runs that ended with a proof."""
    return (
        seconds(median(course.cpu if course.proven is not None else None for course in courses))
        if courses
        else ""
    )


def timeline(course: Course) -> str:
    """Return the costs of a peer after some seconds, and when it had a proof."""
    costs = " / ".join(whole(cost_at([course], when)) for when in (0.5, 1.0, 4.0))
    return f"{costs}; {seconds(proof([course]))}"


def section(rows: list[Row]) -> Section:
    parts = [
        part([row for row in rows if row["busy"] == busy]) for busy in sorted({row["busy"] for row in rows})
    ]
    return Section(
        [table for each in parts for table in each.tables], [goal for each in parts for goal in each.wanted]
    )


def part(rows: list[Row]) -> Section:
    """Return what was measured beside as many other processes."""
    judged = [Judged(row) for row in rows]
    busy = rows[0]["busy"] if rows else 0
    where = f", beside {busy} processes that only count" if busy else ""
    late = f"{rows[0]['late']:g} s" if rows else "10 s"
    base = [
        [
            one.row["name"],
            one.row["size"],
            *(whole(cost_at(ours, when)) for when in (1.0, 2.0, one.late)),
            *(whole(cost_at([one.peers["RC2"]], when)) for when in (1.0, one.late)),
            percent(excess(cost_at(ours, one.late), cost_at([one.peers["RC2"]], one.late))),
            seconds(proof(ours)),
            seconds(proof([one.peers["RC2"]])),
            quicker(proof(ours), proof([one.peers["RC2"]])),
            told(ours, "found by"),
            told(ours, "proved by"),
            str(len(one.lost("base"))),
        ]
        for one in sorted(judged, key=lambda one: one.order("base"))
        if (ours := one.ours.get("base"))
    ]
    extra = [
        [
            one.row["name"],
            *(whole(cost_at(ours, when)) for when in (1.0, 2.0, one.late)),
            *(whole(cost_at([one.all], when)) for when in (0.5, 4.0)),
            percent(excess(cost_at(ours, one.late), cost_at([one.all], 4.0))),
            seconds(proof(ours)),
            seconds(proof([one.all])),
            one.fastest(),
            told(ours, "found by"),
            told(ours, "proved by"),
            str(len(one.lost("extra"))),
        ]
        for one in sorted(judged, key=lambda one: one.order("extra"))
        if (ours := one.ours.get("extra"))
    ]
    peers = [
        [one.row["name"], *(timeline(course) for course in one.peers.values())]
        for one in sorted(judged, key=lambda one: min(one.order(mode) for mode in one.ours))
    ]
    spent = [
        [one.row["name"], *(spent_by(one.ours.get(mode, [])) for mode in MODES), *map(one.spent, PEERS)]
        for one in sorted(judged, key=lambda one: min(one.order(mode) for mode in one.ours))
        if one.all.proven is not None or any(proof(each) < math.inf for each in one.ours.values())
    ]
    groups = [
        [
            one.row["name"],
            *(whole(cost_at(ours, when)) for when in (1.0, 2.0, one.late)),
            whole(cost_at([one.peers["toulbar2"]], one.late)),
            percent(excess(cost_at(ours, one.late), cost_at([one.peers["toulbar2"]], one.late))),
            f"{100 * NEAR[one.row['family']]:g} %",
        ]
        for one in sorted(judged, key=lambda one: one.order("base"))
        if (ours := one.ours.get("base")) and one.row["family"] in NEAR
    ]
    goals: dict[str, list[tuple[str, bool]]] = {}
    for one in judged:
        if one.row["wanted"]:
            for (_, said), met in one.wanted.items():
                goals.setdefault(said, []).append((one.row["name"], met))
    wanted = []
    for said, each in goals.items():
        missed = [name for name, met in each if not met]
        shown = f"{said}{where}: {len(each) - len(missed)} of {len(each)}"
        wanted.append((f"{shown}; not {'; '.join(missed)}" if missed else shown, not missed))
    wanted.sort(key=lambda pair: pair[1])  # what is lost first
    ours = ["lbm 1 s", "lbm 2 s", f"lbm {late}"]
    against = [*ours, "RC2 1 s", f"RC2 {late}", "lbm above RC2", "lbm proof", "RC2 proof", "ratio"]
    against += ["found by", "proved by", "not met"]
    best_ones = ["best peer 0.5 s", "best peer 4 s", "lbm above", "lbm proof", "first peer's proof", "by"]
    return Section(
        [
            Table(
                f"Base installation beside RC2: costs and proofs{where}", ["problem", "size", *against], base
            ),
            Table(
                f"With all engines, beside the best peer: costs and proofs{where}",
                ["problem", *ours, *best_ones, "found by", "proved by", "not met"],
                extra,
            ),
            Table(
                f"Groups of many values: base installation beside toulbar2{where}",
                ["problem", *ours, f"toulbar2 {late}", "lbm above", "allowed"],
                groups,
            ),
            Table(
                f"CPU seconds of processes that ended with a proof, helpers among them{where}",
                ["problem", *(f"lbm, {mode}" for mode in MODES), *PEERS],
                spent,
            ),
            Table(f"Peers: cost after 0.5, 1 and 4 s; time of proof{where}", ["problem", *PEERS], peers),
        ],
        wanted,
    )


# --- the run -----------------------------------------------------------------------------------------


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of ours for each problem")
    parser.add_argument(
        "--busy", type=int, nargs="+", metavar="N", help="beside N processes that only count, each of these"
    )
    parser.add_argument("--peers", type=Path, metavar="FILE", help="keep there what peers did")
    parser.add_argument("--large", action="store_true", help="measure the larger problems instead")
    parser.add_argument("--also", nargs="+", type=Path, metavar="FILE", help="measure these files instead")


def keys_of(run: Run) -> list[tuple[Any, ...]]:
    """Return the problems of a run: files by their name, generated ones by size, family, number and seed."""
    some: list[tuple[Any, ...]]
    if run.options.also:
        some = [("also", str(path.resolve())) for path in run.options.also]
        return [(*key, number) for number in busy_of(run) for key in some]
    size = "large" if run.options.large else "usual"
    some = [] if run.options.large else [("public", path.stem) for path in public()]
    for family, number in families(size):
        some += [(size, family, which, 0) for which in range(1 if run.quick else number)]
    return [(*key, number) for number in busy_of(run) for key in some]


def busy_of(run: Run) -> list[int]:
    """Return how many processes count beside, in turn."""
    return run.options.busy or ([0] if run.quick else [0, 2])


def main() -> None:
    run = Run("families", __doc__, options)
    run.head |= {"seeds": run.options.seeds, "engines": "--engines" in help_text()}
    subprocess.run([sys.executable, "-m", "lbm", "warm"], check=True, stdout=subprocess.DEVNULL)
    run.show(section(run.each(keys_of(run), measurer(run))))


if __name__ == "__main__":
    main()
