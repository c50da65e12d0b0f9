"""The questions that other programs may ask: what they take, its limits, and how they are answered.

The same table makes the tools of ``lbm mcp`` and the paths of the JSON interface, their schemas, and the
check of what comes in. What comes in is text, numbers and rows, never the name of a file: models are those
that whoever started the server has named.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from lbm.errors import LbmError, LimitExceeded, NoWorlds, ParseError, RequestError, suggested
from lbm.reasoning.choices import DISTRIBUTIONS, METHODS, MODES

if TYPE_CHECKING:
    from lbm.knowledge.formula import Formula
    from lbm.knowledge.theory import Theory

Said = dict[str, Any]
"""What a question is asked with, by name; and what is answered."""

MAX_THEORY: Final = 1 << 20
"""Characters of a theory."""

MAX_FORMULA: Final = 1 << 16
"""Characters of a query, or of evidence."""

MAX_WORLDS: Final = 1000
"""Worlds that one question may ask for."""

MAX_ROWS: Final = 1000
"""Rows that one question may ask a prediction for."""

MAX_COLUMNS: Final = 1000
"""Columns of such a row."""

MAX_CELL: Final = 10_000
"""Characters of a cell, of the name of a column, of an atom or of a model."""

MAX_SECONDS: Final = 60.0
"""Seconds that one question may take, unless the server was started with another number."""

SECONDS: Final = 10.0
"""Seconds that a question may take where it does not say."""

READ: Final = 8
"""Theories, and models, that a worker keeps ready."""

_FOR_CLASH: Final = 5.0  # seconds to name formulae that clash, after a question that this ended


# --- what questions take ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One thing that a question takes.

    Attributes
    ----------
    kind
        ``text``, ``whole`` or ``number``, ``flag``, ``names`` or ``rows``.
    least, most
        Of a number; of a text how many characters, of a list how many entries.
    limit
        The name of the limit that ``most`` is, where it is one of ours.
    """

    name: str
    kind: str
    about: str
    required: bool = False
    otherwise: Any = None
    least: float = 0
    most: float = math.inf
    limit: str = ""
    choices: tuple[str, ...] = ()

    def schema(self) -> Said:
        """Return it as JSON Schema."""
        found: Said = {"description": self.about}
        bounded = math.isfinite(self.most)
        if self.kind == "text":
            found["type"] = "string"
            found |= {"maxLength": self.most} if bounded and not self.choices else {}
            found |= {"enum": list(self.choices)} if self.choices else {}
        elif self.kind in ("whole", "number"):
            least = {"minimum": self.least} if self.kind == "whole" else {"exclusiveMinimum": self.least}
            found |= {"type": "integer" if self.kind == "whole" else "number", **least}
            found |= {"maximum": self.most} if bounded else {}
        elif self.kind == "flag":
            found["type"] = "boolean"
        elif self.kind == "names":
            found |= {"type": "array", "items": {"type": "string"}, "maxItems": self.most}
        else:
            cell = {"type": ["string", "number", "boolean", "null"]}
            row = {"type": "object", "additionalProperties": cell, "maxProperties": MAX_COLUMNS}
            found |= {"type": "array", "items": row, "minItems": 1, "maxItems": self.most}
        if self.otherwise is not None:
            found["default"] = self.otherwise
        return found

    def read(self, value: Any) -> Any:
        """Return the value as the question takes it; raise RequestError or LimitExceeded for any other."""
        if self.kind == "flag":
            if not isinstance(value, bool):
                self._refuse("true or false", value)
        elif self.kind in ("whole", "number"):
            self._check_number(value)
        elif self.kind == "text":
            self._check_text(value)
        elif self.kind == "names":
            self._check_long(value, "a list of names", list)
            for name in value:
                if not isinstance(name, str) or len(name) > MAX_CELL:
                    self._refuse(f"names of at most {MAX_CELL:,} characters", name)
        else:
            self._check_rows(value)
        return value

    def _check_number(self, value: Any) -> None:
        wanted = "a whole number" if self.kind == "whole" else "a number"
        if isinstance(value, bool) or not isinstance(value, int if self.kind == "whole" else (int, float)):
            self._refuse(wanted, value)
        above = value > self.least if self.kind == "number" else value >= self.least
        if not above or value in (math.inf, -math.inf):
            self._refuse(f"{wanted} {'above' if self.kind == 'number' else 'from'} {self.least:g}", value)
        if value > self.most:
            self._pass(value)

    def _check_text(self, value: Any) -> None:
        self._check_long(value, "text", str)
        if self.choices and value not in self.choices:
            self._refuse(f"one of {', '.join(self.choices)}", value)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise RequestError(f"{self.name}: expected text in Unicode, found half of a pair") from None

    def _check_rows(self, value: Any) -> None:
        self._check_long(value, "a list of rows", list)
        if not value:
            self._refuse("one row at least", value)
        for row in value:
            if not isinstance(row, dict) or not row:
                self._refuse("rows that are objects, a value for each column", row)
            if len(row) > MAX_COLUMNS:
                raise LimitExceeded(
                    f"{self.name}: expected at most {MAX_COLUMNS:,} columns (limit MAX_COLUMNS), "
                    f"got {len(row):,}: ask with fewer",
                    MAX_COLUMNS=MAX_COLUMNS,
                )
            for name, cell in row.items():
                if isinstance(cell, dict | list) or (isinstance(cell, float) and not math.isfinite(cell)):
                    self._refuse("cells that are text, finite numbers, true, false or null", cell)
                if len(name) > MAX_CELL or (isinstance(cell, str) and len(cell) > MAX_CELL):
                    self._refuse(f"cells and names of at most {MAX_CELL:,} characters", name)

    def _check_long(self, value: Any, wanted: str, kind: type) -> None:
        if not isinstance(value, kind):
            self._refuse(wanted, value)
        if len(value) > self.most:
            self._pass(len(value))

    def _pass(self, value: float) -> None:
        """Raise what says that a limit was passed."""
        name = self.limit or "most"
        what = {"text": " characters", "names": " names", "rows": " rows"}.get(self.kind, "")
        raise LimitExceeded(
            f"{self.name}: expected at most {shown(self.most)}{what} (limit {name}), "
            f"got {shown(value)}: ask for less",
            **{name: int(self.most)},
        )

    def _refuse(self, wanted: str, value: Any) -> None:
        raise RequestError(f"{self.name}: expected {wanted}, got {shown(value)}", name=self.name)


def shown(value: Any) -> str:
    """Return a value that came in as a message shows it: a part of it, on one line.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'..."
    >>> shown(1048577), shown(0.25), shown(None), shown([])
    ('1,048,577', '0.25', 'null', 'a list')
    """
    if isinstance(value, str):
        return repr(value[:40]) + ("..." if len(value) > 40 else "")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and abs(value) < 10**20:
        return f"{value:,}"
    if isinstance(value, int | float):
        return "a very large number" if abs(value) > 1e300 else f"{value:g}"
    return "a list" if isinstance(value, list) else "an object"


THEORY: Final = Input(
    name="theory",
    kind="text",
    required=True,
    most=MAX_THEORY,
    limit="MAX_THEORY",
    about="Formulae, one a line. Connectives: ~ & ^ | -> <->; exactly(1, a, b, c), atleast(k, ...), "
    "atmost(k, ...). A line '2.5: a -> b' is soft, with that weight (log-odds); a line without a weight is "
    "hard: it holds. Atoms are names, or any text in single quotes. '#' begins a comment.",
)
FORMAT: Final = Input(
    name="format",
    kind="text",
    otherwise="lbm",
    choices=("lbm", "cnf", "wcnf"),
    about="How the theory is written: lbm, as above, or DIMACS.",
)
QUERY: Final = Input(
    name="query",
    kind="text",
    required=True,
    most=MAX_FORMULA,
    limit="MAX_FORMULA",
    about="Any formula over the theory's atoms, as in 'n -> r'.",
)
GIVEN: Final = Input(
    name="given",
    kind="text",
    most=MAX_FORMULA,
    limit="MAX_FORMULA",
    about="Evidence: any formula that is known to hold, as in 'n & ~p'.",
)
PROJECT: Final = Input(
    name="project",
    kind="names",
    most=MAX_COLUMNS,
    limit="MAX_COLUMNS",
    about="Only these atoms: worlds that agree on them are one.",
)
ABOUT: Final = (
    Input(
        name="distribution",
        kind="text",
        otherwise="logical",
        choices=DISTRIBUTIONS,
        about="logical: over worlds that keep every hard formula; machine: that of the network.",
    ),
    Input(
        name="temperature",
        kind="number",
        otherwise=1.0,
        most=1e6,
        about="Probabilities go with exp(score/τ).",
    ),
    Input(name="confidence", kind="number", otherwise=5.0, most=1e6, about="c, of the machine distribution."),
    Input(
        name="method", kind="text", otherwise="auto", choices=METHODS, about="auto: exactly, or by chains."
    ),
)
SEED: Final = Input(
    name="seed", kind="whole", otherwise=0, most=2**32 - 1, about="The same seed, the same answer."
)
ROWS: Final = (
    Input(
        name="model",
        kind="text",
        required=True,
        most=MAX_CELL,
        limit="MAX_CELL",
        about="A trained model by the name it was given when the server was started; health lists them.",
    ),
    Input(
        name="rows",
        kind="rows",
        required=True,
        most=MAX_ROWS,
        limit="MAX_ROWS",
        about="Rows of a table: a value for each column; null where it is missing.",
    ),
)


def _worlds(name: str, otherwise: int, about: str) -> Input:
    return Input(
        name=name,
        kind="whole",
        otherwise=otherwise,
        least=1,
        most=MAX_WORLDS,
        limit="MAX_WORLDS",
        about=about,
    )


def _seconds(most: float) -> Input:
    return Input(
        name="seconds",
        kind="number",
        otherwise=min(SECONDS, most),
        most=most,
        limit="MAX_SECONDS",
        about="Seconds that the answer may take; then there is none.",
    )


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A question that may be asked: its name, what it says, what it takes beside ``seconds``."""

    name: str
    about: str
    inputs: tuple[Input, ...]
    answer: Callable[[Said], Said]

    def schema(self, most: float = MAX_SECONDS) -> Said:
        """Return what it takes as JSON Schema; ``most`` seconds may be asked for."""
        inputs = (*self.inputs, _seconds(most))
        return {
            "type": "object",
            "properties": {each.name: each.schema() for each in inputs},
            "required": [each.name for each in inputs if each.required],
            "additionalProperties": False,
        }

    def read(self, said: Any, most: float = MAX_SECONDS) -> Said:
        """Return what a question is asked with, checked and complete; anything else is one clear error."""
        if not isinstance(said, dict):
            raise RequestError(f"{self.name}: expected an object of named values, got {shown(said)}")
        known = {each.name: each for each in (*self.inputs, _seconds(most))}
        for name in said:
            if name not in known:
                advice = suggested(name, known, f": expected {', '.join(known)}")
                raise RequestError(f"{self.name} takes no {shown(name)}{advice}", name=name[:MAX_CELL])
        found: Said = {}
        for name, each in known.items():
            value = said.get(name)
            if value is None and each.required:
                raise RequestError(f"{self.name} needs {name}: {each.about.partition('.')[0]}", name=name)
            found[name] = each.otherwise if value is None else each.read(value)
        return found


# --- how they are answered -------------------------------------------------------------------------


@lru_cache(maxsize=READ)
def theory_of(text: str, format: str = "lbm") -> Theory:
    """Return the theory that a text says; the same text again is the same theory, which is ready then."""
    from lbm.knowledge.wire import read_theory

    if not text.strip():
        raise ParseError("expected a theory, found an empty text", source="theory")
    return read_theory(text, format=format, source="theory")


def _theory(said: Said) -> Theory:
    return theory_of(said["theory"], said["format"])


def _options(said: Said, *names: str) -> Said:
    return {name: said[name] for name in names}


def _about(said: Said) -> Said:
    return _options(said, "given", "distribution", "temperature", "confidence", "method", "seconds", "seed")


def _check(said: Said) -> Said:
    from dataclasses import asdict

    from lbm.reasoning.budget import Budget
    from lbm.reasoning.search.satisfy import prove
    from lbm.views.commands.check import size_of

    theory = _theory(said)
    size = asdict(size_of(theory))
    return {"atoms": len(theory.atoms), **size, **prove(theory, budget=Budget.of(said["seconds"])).facts()}


def _ask(said: Said) -> Said:
    from lbm.reasoning.reasoner import ask

    return ask(_theory(said), said["query"], why=said["why"], **_about(said)).facts()


def _marginals(said: Said) -> Said:
    from lbm.reasoning.reasoner import marginals

    return marginals(_theory(said), **_about(said)).facts()


def _entails(said: Said) -> Said:
    from lbm.reasoning.reasoner import reasoner_for

    theory = _theory(said)
    settled = reasoner_for(theory).settle(
        said["query"], why=True, **_options(said, "given", "mode", "seconds")
    )
    return settled.facts()


def _best(said: Said) -> Said:
    from lbm.reasoning.reasoner import best

    return best(_theory(said), **_options(said, "given", "top", "seconds", "seed")).facts()


def _models(said: Said) -> Said:
    from lbm.reasoning.reasoner import models

    return models(_theory(said), **_options(said, "given", "project", "limit", "seconds")).facts()


def _count(said: Said) -> Said:
    from lbm.reasoning.reasoner import count
    from lbm.views.commands.count import count_facts

    return count_facts(count(_theory(said), **_options(said, "given", "project", "seconds")))


def _sample(said: Said) -> Said:
    from lbm.reasoning.reasoner import sample

    return sample(_theory(said), said["number"], **_about(said)).facts()


def _compile(said: Said) -> Said:
    from lbm.machine.translate import translate
    from lbm.views.commands.compile import machine_facts

    theory = _theory(said)
    return machine_facts(translate(theory, epsilon=said["epsilon"], units=said["units"]))


models_allowed: dict[str, str] = {}
"""Files of models that whoever started the server has named, by the names that they are asked for by."""


def check_model(name: str) -> None:
    """Refuse a model that nobody has named, before anything is loaded."""
    if name not in models_allowed:
        there = f": expected {', '.join(models_allowed)}" if models_allowed else "; the server was given none"
        raise RequestError(
            f"no model {shown(name)}{suggested(name, models_allowed, there)}; "
            "whoever starts the server names models by --model",
            name="model",
        )


@lru_cache(maxsize=READ)
def _model(name: str) -> Any:
    from lbm.training.storage.store import load_model
    from lbm.views.commands import learning

    learning.require("predict")
    return load_model(models_allowed[name])


def _predicted(said: Said, explain: bool) -> Said:
    check_model(said["model"])
    import tempfile
    from pathlib import Path

    from lbm.knowledge.printed import csv_text
    from lbm.training.data.files import open_table
    from lbm.views.commands.predict import explanations, predict_table, prediction_facts

    classifier = _model(said["model"])
    columns = list(dict.fromkeys(name for row in said["rows"] for name in row))
    cells = ([_cell(row.get(name)) for name in columns] for row in said["rows"])
    with tempfile.TemporaryDirectory() as folder:  # read as any table is
        path = Path(folder, "rows.csv")
        path.write_text("".join(csv_text(iter([columns, *cells]))), encoding="utf-8", newline="")
        table = open_table(path, name="rows")
        found = predict_table(classifier, table)
        why = explanations(classifier, table, found) if explain else None
        return written_out(prediction_facts(found, why, True, listed=True))


def _cell(value: Any) -> Any:
    """Return a value as tables have it: 0 and 1 for what is true or false, nothing for what is missing."""
    return "" if value is None else int(value) if isinstance(value, bool) else value


def _predict(said: Said) -> Said:
    return _predicted(said, explain=False)


def _explain(said: Said) -> Said:
    return _predicted(said, explain=True)


def written_out(facts: Mapping[str, Any]) -> Said:
    """Return facts with lists where there were iterators."""
    return {name: list(value) if isinstance(value, Iterator) else value for name, value in facts.items()}


QUESTIONS: Final = {
    question.name: question
    for question in (
        AskedFor(
            "check",
            "Read a theory, tell its size, and prove that its hard formulae can all hold together; if they "
            "cannot, name a smallest set of them that clash.",
            (THEORY, FORMAT),
            _check,
        ),
        AskedFor(
            "ask",
            "How likely is a formula given evidence, and is it settled? status: entailed (true in every "
            "model), refuted (in none), preferred (in every best world), dispreferred (in no best world) or "
            "undecided. With why: the formulae that settle it.",
            (
                THEORY,
                FORMAT,
                QUERY,
                GIVEN,
                Input(name="why", kind="flag", otherwise=False, about="Name formulae that settle it."),
                *ABOUT,
                SEED,
            ),
            _ask,
        ),
        AskedFor(
            "entails",
            "Does a formula follow? With proof: formulae that entail it, or a world, a counterexample, in "
            "which all of them hold and it does not.",
            (
                THEORY,
                FORMAT,
                QUERY,
                GIVEN,
                Input(
                    name="mode",
                    kind="text",
                    otherwise="entailed",
                    choices=tuple(MODES),
                    about="entailed: true in every model; preferred: in every best one.",
                ),
            ),
            _entails,
        ),
        AskedFor(
            "best",
            "The world that keeps every hard formula and the evidence and loses the least weight: whether "
            "that is proven, and which formulae it breaks.",
            (THEORY, FORMAT, GIVEN, _worlds("top", 1, "How many worlds, best first."), SEED),
            _best,
        ),
        AskedFor(
            "models",
            "The first worlds that keep every hard formula and the evidence, and whether these are all.",
            (THEORY, FORMAT, GIVEN, PROJECT, _worlds("limit", 20, "How many at most.")),
            _models,
        ),
        AskedFor(
            "count",
            "How many worlds keep every hard formula and the evidence, exactly.",
            (THEORY, FORMAT, GIVEN, PROJECT),
            _count,
        ),
        AskedFor(
            "marginals",
            "How likely every atom is given evidence.",
            (THEORY, FORMAT, GIVEN, *ABOUT, SEED),
            _marginals,
        ),
        AskedFor(
            "sample",
            "Worlds drawn at random, and how they were drawn.",
            (THEORY, FORMAT, _worlds("number", 10, "How many."), GIVEN, *ABOUT, SEED),
            _sample,
        ),
        AskedFor(
            "compile",
            "The network that a theory becomes: atoms, hidden units with cubes and weights, the energy.",
            (
                THEORY,
                FORMAT,
                Input(
                    name="epsilon",
                    kind="number",
                    otherwise=0.5,
                    most=math.nextafter(1.0, 0.0),
                    about="How deep a well of weight 1 is, strictly between 0 and 1.",
                ),
                Input(
                    name="units",
                    kind="text",
                    otherwise="paper",
                    choices=("paper", "calibrated"),
                    about="Hidden units of the paper, or those whose free energy is the score.",
                ),
            ),
            _compile,
        ),
        AskedFor(
            "predict",
            "The class of each row by a trained model, and how likely each class is.",
            ROWS,
            _predict,
        ),
        AskedFor(
            "explain",
            "The same, and why: the log-odds of each row as a bias and a term for each hidden unit.",
            ROWS,
            _explain,
        ),
    )
}
"""Every question by name."""


def answer(name: str, said: Said) -> Said:
    """Return what a question finds, as plain data; where no world is possible, that, and what clashes."""
    from lbm.reasoning.budget import Budget, now

    Budget.limit = now() + said["seconds"]
    try:
        return written_out(QUESTIONS[name].answer(said))
    except NoWorlds as error:
        return {"answer": False, "reason": error.one_line(), "clash": _clash(said, error)}
    finally:
        Budget.limit = math.inf


def _clash(said: Said, error: NoWorlds) -> list[Said]:
    """Return a small set of hard formulae that clash, among themselves or with the evidence."""
    from lbm.knowledge.formula import Formula
    from lbm.reasoning.budget import Budget
    from lbm.reasoning.proof import prove

    evidence: Formula | None = error.evidence if isinstance(error.evidence, Formula) else None
    try:
        found = prove(_theory(said), given=evidence, budget=Budget.of(_FOR_CLASH))
    except LbmError:  # too late, or too large: that there is no world is the answer all the same
        return []
    return [statement.facts() for statement in found.reasons]
