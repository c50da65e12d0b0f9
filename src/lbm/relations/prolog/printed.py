"""Clauses as text that Prolog systems read: control structures between their parts, all else as f(a,b)."""

from __future__ import annotations

from typing import Any, Final

from lbm.relations.prolog.terms import Compound, Term, rebuilt, signature, write

_BETWEEN: Final = {(",", 2): ", ", (";", 2): " ; ", ("->", 2): " -> ", ("*->", 2): " *-> "}
_ABSENT: Final = ("\\+", 1)


def write_clause(clause: Term) -> str:
    r"""Return a clause or a directive with its full stop; reading it gives the same clause again.

    >>> from lbm.relations.prolog.reader import read_term
    >>> print(write_clause(read_term("p(X) :- q(X, 'A b'), (r(X) -> true ; \\+ s), X > 1")))
    p(X) :-
        q(X,'A b'),
        ((r(X) -> true) ; \+ s),
        X>1.
    """
    if isinstance(clause, Compound) and clause.functor == ":-":
        if len(clause.arguments) == 1:
            return f":- {write_goal(clause.arguments[0])}."
        if len(clause.arguments) == 2:
            head, body = clause.arguments
            goals = []
            while isinstance(body, Compound) and signature(body) == (",", 2):
                goals.append(body.arguments[0])
                body = body.arguments[1]
            return f"{write(head)} :-\n    " + ",\n    ".join(map(write_goal, (*goals, body))) + "."
    return f"{write(clause)}."


def write_goal(goal: Term) -> str:
    """Return a goal's text, in brackets where a comma or another control structure holds it together."""

    def look(part: Term) -> Any:
        return part if signature(part) in _BETWEEN or signature(part) == _ABSENT else (write(part),)

    def make(part: Compound, given: tuple[Any, ...]) -> tuple[str]:
        texts = [text for (text,) in given]
        if len(texts) == 2:
            return (f"({_BETWEEN[part.functor, 2].join(texts)})",)
        return (f"\\+ {texts[0]}",)

    (text,) = rebuilt(goal, look, make)
    return str(text)
