"""What commands share: options, files or standard input, lines for people, JSON for programs.

The list of commands is in :mod:`lbm.views.commands`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import typer
from typer import Argument, Option

from lbm.errors import FileError, LbmError
from lbm.knowledge.printed import counted
from lbm.reasoning.choices import DISTRIBUTIONS, FAST, METHODS
from lbm.views.entry import one_line, say_aside

if TYPE_CHECKING:
    from lbm.knowledge.networks import ValueNetwork
    from lbm.knowledge.theory import Theory
    from lbm.machine.rbm import Machine

STANDARD_INPUT: Final = "<stdin>"

_started: Final[ContextVar[float]] = ContextVar("started")
_told: Final[ContextVar[bool]] = ContextVar("told")  # a JSON object was printed

app: Final = typer.Typer(
    name="lbm",
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback()
def about(
    version: Annotated[bool, Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Logical Boltzmann Machines: knowledge and data as one restricted Boltzmann machine.

    Commands about theories read a file (.lbm, .cnf, .wcnf, .uai, .nnf or .sdd, or one packed as .gz, .xz or
    .bz2) or, as -, standard input; train, predict and rules read tables (.csv or .parquet) and models;
    induce and saturate read directories of Prolog files.
    Exit status: 0 answered, 1 answered "no", 2 bad input or usage, 3 no answer within the budget, 130
    interrupted.
    """
    if version:
        from lbm import __version__

        print(f"lbm {__version__}")
        raise typer.Exit


# --- options -------------------------------------------------------------------------------------


def one_of(choices: Sequence[str], name: str, text: str) -> Any:
    """Return an option that takes one of these words; ``text`` is its help."""

    def read(word: str) -> str:
        if word in choices:
            return word
        raise typer.BadParameter(f"{word!r} is not one of {', '.join(map(repr, choices))}.")

    return Option(name, parser=read, metavar=f"<{'|'.join(choices)}>", help=text)


def _number(wanted: str, allows: Callable[[float], bool]) -> Callable[[float | None], float | None]:
    """Return what checks a number that was given, if one was; ``wanted`` says which are allowed."""

    def checked(value: float | None) -> float | None:
        if value is not None and not allows(value):
            raise typer.BadParameter(f"expected {wanted}, got {value}")
        return value

    return checked


_inside = _number("a number strictly between 0 and 1", lambda value: 0 < value < 1)
_finite = _number("a finite number above 0", lambda value: 0 < value < inf)
positive = _number("a number above 0", lambda value: value > 0)


def count_from(started: float) -> None:
    """Let the time that ``--seconds`` allows begin at a moment of ``time.monotonic``; else it begins now."""
    _started.set(started)


def budget(seconds: float | None) -> float | None:
    """Return the time that ``--seconds`` allows; whatever the command asks ends by then. None: no limit."""
    if positive(seconds) is not None:
        from lbm.reasoning.budget import Budget, now

        Budget.limit = _started.get(now()) + seconds  # type: ignore[operator]
    return seconds


def split_names(names: str | None) -> list[str] | None:
    """Return the atoms of ``--project a,less(a1, b1),'c d'``, as an ``atoms`` line lists them."""
    if names is None:
        return None
    from lbm.knowledge.parser import read_text

    return list(read_text(f"atoms {names}", source="--project").atoms)


File = Annotated[
    str, Argument(metavar="FILE", help="A theory: .lbm, .cnf, .wcnf, .uai, .nnf, .sdd; - is standard input.")
]
Query = Annotated[str, Argument(metavar="QUERY", help="Any formula, as in 'n -> r'.")]
Given = Annotated[
    str | None, Option("--given", metavar="FORMULA", help="Evidence: any formula, as in 'n & ~p'.")
]
Rows = Annotated[
    str | None,
    Option(
        "--rows",
        metavar="ROWS",
        help="A CSV file of evidence, or - for standard input: atoms in its first line, then a row a line.",
    ),
]
Answers = Annotated[
    str | None,
    Option("-o", "--out", metavar="OUT", help="With --rows: a CSV file; by default standard output."),
]
Project = Annotated[
    str | None,
    Option("--project", metavar="ATOMS", help="Only these atoms, as in a,b: worlds that agree are one."),
]
Chosen = Annotated[str, one_of(METHODS, "--method", "auto: exact and, where that is too much, collapsed.")]
Drawn = Annotated[
    str,
    one_of(
        (*METHODS, FAST),
        "--method",
        "auto: exact and, where that is too much, collapsed. fast: annealed models, not uniform.",
    ),
]
Seconds = Annotated[
    float, Option("--seconds", callback=budget, help="Time to look for an answer; then exit 3.")
]
Lenient = Annotated[
    bool, Option("--lenient", help="Read a DIMACS file that does not fit its header, with a warning.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON object, for programs.")]
Seed = Annotated[
    int | None, Option("--seed", help="Taken by every command; this one makes no random choice.")
]
Seeded = Annotated[int | None, Option("--seed", min=0, help="Of the chains: the same seed, the same answer.")]


@dataclass(frozen=True, slots=True)
class DistributionOptions:
    """The options that say which distribution over worlds is asked about."""

    distribution: Annotated[
        str, one_of(DISTRIBUTIONS, "--distribution", "What the probability is about: models, or the machine.")
    ] = "logical"
    temperature: Annotated[
        float, Option("--temperature", callback=_finite, help="τ: probabilities go with exp(score/τ).")
    ] = 1.0
    confidence: Annotated[
        float, Option("--confidence", callback=_finite, help="c, of the machine distribution.")
    ] = 5.0


@dataclass(frozen=True, slots=True)
class EffortOptions:
    """The options that say how long chains run."""

    sweeps: Annotated[
        int | None, Option("--sweeps", min=1, help="Sweeps of each chain; by default until they agree.")
    ] = None
    seconds: Seconds = 60.0


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """The options that say how a theory becomes a machine."""

    epsilon: Annotated[
        float, Option("--epsilon", callback=_inside, help="How deep a well of weight 1 is, in (0, 1).")
    ] = 0.5
    no_merge: Annotated[
        bool, Option("--no-merge", help="Keep identical cubes of different formulae apart.")
    ] = False
    method: Annotated[
        str,
        one_of(
            ("auto", "elimination", "diagram", "full", "definitions"),
            "--method",
            "How each formula becomes cubes that exclude one another.",
        ),
    ] = "auto"
    budget: Annotated[
        int, Option("--budget", min=1, help="Cubes of a formula past which auto adds definitional atoms.")
    ] = 128
    encoding: Annotated[
        str,
        one_of(("sdnf", "penalty"), "--encoding", "Cubes, or the penalty polynomial of Penalty Logic."),
    ] = "sdnf"
    units: Annotated[
        str,
        one_of(
            ("paper", "calibrated"), "--units", "Those of the paper, or those whose free energy is the score."
        ),
    ] = "paper"

    def machine(self, theory: Theory) -> Machine:
        """Return the machine of a theory."""
        from lbm.machine.translate import translate

        return translate(
            theory,
            epsilon=self.epsilon,
            merge=not self.no_merge,
            method=self.method,
            budget=self.budget,
            encoding=self.encoding,
            units=self.units,
        )


@dataclass(frozen=True, slots=True)
class FileOptions:
    """The options that say how a file with a theory is read."""

    lenient: Lenient = False
    hard_as_soft: Annotated[
        bool, Option("--hard-as-soft", help="Read a .cnf file as Max-SAT: each clause is soft, of weight 1.")
    ] = False
    evidence: Annotated[
        str | None,
        Option("--evidence", metavar="EVID", help="Of a .uai network: the .evid file of what is observed."),
    ] = None

    variables: Annotated[
        int | None,
        Option("--variables", min=0, metavar="N", help="Of a circuit: how many, if more than it mentions."),
    ] = None

    def theory(self, file: str) -> Theory:
        """Return the theory in a file."""
        return read_theory(
            file,
            lenient=self.lenient,
            hard_as_soft=self.hard_as_soft,
            evidence=self.evidence,
            variables=self.variables,
        )

    def network(self, file: str) -> tuple[ValueNetwork, Theory]:
        """Return the network in a file, and the theory it becomes; raise unless it is one."""
        from lbm.knowledge import networks

        data, source, format = read_file(file)
        if format != "uai":
            raise FileError(f"expected a network, as --form uai is about one, found another file: {source}")
        network = networks.read_network(data, source=source)
        observed = _observed(file, self.evidence)
        values = (
            None if observed is None else networks.read_evidence(observed[0], network, source=observed[1])
        )
        return network, networks.network_theory(network, values)


@dataclass(frozen=True, slots=True)
class TheoryOptions(FileOptions):
    """The options that say how a theory is read, and what of it is demanded."""

    soft_as_hard: Annotated[
        bool, Option("--soft-as-hard", help="Demand every formula: weights are dropped.")
    ] = False

    def theory(self, file: str) -> Theory:
        """Return the theory in a file."""
        if self.soft_as_hard and self.hard_as_soft:
            raise typer.BadParameter("ask for --soft-as-hard or for --hard-as-soft, not for both")
        theory = FileOptions.theory(self, file)
        return theory.all_hard() if self.soft_as_hard else theory


Form = Annotated[
    str | None, one_of(("uai",), "--form", "uai: as solvers of networks print it, in competitions.")
]


def check_form(form: str | None, as_json: bool) -> None:
    """Refuse two forms of one answer."""
    if form is not None and as_json:
        raise typer.BadParameter("ask for --form or for --json, not for both")


def unseeded(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a command that takes ``--seed``, as all of them do, and drops it: nothing in it is random."""

    @wraps(command)
    def run(*, seed: int | None, **others: Any) -> int | None:
        del seed
        return command(**others)

    taken = signature(command, eval_str=True)  # which typer reads in place of that of run
    seed = Parameter("seed", Parameter.KEYWORD_ONLY, default=None, annotation=Seed)
    run.__signature__ = taken.replace(parameters=[*taken.parameters.values(), seed])  # type: ignore[attr-defined]
    return run


def options_apart(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Return a command as typer takes it: each field of a group of options is an option of its own."""
    taken = signature(command, eval_str=True).parameters
    groups: dict[str, Any] = {
        name: each.annotation for name, each in taken.items() if is_dataclass(each.annotation)
    }

    @wraps(command)
    def run(**given: Any) -> int | None:
        for name, group in groups.items():
            given[name] = group(**{part.name: given.pop(part.name) for part in fields(group)})
        return command(**given)

    apart: list[Parameter] = []
    for name, each in taken.items():
        apart += signature(groups[name], eval_str=True).parameters.values() if name in groups else [each]
    keyword = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in apart]
    run.__signature__ = Signature(keyword)  # type: ignore[attr-defined]
    return run


# --- in ------------------------------------------------------------------------------------------


def read_theory(
    file: str,
    *,
    lenient: bool,
    hard_as_soft: bool = False,
    evidence: str | None = None,
    variables: int | None = None,
) -> Theory:
    """Return the theory in a file, or in standard input if it is called ``-``."""
    from lbm.knowledge import wire

    data, source, format = read_file(file)
    return wire.read_theory(
        data,
        format=format,
        source=source,
        lenient=lenient,
        hard_as_soft=hard_as_soft,
        evidence=_observed(file, evidence),
        variables=variables,
        warn=warn,
    )


def read_file(file: str) -> tuple[bytes, str, str]:
    """Return the bytes of a file or of standard input, what messages call it, and its format."""
    from lbm.knowledge import wire
    from lbm.knowledge.packed import path_shown, read_whole

    if file == "-":
        data = read_stdin()
        return data, STANDARD_INPUT, wire.sniff_format(data)
    data = read_whole(file)
    return data, path_shown(file), wire.sniff_format(data, file)


def _observed(file: str, evidence: str | None) -> tuple[bytes, str] | None:
    """Return the bytes of a file of evidence and its name; where one lies unasked beside a file, say so."""
    from lbm.knowledge.packed import bare_name, path_shown, read_whole

    if evidence is not None:
        return read_whole(evidence), path_shown(evidence)
    beside = None if file == "-" else bare_name(file)
    if beside is not None and beside.suffix.lower() == ".uai":
        beside = beside.with_name(f"{beside.name}.evid")
        if beside.is_file():
            remark(f"{beside} is not read: --evidence reads it")
    return None


def read_stdin() -> bytes:
    """Return all of standard input, within the limit that files have; unpacked if it is packed."""
    from lbm.knowledge.packed import unpacked

    if sys.stdin is None:
        raise FileError("cannot read standard input: it is closed")
    try:
        return unpacked(sys.stdin.buffer, "standard input")
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read standard input: {error.strerror or error}") from error


def name_of(file: str) -> str:
    """Return what messages call a file."""
    return STANDARD_INPUT if file == "-" else file


# --- out -----------------------------------------------------------------------------------------


class Told(Protocol):
    """What a question finds, and can tell to people and to programs."""

    def lines(self) -> Iterable[str]:
        """Return it for people."""

    def facts(self) -> dict[str, Any]:
        """Return it as JSON has it."""


def tell(found: Told, as_json: bool) -> None:
    """Print what was found: as JSON, or else for people."""
    if as_json:
        say_json(found.facts())
    else:
        say_each(found.lines())


def say(*lines: str) -> None:
    """Print lines."""
    say_each(lines)


def say_now(line: str) -> None:
    """Print a line that somebody waits for, whatever stands between us and them."""
    print(line, flush=True)


def say_each(lines: Iterable[str]) -> None:
    """Print lines as they come: all of them may not fit into memory."""
    for line in lines:
        print(line)


def say_json(facts: dict[str, Any]) -> None:
    """Print one JSON object, a key a line; iterators are written as lists while they run."""
    write = sys.stdout.write
    _told.set(True)
    for i, (key, value) in enumerate(facts.items()):
        write(f"{',' if i else '{'}\n  {json.dumps(key)}: ")
        if isinstance(value, Iterator):
            j = -1
            for j, item in enumerate(value):
                write(f"{',' if j else '['}\n    {_dumped(item)}")
            write("\n  ]" if j >= 0 else "[]")
        else:
            write(_dumped(value))
    write("\n}\n")


def begin() -> None:
    """Forget what other commands have printed."""
    _told.set(False)


def say_refusal(error: LbmError) -> None:
    """Print "no", or that there is no answer in time, as JSON; bad input is no answer, and prints nothing.

    A command that has printed an object of its own is left alone.
    """
    if error.exit_status in (1, 3) and not _told.get(False):
        say_json({"answer": False if error.exit_status == 1 else None, "reason": error.one_line()})


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def remark(*lines: str) -> None:
    """Print lines about the answer on standard error, where they are in nobody's way."""
    for line in lines:
        say_aside(f"lbm: {one_line(line)}")


def warn(message: str) -> None:
    """Print a warning on one line of standard error."""
    say_aside(f"lbm: warning: {one_line(message)}")


def on_terminal() -> bool:
    """Return whether somebody watches standard error."""
    return sys.stderr is not None and sys.stderr.isatty()


def working(what: str) -> AbstractContextManager[object]:
    """Show on a terminal that work is going on; in a pipe show nothing."""
    if not on_terminal():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


@contextmanager
def bar(
    what: str, total: float | None, *columns: str, stays: bool = False, **fields: Any
) -> Iterator[Callable[..., object]]:
    """Give what is called with how much is done: on a terminal it moves a bar, in a pipe it does nothing.

    Parameters
    ----------
    columns
        What stands beside the bar: count, elapsed and left, or any text with ``fields`` of the bar's task.
    stays
        Whether the bar can still be seen when all is done.
    """
    if not on_terminal():
        yield lambda *_, **__: None
        return
    from rich import progress as rich
    from rich.console import Console

    known: dict[str, Callable[[], rich.ProgressColumn]] = {
        "count": rich.MofNCompleteColumn,
        "elapsed": rich.TimeElapsedColumn,
        "left": rich.TimeRemainingColumn,
    }
    beside = [known[column]() if column in known else rich.TextColumn(column) for column in columns]
    text = rich.TextColumn("{task.description}", markup=False)
    with rich.Progress(
        text, rich.BarColumn(), *beside, console=Console(stderr=True), transient=not stays
    ) as shown:
        task = shown.add_task(what, total=total, **fields)
        yield lambda done, **more: shown.update(task, completed=done, **more)


def check_place(output: str | None) -> None:
    """Refuse a file that could not be written, before hours are spent on what goes there; None: no file."""
    if output is None:
        return
    folder = Path(output).absolute().parent
    if not folder.is_dir():
        raise FileError(f"cannot write {output}: there is no directory {folder}")
    if Path(output).is_dir():
        raise FileError(f"cannot write {output}: it is a directory")


# --- words ---------------------------------------------------------------------------------------


def formulae_counted(hard: int, soft: int) -> str:
    """Return ``4 formulae (1 hard, 3 soft)``."""
    return f"{counted(hard + soft, 'formula', 'formulae')} ({hard:,} hard, {soft:,} soft)"


def count_statements(theory: Theory) -> tuple[int, int]:
    """Return the numbers of hard and of soft formulae."""
    hard = theory.weights.count(None)
    return hard, len(theory) - hard
