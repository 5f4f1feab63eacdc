"""Dynamic symbols of an ELF64 file: where a function or an object stands in it.

Read from the program headers alone, as the dynamic linker does: section headers may be stripped. The file may be
anything, hostile or cut off: each offset is held against the file's size, each count against what the file can hold,
and what does not fit is `ElfError`. Standard library only.

Layout: System V ABI, chapters 4 and 5 (https://refspecs.linuxfoundation.org/elf/gabi4+/contents.html); DT_GNU_HASH: the
`l_gnu_*` fields of glibc's elf/dl-lookup.c.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from types import TracebackType

from knowledge.record import dataclass

LITTLE, CLASS64 = 1, 2
ET_EXEC, ET_DYN = 2, 3
EM_X86_64, EM_AARCH64 = 62, 183
PT_LOAD, PT_DYNAMIC = 1, 2
PF_X = 1
MOST_HEADERS = 1024  # program headers; real files have about 15
MOST_SYMBOLS = 1 << 22  # libtorch_cuda has about 200,000
MOST_READ = 1 << 28  # bytes of one table
_PAGE = 4096

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_ENTRY = struct.Struct("<qQ")


class ElfError(ValueError):
    """This file cannot be read as an ELF64 file: the message says where it fails."""


class Kind(IntEnum):
    """Types of symbols that matter here; others are OTHER."""

    NOTYPE = 0
    OBJECT = 1
    FUNCTION = 2
    TLS = 6
    IFUNC = 10  # its value is a resolver, not the function
    OTHER = 15


class _Tag(IntEnum):
    NULL, HASH, STRTAB, SYMTAB, STRSZ, SYMENT = 0, 4, 5, 6, 10, 11
    GNU_HASH = 0x6FFFFEF5


@dataclass(frozen=True, slots=True)
class Symbol:
    """One defined dynamic symbol."""

    name: str
    value: int  # address before relocation
    size: int  # bytes
    kind: Kind


@dataclass(frozen=True, slots=True)
class Segment:
    """One PT_LOAD: what of the file stands where in memory."""

    offset: int
    address: int
    in_file: int  # bytes
    in_memory: int
    flags: int

    @property
    def executable(self) -> bool:
        """Whether code stands in it."""
        return bool(self.flags & PF_X)


class Elf:
    """One ELF64 little-endian file, open for reading; a context manager. ElfError for what is none, OSError as reading raises it."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            self.size = os.fstat(self._fd).st_size
            self._read_headers()
            self._dynamic = self._read_dynamic()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Elf:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    # -- what stands in the headers

    def _read_headers(self) -> None:
        try:
            ident, kind, machine, _, _, at, _, _, _, size, count, *_ = _HEADER.unpack(self._at(0, _HEADER.size))
        except struct.error as error:  # pragma: no cover - _at gives as much as is asked
            raise ElfError("the header is cut off") from error
        if ident[:4] != b"\x7fELF":
            raise ElfError("no ELF file")
        if ident[4] != CLASS64 or ident[5] != LITTLE:
            raise ElfError("not 64 bits, little-endian")
        if kind not in (ET_EXEC, ET_DYN):
            raise ElfError(f"neither a program nor a library (type {kind})")
        if size != _PROGRAM.size or not 0 < count <= MOST_HEADERS:
            raise ElfError(f"{count} program headers of {size} bytes")
        self.machine = machine
        self.fixed = kind == ET_EXEC  # loaded where its addresses say
        table = self._at(at, size * count)
        rows = list(_PROGRAM.iter_unpack(table))
        self.segments = tuple(Segment(r[2], r[3], r[5], r[6], r[1]) for r in rows if r[0] == PT_LOAD)
        dynamic = [r for r in rows if r[0] == PT_DYNAMIC]
        self._dynamic_at = (dynamic[0][2], dynamic[0][5]) if dynamic else (0, 0)

    def _read_dynamic(self) -> dict[int, int]:
        at, size = self._dynamic_at
        size -= size % _ENTRY.size
        entries: dict[int, int] = {}
        for tag, value in _ENTRY.iter_unpack(self._at(at, size)) if size > 0 else ():
            if tag == _Tag.NULL:
                break
            entries.setdefault(tag, value)
        return entries

    # -- bytes

    def _at(self, offset: int, size: int) -> bytes:
        """`size` bytes from `offset` of the file, all of them or ElfError."""
        if not 0 <= size <= MOST_READ or offset < 0 or offset + size > self.size:
            raise ElfError(f"{size} bytes at {offset} are not in the file")
        data = os.pread(self._fd, size, offset)
        if len(data) != size:
            raise ElfError(f"the file ends within {size} bytes at {offset}")
        return data

    def offset(self, address: int) -> int:
        """Where in the file the byte of an address before relocation stands. ElfError when it is in no segment's file part."""
        for segment in self.segments:
            if segment.address <= address < segment.address + segment.in_file:
                return segment.offset + address - segment.address
        raise ElfError(f"the address {address:#x} is in no segment")

    def read(self, address: int, size: int) -> bytes:
        """`size` bytes at an address before relocation, as the file has them. ElfError when they are not there."""
        return self._at(self.offset(address), size)

    # -- symbols

    def symbols(self, names: Iterable[str]) -> dict[str, Symbol]:
        """The defined symbols among `names`; those that are not there are left out. ElfError for a broken table."""
        wanted = set(names)
        found: dict[str, Symbol] = {}
        if self._dynamic.get(_Tag.GNU_HASH):
            table = _GnuHash(self, self._dynamic[_Tag.GNU_HASH])
            for name in sorted(wanted):
                for index in table.candidates(name):
                    symbol = self._symbol(index)
                    if symbol is not None and symbol.name == name:
                        found[name] = symbol
                        break
            return found
        for symbol in self.all_symbols():
            if symbol.name in wanted:
                found.setdefault(symbol.name, symbol)
        return found

    def all_symbols(self) -> Iterator[Symbol]:
        """Every defined dynamic symbol, in the table's order."""
        for index in range(self._count()):
            symbol = self._symbol(index)
            if symbol is not None:
                yield symbol

    def _count(self) -> int:
        """Length of the symbol table, which only the hash tables tell."""
        if self._dynamic.get(_Tag.HASH):
            (count,) = struct.unpack("<I", self.read(self._dynamic[_Tag.HASH] + 4, 4))
        elif self._dynamic.get(_Tag.GNU_HASH):
            count = _GnuHash(self, self._dynamic[_Tag.GNU_HASH]).count()
        else:
            return 0
        if not 0 <= count <= MOST_SYMBOLS or count * _SYMBOL.size > self.size:
            raise ElfError(f"{count} symbols do not fit into the file")
        return int(count)

    def _symbol(self, index: int) -> Symbol | None:
        """The symbol of an index; None when it is only asked for here and defined elsewhere."""
        table = self._dynamic.get(_Tag.SYMTAB)
        if not table or self._dynamic.get(_Tag.SYMENT, _SYMBOL.size) != _SYMBOL.size:
            raise ElfError("there is no symbol table")
        name, info, _, section, value, size = _SYMBOL.unpack(self.read(table + index * _SYMBOL.size, _SYMBOL.size))
        if section == 0:
            return None
        kind = info & 15
        known = Kind(kind) if kind in (0, 1, 2, 6, 10) else Kind.OTHER
        return Symbol(self._name(name), value, size, known)

    def _name(self, at: int) -> str:
        table, size = self._dynamic.get(_Tag.STRTAB), self._dynamic.get(_Tag.STRSZ, 0)
        if not table or at >= size:
            raise ElfError(f"name at {at} of a string table of {size} bytes")
        start = self.offset(table + at)
        data = os.pread(self._fd, min(size - at, 512), start)
        name, end, _ = data.partition(b"\0")
        if not end and len(data) < 512:
            raise ElfError("the string table is cut off")
        return name.decode("ascii", "replace")


class _GnuHash:
    """DT_GNU_HASH: buckets of chains of symbols, with a Bloom filter before them that is not needed here."""

    def __init__(self, elf: Elf, at: int) -> None:
        self._elf = elf
        self._buckets: int
        self._first: int
        self._buckets, self._first, words, _ = struct.unpack("<IIII", elf.read(at, 16))
        if not 0 < self._buckets <= MOST_SYMBOLS or words > MOST_SYMBOLS:
            raise ElfError(f"a hash table of {self._buckets} buckets")
        self._bucket_at = at + 16 + 8 * words
        self._chain_at = self._bucket_at + 4 * self._buckets

    def candidates(self, name: str) -> Iterator[int]:
        """Indices of symbols whose hash is that of `name`."""
        wanted = gnu_hash(name)
        index = self._word(self._bucket_at, wanted % self._buckets)
        for _ in range(MOST_SYMBOLS):
            if index < self._first:
                return
            value = self._word(self._chain_at, index - self._first)
            if value | 1 == wanted | 1:
                yield index
            if value & 1:
                return
            index += 1

    def count(self) -> int:
        """Number of symbols: the end of the chain of the highest bucket."""
        data = self._elf.read(self._bucket_at, 4 * self._buckets)
        index = max(struct.unpack(f"<{self._buckets}I", data))
        if index < self._first:
            return int(self._first)
        while index < MOST_SYMBOLS:
            if self._word(self._chain_at, index - self._first) & 1:
                return int(index) + 1
            index += 1
        raise ElfError("a chain of symbols without end")

    def _word(self, at: int, index: int) -> int:
        (word,) = struct.unpack("<I", self._elf.read(at + 4 * index, 4))
        return int(word)


def gnu_hash(name: str) -> int:
    """Hash of a name as DT_GNU_HASH has it (Bernstein's, 32 bits)."""
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def bias(segments: Iterable[Segment], mapped: Mapping[int, int]) -> int | None:
    """What is added to an address before relocation, given the mappings of the file as {offset in the file: start address}.

    None when no mapping is one of a segment.
    """
    for segment in segments:
        start = mapped.get(segment.offset - segment.offset % _PAGE)
        if start is not None:
            return start - (segment.address - segment.address % _PAGE)
    return None
