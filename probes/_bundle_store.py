"""The files of a bundle: a folder, or an archive that is unpacked into a spool of bounded size.

Archives come from strangers. Nothing is written under a name that an archive gives; links,
devices, paths that lead out, two files of one name, and more than the limits are refused.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from knowledge.errors import InputError
from knowledge.record import dataclass

ENTRIES = 10_000
FILES = 2 * ENTRIES + 16  # an output and a stderr for each entry; folders and the manifest
UNPACKED = 1 << 30  # bytes
# An archive may be so many times its packed size beyond a first part: logs that repeat themselves are 30 times, zeros 1,000 times.
RATIO, SLACK = 100, 64 << 20  # bytes
MANIFEST = "manifest.json"
MANIFEST_CAP = 32 << 20  # bytes: 10,000 entries with long reasons have a third of it
_PATH = 1024  # characters of a path within a bundle
_MEMORY = 16 << 20  # bytes of the spool ahead of a temporary file
_CHUNK = 1 << 20
_BLOCK = 512
_HINT = "record it again with `gpudiag collect`, or check that it was copied whole"
# All that the readers of archives raise on bytes that are none.
_BROKEN = (
    tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, struct.error, EOFError, ValueError, OverflowError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


class Store(Protocol):
    """Files by their path within the bundle."""

    def manifests(self) -> list[str]:
        """Paths of the manifests at the top, or else in the folders at the top."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of a file; None when there is none of that name. InputError when it is no plain file."""
        ...

    def read(self, name: str) -> bytes | None:
        """Content of a file; None when there is none of that name, or it cannot be read."""
        ...


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def safe(name: str, where: str) -> str:
    """`name` when it stays within the bundle. InputError otherwise."""
    parts = name.split("/")
    strange = len(name) > _PATH or any(
        c in "\\:" or not c.isprintable() for c in name
    )  # half of a pair is not printable
    if not name or strange or name.startswith("/") or {"", ".", ".."} & set(parts):
        raise InputError(f"{where}: {name!r:.80} is no path within the bundle", hint="do not trust this file")
    return name


def opened(path: Path, limit: int = UNPACKED) -> Store:
    """The files at `path`, recognised by content. InputError when they cannot be read or break a rule."""
    try:
        if path.is_dir():
            return Folder(path)
        with path.open("rb") as stream:
            magic = stream.read(4)
            stream.seek(0)
            if magic[:2] == b"\x1f\x8b":
                return _tar(stream, str(path), limit)
            if magic[:2] == b"PK":
                return _zip(stream, str(path), limit)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or folder", hint="a bundle is what `gpudiag collect` writes") from None
    except _BROKEN as error:
        raise InputError(f"{path} is damaged or cut off: {error or type(error).__name__}", hint=_HINT) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", hint=_HINT) from None
    raise InputError(
        f"{path} is no bundle", hint="a bundle is a folder with manifest.json, or a .tar.gz or .zip of one"
    )


@dataclass(frozen=True, slots=True)
class Folder:
    """A bundle that lies unpacked; files are read when they are asked for."""

    root: Path

    def manifests(self) -> list[str]:
        """The manifest at the top, or those one folder down."""
        if (self.root / MANIFEST).exists():
            return [MANIFEST]
        return sorted(p.relative_to(self.root).as_posix() for p in self.root.glob(f"*/{MANIFEST}"))

    def size(self, name: str) -> int | None:
        """Bytes of a plain file. Neither it nor a folder on its way may be a link."""
        here, state = self.root, None
        try:
            for part in name.split("/"):
                here /= part
                state = here.lstat()
                if not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):  # a pipe would never end
                    raise InputError(f"{here} is a link or a device", hint="a bundle holds plain files only")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise InputError(f"{here} cannot be read: {error.strerror or error}") from None
        return state.st_size if state and stat.S_ISREG(state.st_mode) else None

    def read(self, name: str) -> bytes | None:
        """Content of a file."""
        try:
            return (self.root / name).read_bytes()
        except OSError:
            return None


@dataclass(slots=True)
class Spool:
    """A bundle that was packed: the bytes of its files in a temporary file that has no name."""

    data: IO[bytes]
    limit: int
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # path -> offset, size
    total: int = 0

    def manifests(self) -> list[str]:
        """The manifest at the top, or those one folder down."""
        if MANIFEST in self.places:
            return [MANIFEST]
        return sorted(n for n in self.places if n.endswith(f"/{MANIFEST}") and n.count("/") == 1)

    def size(self, name: str) -> int | None:
        """Bytes of a file."""
        return self.places[name][1] if name in self.places else None

    def read(self, name: str) -> bytes | None:
        """Content of a file."""
        if name not in self.places:
            return None
        offset, size = self.places[name]
        self.data.seek(offset)
        return self.data.read(size)

    def add(self, name: str, offset: int, size: int, where: str) -> None:
        """Note where a file lies."""
        name = safe(name.removeprefix("./"), where)
        if name in self.places:
            raise InputError(f"{where}: {name!r} is in it twice", hint="do not trust this file")
        if len(self.places) >= FILES:
            raise InputError(f"{where} holds more than {FILES} files", hint="do not trust this file")
        self.places[name] = offset, size
        self.total += size
        if self.total > self.limit:
            raise too_large(where, self.limit)


def too_large(where: str, limit: int) -> InputError:
    """The error for a bundle of more than `limit` bytes, unpacked."""
    return InputError(f"{where} holds more than {limit / 2**20:.4g} MiB", hint="do not trust this file")


def _whole_size(size: int, packed: int, where: str, limit: int) -> None:
    """InputError for an archive that would be larger than `limit`, or out of proportion to what it is packed."""
    if size > limit:
        raise too_large(where, limit)
    if size > SLACK + RATIO * packed:
        raise InputError(f"{where} holds more than {RATIO} times its own size", hint="do not trust this file")


def _spooled(source: _Readable, out: Spool, where: str, packed: Callable[[], int] | None = None) -> None:
    """Append `source` to the spool, as long as the limit allows. `packed`: how much of the file was read for it."""
    while part := source.read(_CHUNK):
        if packed is not None:
            _whole_size(out.data.tell() + len(part), packed(), where, out.limit + FILES * 2 * _BLOCK)
        if out.data.tell() + len(part) > out.limit + FILES * 2 * _BLOCK:  # headers of a tar come on top
            raise too_large(where, out.limit)
        out.data.write(part)


def _spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_MEMORY)


def _tar(stream: BinaryIO, where: str, limit: int) -> Spool:
    out = Spool(_spool(), limit)
    with gzip.open(stream) as plain:
        _spooled(plain, out, where, stream.tell)
    out.data.seek(0)
    for count, member in enumerate(_members(out.data)):
        if count > 2 * FILES:
            raise InputError(f"{where} holds more than {FILES} files", hint="do not trust this file")
        if member.size < 0:
            raise tarfile.ReadError("a size below zero")
        if member.isdir():
            continue
        if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.issparse():
            raise _unplain(where, member.name)
        out.add(member.name, member.offset_data, member.size, where)
    return out


class _Headers:
    """A tar for reading its headers: no header is as long as a header may claim to be."""

    def __init__(self, data: IO[bytes]) -> None:
        self._data = data

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= _CHUNK:
            raise tarfile.ReadError("a header of an impossible size")
        return self._data.read(size)

    def seek(self, offset: int) -> int:
        return self._data.seek(offset)

    def tell(self) -> int:
        return self._data.tell()


def _members(data: IO[bytes]) -> Iterator[tarfile.TarInfo]:
    archive = tarfile.open(fileobj=_Headers(data), mode="r:")  # type: ignore[call-overload]  # noqa: SIM115
    yield from archive


def _zip(stream: BinaryIO, where: str, limit: int) -> Spool:
    out = Spool(_spool(), limit)
    with contextlib.closing(zipfile.ZipFile(stream)) as archive:
        held = archive.infolist()  # what it says of itself: more than that is never read of a file
        _whole_size(sum(info.file_size for info in held), os.fstat(stream.fileno()).st_size, where, limit)
        for info in held:
            if info.is_dir():
                continue
            mode = info.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
                raise _unplain(where, info.filename)
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise NotImplementedError(f"{info.filename!r} is packed in a way that bundles do not use")
            if info.filename.rpartition("/")[2] == MANIFEST and info.file_size > MANIFEST_CAP:
                raise InputError(
                    f"{where}: {MANIFEST} is larger than {MANIFEST_CAP >> 20} MiB", hint="do not trust this file"
                )
            offset = out.data.tell()
            with archive.open(info) as member:
                _spooled(member, out, where)
            out.add(info.filename, offset, out.data.tell() - offset, where)
    return out


def _unplain(where: str, name: str) -> InputError:
    return InputError(f"{where}: {name!r} is a link or a device", hint="do not trust this file")
