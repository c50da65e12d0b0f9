"""Look for failures with new random questions and examples, and store each of them as a fixed example.

    python tools/fuzz_rounds.py [--minutes 10] [--seed N]

A round asks random questions (tools/fuzz.py, tools/fuzz_wide.py, tools/best_check.py), and runs the
Hypothesis tests of one test file with a seed of its own. Questions that were answered wrongly are stored in
tests/found/questions, with as few statements as they need; examples of Hypothesis in tests/found. `make test`
tries all of them from then on. The exit status is 1 if anything failed; an interrupt ends the run with its
sums.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools import best_check, fuzz, fuzz_wide

ROOT = Path(__file__).resolve().parent.parent

QUESTIONS = ROOT / "tests" / "found" / "questions"
"""Questions that were once answered wrongly, one to a file."""

SECONDS = 20.0
"""For random questions, in each round."""

LONGEST = 240.0
"""Seconds for the Hypothesis tests of one file."""


def store(found: fuzz.Failure) -> Path:
    """Write a failure to a file of its own, and return the file."""
    QUESTIONS.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(found), indent=1, ensure_ascii=True) + "\n"
    file = QUESTIONS / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"
    file.write_text(text)
    return file


def store_wide(seed: int, said: str) -> Path:
    """Write the seed of a wide theory to a file of its own, and return the file."""
    QUESTIONS.mkdir(parents=True, exist_ok=True)
    file = QUESTIONS / f"wide-{seed}.json"
    file.write_text(json.dumps({"wide": seed, "said": said}, indent=1) + "\n")
    return file


def stored(place: Path = QUESTIONS) -> list[Path]:
    """Return the files of all stored questions."""
    return sorted(place.glob("*.json"))


def replay(file: Path) -> list[str]:
    """Ask a stored question again, and return what is wrong now."""
    told = json.loads(file.read_text())
    if "best" in told:
        return best_check.replay(told)
    if "wide" in told:
        return fuzz_wide.examine(told["wide"])[1]
    told["place"] = None if told["place"] is None else tuple(told["place"])
    return fuzz.again(fuzz.Failure(**told))


def ask_questions(seed: int, end: float) -> tuple[int, list[str]]:
    """Ask random questions until a moment; return their number, and what was wrong."""
    asked, wrong = 0, []
    for number in count(seed):
        some, failures = fuzz.examine(number)
        asked += some
        # One question of a theory stands for all that are wrong with it.
        wrong += [f"{found.said}\n  stored: {store(fuzz.shrunk(found))}" for found in failures[:1]]
        if number % 20 == 0:
            some, said = fuzz_wide.examine(number)
            asked += some
            wrong += [f"{text}\n  stored: {store_wide(number, text)}" for text in said[:1]]
        for question, _, said in best_check.ask_each(number):
            asked += 1
            wrong += [f"{text}\n  stored: {best_check.store(question, text)}" for text in said[:1]]
        if time.monotonic() > end:
            break
    return asked, wrong


def test_files(rng: random.Random) -> Iterator[Path]:
    """Yield test files that use Hypothesis, all of them in a random order, again and again."""
    files = [
        file for file in sorted((ROOT / "tests").rglob("test_*.py")) if "from hypothesis" in file.read_text()
    ]
    while True:
        rng.shuffle(files)
        yield from files


def run_examples(file: Path, seed: int, end: float) -> tuple[str, list[str]]:
    """Run the Hypothesis tests of a file with another seed; return what was run, and what failed."""
    order = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-m",
        "hypothesis and not slow",
        "-p",
        "no:cacheprovider",
    ]
    order += [f"--hypothesis-seed={seed}", str(file.relative_to(ROOT))]
    environment = {**os.environ, "HYPOTHESIS_PROFILE": "fuzz"}
    with subprocess.Popen(
        order, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        killed = False
        try:
            said, _ = process.communicate(timeout=max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # what failed so far is told, and stored
            try:
                said, _ = process.communicate(timeout=30)
            except subprocess.TimeoutExpired:  # a busy machine takes its time to end, too
                process.kill()
                killed = True
                said, _ = process.communicate()
    lines = said.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR "))]
    # 2: interrupted; 5: no such test; ended by our signal, where it came when all was done
    if process.returncode not in (0, 2, 5, -signal.SIGINT) and not killed and not failed:
        failed = [f"exit {process.returncode}: {' '.join(lines[-3:])}"]
    last = next((line.strip("= ") for line in reversed(lines) if line.strip()), "nothing")
    return last, [
        f"{text}\n  again: pytest {file.relative_to(ROOT)} --hypothesis-seed={seed}" for text in failed
    ]


def main() -> int:
    """Run rounds until the time is over, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first round; by default another one each time")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else random.SystemRandom().randrange(10**9)
    warnings.simplefilter("error")
    start = time.monotonic()
    end = start + 60 * options.minutes
    asked = rounds = 0
    failures: list[str] = []
    files = test_files(random.Random(first))
    try:
        while time.monotonic() < end:
            seed = first + 100_000 * rounds
            number, wrong = ask_questions(seed, min(end, time.monotonic() + SECONDS))
            asked, rounds = asked + number, rounds + 1
            failures += wrong
            told = "no time for tests"
            if time.monotonic() < end:
                file = next(files)
                told, failed = run_examples(file, seed, min(end, time.monotonic() + LONGEST))
                told = f"{file.relative_to(ROOT / 'tests')}: {told}"
                wrong += failed
                failures += failed
            print(f"round {rounds}, seed {seed}: {number} questions; {told}", flush=True)
            for text in wrong:
                print(text, flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    took = (time.monotonic() - start) / 60
    print(f"{rounds} rounds in {took:.1f} minutes, {asked} questions: {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
