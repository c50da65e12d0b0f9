"""Rows of evidence: each row is answered as if it had been asked alone, and nothing is compiled twice."""

import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import lbm
from lbm.errors import (
    EvidenceError,
    MissingExtra,
    NoAnswer,
    NoWorlds,
    TooManyWorlds,
    UnknownAtom,
    WrongDistribution,
)
from lbm.knowledge.formula import atom, conjunction, exactly
from lbm.knowledge.theory import Theory
from lbm.reasoning.exact import by_row, form
from lbm.reasoning.exact.evidence import groups_said, is_table
from lbm.reasoning.exact.tables import Tables
from lbm.reasoning.reasoner import Reasoner
from tests.additions import addition, chances, seen, sums_to
from tests.oracles import Oracle, truth
from tests.strategies import NAMES, formulae, theories

NAN = math.nan
modest = st.one_of(
    st.integers(-9, 9).filter(bool), st.decimals(-5, 5, allow_nan=False, places=2).filter(bool)
)
temperatures = st.sampled_from([1.0, 0.3, 4.5])
cells = st.one_of(
    st.sampled_from([NAN, NAN, 0.0, 1.0]), st.floats(0.015625, 0.984375, width=16, allow_nan=False)
)


@st.composite
def said_in_rows(draw):
    """Return a theory, its groups and a table of rows about some of its atoms."""
    groups = draw(st.sampled_from([[], [NAMES[:3]], [NAMES[2:6]], [NAMES[:2], NAMES[2:5]]]))
    theory = draw(theories(weights=modest, max_statements=4))
    for said in theory:  # no group but ours
        assume(said.weight is not None or said.formula.kind not in ("exactly", "and", "or"))
    theory = Theory([*theory, *(exactly(1, *map(atom, names)) for names in groups)])
    names = draw(st.lists(st.sampled_from(theory.atoms), unique=True)) if theory.atoms else []
    number = draw(st.integers(1, 4)) if names else 0
    rows = [[draw(cells) for _ in names] for _ in range(number)]
    return theory, groups, dict(zip(names, np.array(rows).reshape(number, len(names)).T, strict=True))


def likelihood(world, row, groups):
    """Return what a world is multiplied by, exactly: each atom by itself, of a group the true one."""
    found = Fraction(1)
    grouped = {name for names in groups for name in names}
    for names in groups:
        told = {name: Fraction(row[name]) for name in names if name in row and not math.isnan(row[name])}
        (true,) = [name for name in names if world[name]]
        if any(p == 1 for name, p in told.items() if name != true):
            return Fraction(0)
        found *= told[true] if true in told else math.prod(1 - p for p in told.values())
    for name, p in row.items():
        if name not in grouped and not math.isnan(p):
            found *= Fraction(p) if world[name] else 1 - Fraction(p)
    return found


def by_worlds(theory, groups, table, temperature):
    """Yield the worlds that each row allows, with their probabilities."""
    oracle = Oracle(theory)
    worlds = [oracle.world(number) for number in oracle.numbers]
    top = max(oracle.scores, default=0)
    weights = [math.exp((score - top) / Fraction(temperature)) for score in oracle.scores]
    for i in range(len(next(iter(table.values())))):
        row = {name: float(column[i]) for name, column in table.items()}
        masses = [
            weight * float(likelihood(world, row, groups))
            for world, weight in zip(worlds, weights, strict=True)
        ]
        total = math.fsum(masses)
        yield [(world, mass / total) for world, mass in zip(worlds, masses, strict=True)] if total else None


@given(said_in_rows(), formulae(max_leaves=5), temperatures)
def test_probabilities_given_rows_are_those_of_looking_at_every_world(said, query, temperature):
    theory, groups, table = said
    assume(table and atoms(query) <= set(theory.atoms))
    found = outcome(lambda: lbm.ask(theory, query, given=table, temperature=temperature))
    if found is None:
        assert not Oracle(theory).numbers
        return
    for i, worlds in enumerate(by_worlds(theory, groups, table, temperature)):
        assert found.possible[i] == (worlds is not None)
        if worlds is None:
            assert math.isnan(found.probability[i])
        else:
            true = [mass for world, mass in worlds if truth(query, world)]
            assert found.probability[i] == pytest.approx(math.fsum(true), abs=1e-9)
            if all(truth(query, world) for world, mass in worlds if mass):
                assert found.probability[i] == 1
            if not any(truth(query, world) for world, mass in worlds if mass):
                assert found.probability[i] == 0


@given(said_in_rows(), temperatures)
def test_marginals_given_rows_are_those_of_looking_at_every_world(said, temperature):
    theory, groups, table = said
    assume(table)
    found = outcome(lambda: lbm.marginals(theory, given=table, temperature=temperature))
    if found is None:
        assert not Oracle(theory).numbers
        return
    assert found.atoms == theory.atoms
    for i, worlds in enumerate(by_worlds(theory, groups, table, temperature)):
        assert found.possible[i] == (worlds is not None)
        for j, name in enumerate(theory.atoms):
            if worlds is None:
                assert math.isnan(found.array[i, j])
            else:
                true = math.fsum(mass for world, mass in worlds if world[name])
                assert found.array[i, j] == pytest.approx(true, abs=1e-9)
                assert found[name][i] == found.array[i, j]


@given(said_in_rows(), formulae(max_leaves=5), temperatures)
def test_a_batch_says_what_its_rows_say_one_by_one(said, query, temperature):
    theory, _, table = said
    assume(table and atoms(query) <= set(theory.atoms))
    reasoner = Reasoner(theory)
    whole = outcome(lambda: reasoner.ask(query, given=table, temperature=temperature))
    assume(whole is not None)
    every = reasoner.marginals(given=table, temperature=temperature)
    for i in range(len(whole)):
        row = {name: column[i : i + 1] for name, column in table.items()}
        alone = reasoner.ask(query, given=row, temperature=temperature)
        assert alone.possible[0] == whole.possible[i]
        np.testing.assert_allclose(alone.probability[0], whole.probability[i], rtol=1e-12, atol=1e-15)
        each = reasoner.marginals(given=row, temperature=temperature)
        np.testing.assert_allclose(each.array[0], every.array[i], rtol=1e-12, atol=1e-15)


@given(said_in_rows(), formulae(max_leaves=5), temperatures)
def test_a_row_of_hard_evidence_is_evidence_by_name(said, query, temperature):
    theory, _, table = said
    assume(table and atoms(query) <= set(theory.atoms))
    table = {name: np.where((c > 0) & (c < 1), NAN, c) for name, c in table.items()}
    reasoner = Reasoner(theory)
    found = outcome(lambda: reasoner.ask(query, given=table, temperature=temperature))
    assume(found is not None)
    every = reasoner.marginals(given=table, temperature=temperature)
    for i in range(len(found)):
        row = {name: bool(c[i]) for name, c in table.items() if not math.isnan(c[i])}
        one = outcome(lambda: reasoner.ask(query, given=row, temperature=temperature))  # noqa: B023
        assert found.possible[i] == every.possible[i] == (one is not None)
        if one is not None:
            assert found.probability[i] == pytest.approx(one.probability, abs=1e-12)
            if one.status in ("entailed", "refuted"):
                assert found.probability[i] == one.probability
            chances = reasoner.marginals(given=row, temperature=temperature)
            assert every.array[i] == pytest.approx(list(chances.values()), abs=1e-12)


def outcome(ask):
    """Return what a question finds, None where there is no world to speak of."""
    try:
        return ask()
    except NoWorlds:
        return None


def atoms(formula):
    """Return the names in a formula."""
    found, waiting = set(), [formula]
    while waiting:
        node = waiting.pop()
        waiting += node.args
        if node.kind == "atom":
            found.add(node.label)
    return found


# --- what is compiled ------------------------------------------------------------------------------


@pytest.fixture
def compilations(monkeypatch):
    """Return a list to which every component that is compiled is added."""
    made, ready = [], form.ready

    def counted(component, budget):
        made.append(component)
        return ready(component, budget)

    monkeypatch.setattr(form, "ready", counted)
    return made


def test_other_rows_and_other_temperatures_compile_nothing(compilations):
    reasoner = Reasoner(Theory.parse("1: a -> b\n2: b -> c\nd | e"))
    reasoner.ask("c & e", given={"a": [0.2, 1]})
    assert compilations
    before = len(compilations)
    for column, temperature in (([0, 1, NAN], 1.0), ([0.5], 0.1), ([], 3.0)):
        reasoner.ask("c & e", given={"a": column}, temperature=temperature)
        reasoner.ask("c & e", given={"b": column, "d": column}, temperature=temperature)
        reasoner.marginals(given={"c": column}, temperature=temperature)
    assert len(compilations) == before


def test_another_query_compiles_only_components_that_it_touches(compilations):
    reasoner = Reasoner(Theory.parse("\n".join(f"{i}: a{i} -> b{i}" for i in range(1, 21))))
    reasoner.ask("a1 -> b2", given={"a3": [0.2, 1]})
    compilations.clear()
    reasoner.ask("a4 <-> b5", given={"a3": [0.2, 1]})
    assert {name for part in compilations for name in part.atoms} == {"a4", "b4", "a5", "b5"}
    compilations.clear()
    reasoner.ask("a4", given={"a3": [0.2, 1]})
    assert len(compilations) <= 1


def test_rows_that_are_alike_are_worked_out_once(monkeypatch):
    passed, log_sums = [], Tables.log_sums

    def counted(self, scale, temperature, weights):
        passed.extend(len(table) for table in weights.values())
        return log_sums(self, scale, temperature, weights)

    monkeypatch.setattr(Tables, "log_sums", counted)
    column = np.random.default_rng(0).choice([0, 1, NAN, 0.5], 1000)
    found = Reasoner(THEORY).ask("c", given={"a": column, "b": np.full(1000, NAN)})
    assert set(passed) == {4}
    for value in (0, 1, 0.5):
        alone = Reasoner(THEORY).ask("c", given={"a": [value]}).probability[0]
        assert (found.probability[column == value] == alone).all()


# --- what a table may be ---------------------------------------------------------------------------

THEORY = Theory.parse("atoms a, b, c\n1: a -> b\nb -> c")
EXPECTED = [lbm.ask(THEORY, "c", given=evidence).probability for evidence in ("a & ~b", "b", "~a", None)]
A, B = [1, NAN, 0, NAN], [0, 1, NAN, NAN]


@pytest.mark.parametrize(
    "table",
    [
        {"b": B, "a": A},
        {"a": [True, None, False, None], "b": (0, 1, None, None)},
        {"a": [Decimal(1), NAN, Fraction(0), None], "b": np.array(B, np.float32)},
        {"a": pd.array([1, None, 0, None], "Int64"), "b": pd.array([False, True, None, None], "boolean")},
        pd.DataFrame({"a": A, "b": B}),
        pd.DataFrame({"b": B, "a": A}, index=[7, 7, 8, 9]),
        pd.DataFrame({"a": [True, None, False, None], "b": [0.0, 1, pd.NA, NAN]}, dtype=object),
        pd.DataFrame({"a": A, "b": B}).astype("Int64"),
        pd.DataFrame({"a": A, "b": B}).astype("boolean"),
        np.array([A, B, [NAN] * 4]).T,
        np.array([A, B, [NAN] * 4], object).T,
        np.ma.masked_invalid(np.array([A, B, [NAN] * 4]).T),
        np.ma.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]], mask=np.isnan([A, B, [NAN] * 4]).T),
    ],
    ids=lambda table: type(table).__name__,
)
def test_tables_of_every_kind_say_the_same(table):
    assert is_table(table)
    found = lbm.ask(THEORY, "c", given=table)
    assert found.probability == pytest.approx(EXPECTED, abs=1e-12)
    assert lbm.marginals(THEORY, given=table)["c"] == pytest.approx(EXPECTED, abs=1e-12)


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint16, np.float16, np.float64])
def test_numbers_of_every_kind_are_read(kind):
    table = np.array([[1, 0, 1], [0, 0, 1]], kind)
    assert lbm.ask(THEORY, "a | b", given=table).probability.tolist() == [1, 0]


@pytest.mark.parametrize(
    "table", [{"a": []}, np.zeros((0, 3)), pd.DataFrame({"a": []}), pd.DataFrame(columns=[])]
)
def test_no_rows_are_an_answer_too(table):
    found = lbm.ask(THEORY, "c", given=table)
    assert len(found) == 0
    assert found.probability.shape == found.possible.shape == (0,)
    assert lbm.marginals(THEORY, given=table).array.shape == (0, 3)
    assert "0 rows" in repr(found)


def test_rows_may_say_nothing_at_all():
    alone = lbm.ask(THEORY, "c").probability
    assert lbm.ask(THEORY, "c", given=np.full((2, 3), NAN)).probability.tolist() == [alone, alone]
    assert lbm.ask(THEORY, "c", given=pd.DataFrame(index=range(2))).probability.tolist() == [alone, alone]


def test_single_evidence_by_name_is_no_table():
    for values in ({"a": True}, {"a": 1}, {"a": np.True_}, {"a": np.array(1)}, {}):
        assert not is_table(values)
        assert lbm.ask(THEORY, "c", given=values).given is not None


def test_a_theory_without_atoms_takes_rows_too():
    assert lbm.ask(Theory([]), lbm.parse("true"), given=np.zeros((3, 0))).probability.tolist() == [1] * 3
    assert lbm.marginals(Theory([]), given=np.zeros((3, 0))).array.shape == (3, 0)


# --- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [0, 1.5]}, "row 1, column 'a': expected 0, 1, nothing (nan) or a probability, got 1.5"),
        (
            {"b": [0], "a": [-0.1]},
            "row 0, column 'a': expected 0, 1, nothing (nan) or a probability, got -0.1",
        ),
        ({"a": [0, math.inf]}, "row 1, column 'a': expected 0, 1, nothing (nan) or a probability, got inf"),
        ({"a": [0, 10**400]}, "row 1, column 'a': expected 0, 1, nothing (nan) or a probability, got 1000"),
        ({"a": [0, "1"]}, "row 1, column 'a': expected 0, 1, nothing (nan) or a probability, got '1'"),
        ({"a": [0, 1j]}, "row 1, column 'a': expected 0, 1, nothing (nan) or a probability, got 1j"),
        ({"a": [0, [1]]}, "row 1, column 'a': expected 0, 1, nothing (nan) or a probability, got [1]"),
        ({"a": np.array(["x"])}, "row 0, column 'a': expected 0, 1, nothing (nan) or a probability, got 'x'"),
        ({"a": [0, 1], "b": [0]}, "column 'b': expected 2 rows, as column 'a' has, got 1"),
        ({"a": [0, 1], "b": 1}, "column 'b': expected a list or an array of one axis, got 1"),
        ({"a": [0, 1], "b": "ab"}, "column 'b': expected a list or an array of one axis, got 'ab'"),
        ({"a": np.zeros((2, 2))}, "column 'a': expected a list or an array of one axis, got array("),
        ({0: [0, 1]}, "expected names of atoms over the columns, got 0: name them"),
        (pd.DataFrame(np.zeros((2, 3))), "expected names of atoms over the columns, got 0: name them"),
        (pd.DataFrame(np.zeros((2, 2)), columns=["a", "a"]), "column 'a': expected every atom in one column"),
        (pd.DataFrame({"a": ["yes"]}), "row 0, column 'a': expected 0, 1, nothing (nan) or a probability"),
        (np.zeros((2, 2)), "expected a matrix with a column for each of the 3 atoms, in their order"),
        (np.zeros(3), "expected a matrix with a column for each of the 3 atoms, in their order"),
        (np.array([[0, 0, 2]]), "row 0, column 'c': expected 0, 1, nothing (nan) or a probability, got 2"),
        (np.array([["0", "1", "0"]]), "row 0, column 'a': expected 0, 1, nothing (nan) or a probability"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_table_that_is_wrong_names_the_column_and_the_row(table, message):
    for ask in (lambda: lbm.ask(THEORY, "c", given=table), lambda: lbm.marginals(THEORY, given=table)):
        with pytest.raises(EvidenceError) as error:
            ask()
        assert str(error.value).startswith(message)
        assert isinstance(error.value, ValueError)
        assert error.value.exit_status == 2


def test_an_error_of_a_cell_knows_its_place():
    with pytest.raises(EvidenceError) as error:
        lbm.ask(THEORY, "c", given=np.array([[0, 0, 0], [0, 7, 0]]))
    assert (error.value.row, error.value.column) == (1, "b")


@pytest.mark.parametrize("table", [{"aa": [1]}, pd.DataFrame({"aa": [1]})])
def test_an_unknown_column_is_an_unknown_atom(table):
    with pytest.raises(UnknownAtom, match="no atom 'aa' in this theory"):
        lbm.ask(THEORY, "c", given=table)


def test_what_rows_are_not_asked_with_is_said():
    table = {"a": [0, 1]}
    with pytest.raises(WrongDistribution, match="logical distribution"):
        lbm.ask(THEORY, "c", given=table, distribution="machine")
    with pytest.raises(WrongDistribution, match="logical distribution"):
        lbm.marginals(THEORY, given=table, distribution="machine")
    for method in ("collapsed", "gibbs", "tempered"):
        with pytest.raises(ValueError, match="method='exact'"):
            lbm.ask(THEORY, "c", given=table, method=method)
    with pytest.raises(ValueError, match="expected a method among"):
        lbm.ask(THEORY, "c", given=table, method="fast")
    with pytest.raises(ValueError, match="without chains"):
        lbm.marginals(THEORY, given=table, sweeps=7)
    with pytest.raises(ValueError, match="without reasons"):
        lbm.ask(THEORY, "c", given=table, why=True)
    with pytest.raises(ValueError, match="temperature is a positive"):
        lbm.ask(THEORY, "c", given=table, temperature=-1)
    with pytest.raises(UnknownAtom):
        lbm.ask(THEORY, "nobody", given=table)


@pytest.mark.parametrize("table", [{"a": [0, 1]}, np.zeros((2, 3)), pd.DataFrame({"a": [0]})])
def test_other_questions_say_that_a_table_is_no_evidence_for_them(table):
    for ask in (
        lambda: lbm.count(THEORY, given=table),
        lambda: lbm.best(THEORY, given=table),
        lambda: lbm.log_partition(THEORY, given=table),
        lambda: lbm.entails(THEORY, "a", given=table),
        lambda: lbm.ask(THEORY, table),
    ):
        with pytest.raises(EvidenceError, match=r"lbm\.ask and lbm\.marginals"):
            ask()


# --- rows that are impossible ----------------------------------------------------------------------


def test_an_impossible_row_says_so_and_the_others_go_on():
    found = lbm.ask(THEORY, "a", given={"b": [1, 1, 0], "c": [0, 1, 1]})
    assert found.possible.tolist() == [False, True, True]
    assert math.isnan(found.probability[0])
    assert not np.isnan(found.probability[1:]).any()
    every = lbm.marginals(THEORY, given={"b": [1, 1, 0], "c": [0, 1, 1]})
    assert every.possible.tolist() == [False, True, True]
    assert np.isnan(every.array[0]).all()


def test_all_rows_may_be_impossible_but_not_the_theory():
    assert not lbm.ask(THEORY, "a", given={"b": [1], "c": [0]}).possible.any()
    for theory in (Theory.parse("a\n~a"), Theory.parse("a | b\n~a | b\na | ~b\n~a | ~b\nc -> a")):
        with pytest.raises(NoWorlds, match="the hard formulae allow no world"):
            lbm.ask(theory, "a", given={"a": [0, NAN]})
        with pytest.raises(NoWorlds, match="the hard formulae allow no world"):
            lbm.marginals(theory, given={"a": [0, NAN]})


def test_of_a_group_two_atoms_cannot_be_seen_true():
    theory = Theory.parse("exactly(1, a, b, c)\nexactly(1, d, e)")
    found = lbm.marginals(theory, given={"a": [1, 1, 0.5], "b": [1, 0.5, 0.25], "d": [NAN, 0.25, 0.25]})
    assert found.possible.tolist() == [False, True, True]
    assert found.array[1].tolist() == [1, 0, 0, 0.25, 0.75]
    assert found.array[2, :3] == pytest.approx(np.array([0.5, 0.25, 0.375]) / 1.125)


def test_what_soft_evidence_means_does_not_depend_on_other_formulae():
    """A group stays one where units leave two of its atoms."""
    assert groups_said(Theory.parse("exactly(1, a, b, c)\nexactly(1, d, e)\n~a")) == [
        ("a", "b", "c"),
        ("d", "e"),
    ]
    found = lbm.ask(Theory.parse("exactly(1, a, b, c)\n~a"), "b", given={"b": [0.3], "c": [0.6]})
    assert found.probability == pytest.approx([1 / 3])


# --- large theories --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [65, 129, 1000])
def test_a_chain_of_any_length_is_answered_as_by_passing_messages(size):
    """Forwards and backwards along x0 - x1 - ..., two numbers each."""
    theory = Theory.parse("\n".join(f"1.5: x{i} <-> x{i + 1}" for i in range(size - 1)))
    rng = np.random.default_rng(size)
    rows = np.where(rng.random((40, size)) < 0.8, NAN, rng.choice([0, 1, 0.2, 0.5, 0.9], (40, size)))
    weights = np.stack([1 - rows, rows], axis=2)
    weights[np.isnan(rows)] = 1
    step = np.array([[math.exp(1.5), 1], [1, math.exp(1.5)]])
    forwards, backwards = [weights[:, 0]], [np.ones((40, 2))]
    for i in range(1, size):
        forwards.append(forwards[-1] @ step * weights[:, i])
        forwards[-1] /= forwards[-1].sum(axis=1, keepdims=True)
        backwards.append((backwards[-1] * weights[:, -i]) @ step)
        backwards[-1] /= backwards[-1].sum(axis=1, keepdims=True)
    both = np.stack(forwards, axis=1) * np.stack(backwards[::-1], axis=1)
    expected = both[:, :, 1] / both.sum(axis=2)
    reasoner = Reasoner(theory)
    assert reasoner.marginals(given=rows).array == pytest.approx(expected, abs=1e-9)
    middle = f"x{size // 2}"
    assert reasoner.ask(middle, given=rows).probability == pytest.approx(expected[:, size // 2], abs=1e-9)


def test_addition_of_numbers_with_soft_digits_is_a_convolution():
    digits = 2
    reasoner = Reasoner(Theory.parse(addition(digits)))
    table = seen(digits, 16, np.random.default_rng(0))
    expected = chances(table, digits)
    for total in (0, 7, 99, 100, 198):
        found = reasoner.ask(sums_to(total, digits), given=table)
        assert found.probability == pytest.approx(expected[:, total], abs=1e-12)
    assert reasoner.ask(sums_to(199, digits), given=table).probability.tolist() == [0] * 16


@pytest.mark.parametrize("name", ["ChestClinic", "Segmentation_11"])
def test_networks_given_rows_say_what_they_say_given_each(name, instances):
    theory = Theory.load(instances / "uai" / f"{name}.lbm")
    reasoner, rng = Reasoner(theory), np.random.default_rng(0)
    names = theory.atoms
    columns = rng.permutation(len(names) - 1)[: max(3, len(names) // 3)]
    rows = reasoner.sample(3, seed=0).array[:, columns].astype(float)
    table = dict(zip([names[i] for i in columns], rows.T, strict=True))
    found = reasoner.ask(names[-1], given=table)
    every = reasoner.marginals(given=table)
    for i in range(3):
        row = {name: bool(column[i]) for name, column in table.items()}
        alone = reasoner.marginals(given=row)
        assert every.array[i] == pytest.approx(list(alone.values()), abs=1e-9)
        assert found.probability[i] == pytest.approx(alone[names[-1]], abs=1e-9)
    soft = {name: np.where(column == 1, 0.9, 0.2) for name, column in table.items()}
    soft = reasoner.marginals(given=soft)
    mixed = {name: [0.9 if column[0] else 0.2] for name, column in table.items()}
    assert soft.array[0] == pytest.approx(reasoner.marginals(given=mixed).array[0], abs=1e-12)


@pytest.fixture
def compiling_fails(monkeypatch):
    """Return what lets every compilation from now on end with an error, and counts them."""

    def with_error(error):
        tried = []

        def ready(component, budget):
            tried.append(budget)
            raise error

        monkeypatch.setattr(form, "ready", ready)
        return tried

    return with_error


@pytest.mark.parametrize(
    "error", [TooManyWorlds("it is too wide (limit WIDE)", WIDE=7), NoAnswer("too late")]
)
def test_what_cannot_be_compiled_is_asked_row_by_row(compiling_fails, error):
    table = {"a": [1, NAN, 0, 1], "b": [NAN, 1, 1, 1], "c": [NAN, NAN, 0, 1]}
    found, every = lbm.ask(THEORY, "a & c", given=table), lbm.marginals(THEORY, given=table)
    tried = compiling_fails(error)
    reasoner = Reasoner(THEORY)
    alone, each = reasoner.ask("a & c", given=table), reasoner.marginals(given=table)
    assert tried
    assert alone.possible.tolist() == found.possible.tolist() == [True, True, False, True]
    assert alone.probability == pytest.approx(found.probability, abs=1e-12, nan_ok=True)
    assert each.array == pytest.approx(every.array, abs=1e-12, nan_ok=True)
    with pytest.raises(NoWorlds, match="the hard formulae allow no world"):
        lbm.ask(Theory.parse("a | b\n~a | b\na | ~b\n~a | ~b"), "a", given={"a": [1]})


def test_soft_evidence_of_what_cannot_be_compiled_is_an_error_that_names_the_limit(compiling_fails):
    tried = compiling_fails(TooManyWorlds("it is too wide (limit WIDE)", WIDE=7))
    reasoner = Reasoner(THEORY)
    for _ in range(3):
        with pytest.raises(TooManyWorlds, match="limit WIDE"):
            reasoner.ask("a", given={"b": [0.5]})
        with pytest.raises(TooManyWorlds, match="limit WIDE"):
            reasoner.marginals(given={"b": [0.5]})
    assert len(tried) == 1


def test_what_was_not_compiled_in_time_is_tried_again_with_more(compiling_fails):
    tried = compiling_fails(NoAnswer("too late"))
    reasoner = Reasoner(THEORY)
    for seconds, number in ((10, 1), (5, 1), (15, 1), (30, 2), (None, 3)):
        with pytest.raises(NoAnswer):
            reasoner.ask("a", given={"b": [0.5]}, seconds=seconds)
        assert len(tried) == number
    assert tried[0].left() < 5 < tried[1].left() < 15


def test_a_query_that_cannot_be_compiled_is_asked_by_its_negation():
    class Narrow(form.CompiledForm):
        def __init__(self, split, *args, **options):
            if any(len(component.atoms) > 2 for component in split.components):
                raise TooManyWorlds("it is too wide (limit WIDE)", WIDE=2)
            super().__init__(split, *args, **options)

    theory = Theory.parse("1: a1 -> a2\n1: b1 -> b2\n1: c1 -> c2")
    table = {"a1": [0.5, 1], "b2": [0.25, NAN]}
    expected = lbm.ask(theory, "a1 | b1 | c1", given=table).probability
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(by_row, "CompiledForm", Narrow)
        found = Reasoner(theory).ask("a1 | b1 | c1", given=table).probability
        assert found == pytest.approx(expected, abs=1e-12)
        with pytest.raises(TooManyWorlds, match="limit WIDE"):
            Reasoner(theory).ask("a1 ^ b1 ^ c1", given=table)
        sure = Reasoner(theory).ask("~(a1 & b1 & c1) | a1", given=table).probability
        assert sure.tolist() == [1, 1]


def test_weights_far_apart_are_kept_apart_exactly():
    theory = Theory.parse(f"{10**20}: a\n{10**20}: b\n{10**20 + 1}: c\na ^ b ^ c\n~a | ~b | ~c")
    found = lbm.ask(theory, "c", given={"a": [NAN, 0, 1]})
    for i, evidence in enumerate((None, "~a", "a")):
        assert found.probability[i] == pytest.approx(lbm.ask(theory, "c", given=evidence).probability)
    with pytest.raises(TooManyWorlds, match="limit FAR"):
        lbm.ask(theory, "c", given={"a": [0.5]})


def test_out_of_time_there_is_no_answer(counted_clock):
    counted_clock.step = 1.0
    with pytest.raises(NoAnswer):
        lbm.ask(Theory.parse("1: a -> b\n2: b -> c\nd | e"), "a", given={"b": [0.5] * 3}, seconds=3)


# --- how they print --------------------------------------------------------------------------------


def test_answers_to_rows_print_themselves():
    found = lbm.ask(THEORY, "a & b", given={"b": [1, 1, 0.5], "c": [0, 1, 1]})
    assert repr(found).splitlines() == [
        "P(a & b | row) of 3 rows: 0.296923 to 0.5, mean 0.398461",
        "impossible, counted from 0: 1 row (0)",
        "exact; logical distribution, temperature 1",
    ]
    facts = found.facts()
    assert json.loads(json.dumps({**facts, "probabilities": list(facts["probabilities"])})) == {
        "query": "a & b",
        "rows": 3,
        "impossible": 1,
        "probabilities": [None, *found.probability[1:].tolist()],
        "method": "exact",
        "distribution": "logical",
        "temperature": 1.0,
        "confidence": None,
    }
    assert "P(a &amp; b | row) of 3 rows" in found._repr_html_()
    assert found.converged
    with pytest.raises(ValueError, match="read-only"):
        found.probability[0] = 0


def test_marginals_given_rows_print_themselves_and_become_a_frame(monkeypatch):
    found = lbm.marginals(THEORY, given={"b": [1, 1], "c": [0, 1]}, temperature=2)
    assert repr(found).splitlines() == [
        "P(atom | row) of 3 atoms in 2 rows",
        "impossible, counted from 0: 1 row (0)",
        "exact; logical distribution, temperature 2",
    ]
    facts = found.facts()
    assert (facts["atoms"], facts["rows"], facts["impossible"]) == (["a", "b", "c"], 2, 1)
    assert list(facts["marginals"]) == [[None] * 3, found.array[1].tolist()]
    frame = found.frame()
    assert list(frame.columns) == ["a", "b", "c"]
    assert frame["b"].tolist()[1] == 1
    assert found._repr_html_()
    with pytest.raises(UnknownAtom):
        found["d"]
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtra, match="pandas"):
        found.frame()


def test_many_impossible_rows_are_counted_and_the_first_named():
    found = lbm.ask(THEORY, "a", given={"b": [1] * 30, "c": [0] * 30})
    assert repr(found).splitlines()[1] == (
        "impossible, counted from 0: 30 rows (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)"
    )


# --- two atoms at once, and marginals asked for again -------------------------------------------------


@given(theories(weights=st.integers(-3, 3).filter(bool)), st.data())
def test_pairs_are_those_of_looking_at_every_world(theory, data):
    assume(theory.atoms)
    some = data.draw(st.lists(st.sampled_from(theory.atoms), unique=True, max_size=2))
    said = {name: data.draw(st.booleans()) for name in some}
    evidence = conjunction([atom(n) if v else ~atom(n) for n, v in said.items()]) if said else None
    oracle = Oracle(theory, evidence)
    reasoner = lbm.Reasoner(theory)
    if not oracle.worlds:
        with pytest.raises(NoWorlds):
            reasoner.pair_marginals(given=said)
        return
    found = reasoner.pair_marginals(given=said)
    for i, a in enumerate(theory.atoms):
        for j, b in enumerate(theory.atoms):
            assert found[i, j] == pytest.approx(oracle.chance(atom(a) & atom(b)), abs=1e-9)
    part = reasoner.pair_marginals(theory.atoms[::-1], given=said)
    assert part == pytest.approx(found[::-1, ::-1])


@given(theories(weights=st.integers(-3, 3).filter(bool)), st.data())
def test_marginals_asked_for_again_are_those_of_the_first_time(theory, data):
    assume(theory.atoms)
    reasoner = lbm.Reasoner(theory)
    for _ in range(4):
        some = data.draw(st.lists(st.sampled_from(theory.atoms), unique=True, min_size=1, max_size=2))
        said = {name: data.draw(st.booleans()) for name in some}
        oracle = Oracle(theory, conjunction([atom(n) if v else ~atom(n) for n, v in said.items()]))
        if not oracle.worlds:
            with pytest.raises(NoWorlds):
                reasoner.marginals(given=said)
            continue
        for name, chance in reasoner.marginals(given=said).items():
            assert chance == pytest.approx(oracle.chance(atom(name)), abs=1e-9)


def test_marginals_of_what_no_row_tells_of_are_worked_out_once(monkeypatch):
    made, every = [], Tables.all_marginals

    def counted(self, scale, temperature, weights):
        made.append(len(self.component.atoms))
        return every(self, scale, temperature, weights)

    monkeypatch.setattr(Tables, "all_marginals", counted)
    reasoner = Reasoner(Theory.parse("1: a -> b\n2: c -> d\nd -> e"))
    for column in ([1, 0], [0.25], [NAN, 0.5, 1]):
        found = reasoner.marginals(given={"a": column})
        alone = [reasoner.marginals(given={"a": [value]})["d"][0] for value in column]
        assert found["d"].tolist() == alone
    assert made.count(3) == 1
    reasoner.marginals(given={"a": [1]}, temperature=2)
    assert made.count(3) == 2
