"""Packed files: the same bytes as before, and one clear error where they are cut, damaged or a bomb."""

import bz2
import gzip
import io
import lzma

import pytest

from lbm.errors import FileError, LimitExceeded
from lbm.knowledge import packed
from lbm.knowledge.packed import bare_name, read_whole, unpacked, write_whole
from lbm.knowledge.theory import Theory
from lbm.knowledge.wire import load_theory, save_theory, sniff_format

PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
TEXT = b"".join(b"%d -%d 0\n" % (i, i + 1) for i in range(1, 4000))


@pytest.fixture(params=PACK)
def ending(request):
    return request.param


def test_a_packed_file_holds_what_was_packed_whatever_its_name(tmp_path, ending):
    for name in (f"a.cnf{ending}", "a.cnf", "a"):
        (tmp_path / name).write_bytes(PACK[ending](TEXT))
        assert read_whole(tmp_path / name) == TEXT
    assert unpacked(io.BytesIO(PACK[ending](TEXT)), "input") == TEXT


def test_several_packed_parts_are_one_file(tmp_path, ending):
    (tmp_path / "a").write_bytes(PACK[ending](TEXT) + PACK[ending](b"more"))
    assert read_whole(tmp_path / "a") == TEXT + b"more"


def test_a_name_says_how_a_file_is_packed_when_it_is_written(tmp_path, ending):
    theory = Theory(["~a | b", (2, "~a")])
    for name in ("a.lbm", "a.wcnf"):
        path = tmp_path / (name + ending)
        save_theory(theory, path)
        assert path.read_bytes().startswith(packed.PACKED[ending])
        assert load_theory(path) == theory
        assert sniff_format(b"", path) == path.name.split(".")[1]
        first = path.read_bytes()
        save_theory(theory, path)
        assert path.read_bytes() == first
    write_whole(tmp_path / f"empty{ending}", [])
    assert read_whole(tmp_path / f"empty{ending}") == b""


def test_names_lose_one_ending():
    assert [bare_name(name).name for name in ("a.cnf.GZ", "a.gz.xz", "a.cnf", ".gz")] == [
        "a.cnf",
        "a.gz",
        "a.cnf",
        ".gz",
    ]


def test_a_file_cut_short_is_one_clear_error(tmp_path, ending):
    whole = PACK[ending](TEXT)
    for length in (8, len(whole) // 2, len(whole) - 1):
        (tmp_path / f"a.cnf{ending}").write_bytes(whole[:length])
        with pytest.raises(FileError, match=rf"cannot read .*a\.cnf\{ending}: it ends before what is packed"):
            load_theory(tmp_path / f"a.cnf{ending}")


def test_a_damaged_file_is_one_clear_error(tmp_path, ending):
    damaged = bytearray(PACK[ending](TEXT))
    damaged[len(damaged) // 2] ^= 0xFF
    damaged[-5] ^= 0xFF
    (tmp_path / "a").write_bytes(damaged)
    with pytest.raises(FileError, match=r"cannot read .*a: (what is packed in it is damaged|it ends before)"):
        read_whole(tmp_path / "a")


def test_a_name_that_promises_a_packed_file_is_held_to_it(tmp_path, ending):
    (tmp_path / f"a.cnf{ending}").write_bytes(b"p cnf 1 1\n1 0\n")
    with pytest.raises(FileError, match="it is not packed like that"):
        load_theory(tmp_path / f"a.cnf{ending}")


def test_a_bomb_is_refused_by_a_named_limit(tmp_path, monkeypatch, ending):
    (tmp_path / "bomb").write_bytes(PACK[ending](bytes(1 << 26)))
    with pytest.raises(
        LimitExceeded, match=r"bomb holds more than 400 times its own size \(limit MAX_RATIO\)"
    ):
        read_whole(tmp_path / "bomb")
    monkeypatch.setattr(packed, "MAX_UNPACKED", 1000)
    (tmp_path / "large").write_bytes(PACK[ending](TEXT))
    with pytest.raises(LimitExceeded, match=r"large holds more than 1000 bytes \(limit MAX_UNPACKED\)"):
        read_whole(tmp_path / "large")
