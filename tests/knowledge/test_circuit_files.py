"""Circuits in files: what is read back, what is refused, and public ones with known counts."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import FileError, ParseError
from lbm.knowledge.circuit_files import (
    circuit_atoms,
    is_circuit,
    nnf_lines,
    parse_circuit,
    read_circuit,
    write_nnf,
)
from lbm.knowledge.circuits import PRODUCT, Builder


def values(circuit, world):
    """Return the number of ways in which a circuit is true in a world: 0 or 1 where it is deterministic."""
    found = [int(world[slot >> 1] == bool(slot & 1)) for slot in range(2 * circuit.variables)]
    starts, parts = circuit.starts.tolist(), circuit.parts.tolist()
    for gate, kind in enumerate(circuit.kinds.tolist()):
        row = [found[part] for part in parts[starts[gate] : starts[gate + 1]]]
        one = 1
        for value in row:
            one *= value
        found.append(one if kind == PRODUCT else sum(row))
    return found[circuit.root]


def models(circuit):
    """Return the worlds, as tuples of 0 and 1, in which a circuit is true."""
    return {world for world in product((False, True), repeat=circuit.variables) if values(circuit, world)}


def count(circuit):
    """Return the number of models of a circuit that keeps its promises: each literal holds in half of all."""
    found = [Fraction(1, 2)] * (2 * circuit.variables)
    starts, parts = circuit.starts.tolist(), circuit.parts.tolist()
    for gate, kind in enumerate(circuit.kinds.tolist()):
        total = Fraction(kind == PRODUCT)
        for part in parts[starts[gate] : starts[gate + 1]]:
            total = total * found[part] if kind == PRODUCT else total + found[part]
        found.append(total)
    return found[circuit.root] * 2**circuit.variables


@st.composite
def circuits(draw):
    """Decisions on one variable after the other, which share parts."""
    build = Builder(4)
    level = [build.true, build.false]
    for variable in range(4):
        new = []
        for _ in range(draw(st.integers(1, 3))):
            low, high = draw(st.sampled_from(level)), draw(st.sampled_from(level))
            yes, no = build.literal(variable, True), build.literal(variable, False)
            new.append(build.sum([build.product([no, low]), build.product([yes, high])]))
        level = [*new, draw(st.sampled_from(level))]
    return build.circuit(draw(st.sampled_from(level)))


@given(circuits())
def test_what_is_written_is_read_again(circuit):
    again = parse_circuit("".join(nnf_lines(circuit)).encode())
    assert again.variables == circuit.variables
    assert models(again) == models(circuit)
    assert count(again) == len(models(circuit))


def test_a_file_is_written_and_read_by_its_name(tmp_path):
    build = Builder(3)
    circuit = build.circuit(build.sum([1, build.product([0, 5])]))
    for name in ("a.nnf", "a.nnf.gz", "A.NNF"):
        write_nnf(circuit, tmp_path / name)
        assert models(read_circuit(tmp_path / name)) == models(circuit)
    assert circuit_atoms(circuit) == ("x1", "x2", "x3")
    assert is_circuit("a.sdd.xz")
    assert not is_circuit("a.cnf")
    (tmp_path / "a.nnf").rename(tmp_path / "a.foo")
    with pytest.raises(FileError, match=r"expected a name that ends in \.nnf or \.sdd"):
        read_circuit(tmp_path / "a.foo")


D4 = b"o 1 0\no 2 0\no 3 0\nt 4 0\n3 4 -2 3 0\n3 4 2 0\n2 3 -1 0\n2 4 1 0\n1 2 0\n"


def test_d4_puts_literals_on_edges():
    circuit = parse_circuit(D4)
    assert circuit.variables == 3
    right = {world for world in product((False, True), repeat=3) if any(world)}
    assert models(circuit) == right
    assert count(circuit) == 7
    assert parse_circuit(D4, variables=5).variables == 5


def test_d4_lines_come_in_any_order_and_its_whole_is_node_1_or_the_top():
    lines = D4.split(b"\n")
    assert models(parse_circuit(b"\n".join(reversed(lines)))) == models(parse_circuit(D4))
    renamed = b"o 9 0\nt 1 0\n9 1 2 0\n"
    assert models(parse_circuit(renamed)) == {(False, True), (True, True)}


def test_constants_are_circuits():
    assert count(parse_circuit(b"nnf 1 0 2\nA 0\n")) == 4
    assert count(parse_circuit(b"nnf 1 0 2\nO 0 0\n")) == 0
    assert count(parse_circuit(b"t 1 0\n", variables=2)) == 4
    assert count(parse_circuit(b"f 1 0\n", variables=2)) == 0
    assert count(parse_circuit(b"sdd 1\nT 0\n", sdd=True, variables=2)) == 4
    assert count(parse_circuit(b"c hello\nsdd 1\nF 0\n", sdd=True, variables=2)) == 0
    assert count(parse_circuit(b"sdd 1\nL 0 0 -2\n", sdd=True)) == 2


@pytest.mark.parametrize(
    ("name", "variables", "known"),
    [("road_r", 41, 4985868), ("sudoku_4", 64, 288), ("grid_4", 40, None), ("seq_fun", 500, None)],
)
def test_public_circuits_are_read(dataset, tmp_path, name, variables, known):
    circuit = read_circuit(dataset("structured") / f"{name}.sdd")
    assert circuit.variables == variables
    assert known is None or count(circuit) == known
    write_nnf(circuit, tmp_path / "a.nnf")
    assert count(read_circuit(tmp_path / "a.nnf")) == count(circuit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nnf 2 1 1\nA 1 1\nL 1\n", "2:1: no node 1 before this one: parts come before their wholes"),
        ("nnf 1 1 1\nA 1 0\n", "a circuit is never circular"),
        ("nnf 2 1 1\nL 2\nA 1 0\n", "2:1: the literal 2 is beyond the 1 variables there are"),
        ("nnf 1 0 1\nL 0\n", "2:1: expected a literal, found 0"),
        ("nnf 3 2 1\nL 1\nA 1 0\n", "1:1: the header promises 3 nodes, the file has 2"),
        ("nnf 2 2 1\nL 1\nA 1 0\n", "1:1: the header promises 2 edges, the file has 1"),
        ("nnf 2 1\nL 1\nA 1 0\n", "1:1: expected the header 'nnf NODES EDGES VARIABLES'"),
        ("nnf 0 0 1\n", "expected a node at least"),
        ("nnf 1 0 99999999999\nL 1\n", "limit MAX_ATOMS"),
        ("nnf 2 1 1\nL 1\nA 2 0\n", "3:1: expected 'L LITERAL', 'A PARTS ...' or 'O VARIABLE PARTS ...'"),
        ("nnf 2 1 1\nL 1\nX 1 0\n", "3:1: expected 'L LITERAL'"),
        ("nnf 2 1 1\nL x\nA 1 0\n", "2:1: expected whole numbers"),
        ("nnf 3 2 1\nL 1\nL -1\nA 2 0 1\n", "4:1: two parts of a product mention the variable 1"),
        (
            "o 1 0\no 2 0\n1 2 1 0\n2 1 -1 0\n",
            "1:1: the circuit is circular: every node is a part of another",
        ),
        ("o 1 0\no 2 0\no 3 0\n1 2 1 0\n2 3 2 0\n3 2 3 0\n", "6:1: the circuit is circular: node 2 is"),
        ("o 1 0\n1 2 1 0\n", "2:1: no node 2 in this file"),
        ("o 2 0\no 3 0\n", "1:1: expected one node that is no part of another, found 2"),
        ("o 1 0\no 1 0\n", "2:1: a second node 1"),
        ("o 1 1 0\n", "1:1: expected 'o NODE 0'"),
        ("o 1 0\nt 2 0\n1 2 1\n", "3:1: expected 'NODE NODE LITERALS ... 0'"),
        ("o 1 0\nt 2 0\n2 1 0\n1 2 0\n", "circular"),
        ("t 1 0\nt 2 0\n1 2 0\n", "3:1: an edge from node 1, a constant"),
        ("x 1 0\n", "1:1: expected the header 'nnf', a node o, a, t or f, or an edge, found 'x'"),
        ("a 1 0\nt 2 0\n1 2 1 0\n1 2 -1 0\n", "1:1: two parts of a product mention the variable 1"),
        ("c nothing\n", "expected a circuit, found an empty text"),
    ],
)
def test_an_nnf_that_is_none_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(ParseError) as caught:
        parse_circuit(text.encode(), source="a.nnf")
    assert message in str(caught.value)
    assert str(caught.value).startswith("a.nnf:")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sdd 2\nL 0 0 1\nD 1 1 1 0 7\n", "3:1: no node 7 before this one"),
        ("sdd 2\nD 1 1 1 0 0\nL 0 0 1\n", "2:1: no node 0 before this one"),
        ("sdd 1\nD 1 1 1 1 1\n", "2:1: no node 1 before this one"),
        ("sdd 3\nL 0 0 1\n", "1:1: the header promises 3 nodes, the file has 1"),
        ("sdd\nL 0 0 1\n", "1:1: expected the header 'sdd NODES'"),
        ("nnf 1 0 1\nL 1\n", "1:1: expected the header 'sdd NODES'"),
        ("sdd 2\nL 0 0 1\nL 0 0 2\n", "3:1: a second node 0"),
        ("sdd 1\nL 0 0\n", "2:1: expected 3 numbers behind L, found 2"),
        ("sdd 1\nD 0 0 2 1 1\n", "2:1: expected 7 numbers behind D, found 5"),
        ("sdd 1\nD 0 0\n", "2:1: expected 3 numbers behind D, found 2"),
        ("sdd 1\nQ 0 0\n", "2:1: expected a node L, D, T or F, found 'Q'"),
        ("sdd 1\nL 0 0 0\n", "2:1: expected a literal, found 0"),
        ("sdd 1\nL 0 0 99999999\n", "the literal 99999999 is beyond"),
        ("sdd 1\nL 0 0 1.5\n", "2:1: expected whole numbers"),
        ("sdd 3\nL 0 0 1\nL 1 0 -1\nD 2 1 1 0 1\n", "4:1: two parts of a product mention the variable 1"),
    ],
)
def test_an_sdd_that_is_none_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(ParseError) as caught:
        parse_circuit(text.encode(), source="a.sdd", sdd=True)
    assert message in str(caught.value)


def test_a_literal_beyond_the_number_told_is_refused():
    with pytest.raises(ParseError, match="the literal 3 is beyond the 2 variables there are"):
        parse_circuit(D4, variables=2)
    with pytest.raises(ValueError, match="MAX_ATOMS"):
        parse_circuit(D4, variables=-1)
