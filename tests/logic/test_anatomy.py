"""Views of formulae: the same truth, seen through negations."""

from hypothesis import given
from hypothesis import strategies as st

from lbm.knowledge.formula import Formula, atoms_of
from lbm.knowledge.parser import parse
from lbm.logic.anatomy import view
from tests.oracles import truth, worlds
from tests.strategies import formulae


@given(formulae(("a", "b", "c"), max_leaves=8), st.booleans())
def test_a_view_has_the_truth_of_what_it_looks_at(formula: Formula, positive: bool) -> None:
    seen = view(formula, positive)
    for world in worlds(atoms_of(formula)):
        values = [truth(part, world) is sign for part, sign in seen.parts]
        expected = truth(formula, world) is positive
        if seen.op == "count":
            least, most, inside = seen.label
            assert (least <= sum(values) <= most) is (expected if inside else not expected)
        else:
            found = {
                "and": all(values),
                "or": any(values),
                "literal": all(values),
                "constant": seen.label,
                "xor": (sum(values) % 2 == 1) is seen.label,
            }
            assert found[seen.op] is expected


def test_a_view_looks_through_nested_connectives_of_one_kind() -> None:
    seen = view(parse("~(a & (b & c) -> d)"))
    assert seen.op == "and"
    assert [(str(part), sign) for part, sign in seen.parts] == [
        ("a", True),
        ("b", True),
        ("c", True),
        ("d", False),
    ]


def test_what_is_to_stay_whole_stays_whole() -> None:
    inner = parse("b | c")
    assert view(parse("a | (b | c)"), whole={inner}).parts == ((parse("a"), True), (inner, True))
