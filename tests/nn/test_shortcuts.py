"""Reasoning shortcuts: readings of inputs that leave every answer right are counted exactly."""

import itertools
import random
import warnings

import pytest
import torch

import lbm
from lbm.errors import LimitExceeded, NoWorlds, UnknownAtom
from lbm.nn import readings, shortcuts
from lbm.nn.named import UnfitInputs
from lbm.nn.readings import OpenAnswer

HALF = [(0, 0), (0, 1), (2, 3), (2, 4)]
EVEN_ODD = [(0, 6), (2, 8), (4, 6), (4, 8), (1, 5), (3, 7), (1, 9), (3, 9)]


def addition(size):
    """Return two digits below ``size``, and their sum."""
    lines = [f"exactly(1, {', '.join(f'{name}({i})' for i in range(size))})" for name in "xy"]
    lines.append(f"exactly(1, {', '.join(f'sum({i})' for i in range(2 * size - 1))})")
    lines += [f"x({i}) & y({j}) -> sum({i + j})" for i in range(size) for j in range(size)]
    return "\n".join(lines)


def silently(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return shortcuts(*args, **options)


def by_all_maps(answer, sizes, network, seen):
    """Return how many readings leave every answer right, by trying every one; ``answer`` is a function."""
    variables = sorted({(network[i], v) for row in seen for i, v in enumerate(row)})
    found, read_as = 0, {variable: set() for variable in variables}
    for values in itertools.product(*[range(sizes[net]) for net, _ in variables]):
        reading = dict(zip(variables, values, strict=True))
        if all(
            answer(tuple(reading[network[i], v] for i, v in enumerate(row))) == answer(tuple(row))
            for row in seen
        ):
            found += 1
            for variable, value in reading.items():
                read_as[variable].add(value)
    return found, read_as


@pytest.mark.parametrize(
    ("size", "seen", "expected"),
    [(5, HALF, 3), (10, HALF, 6), (5, None, 1), (10, None, 1), (10, EVEN_ODD, 36)],
    ids=["half to 4", "half to 9", "all to 4", "all to 9", "even and odd"],
)
def test_known_sets_of_sums_have_as_many_readings_as_were_counted(size, seen, expected):
    found = silently(addition(size), "sum(*)", shared=[["x(*)", "y(*)"]], seen=seen)
    assert found.readings == expected
    assert found.combinations == (size * size if seen is None else len(seen))


@pytest.mark.parametrize("seen", [HALF, list(itertools.product(range(5), repeat=2))])
def test_half_and_all_of_addition_to_4_are_as_every_map_says(seen):
    expected, read_as = by_all_maps(sum, [5, 5], [0, 0], seen)
    found = silently(addition(5), "sum(*)", shared=[["x(*)", "y(*)"]], seen=torch.tensor(seen))
    assert found.readings == expected
    assert found.read_as == {
        f"x({v})": tuple(f"x({o})" for o in sorted(some)) for (_, v), some in read_as.items()
    }


@pytest.mark.parametrize("seed", range(40))
def test_readings_of_drawn_theories_are_as_every_map_says(seed):
    """Two to four inputs of two to four values, some of which share a network, and a table of answers."""
    rng = random.Random(seed)
    number = rng.randint(2, 3)
    size = rng.randint(2, 4) if number == 2 else rng.randint(2, 3)
    sizes = [size] * number
    network = [0, rng.choice([0, 1]), rng.choice([0, 2])][:number]
    kinds = rng.randint(1, 4)
    combinations = list(itertools.product(*map(range, sizes)))
    table = {values: rng.randrange(kinds) for values in combinations}
    if rng.random() < 0.4:  # some combinations are forbidden
        for values in rng.sample(combinations, len(combinations) // 4):
            table[values] = None
    if rng.random() < 0.5:  # answers that depend on the sum alone, so that values may be told apart by none
        table = {values: None if kind is None else sum(values) % 2 for values, kind in table.items()}
    lines = [f"exactly(1, {', '.join(f'{name}({v})' for v in range(size))})" for name in "xyz"[:number]]
    lines.append(f"exactly(1, {', '.join(f'is({v})' for v in range(max(2, kinds)))})")
    for values, kind in table.items():
        cube = " & ".join(f"{name}({v})" for name, v in zip("xyz", values, strict=False))
        lines.append(f"~({cube})" if kind is None else f"{cube} -> is({kind})")
    possible = [values for values in combinations if table[values] is not None]
    if not possible:
        return
    seen = None if rng.random() < 0.2 else rng.sample(possible, rng.randint(1, len(possible)))
    shared = [
        [f"{'xyz'[i]}(*)" for i, other in enumerate(network) if other == net] for net in sorted(set(network))
    ]
    found = silently(
        "\n".join(lines), "is(*)", inputs=[f"{name}(*)" for name in "xyz"[:number]], shared=shared, seen=seen
    )
    expected, read_as = by_all_maps(table.get, sizes, network, possible if seen is None else seen)
    assert found.readings == expected
    names = {f"{'xyz'[net]}({v})": some for (net, v), some in read_as.items()}
    assert {name: {int(other[2:-1]) for other in others} for name, others in found.read_as.items()} == names


def test_networks_of_their_own_have_readings_of_their_own():
    """With a sum and no shared network, one may read all digits higher and the other lower."""
    seen = [(1, 1), (1, 2), (2, 1)]
    expected, _ = by_all_maps(sum, [5, 5], [0, 1], seen)
    assert silently(addition(5), "sum(*)", inputs=["x(*)", "y(*)"], seen=seen).readings == expected == 3
    assert silently(addition(5), "sum(*)", shared=[["x(*)", "y(*)"]], seen=seen).readings == 1


def test_without_queries_readings_are_right_that_keep_the_theory():
    """a & ~b is forbidden, and nothing else is said: all readings that never say it are right."""
    assert silently("a -> b", inputs=["a", "b"], seen=[(0, 0), (1, 1)]).readings == 9
    found = silently("a -> b", inputs=["a", "b"], seen=[(1, 1)])
    assert found.read_as == {"a": ("~a", "a"), "b": ("~b", "b")}
    assert found.readings == 3
    assert shortcuts("a\nb", inputs=["a", "b"], seen=[(True, True)]).readings == 1


def test_values_that_no_answer_tells_apart_are_counted_together_however_many():
    """Parity of two digits: even ones are read as any even ones and odd ones as odd ones, or all turned."""
    lines = [f"exactly(1, {', '.join(f'{name}({i})' for i in range(10))})" for name in "xy"]
    odd = [" | ".join(f"{name}({i})" for i in range(1, 10, 2)) for name in "xy"]
    text = "\n".join([*lines, f"odd <-> (({odd[0]}) ^ ({odd[1]}))"])
    found = silently(text, "odd", shared=[["x(*)", "y(*)"]])
    assert found.readings == 2 * 5**10
    assert len(found.read_as["x(0)"]) == 10


def test_atoms_that_are_no_inputs_and_soft_formulae_do_not_count():
    text = "exactly(1, x(0), x(1), x(2))\nlow <-> x(0)\n3: free | x(1)"
    assert silently(text, "low", inputs=["x(*)"]).readings == 4
    assert silently(text, ["low", "x(1)"], inputs=["x(*)"]).readings == 1
    assert silently(text, "x(*)", inputs=["x(*)"]).readings == 1
    assert silently(text, "x(1) | x(2)", inputs=["x(*)"], given="~x(2)", seen=[[0], [1]]).readings == 1


def test_shortcuts_are_warned_of_and_none_is_silent():
    with pytest.warns(RuntimeWarning, match=r"3 readings .*\(of x\(2\), x\(3\), x\(4\)\)"):
        found = shortcuts(addition(5), "sum(*)", shared=[["x(*)", "y(*)"]], seen=HALF)
    assert found.confused == ("x(2)", "x(3)", "x(4)")
    assert "x(3) may be read as x(1), x(2), x(3)" in str(found)
    assert found.facts()["readings"] == 3
    none = shortcuts(addition(3), "sum(*)", shared=[["x(*)", "y(*)"]])
    assert str(none).startswith("no reasoning shortcut")


def test_questions_that_do_not_fit_are_errors_that_say_so():
    text = addition(3)
    both = [["x(*)", "y(*)"]]
    with pytest.raises(UnfitInputs, match="got neither"):
        shortcuts(text, "sum(*)")
    with pytest.raises(UnfitInputs, match=r"got 'x\(0\)' and its group twice|x\(0\) and its group twice"):
        shortcuts(text, "sum(*)", inputs=["x(*)", "y(*)"], shared=[["x(*)"], ["x(*)", "y(*)"]])
    with pytest.raises(UnfitInputs, match="as many values"):
        shortcuts(text, "sum(*)", shared=[["x(*)", "sum(*)"]])
    with pytest.raises(UnfitInputs, match="inputs in shared"):
        shortcuts(text, "sum(*)", inputs=["x(*)"], shared=both)
    with pytest.raises(UnknownAtom):
        shortcuts(text, "total(*)", shared=both)
    with pytest.raises(ValueError, match="expected labels of shape"):
        shortcuts(text, "sum(*)", shared=both, seen=[(0,)])
    with pytest.raises(ValueError, match="from 0 to 2"):
        shortcuts(text, "sum(*)", shared=both, seen=[(0, 3)])
    with pytest.raises(ValueError, match="got none in row 0"):
        shortcuts(text, "sum(*)", shared=both, seen=[(0, -1)])
    with pytest.raises(ValueError, match="got none"):
        shortcuts(text, "sum(*)", shared=both, seen=torch.zeros(0, 2))
    with pytest.raises(OpenAnswer, match=r"x\(1\), y\(2\) contradicts the theory"):
        shortcuts(text + "\n~(x(1) & y(2))", "sum(*)", shared=both, seen=[(1, 2)])
    with pytest.raises(OpenAnswer, match=r"x\(0\), y\(0\) leaves the answer open"):
        shortcuts(text + "\nx(1) -> odd", "odd", shared=both)
    with pytest.raises(NoWorlds):
        shortcuts("a\n~a", inputs=["a"])


def test_what_is_too_large_is_a_named_limit(monkeypatch):
    digits = "\n".join(f"exactly(1, {', '.join(f'd{n}({i})' for i in range(10))})" for n in range(7))
    with pytest.raises(LimitExceeded, match="MAX_COMBINATIONS"):
        shortcuts(digits, "d0(1)", inputs=[f"d{n}(*)" for n in range(7)])
    for limit, small in (("MAX_STEPS", 1), ("MAX_TUPLES", 3), ("MAX_VALUES", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(readings, limit, small)
            with pytest.raises(LimitExceeded, match=limit) as caught:
                shortcuts(addition(5), "sum(*)", shared=[["x(*)", "y(*)"]], seen=HALF)
            assert caught.value.limit == limit


def test_two_numbers_of_two_digits_are_counted_from_formulae():
    """Full column addition of two-digit numbers, with one network for all four digits: no shortcut."""
    names = ["x0", "x1", "y0", "y1"]
    size = 4
    lines = [f"exactly(1, {', '.join(f'{name}({i})' for i in range(size))})" for name in names]
    lines += [f"exactly(1, {', '.join(f's{place}({i})' for i in range(size))})" for place in range(2)]
    for i, j in itertools.product(range(size), repeat=2):
        lines.append(f"x0({i}) & y0({j}) -> s0({(i + j) % size}) & {'' if i + j >= size else '~'}carry")
        for carry in range(2):
            total = i + j + carry
            lines.append(
                f"x1({i}) & y1({j}) & {'' if carry else '~'}carry -> s1({total % size}) & "
                f"{'' if total >= size else '~'}over"
            )
    text = "\n".join(lines)
    queries = ["s0(*)", "s1(*)", "over"]
    assert lbm.Theory.parse(text)
    found = silently(text, queries, shared=[[f"{name}(*)" for name in names]])
    assert found.readings == 1
    assert found.combinations == size**4
    # Never more than this: 0 and 1 alone, without a carry.
    some = list(itertools.product(range(2), repeat=4))
    expected, _ = by_all_maps(
        lambda row: (row[0] + size * row[1]) + (row[2] + size * row[3]), [size] * 4, [0, 0, 0, 0], some
    )
    assert silently(text, queries, shared=[[f"{name}(*)" for name in names]], seen=some).readings == expected
