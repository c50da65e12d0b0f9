"""Ask chains about theories whose truth is known, and count how often answers that call themselves sure err.

    python tools/certainty.py [--runs 2000] [--seed 0] [--only KIND] [--json OUT] [--jobs 1]
                              [--few] [--store] [--against SRC]

Answers that call themselves converged must cover the truth in COVERED of the cases, and none may be off by
more than five half-widths of its interval. Doubt is no way out: of benign theories, most of what an earlier
version answered, and answered right, must still be answered, in about the time it took then.
tests/certainty/baseline.json holds what it answered; ``--store`` writes it anew, from the library that
PYTHONPATH names. On a busy machine times are compared better with those of another checkout's src, run at
once by ``--against``. The exit status is 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from tests.certainty.runs import FAR, FEW_SWEEPS, QUESTIONS, Outcome, Plan, few_plans, plans, run
from tests.certainty.theories import BENIGN

BASELINE = Path(__file__).resolve().parent.parent / "tests" / "certainty" / "baseline.json"

COVERED = 0.92
"""The share of converged answers whose intervals must cover."""

STILL = 0.9
"""The share of benign runs, once converged and right, that must still be."""

SLOWER = 1.5
"""How many times the time of the earlier version they may take."""


def pace() -> float:
    """Return how long this machine takes for a fixed piece of work, so that times can be compared."""
    best = math.inf
    for _ in range(5):
        began = time.process_time()
        numbers = np.arange(200_000, dtype=np.uint64)
        for _ in range(40):
            numbers = (
                numbers * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            ) >> np.uint64(1)
        total = 0
        for number in range(300_000):
            total ^= number * number
        best = min(best, time.process_time() - began)
    return best


def warm() -> None:
    """Run a little of everything, so that no run is charged for compiling."""
    for kind in ("random clauses", "two clusters", "choices", "trap"):
        for question, method in dict.fromkeys(QUESTIONS):
            run(Plan(kind, 1, question, method, 0, 0, FEW_SWEEPS))


def outcomes(chosen: Sequence[Plan], jobs: int) -> Iterator[Outcome]:
    """Yield what each run gives, in order."""
    if jobs == 1:
        warm()
        yield from map(run, chosen)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, initializer=warm) as pool:
        yield from pool.imap(run, chosen, chunksize=4)


def main() -> int:
    """Run all, print tables, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--only", default="", help="kinds whose name contains this; 'benign' and 'hard' are names too"
    )
    parser.add_argument("--json", type=Path, help="write every run to this file")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--against", type=Path, help="compare benign runs with another library's, run after these"
    )
    parser.add_argument("--few", action="store_true", help="the hundred runs of the test suite")
    parser.add_argument(
        "--store", action="store_true", help="write the file that benign runs are compared with"
    )
    options = parser.parse_args()
    chosen = few_plans() if options.few else plans(options.runs, options.seed)
    if options.only in ("benign", "hard"):
        chosen = [plan for plan in chosen if (plan.kind in BENIGN) == (options.only == "benign")]
    else:
        chosen = [plan for plan in chosen if options.only in plan.kind]
    if not chosen:
        parser.error(f"no kind is called {options.only!r}")

    began, found = time.monotonic(), []
    for outcome in outcomes(chosen, options.jobs):
        found.append(outcome)
        if outcome.converged and outcome.off > FAR:
            said = f"{outcome.answer:.6g}, {outcome.low:.6g} to {outcome.high:.6g}; truth {outcome.truth:.6g}"
            print(f"FAR  {outcome.plan.key}: {said} ({outcome.off:.3g} half-widths)", flush=True)
        elif outcome.crashed:
            print(f"CRASH  {outcome.plan.key}: {outcome.said}", flush=True)
        if len(found) % 100 == 0:
            sure = [each for each in found if each.converged]
            covered = sum(each.covered for each in sure) / max(1, len(sure))
            print(f"{len(found)} runs: {len(sure)} converged, {covered:.1%} cover", flush=True)
    print(f"\n{len(found)} runs in {time.monotonic() - began:.0f} s\n")
    show(found)
    if options.json:
        options.json.write_text("[\n" + ",\n".join(json.dumps(row(outcome)) for outcome in found) + "\n]\n")
    if options.store:
        store(found)
        return 0
    return judge(found, against(options) if options.against else None)


def row(outcome: Outcome) -> dict[str, object]:
    """Return a run as it is written to a file."""
    shown = {name: getattr(outcome, name) for name in ("answer", "truth", "low", "high", "off")}
    numbers = {name: value if math.isfinite(value) else None for name, value in shown.items()}
    return {
        "run": outcome.plan.key,
        "converged": outcome.converged,
        **numbers,
        "covered": outcome.covered,
        "seconds": round(outcome.seconds, 3),
        "said": outcome.said,
    }


def show(found: Sequence[Outcome]) -> None:
    """Print a line for each kind and way of asking, and one for all."""
    print(f"{'kind':18} {'asked':24} {'runs':>5} {'converged':>9} {'covered':>8} {'worst':>7} {'seconds':>8}")
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in found:
        asked = f"{outcome.plan.question} {outcome.plan.method}"
        for key in ((outcome.plan.kind, asked), ("all", asked), ("all", "")):
            groups.setdefault(key, []).append(outcome)
    kinds = list(dict.fromkeys(outcome.plan.kind for outcome in found))
    for (kind, asked), some in sorted(
        groups.items(),
        key=lambda pair: (
            pair[0][0] == "all",
            kinds.index(pair[0][0]) if pair[0][0] != "all" else 0,
            pair[0][1] == "",
            pair[0][1],
        ),
    ):
        sure = [outcome for outcome in some if outcome.converged]
        covered = f"{sum(each.covered for each in sure) / len(sure):8.1%}" if sure else f"{'-':>8}"
        worst = f"{max(each.off for each in sure):7.3g}" if sure else f"{'-':>7}"
        print(
            f"{kind:18} {asked:24} {len(some):5} {len(sure):9} {covered} {worst} "
            f"{sum(each.seconds for each in some) / len(some):8.2f}"
        )


def against(options: argparse.Namespace) -> dict[str, Any]:
    """Return which benign runs another library answers, and in what time, on this machine and now."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "runs.json"
        order = [__file__, "--only", "benign", "--seed", str(options.seed), "--runs", str(options.runs)]
        order += ["--jobs", str(options.jobs), "--json", str(out), *(["--few"] if options.few else [])]
        environment = {**os.environ, "PYTHONPATH": str(options.against)}
        subprocess.run([sys.executable, *order], env=environment, check=False, stdout=subprocess.DEVNULL)
        told = json.loads(out.read_text())
    right = {one["run"]: one["seconds"] for one in told if one["converged"] and one["off"] <= FAR}
    return {"pace": None, "seconds": right}


def judge(found: Sequence[Outcome], stored: dict[str, Any] | None = None) -> int:
    """Print which promises hold; return 1 if one does not."""
    sure = [outcome for outcome in found if outcome.converged]
    far = [outcome for outcome in sure if outcome.off > FAR]
    share = sum(outcome.covered for outcome in sure) / max(1, len(sure))
    crashed = sum(outcome.crashed for outcome in found)
    kept = [
        promise(not crashed, f"{crashed} errors not raised on purpose", "0"),
        promise(
            share >= COVERED or not sure,
            f"{share:.1%} of {len(sure)} converged answers cover",
            f"{COVERED:.0%}",
        ),
        promise(not far, f"{len(far)} of them off by more than {FAR:g} half-widths", "0"),
    ]
    if stored is None and BASELINE.exists():
        stored = json.loads(BASELINE.read_text())
    if stored is not None:
        before = stored["seconds"]
        again = [outcome for outcome in found if outcome.plan.key in before]
        still = [outcome for outcome in again if outcome.right]
        if again:
            part = len(still) / len(again)
            said = f"{len(still)} of {len(again)} benign runs ({part:.1%}) still converged and right"
            kept.append(promise(part >= STILL, said, f"{STILL:.0%}"))
            scale = pace() / stored["pace"] if stored["pace"] else 1.0
            then, now = (
                sum(each)
                for each in zip(*((before[o.plan.key] * scale, o.seconds) for o in again), strict=True)
            )
            said = (
                f"they take {now / then:.2f} times the time ({now:.0f} s of the processor, then {then:.0f})"
            )
            kept.append(promise(now <= SLOWER * then, said, f"{SLOWER:g}"))
    return 0 if all(kept) else 1


def promise(holds: bool, said: str, wanted: str) -> bool:
    """Print a promise and whether it holds."""
    print(f"{'ok    ' if holds else 'BROKEN'} {said} (promised: {wanted})")
    return holds


def store(found: Sequence[Outcome]) -> None:
    """Write which benign runs are converged and right, and how long they took; others stay as they are."""
    stored = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"seconds": {}}
    about = "benign runs that were converged and right, and the seconds of the processor they took"
    kept = {key: took for key, took in stored["seconds"].items() if key not in {o.plan.key for o in found}}
    right = {o.plan.key: round(o.seconds, 3) for o in found if o.benign and o.right}
    stored = {"about": about, "pace": round(pace(), 4), "seconds": dict(sorted({**kept, **right}.items()))}
    BASELINE.write_text(json.dumps(stored, indent=1) + "\n")
    print(f"{len(right)} of {sum(outcome.benign for outcome in found)} benign runs are converged and right")


if __name__ == "__main__":
    sys.exit(main())
