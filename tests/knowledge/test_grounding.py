"""Rules with variables stand for exactly the formulae that substitution gives, within a budget."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, ParseError
from lbm.knowledge.formula import FALSE, TRUE, atom, conjunction, disjunction
from lbm.knowledge.grounding import (
    MAX_INSTANCES,
    MAX_QUANTIFIERS,
    Guard,
    Quantifier,
    Supply,
    Template,
    bindings,
    ground,
    instances,
)
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory

DOMAINS = {"d": ("a", "b", "c"), "e": ("1", "'x y'"), "single": ("a",)}
DECLARED = "".join(f"domain {name} = {{{', '.join(constants)}}}\n" for name, constants in DOMAINS.items())


@st.composite
def rules(draw):
    """Draw a rule: (variable, domain) pairs, guards, and a body as text with [X] where a variable stands."""
    variables = draw(st.lists(st.sampled_from("XYZ"), min_size=1, max_size=3, unique=True))
    pairs = [(variable, draw(st.sampled_from(sorted(DOMAINS)))) for variable in variables]
    sides = st.sampled_from([*variables, "a", "b", "1", "'x y'"])
    guards = draw(st.lists(st.tuples(sides, st.sampled_from(["=", "!="]), sides), max_size=2))
    arguments = st.lists(st.sampled_from([*(f"[{v}]" for v in variables), "a", "7"]), min_size=1, max_size=3)
    terms = st.builds(lambda name, listed: f"{name}({', '.join(listed)})", st.sampled_from("pq"), arguments)
    bodies = st.recursive(
        terms | st.sampled_from(["z", "true"]),
        lambda parts: st.one_of(
            parts.map("~({})".format),
            st.builds("({} {} {})".format, parts, st.sampled_from(["&", "->", "<->", "^"]), parts),
            st.builds("exactly(1, {}, {})".format, parts, parts),
        ),
        max_leaves=5,
    )
    return pairs, guards, draw(bodies)


def substituted(pairs, guards, body):
    """Return the body's text for every binding that the guards allow, the last variable fastest."""
    found = []
    for constants in itertools.product(*(DOMAINS[domain] for _, domain in pairs)):
        binding = dict(zip((variable for variable, _ in pairs), constants, strict=True))
        if all(
            (binding.get(left, left) == binding.get(right, right)) == (sign == "=")
            for left, sign, right in guards
        ):
            text = body
            for variable, constant in binding.items():
                text = text.replace(f"[{variable}]", constant)
            found.append(parse(text))
    return found


def written(pairs, guards, body):
    """Return the quantifier's binding and the rule's body as the text format has them."""
    for variable, _ in pairs:
        body = body.replace(f"[{variable}]", variable)
    groups = [f"{variable} in {domain}" for variable, domain in pairs]
    return ", ".join([*groups, *(f"{left} {sign} {right}" for left, sign, right in guards)]), body


@given(rules(), st.sampled_from(["", "2.50: "]))
def test_a_rule_stands_for_one_formula_per_binding_with_its_weight(rule, weight):
    binding, body = written(*rule)
    theory = Theory.parse(f"{DECLARED}atoms z\n{weight}forall {binding}: {body}")
    assert [statement.formula for statement in theory] == substituted(*rule)
    assert {str(statement.weight) for statement in theory} <= {"2.50" if weight else "None"}


@given(rules(), st.sampled_from(["forall", "exists"]))
def test_a_quantifier_in_parentheses_is_one_formula(rule, kind):
    binding, body = written(*rule)
    theory = Theory.parse(f"{DECLARED}3: z & ({kind} {binding}: {body})")
    (statement,) = theory
    join = conjunction if kind == "forall" else disjunction
    assert statement.formula is atom("z") & join(substituted(*rule))
    assert statement.weight == 3


@given(rules())
def test_exists_at_the_start_of_a_line_is_one_disjunction(rule):
    binding, body = written(*rule)
    (statement,) = Theory.parse(f"{DECLARED}exists {binding}: {body}")
    assert statement.formula is disjunction(substituted(*rule))


@given(rules())
def test_leading_foralls_may_be_written_one_by_one_or_together(rule):
    pairs, guards, _ = rule
    binding, body = written(*rule)
    last = "".join(f", {left} {sign} {right}" for left, sign, right in guards)
    apart = ": forall ".join(f"{variable} in {domain}" for variable, domain in pairs)
    together = Theory.parse(f"{DECLARED}atoms z\nforall {binding}: {body}")
    assert Theory.parse(f"{DECLARED}atoms z\nforall {apart}{last}: {body}") == together


def test_quantifiers_nest_and_reach_as_far_as_they_can():
    (statement,) = Theory.parse(
        "domain d = {a, b}\n(exists X in d: p(X) & (forall Y in d, Y != X: q(X, Y)) -> r)"
    )
    assert str(statement.formula) == "(p(a) & q(a, b) -> r) | (p(b) & q(b, a) -> r)"
    theory = Theory.parse("domain d = {a, b}\n5: forall X in d: exists Y in d: p(X, Y)")
    assert str(theory).split("\n") == ["5: p(a, a) | p(a, b)", "5: p(b, a) | p(b, b)"]


def test_no_binding_makes_forall_true_and_exists_false():
    rule = "X in d, X != a: p(X)"
    theory = Theory.parse(f"domain d = {{a}}\natoms q\n(forall {rule})\n(exists {rule})\nforall {rule}")
    assert [statement.formula for statement in theory] == [TRUE, FALSE]


def test_only_names_bound_here_are_variables():
    text = "domain d = {a, X}\nforall X in d: p(X, Y, 'X') & X(X)\np(X)"
    assert str(Theory.parse(text)).split("\n") == [
        "p(a, Y, 'X') & X(a)",
        "p(X, Y, 'X') & X(X)",
        "p(X)",
    ]


def test_a_guard_may_name_a_constant_of_any_domain():
    theory = Theory.parse("domain d = {a, b}\ndomain e = {c}\nforall X in d: forall Y in e, X != a: p(X, Y)")
    assert str(theory) == "p(b, c)"


def test_a_ground_term_is_the_atom_that_is_written():
    theory = Theory.parse("domain d = {'it''s', 2}\nforall X in d: p( X ,a)\np('it''s',a) & p(2, a)")
    assert theory.atoms == ("p('it''s', a)", "p(2, a)")


# --- the parts of it -----------------------------------------------------------------------------


def template(depth, rng):
    """Return a template and the same as a function from a binding to its formula, written out."""
    if depth == 0:
        if rng.random() < 0.3:
            fixed = atom(rng.choice("uvw"))
            return fixed, lambda _: fixed
        arguments = tuple(rng.choice(["X", "Y", "k"]) for _ in range(rng.randint(1, 2)))
        return (
            Template("term", ("p", arguments), ()),
            lambda binding: atom(
                f"p({', '.join(binding.get(argument, argument) for argument in arguments)})"
            ),
        )
    (left, say_left), (right, say_right) = template(depth - 1, rng), template(depth - 1, rng)
    return Template("and", None, (left, right)), lambda binding: say_left(binding) & say_right(binding)


@given(st.integers(0, 4), st.randoms(use_true_random=False))
def test_grounding_fills_every_hole_and_nothing_else(depth, rng):
    made, say = template(depth, rng)
    for x, y in itertools.product("ab", repeat=2):
        binding = {"X": x, "Y": y}
        assert ground(made, binding, Supply()) is say(binding)


def test_a_deep_template_is_ground_without_recursion():
    made = Template("term", ("p", ("X",)), ())
    for _ in range(50_000):
        made = Template("not", None, (made,))
    formula = ground(made, {"X": "a"}, Supply())
    assert str(formula) == "~" * 50_000 + "p(a)"
    (statement,) = Theory.parse("domain d = {a}\nforall X in d: " + "~(" * 50_000 + "p(X)" + ")" * 50_000)
    assert statement.formula is formula


def test_bindings_come_in_order_and_obey_guards():
    quantifier = Quantifier("forall", ("X", "Y"), (("a", "b"), ("a", "c")), (Guard("X", False, "Y"),))
    assert quantifier.size() == 4
    assert [tuple(binding.values()) for binding in bindings(quantifier, {"Z": "z"}, Supply())] == [
        ("z", "a", "c"),
        ("z", "b", "a"),
        ("z", "b", "c"),
    ]
    assert (
        list(bindings(Quantifier("exists", ("X",), (("a",),), (Guard("X", True, "b"),)), {}, Supply())) == []
    )


# --- limits --------------------------------------------------------------------------------------


def test_the_budget_counts_bindings_of_every_quantifier_together():
    def cost(limit):
        inner = Quantifier("exists", ("Y",), (tuple("abc"),))
        outer = Quantifier("forall", ("X",), (tuple("abcd"),))
        body = Template("exists", inner, (Template("term", ("p", ("X", "Y")), ()),))
        return list(instances((outer,), body, Supply(limit, limit)))

    assert len(cost(4 + 4 * 3)) == 4
    with pytest.raises(LimitExceeded, match="more than 15 ground instances") as caught:
        cost(4 + 4 * 3 - 1)
    assert (caught.value.limit, caught.value.value) == ("MAX_INSTANCES", 15)


@pytest.mark.parametrize(
    "rule",
    ["forall X, Y in d: p(X, Y)", "forall X in d: forall Y in d: p(X)", "(exists X, Y in d, X = Y: p(X))"],
)
def test_rules_that_make_too_many_instances_are_refused_at_their_place(rule):
    constants = ", ".join(f"c{i}" for i in range(1001))
    assert MAX_INSTANCES < 1001**2
    with pytest.raises(ParseError, match=r"more than 1000000 ground instances \(limit MAX_") as caught:
        Theory.parse(f"domain d = {{{constants}}}\n\n 2: {rule}")
    assert (caught.value.line, caught.value.column) == (3, 2)


def test_long_rules_are_refused_by_the_terms_they_fill_in(monkeypatch):
    monkeypatch.setattr("lbm.knowledge.parser.Supply", lambda: Supply(terms=11))
    rules = "domain d = {a, b, c}\n\nforall X in d: p(X) & q(X) & r(X)"
    assert len(Theory.parse(rules)) == 3
    with pytest.raises(ParseError, match=r"\(limit MAX_GROUND_TERMS\)") as caught:
        Theory.parse(rules + " & s(X)")
    assert caught.value.line == 3


def test_rules_share_one_budget(monkeypatch):
    monkeypatch.setattr("lbm.knowledge.parser.Supply", lambda: Supply(7, 7))
    rules = "domain d = {a, b, c}\nforall X in d: p(X)\nforall X in d: q(X)\n"
    assert len(Theory.parse(rules)) == 6
    with pytest.raises(ParseError, match="more than 7 ground instances") as caught:
        Theory.parse(rules + "(exists X in d: r(X))")
    assert (caught.value.line, caught.value.column) == (4, 1)


def nested(number, kind):
    opened = "".join(f"({kind} X{i} in d: " for i in range(number))
    return f"domain d = {{a}}\n{opened}p(X0, X{number - 1}){')' * number}"


@pytest.mark.parametrize("kind", ["forall", "exists"])
def test_sixteen_quantifiers_nest_and_one_more_is_refused(kind):
    (statement,) = Theory.parse(nested(MAX_QUANTIFIERS, kind))
    assert str(statement.formula) == "p(a, a)"
    with pytest.raises(ParseError, match=r"at most 16 .* \(limit MAX_QUANTIFIERS\)") as caught:
        Theory.parse(nested(MAX_QUANTIFIERS + 1, kind))
    assert caught.value.line == 2
    assert caught.value.column == nested(17, kind).split("\n")[1].index(f"{kind} X16") + 1


def test_quantifiers_beside_one_another_do_not_nest():
    (statement,) = Theory.parse("domain d = {a}\n" + " & ".join(["(exists X in d: p(X))"] * 40))
    assert statement.formula is conjunction([atom("p(a)")] * 40)
    rule = "forall " + ": forall ".join(f"X{i} in d" for i in range(MAX_QUANTIFIERS)) + ": p(X0)\n"
    assert len(Theory.parse("domain d = {a}\n" + rule * 3)) == 3
