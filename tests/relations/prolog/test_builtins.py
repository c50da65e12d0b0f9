"""Built-in predicates: the same answers, in the same order, as SWI-Prolog gives."""

import os
import random
import re
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, ParseError
from lbm.relations.prolog.builtins import BUILTINS
from lbm.relations.prolog.engine import solve
from lbm.relations.prolog.program import make_program
from lbm.relations.prolog.reader import read_clauses, read_term
from lbm.relations.prolog.terms import write

PROGRAM = """
age(peter, 7). age(ann, 11). age(pat, 8). age(tom, 5). age(mike, 11).
edge(a, b). edge(b, c). edge(a, c). edge(c, d).
double(X, Y) :- Y is 2 * X.
odd(X) :- X mod 2 =:= 1.
add(X, Y, Z) :- Z is X + Y.
"""
GOALS = r"""
findall(A, age(_, A), X)
findall(A-N, age(N, A), X)
findall(Y, member(Y, []), X)
findall(Y, member(Y, [1, Z, W]), [1, a, b]), X = Z
findall(Y, member(Y, [1, 2]), X, [3])
findall(A-B, (edge(A, C), edge(C, B)), X)
findall(L, findall(Y, member(Y, [1, 2]), L), X)
bagof(N, age(N, A), X)
bagof(N-A, age(N, A), X)
bagof(N, A^age(N, A), X)
bagof(N, age(N, 99), X)
setof(A, N^age(N, A), X)
setof(N, age(N, A), L), X = A-L
setof(B, edge(A, B), L), X = A-L
setof(A-B, edge(A, B), X)
setof(Y, member(Y, [c, a, b, a]), X)
bagof(Y-Z, member(Y, [1, 2]), L), X = 1
aggregate_all(count, age(_, _), X)
aggregate_all(count, age(_, 99), X)
aggregate_all(sum(A), age(_, A), X)
aggregate_all(max(A), age(_, A), X)
aggregate_all(min(A), age(_, A), X)
aggregate_all(max(A), age(none, A), X)
aggregate_all(bag(A), age(_, A), X)
aggregate_all(set(A), age(_, A), X)
forall(age(_, A), A > 4), X = yes
forall(age(_, A), A > 5), X = yes
forall(fail, true), X = yes
once(member(X, [1, 2, 3]))
ignore(member(X, [1, 2])), X = 1
ignore(fail), X = 1
(member(X, [1, 2]) *-> true ; X = none)
(fail *-> X = 1 ; X = none)
member(X, [1, 2, 3]), \+ (X > 2 *-> true ; fail)
call(member, X, [1, 2])
call(member(X), [1, 2])
call((member(Y, [1, 2, 3]), !)), X = Y
G = age(N), call(G, 11), X = N
length([a, b], X)
length(X, 2), X = [a|_], X = [_, b]
length(L, N), N >= 2, !, X = N
atom_length(hello, X)
atom_length(123, X)
atom_length('', X)
between(1, 3, X)
between(1, inf, X), X >= 3, !
between(1, 3, 5), X = 1
between(3, 1, X)
msort([c, a, b, a], X)
msort([f(b), 2, "a", b, 1.0, 1, g(a, b), f(a)], X)
sort([c, a, b, a], X)
sort(0, @>=, [1, 3, 2, 3], X)
sort(1, @<, [f(2, a), f(1, b), f(2, c)], X)
sort(1, @=<, [f(2, a), f(1, b), f(2, c)], X)
predicate_of_none = Y, X = Y
keysort([b-1, a-2, b-0, a-1], X)
nth0(1, [a, b, c], X)
nth1(1, [a, b, c], X)
nth0(X, [a, b, a], a)
nth1(X, [a, b, a], a)
nth0(5, [a], X)
append(X, [c], [a, b, c])
append(X, _, [a, b])
append([[a], [b, c], []], X)
last([1, 2, 3], X)
last([], X)
sum_list([1, 2.5, 3], X)
sumlist([], X)
max_list([3, 1, 2], X)
min_list([3, 1, 2], X)
max_list([], X)
max_member(X, [a, 3, f(b)])
min_member(X, [a, 3, f(b)])
numlist(2, 5, X)
reverse([1, 2, 3], X)
list_to_set([a, b, a, 1, 1.0], X)
memberchk(X, [a, b])
select(b, [a, b, c, b], X)
select(X, [a, b], _)
selectchk(b, [a, b, c, b], X)
select(b, [a, b, c], x, X)
permutation([1, 2, 3], X)
exclude(odd, [1, 2, 3, 4], X)
include(odd, [1, 2, 3, 4], X)
partition(odd, [1, 2, 3, 4], I, O), X = I-O
maplist(double, [1, 2, 3], X)
maplist(add(1), [1, 2], X)
maplist(add, [1, 2], [3, 4], X)
maplist(odd, [1, 3]), X = yes
maplist(odd, [1, 2]), X = yes
maplist(member, [X, b], [[a, c], [b, d]])
foldl(add, [1, 2, 3], 0, X)
delete([a, b, a, c], a, X)
subtract([a, b, c], [b], X)
intersection([a, b, c], [c, a], X)
union([a, b], [b, c], X)
subset([a], [b, a]), X = yes
succ(X, 4)
succ(3, X)
plus(1, X, 5)
pairs_keys_values(X, [a, b], [1, 2])
pairs_keys([a-1, b-2], X)
pairs_values([a-1, b-2], X)
atom_concat(ab, cd, X)
atom_concat(X, cd, abcd)
atom_concat(X, Y, ab)
atom_concat(a, 1, X)
sub_atom(hello, 1, 3, _, X)
sub_atom(abc, X, 1, _, b)
sub_atom(ab, _, _, 0, X)
sub_atom(abc, B, 2, A, X)
atom_codes(ab, X)
atom_chars(X, [a, b])
atom_chars(12, X)
char_code(X, 97)
char_code(a, X)
number_codes(X, [49, 50])
atom_number('12', X)
atom_number(foo, X)
atom_number('1.5', X)
upcase_atom(aBc, X)
downcase_atom('ABC', X)
atomic_list_concat([a, 1, b], X)
atomic_list_concat([a, b, c], '-', X)
atomic_list_concat(X, ',', 'a,b,c')
functor(f(a, b), N, A), X = N-A
functor(a, N, A), X = N-A
functor(X, f, 2), X = f(1, 2)
arg(1, f(a, b), X)
arg(X, f(a, b), b)
f(a, b) =.. X
X =.. [f, 1, 2]
X =.. [a]
copy_term(f(Y, Y, a), Z), Z = f(1, X, _)
compare(X, 1, 2)
compare(X, f(a), 1)
compare(X, 1, 1.0)
a @< b, X = yes
f(b) @< g(a, b), X = yes
1 @< a, X = yes
is_list([a]), X = yes
is_list(f), X = yes
callable(foo), X = yes
dif(a, b), X = yes
dif(a, a), X = yes
X is gcd(12, 18)
X is 5 /\ 6
X is 5 \/ 6
X is 5 xor 6
X is cot(1.0) - cot(1.0)
tab_is_none = Y, X = Y
"""


def skip_without_swi():
    if shutil.which("swipl") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no swipl: apt-get install swi-prolog-nox")
        pytest.skip("no swipl")


def swi(program, goals, library="lists,apply,aggregate,pairs,clpfd"):
    """Return SWI-Prolog's answers for X to each goal, as canonical text; ``error`` where it raised one."""
    skip_without_swi()
    loaded = "\n".join(f":- use_module(library({one}))." for one in library.split(","))
    asked = "\n".join(
        f"goal({k}) :- catch(forall(({goal}), (copy_term(X, C), numbervars(C, 0, _), "
        "write_term(C, [quoted(true), ignore_ops(true), numbervars(true)]), nl)), _, (write(error), nl))."
        for k, goal in enumerate(goals)
    )
    text = (
        ":- set_prolog_flag(double_quotes, codes).\n:- style_check(-singleton).\n"
        f"{loaded}\n{program}\n{asked}\n"
        f":- initialization((forall(between(0, {len(goals) - 1}, K), (write(goal), nl, goal(K))), halt)).\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "goals.pl")
        path.write_text(text, encoding="utf-8")
        done = subprocess.run(["swipl", "-q", path], capture_output=True, text=True, timeout=60, check=False)
    parts = done.stdout.split("goal\n")[1:]
    assert len(parts) == len(goals), done.stderr[:500]
    return [part.split("\n")[:-1] for part in parts]


def ours(program, goal):
    """Return our answers for X, as the same text."""
    try:
        answers = list(solve(make_program(read_clauses(program)), read_term(goal), steps=10_000))
    except ParseError:
        return ["error"]
    return [write(answer["X"]) for answer in answers]


def plain(text):
    """Return a term's text without what the two write differently."""
    return write(read_term(text)) if text != "error" else text


@lru_cache
def known_answers():
    goals = tuple(goal for goal in GOALS.strip().splitlines() if "cot(" not in goal)
    return dict(zip(goals, swi(PROGRAM, goals), strict=True))


def renamed(text):
    names = {}
    return re.sub(r"\b(_\d+|_[A-Z]\w*|[A-Z]\d*)\b", lambda m: names.setdefault(m[0], f"V{len(names)}"), text)


@pytest.mark.parametrize("goal", [goal for goal in GOALS.strip().splitlines() if "cot(" not in goal])
def test_a_built_in_predicate_gives_the_answers_of_swi_prolog(goal):
    theirs = known_answers()[goal]
    assert [renamed(one) for one in ours(PROGRAM, goal)] == [renamed(plain(one)) for one in theirs]


elements = st.sampled_from(["a", "b", "1", "2", "1.0", "f(a)", "f(1)", "'B'", "[]", "-1", "[a]", "g(a,b)"])
texts = st.text("ab", max_size=4)


@given(st.lists(elements, max_size=6), st.lists(elements, max_size=4), st.integers(0, 5))
def test_lists_are_what_python_says(one, other, number):
    def answers(goal):
        return ours("", goal)

    def listed(items):
        return write(read_term(f"[{','.join(items)}]"))

    a, b = f"[{','.join(one)}]", f"[{','.join(other)}]"
    assert answers(f"append({a}, {b}, X)") == [listed(one + other)]
    assert answers(f"length({a}, X)") == [str(len(one))]
    assert answers(f"reverse({a}, X)") == [listed(one[::-1])]
    assert answers(f"nth0({number}, {a}, X)") == [write(read_term(x)) for x in one[number : number + 1]]
    assert answers(f"findall(Y, member(Y, {a}), X)") == [listed(one)]
    assert answers(f"subtract({a}, {b}, X)") == [listed([x for x in one if x not in other])]
    assert answers(f"list_to_set({a}, X)") == [listed(list(dict.fromkeys(one)))]
    assert len(answers(f"select(X, {a}, _)")) == len(one)


def test_sorting_is_that_of_swi_prolog_for_generated_lists():
    draw = random.Random(0)
    # [] is no atom to SWI-Prolog: there it stands before all atoms.
    pool = ["a", "b", "1", "2", "1.0", "f(a)", "f(1)", "'B'", "-1", "[a]", "g(a,b)", "f(g(1))", "2.5"]
    lists = [f"[{','.join(draw.choices(pool, k=draw.randint(0, 9)))}]" for _ in range(60)]
    goals = [f"{name}({one}, X)" for one in lists for name in ("msort", "sort")]
    goals += [f"sort(0, {sign}, {one}, X)" for one in lists[:10] for sign in ("@<", "@>", "@=<", "@>=")]
    for goal, theirs in zip(goals, swi("", goals), strict=True):
        assert ours("", goal) == [plain(one) for one in theirs], goal


@given(texts, texts)
def test_atoms_are_what_python_says(one, other):
    assert ours("", f"atom_concat('{one}', '{other}', X)") == [write(one + other)]
    assert len(ours("", f"atom_concat(X, _, '{one}')")) == len(one) + 1
    assert len(ours("", f"sub_atom('{one}', _, _, _, X)")) == (len(one) + 1) * (len(one) + 2) // 2
    found = [k for k in range(len(one) + 1) if one.startswith(other, k)]
    assert ours("", f"sub_atom('{one}', X, _, _, '{other}')") == list(map(str, found))


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        ("X #= 2 + 3", ["5"]),
        ("7 #= X + 3", ["4"]),
        ("X - 3 #= 4", ["7"]),
        ("10 - X #= 4", ["6"]),
        ("2 * X #= 8", ["4"]),
        ("2 * X #= 7", []),
        ("3 #= 2 * (X + 1) - 5", ["3"]),
        ("-X #= 4", ["-4"]),
        ("1 #< 2, 2 #=< 2, 3 #> 2, 3 #>= 3, 3 #\\= 4, X = y", ["y"]),
        ("2 #< 1, X = y", []),
        ("X + Y #= 3", ["error"]),
        ("X #< 3", ["error"]),
        ("X #= 1.5", ["error"]),
        ("X * X #= 4", ["error"]),
    ],
)
def test_equations_of_integers_are_solved_for_one_unknown(goal, expected):
    assert ours("", goal) == expected


@given(
    st.integers(-9, 9),
    st.integers(-9, 9),
    st.sampled_from(["X + {}", "{} + X", "X - {}", "{} - X", "{} * X"]),
)
def test_what_an_equation_is_solved_by_makes_it_true(known, value, form):
    found = ours("", f"{form.format(known)} #= {value}")
    if found and found != ["error"]:
        assert ours("", f"X = y, {form.format(known).replace('X', f'({found[0]})')} =:= {value}") == ["y"]
    else:
        assert (
            all(eval(form.format(f"({known})").replace("X", f"({x})")) != value for x in range(-90, 90))
            or known == 0
        )


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("atom_length(Y, X)", "expected an atom or a number, found an unbound variable"),
        ("atom_length(f(a), X)", "found f(a)"),
        ("between(a, 3, X)", "expected an integer, found a"),
        ("between(1, Y, X)", "expected integers as bounds"),
        ("msort(a, X)", "expected a list, found a"),
        ("sort(0, up, [], X)", "found up"),
        ("sort(1, @<, [a], X)", "expected a term with 1 arguments, found a"),
        ("keysort([a], X)", "expected pairs, Key-Value, found a"),
        ("numlist(1, 1000000, X)", "at most 100000 elements"),
        ("length(X, 1000000)", "at most 100000 elements"),
        ("X =.. [1, 2]", "a list that begins with a name"),
        ("functor(X, f, 1000000)", "arity from 0 to 100000"),
        ("arg(1, a, X)", "expected a compound term, found a"),
        ("call(1, X)", "expected a goal"),
        ("aggregate_all(median(Y), member(Y, [1]), X)", "expected count or one of"),
        ("aggregate_all(sum(Y), member(Y, [a]), X)", "expected a number, found a"),
        ("findall(Y, Z, X)", "expected a goal"),
        ("char_code(Y, X)", "in char_code/2, found neither"),
        ("number_codes(X, [97])", "expected the letters of a number"),
        ("dif(Y, a), X = 1", "expected terms without variables in dif/2"),
        ("assertz(p(X))", "found assertz/1"),
    ],
)
def test_what_a_built_in_predicate_cannot_do_is_an_error_that_names_the_goal(goal, words):
    rules = read_clauses(f"\np(X) :- {goal}.", source="bk.pl")
    with pytest.raises(ParseError) as caught:
        list(solve(make_program(rules), read_term("p(X)")))
    line = caught.value.one_line()
    assert words in line
    assert line.startswith("bk.pl:2: ")
    assert "\n" not in line


@pytest.mark.parametrize(
    "goal",
    [
        "findall(Y, (between(1, inf, Y), fail), X)",
        "findall(Y, between(1, inf, Y), X)",
        "forall(repeat(Y), Y), X = 1",
    ],
)
def test_a_search_inside_another_has_an_end(goal):
    program = make_program(read_clauses("repeat(true). repeat(X) :- repeat(X)."))
    with pytest.raises(LimitExceeded, match="steps"):
        list(solve(program, read_term(goal), steps=5_000))


def test_deep_terms_are_copied_sorted_and_gathered():
    deep = "f(" * 20_000 + "Y" + ")" * 20_000
    assert len(ours("", f"findall({deep}, Y = 1, X)")) == 1
    assert len(ours("", f"copy_term({deep}, X)")) == 1
    assert len(ours("", f"msort([{deep}, a, {deep}], X)")) == 1


def test_the_page_on_relations_names_every_predicate_that_is_built_in():
    page = (Path(__file__).parents[3] / "docs" / "relations.md").read_text(encoding="utf-8")
    for name, arity in BUILTINS:
        if not name.startswith("$") and name not in (",", ";", "->", "!", "*->", "\\+", "="):
            assert f"{name}/{arity}" in page or f"`{name}`" in page or f"{name}/N" in page, name
