"""Networks of the UAI competitions: a world weighs the product of its entries; what is wrong is refused."""

import math
import time
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lbm
from lbm.errors import NoWorlds, ParseError
from lbm.knowledge.networks import mar_lines, network_theory, pr_lines, read_evidence, read_network
from lbm.knowledge.wire import load_theory, read_theory, sniff_format

entries = st.sampled_from(["0", "1", "1.0", "0.5", ".25", "2e-3", "7", "0.0"]) | st.decimals(
    0, 9, places=3
).map(str)


@st.composite
def networks(draw):
    """Draw the text of a network, its sizes, and its tables as plain lists."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    tables = []
    for _ in range(draw(st.integers(0, 4))):
        scope = draw(st.lists(st.integers(0, len(sizes) - 1), unique=True, max_size=3))
        size = math.prod(sizes[variable] for variable in scope)
        tables.append((scope, draw(st.lists(entries, min_size=size, max_size=size))))
    kind = draw(st.sampled_from(["MARKOV", "BAYES"]))
    scopes = "\n".join(" ".join(map(str, [len(scope), *scope])) for scope, _ in tables)
    values = "\n\n".join(f"{len(row)}\n {' '.join(row)}" for _, row in tables)
    text = f"{kind}\n{len(sizes)}\n{' '.join(map(str, sizes))}\n{len(tables)}\n{scopes}\n\n{values}\n"
    return text.encode(), sizes, tables


def weight(values, sizes, tables):
    """Return the product of the entries that values choose, exactly."""
    found = Fraction(1)
    for scope, row in tables:
        index = 0
        for variable in scope:
            index = index * sizes[variable] + values[variable]
        found *= Fraction(row[index])
    return found


def world_of(values, sizes):
    world = {}
    for variable, (value, size) in enumerate(zip(values, sizes, strict=True)):
        if size == 2:
            world[f"v{variable}"] = value == 1
        elif size > 2:
            world.update({f"v{variable} = {other}": other == value for other in range(size)})
    return world


@given(networks(), st.data())
def test_a_world_weighs_the_product_of_its_entries(drawn, data):
    text, sizes, tables = drawn
    network = read_network(text)
    assert network.sizes == tuple(sizes)
    assert network.bayes is text.startswith(b"BAYES")
    observed = data.draw(
        st.dictionaries(st.integers(0, len(sizes) - 1), st.integers(0, 2)).map(
            lambda found: {v: value for v, value in found.items() if value < sizes[v]}
        )
    )
    theory = network_theory(network, observed)
    total, chances = Fraction(0), [[Fraction(0)] * size for size in sizes]
    for values in product(*map(range, sizes)):
        right = weight(values, sizes, tables)
        if any(values[v] != value for v, value in observed.items()):
            right = Fraction(0)
        world = world_of(values, sizes)
        assert set(world) == set(theory.atoms)
        assert theory.is_model(world) is (right > 0)
        if right:
            assert float(theory.score(world)) == pytest.approx(math.log(right), abs=1e-12)
        total += right
        for variable, value in enumerate(values):
            chances[variable][value] += right
    if not total:
        with pytest.raises(NoWorlds):
            lbm.log_partition(theory)
        return
    z = lbm.log_partition(theory)
    assert z == pytest.approx(math.log(total), abs=1e-9)
    header, number = pr_lines(z)
    assert (header, float(number)) == ("PR", pytest.approx(math.log10(total), abs=1e-9))
    header, line = mar_lines(network.chances(lbm.marginals(theory)))
    words = line.split()
    assert (header, words.pop(0)) == ("MAR", str(len(sizes)))
    for row in chances:
        assert words.pop(0) == str(len(row))
        assert [float(words.pop(0)) for _ in row] == pytest.approx([float(p / total) for p in row], abs=1e-9)
    assert not words


def test_two_values_are_one_atom_and_more_are_a_group():
    theory = network_theory(read_network(b"c first\nMARKOV\n3\n2 3 1\n1\n2 0 1\n6\n1 2 3 0 2 2\n"))
    assert str(theory) == (
        "atoms v0, 'v1 = 0', 'v1 = 1', 'v1 = 2'\n"
        "exactly(1, 'v1 = 0', 'v1 = 1', 'v1 = 2')\n"
        "-0.693147180559945: ~v0 & 'v1 = 0'\n"
        "0.405465108108164: ~v0 & 'v1 = 2'\n"
        "~(v0 & 'v1 = 0')\n"
        "0.693147180559945: true"
    )


def test_evidence_has_two_dialects():
    network = read_network(b"MARKOV 3 2 2 3 0")
    for text in (b"2 0 1 2 2", b"2 0 1 2 2\r\n", b"1\n2 0 1 2 2\n", b"c seen\n2\n2 2\n0 1\n"):
        assert read_evidence(text, network) == {0: 1, 2: 2}
    for text in (b"0", b"", b"1 0", b"1\n0\n"):
        if text:
            assert read_evidence(text, network) == {}
    assert read_evidence(b"1 0 1", network) == {0: 1}


BEGIN = "MARKOV\n2\n2 3\n1\n2 0 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a network"),
        ("MARKOW 1", "1:1: expected MARKOV or BAYES, found 'MARKOW'"),
        ("MARKOV\nx", "2:1: expected the number of variables, from 0 to 10000000, found 'x'"),
        ("MARKOV\n-1", "found '-1'"),
        ("MARKOV\n99999999", "found '99999999'"),
        ("MARKOV\n2\n2", "3:2: expected how many values v1 has, from 1 to 10000000, found the end"),
        ("MARKOV\n1\n0", "3:1: expected how many values v0 has, from 1 to 10000000, found '0'"),
        ("MARKOV\n2\n9999999 9999999\n0", "limit MAX_ATOMS"),
        ("MARKOV\n1\n2\n1\n1 1\n2\n1 1", "5:3: expected a variable, from 0 to 0, found '1'"),
        (
            "MARKOV\n1\n2\n1\n2 0 0\n4\n1 1 1 1",
            "5:1: expected the number of variables of a table, from 0 to 1",
        ),
        ("MARKOV\n2\n2 2\n1\n2 0 0\n4\n1 1 1 1", "5:5: expected a variable once in a table, found '0'"),
        ("MARKOV\n0\n1\n1 0\n", "expected the number of variables of a table, from 0 to 0, found '1'"),
        (
            BEGIN + "5\n1 2 3 4 5",
            "6:1: expected 6 entries of table 0, as its variables have values, found '5'",
        ),
        (BEGIN + "6\n1 2 3 4 5", "7:10: expected 6 entries of table 0, found the end"),
        (BEGIN + "6\n1 2 3 4 5 6 7", "7:13: expected no more after the last table, found '7'"),
        (BEGIN + "6\n1 2 -0.5 4 5 6", "7:5: expected an entry of table 0, 0 or more, found '-0.5'"),
        (BEGIN + "6\n1 2 nan 4 5 6", "7:5: expected an entry of table 0, a number, found 'nan'"),
        (BEGIN + "6\n1 2 inf 4 5 6", "found 'inf'"),
        (BEGIN + "6\n1 2 1e9999 4 5 6", "found '1e9999'"),
        (BEGIN + "6\n1 2 1/2 4 5 6", "found '1/2'"),
        ("MARKOV\n3\n999 999 999\n1\n3 0 1 2\n997002999\n", "limit MAX_ENTRIES"),
    ],
)
def test_a_network_that_is_none_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(ParseError) as caught:
        read_network(text.encode(), source="a.uai") if text else read_theory(
            b" ", format="uai", source="a.uai"
        )
    assert message in str(caught.value) or (not text and "found an empty text" in str(caught.value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 2 0", "1:3: expected a variable, from 0 to 1, found '2'"),
        ("1 1 3", "1:5: expected a value of v1, from 0 to 2, found '3'"),
        ("1 1 -1", "found '-1'"),
        ("2 1 1", "expected a variable, from 0 to 1, found the end"),
        ("1 1 1 0 1", "1:7: expected no more after the evidence, found '0'"),
        ("3 1 1 1 2 0 1", "1:7: expected one value of v1, found '1'"),
        ("2\n1 0 1\n1 0 0\n1", "1:1: expected one sample of evidence, found '2'"),
        ("2\n1 0 1\n1 0 0", "1:1: expected one sample of evidence, found '2'"),
        ("x", "1:1: expected the number of observations, from 0 to 2, found 'x'"),
        ("", "expected the number of observations"),
    ],
)
def test_evidence_that_is_none_is_refused_where_it_is_wrong(text, message):
    network = read_network(b"MARKOV 2 2 3 0")
    if text.startswith("3 "):
        network = read_network(b"MARKOV 3 2 3 2 0")
    with pytest.raises(ParseError) as caught:
        read_evidence(text.encode(), network, source="a.evid")
    assert message in str(caught.value)


def test_files_are_networks_by_name_or_by_how_they_begin(tmp_path):
    text = "BAYES 1 2 1 1 0 2 0.25 0.75"
    assert (
        sniff_format(text) == sniff_format(f"c said\n {text}", "-") == sniff_format("", "a.uai.gz") == "uai"
    )
    assert sniff_format("MARKOV -> b") == "lbm"
    (tmp_path / "a.uai").write_text(text)
    (tmp_path / "a.evid").write_text("1 0 1")
    assert load_theory(tmp_path / "a.uai") == read_theory(text, format="uai")
    assert lbm.log_partition(load_theory(tmp_path / "a.uai", evidence=tmp_path / "a.evid")) == pytest.approx(
        math.log(0.75)
    )


@pytest.mark.parametrize(
    ("name", "known"), [("ChestClinic", -2.204641656), ("DBN_11", 134.771832332), ("Segmentation_11", None)]
)
def test_public_networks_say_what_their_translations_say(instances, name, known):
    place = instances / "uai"
    theory = load_theory(place / f"{name}.uai", evidence=place / f"{name}.uai.evid")
    if known is not None:
        assert lbm.log_partition(theory) == pytest.approx(known, abs=1e-8)
    else:
        other = load_theory(place / f"{name}.lbm")
        for value in (False, True):
            world = dict.fromkeys(theory.atoms, value)
            assert float(theory.score(world)) == pytest.approx(float(other.score(world)), abs=1e-6)


def test_a_table_of_a_hundred_thousand_entries_is_read_in_seconds():
    size = 17
    rows = " ".join(f"0.{number + 1}" for number in range(1 << size))
    scope = " ".join(map(str, range(size)))
    text = f"MARKOV {size} {'2 ' * size} 1 {size} {scope} {1 << size} {rows}"
    began = time.perf_counter()
    theory = network_theory(read_network(text.encode()))
    assert time.perf_counter() - began < 60
    assert len(theory) > 1 << 16
