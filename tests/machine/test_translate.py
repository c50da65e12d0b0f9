"""Theory -> machine: the law that ties energies to scores, and the paper's two networks."""

from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import LimitExceeded, WeightError
from lbm.knowledge.clauses import Clauses
from lbm.knowledge.formula import Formula, atoms_of
from lbm.knowledge.parser import parse
from lbm.knowledge.theory import Theory, hard_weight
from lbm.logic.sdnf import METHODS
from lbm.machine.rbm import Machine
from lbm.machine.translate import translate
from tests.oracles import score_and_hard, truth, worlds
from tests.strategies import formulae, theories, within_reach

NIXON = "1000: n -> r\n1000: n -> q\n10: r -> ~p\n10: q -> p"
XOR = "((x & ~y) | (~x & y)) <-> z"
small = st.integers(-9, 9).filter(bool) | st.sampled_from([Decimal("0.5"), Decimal("-1.25"), 1000])


def all_worlds(atoms: tuple[str, ...]) -> np.ndarray:
    return np.array([[world[name] for name in atoms] for world in worlds(atoms)], dtype=bool)


@given(formulae(max_leaves=8), st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_energy_wells_are_exactly_the_models(formula: Formula, epsilon: float) -> None:
    """min_h E(x, h) = -ε where the formula holds and 0 elsewhere. [TG21, Lemma 1 and Theorem 1]"""
    machine = translate(formula, epsilon=epsilon)
    assert not machine.definitions
    for world in worlds(machine.atoms):
        x = np.array([world[name] for name in machine.atoms])
        least = -np.maximum(x @ machine.weights.toarray() + machine.hidden_bias, 0).sum()
        assert least == pytest.approx(-epsilon if truth(formula, world) else 0)


@given(
    theories(max_statements=5, max_leaves=6),
    st.booleans(),
    st.sampled_from([1, 2, 128]),
    st.sampled_from([0.25, 0.5, 0.75]),
)
def test_the_law_of_scores_holds_in_every_world(
    theory: Theory, merge: bool, budget: int, epsilon: float
) -> None:
    """-min_h E/ε + offset = score + W·(hard formulae true). [TG21, Proposition 2; ERRATA 8]"""
    machine = translate(theory, merge=merge, budget=budget, epsilon=epsilon)
    hard = Fraction(hard_weight(theory))
    scale = float(abs(machine.unit_weights).sum()) + abs(machine.offset) + 1
    if not theory.atoms:
        return
    found = machine.score(all_worlds(theory.atoms))
    for value, world in zip(found, worlds(theory.atoms), strict=True):
        score, kept = score_and_hard(theory, world)
        assert value == pytest.approx(float(score + hard * kept), abs=1e-12 * scale, rel=1e-9)


@given(theories(weights=small, max_leaves=6), st.sampled_from([1, 3]))
def test_no_value_of_a_definitional_atom_is_better_than_the_computed_one(theory: Theory, budget: int) -> None:
    machine = translate(theory, budget=budget)
    if not 1 <= len(machine.definitions) <= 8 or not theory.atoms:
        return
    x = all_worlds(theory.atoms).astype(float)
    best = np.full(len(x), np.inf)
    for extra in all_worlds(machine.definitions).astype(float):
        best = np.minimum(best, machine.rank_energy(np.hstack([x, np.tile(extra, (len(x), 1))])))
    assert best == pytest.approx(machine.rank_energy(x))


def test_breaking_a_chain_of_definitions_never_pays() -> None:
    parity = " ^ ".join(f"x{i}" for i in range(9))
    machine = translate(Theory([(3, parity), (-2, f"({parity}) & x0")]), budget=8)
    assert len(machine.definitions) == 3
    x = all_worlds(machine.declared).astype(float)
    best = np.full(len(x), np.inf)
    for extra in all_worlds(machine.definitions).astype(float):
        best = np.minimum(best, machine.rank_energy(np.hstack([x, np.tile(extra, (len(x), 1))])))
    assert best == pytest.approx(machine.rank_energy(x))


@given(theories(weights=small, max_leaves=6))
def test_merging_changes_no_energy_of_a_world(theory: Theory) -> None:
    merged, apart = translate(theory), translate(theory, merge=False)
    assert merged.hidden <= apart.hidden
    if theory.atoms:
        x = all_worlds(theory.atoms)
        assert merged.rank_energy(x) == pytest.approx(apart.rank_energy(x))


@given(theories(weights=small, max_statements=3, max_leaves=5), st.sampled_from(METHODS))
def test_every_method_gives_the_same_scores(theory: Theory, method: str) -> None:
    if theory.atoms:
        x = all_worlds(theory.atoms)
        built = within_reach(lambda: translate(theory, method=method))
        assert built.score(x) == pytest.approx(translate(theory).score(x))


def test_a_subsumed_cube_keeps_its_own_weight() -> None:
    """[ERRATA 3]"""
    machine = translate(Theory.parse("3: a\n5: a & b"))
    assert machine.score({"a": True, "b": False}) == pytest.approx(3)
    assert machine.score({"a": True, "b": True}) == pytest.approx(8)


def wells(machine: Machine) -> set[tuple[tuple[tuple[str, float], ...], float]]:
    """Return each hidden unit's weights by name and its bias."""
    dense = machine.weights.toarray()
    return {
        (
            tuple((name, float(w)) for name, w in zip(machine.atoms, dense[:, j], strict=True) if w),
            float(machine.hidden_bias[j]),
        )
        for j in range(machine.hidden)
    }


def test_the_xor_machine_is_the_papers_as_corrected() -> None:
    """[TG21, Figure 'RBM equivalent to the XOR formula'; ERRATA 2]"""
    machine = translate(parse(XOR))
    assert machine.hidden == 4
    assert wells(machine) == {
        ((("x", -1), ("y", -1), ("z", -1)), 0.5),
        ((("x", 1), ("y", 1), ("z", -1)), -1.5),
        ((("x", 1), ("y", -1), ("z", 1)), -1.5),
        ((("x", -1), ("y", 1), ("z", 1)), -1.5),
    }
    assert machine.equation() == (
        "E = -h1(-x - y - z + 0.5) - h2(x + y - z - 1.5) - h3(x - y + z - 1.5) - h4(-x + y + z - 1.5)"
    )


def test_the_nixon_machine_is_the_papers() -> None:
    """[TG21, Example 'Nixon diamond problem' and Figure 'RBM for the Nixon diamond problem']"""
    machine = translate(Theory.parse(NIXON))
    assert machine.equation() == (
        "E = -h1(1000n + 1000r - 1500) - h2(-2000n + 1000) - h3(1000n + 1000q - 1500)"
        " - h4(10r - 10p - 5) - h5(-10r + 5) - h6(10q + 10p - 15) - h7(-10q + 5)"
    )
    assert [(str(unit.cube), unit.weight) for unit in machine.units] == [
        ("n & r", 1000),
        ("~n", 2000),
        ("n & q", 1000),
        ("r & ~p", 10),
        ("~r", 10),
        ("q & p", 10),
        ("~q", 10),
    ]
    assert machine.units[1].formulae == (0, 1)


def test_the_papers_class_of_formulae_has_n_cubes() -> None:
    """φ ≡ ⋀_{i<=M} x_i ∧ (⋁_{j>M} x_j). [TG21, section 6.1]"""
    text = " & ".join([*(f"x{i}" for i in range(20)), f"({' | '.join(f'y{j}' for j in range(10))})"])
    machine = translate(parse(text))
    assert machine.hidden == 10
    assert all(len(unit.cube.true) == 21 for unit in machine.units)


def test_formulae_of_one_theory_share_cubes_where_they_can() -> None:
    assert translate(Theory.parse("a -> b\nc -> b\nd -> b")).hidden == 4
    assert translate(Theory.parse("p & q -> r\nq & p -> s")).hidden == 4
    # Either order of b and c is as short; only one has the cube that the first formula has.
    assert translate(Theory.parse("c & ~b\n(b -> a) & (c -> b)")).hidden <= 4


literals = st.sampled_from([1, -1, 2, -2, 3, -3, 4, -4])


@given(st.lists(st.lists(literals, min_size=1, max_size=3, unique_by=abs), min_size=1, max_size=3))
def test_no_orders_of_elimination_share_more_cubes(clauses: list[list[int]]) -> None:
    """Every order of every clause, tried by hand. [TG21, equation conj_ext]"""

    def cubes(order: tuple[int, ...]) -> list[frozenset[int]]:
        return [frozenset([*(-n for n in order[:i]), order[i]]) for i in range(len(order))]

    ways = [[cubes(order) for order in permutations(clause)] for clause in clauses]
    fewest = min(len({cube for way in pick for cube in way}) for pick in product(*ways))
    theory = Theory([" | ".join(f"{'~' * (n < 0)}a{abs(n)}" for n in clause) for clause in clauses])
    assert translate(theory).hidden == fewest


def test_weights_and_formulae_are_kept_exactly_as_numbers() -> None:
    machine = translate(Theory.parse("2.5: a\n-4: b\nc"))
    assert machine.hard_weight == 7.5
    assert machine.offset == -4
    assert machine.score({"a": True, "b": True, "c": True}) == pytest.approx(2.5 - 4 + 7.5)


def test_theories_of_packed_clauses_translate_as_their_formulae_do() -> None:
    rng = np.random.default_rng(0)
    literals = rng.integers(1, 7, 60) * rng.choice([-1, 1], 60)
    starts = np.concatenate([[0], np.sort(rng.choice(np.arange(61), 24)), [60]])
    weights = rng.integers(0, 4, len(starts) - 1)
    packed = Theory.from_clauses(
        Clauses(tuple("abcdef"), literals.astype(np.int32), starts.astype(np.int64)), weights.astype(np.int64)
    )
    plain = Theory(list(packed), atoms=packed.atoms)
    x = all_worlds(packed.atoms)
    for budget in (2, 128):
        assert translate(packed, budget=budget).score(x) == pytest.approx(
            translate(plain, budget=budget).score(x)
        )


@given(theories(weights=small))
def test_definitional_atoms_stand_last_and_are_marked(theory: Theory) -> None:
    machine = translate(theory, method="definitions")
    assert machine.declared == theory.atoms
    assert machine.atoms == (*theory.atoms, *machine.definitions)
    for unit in machine.units:
        assert unit.formulae or unit.definitions


def test_huge_weights_stay_finite() -> None:
    machine = translate(Theory.parse("1e9: a -> b\n1e-9: b -> c\n1000000000: c -> ~a\n" + "a | b | c\n" * 50))
    x = all_worlds(machine.atoms)
    for values in (machine.rank_energy(x), machine.free_energy(x), machine.free_energy(x, temperature=1e-3)):
        assert np.isfinite(values).all()


def test_a_theory_without_formulae_has_a_machine_without_hidden_units() -> None:
    machine = translate(Theory(atoms=["a", "b"]))
    assert (machine.hidden, machine.equation()) == (0, "E = 0")
    assert machine.score(all_worlds(("a", "b"))) == pytest.approx(np.zeros(4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0.0}, "between 0 and 1, got 0"),
        ({"epsilon": 1}, "between 0 and 1, got 1"),
        ({"encoding": "magic"}, "'sdnf' or 'penalty', got 'magic'"),
        ({"method": "magic"}, "got 'magic'"),
    ],
)
def test_an_option_out_of_range_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        translate(parse("a"), **options)


def test_what_is_no_theory_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Theory\.parse reads text"):
        translate("a -> b")


def test_atoms_keep_the_declared_order() -> None:
    assert translate(Theory.parse("atoms n, r, q, p\n" + NIXON)).atoms == ("n", "r", "q", "p")
    assert atoms_of(parse("b & a")) == ("b", "a")


def test_counters_too_large_for_a_machine_are_refused_at_once():
    names = ", ".join(f"v{i}" for i in range(1000))
    for text in (f"atleast(500, {names})", f"w | ~atmost(500, {names})"):
        with pytest.raises(LimitExceeded, match=r"501000 counter cells.*limit CELLS") as raised:
            translate(parse(text))
        assert raised.value.limit == "CELLS"


# --- calibrated units ----------------------------------------------------------------------------

weights_of_all_sizes = st.sampled_from(
    [Decimal("0.000001"), Decimal("0.5"), Decimal("-1.25"), 1, -3, 40, 1000, Decimal("123456.75")]
)


def total(machine: Machine) -> float:
    return float(abs(machine.unit_weights).sum()) + abs(machine.offset) + 1


@given(
    theories(weights=weights_of_all_sizes, max_statements=5, max_leaves=6),
    st.booleans(),
    st.sampled_from([1, 128]),
)
def test_the_free_energy_of_calibrated_units_is_the_score(theory: Theory, merge: bool, budget: int) -> None:
    """-F(x) + offset = score(x) + W · (hard formulae true in x), in every world, at confidence 1."""
    machine = translate(theory, merge=merge, budget=budget, units="calibrated")
    if not theory.atoms:
        return
    hard = Fraction(hard_weight(theory))
    x = all_worlds(theory.atoms)
    found = machine.score(x)
    assert found == pytest.approx(-machine.free_energy(x, confidence=1.0) + machine.offset)
    for value, world in zip(found, worlds(theory.atoms), strict=True):
        score, kept = score_and_hard(theory, world)
        expected = float(score + hard * kept)
        assert value == pytest.approx(expected, abs=1e-12 * (1 + machine.hidden) + 1e-15 * total(machine))


@given(theories(weights=small, max_statements=4, max_leaves=5), st.sampled_from([2, 128]))
def test_hidden_states_of_calibrated_units_sum_to_the_logical_distribution(
    theory: Theory, budget: int
) -> None:
    """Σ_h exp(-E(x, h)), definitional atoms summed out too, goes with e^score among the models."""
    machine = translate(theory, budget=budget, units="calibrated")
    if not theory.atoms or machine.hidden > 10 or len(machine.definitions) > 3:
        return
    states = all_worlds(tuple(f"h{j}" for j in range(machine.hidden))).astype(float)
    own = all_worlds(theory.atoms).astype(float)
    logs, scores = [], []
    for row, world in zip(own, worlds(theory.atoms), strict=True):
        score, kept = score_and_hard(theory, world)
        if kept < sum(weight is None for weight in theory.weights):
            continue
        full = [np.concatenate([row, more]) for more in all_worlds(machine.definitions)]
        logs.append(np.logaddexp.reduce([-machine.energy(x[None], states) for x in full], axis=None))
        scores.append(float(score))
    if logs:
        gaps = np.array(logs) - np.array(scores)
        assert gaps == pytest.approx(gaps[0], abs=1e-9 * (1 + total(machine)))


def test_twenty_near_misses_do_not_outweigh_one_true_cube() -> None:
    """Twenty rules that do not fire, and one formula against their head."""
    theory = Theory([*[(Decimal("0.5"), f"a{i} -> y") for i in range(20)], (1, "~y")])
    nothing = dict.fromkeys(theory.atoms, False)
    gap = {}
    for units in ("paper", "calibrated"):
        machine = translate(theory, units=units)
        true, false = (machine.free_energy({**nothing, "y": y}, confidence=1.0) for y in (True, False))
        gap[units] = float(true - false)
    assert gap["calibrated"] == pytest.approx(1.0)
    assert gap["paper"] < 0.6


def test_calibrated_units_say_what_they_are() -> None:
    machine = translate(Theory.parse("2: a -> b"), units="calibrated")
    assert repr(machine) == "<Machine: 2 visible and 2 hidden units, calibrated>"
    assert machine.calibrated == machine.hidden == 2
    assert machine.equation() == "E = -h1(32a + 32b - 62.1454139564) - h2(-32a + 1.85458645987)".replace(
        "62.1454139564", f"{64 - np.log(np.expm1(2)):.12g}"
    ).replace("1.85458645987", f"{np.log(np.expm1(2)):.12g}")


def test_weights_past_what_doubles_tell_apart_are_refused() -> None:
    near = translate(Theory([(10**12, "a & b")]), units="calibrated")
    assert near.score({"a": True, "b": False}) == pytest.approx(0, abs=1e-12)
    with pytest.raises(WeightError, match=r"calibrated units weigh up to 1e\+12 \(limit MAX_WEIGHT\)"):
        translate(Theory([(10**13, "a & b")]), units="calibrated")


@pytest.mark.parametrize("options", [{"units": "calm"}, {"units": "calibrated", "encoding": "penalty"}])
def test_units_that_do_not_exist_are_an_error(options: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="calibrated"):
        translate(Theory(["a"]), **options)
