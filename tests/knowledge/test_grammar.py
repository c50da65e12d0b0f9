"""The parser is its grammar.

The same text is read twice: by the parser, and by lark with grammar.lark and the meaning written out below.
Both must refuse it, or both must read the same formulae.
"""

import itertools
import random
import re
from decimal import Decimal
from importlib.resources import files
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark, Token, Tree
from lark.exceptions import LarkError

from lbm.errors import ParseError
from lbm.knowledge.formula import (
    FALSE,
    RESERVED,
    TRUE,
    atom,
    atoms_of,
    cardinality,
    conjunction,
    disjunction,
    implies,
)
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from tests.strategies import BINARY, awkward_names, formulae

GRAMMAR = Lark(
    (files("lbm.knowledge") / "grammar.lark").read_text(encoding="utf-8"),
    parser="lalr",
    start=["start", "quantified"],
    maybe_placeholders=False,
)


class Refused(Exception):
    """The text says nothing."""


def refuse_unless(condition):
    if not condition:
        raise Refused


class Told(NamedTuple):
    statements: list
    atoms: set


def told_by_the_grammar(text):
    """Return the (weight, formula) pairs and the atoms of a text, or raise Refused."""
    told, domains = Told([], set()), {}
    for statement in split_statements(text):
        try:
            tree = GRAMMAR.parse(statement, start="start").children[0]
        except LarkError as error:
            raise Refused from error
        if tree.data == "domain":
            name, *constants = map(str, tree.children)
            refuse_unless(name not in domains and len(set(constants)) == len(constants))
            refuse_unless(all(map(visible, constants)))
            domains[name] = constants
        else:
            told.atoms.update(written_atoms(tree, frozenset(), domains))
            if tree.data != "atoms":
                weight = number(tree.children[0]) if tree.data == "soft" else None
                found = ground_instances(tree.children[-1], {}, domains)
                told.statements.extend((weight, formula) for formula in found)
                told.atoms.update(atoms_of(*found))
    refuse_unless(told.statements or told.atoms)
    return told


def split_statements(text):
    """Cut a text at the line ends outside brackets, comments and quotes; drop comments and what is blank."""
    statement, depth = "", 0
    for piece in re.findall(r"'(?:[^'\n]|'')+'|#[^\n]*|.", text + "\n", re.DOTALL):
        if piece == "\n" and not depth:
            if statement.strip(" \t\r\f"):
                yield statement
            statement = ""
        elif not piece.startswith("#"):
            statement += piece
            depth = max(0, depth + (piece in "({") - (piece in ")}"))
    if statement.strip(" \t\r\f\n"):
        yield statement


def written_atoms(tree, variables, domains):
    """Check all that a grammar cannot say; yield the atoms that are written without variables."""
    tokens = [child for child in tree.children if isinstance(child, Token)]
    refuse_unless(all(map(visible, tokens)))
    if tree.data in ("plain", "quoted", "term"):
        refuse_unless(tree.data != "plain" or str(tokens[0]) not in variables)
        if tree.data != "term" or variables.isdisjoint(map(str, tokens[1:])):
            yield meaning(tree, {}, domains).label
    if tree.data in ("forall", "exists"):
        for part in tree.children[0].children:
            if part.data == "group":
                *new, domain = map(str, part.children)
                refuse_unless(domains.get(domain))
                refuse_unless(len(set(new)) == len(new) and variables.isdisjoint(new))
                variables = variables.union(new)
            else:
                refuse_unless(all(map(visible, part.children)))
                known = variables.union(*domains.values())
                refuse_unless(all(str(side) in known for side in part.children if side.type == "NAME"))
    for child in tree.children:
        if isinstance(child, Tree) and child.data != "binding":
            yield from written_atoms(child, variables, domains)


def number(text):
    value = Decimal(text)
    refuse_unless(value and Decimal("1e-100") <= abs(value) <= Decimal("1e100"))
    return value


def visible(text):
    return not re.search("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]", text)


def ground_instances(tree, scope, domains):
    """Return one formula per binding of the leading ``forall``."""
    if tree.data != "forall":
        return [meaning(tree, scope, domains)]
    return [
        formula
        for inner in bindings(tree.children[0], scope, domains)
        for formula in ground_instances(tree.children[1], inner, domains)
    ]


def meaning(tree, scope, domains):
    """Return the formula of a tree, where ``scope`` maps variables to constants."""
    kind, children = str(tree.data), tree.children
    if kind == "plain":
        return atom(str(children[0]))
    if kind == "quoted":
        return atom(children[0][1:-1].replace("''", "'"))
    if kind == "term":
        predicate, *arguments = map(str, children)
        return atom(f"{predicate}({', '.join(scope.get(argument, argument) for argument in arguments)})")
    if kind in ("true", "false"):
        return TRUE if kind == "true" else FALSE
    if kind in ("forall", "exists"):
        scopes = bindings(children[0], scope, domains)
        listed = [meaning(children[1], inner, domains) for inner in scopes]
        return conjunction(listed) if kind == "forall" else disjunction(listed)
    below = [meaning(child, scope, domains) for child in children if isinstance(child, Tree)]
    if kind == "cardinality":
        return cardinality(str(children[0]), int(children[1]), below)
    if kind == "inner":
        return below[0]
    if kind == "not":
        return ~below[0]
    if kind == "implied":
        return implies(below[1], below[0])
    return BINARY[kind](*below)


def bindings(tree, scope, domains):
    """Return the scopes that a quantifier's groups and guards allow."""
    groups = [[str(name) for name in child.children] for child in tree.children if child.data == "group"]
    guards = [child for child in tree.children if child.data != "group"]
    variables = [variable for *names, _ in groups for variable in names]
    lists = [domains[domain] for *names, domain in groups for _ in names]
    scopes = [scope | dict(zip(variables, constants, strict=True)) for constants in itertools.product(*lists)]
    return [inner for inner in scopes if all(allows(guard, inner) for guard in guards)]


def allows(guard, scope):
    left, right = (scope.get(str(side), str(side)) for side in guard.children)
    return (left == right) is (guard.data == "same")


def told_by_the_parser(text):
    try:
        theory = Theory.parse(text)
    except ParseError:
        raise Refused from None
    return Told([(statement.weight, statement.formula) for statement in theory], set(theory.atoms))


def outcome(read, text):
    try:
        return read(text)
    except Refused:
        return "refused"


SPELLED = {
    "iff": ("<->", "<=>", "iff", "↔"),
    "implies": ("->", "=>", "implies", "→"),
    "implied": ("<-", "←"),
    "or": ("|", "||", "or", "∨"),
    "xor": ("^", "xor", "⊕"),
    "and": ("&", "&&", "and", "∧"),
}
CONSTANTS = ("a1", "b1", "2", "'c d'", "'it''s'", "٣")
BLANKS = ("", " ", " ", "  ", "\t", " \r", "\f")


class Writer:
    """Write random text of the format, as a list of tokens, so that most of it is right."""

    def __init__(self, rng):
        self.rng = rng
        self.domains = {}
        self.variables = ()
        self.fresh = 0

    def text(self):
        statements = [self.domain() for _ in range(self.rng.randint(0, 2))]
        statements += [self.statement() for _ in range(self.rng.randint(1, 3))]
        return "\n".join(map(self.spaced, statements)) + self.rng.choice(["", "\n", " # end", "\n\n# 'end"])

    def domain(self):
        name = f"d{len(self.domains)}"
        self.domains[name] = self.rng.sample(CONSTANTS, self.rng.choice([0, *[1, 2, 2, 2, 3] * 4]))
        return ["domain", name, "=", "{", *self.commas([[constant] for constant in self.domains[name]]), "}"]

    def statement(self):
        kind = self.rng.random()
        if kind < 0.1:
            return ["atoms", *self.commas([self.name() for _ in range(self.rng.randint(1, 3))])]
        weight = self.rng.choice(
            ["2", "-3", "+4", "2.50", ".5", "5.", "1e3", "-1.5E-2", "٣"] * 3 + ["0", "1e101"]
        )
        return ([weight, ":"] if kind < 0.5 else []) + self.quantified(self.rng.randint(0, 4))

    def commas(self, lists):
        return [token for i, tokens in enumerate(lists) for token in ([","] if i else []) + tokens]

    def name(self):
        kind = self.rng.random()
        if kind < 0.5 and not self.variables:
            return [self.rng.choice(["a", "b", "nota", "in_", "Ω", "X", "atleastx", "x1", "e5"])]
        if kind < 0.6:
            return ["'" + self.rng.choice(["a b", "and", "it''s", "#", "p(a)", "p(a,b)", "'' ''", ")"]) + "'"]
        choices = [*CONSTANTS, *self.variables * 3]
        arguments = [[self.rng.choice(choices)] for _ in range(self.rng.randint(1, 3))]
        return [self.rng.choice(["p", "q"]), "(", *self.commas(arguments), ")"]

    def quantified(self, depth):
        if len(self.variables) < 3 and self.rng.random() < (0.3 if self.domains else 0.02):
            outer = self.variables
            binding = self.binding()
            tokens = [self.rng.choice(["forall", "∀", "exists", "∃"]), *binding, ":", *self.quantified(depth)]
            self.variables = outer
            return tokens
        return self.formula(depth)

    def binding(self):
        parts = []
        for _ in range(self.rng.choice([1, 1, 2])):
            names = [f"X{self.fresh + i}" for i in range(self.rng.choice([1, 1, 2]))]
            self.fresh += len(names)
            self.variables += tuple(names)
            parts.append(
                [*self.commas([[name] for name in names]), "in", self.rng.choice([*self.domains, "d0"])]
            )
            if self.rng.random() < 0.3:
                known = sorted(itertools.chain(self.variables, *self.domains.values()))
                left, right = (self.rng.choice([*known, "1", "' '"]) for _ in range(2))
                parts.append([left, self.rng.choice(["=", "!="]), right])
        return self.commas(parts)

    def formula(self, depth):
        if depth == 0:
            return self.rng.choice([["true"], ["false"]]) if self.rng.random() < 0.1 else self.name()
        kind = self.rng.random()
        if kind < 0.15:
            return [self.rng.choice(["~", "!", "not", "¬"]), *self.formula(depth - 1)]
        if kind < 0.35:
            return ["(", *self.quantified(depth - 1), ")"]
        if kind < 0.45:
            listed = [self.quantified(depth - 1) for _ in range(self.rng.randint(0, 3))]
            bound = self.rng.choice(["0", "1", "2", "٣"])
            return [
                self.rng.choice(["atleast", "atmost", "exactly"]),
                "(",
                *self.commas([[bound], *listed]),
                ")",
            ]
        spelling = self.rng.choice(SPELLED[self.rng.choice(list(SPELLED))])
        return [*self.formula(depth - 1), spelling, *self.formula(depth - 1)]

    def spaced(self, tokens):
        """Join tokens with any blanks; inside brackets also with line ends and comments."""
        text, depth = "", 0
        for token in tokens:
            blank = self.rng.choice(BLANKS)
            if depth and self.rng.random() < 0.1:
                blank = self.rng.choice(["\n", " \n ", "# (it's\n"])
            if not blank and re.match(r"\w", token) and re.search(r"\w$", text):
                blank = " "
            text += blank + token
            depth += (token in "({") - (token in ")}")
        return text

    def mutated(self, text):
        """Change a few characters or words."""
        for _ in range(self.rng.randint(1, 3)):
            pieces = re.findall(r"\w+|<->|<=>|->|=>|<-|!=|&&|\|\||\s+|.", text, re.DOTALL) or [""]
            i, j = (self.rng.randrange(len(pieces)) for _ in range(2))
            change = self.rng.randrange(5)
            if change == 0:
                del pieces[i]
            elif change == 1:
                pieces[i], pieces[j] = pieces[j], pieces[i]
            elif change == 2:
                pieces.insert(i, pieces[j])
            elif change == 3:
                pieces.insert(
                    i,
                    self.rng.choice(
                        [*"(){},:'#~=<>-&|^!\n\t\v\u00a0;0", " in ", " forall ", " and ", "->", "=>"]
                    ),
                )
            else:
                pieces[i] = self.rng.choice([*sorted(RESERVED), "x", "1", " ", "'", "''"])
            text = "".join(pieces)
        return text


@settings(max_examples=settings.default.max_examples * 4)
@given(st.randoms(use_true_random=False))
def test_text_of_the_format_is_read_as_the_grammar_says(rng):
    text = Writer(rng).text()
    assert outcome(told_by_the_parser, text) == outcome(told_by_the_grammar, text)


@settings(max_examples=settings.default.max_examples * 6)
@given(st.randoms(use_true_random=False))
def test_damaged_text_is_read_or_refused_as_the_grammar_says(rng):
    writer = Writer(rng)
    text = writer.mutated(writer.text())
    assert outcome(told_by_the_parser, text) == outcome(told_by_the_grammar, text)


@given(
    st.lists(
        st.sampled_from([*"ab(),&|~'\n :=<>1", "->", "<-", "p(", "in ", "forall ", "not ", "# ", "atleast("]),
        max_size=10,
    )
)
def test_any_row_of_tokens_is_read_or_refused_as_the_grammar_says(tokens):
    text = "".join(tokens)
    assert outcome(told_by_the_parser, text) == outcome(told_by_the_grammar, text)


@given(formulae(awkward_names) | st.randoms(use_true_random=False).map(lambda rng: Writer(rng).text()))
def test_one_formula_is_read_as_the_grammar_says(formula):
    text = str(formula)
    try:
        tree = GRAMMAR.parse(text, start="quantified")
        list(written_atoms(tree, frozenset(), {}))
        expected = meaning(tree, {}, {})
    except (LarkError, Refused):
        with pytest.raises(ParseError):
            parse(text)
    else:
        assert parse(text) is expected


def test_most_of_the_text_that_is_compared_is_right_and_some_of_it_is_not():
    texts = [Writer(random.Random(seed)).text() for seed in range(300)]
    refused = sum(outcome(told_by_the_parser, text) == "refused" for text in texts)
    assert 30 < refused < 180
    assert sum("forall" in text or "∀" in text for text in texts) > 50


@pytest.mark.parametrize(
    "text",
    [
        "f(true)", "f (true)", "f(a, in)", "atoms f(or)", "domain d = {and}", "(f\n(a))",
        "(atleast\n(1, a))", "(p &\nq\n)", "atoms f (a)", "atoms f(a,\n b), c", "atoms f(\ta)", "f(\ta\t)",
        "domain d = {a}\nforall X in\nd: p(X)", "domain d = {a}\nforall X in d:\np(X)",
        "domain d = {a}\n(forall X\nin d:\np(X))", "domain d = {a\n,b}\nforall X in d: p(X)",
        "domain\nd = {a}", "atoms a,\nb", "2:\na", "2\n: a", "a &\nb", "a\n& b", "a # b\n& c", "p('a\tb')",
        "'a\tb'", "p('\x00')", "atoms p('\x85')", "domain d = {'a\tb'}\nforall X in d: p(X)",
        "domain d = {'a'}\nforall X in d, X != '\u2028': p(X)", "domain d = {a}\nforall X in d: X",
        "domain d = {a}\nforall X in d: p(X)\nX", "a #", "#\na", " # b\n a # c", "a#b\n#c\nd",
        "domain d = {a}\nforall X in d: 'X'", "domain d = {a}\nforall X in d: X(X)",
        "domain d = {a}\nforall X, X in d: p(X)", "domain d = {a}\nforall X in d: exists X in d: p(X)",
        "domain d = {a}\n(forall X in d: p(X)) & (exists X in d: q(X))",
        "domain d = {a}\nforall X in d, X = b: p(X)",
        "domain d = {a}\nforall X in d: p(X) & forall Y in d: p(Y)", "domain d = {a}\n~forall X in d: p(X)",
        "domain d = {a}\na <-> exists X in d: p(X)", "domain d = {a}\nexactly(1, forall X in d: p(X), q)",
        "domain d = {a, b}\nforall X in d, Y, Z in d, X != Y, W in d, W = Z: p(X, Y, Z, W)",
        "domain d = {a, b}\ndomain e = {c}\nforall X in d: forall Y in e, X != a: p(X, Y)", "a andb",
        "nota & a", "a not b", "atleastx", "atleast (1, a)", "atleast(1)", "atleast(1,)", "atleast()",
        "atleast(-1, a)", "atleast(1 a)", "1:2: a", "1: 2: a", "'a''", "'a'''", "''", "''''", "'a''b'",
        "a'b'", "a, b", "(a, b)", "f()", "f(a b)", "f(1a)", "f(a)(b)", "f(g(a))", "()", ")", "(", "a)",
        "a b", "true(a)", "exists", "5.: a", "5..: a", "1e: a", "1_0: a", "+ 1: a", "\ufeffa",
        "a=>b", "a<=>b", "a&&b", "a||b", "a &&& b", "a ||| b", "a & & b", "a | | b", "a = > b", "a < => b",
        "a <= b", "a >= b", "a =< b", "a == b", "a <==> b", "a ==> b", "a => b <- c", "a => b -> c => d",
        "a && b & c || d | e", "a ||| ~b", "=> a", "a =>", "(a &&\nb)", "domain d => {a}\np",
        "domain d = {a}\nforall X in d, X => a: p(X)", "domain d = {a}\nforall X in d, X <= a: p(X)",
        "domain d = {a, b}\nforall X, Y in d, X != Y: p(X) && p(Y) => q(X) || q(Y) <=> r(X)",
    ],
)  # fmt: skip
def test_corners_of_the_format_are_read_as_the_grammar_says(text):
    assert outcome(told_by_the_parser, text) == outcome(told_by_the_grammar, text)
