"""What was clicked, as Python, as a command, as a call of the interface, and as a link."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from shlex import quote as shell
from typing import Final
from urllib.parse import parse_qsl, urlencode

from lbm.knowledge.formula import quote

MAX_LINK: Final = 8 << 10
"""Characters of a link that reproduces the page."""


@dataclass(frozen=True, slots=True)
class Clicked:
    """What stands on the page: a theory, a query, and the atoms that are known, by name."""

    theory: str = ""
    query: str = ""
    evidence: dict[str, bool] = field(default_factory=dict)
    temperature: float = 1.0

    @property
    def given(self) -> str | None:
        """The evidence as a formula; None: there is none.

        >>> Clicked("a & 'b c'", evidence={"a": True, "b c": False}).given
        "a & ~'b c'"
        """
        literals = [f"{'' if value else '~'}{quote(name)}" for name, value in self.evidence.items()]
        return " & ".join(literals) or None

    def said(self, **others: object) -> dict[str, object]:
        """Return it as a question takes it."""
        given = {} if self.given is None else {"given": self.given}
        return {"theory": self.theory, **given, **others}

    def python(self) -> str:
        """Return the question as Python."""
        options = "" if self.given is None else f", given={self.given!r}"
        options += "" if self.temperature == 1 else f", temperature={self.temperature!r}"
        asked = (
            f"lbm.ask(theory, {self.query!r}{options})" if self.query else f"lbm.marginals(theory{options})"
        )
        return f"import lbm\n\ntheory = lbm.Theory.parse({self.theory!r})\nprint({asked})\n"

    def command(self) -> str:
        """Return the question as a command of a shell, with the theory as its standard input."""
        end, lines = "END", set(self.theory.split("\n"))
        while end in lines:
            end += "_"
        asked = f"lbm ask - {shell(self.query)}" if self.query else "lbm marginals -"
        asked += "" if self.given is None else f" --given {shell(self.given)}"
        asked += "" if self.temperature == 1 else f" --temperature {self.temperature!r}"
        return f"{asked} <<'{end}'\n{self.theory}\n{end}\n"

    def curl(self, address: str) -> str:
        """Return the question as a call of the interface at this address."""
        name = "ask" if self.query else "marginals"
        others = {"query": self.query} if self.query else {}
        said = json.dumps(self.said(**others, temperature=self.temperature))
        return f"curl -H 'Content-Type: application/json' -d {shell(said)} {shell(f'{address}/api/{name}')}\n"

    def link(self, address: str = "") -> str | None:
        """Return the address that shows all this again; None: it would be longer than MAX_LINK."""
        pairs = [("theory", self.theory), ("query", self.query)]
        pairs += [("true" if value else "false", name) for name, value in self.evidence.items()]
        pairs += [] if self.temperature == 1 else [("temperature", repr(self.temperature))]
        found = f"{address}/?{urlencode([pair for pair in pairs if pair[1]])}"
        return found if len(found) <= MAX_LINK else None


def clicked_of(query: str) -> Clicked:
    """Return what a link says, the part behind its question mark; what it does not know it passes over.

    >>> clicked_of("theory=a+%7C+b&true=a&query=b")
    Clicked(theory='a | b', query='b', evidence={'a': True}, temperature=1.0)
    """
    if len(query) > MAX_LINK:
        return Clicked()
    theory, asked, evidence, temperature = "", "", {}, 1.0
    for name, value in parse_qsl(query, errors="replace"):
        if name == "theory":
            theory = value
        elif name == "query":
            asked = value
        elif name in ("true", "false"):
            evidence[value] = name == "true"
        elif name == "temperature":
            try:
                temperature = float(value)
            except ValueError:
                continue
    return Clicked(theory, asked, evidence, temperature if 0 < temperature < 1e6 else 1.0)
