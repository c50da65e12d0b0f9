"""Every error raised on purpose: what was expected, what came, what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass


class LbmError(Exception):
    """The root of them all, so that one ``except`` catches what we raise on purpose."""

    exit_status = 2

    def one_line(self) -> str:
        """Return the message as the command line prints it: without a picture of the place."""
        return " ".join(str(self).split("\n")[0].split())


@dataclass(eq=False, repr=False)
class ParseError(LbmError, ValueError):
    """Text that could not be read; knows its source, line and column (counted from 1)."""

    message: str
    _: KW_ONLY
    source: str | None = None
    line: int | None = None
    column: int | None = None
    excerpt: str | None = None
    caret: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.message, self.source, self.line, self.column, self.excerpt, self.caret)

    @classmethod
    def at(cls, message: str, text: str, place: int, *, source: str | None = None) -> ParseError:
        """Return the error that points at a place of a text, counted from 0."""
        start = text.rfind("\n", 0, place) + 1
        end = text.find("\n", place)
        first = max(start, place - 60)
        excerpt = text[first : min(len(text) if end < 0 else end, place + 40)].expandtabs(1)
        return cls(
            message,
            source=source,
            line=text.count("\n", 0, place) + 1,
            column=place - start + 1,
            excerpt="".join(sign if sign.isprintable() else "?" for sign in excerpt),
            caret=place - first,
        )

    def one_line(self) -> str:
        """Return ``source:line:column: message``, with the parts that are known."""
        place = ":".join(str(part) for part in (self.source, self.line, self.column) if part is not None)
        return f"{place}: {self.message}" if place else self.message

    def __str__(self) -> str:
        if self.excerpt is None:
            return self.one_line()
        return f"{self.one_line()}\n  {self.excerpt}\n  {' ' * self.caret}^"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self).__new__, (type(self), *self.args), vars(self)  # arguments of __init__ have names


class WeightError(LbmError, ValueError):
    """A weight that is zero, not finite, not a number, or past the limits."""


class LimitExceeded(LbmError, ValueError):
    """A named limit was passed; ``limit`` is its name and ``value`` its value.

    Raised with both as one argument:

    >>> error = LimitExceeded("more than 7 bytes (limit MAX_BYTES)", MAX_BYTES=7)
    >>> error.limit, error.value
    ('MAX_BYTES', 7)
    """

    def __init__(self, message: str, **limit: int) -> None:
        super().__init__(message)
        ((self.limit, self.value),) = limit.items()

    def __reduce__(self) -> tuple[object, ...]:
        return type(self).__new__, (type(self), *self.args), vars(self)  # arguments of __init__ have names


class NoAnswer(LbmError, TimeoutError):
    """A question that was not settled within its budget."""

    exit_status = 3

    def __str__(self) -> str:
        return str(self.args[0])


class WorkersDied(LbmError, RuntimeError):
    """Blocks of work that were begun ``tries`` times, and each time the worker died.

    ``blocks`` are their numbers, and ``reason`` is what was last heard of a worker.
    """

    exit_status = 3

    def __init__(self, blocks: Iterable[int], tries: int, reason: str = "") -> None:
        self.blocks = tuple(blocks)
        self.tries = tries
        self.reason = reason
        super().__init__(self.blocks, tries, reason)

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.blocks[:10])) + (", ..." if len(self.blocks) > 10 else "")
        which = f"block {shown}" if len(self.blocks) == 1 else f"blocks {shown}"
        often = "once" if self.tries == 1 else f"{self.tries} times"
        advice = "most often memory ran out: try smaller blocks, a smaller n_jobs or larger machines"
        heard = f"\nthe last that was heard: {self.reason}" if self.reason else ""
        return f"{which}: begun {often}, and each time the worker died; {advice}{heard}"


class NoWorlds(LbmError, ValueError):
    """A question without meaning, since there is no world to speak of.

    ``evidence`` is the formula that no model satisfies; None: the hard formulae allow no world at all.
    """

    exit_status = 1

    def __init__(self, evidence: object = None) -> None:
        super().__init__(evidence)
        self.evidence = evidence

    def __str__(self) -> str:
        if self.evidence is None:
            return "the hard formulae allow no world; `lbm check` names those of a theory that clash"
        shown = repr(self.evidence)[1:-1]
        shown = shown if len(shown) <= 100 else shown[:100] + " ..."
        return f"the evidence is impossible: no world keeps {shown} and every hard formula"


class ClashingLabels(NoWorlds):
    """Hard labels that the rules do not allow together; ``labels`` is a small set of them, by atom."""

    def __init__(self, labels: Mapping[str, bool]) -> None:
        super().__init__(dict(labels))
        self.labels = dict(labels)

    def __str__(self) -> str:
        said = [name if value else f"~{name}" for name, value in self.labels.items()]
        shown = ", ".join(said[:10]) + (", ..." if len(said) > 10 else "")
        return f"expected labels that the rules allow together, got {shown}: correct one, or use a weight"


class WrongDistribution(LbmError, ValueError):
    """A method that cannot sample the distribution asked for."""


class TooManyCubes(LimitExceeded):
    """A strict DNF that would pass its budget."""


class NoRoom(LbmError, MemoryError):
    """Work that needs more memory, addresses or threads than the process may have."""


class TooManyWorlds(LimitExceeded):
    """A question whose exact answer would take too long, or too much room."""

    exit_status = 3


class UnknownAtom(LbmError, KeyError):
    """A name that is no atom here; the nearest one is suggested."""

    def __init__(self, name: str, known: Iterable[str], where: str = "theory") -> None:
        super().__init__(name)
        self.name = name
        self.where = where
        self.nearest = nearest(name, known)

    def __str__(self) -> str:
        hint = f"; did you mean {self.nearest!r}?" if self.nearest else ""
        return f"no atom {self.name!r} in this {self.where}{hint}"

    def __reduce__(self) -> tuple[object, ...]:
        return UnknownAtom, (self.name, [self.nearest] if self.nearest else [], self.where)


class EvidenceError(LbmError, ValueError):
    """A table of evidence that is none, or a cell of it that says nothing about an atom.

    ``column`` is the atom and ``row`` the number of the row, from 0, where they are known.
    """

    def __init__(self, message: str, column: str | None = None, row: int | None = None) -> None:
        super().__init__(message, column, row)
        self.message = message
        self.column = column
        self.row = row

    def __str__(self) -> str:
        row = None if self.row is None else f"row {self.row}"
        column = None if self.column is None else f"column {self.column!r}"
        return (
            ", ".join(part for part in (row, column) if part) + (": " if row or column else "") + self.message
        )


class RequestError(LbmError, ValueError):
    """What a program asked that is no question of ours; ``name`` is the part that is wrong, if one is."""

    def __init__(self, message: str, *, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self).__new__, (type(self), *self.args), vars(self)  # arguments of __init__ have names


class FileError(LbmError, OSError):
    """A file that cannot be read or written."""

    def __str__(self) -> str:
        return str(self.args[0])


class MachineFileError(LbmError, ValueError):
    """A file that is no machine or model of ours, or is damaged."""


class MissingExtra(LbmError, ImportError):
    """A part of the library whose optional packages are not installed."""

    def __init__(self, extra: str, purpose: str, package: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}, which is not installed: "
            f"pip install 'logical-boltzmann[{extra}]'"
        )
        self.extra = extra
        self.purpose = purpose
        self.package = package

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtra, (self.extra, self.purpose, self.package)


class ContradictoryKnowledge(LbmError, ValueError):
    """Formulae that must stay as they are, and that no world satisfies together; ``clash`` is their texts."""

    def __init__(self, clash: Iterable[str]) -> None:
        self.clash = tuple(clash)
        super().__init__(self.clash)

    def __str__(self) -> str:
        shown = "; ".join(self.clash[:5]) + ("; ..." if len(self.clash) > 5 else "")
        return (
            f"hard=True needs formulae that can hold together, and these cannot: {shown}; give one a weight"
        )


class TrainingDiverged(LbmError, ArithmeticError):
    """A cost that is no number any more, met at ``epoch``."""

    def __init__(self, epoch: int, cost: float) -> None:
        super().__init__(epoch, cost)
        self.epoch = epoch
        self.cost = cost

    def __str__(self) -> str:
        return f"expected a finite cost, got {self.cost} in epoch {self.epoch}: try a smaller learning_rate"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to ``name``, if one is close.

    >>> nearest("brid", ["bird", "penguin"])
    'bird'
    """
    # A vocabulary of a million names, or names of a million letters, must not make a typo a long wait.
    pool = [word for _, word in zip(range(10_000), known, strict=False) if len(word) <= 100]
    if len(name) > 100:
        return None
    alike = [word for word in pool if word.lower() == name.lower()]
    found = alike or difflib.get_close_matches(name, pool, n=1)
    return found[0] if found else None


def suggested(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return ``; did you mean ...?`` for the end of a message, or something else where no name is close."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else otherwise
