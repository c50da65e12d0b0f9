"""Tables from files: every cell becomes the truth its atom's name says, and a bad file is one clear line."""

import gzip
import lzma
import os
import subprocess
import sys
from io import BytesIO

import numpy as np
import pandas as pd
import pyarrow
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from lbm.errors import FileError
from lbm.training.data import examples as examples_module
from lbm.training.data import files
from lbm.training.data.examples import read_examples, read_rows
from lbm.training.data.files import open_table
from lbm.training.data.rows import MISSING, Rows

COLOURS = ["red", "green", "1", "two words", 'comma, quote " and\nline', "ünï"]


@pytest.fixture
def write(tmp_path):
    """Write a file and return its path."""

    def make(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


@pytest.fixture
def small_parts(monkeypatch):
    """Read a few rows at a time, and decide by few."""

    def make(*, cells=8, head=5):
        monkeypatch.setattr(files, "CHUNK_CELLS", cells)
        monkeypatch.setattr(examples_module, "CHUNK_CELLS", cells)
        monkeypatch.setattr(files, "HEAD_ROWS", head)

    return make


# --- what cells become ---------------------------------------------------------------------------

cells = {
    "flag": st.sampled_from([0, 1, None]),
    "truth": st.sampled_from([True, False]),
    "size": st.none() | st.integers(-3, 9) | st.floats(-5, 5).map(lambda x: round(x, 2)),
    "colour": st.none() | st.sampled_from(COLOURS),
    "y": st.sampled_from(["yes", "no", "perhaps"]),
}


@st.composite
def frames(draw):
    rows = draw(st.lists(st.fixed_dictionaries(cells), min_size=3, max_size=20))
    frame = pd.DataFrame(rows)
    frame["flag"] = frame["flag"].astype("float64")
    frame["size"] = frame["size"].astype("float64")
    # The first rows decide what a column is: text here, and numbers there.
    frame.loc[0, "colour"], frame.loc[1, "colour"] = "red", "green"
    frame.loc[0, "size"], frame.loc[1, "size"] = 2.5, -1.0
    return frame[draw(st.permutations(list(cells)))]


def truth(atom, row):
    """What an atom's name says of a row, None where it is missing: 255."""
    if " <= " in atom:
        column, _, value = atom.partition(" <= ")
        return MISSING if pd.isna(row[column]) else int(row[column] <= float(value))
    if " = " in atom:
        column, _, value = atom.partition(" = ")
        cell = row[column]
        return MISSING if pd.isna(cell) else int(cell.replace("\n", "\\n") == value)
    return MISSING if pd.isna(row[atom]) else int(row[atom])


def as_file(frame, kind, folder, group=4):
    if kind == "csv":
        frame.to_csv(folder / "table.csv", index=False)
        return folder / "table.csv"
    frame.to_parquet(folder / "table.parquet", row_group_size=group)
    return folder / "table.parquet"


@settings(max_examples=12)
@given(frames(), st.sampled_from(["csv", "parquet"]), st.integers(2, 40), st.booleans())
def test_every_cell_becomes_what_the_names_of_its_atoms_say(tmp_path_factory, frame, kind, size, few):
    path = as_file(frame, kind, tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_CELLS", size)
        patch.setattr(examples_module, "CHUNK_CELLS", size)
        patch.setattr(files, "HEAD_ROWS", 3 if few else 100)
        found = read_examples(open_table(path), "y")
    assert found.atoms.dtype == np.uint8
    assert found.atoms.shape == (len(frame), len(found.layout.atoms))
    rows = frame.to_dict("records")
    assert [[truth(atom, row) for atom in found.layout.atoms] for row in rows] == found.atoms.tolist()
    assert found.classes.tolist() == sorted(set(frame["y"]))
    assert [found.classes[kind] for kind in found.kinds] == frame["y"].tolist()


@settings(max_examples=12)
@given(frames(), st.sampled_from(["csv", "parquet"]))
def test_rows_to_predict_are_those_of_the_file_whatever_the_order_of_its_columns(
    tmp_path_factory, frame, kind
):
    folder = tmp_path_factory.getbasetemp()
    learned = read_examples(open_table(as_file(frame, kind, folder)), "y")
    other = frame[sorted(frame.columns)].assign(more=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "CHUNK_CELLS", 10)
        table = open_table(as_file(other, kind, folder))
        parts = list(read_rows(table, learned.layout, target="y", classes=["no", "yes"]))
    rows = pd.concat([part for part, _, _ in parts], ignore_index=True)
    kinds = np.concatenate([kinds for _, _, kinds in parts])
    atoms = np.concatenate([atoms for _, atoms, _ in parts])
    wanted = [[truth(atom, row) for atom in learned.layout.atoms] for row in frame.to_dict("records")]
    assert np.nan_to_num(atoms, nan=MISSING).tolist() == wanted
    assert tuple(rows.columns) == learned.layout.columns
    assert kinds.tolist() == [{"no": 0, "yes": 1}.get(kind, -1) for kind in frame["y"]]
    used = {learned.layout.columns[i] for i in (*learned.layout.plain, *learned.layout.encoded)}
    for column in used:
        both = zip(rows[column].tolist(), frame[column].tolist(), strict=True)
        assert all(a == b or (pd.isna(a) and pd.isna(b)) for a, b in both)


@given(
    st.lists(st.lists(st.sampled_from([0, 1, MISSING]), min_size=3, max_size=3), min_size=1, max_size=9),
    st.data(),
)
def test_a_batch_of_bytes_is_the_rows_with_nan_where_they_are_missing(rows, data):
    numbers = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12)), dtype=np.int64)
    compact = Rows(np.array(rows, dtype=np.uint8), dtype=torch.float64)
    wanted = [[np.nan if v == MISSING else float(v) for v in rows[i]] for i in numbers.tolist()]
    assert len(compact) == len(rows)
    found = compact.batch(numbers)
    assert found.dtype == torch.float64
    assert np.array_equal(found.numpy(), np.array(wanted).reshape(-1, 3), equal_nan=True)


@pytest.mark.parametrize(
    ("column", "classes"),
    [
        ([True, False, True], [False, True]),
        ([2, 0, 2], [0, 2]),
        ([1.0, 0.0, 1.0], [0.0, 1.0]),
        (["b", "a", "c"], ["a", "b", "c"]),
        (["7", "x", "7"], ["7", "x"]),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_classes_keep_their_type(tmp_path, column, classes, kind):
    path = as_file(pd.DataFrame({"a": [0, 1, 0], "y": column}), kind, tmp_path)
    found = read_examples(open_table(path), "y").classes.tolist()
    assert list(map(repr, found)) == list(map(repr, classes))


def test_text_stays_text_where_a_part_of_a_file_looks_like_numbers(write, small_parts):
    small_parts(cells=2, head=2)
    path = write("zip,y\n007,a\nB1,b\n8,a\n007,b\n")
    found = read_examples(open_table(path), "y")
    assert found.layout.atoms == ("zip = 007", "zip = B1")
    assert found.atoms.tolist() == [[1, 0], [0, 1], [0, 0], [1, 0]]


def test_a_column_that_is_constant_at_first_is_kept_where_the_file_goes_on(write, small_parts):
    rows = "".join(f"{int(i > 7)},{i % 2},{i % 2}\n" for i in range(9))
    assert read_examples(open_table(write("late,a,y\n" + rows)), "y").layout.constant == ()
    small_parts(head=4)
    found = read_examples(open_table(write("late,a,y\n" + rows)), "y")
    assert found.layout.atoms == ("late", "a")
    assert found.atoms[:, 0].tolist() == [0] * 8 + [1]


def test_columns_of_one_value_are_left_out_and_named(write):
    found = read_examples(open_table(write("a,one,none,y\n0,1,,0\n1,1,,1\n")), "y")
    assert found.layout.atoms == ("a",)
    assert (found.layout.constant, found.layout.empty) == (("one",), ("none",))


def test_knowledge_gets_the_thresholds_it_mentions(write):
    path = write("age,y\n10,0\n20,1\n30,1\n")
    found = read_examples(open_table(path), "y", mentioned=["age <= 12.5", "y"])
    assert "age <= 12.5" in found.layout.atoms


def test_a_file_may_begin_with_a_mark_of_its_encoding_and_hold_empty_lines(write):
    found = read_examples(open_table(write("\ufeffa,y\r\n\r\n0,no\r\n1,yes\r\n \r\n")), "y")
    assert found.layout.atoms == ("a",)
    assert found.atoms.tolist() == [[0], [1]]


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_packed_table_is_the_table(write, ending, pack):
    content = "flag,size,y\n" + "".join(f"{i % 2},{i},{'no' if i % 3 else 'yes'}\n" for i in range(200))
    plain = read_examples(open_table(write(content)), "y")
    found = read_examples(open_table(write(pack(content.encode()), f"table.csv{ending}")), "y")
    assert found.classes.tolist() == plain.classes.tolist()
    assert np.array_equal(found.atoms, plain.atoms)
    cut = pack(content.encode())[:-12]
    with pytest.raises(FileError, match="it ends before what is packed in it does"):
        open_table(write(cut, f"cut.csv{ending}"))


def test_the_index_of_a_frame_is_no_column(tmp_path):
    frame = pd.DataFrame({"a": [0, 1], "y": [0, 1]}, index=pd.Index([5, 6], name="number"))
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_table(tmp_path / "t.parquet").columns == ("a", "y")


# --- what is refused, and in which words ---------------------------------------------------------

BAD = {
    "empty": (b"", "expected a table, found an empty file"),
    "blank": (b"\n\n", "found empty lines only"),
    "names only": (b"a,y\n", "expected rows below the names of columns, found none"),
    "twice": (b"a,b,a\n1,2,3\n", "expected every column to have its own name, found 'a' twice: rename one"),
    "no name": (b",a,y\n0,1,2\n", "found none for column 1: name it or leave it out"),
    "short line": (b"a,b,y\n1,0,1\n1,0\n", "expected 3 cells in every line, found 2 in line 3"),
    "long line": (b"a,b,y\n1,0,1\n\n1,0,1,1\n", "expected 3 cells in every line, found 4 in line 4"),
    "longer rows": (b"a,y\n1,0,1\n1,0,1\n", "expected 2 cells in every line, found 3 in line 2"),
    "quoted short": (b'a,b,y\n"1","0","1"\n"1","0"\n', "expected 3 cells in every line, found 2 in line 3"),
    "open quote": (b'a,y\n1,0\n"1,0\n', "cannot read line 3: unexpected end of data"),
    "latin": ("a,y\n1,café\n".encode("latin-1"), "expected UTF-8 text, found other bytes in line 2"),
    "latin name": ("é,y\n1,0\n".encode("latin-1"), "expected UTF-8 text, found other bytes in line 1"),
    "zero": (b"a,y\n1,\x000\n", "expected text, found a zero byte in line 2"),
    "returns": (b"a,y\r1,0\r0,1\r", "end in a line feed, found a bare return in line 1"),
    "semicolons": (b"a;y\n1;0\n", "expected commas between columns, found ;"),
    "tabs": (b"a\ty\n1\t0\n", "expected commas between columns, found tabs"),
    "other target": (b"a,yy\n1,0\n", "expected a column 'y', found none; did you mean 'yy'?"),
    "no target": (b"first,second\n1,0\n", "expected a column 'y', found none: it has first, second"),
    "target only": (b"y\n1\n0\n", "expected columns beside the target 'y', found none"),
    "missing class": (b"a,y\n1,0\n0,\n", "found none in 1, the first row 2: fill in 'y'"),
    "numbers": (b"a,y\n1,0.5\n0,0.7\n", "expected classes in 'y', found 2 different values such as 0.5"),
    "infinite": (b"a,y\n1,0\ninf,1\n", "holds infinite numbers: make them missing (NaN) or finite"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_one_clear_line(name, write):
    content, message = BAD[name]
    path = write(content)
    with pytest.raises(FileError) as caught:
        read_examples(open_table(path), "y")
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_column_that_becomes_something_else_is_named_with_its_rows(write, small_parts):
    small_parts(cells=2, head=3)
    rows = "".join(f"{i % 2},{i % 2}\n" for i in range(6))
    with pytest.raises(FileError, match=r"rows 7 to 7: column 'a' .* the first 3 rows decide"):
        read_examples(open_table(write(f"a,y\n{rows}5,1\n")), "y")
    with pytest.raises(FileError, match=r"rows 7 to 7: column 'a' held only 0 and 1"):
        read_examples(open_table(write(f"a,y\n{rows}red,1\n")), "y")


def test_a_file_that_cannot_be_read_is_one_clear_line(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*none\.csv: No such file or directory"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(FileError, match="it is no regular file"):
        open_table(tmp_path)
    with pytest.raises(FileError, match="cannot read"):
        open_table("null\0character")


def table_bytes(**columns):
    held = BytesIO()
    parquet.write_table(pyarrow.table(columns), held)
    return held.getvalue()


def test_a_parquet_file_that_is_cut_damaged_or_odd_is_one_clear_line(write):
    whole = table_bytes(a=[0, 1, 0, 1] * 50, y=["p", "q"] * 100)
    cases = [whole[:40], whole[:-6], b"a,y\n1,0\n", b"PAR1" + bytes(200) + b"PAR1"]
    cases += [whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :] for place in (6, 60, -30, -60)]
    for data in cases:
        path = write(data, "t.parquet")
        try:
            found = read_examples(open_table(path), "y")
        except FileError as error:
            message = str(error)
        else:
            message = ""
            assert found.atoms.shape[0] == 200  # a byte that says nothing about the values
        assert "\n" not in message


def test_a_column_a_model_needs_is_asked_for_by_name_and_must_hold_what_it_held(write):
    learned = read_examples(open_table(write("alpha,beta,y\n0,1,0\n1,0,1\n")), "y")
    with pytest.raises(FileError, match="expected a column 'beta', found none; did you mean 'betta'"):
        list(read_rows(open_table(write("alpha,betta\n0,1\n")), learned.layout, target="y", classes=[0, 1]))
    with pytest.raises(
        FileError, match=r"rows 1 to 1: column 'beta' held only 0 and 1 in fit, and now holds 3"
    ):
        list(read_rows(open_table(write("alpha,beta\n0,3\n")), learned.layout, target="y", classes=[0, 1]))


# --- size ----------------------------------------------------------------------------------------

MEASURE = """
import resource, sys
import lbm.training.storage.checkpoint, lbm.views.commands.train, pandas, pyarrow.parquet, torch
from lbm.views.entry import main
torch.ones(300, 300) @ torch.ones(300, 300)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert main(["train", sys.argv[1], "--target", "y", "-o", sys.argv[2], "--epochs", "1"]) == 0
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("group", [50_000, 1_000_000])
def test_a_million_rows_of_200_columns_train_in_less_than_a_gibibyte(tmp_path, group):
    random = np.random.default_rng(0)
    rows = random.integers(0, 2, (1_000_000, 201), dtype=np.int8)
    columns = {f"x{i}": rows[:, i] for i in range(200)} | {"y": rows[:, 200]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet", row_group_size=group)
    arguments = [sys.executable, "-c", MEASURE, tmp_path / "t.parquet", tmp_path / "m"]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, env=os.environ)
    assert float(done.stdout.split()[-1]) < 1024
