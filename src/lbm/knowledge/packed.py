"""Files as bytes: unpacked where they are packed (.gz, .xz, .bz2), and written whole or not at all."""

from __future__ import annotations

import io
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from lbm.errors import FileError, LbmError, LimitExceeded

MAX_BYTES: Final = 1 << 31
"""Bytes in one file."""

MAX_UNPACKED: Final = 1 << 30
"""Bytes that a packed file may hold."""

MAX_RATIO: Final = 400
"""How many times its own size a packed file may hold, if that is more than a few megabytes."""

PACKED: Final = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\x00", ".bz2": b"BZh"}
"""What packed files begin with, by the ending of their names."""

_FEW: Final = 1 << 25  # bytes up to which nobody asks how small they were
_PIECE: Final = 1 << 20


# --- reading -------------------------------------------------------------------------------------


def read_whole(path: str | Path) -> bytes:
    """Return the bytes of a file; those of a packed one as they were before.

    Its first bytes say whether it is packed, whatever its name.
    """
    try:
        with as_path(path).open("rb") as file:
            return unpacked(file, path_shown(path), ending=Path(path).suffix.lower())
    except OSError as error:
        raise file_error("read", path, error) from error


def read_lines(path: str | Path) -> str:
    """Return the text of a file in UTF-8, unpacked if it is packed; its lines end in line feeds."""
    return read_whole(path).decode().replace("\r\n", "\n").replace("\r", "\n")


def unpacked(file: Any, name: str, *, ending: str = "") -> bytes:
    """Return what a stream holds, unpacked if it is packed; ``name`` is what messages call it."""
    stream = opened(file, name, ending=ending)
    chunks: list[bytes] = []
    size = 0
    # Piece by piece: a device or a pipe may never end, and few bytes may hold very many.
    while chunk := stream.read(_PIECE):
        chunks.append(chunk)
        size += len(chunk)
        if stream.packed and size > MAX_UNPACKED:
            raise LimitExceeded(
                f"{name} holds more than {MAX_UNPACKED} bytes (limit MAX_UNPACKED)", MAX_UNPACKED=MAX_UNPACKED
            )
        if not stream.packed and size > MAX_BYTES:
            raise LimitExceeded(
                f"{name} has more than {MAX_BYTES} bytes (limit MAX_BYTES)", MAX_BYTES=MAX_BYTES
            )
    return b"".join(chunks)


def opened(file: Any, name: str, *, ending: str = "") -> Unpacked:
    """Return a stream of what another one holds, unpacked if it is packed."""
    start = file.read(_PIECE)
    how = next((ending for ending, magic in PACKED.items() if start.startswith(magic)), None)
    if how is None and ending in PACKED and start:
        raise FileError(f"cannot read {name}: its name ends in {ending}, and it is not packed like that")
    return Unpacked(_Counted(start, file), how, name)


def is_packed(start: bytes) -> bool:
    """Return whether a file that begins like this is packed."""
    return any(start.startswith(magic) for magic in PACKED.values())


def bare_name(path: str | Path) -> Path:
    """Return a name without the ending that says how it is packed.

    >>> bare_name("rules.cnf.gz").name, bare_name("rules.cnf").name
    ('rules.cnf', 'rules.cnf')
    """
    found = as_path(path)
    return found.with_suffix("") if found.suffix.lower() in PACKED else found


class Unpacked(io.BufferedIOBase):
    """A stream of what a file holds; what is wrong with a packed one is an error of ours.

    Attributes
    ----------
    packed
        Whether the file is packed.
    """

    def __init__(self, file: _Counted, how: str | None, name: str) -> None:
        import bz2
        import gzip
        import lzma

        raw = cast("BinaryIO", file)
        makers: dict[str | None, Any] = {
            None: lambda: file,
            ".gz": lambda: gzip.GzipFile(fileobj=raw),
            ".bz2": lambda: bz2.BZ2File(raw),
            ".xz": lambda: lzma.LZMAFile(raw),  # noqa: SIM115 - closed with the file
        }
        self.file, self.how, self.name = file, how, name
        self.reader = makers[how]()
        self.packed = how is not None
        self.size = 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes, or all that are left."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_PIECE), b""))
        return self._told(lambda: self.reader.read(size))

    read1 = read

    def readline(self, size: int | None = -1, /) -> bytes:
        """Return the next line."""
        return self._told(lambda: self.reader.readline(-1 if size is None else size))

    def _told(self, read: Callable[[], bytes]) -> bytes:
        import lzma
        import zlib
        from gzip import BadGzipFile

        try:
            found = read()
        except EOFError:
            raise FileError(f"cannot read {self.name}: it ends before what is packed in it does") from None
        except (BadGzipFile, zlib.error, lzma.LZMAError) as error:
            raise self._damaged(error) from None
        except OSError as error:
            if self.how == ".bz2" and error.errno is None:  # as bz2 says it
                raise self._damaged(error) from None
            raise
        self.size += len(found)
        if self.packed and self.size > max(_FEW, MAX_RATIO * self.file.taken):
            raise LimitExceeded(
                f"{self.name} holds more than {MAX_RATIO} times its own size (limit MAX_RATIO): "
                "unpack it first if it is meant to",
                MAX_RATIO=MAX_RATIO,
            )
        return found

    def _damaged(self, error: Exception) -> FileError:
        return FileError(f"cannot read {self.name}: what is packed in it is damaged ({error})")

    def close(self) -> None:
        """Close the file, too."""
        self.file.file.close()
        super().close()


class _Counted(io.RawIOBase):
    """A stream that knows how many bytes were taken from it."""

    def __init__(self, start: bytes, file: Any) -> None:
        self.start, self.file, self.taken = start, file, 0

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Put the next bytes into a buffer; return how many."""
        found, self.start = self.start[: len(buffer)], self.start[len(buffer) :]
        found = found or self.file.read(len(buffer))
        buffer[: len(found)] = found
        self.taken += len(found)
        return len(found)


# --- writing -------------------------------------------------------------------------------------


def write_whole(path: str | Path, pieces: Iterable[str | bytes], *, as_it_is: bool = False) -> None:
    """Write a file so that whatever happens it is the old one or the new one, never half of either.

    It is packed if its name says so, unless it is to be written as it is; the same content gives the same
    bytes.
    """
    try:
        target = Path(os.path.realpath(as_path(path)))  # a link stays a link
        data = _packing(pieces, "" if as_it_is else as_path(path).suffix.lower())
        if target.exists() and not target.is_file():
            # /dev/stdout and pipes are written to, never replaced; a directory fails here.
            with target.open("wb") as file:
                file.writelines(data)
            return
        # In the same directory, where taking the other's place is one step.
        partial = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with partial.open("xb") as file:
                file.writelines(data)
            if target.exists():
                shutil.copymode(target, partial)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        if isinstance(error, LbmError):  # of whoever makes the pieces
            raise
        raise file_error("write", path, error) from error


def _packing(pieces: Iterable[str | bytes], ending: str) -> Iterator[bytes]:
    """Return pieces as bytes, packed as the ending of a name says."""
    data = (piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    if ending not in PACKED:
        return data
    import bz2
    import lzma
    import zlib

    packers: dict[str, Any] = {
        ".gz": lambda: zlib.compressobj(wbits=31),  # with a header of gzip, in which no time stands
        ".bz2": bz2.BZ2Compressor,
        ".xz": lzma.LZMACompressor,
    }
    return _packed(data, packers[ending]())


def _packed(pieces: Iterator[bytes], packer: Any) -> Iterator[bytes]:
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


# --- names ---------------------------------------------------------------------------------------


def as_path(path: str | Path) -> Path:
    """Return a path that the system can at least look for."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"expected the path of a file, got {path!r}")
    try:
        usable = b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        usable = False
    if not usable:
        raise FileError(f"no file can be called {os.fspath(path)!a}")
    return Path(path)


def file_error(verb: str, path: str | Path, error: OSError) -> FileError:
    """Return the error that says what could not be done with a file."""
    if isinstance(error, FileError):
        return error
    return FileError(f"cannot {verb} {path_shown(path)}: {error.strerror or error}")


def path_shown(path: str | Path) -> str:
    """Return a path as one line can show it."""
    name = os.fspath(path)
    return name if name.isprintable() else ascii(name)
