"""Labels as evidence: marginals against all worlds, and what happens to labels that clash."""

import itertools
import math
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import ClashingLabels, FileError, NoWorlds, ParseError, UnknownAtom, WeightError
from lbm.knowledge.theory import Theory
from lbm.reasoning.sampling.runs import Limits
from lbm.relations.evidence import constants_of, ground, infer, marginals, prepare, query
from lbm.relations.evidence.residual import reduce
from lbm.relations.evidence.walk import begin, walk

ORDER = Path(__file__).parents[2] / "examples" / "order.lbm"

Relation = frozenset[tuple[str, str]]
Rule = Callable[[Relation, tuple[str, ...]], float]

# Each rule as text, and as a plain program that says how often a relation breaks it.
RULES: dict[str, Rule] = {
    "forall X in d: ~p(X, X)": lambda r, d: sum((x, x) in r for x in d),
    "forall X, Y in d: p(X, Y) -> p(Y, X)": lambda r, d: sum((y, x) not in r for x, y in r),
    "forall X, Y in d, X != Y: ~(p(X, Y) & p(Y, X))": lambda r, d: sum(x != y and (y, x) in r for x, y in r),
    "forall X, Y in d, X != Y: p(X, Y) <-> ~p(Y, X)": lambda r, d: sum(
        x != y and ((x, y) in r) == ((y, x) in r) for x in d for y in d
    ),
    "forall X, Y, Z in d: p(X, Y) & p(Y, Z) -> p(X, Z)": lambda r, d: sum(
        y == v and (x, z) not in r for x, y in r for v, z in r
    ),
    "forall X in d: (exists Y in d: p(X, Y))": lambda r, d: sum(all((x, y) not in r for y in d) for x in d),
    "forall X, Y, Z in d, Y != Z: ~p(X, Y) | ~p(X, Z)": lambda r, d: sum(
        x == u and y != z for x, y in r for u, z in r
    ),
}


def all_relations(things: tuple[str, ...]) -> Iterator[Relation]:
    pairs = list(itertools.product(things, repeat=2))
    for bits in range(1 << len(pairs)):
        yield frozenset(pair for k, pair in enumerate(pairs) if bits >> k & 1)


def by_enumeration(
    things: tuple[str, ...],
    rules: Mapping[str, float | None],
    labels: Mapping[tuple[str, str], bool],
    weight: float | None,
) -> dict[tuple[str, str], float] | None:
    """Return P(p(x, y)) of every pair, from all relations; None: there is none."""
    total, mass = 0.0, dict.fromkeys(itertools.product(things, repeat=2), 0.0)
    for relation in all_relations(things):
        broken = {text: RULES[text](relation, things) for text in rules}
        if any(broken[text] for text, w in rules.items() if w is None):
            continue
        kept = sum((pair in relation) is value for pair, value in labels.items())
        if weight is None and kept < len(labels):
            continue
        lost = sum(w * broken[text] for text, w in rules.items() if w is not None)
        here = math.exp((weight or 0.0) * kept - lost)
        total += here
        for pair in relation:
            mass[pair] += here
    return None if total == 0 else {pair: part / total for pair, part in mass.items()}


rule_sets = st.dictionaries(
    st.sampled_from(sorted(RULES)), st.sampled_from([None, None, 0.5, 1.25]), min_size=1, max_size=3
)
pairs_of = {
    things: st.dictionaries(
        st.sampled_from(list(itertools.product(things, repeat=2))), st.booleans(), max_size=3
    )
    for things in (("a", "b"), ("a", "b", "c"))
}


def text_of(rules: Mapping[str, float | None]) -> str:
    return "domain d = {}\n" + "\n".join(t if w is None else f"{w}: {t}" for t, w in rules.items())


def asked(things: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    return {f"p({x}, {y})": (x, y) for x, y in itertools.product(things, repeat=2)}


@given(st.data(), st.sampled_from(sorted(pairs_of)), rule_sets, st.sampled_from([None, 0.75, 2.0]))
def test_marginals_of_any_relation_are_those_of_all_its_worlds(data, things, rules, weight):
    labels = data.draw(pairs_of[things])
    # Rules with guards may leave atoms out that a table of all pairs has: declare them all.
    text = "atoms " + ", ".join(asked(things)) + "\n" + text_of(rules)
    wanted = by_enumeration(things, rules, labels, weight)
    given_ = {f"p({x}, {y})": value for (x, y), value in labels.items()}
    theory = ground(text, domains={"d": things})
    if wanted is None:
        with pytest.raises(NoWorlds):
            marginals(theory, given_, list(asked(things)), weight=weight)
        return
    found = marginals(theory, given_, list(asked(things)), weight=weight)
    assert found.method == "exact"
    assert found.converged
    for name, pair in asked(things).items():
        assert found[name] == pytest.approx(wanted[pair], abs=1e-9)
        if weight is None:
            settled = {0.0: "refuted", 1.0: "entailed"}.get(wanted[pair], "undecided")
            assert found.statuses[name] == settled


SOME = {
    "forall X, Y, Z in d: p(X, Y) & p(Y, Z) -> p(X, Z)": None,
    "forall X in d: (exists Y in d: p(X, Y))": 1.25,
}


@pytest.mark.parametrize("weight", [None, 1.0])
def test_chains_among_models_give_the_marginals_of_all_worlds(monkeypatch, weight):
    things, labels = ("a", "b", "c"), {("a", "b"): True, ("c", "a"): False}
    monkeypatch.setattr(query, "EXACT_ATOMS", 0)
    wanted = by_enumeration(things, SOME, labels, weight)
    given_ = {f"p({x}, {y})": value for (x, y), value in labels.items()}
    found = marginals(
        ground(text_of(SOME), domains={"d": things}), given_, list(asked(things)), weight=weight, seed=1
    )
    assert found.method == "sampled"
    assert found.converged
    for name, pair in asked(things).items():
        error = math.sqrt(
            wanted[pair] * (1 - wanted[pair]) / 400
        )  # converged: an effective size of 400 or more
        assert abs(found[name] - wanted[pair]) <= 4 * error


def test_chains_that_no_flip_connects_are_not_called_converged():
    ready = prepare(Theory.parse("exactly(1, a, b, c)\na | b | c | d"))
    open_ = reduce(ready.clauses, {})
    assert open_ is not None
    clauses = open_.clauses
    models, fixed = begin(clauses, range(clauses.variables), np.random.default_rng(0))
    assert not fixed
    found, _ = walk(clauses, 1.0, models, range(clauses.variables), np.random.default_rng(0), Limits(64))
    assert any(not said.converged for said in found.values())


def test_labels_that_clash_are_named_and_no_others():
    labels = {"ex(a, b)": True, "ex(b, c)": True, "ex(a, c)": False, "ex(d, e)": True, "ex(e, d)": False}
    with pytest.raises(ClashingLabels, match="correct one, or use a weight") as caught:
        infer(ORDER, labels, ["ex(a, d)"])
    assert caught.value.labels == {"ex(a, b)": True, "ex(a, c)": False, "ex(b, c)": True}
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.labels == caught.value.labels
    assert str(again) == str(caught.value)


def test_labels_that_clash_do_not_stop_where_they_have_a_weight():
    labels = {"ex(a, b)": True, "ex(b, c)": True, "ex(c, a)": True}
    found = infer(ORDER, labels, list(labels), weight=2.0)
    circle = math.exp(2 * 2.0) * 3  # three orders keep two of the labels, three keep one
    assert found["ex(a, b)"] == pytest.approx((circle * 2 / 3 + math.exp(2.0)) / (circle + 3 * math.exp(2.0)))


def test_labels_of_another_relation_clash_even_if_nothing_is_asked_of_it():
    text = ORDER.read_text() + "forall X in compound: p(X) ^ q(X)\n"
    labels = {"ex(a, b)": True, "ex(b, c)": True, "p(a)": True, "q(a)": True}
    with pytest.raises(ClashingLabels) as caught:
        infer(text, labels, ["ex(a, c)"])
    assert set(caught.value.labels) == {"p(a)", "q(a)"}


def test_a_label_that_is_asked_for_is_its_own_answer():
    found = infer(ORDER, {"ex(a, b)": True, "ex(b, c)": True}, ["ex(a,b)", "ex(b, a)"])
    assert dict(found) == {"ex(a,b)": 1.0, "ex(b, a)": 0.0}
    assert found.statuses == {"ex(a,b)": "entailed", "ex(b, a)": "refuted"}


def test_what_is_exactly_as_likely_as_not_is_counted_and_never_a_coin():
    labels = {"ex(a, b)": True, "ex(a, c)": True, "ex(b, d)": True, "ex(c, d)": True}
    found = infer(ORDER, labels, ["ex(b, c)", "ex(c, b)", "ex(a, d)"])
    assert found.even == ("ex(b, c)", "ex(c, b)")
    assert found.labels() == {"ex(b, c)": False, "ex(c, b)": False, "ex(a, d)": True}
    assert "exactly as likely as not: 2 of 3" in repr(found)


def test_an_atom_that_nothing_is_said_of_follows_its_label():
    theory = Theory.parse("atoms a, b\na -> a")
    assert dict(marginals(theory, {}, ["a", "b"])) == {"a": 0.5, "b": 0.5}
    assert marginals(theory, {"b": True}, ["b"])["b"] == 1.0
    assert marginals(theory, {"b": True}, ["b"], weight=1.5)["b"] == pytest.approx(1 / (1 + math.exp(-1.5)))


# --- rules over the constants of a problem -------------------------------------------------------------


def test_an_empty_domain_holds_the_constants_of_the_problem():
    theory = ground(ORDER, ["ex(b, a)", "ex(a,'c d')"])
    assert len(theory.atoms) == 9
    assert "ex(a, 'c d')" in theory.atoms
    assert theory == ground(ORDER, domains={"compound": ["'c d'", "a", "b"]})
    assert constants_of(["ex(b, a)", "alone"]) == ["a", "b"]


def test_constants_that_need_quotes_get_them():
    theory = ground("domain d = {}\nforall X in d: p(X)", domains={"d": ["a b", "in", "c", "7"]})
    assert theory.atoms == ("p('a b')", "p('in')", "p(c)", "p(7)")


def test_a_theory_takes_domains_and_refuses_what_is_no_constant():
    text = "domain d = {a}\nforall X in d: p(X)"
    assert Theory.parse(text, domains={"d": ["b", "c", "b"]}).atoms == ("p(b)", "p(c)")
    with pytest.raises(ParseError, match="expected constants in the domain 'd', got 'a b'"):
        Theory.parse(text, domains={"d": ["a b"]})


def test_rules_may_name_the_members_of_some_domains():
    text = "domain d = {}\ndomain e = {x, y}\nforall X in d, Y in e: p(X, Y)"
    assert ground(text, ["p(a, x)"], domains={"d": ["a"]}).atoms == ("p(a, x)", "p(a, y)")
    with pytest.raises(ParseError, match=r"leave 2 domains empty \(d, f\)"):
        ground("domain d = {}\ndomain f = {}\np", ["p(a)"])
    with pytest.raises(ParseError, match="no domain 'compond' is declared here; did you mean 'compound'"):
        ground(ORDER, ["ex(a, b)"], domains={"compond": ["a"]})


def test_bad_input_is_one_line(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none\.lbm: No such file"):
        ground(tmp_path / "none.lbm")
    with pytest.raises(ParseError, match="which is empty"):
        ground(ORDER)
    theory = ground(ORDER, ["ex(a, b)", "ex(b, c)"])
    with pytest.raises(UnknownAtom, match="no atom 'ex\\(a, x\\)'"):
        marginals(theory, {"ex(a, x)": True}, ["ex(a, b)"])
    with pytest.raises(UnknownAtom):
        marginals(theory, {}, ["better(a, b)"])
    for weight in (0.0, -1.0, math.inf):
        with pytest.raises(WeightError):
            marginals(theory, {"ex(a, b)": True}, ["ex(b, c)"], weight=weight)
    with pytest.raises(ValueError, match="temperature"):
        marginals(theory, {}, ["ex(a, b)"], temperature=0)
    with pytest.raises(ValueError, match="sweeps"):
        marginals(theory, {}, ["ex(a, b)"], sweeps=1)
    with pytest.raises(NoWorlds):
        marginals(Theory.parse("a\n~a"), {}, ["a"])
