"""Columns against an evaluator that reads their names and tries every assignment of terms to variables."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import ParseError
from lbm.relations.columns.answers import Background
from lbm.relations.columns.grow import Language, between, grow_columns
from lbm.relations.columns.queries import read_column
from lbm.relations.columns.transformer import RelationalColumns
from lbm.relations.problem import RelationalProblem, make_problem
from lbm.relations.prolog.reader import read_clauses

OBJECTS = ("a", "b", "c", "d")
COLOURS = ("red", "blue")
NUMBERS = (1, 2, 2.5, -0.5)
RULE = "near(X, Y) :- link(X, Y). near(X, Y) :- link(Y, X). big(X) :- size(X, S), S >= 2."
MODES = """
:- modeb(*, link(+o, -o)).
:- modeb(*, link(-o, +o)).
:- modeb(*, near(+o, -o)).
:- modeb(*, colour(+o, #c)).
:- modeb(*, colour(+o, -c)).
:- modeb(*, size(+o, -n)).
:- modeb(*, big(+o)).
:- modeb(*, not(link(+o, +o))).
:- modeb(*, brighter(+c, -c)).
"""
DECLARED = ":- dynamic link/2, colour/2, size/2."


@st.composite
def problems(draw: st.DrawFn, arity: int) -> tuple[RelationalProblem, dict[str, set[tuple]]]:
    """Return a problem over four objects, and every true atom of it by predicate."""
    links = draw(st.sets(st.tuples(st.sampled_from(OBJECTS), st.sampled_from(OBJECTS)), max_size=6))
    colours = draw(st.sets(st.tuples(st.sampled_from(OBJECTS), st.sampled_from(COLOURS)), max_size=4))
    sizes = draw(st.sets(st.tuples(st.sampled_from(OBJECTS), st.sampled_from(NUMBERS)), max_size=5))
    facts = [f"link({x}, {y})." for x, y in sorted(links)]
    facts += [f"colour({x}, {y})." for x, y in sorted(colours)]
    facts += [f"size({x}, {y})." for x, y in sorted(sizes)]
    every = list(itertools.product(OBJECTS, repeat=arity))
    kinds = [True, False, *draw(st.lists(st.booleans(), min_size=len(every) - 2, max_size=len(every) - 2))]
    shown = [f"t({', '.join(each)})." for each in every]
    problem = make_problem(
        "small",
        read_clauses("\n".join([DECLARED, *facts, RULE, "brighter(red, blue)."])),
        read_clauses(" ".join(text for text, kind in zip(shown, kinds, strict=True) if kind)),
        read_clauses(" ".join(text for text, kind in zip(shown, kinds, strict=True) if not kind)),
        read_clauses(f":- modeh(1, t({', '.join(['+o'] * arity)})). {MODES}"),
    )
    true: dict[str, set[tuple]] = {
        "link": set(links),
        "near": set(links) | {(y, x) for x, y in links},
        "colour": set(colours),
        "size": set(sizes),
        "big": {(x,) for x, size in sizes if size >= 2},
        "brighter": {("red", "blue")},
    }
    return problem, true


# --- the oracle ----------------------------------------------------------------------------------


def term(text: str):
    """Return a constant or, for a capital letter, the text of a variable."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def pieces(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    depth, found = 0, [""]
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found]


def variables(text: str) -> list[str]:
    return sorted(set(re.findall(r"\b[A-Z]\b", text)))


def same(one, other) -> bool:
    return type(one) is type(other) and one == other


def true_literal(text: str, world: dict, facts: dict[str, set[tuple]]) -> bool:
    if text.startswith("\\+"):
        inside = text[2:].strip()
        inside = inside[1:-1] if inside.startswith("(") else inside
        return count(inside, world, facts) == 0
    compared = re.fullmatch(r"(\S+) (=<|>=|<|>) (\S+)", text)
    if compared:
        left, right = (world.get(part, term(part)) for part in (compared[1], compared[3]))
        if isinstance(left, str) or isinstance(right, str):
            return False
        return {"=<": left <= right, ">=": left >= right, "<": left < right, ">": left > right}[compared[2]]
    name, inside = re.fullmatch(r"(\w+)\((.*)\)", text).groups()
    row = [world.get(part, term(part)) for part in pieces(inside)]
    return any(all(map(same, row, fact)) for fact in facts[name] if len(fact) == len(row))


def count(text: str, world: dict, facts: dict[str, set[tuple]]) -> int:
    """Return how many assignments of all terms to the query's free variables make every part true.

    Variables that stand only inside \\+ are not counted.
    """
    parts = pieces(text)
    outside = [
        name for name in variables(" ".join(p for p in parts if not p.startswith("\\+"))) if name not in world
    ]
    universe = (*OBJECTS, *COLOURS, *NUMBERS)
    found = 0
    for choice in itertools.product(universe, repeat=len(outside)):
        more = {**world, **dict(zip(outside, choice, strict=True))}
        found += all(true_literal(part, more, facts) for part in parts)
    return found


def holds(name: str, example: tuple, facts: dict[str, set[tuple]]) -> bool:
    world = dict(zip("ABC", example, strict=False))
    more = re.fullmatch(r"count\((.*)\) > count\((.*)\)", name)
    if more:
        return count(more[1], world, facts) > count(more[2], world, facts)
    least = re.fullmatch(r"count\((.*)\) >= (\d+)", name)
    if least:
        return count(least[1], world, facts) >= int(least[2])
    return count(name, world, facts) > 0


def check(found: RelationalColumns, problem: RelationalProblem, facts: dict[str, set[tuple]]) -> None:
    table = found.transform(problem.examples)
    assert len(set(table.columns)) == table.shape[1]
    rows = [example.arguments for example in problem.examples]
    for name in table.columns[:: max(1, table.shape[1] // 6)]:
        expected = [holds(name, row, facts) for row in rows]
        assert table[name].tolist() == expected, name


# --- laws ----------------------------------------------------------------------------------------


@given(problems(1))
def test_a_column_of_constants_is_true_where_its_query_has_an_answer(drawn):
    problem, facts = drawn
    train, labels = problem.examples[::-1][:3], problem.labels[::-1][:3]
    check(RelationalColumns(problem, size=2, support=0.0).fit(train, labels), problem, facts)


@given(problems(2))
def test_a_column_of_comparison_is_true_where_its_query_has_an_answer(drawn):
    problem, facts = drawn
    train = problem.examples[1:]
    found = RelationalColumns(problem, features="comparison", size=1, support=0.0)
    check(found.fit(train, problem.labels[1:]), problem, facts)


@given(problems(1))
def test_no_two_columns_always_agree_or_never_on_the_training_examples(drawn):
    problem, _ = drawn
    table = RelationalColumns(problem, support=0.0).fit_transform(problem.examples, problem.labels)
    values = table.to_numpy(dtype=bool)
    seen = {tuple(column.tolist()) for column in (values ^ values[:1]).T}
    assert len(seen) == table.shape[1]


@given(problems(2), st.sampled_from(["constants", "comparison"]))
def test_every_column_is_true_of_some_training_examples_and_false_of_some(drawn, features):
    problem, _ = drawn
    train = slice(2, None)
    found = RelationalColumns(problem, features=features, size=1, support=0.1)
    table = found.fit_transform(problem.examples[train], problem.labels[train]).to_numpy(dtype=bool)
    true = table.reshape(len(problem.examples) - 2, -1).sum(axis=0)
    assert ((true >= 2) & (true <= len(table) - 2)).all()


@given(problems(1))
def test_columns_do_not_depend_on_the_labels_of_examples_that_were_not_given(drawn):
    problem, _ = drawn
    swapped = RelationalProblem(
        "swapped", problem.background, problem.negative, problem.positive, problem.modes
    )
    train, labels = problem.examples[::2], problem.labels[::2]
    one, other = (RelationalColumns(each).fit(train, labels) for each in (problem, swapped))
    assert one.names_ == other.names_


@given(st.floats(-1e6, 1e6), st.floats(1e-9, 1e3))
def test_a_threshold_lies_strictly_between_the_values_it_separates(low, gap):
    high = low + gap
    if low < high and np.nextafter(low, high) < high:
        assert low < between(low, high) < high


def tiny(modes: str, background: str = "p(a, b). p(b, c). p(c, a). p(d, d)."):
    return make_problem(
        "tiny",
        read_clauses(background),
        read_clauses("t(a). t(b)."),
        read_clauses("t(c). t(d)."),
        read_clauses(f":- modeh(1, t(+o)). {modes}"),
    )


def test_a_literal_may_ask_for_the_same_variable_twice():
    problem = tiny(":- modeb(*, p(+o, -o)).", "p(a, c). p(b, d). p(c, c). p(d, d).")
    columns = grow_columns(Background(problem), problem.examples, problem.labels, Language(support=0.0))
    table = Background(problem).evaluate(columns, problem.examples)
    named = dict(zip(map(str, columns), table.T.tolist(), strict=True))
    assert named["p(A,A)"] == [False, False, True, True]


def test_a_rule_that_answers_otherwise_when_it_knows_its_constant_is_asked_with_the_constant():
    background = "v(a, 1.0). v(b, 2.0). v(c, 3.0). v(d, 3.0). v(e, 1.0). v(f, 2.0). "
    background += "atleast(X, Y) :- number(Y), !, X >= Y. atleast(X, X)."
    problem = make_problem(
        "thresholds",
        read_clauses(background),
        read_clauses("t(c). t(d). t(b)."),
        read_clauses("t(a). t(e). t(f)."),
        read_clauses(":- modeh(1, t(+o)). :- modeb(1, v(+o, -n)). :- modeb(1, atleast(+n, #n))."),
    )
    asked = "v(A,B), atleast(B,2.0)"
    grown = RelationalColumns(problem, also=[asked]).fit(problem.examples, problem.labels)
    table = dict(zip(grown.names_, grown.transform(problem.examples).to_numpy().T.tolist(), strict=True))
    assert table[asked] == [1, 1, 1, 0, 0, 1]


def test_an_example_of_another_form_is_an_error_of_one_line():
    problem = tiny(":- modeb(*, p(+o, -o)).")
    other = next(iter(read_clauses("u(a, b)."))).term
    with pytest.raises(ParseError, match=r"expected an example that fits a mode of t/1, found u\(a,b\)"):
        RelationalColumns(problem).fit([other], [True])


def test_comparison_needs_two_objects_of_one_type():
    problem = tiny(":- modeb(*, p(+o, -o)).")
    with pytest.raises(ParseError, match="expected a target over two objects of one type, found t"):
        RelationalColumns(problem, features="comparison").fit(problem.examples, problem.labels)


def test_a_query_with_too_many_answers_is_left_out_and_the_rest_stays():
    problem = tiny(
        ":- modeb(*, p(+o, -o)). :- modeb(*, q(-o, -o)).", "p(a, b). p(b, c). q(a, a). q(b, b). q(c, c)."
    )
    answers = Background(problem, rows=8)
    columns = grow_columns(answers, problem.examples, problem.labels, Language(support=0.0))
    names = [str(column) for column in columns]
    assert "p(A,B)" in names
    assert not any("q(B,C)" in name for name in names)


@given(problems(2), st.sampled_from(["constants", "comparison"]))
def test_reading_a_column_s_name_gives_the_same_column_values(drawn, features):
    problem, _ = drawn
    found = RelationalColumns(problem, features=features, size=1, support=0.0).fit(
        problem.examples, problem.labels
    )
    again = [read_column(name) for name in found.names_]
    assert [str(column) for column in again] == found.names_
    answers = Background(problem)
    table = found.transform(problem.examples).to_numpy(dtype=bool).reshape(len(problem.examples), -1)
    assert np.array_equal(answers.evaluate(again, problem.examples), table)


@pytest.mark.parametrize("text", ["p(A) ; q(A)", "\\+ (\\+ p(A))", "X", "p(A", "3"])
def test_what_is_no_query_is_an_error(text):
    with pytest.raises(ParseError):
        read_column(text)


def test_terms_with_variables_inside_are_matched():
    problem = tiny(
        ":- modeb(*, p(+o, -o)).", "p(a, b). p(b, c). at(a, f(b, 1)). at(c, f(b, 2)). at(d, g(b, 1))."
    )
    asked = ["at(A,f(B,1))", "at(A,f(B,C)), p(B,D)", "count(at(A,B)) >= 1"]
    columns = [read_column(text) for text in asked]
    assert [str(column) for column in columns[:2]] == asked[:2]
    table = Background(problem).evaluate(columns, problem.examples)  # a, b, c, d
    assert table.astype(int).tolist() == [[1, 1, 1], [0, 0, 0], [0, 1, 1], [0, 0, 1]]
