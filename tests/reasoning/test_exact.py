"""Exact answers equal brute force in exact arithmetic, and every method gives the same ones."""

import math
import pickle
import random
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pysat.solvers import Solver

from lbm.errors import LimitExceeded, NoWorlds, TooManyWorlds, UnknownAtom
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import (
    FALSE,
    TRUE,
    atleast,
    atmost,
    atom,
    atoms_of,
    conjunction,
    disjunction,
    exactly,
    iff,
)
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory
from lbm.reasoning.exact import buckets as elimination
from lbm.reasoning.exact import compile, tables, whole
from lbm.reasoning.exact.apart import take_apart
from lbm.reasoning.exact.batches import Batches
from lbm.reasoning.exact.blocks import truth_table
from lbm.reasoning.exact.circuits import ByCircuit
from lbm.reasoning.exact.questions import METHODS, Exact
from lbm.reasoning.exact.rows import few
from tests.oracles import PRECISE, Oracle, truth
from tests.strategies import formulae, theories

modest = st.one_of(
    st.integers(-20, 20).filter(bool),
    st.decimals(-5, 5, allow_nan=False, places=3).filter(bool),
    st.sampled_from([Decimal("1e-9"), -(10**9), 10**9, Decimal("1000000000.000000001"), Decimal("-1e-9")]),
)
questions = st.one_of(theories(weights=modest), theories(max_statements=3, max_leaves=12))
temperatures = st.sampled_from([1.0, 0.1, 3.7, 1e9])


def question(name):
    """Return a question as a function of a theory."""

    def ask(theory, *args, method="auto", temperature=1.0, **more):
        return getattr(Exact(theory, whole.How(method), temperature), name)(*args, **more)

    return ask


count, models, best_worlds, draw = map(question, ("count", "models", "best_worlds", "draw"))
marginals, probability = question("marginals"), question("probability")
log_partition, log_probability = question("log_partition"), question("log_probability")


@st.composite
def asked(draw):
    """Return a theory with evidence about its atoms, which may be none."""
    theory = draw(questions)
    some = formulae(theory.atoms, max_leaves=6) if theory.atoms else st.sampled_from([TRUE, FALSE])
    return theory, draw(st.none() | some)


# --- what laws are made of --------------------------------------------------------------------------


def rows(found):
    return [tuple(row) for row in found.array.tolist()]


def close(found, expected):
    return found == pytest.approx(expected, abs=1e-9, rel=1e-9)


@pytest.fixture(params=[*METHODS, "small blocks"])
def method(request, monkeypatch):
    """Each method; enumeration once more with blocks of four worlds, as large theories have many blocks."""
    if request.param == "small blocks":
        monkeypatch.setattr(Batches, "BLOCK", 2)
        return "enumeration"
    return request.param


def for_every_method(test):
    """Run a law with each method; a method may say that it cannot, but not be wrong."""
    blocks = Batches.BLOCK
    for method in METHODS:
        try:
            test(method)
        except TooManyWorlds as error:
            assert (method, error.limit) == ("circuit", "FAR")  # noqa: PT017 - where it may refuse
    try:
        Batches.BLOCK = 2
        test("enumeration")
    finally:
        Batches.BLOCK = blocks


# --- laws --------------------------------------------------------------------------------------------


@given(asked())
def test_counts_and_models_are_those_of_looking_at_every_world(asked):
    theory, e = asked
    expected = Oracle(theory, e).worlds

    def law(method):
        assert count(theory, given=e, method=method) == len(expected)
        found = models(theory, given=e, method=method)
        assert found.complete
        assert found.atoms == theory.atoms
        assert rows(found) == expected

    for_every_method(law)


@given(asked(), st.data())
def test_projections_are_the_distinct_restrictions_in_order(asked, data):
    theory, e = asked
    assume(theory.atoms)
    kept = data.draw(st.lists(st.sampled_from(theory.atoms), unique=True))
    place = [theory.atoms.index(name) for name in kept]
    expected = sorted({tuple(world[i] for i in place) for world in Oracle(theory, e).worlds})

    def law(method):
        assert count(theory, given=e, project=kept, method=method) == len(expected)
        found = models(theory, given=e, project=kept, method=method)
        assert found.atoms == tuple(kept)
        assert rows(found) == expected

    for_every_method(law)


@given(asked(), st.integers(0, 20), st.data())
def test_a_limit_gives_the_first_worlds_and_says_whether_they_are_all(asked, limit, data):
    theory, e = asked
    kept = data.draw(st.none() | st.permutations(theory.atoms))
    whole = rows(models(theory, given=e, project=kept))

    def law(method):
        found = models(theory, given=e, project=kept, limit=limit, method=method)
        assert rows(found) == whole[:limit]
        assert found.complete == (len(whole) <= limit)

    for_every_method(law)


@given(asked(), temperatures)
def test_marginals_and_partition_equal_sums_in_exact_arithmetic(asked, temperature):
    theory, e = asked
    oracle = Oracle(theory, e, temperature)
    assume(oracle.numbers)
    expected = {name: oracle.chance(atom(name)) for name in theory.atoms}
    whole = oracle.log_partition()

    def law(method):
        found = marginals(theory, given=e, temperature=temperature, method=method)
        assert list(found) == list(theory.atoms)
        assert close(found, expected)
        assert close(log_partition(theory, given=e, temperature=temperature, method=method), whole)

    for_every_method(law)


@given(asked(), temperatures, st.data())
def test_probabilities_equal_sums_in_exact_arithmetic(asked, temperature, data):
    theory, e = asked
    query = data.draw(formulae(theory.atoms) if theory.atoms else st.just(TRUE))
    oracle = Oracle(theory, e, temperature)
    assume(oracle.numbers)
    expected = oracle.chance(query)
    entailed = all(truth(query, oracle.world(i)) for i in oracle.numbers)
    refuted = not any(truth(query, oracle.world(i)) for i in oracle.numbers)

    def law(method):
        found = probability(theory, query, given=e, temperature=temperature, method=method)
        assert close(found, expected)
        assert 0 <= found <= 1
        if entailed or refuted:
            assert found == entailed

    for_every_method(law)


def test_a_formula_whose_parts_multiply_still_has_few_cubes():
    """Elimination of it would give 2^20 cubes, and its diagram has one node."""
    query = parse("b -> b")
    for _ in range(20):
        query = iff(atom("b"), query)
    for method in METHODS:
        found = probability(Theory.parse("1: b"), query, method=method)
        assert close(found, 1.0)


def test_cubes_past_the_limit_are_refused_by_name():
    parity = atom("x0")
    for i in range(1, 20):
        parity = parity ^ atom(f"x{i}")
    with pytest.raises(TooManyWorlds, match="MAX_CUBES"):
        count(Theory([parity]), method="cubes")


@given(asked(), temperatures)
def test_log_probability_is_that_of_the_world_and_minus_infinity_outside(asked, temperature):
    theory, e = asked
    oracle = Oracle(theory, e, temperature)
    assume(oracle.numbers)
    log_sum = float(PRECISE.ln(PRECISE.create_decimal(sum(oracle.weights))))
    best = max(oracle.scores)
    score = dict(zip(oracle.numbers, oracle.scores, strict=True))
    for number in {0, oracle.numbers[0], oracle.numbers[-1], (1 << len(theory.atoms)) - 1}:
        found = log_probability(theory, oracle.world(number), given=e, temperature=temperature)
        if number in score:
            assert close(found, float((score[number] - best) / Fraction(temperature)) - log_sum)
        else:
            assert found == -math.inf


@pytest.mark.parametrize("size", [24, 65, 129])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_first_best_worlds_are_found_where_many_are_as_good(size, seed):
    """They are the first models of all clauses, since one world keeps every clause, soft ones too."""
    rng = random.Random(seed)
    world = [rng.random() < 0.5 for _ in range(size)]
    clauses = []
    for begin in range(size - 3):
        variables = rng.sample(range(begin, begin + 4), 3)
        literals = [(v, rng.random() < 0.5) for v in variables]
        if any(world[v] == wanted for v, wanted in literals):
            clauses.append(literals)
    names = [f"x{i}" for i in range(size)]
    texts = [" | ".join(("" if wanted else "~") + names[v] for v, wanted in row) for row in clauses]
    weighted = [text if rng.random() < 0.5 else (2, text) for text in texts]
    first = []

    def follow(values):  # the models that begin like this, in lexicographic order, as a solver has them
        if len(first) == 3 or not solver.solve([v if true else -v for v, true in enumerate(values, 1)]):
            return
        if len(values) == size:
            first.append(values)
            return
        follow([*values, False])
        follow([*values, True])

    with Solver("cadical153") as solver:
        for row in clauses:
            solver.add_clause([v + 1 if wanted else -v - 1 for v, wanted in row])
        follow([])
    theory = Theory(weighted, atoms=names)
    assert count(Theory(texts, atoms=names)) > 1 << 17
    for limit in (1, 3):
        score, found = best_worlds(theory, limit=limit)
        assert score == sum(weight for weight in theory.weights if weight is not None)
        assert found.array.tolist() == first[:limit]
        assert not found.complete


@given(asked())
def test_best_worlds_are_all_worlds_of_the_greatest_score_exactly(asked):
    theory, e = asked
    oracle = Oracle(theory, e)
    assume(oracle.numbers)
    best = max(oracle.scores)
    pairs = zip(oracle.worlds, oracle.scores, strict=True)
    expected = [world for world, score in pairs if score == best]

    def law(method):
        score, found = best_worlds(theory, given=e, method=method)
        assert Fraction(score) == best
        assert found.complete
        assert rows(found) == expected
        assert rows(best_worlds(theory, given=e, limit=3, method=method)[1]) == expected[:3]

    for_every_method(law)


@given(asked(), temperatures)
def test_where_there_is_no_world_counts_are_0_and_probabilities_say_which_formulae_are_to_blame(
    asked, temperature
):
    theory, e = asked
    e = FALSE if e is None else e
    assume(not Oracle(theory, e).numbers)
    blame = e if Oracle(theory).numbers else None
    assert count(theory, given=e) == 0
    assert models(theory, given=e).complete
    assert models(theory, given=e).array.shape == (0, len(theory.atoms))
    ask = {"given": e, "temperature": temperature}
    world = dict.fromkeys(theory.atoms, False)

    def law(method):
        for question in (
            lambda: marginals(theory, method=method, **ask),
            lambda: probability(theory, TRUE, method=method, **ask),
            lambda: log_partition(theory, method=method, **ask),
            lambda: log_probability(theory, world, method=method, **ask),
            lambda: draw(theory, 3, np.random.default_rng(0), method=method, **ask),
            lambda: best_worlds(theory, given=e, method=method),
        ):
            with pytest.raises(NoWorlds) as caught:
                question()
            assert caught.value.evidence is blame

    for_every_method(law)


@given(asked(), st.integers(0, 20))
def test_every_draw_is_a_model_that_keeps_the_evidence(asked, n):
    theory, e = asked
    allowed = set(Oracle(theory, e).worlds)
    assume(allowed)

    def law(method):
        found = draw(theory, n, np.random.default_rng(n), given=e, method=method)
        again = draw(theory, n, np.random.default_rng(n), given=e, method=method)
        assert found.shape == (n, len(theory.atoms))
        assert {tuple(row) for row in found.tolist()} <= allowed
        assert (found == again).all()

    for_every_method(law)


@pytest.mark.parametrize("number", range(2, 10))
def test_cardinalities_allow_as_many_worlds_as_there_are_subsets_of_those_sizes(number, method):
    names = [f"x{i}" for i in range(number)]
    some = [atom(name) for name in names]
    sizes = [math.comb(number, k) for k in range(number + 1)]
    for bound in range(number + 2):
        assert count(Theory([atleast(bound, *some)], atoms=names), method=method) == sum(sizes[bound:])
        assert count(Theory([atmost(bound, *some)], atoms=names), method=method) == sum(sizes[: bound + 1])
        assert count(Theory([exactly(bound, *some)], atoms=names), method=method) == sum(
            sizes[bound : bound + 1]
        )


@pytest.mark.parametrize("seed", range(10))
def test_restrictions_that_several_blocks_share_are_counted_once(seed, method):
    rng = random.Random(seed)
    clauses, names = random_clauses(rng, 9, 12)
    theory, kept = Theory(clauses, atoms=names), rng.sample(names, rng.randint(1, 5))
    place = [names.index(name) for name in kept]
    expected = sorted({tuple(world[i] for i in place) for world in Oracle(theory).worlds})
    assert count(theory, project=kept, method=method) == len(expected)
    assert rows(models(theory, project=kept, method=method)) == expected


# --- draws -------------------------------------------------------------------------------------------

DRAWN = [
    "a | b | c",
    "1.5: a & b\n-0.7: b -> c\nexactly(1, c, d, e)\natoms f",
    "a <-> b\n2: a ^ c\n~(c & d)\n0.3: d",
]


@pytest.mark.parametrize("text", DRAWN)
@pytest.mark.parametrize("seed", [0, 1])
def test_draws_have_the_frequencies_of_the_distribution(text, seed, method):
    """Pearson's statistic of 20,000 draws is at most five standard deviations above its mean."""
    theory = Theory.parse(text)
    oracle = Oracle(theory, temperature=0.8)
    chances = [float(w / sum(oracle.weights)) for w in oracle.weights]
    n = 20_000
    found = draw(theory, n, np.random.default_rng(seed), temperature=0.8, method=method)
    met = dict.fromkeys(oracle.worlds, 0)
    for row in found.tolist():
        met[tuple(row)] += 1
    statistic = sum((seen - n * p) ** 2 / (n * p) for seen, p in zip(met.values(), chances, strict=True))
    freedom = len(chances) - 1
    assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_draws_in_sequence_do_not_depend_on_one_another(method):
    """The first half and the second half of the draws, and neighbours, agree within four standard errors."""
    theory = Theory.parse("a | b | c\n1: a -> d\n~(d & e)\n0.5: b <-> e")
    n = 20_000
    found = draw(theory, n, np.random.default_rng(3), method=method)
    first, second = found[: n // 2], found[n // 2 :]
    assert (abs(first.mean(axis=0) - second.mean(axis=0)) < 4 * math.sqrt(0.25 * 4 / n)).all()
    for i in range(found.shape[1]):
        column = found[:, i] - found[:, i].mean()
        assert abs((column[1:] * column[:-1]).mean()) < 4 * 0.25 / math.sqrt(n)


def test_uniform_draws_of_the_papers_formula_see_its_models_equally_often():
    """φ(M=20, N=10): 1,023 models; Pearson's statistic of 100,000 draws is that of chi-square."""
    theory, n = phi(20, 10), 100_000
    found = draw(theory, n, np.random.default_rng(7))
    assert found[:, :20].all()
    numbers = found[:, 20:] @ (1 << np.arange(10))
    met = np.bincount(numbers, minlength=1024)
    assert met[0] == 0
    statistic = ((met[1:] - n / 1023) ** 2 / (n / 1023)).sum()
    assert abs(statistic - 1022) < 5 * math.sqrt(2 * 1022)


# --- sizes past brute force --------------------------------------------------------------------------


def phi(m, n):
    """The paper's formula: a conjunction of m atoms and a disjunction of n others."""
    both = [atom(f"x{i}") for i in range(m)], [atom(f"y{i}") for i in range(n)]
    return Theory([conjunction(both[0]) & disjunction(both[1])])


def random_clauses(rng, atoms, clauses, width=3):
    names = [f"x{i}" for i in range(atoms)]
    literal = lambda name: atom(name) if rng.random() < 0.5 else ~atom(name)  # noqa: E731
    return [disjunction(literal(name) for name in rng.sample(names, width)) for _ in range(clauses)], names


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("m", "n"), [(20, 10), (20, 20), (30, 16)])
def test_the_papers_formula_has_all_worlds_but_one_of_its_disjunction(m, n, method):
    theory = phi(m, n)
    assert count(theory, method=method) == (1 << n) - 1
    found = models(theory, method=method)
    assert found.array.shape == ((1 << n) - 1, m + n)
    assert found.array[:, :m].all()
    assert (found.array[:, m:] @ (1 << np.arange(n)[::-1]) == np.arange(1, 1 << n)).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ratio", [1.0, 3.0, 4.5])
def test_enumeration_and_elimination_agree_on_22_atoms(seed, ratio):
    """Two methods that share nothing past unit propagation; 22 atoms make four blocks."""
    rng = random.Random(seed)
    clauses, names = random_clauses(rng, 22, round(22 * ratio))
    soft = [(Decimal(rng.randint(-300, 300)) / 100, f) for f in random_clauses(rng, 22, 6, 2)[0]]
    theory = Theory([*clauses, *((w, f) for w, f in soft if w)], atoms=names)
    number = count(theory, method="enumeration")
    assert number == count(theory, method="elimination")
    kept = names[:9]
    assert count(theory, project=kept, method="enumeration") == count(
        theory, project=kept, method="elimination"
    )
    found = models(theory, limit=5000, method="enumeration")
    assert rows(found) == rows(models(theory, limit=5000, method="elimination"))
    if not number:
        return
    both = [marginals(theory, method=method) for method in ("enumeration", "elimination")]
    assert close(both[0], both[1])
    both = [log_partition(theory, method=method) for method in ("enumeration", "elimination")]
    assert close(both[0], both[1])
    if number < 100_000:
        best = [best_worlds(theory, method=method) for method in ("enumeration", "elimination")]
        assert best[0][0] == best[1][0]
        assert rows(best[0][1]) == rows(best[1][1])


def test_counts_by_elimination_pass_64_bits():
    """Rows of n atoms no two neighbours of which are true: Fibonacci's numbers."""
    names = [f"x{i}" for i in range(300)]
    theory = Theory([~(atom(a) & atom(b)) for a, b in pairwise(names)])
    a, b = 1, 2
    for _ in range(299):
        a, b = b, a + b
    assert count(theory) == b
    assert count(theory, given=parse("x0")) + count(theory, given=parse("~x0")) == b
    golden = (math.sqrt(5) - 1) / 2
    assert close(marginals(theory)["x150"], golden**2 / (1 + golden**2))
    assert close(log_partition(theory), math.log(b))
    first = models(theory, limit=3)
    assert not first.complete
    assert first.array.sum() == 2
    assert first.array[1, -1]
    assert first.array[2, -2]
    found = draw(theory, 100, np.random.default_rng(0))
    assert not (found[:, 1:] & found[:, :-1]).any()


@pytest.mark.parametrize("width", [elimination.WIDTH, 4])
@pytest.mark.parametrize("seed", range(12))
def test_the_first_models_of_many_are_found_without_listing_the_others(seed, width, monkeypatch):
    """27 atoms in a chain: too many models to list. Tables of 4 atoms do not allow the atoms' own order."""
    monkeypatch.setattr(elimination, "WIDTH", width)
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(27)]
    order = rng.sample(names, 27)
    parts = [atom(a) | ~atom(b) | atom(c) for a, b, c in zip(order, order[1:], order[2:], strict=False)]
    theory = Theory(parts, atoms=names)
    kept = None if width == 4 or rng.random() < 0.5 else rng.sample(names, 20)
    assert not few(count(theory, project=kept), 50)
    found = models(theory, project=kept, limit=50, method="elimination")
    assert rows(found) == rows(models(theory, project=kept, limit=50, method="enumeration"))


@pytest.fixture
def narrow(monkeypatch):
    """Limits so small that most theories are too large for every other method, and become circuits."""
    monkeypatch.setattr(whole, "QUICK", 1)
    monkeypatch.setattr(whole, "LIMIT", 2)
    monkeypatch.setattr(elimination, "WIDTH", 1)
    monkeypatch.setattr(tables, "MAX_TABLE", 4)
    monkeypatch.setattr(whole, "MAX_CUBES", 2)


@pytest.mark.parametrize("seed", range(40))
def test_answers_by_circuits_are_those_of_looking_at_every_world(seed, narrow):
    rng = random.Random(seed)
    clauses, names = random_clauses(rng, 8, rng.randint(5, 12))
    rng.shuffle(names)
    soft = [(Decimal(rng.choice([-250, 70, 100, 10**6])) / 100, f) for f in random_clauses(rng, 8, 4, 2)[0]]
    theory = Theory([*clauses, *soft], atoms=names)
    assert any(isinstance(whole.solver(c, whole.How()), ByCircuit) for c in take_apart(theory).components)
    oracle = Oracle(theory)
    assert count(theory) == len(oracle.numbers)
    assert rows(models(theory)) == oracle.worlds
    assert rows(models(theory, limit=7)) == oracle.worlds[:7]
    assert close(marginals(theory), {name: oracle.chance(atom(name)) for name in names})
    assert close(log_partition(theory), oracle.log_partition())
    score, found = best_worlds(theory)
    assert Fraction(score) == max(oracle.scores)
    pairs = zip(oracle.worlds, oracle.scores, strict=True)
    assert rows(found) == [world for world, s in pairs if s == max(oracle.scores)]
    drawn = draw(theory, 4000, np.random.default_rng(seed))
    assert {tuple(row) for row in drawn.tolist()} <= set(oracle.worlds)
    expected = np.array([oracle.chance(atom(name)) for name in names])
    error = np.sqrt(expected * (1 - expected) / 4000)
    assert (abs(drawn.mean(axis=0) - expected) <= 5 * error + 1e-9).all()


def test_far_weights_are_summed_exactly_or_refused(monkeypatch):
    """1e12 beside 3: floats that hold the one lose digits of the other."""
    theory = Theory([(10**12, "a | b | c"), (3, "a -> b"), (2, "b -> c"), (1, "c -> d"), (1, "~d | a")])
    for method in ("auto", "enumeration", "elimination"):
        found = probability(theory, parse("a"), method=method)
        assert close(found, Oracle(theory).chance(parse("a")))
    monkeypatch.setattr(whole, "LIMIT", 2)
    for method in ("auto", "circuit"):
        with pytest.raises(TooManyWorlds, match="limit FAR"):
            probability(theory, parse("a"), method=method)


def test_circuits_find_no_world_either(narrow):
    rng = random.Random(0)
    theory = Theory([*random_clauses(rng, 7, 80)[0], (1, "x0 & x1")])
    assert not Oracle(theory).numbers
    assert count(theory) == 0
    for question in (marginals, log_partition, best_worlds, lambda t: draw(t, 1, np.random.default_rng(0))):
        with pytest.raises(NoWorlds):
            question(theory)


def test_random_clauses_over_40_atoms_are_counted_by_a_circuit_as_a_solver_counts_them(monkeypatch):
    """MiniSat lists the models of a 3-CNF of 40 atoms, ratio 3.6, and blocks each."""
    monkeypatch.setattr(elimination, "WIDTH", 8)
    monkeypatch.setattr(tables, "MAX_TABLE", 1 << 8)
    clauses, names = random_clauses(random.Random(4), 40, 144)
    theory = Theory(clauses, atoms=names)
    with Solver("minisat22") as solver:
        for clause in clauses:
            stack, literals = [clause], []
            while stack:
                node = stack.pop()
                if node.kind == "or":
                    stack.extend(node.args)
                else:
                    inner = node.args[0] if node.kind == "not" else node
                    literals.append((1 if inner is node else -1) * (names.index(inner.label) + 1))
            solver.add_clause(literals)
        expected = set()
        while solver.solve():
            model = [n for n in solver.get_model() if abs(n) <= 40]
            expected.add(tuple(n > 0 for n in model))
            solver.add_clause([-n for n in model])
    assert count(theory) == len(expected)
    assert rows(models(theory)) == sorted(expected)


def test_wide_formulae_are_eliminated_through_their_parts():
    """A clause of 40 atoms, a cardinality and a parity, tied in a chain."""
    names = [f"x{i}" for i in range(40)]
    some = [atom(name) for name in names]
    parity = some[0]
    for other in some[1:]:
        parity = parity ^ other
    assert count(Theory([exactly(3, *some)]), method="elimination") == math.comb(40, 3)
    assert count(Theory([atmost(2, *some)]), method="elimination") == 1 + 40 + math.comb(40, 2)
    assert count(Theory([disjunction(some), parity]), method="elimination") == 1 << 39
    theory = Theory([atleast(39, *some), (2, parity)])
    assert len(models(theory, method="elimination")) == 41
    # 40 atoms true: even; 39: odd, so 40 worlds of weight e² and one of weight 1.
    assert close(probability(theory, parity), 40 * math.exp(2) / (40 * math.exp(2) + 1))
    assert best_worlds(theory)[0] == 2
    assert len(best_worlds(theory)[1]) == 40


def test_a_clause_of_a_thousand_atoms_is_answered_in_closed_form():
    names = [f"x{i}" for i in range(1000)]
    theory = Theory([disjunction(map(atom, names))])
    assert count(theory) == (1 << 1000) - 1
    assert close(marginals(theory)["x7"], 0.5)
    assert close(probability(theory, atom("x0") & atom("x1")), 0.25)
    assert draw(theory, 10, np.random.default_rng(0)).any(axis=1).all()
    assert rows(models(theory, limit=2)) == [(False,) * 999 + (True,), (False,) * 998 + (True, False)]


def test_a_long_chain_of_units_settles_everything():
    names = [f"x{i}" for i in range(20_000)]
    rules = [atom(a) >> atom(b) for a, b in pairwise(names)]
    theory = Theory([*rules, atom("x0")])
    assert count(theory) == 1
    assert models(theory).array.all()


def test_a_formula_forty_thousand_connectives_deep_is_no_problem():
    deep = atom("a")
    for i in range(20_000):
        deep = ~(deep ^ atom("ab"[i % 2]))
    assert count(Theory([(1, deep), deep | ~deep])) == 4
    assert count(Theory([deep])) in range(1, 5)


def test_independent_parts_are_counted_and_asked_apart():
    """60 atoms in 20 triangles: no table is wider than three atoms, and a disjunction joins them all."""
    parts = [f"exactly(1, a{i}, b{i}, c{i})" for i in range(20)]
    theory = Theory([*parts, *((1, f"a{i}") for i in range(20))])
    assert count(theory) == 3**20
    chance = math.e / (math.e + 2)
    assert close(probability(theory, conjunction(atom(f"a{i}") for i in range(20))), chance**20)
    assert close(probability(theory, disjunction(atom(f"a{i}") for i in range(20))), 1 - (1 - chance) ** 20)
    score, found = best_worlds(theory)
    assert score == 20
    assert len(found) == 1


def test_a_disjunction_too_large_to_ask_is_asked_through_its_negation(monkeypatch):
    """Limits that allow one triangle: the disjunction joins them all, its negation leaves them apart."""
    monkeypatch.setattr(tables, "MAX_TABLE", 8)
    monkeypatch.setattr(compile, "MAX_CONNECTED", 3)
    for name, value in {"QUICK": 3, "LIMIT": 3, "MAX_CUBES": 3}.items():
        monkeypatch.setattr(whole, name, value)
    theory = Theory([f"exactly(1, a{i}, b{i}, c{i})" for i in range(8)])
    some = disjunction(atom(f"a{i}") for i in range(8))
    assert close(probability(theory, some), 1 - (2 / 3) ** 8)
    with pytest.raises(TooManyWorlds):
        probability(theory, some ^ atom("b0"))
    # Almost sure, and its negation is too large: the answer is the direct one.
    sure = Theory([f"exactly(1, a{i}, b{i}, c{i})" for i in range(8)] + [(60, f"a{i}") for i in range(8)])
    assert close(probability(sure, conjunction(atom(f"a{i}") for i in range(8))), 1.0)


def test_small_probabilities_keep_their_digits():
    theory = Theory([(1, f"x{i}") for i in range(10)])
    none = conjunction(~atom(f"x{i}") for i in range(10))
    assert probability(theory, none, temperature=0.02) == pytest.approx((1 + math.exp(50)) ** -10, rel=1e-9)


@pytest.mark.parametrize("temperature", [1.0, 1e-3, 1e3])
def test_weights_of_very_different_sizes_neither_hide_nor_drown_one_another(temperature, method):
    theory = Theory.parse(f"{10**9}: a\n0.000000001: b\n-{10**9}: c & a\na | b | c\n0.7: b & ~d")
    oracle = Oracle(theory, temperature=temperature)
    assert best_worlds(theory, method=method)[0] == Decimal("1000000000.700000001")
    if method != "circuit":  # circuits sum in floats, and refuse such weights
        found = marginals(theory, temperature=temperature, method=method)
        assert close(found, {name: oracle.chance(atom(name)) for name in theory.atoms})


# --- bad input ---------------------------------------------------------------------------------------


def test_a_theory_without_atoms_has_one_world():
    empty = Theory()
    assert count(empty) == 1
    assert list(models(empty)) == [{}]
    assert marginals(empty) == {}
    assert log_partition(Theory([(3, TRUE)])) == 3
    assert draw(empty, 2, np.random.default_rng(0)).shape == (2, 0)
    assert count(Theory([FALSE])) == 0


def test_atoms_of_no_formula_are_free():
    theory = Theory(["a"], atoms=["a", *(f"idle{i}" for i in range(100))])
    assert count(theory) == 1 << 100
    assert count(theory, project=["a"]) == 1
    assert count(theory, project=["idle3", "a"]) == 2
    assert marginals(theory)["idle7"] == 0.5
    assert len(models(theory, limit=10)) == 10


def test_unknown_atoms_are_named_with_the_nearest():
    theory = Theory(["bird -> flies"])
    for question in (
        lambda: count(theory, given=parse("brid")),
        lambda: probability(theory, parse("brid")),
        lambda: models(theory, project=["brid"]),
        lambda: log_probability(theory, {"bird": True, "flies": True, "brid": True}),
    ):
        with pytest.raises(UnknownAtom, match="did you mean 'bird'"):
            question()
    with pytest.raises(UnknownAtom, match="no atom 'flies' in this world"):
        log_probability(theory, {"bird": True})


def test_options_that_make_no_sense_are_refused():
    theory = Theory(["a"])
    rng = np.random.default_rng(0)
    for question, said in (
        (lambda: models(theory, limit=-1), "limit"),
        (lambda: best_worlds(theory, limit=0), "limit"),
        (lambda: draw(theory, -1, rng), "n is a number of draws"),
        (lambda: marginals(theory, temperature=0), "temperature"),
        (lambda: log_partition(theory, temperature=math.nan), "temperature"),
        (lambda: log_partition(theory, temperature=math.inf), "temperature"),
        (lambda: count(theory, method="guess"), "method"),
    ):
        with pytest.raises(ValueError, match=said):
            question()
    with pytest.raises(TypeError, match="evidence is a formula"):
        count(theory, given="a")
    with pytest.raises(TypeError, match="list of names"):
        count(theory, project="a")


def test_too_many_worlds_are_refused_with_the_limit(monkeypatch):
    clauses, names = random_clauses(random.Random(0), 120, 360)
    theory = Theory(clauses, atoms=names)
    monkeypatch.setattr(compile, "MAX_EDGES", 1 << 12)
    with pytest.raises(TooManyWorlds, match="120 free atoms") as caught:
        count(theory)
    assert (caught.value.limit, caught.value.value) == ("MAX_EDGES", 1 << 12)
    assert "enumeration stops at 30 (limit LIMIT)" in str(caught.value)
    assert isinstance(caught.value, LimitExceeded)
    with pytest.raises(TooManyWorlds, match="MAX_CUBES"):
        count(theory, method="cubes")
    with pytest.raises(TooManyWorlds, match="enumeration stops at 30"):
        count(theory, method="enumeration")
    with pytest.raises(TooManyWorlds, match="MAX_LISTED"):
        models(Theory([], atoms=[f"x{i}" for i in range(30)]))


def test_a_part_without_worlds_settles_the_count_beside_one_that_is_too_large():
    clauses, names = random_clauses(random.Random(0), 120, 360)
    contradiction = ["p | q", "p | ~q", "~p | q", "~p | ~q"]
    assert count(Theory([*clauses, *contradiction], atoms=names)) == 0
    with pytest.raises(NoWorlds, match="hard formulae allow no world"):
        marginals(Theory([*clauses, *contradiction], atoms=names))


def test_errors_survive_pickling():
    for error in (NoWorlds(), NoWorlds(parse("a & b")), TooManyWorlds("many", LIMIT=30)):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
    assert (NoWorlds.exit_status, TooManyWorlds.exit_status) == (1, 3)
    assert len(str(NoWorlds(conjunction(atom(f"x{i}") for i in range(1000))))) < 300


def test_models_are_a_sequence_of_named_worlds_that_never_change():
    found = models(Theory(["a | b"]))
    assert len(found) == 3
    assert found[0] == {"a": False, "b": True}
    assert found[-1] == {"a": True, "b": True}
    assert found[:2] == list(found)[:2]
    assert repr(found) == "<Models: 3 worlds over 2 atoms, all>"
    assert repr(models(Theory(["a | b"]), limit=1)) == "<Models: 1 worlds over 2 atoms, not all>"
    with pytest.raises(ValueError, match="read-only"):
        found.array[0, 0] = True


def test_packed_clauses_are_counted_as_the_same_clauses_in_formulae_are():
    rows_ = [[1, -2], [2, 3], [-1, -3]]
    starts = np.cumsum([0, *map(len, rows_)], dtype=np.int64)
    packed = Theory.from_clauses(
        Clauses(("a", "b", "c"), np.array([n for row in rows_ for n in row], np.int32), starts)
    )
    expected = [w for w in product([False, True], repeat=3) if _keeps(w, rows_)]
    assert rows(models(packed)) == expected


def _keeps(world, clauses):
    return all(any(world[abs(n) - 1] == (n > 0) for n in clause) for clause in clauses)


# --- formulae as tables --------------------------------------------------------------------------


@given(formulae(max_leaves=20), st.integers(0, 5), st.randoms(use_true_random=False))
def test_a_table_of_bits_says_where_a_formula_is_true(formula, more, shuffler):
    names = [*atoms_of(formula), *(f"idle{i}" for i in range(more))]
    shuffler.shuffle(names)
    found = truth_table(formula, names)
    assert found.shape == (2,) * len(names)
    for values in product([0, 1], repeat=len(names)):
        assert found[values] == truth(formula, dict(zip(names, values, strict=True)))


def test_a_deep_formula_over_few_atoms_is_worked_out_in_little_memory():
    rng = random.Random(0)
    found = atom("a0")
    for _ in range(20_000):
        found = iff(found, atom(f"a{rng.randrange(20)}"))
    tracemalloc.start()
    try:
        assert count(Theory([found]), method="elimination") == 1 << 19
        assert tracemalloc.get_traced_memory()[1] < 200 << 20  # one array for each part would be 20 GB
    finally:
        tracemalloc.stop()
