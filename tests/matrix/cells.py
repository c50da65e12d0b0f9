"""Every public question about a theory of one sort and size: answered, and right, or refused by name."""

from __future__ import annotations

import inspect
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

import lbm
from lbm.errors import LbmError, NoWorlds, ParseError, UnknownAtom
from tests.matrix.shapes import Shape

METHODS = {"exact": "exact", "chains": "collapsed", "auto": "auto"}

QUESTIONS = (
    ("count", "auto"),
    ("models", "auto"),
    ("best", "auto"),
    ("entails", "auto"),
    *(("ask", way) for way in METHODS),
    *(("sample", way) for way in METHODS),
    *(("marginals", way) for way in METHODS),
    ("log_partition", "exact"),
    ("log_partition", "chains"),
    ("log_partition", "auto"),
    ("log_probability", "exact"),
)
"""What is asked, and how."""

TIMED = ("check", "models", "count", "best", "ask", "entails", "sample")
"""Commands that take --seconds."""

COMMANDS = ("check", "compile", "convert", "draw", "models", "count", "best", "ask", "entails", "sample")
"""What is asked by command."""

NEAR = 1e-6
DRAWS = 20


class Wrong(Exception):
    """An answer that is not right."""


@dataclass(frozen=True)
class Cell:
    """What became of a question: ``answered``, ``refused``, or what is wrong."""

    sort: str
    atoms: int
    question: str
    way: str
    outcome: str
    said: str
    seconds: float

    @property
    def failed(self) -> bool:
        """Return whether it was neither answered nor refused by name."""
        return self.outcome not in ("answered", "refused")


def cell(shape: Shape, question: str, way: str, seconds: float, sweeps: int | None = None) -> Cell:
    """Return what becomes of a question."""
    began = time.monotonic()
    try:
        outcome, said = "answered", _ask(shape, question, way, seconds, sweeps)
    except (NoWorlds, ParseError, UnknownAtom) as error:  # there are worlds, and the text is right
        outcome, said = "wrong", repr(error)
    except LbmError as error:
        outcome, said = "refused", f"{type(error).__name__} {getattr(error, 'limit', '')}: {error.one_line()}"
    except Wrong as error:
        outcome, said = "wrong", str(error)
    except Exception as error:  # noqa: BLE001 - the matrix is there to find them
        outcome, said = "foreign", repr(error)
    taken = time.monotonic() - began
    return Cell(shape.sort, shape.atoms, question, way, outcome, said[:300], round(taken, 3))


def demand(true: object, said: str) -> None:
    """Raise Wrong unless something is true."""
    if not true:
        raise Wrong(said)


def _ask(shape: Shape, question: str, way: str, seconds: float, sweeps: int | None) -> str:
    ask: Callable[..., Any] = getattr(lbm, question)
    takes = inspect.signature(ask).parameters
    options: dict[str, Any] = {"seed": 0, "seconds": seconds}
    if sweeps is not None and way == "chains":
        options["sweeps"] = sweeps
    if shape.given is not None:
        options["given"] = shape.given
    if "method" in takes:
        options["method"] = METHODS[way]
    if question == "log_partition":
        options["method"] = {"exact": "exact", "chains": "population", "auto": "auto"}[way]
        if way == "auto":  # where there is no such method yet, the default is asked for
            del options["method"]
    options = {name: value for name, value in options.items() if name in takes}
    args: list[Any] = []
    if question in ("ask", "entails"):
        args = [shape.query]
    elif question == "sample":
        args = [DRAWS]
    elif question == "models":
        options["limit"] = 2
    elif question == "log_probability":
        if shape.known.world is None:
            return "nothing to ask"
        args = [shape.known.world]
    return str(_JUDGES[question](shape, ask(shape.theory, *args, **options)))


# --- is it right? -------------------------------------------------------------------------------------


def _possible(shape: Shape, names: tuple[str, ...], array: Any) -> None:
    """Demand that worlds satisfy every hard formula and the evidence."""
    columns = dict(zip(names, np.asarray(array).T, strict=True))
    given = [] if shape.given is None else [lbm.parse(shape.given)]
    for formula in [*(s.formula for s in shape.theory if s.weight is None), *given]:
        demand(np.all(lbm.holds(formula, columns)), f"a world that breaks {str(formula)[:80]}")


def _count(shape: Shape, found: int) -> str:
    right = shape.known.count
    demand(right is None or found == right, f"a count of {found.bit_length()} bits, not the right one")
    return f"{found.bit_length()} bits"


def _models(shape: Shape, found: Any) -> str:
    least = 2 if shape.known.count is None else min(2, shape.known.count)
    demand(len(found) == least, f"{len(found)} models")
    demand(len({tuple(row) for row in found.array.tolist()}) == least, "a model twice")
    _possible(shape, found.atoms, found.array)
    return f"{len(found)} models"


def _best(shape: Shape, found: Any) -> str:
    _possible(shape, tuple(found.world), [list(found.world.values())])
    score = Fraction(shape.theory.score(found.world))
    demand(Fraction(found.scores[0]) == score, f"a score of {found.scores[0]}, should be {score}")
    best = shape.known.best
    demand(best is None or score <= best, f"a score of {score}, past the best one, {best}")
    demand(best is None or not found.optimal or score == best, f"{score} called optimal, the best is {best}")
    return f"score {float(score):g}, optimal: {found.optimal}"


def _entails(shape: Shape, found: bool) -> str:
    chance = shape.known.chance
    demand(chance is None or found == (chance == 1), f"entailed: {found}; its probability is {chance}")
    return str(found)


def _near(found: float, right: float | None, low: float, high: float, sure: bool, what: str) -> None:
    """Demand that a number is near the right one: within five half-widths if it is called sure."""
    if right is None or not sure:
        return
    room = max(5 * (high - low) / 2, NEAR * max(1.0, abs(right)))
    demand(abs(found - right) <= room, f"{what} is {found:g} ({low:g} to {high:g}), and should be {right:g}")


def _probability(shape: Shape, found: Any) -> str:
    right = shape.known.chance
    if found.probability == found.probability:  # nan where no state was valid: then it is not sure
        demand(0 <= found.probability <= 1, f"probability {found.probability}")
    else:
        demand(not found.converged, "nan, converged")
    _near(found.probability, right, *found.interval, found.converged, "the probability")
    if right is not None:
        demand(right == 1 or found.status != "entailed", "called entailed")
        demand(right == 0 or found.status != "refuted", "called refuted")
    return f"{found.probability:g}, {found.method}, {'' if found.converged else 'not '}converged"


def _sample(shape: Shape, found: Any) -> str:
    demand(found.array.shape == (DRAWS, len(shape.theory.atoms)), f"shape {found.array.shape}")
    _possible(shape, found.atoms, found.array)
    return f"{found.method}, {'' if found.converged else 'not '}converged"


def _marginals(shape: Shape, found: Any) -> str:
    demand(tuple(found) == shape.theory.atoms, "marginals of other atoms")
    values = np.array(list(found.chances.values()))
    demand(np.all(np.isnan(values) | ((values >= 0) & (values <= 1))), "a probability past 1")
    query = lbm.parse(shape.query)
    if query.kind == "atom":
        told = found.estimates and found.estimates.get(query.label)
        low, high = (told.low, told.high) if told else (found[query.label], found[query.label])
        _near(found[query.label], shape.known.chance, low, high, found.converged, shape.query)
    return f"{found.method}, {'' if found.converged else 'not '}converged"


def _log_partition(shape: Shape, found: float) -> str:
    demand(not math.isnan(found), "log Z is no number")
    error = getattr(found, "error", 0.0)
    room = error * float(stdtrit(max(1, getattr(found, "populations", 2) - 1), 0.975)) if error else 0.0
    sure = getattr(found, "converged", True)
    _near(found, shape.known.log_partition, found - room, found + room, sure, "log Z")
    return f"{found:g}"


def _log_probability(shape: Shape, found: float) -> str:
    world, whole = shape.known.world, shape.known.log_partition
    if world is not None and whole is not None:
        right = float(shape.theory.score(world)) - whole
        demand(abs(found - right) <= NEAR * max(1.0, abs(right)), f"{found:g}, should be {right:g}")
    return f"{found:g}"


_JUDGES: dict[str, Callable[[Shape, Any], str]] = {
    "count": _count,
    "models": _models,
    "best": _best,
    "entails": _entails,
    "ask": _probability,
    "sample": _sample,
    "marginals": _marginals,
    "log_partition": _log_partition,
    "log_probability": _log_probability,
}


# --- by command ---------------------------------------------------------------------------------------

LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
sys.argv = ["lbm", *sys.argv[2:]]
runpy.run_module("lbm", run_name="__main__", alter_sys=True)
"""


def command(
    shape: Shape, name: str, seconds: float, patience: float, addresses: int | None = None
) -> tuple[Cell, int]:
    """Return what becomes of a command, and the most memory it used, in bytes.

    Its exit status must mean something, and the JSON it prints must be one object.
    """
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "theory.lbm"
        file.write_text(shape.text + "\n")
        order = [name, str(file), *([shape.query] if name in ("ask", "entails") else []), "--json"]
        if name in TIMED:
            order += ["--seconds", f"{seconds:g}"]
        if shape.given is not None and name in ("models", "count", "best", "ask", "entails", "sample"):
            order += ["--given", shape.given]
        more = {"models": ["--limit", "2"], "sample": ["-n", str(DRAWS), "--seed", "0"]}
        more |= {
            "draw": ["-o", str(Path(place) / "out.svg")],
            "convert": ["-o", str(Path(place) / "out.wcnf")],
        }
        start = ["-m", "lbm"] if addresses is None else ["-c", LIMITED, str(addresses)]
        began = time.monotonic()
        ran, memory = _run([sys.executable, *start, *order, *more.get(name, [])], Path(place), patience)
        taken = time.monotonic() - began
        outcome, said = ("no end", f"after {patience:g} s") if ran is None else _read(name, ran)
    return Cell(shape.sort, shape.atoms, f"lbm {name}", "auto", outcome, said[:300], round(taken, 3)), memory


def _run(
    order: list[str], place: Path, patience: float
) -> tuple[subprocess.CompletedProcess[str] | None, int]:
    """Run a command to its end, or kill it when patience is over; return also its peak of memory."""
    out, err = place / "stdout", place / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            order,
            stdout=stdout,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "MPLBACKEND": "Agg"},
        )
        until, ended = time.monotonic() + patience, True
        while True:
            found, status, usage = os.wait4(process.pid, os.WNOHANG)
            if found:
                break
            if time.monotonic() > until and ended:
                process.kill()
                ended = False
            time.sleep(0.01)
        process.returncode = os.waitstatus_to_exitcode(status)
    said = [file.read_text(errors="replace") for file in (out, err)]
    ran = subprocess.CompletedProcess(order, process.returncode, *said) if ended else None
    return ran, usage.ru_maxrss * 1024


def _read(name: str, ran: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    last = ran.stderr.strip().splitlines()[-1:] or [""]
    if ran.returncode not in (0, 1, 2, 3) or "Traceback" in ran.stderr:
        return "foreign", f"exit {ran.returncode}: {ran.stderr.strip()[-250:]}"
    if ran.returncode == 1 and name != "entails":
        return "wrong", f"exit 1: {last[0]}"
    if ran.stdout.strip():
        try:
            json.loads(ran.stdout)
        except json.JSONDecodeError as error:
            return "wrong", f"exit {ran.returncode}, and no JSON: {error}"
    elif ran.returncode == 0:
        return "wrong", "exit 0, and nothing printed"
    if ran.returncode in (2, 3) and not ran.stdout.strip():
        lines = [line for line in ran.stderr.splitlines() if line.strip()]
        return ("refused" if lines else "wrong"), f"exit {ran.returncode}: {last[0]}"
    return "answered", f"exit {ran.returncode}"


def cells(
    shape: Shape, seconds: float, *, skip: int = 0, sweeps: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what becomes of each question, from number ``skip`` on."""
    for question, way in QUESTIONS[skip:]:
        yield asdict(cell(shape, question, way, seconds, sweeps))
