"""The Python interpreter in a process: its version, the file that holds its symbols, and where they stand in memory.

Reads /proc/PID/maps and the mapped files, through /proc/PID/map_files (which is the very file that is mapped, also when it was
replaced since) or /proc/PID/root (checked to be the same inode). Nothing is touched. Standard library only, so that the
collectors' side can use `runtime_range` as well; a collector itself is one file and gets the range as an argument.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from knowledge.record import dataclass
from probes.capture.inject.elf import Elf, ElfError, Symbol, bias
from probes.capture.model import Python

ADD, RUN, RUNTIME, VERSION, READY = (
    "Py_AddPendingCall",
    "PyRun_SimpleString",
    "_PyRuntime",
    "Py_Version",
    "Py_IsInitialized",
)
FREE_THREADED = "_Py_DecRefShared"  # exported by builds without the GIL alone (Include/refcount.h)
_NAMES = (ADD, RUN, RUNTIME, VERSION, READY, FREE_THREADED, "Py_GetVersion")
_LIBRARY = re.compile(r"libpython(\d)\.(\d+)([a-z]*)\.(?:so|dylib)")
_PROGRAM = re.compile(r"python(\d)\.(\d+)([a-z]*)")
_SAYS = re.compile(
    rb"python(\d)\.(\d{1,2})[t]?\0"
)  # "lib/python3.8", which each interpreter has for finding its library
# PY_VERSION, which Py_GetVersion prints. A pattern that begins with plain bytes is sought at the speed of memory: what must not
# stand before them is looked for behind them.
_RELEASE = rb"(%d\.%d\.(?<![\d.]%b)\d{1,3}(?:(?:a|b|rc)\d{1,2})?\+?)\0"
_DELETED = " (deleted)"
_MOST_MAPS = 64 << 20
_MOST_FILES = 24  # that may be the interpreter: a process can map thousands of files with its name


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/PID/maps."""

    start: int
    end: int
    access: str  # rwxp
    offset: int
    device: str
    inode: int
    path: str  # as the kernel names it, without the mark of a deleted file
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Image:
    """A mapped ELF file and where it stands."""

    path: str  # as the process names it
    readable: str  # where it can be read from here
    bias: int
    symbols: dict[str, Symbol]
    machine: int = 0  # e_machine

    def address(self, name: str) -> int | None:
        """Address of a symbol in the process; None when the file does not define it."""
        symbol = self.symbols.get(name)
        return None if symbol is None else symbol.value + self.bias


def maps(pid: int) -> tuple[Mapping, ...]:
    """The mappings of a process in the order of addresses; none when they may not be read. Odd lines are left out."""
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as file:
            text = file.read(_MOST_MAPS).decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(parse(text))


def parse(text: str) -> Iterator[Mapping]:
    """Mappings out of the text of a maps file."""
    for line in text.split("\n"):
        words = line.split(None, 5)
        # 7f7faea1e000-7f7faea44000 r--p 00000000 fe:00 339380                     /usr/lib/x86_64-linux-gnu/libc.so.6
        if len(words) < 5:
            continue
        start, dash, end = words[0].partition("-")
        path = words[5] if len(words) > 5 else ""
        try:
            numbers = int(start, 16), int(end, 16), int(words[2], 16), int(words[4])
        except ValueError:
            continue
        if dash and min(numbers) >= 0:
            gone = path.endswith(_DELETED)
            name = path[: -len(_DELETED)] if gone else path
            yield Mapping(numbers[0], numbers[1], words[1], numbers[2], words[3], numbers[3], name, gone)


def read(pid: int) -> Python | None:
    """The interpreter of a process; None when none is mapped, or when that may not be seen."""
    mapped = maps(pid)
    image = _image_of(pid, mapped)
    files = {m.path.rpartition("/")[2] for m in mapped if m.inode}
    torch = "loaded" if any(name.startswith("libtorch") for name in files) else "absent"
    cuda = any(name.startswith("libcuda.so") for name in files)
    if image is None:
        return None
    version, release = _version(image)
    if version is None:
        return None
    return Python(version, release, image.path, torch, cuda)


def image(pid: int) -> Image | None:
    """The mapped file that holds the interpreter's symbols; None when there is none."""
    return _image_of(pid, maps(pid))


def free_threaded(found: Image) -> bool:
    """Whether this interpreter was built without the GIL."""
    name = found.path.rpartition("/")[2]
    match = _LIBRARY.search(name) or _PROGRAM.search(name)
    return FREE_THREADED in found.symbols or (match is not None and "t" in match[3])


def runtime_range(pid: int) -> tuple[int, int] | None:
    """First address of the object `_PyRuntime`, and the one behind it; None when it is not to be seen.

    Within it stand the GIL's mutex and condition: a thread that waits in futex on an address of it waits for the GIL.
    """
    found = image(pid)
    if found is None or RUNTIME not in found.symbols:
        return None
    start = found.symbols[RUNTIME].value + found.bias
    return start, start + found.symbols[RUNTIME].size


def library(pid: int, mapped: Iterable[Mapping], names: Iterable[str], wanted: Iterable[str]) -> Image | None:
    """The first mapped file whose name begins with one of `names` and which defines one of the symbols `wanted`."""
    rows, starts, wanted = tuple(mapped), tuple(names), tuple(wanted)
    for path, file in _files(rows).items():
        if path.rpartition("/")[2].startswith(starts):
            found = _open(pid, file, wanted)
            if found is not None and found.symbols:
                return found
    return None


def _image_of(pid: int, mapped: tuple[Mapping, ...]) -> Image | None:
    """Libraries named libpython first, then the program itself: distributions and conda link it into the program."""
    files = _files(mapped)
    try:
        program = str(Path(f"/proc/{pid}/exe").readlink()).removesuffix(_DELETED)
    except OSError:
        program = ""
    root = _root(pid)
    program = program.removeprefix(root) if root != "/" else program
    named = [p for p in files if _LIBRARY.search(p.rpartition("/")[2])]
    programs = [p for p in files if p and p in (program, root + program)]
    others = [p for p in files if _PROGRAM.fullmatch(p.rpartition("/")[2])]
    for path in list(dict.fromkeys([*named[:_MOST_FILES], *programs, *others[:_MOST_FILES]])):
        found = _open(pid, files[path], _NAMES)
        if found is not None and (RUNTIME in found.symbols or ADD in found.symbols):
            return found
    return None


def _root(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/root").readlink())
    except OSError:
        return "/"


def _files(mapped: Iterable[Mapping]) -> dict[str, list[Mapping]]:
    """The mapped files that have an executable part."""
    files: dict[str, list[Mapping]] = {}
    for row in mapped:
        if row.inode and row.path.startswith("/"):
            files.setdefault(row.path, []).append(row)
    return {p: rows for p, rows in files.items() if any("x" in r.access for r in rows)}


def _open(pid: int, rows: list[Mapping], names: tuple[str, ...]) -> Image | None:
    first = rows[0]
    exact = f"/proc/{pid}/map_files/{first.start:x}-{first.end:x}"
    for path in (exact, *_paths(pid, first)):
        with suppress(OSError, ElfError), Elf(path) as elf:
            starts: dict[int, int] = {}
            for row in rows:
                starts.setdefault(row.offset, row.start)
            moved = 0 if elf.fixed else bias(elf.segments, starts)
            if moved is not None:
                return Image(first.path, path, moved, elf.symbols(names), elf.machine)
    return None


def _paths(pid: int, row: Mapping) -> tuple[str, ...]:
    """Where a mapped file stands by name: only when it is still the file that is mapped."""
    inside = row.path
    root = _root(pid)
    if root != "/" and inside.startswith(root + "/"):  # the kernel names it as seen by us, for a chroot below our root
        inside = inside.removeprefix(root)
    path = f"/proc/{pid}/root{inside}"
    try:
        same = Path(path).stat().st_ino == row.inode
    except OSError:
        return ()
    # devices are not compared: overlayfs and btrfs show another one in maps than in stat
    return (path,) if same and not row.deleted else ()


def _version(found: Image) -> tuple[tuple[int, int] | None, str]:
    """Version and release: from Py_Version (3.11 and later), else from the names and the strings of the file."""
    with suppress(OSError, ElfError), Elf(found.readable) as elf:
        if VERSION in found.symbols:
            return _from_number(int.from_bytes(elf.read(found.symbols[VERSION].value, 4), "little"))
        data = b"".join(_constants(elf))
        name = found.path.rpartition("/")[2]
        match = _LIBRARY.search(name) or _PROGRAM.search(name) or _SAYS.search(data)
        if match is not None:
            version = int(match[1]), int(match[2])
            release = re.search(_RELEASE % (*version, rb"%d\.%d\." % version), data)
            return version, release[1].decode().rstrip("+") if release else ""
    return None, ""


def _from_number(number: int) -> tuple[tuple[int, int] | None, str]:
    """PY_VERSION_HEX: 0x030b07f0 is 3.11.7."""
    major, minor, micro, level, serial = (
        number >> 24,
        number >> 16 & 255,
        number >> 8 & 255,
        number >> 4 & 15,
        number & 15,
    )
    if major not in (3, 4):
        return None, ""
    end = {0xA: f"a{serial}", 0xB: f"b{serial}", 0xC: f"rc{serial}"}.get(level, "")
    return (major, minor), f"{major}.{minor}.{micro}{end}"


def _constants(elf: Elf) -> Iterator[bytes]:
    """The read-only parts of a file, where strings stand."""
    for segment in elf.segments:
        if segment.in_file <= 64 << 20:
            yield elf.read(segment.address, segment.in_file) if segment.in_file else b""
