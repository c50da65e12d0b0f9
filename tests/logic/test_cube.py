"""Cubes, packed and merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.logic.cube import Cube, CubeRows, merge, pack
from lbm.logic.many import eliminate

ATOMS = tuple(f"a{i}" for i in range(40))
signed = st.integers(1, 40).flatmap(lambda n: st.sampled_from([n, -n]))
cubes = st.lists(signed, max_size=20, unique_by=abs).map(lambda cube: tuple(sorted(cube, key=abs)))


def groups_of(per_formula: list[list[tuple[int, ...]]]) -> list[CubeRows]:
    by_length: dict[int, list[tuple[tuple[int, ...], int, int]]] = {}
    for owner, listed in enumerate(per_formula):
        for place, cube in enumerate(listed):
            by_length.setdefault(len(cube), []).append((cube, owner, place))
    return [
        CubeRows(
            np.array([cube for cube, _, _ in items], dtype=np.int32).reshape(len(items), length),
            np.array([owner for _, owner, _ in items], dtype=np.int64),
            np.array([place for _, _, place in items], dtype=np.int64),
        )
        for length, items in by_length.items()
    ]


@given(st.lists(st.lists(cubes, max_size=4), max_size=8), st.booleans())
def test_merging_keeps_every_part_and_merges_exactly_the_identical(
    per_formula: list[list[tuple[int, ...]]], identical: bool
) -> None:
    merged = merge(groups_of(per_formula), len(per_formula), len(ATOMS), identical=identical)
    units = [
        tuple(merged.literals[a:b].tolist()) for a, b in zip(merged.starts, merged.starts[1:], strict=False)
    ]
    flat = [(owner, cube) for owner, listed in enumerate(per_formula) for cube in listed]
    found = [(owner, units[unit]) for owner, unit in zip(merged.owner, merged.unit, strict=True)]
    assert found == flat
    expected = list(dict.fromkeys(cube for _, cube in flat)) if identical else [cube for _, cube in flat]
    assert units == expected
    assert merged.positive.tolist() == [sum(n > 0 for n in unit) for unit in units]


def test_a_subsumed_cube_is_not_merged() -> None:
    """[TG21, section 5; ERRATA 3]"""
    merged = merge(groups_of([[(1,)], [(1, 2)]]), 2, 2)
    assert merged.unit.tolist() == [0, 1]


@given(st.lists(st.lists(signed, max_size=6), max_size=12))
def test_clauses_by_the_million_are_eliminated_as_one_by_one(clauses: list[list[int]]) -> None:
    """[TG21, equation conj_ext]"""
    literals = np.array([n for clause in clauses for n in clause], dtype=np.int32)
    starts = np.cumsum([0, *map(len, clauses)])
    groups = eliminate(literals, starts, np.arange(len(clauses)), 40)
    merged = merge(groups, len(clauses), 40, identical=False)
    for number, clause in enumerate(clauses):
        mine = [
            tuple(merged.literals[merged.starts[u] : merged.starts[u + 1]].tolist())
            for u in merged.unit[merged.owner == number]
        ]
        distinct = list(dict.fromkeys(clause))
        if any(-n in distinct for n in distinct):
            assert mine == [()]
            continue
        assert len(mine) == len(distinct)
        assert [len(cube) for cube in mine] == list(range(len(distinct), 0, -1))
        for one in mine:
            assert any(n in clause for n in one)
            assert all(any(-n in other for n in one) for other in mine if other is not one)


def test_the_literal_that_most_clauses_share_is_eliminated_first() -> None:
    clauses = [[1, 2], [3, 2], [4, 2]]
    groups = eliminate(
        np.array([n for c in clauses for n in c], dtype=np.int32), np.array([0, 2, 4, 6]), np.arange(3), 4
    )
    merged = merge(groups, 3, 4)
    assert len(merged.starts) - 1 == 4, "the cube of atom 2 serves all three"


def test_a_cube_says_what_it_wants() -> None:
    cube = Cube((("n", 1), ("it's", -1)))
    assert (cube.true, cube.false, len(cube), str(cube)) == (("n",), ("it's",), 2, "n & ~'it''s'")


def test_packed_cubes_are_a_sequence() -> None:
    packed = pack([(2, -1), (), (3,)], ("a", "b", "c"))
    assert [str(cube) for cube in packed] == ["~a & b", "true", "c"]
    assert packed[-1] == packed[2]
    assert packed[1:] == [packed[1], packed[2]]
    assert str(packed) == "(~a & b) | true | c"
    assert str(pack([], ())) == "false"
    with pytest.raises(IndexError):
        packed[3]
