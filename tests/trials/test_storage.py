"""Tables are read as they were written."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lbm.errors import FileError
from lbm.trials.part import Piece
from lbm.trials.selecting import where
from lbm.trials.storage import check_row, read_csv, write_csv

PART = SimpleNamespace(NAME="made", REVISION=1, COLUMNS={"n": int, "x": float, "word": str})
rows = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(),
        "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "word": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0")),
    }
)


@given(st.lists(rows, max_size=5))
def test_a_table_is_read_as_it_was_written(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("table") / "made.csv"
    write_csv(path, PART, table)
    assert read_csv(path, PART) == table
    first = path.read_bytes()
    write_csv(path, PART, read_csv(path, PART))
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "row",
    [
        {"n": 1, "x": 1.0},
        {"n": True, "x": 1.0, "word": ""},
        {"n": 1, "x": float("nan"), "word": ""},
        {"n": 1.5, "x": 1.0, "word": ""},
        {"n": 1, "x": 1.0, "word": None},
    ],
)
def test_a_row_that_does_not_fit_is_refused(row):
    with pytest.raises(ValueError, match=r"^expected .*, got"):
        check_row(PART, row)


@pytest.mark.parametrize("text", ["n,x\n1,2\n", "n,x,word\n1,two,a\n", "n,x,word\n1\n", ""])
def test_a_table_that_does_not_fit_is_named_with_its_file(tmp_path, text):
    path = tmp_path / "made.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=r"made\.csv"):
        read_csv(path, PART)
    with pytest.raises(FileError, match=r"none\.csv"):
        read_csv(tmp_path / "none.csv", PART)


def test_rows_of_a_piece_are_those_with_its_key():
    table = [{"n": n, "x": 0.0, "word": word} for n in (1, 2) for word in "ab"]
    assert where(table, **Piece({"n": 2, "word": "b"}, 1.0).key) == [table[3]]
    assert where(table, **Piece({"n": 3}, 1.0).key) == []
