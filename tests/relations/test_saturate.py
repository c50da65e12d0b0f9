"""Bottom clauses: those that were published for 3,540 examples, and the rules of modes one by one."""

import pickle
from collections import Counter

import joblib
import pytest

from lbm.errors import LimitExceeded, ParseError
from lbm.relations.problem import load_problem
from lbm.relations.prolog.reader import read_term
from lbm.relations.prolog.terms import write
from lbm.relations.questions import variable_name
from lbm.relations.saturate import Saturation, saturate, saturate_all


@pytest.mark.parametrize("name", ["alz_amine", "alz_acetyl", "alz_memory", "alz_toxic"])
def test_bottom_clauses_equal_those_of_aleph_for_every_example(dataset, name):
    """bcp_i3.tsv holds what Aleph 5 made of the same files; even the order of literals is the same."""
    problem = load_problem(dataset(name))
    lines = (dataset(name) / "bcp_i3.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    clauses = saturate_all(problem, depth=3)
    ours = Counter((clause.label, frozenset(clause.body)) for clause in clauses)
    assert ours == Counter((label == "pos", frozenset(body.split(" "))) for _, label, _, body in rows)
    by_example = {example: tuple(body.split(" ")) for example, _, _, body in rows}
    assert all(by_example[write(clause.example)] == clause.body for clause in clauses)


CHAIN = ":- modeh(1, t(+x)). :- modeb(*, e(+x, -x))."


# --- the rules of modes ------------------------------------------------------------------------------


def clause_of(problem_of, background, modes, example="t(a)", **options):
    problem = problem_of(background, f"{example}.", "", modes)
    return saturate(problem, read_term(example), **options)


def test_outputs_of_one_layer_are_inputs_of_the_next(problem_of):
    modes = ":- modeh(1, t(+x)). :- modeb(*, e(+x, -x))."
    background = "e(a, b). e(b, c). e(c, d). e(z, a)."
    for depth, expected in enumerate(
        [("e(A,B)",), ("e(A,B)", "e(B,C)"), ("e(A,B)", "e(B,C)", "e(C,D)")], start=1
    ):
        clause = clause_of(problem_of, background, modes, depth=depth)
        assert (clause.head, clause.body) == ("t(A)", expected)
    assert clause.terms == ("a", "b", "c", "d")


def test_the_depth_is_the_setting_i_or_else_two(problem_of):
    background, modes = "e(a, b). e(b, c). e(c, d). e(d, f).", ":- modeh(1, t(+x)). :- modeb(*, e(+x, -x))."
    assert len(clause_of(problem_of, background, modes).body) == 2
    assert len(clause_of(problem_of, background, f"{modes} :- set(i, 3).").body) == 3
    with pytest.raises(ValueError, match="depth"):
        clause_of(problem_of, background, modes, depth=0)
    with pytest.raises(ValueError, match="depth"):
        clause_of(problem_of, background, f"{modes} :- set(i, many).")


def test_recall_bounds_the_answers_for_each_choice_of_inputs(problem_of):
    background = "e(a, b). e(a, c). e(a, d). e(b, x). e(b, y). e(c, z)."
    for recall, expected in [("1", 2), ("2", 5), ("*", 6)]:
        modes = f":- modeh(1, t(+x)). :- modeb({recall}, e(+x, -x))."
        assert len(clause_of(problem_of, background, modes, depth=2).body) == expected


def test_constants_stay_and_lead_nowhere(problem_of):
    background, modes = (
        "e(a, b). e(b, c). s('A b', a). s(-1, a).",
        ":- modeh(1, t(+x)). :- modeb(*, e(+x, #x)).",
    )
    assert clause_of(problem_of, background, modes, depth=3).body == ("e(A,b)",)
    assert clause_of(problem_of, background, f"{modes} :- modeb(*, s(#n, +x)).").body == (
        "e(A,b)",
        "s('A b',A)",
        "s(-1,A)",
    )


def test_a_term_of_two_types_has_two_variables(problem_of):
    modes = ":- modeh(1, t(+x, +y)). :- modeb(*, p(+x)). :- modeb(*, q(+y)). :- modeb(*, r(+x, +y))."
    clause = clause_of(problem_of, "p(a). q(a). r(a, a).", modes, example="t(a, a)")
    assert (clause.head, clause.body) == ("t(A,B)", ("p(A)", "q(B)", "r(A,B)"))
    one = clause_of(problem_of, "p(a).", ":- modeh(1, t(+x, +x)). :- modeb(*, p(+x)).", example="t(a, a)")
    assert (one.head, one.body) == ("t(A,A)", ("p(A)",))


def test_one_input_at_least_is_new_and_others_may_be_old(problem_of):
    background = "e(a, b). e(b, c). near(a, c). near(c, a). near(a, b)."
    modes = ":- modeh(1, t(+x)). :- modeb(*, e(+x, -x)). :- modeb(*, near(+x, +x))."
    assert clause_of(problem_of, background, modes, depth=1).body == ("e(A,B)",)
    assert clause_of(problem_of, background, modes, depth=3).body == (
        "e(A,B)",
        "e(B,C)",
        "near(A,B)",
        "near(C,A)",
        "near(A,C)",
    )


def test_an_integer_and_a_float_of_the_same_value_are_two_terms(problem_of):
    modes = ":- modeh(1, t(+x)). :- modeb(*, e(+x, -n)). :- modeb(*, p(+n, -m))."
    clause = clause_of(problem_of, "e(a, 1). e(a, 1.0). p(1, int). p(1.0, float).", modes)
    assert clause.body == ("e(A,B)", "e(A,C)", "p(C,D)", "p(B,E)")
    assert clause.terms == ("a", 1, 1.0, "float", "int")


def test_rules_builtins_lists_and_infix_modes_are_proved(problem_of):
    background = "v(a, -1.5). v(a, 2.0). r(a, [x, y]). big(X, Y) :- X > 0, Y = X. big(X, X) :- X > 100."
    modes = (
        ":- modeh(1, t(+o)). :- modeb(*, v(+o, -n)). :- modeb(*, r(+o, -l)). :- modeb(1, big(+n, #n)). "
        ":- modeb(1, (+n) = (#n)). :- modeb(*, member(-e, +l)). :- modeb(1, length(+l, #i))."
    )
    assert clause_of(problem_of, background, modes, depth=2).body == (
        "v(A,B)",
        "v(A,C)",
        "r(A,D)",
        "big(C,2.0)",
        "C=2.0",
        "B=(-1.5)",
        "member(E,D)",
        "member(F,D)",
        "length(D,2)",
    )


def test_nested_modes_reach_into_terms(problem_of):
    background = "has(a, box(b, 3)). has(a, bag(c)). p(b). p(c). has(a, box(d, 4))."
    modes = (
        ":- modeh(1, t(+x)). :- modeb(*, has(+x, box(-x, #n))). :- modeb(*, has(+x, bag(c))). "
        ":- modeb(1, p(+x))."
    )
    assert clause_of(problem_of, background, modes, depth=2).body == (
        "has(A,box(B,3))",
        "has(A,box(C,4))",
        "has(A,bag(c))",
        "p(B)",
    )


def test_negated_modes_hold_where_nothing_is_proved(problem_of):
    modes = ":- modeh(1, t(+x)). :- modeb(1, not(p(+x))). :- modeb(*, e(+x, -x))."
    clause = clause_of(problem_of, "e(a, b). p(b).", modes, depth=3)
    assert sorted(clause.body) == ["e(A,B)", "not(p(A))"]


def test_outputs_of_the_head_are_reached_in_the_last_layer(problem_of):
    modes = ":- modeh(1, t(+x, -x)). :- modeb(*, e(+x, -x)). :- modeb(*, p(+x))."
    background = "e(a, b). e(b, c). e(b, z). p(a). p(b)."
    clause = clause_of(problem_of, background, modes, example="t(a, c)", depth=2)
    assert (clause.head, clause.body) == ("t(A,B)", ("e(A,C)", "p(A)", "e(C,B)", "p(C)"))


def test_the_head_is_not_a_literal_of_its_own_body_and_none_is_there_twice(problem_of):
    modes = f"{CHAIN} :- modeb(*, t(+x)). :- modeb(1, e(+x, -x)). :- modeb(*, g)."
    assert clause_of(problem_of, "t(a). e(a, b). e(a, b). g.", modes, depth=3).body == ("e(A,B)", "g")


def test_a_clause_without_literals_is_its_head(problem_of):
    clause = clause_of(problem_of, "p(b).", ":- modeh(1, t(+x)). :- modeb(1, p(+x)).")
    assert str(clause) == "t(A)."
    assert (
        str(clause_of(problem_of, "p(a).", ":- modeh(1, t(+x)). :- modeb(1, p(+x)).")) == "t(A) :-\n    p(A)."
    )


def test_heads_with_constants_fit_the_first_mode_that_matches(problem_of):
    modes = ":- modeh(1, t(f(+x), #c)). :- modeh(1, t(g, +x)). :- modeb(1, p(+x))."
    assert clause_of(problem_of, "p(a).", modes, example="t(f(a), 3)").head == "t(f(A),3)"
    assert clause_of(problem_of, "p(a).", modes, example="t(g, a)").head == "t(g,A)"
    for example in ["t(h, a)", "t(f(a, b), a)"]:
        with pytest.raises(ParseError, match="fits a mode of the head"):
            clause_of(problem_of, "p(a).", modes, example=example)


# --- all examples, and budgets -----------------------------------------------------------------------


@pytest.fixture
def small(problem_of):
    examples = [f"t({k})." for k in range(20)]
    facts = " ".join(f"e({k}, {(3 * k + j) % 20})." for k in range(20) for j in range(3))
    return problem_of(facts, " ".join(examples[:12]), " ".join(examples[12:]), CHAIN)


def test_all_examples_come_positive_ones_first_whatever_the_number_of_jobs(small):
    done = []
    one = saturate_all(small, depth=2, progress=done.append)
    assert [(clause.example, clause.label) for clause in one] == list(
        zip(small.examples, small.labels, strict=True)
    )
    assert done == list(range(1, 21))
    with joblib.parallel_config(backend="threading"):
        assert saturate_all(small, depth=2, n_jobs=2) == one
    assert [saturate(small, example, depth=2) for example in small.examples] == one


def test_a_saturation_survives_a_pickle_so_that_processes_can_share_the_work(small):
    saturation = pickle.loads(pickle.dumps(Saturation(small, depth=2)))
    assert saturation.clause(small.examples[0], True) == saturate(small, small.examples[0], depth=2)


def test_what_is_forgotten_is_found_again(small, monkeypatch):
    expected = saturate_all(small, depth=3)
    monkeypatch.setattr("lbm.relations.questions.REMEMBERED", 2)
    assert saturate_all(small, depth=3) == expected


def test_a_recall_that_explodes_is_one_line(problem_of):
    facts = " ".join(f"e({a}, {b})." for a in range(30) for b in range(30))
    for modes in [CHAIN, ":- modeh(1, t(+x)). :- modeb(*, e(-x, -x)). :- modeb(*, e(+x, +x))."]:
        problem = problem_of(facts, "t(1).", "", modes)
        with pytest.raises(LimitExceeded) as caught:
            saturate(problem, problem.positive[0], depth=3, literals=100)
        assert (caught.value.limit, caught.value.value) == ("literals", 100)
        assert "modes.pl:1" in caught.value.one_line()


def test_calls_that_find_nothing_have_a_budget_too(problem_of):
    facts = " ".join(f"e(1, {a})." for a in range(60)) + " f(x, y, z, u)."
    modes = ":- modeh(1, t(+x)). :- modeb(*, e(+x, -x)). :- modeb(*, f(+x, +x, +x, +x))."
    with pytest.raises(LimitExceeded, match="literals"):
        saturate_all(problem_of(facts, "t(1).", "", modes), depth=2, literals=1000)


def test_a_rule_without_end_is_one_line(problem_of):
    problem = problem_of("e(X, Y) :- e(Y, X). e(a, b).", "t(a).", "", CHAIN)
    with pytest.raises(LimitExceeded, match=r"no answer to e\(a,"):
        saturate(problem, problem.positive[0], steps=1000)


def test_an_answer_with_a_variable_in_it_is_one_line(problem_of):
    problem = problem_of("e(a, _). e(X, f(Y)) :- X = Y.", "t(a).", "", CHAIN)
    with pytest.raises(ParseError, match="expected answers without variables"):
        saturate(problem, problem.positive[0])


def test_without_modes_there_is_nothing_to_saturate(problem_of):
    for modes, words in [("", "body mode"), (":- set(i, 2).", "body mode")]:
        problem = problem_of("e(a, b).", "t(a).", "", modes)
        with pytest.raises(ParseError, match=words):
            saturate_all(problem)


def test_names_of_variables_go_on_after_z():
    assert [variable_name(number) for number in (0, 25, 26, 51, 52)] == ["A", "Z", "A1", "Z1", "A2"]
