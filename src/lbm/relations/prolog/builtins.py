"""Predicates that need no clauses; what goes wrong is an ArithmeticError or a TypeError."""

from __future__ import annotations

from typing import Final

from lbm.relations.prolog.arithmetic import COMPARE, compare_integers, evaluate, solve_equation
from lbm.relations.prolog.bindings import Bindings, Cell, Value
from lbm.relations.prolog.lists import LIST_CHOICES, LIST_TESTS, Choice, Test
from lbm.relations.prolog.program import CONTROL, META, make_program
from lbm.relations.prolog.reader import read_clauses
from lbm.relations.prolog.terms import Compound, same
from lbm.relations.prolog.texts import TEXT_CHOICES, TEXT_TESTS

_MAPLIST: Final = "".join(
    f"maplist(_{', []' * k}). maplist(G{''.join(f', [X{i}|L{i}]' for i in range(k))}) :- "
    f"call(G{''.join(f', X{i}' for i in range(k))}), maplist(G{''.join(f', L{i}' for i in range(k))}). "
    for k in range(1, 8)
)

LIBRARY: Final = make_program(
    read_clauses(
        r"""
        member(X, [X|_]). member(X, [_|T]) :- member(X, T).
        memberchk(X, L) :- member(X, L), !.
        append([], L, L). append([H|T], L, [H|R]) :- append(T, L, R).
        append([], []). append([L|Ls], R) :- append(L, M, R), append(Ls, M).
        last([X], X). last([_|T], X) :- last(T, X).
        nth0(N, L, X) :- integer(N), !, N >= 0, '$nth'(L, N, X).
        nth0(N, L, X) :- var(N), '$nths'(L, X, 0, N).
        nth1(N, L, X) :- integer(N), !, N >= 1, M is N - 1, '$nth'(L, M, X).
        nth1(N, L, X) :- var(N), '$nths'(L, X, 1, N).
        '$nth'([X|_], 0, Y) :- !, X = Y. '$nth'([_|T], N, X) :- M is N - 1, '$nth'(T, M, X).
        '$nths'([X|_], X, N, N). '$nths'([_|T], X, M, N) :- K is M + 1, '$nths'(T, X, K, N).
        select(X, [X|T], T). select(X, [H|T], [H|R]) :- select(X, T, R).
        selectchk(X, L, R) :- select(X, L, R), !.
        select(X, L, Y, M) :- '$select'(L, X, Y, M).
        '$select'([X|T], X, Y, [Y|T]). '$select'([H|T], X, Y, [H|R]) :- '$select'(T, X, Y, R).
        exclude(_, [], []). exclude(G, [X|T], R) :- (call(G, X) -> R = S ; R = [X|S]), exclude(G, T, S).
        include(_, [], []). include(G, [X|T], R) :- (call(G, X) -> R = [X|S] ; R = S), include(G, T, S).
        partition(_, [], [], []).
        partition(G, [X|T], I, O) :-
            (call(G, X) -> I = [X|J], O = P ; I = J, O = [X|P]), partition(G, T, J, P).
        foldl(G, L, A, B) :- '$foldl'(L, G, A, B).
        '$foldl'([], _, A, A). '$foldl'([X|T], G, A, C) :- call(G, X, A, B), '$foldl'(T, G, B, C).
        foldl(G, L, M, A, B) :- '$foldl'(L, M, G, A, B).
        '$foldl'([], [], _, A, A).
        '$foldl'([X|T], [Y|U], G, A, C) :- call(G, X, Y, A, B), '$foldl'(T, U, G, B, C).
        permutation(L, R) :- is_list(L), !, '$permutation'(L, R).
        permutation(L, R) :- is_list(R), length(R, N), length(L, N), '$permutation'(L, R).
        '$permutation'([], []). '$permutation'(L, [X|R]) :- select(X, L, M), '$permutation'(M, R).
        delete([], _, []). delete([X|T], Y, R) :- (X \= Y -> R = [X|S] ; R = S), delete(T, Y, S).
        subtract([], _, []).
        subtract([X|T], L, R) :- (memberchk(X, L) -> R = S ; R = [X|S]), subtract(T, L, S).
        intersection([], _, []).
        intersection([X|T], L, R) :- (memberchk(X, L) -> R = [X|S] ; R = S), intersection(T, L, S).
        union([], L, L). union([X|T], L, R) :- (memberchk(X, L) -> R = S ; R = [X|S]), union(T, L, S).
        subset([], _). subset([X|T], L) :- memberchk(X, L), subset(T, L).
        succ(X, Y) :- integer(X), !, X >= 0, Y is X + 1.
        succ(X, Y) :- integer(Y), Y >= 1, X is Y - 1.
        plus(X, Y, Z) :- integer(X), integer(Y), !, Z is X + Y.
        plus(X, Y, Z) :- integer(X), integer(Z), !, Y is Z - X.
        plus(X, Y, Z) :- integer(Y), integer(Z), X is Z - Y.
        pairs_keys_values([], [], []).
        pairs_keys_values([K-V|T], [K|A], [V|B]) :- pairs_keys_values(T, A, B).
        pairs_keys([], []). pairs_keys([K-_|T], [K|A]) :- pairs_keys(T, A).
        pairs_values([], []). pairs_values([_-V|T], [V|A]) :- pairs_values(T, A).
        max_member(X, L) :- msort(L, M), last(M, X), !.
        min_member(X, L) :- msort(L, [X|_]).
        """
        + _MAPLIST
    )
)
"""Predicates that are built in and have clauses; a program's own go before."""

COLLECTING: Final = frozenset(
    {("findall", 3), ("findall", 4), ("bagof", 3), ("setof", 3), ("aggregate_all", 3)}
)
"""Predicates that gather all answers to a goal."""

CONTROL_NAMES: Final = CONTROL | COLLECTING | {("!", 0)} | {one for one in META if one[0] == "call"}
"""What the engine itself opens."""


def _is(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return bindings.unify(given[0], evaluate(given[1], bindings))


def _comparison(name: str) -> Test:
    compare = COMPARE[name]
    return lambda bindings, given: compare(evaluate(given[0], bindings), evaluate(given[1], bindings))


def _of_type(*types: type) -> Test:
    return lambda bindings, given: isinstance(bindings.value(given[0]), types)


def _different(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    mark = bindings.mark()
    unified = bindings.unify(*given)
    bindings.undo(mark)
    return not unified


def _identical(bindings: Bindings, given: tuple[Value, ...]) -> bool:
    return same(*(bindings.resolve(one) for one in given))


TESTS: Final[dict[tuple[str, int], Test]] = {
    ("true", 0): lambda *_: True,
    ("otherwise", 0): lambda *_: True,
    ("fail", 0): lambda *_: False,
    ("false", 0): lambda *_: False,
    ("=", 2): lambda bindings, given: bindings.unify(*given),
    ("\\=", 2): _different,
    ("==", 2): _identical,
    ("\\==", 2): lambda bindings, given: not _identical(bindings, given),
    ("is", 2): _is,
    ("atom", 1): _of_type(str),
    ("number", 1): _of_type(int, float),
    ("integer", 1): _of_type(int),
    ("int", 1): _of_type(int),
    ("float", 1): _of_type(float),
    ("atomic", 1): _of_type(str, int, float),
    ("compound", 1): _of_type(Compound),
    ("callable", 1): _of_type(str, Compound),
    ("var", 1): _of_type(Cell),
    ("nonvar", 1): lambda bindings, given: not isinstance(bindings.value(given[0]), Cell),
    ("ground", 1): lambda bindings, given: not bindings.holds_cell(given[0]),
    **{(name, 2): _comparison(name) for name in COMPARE},
    ("#=", 2): lambda bindings, given: solve_equation(bindings, *given),
    **{
        (f"#{sign}", 2): compare_integers(name)
        for sign, name in {"<": "<", ">": ">", "=<": "=<", ">=": ">=", "\\=": "=\\="}.items()
    },
    **LIST_TESTS,
    **TEXT_TESTS,
}
"""Predicates of one answer at most."""

CHOICES: Final[dict[tuple[str, int], Choice]] = {**LIST_CHOICES, **TEXT_CHOICES}
"""Predicates of several answers, one after the other."""

BUILTINS: Final = frozenset(TESTS) | frozenset(CHOICES) | frozenset(LIBRARY.predicates) | CONTROL_NAMES
"""Signatures of the predicates that are built in."""
