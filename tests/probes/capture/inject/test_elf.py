"""Dynamic symbols: held against `nm`, and never anything but `ElfError` from a hostile file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.capture.inject import elf
from probes.capture.inject.elf import Elf, ElfError, Segment

NAMES = ("malloc", "free", "sem_post", "mmap", "no_such_name")


def libc() -> str:
    """The C library of this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(None, 5)[5] if len(line.split(None, 5)) > 5 else ""
        if path.rpartition("/")[2].startswith(("libc.so", "libc-", "ld-musl")):
            return path
    pytest.skip("no C library is mapped")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A library of a few kilobytes."""
    folder = tmp_path_factory.mktemp("elf")
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    source = folder / "a.c"
    source.write_text("int gpudiag_value = 7; int gpudiag_add(int a) { return a + gpudiag_value; } extern int puts(const char*);\n"
                      "void gpudiag_say(void) { puts(\"x\"); }\n")  # fmt: skip
    subprocess.run(["cc", "-shared", "-fPIC", "-s", "-o", str(folder / "a.so"), str(source)], check=True)
    return (folder / "a.so").read_bytes()


@pytest.mark.process
def test_symbols_are_those_that_nm_tells() -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    said = subprocess.run(["nm", "-D", "--defined-only", libc()], capture_output=True, text=True, check=True).stdout
    told: dict[str, set[int]] = {}
    for line in said.splitlines():
        value, _, name = line.split()
        told.setdefault(name.partition("@")[0], set()).add(int(value, 16))
    with Elf(libc()) as file:
        found: dict[str, set[int]] = {}
        for symbol in file.all_symbols():
            found.setdefault(symbol.name, set()).add(symbol.value)
        assert {n: v for n, v in told.items() if n in found} == {n: v for n, v in found.items() if n in told}
        assert len(found) >= len(told) * 0.99
        for name, symbol in file.symbols(NAMES).items():
            assert symbol.value in told[name]
            assert symbol.size > 0
        assert "no_such_name" not in file.symbols(NAMES)


@pytest.mark.process
@pytest.mark.parametrize("style", ["gnu", "sysv", "both"])
def test_both_kinds_of_hash_tables_and_no_section_headers(style: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    source, built = tmp_path / "a.c", tmp_path / "a.so"
    source.write_text("int one(void) { return 1; } int two(void) { return 2; } int data[10] = {1};")
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,--hash-style={style}", "-o", str(built), str(source)], check=True)
    data = bytearray(built.read_bytes())
    data[0x28:0x30] = bytes(8)  # e_shoff
    data[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
    built.write_bytes(data)
    with Elf(str(built)) as file:
        found = file.symbols(["one", "two", "data", "puts"])
        assert {n: s.kind for n, s in found.items()} == {
            "one": elf.Kind.FUNCTION, "two": elf.Kind.FUNCTION, "data": elf.Kind.OBJECT,
        }  # fmt: skip
        assert found["data"].size == 40
        assert {"one", "two", "data"} <= {s.name for s in file.all_symbols()}
        code = next(s for s in file.segments if s.executable)
        assert code.address <= found["one"].value < code.address + code.in_memory
        assert file.read(found["data"].value, 4) == b"\1\0\0\0"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not in the file"), (b"\x7fELF", "not in the file"), (b"#!/bin/sh\n" * 20, "no ELF"),
        (b"\x7fELF\1\1\1" + bytes(80), "not 64 bits"), (b"\x7fELF\2\2\1" + bytes(80), "not 64 bits"),
    ],
    ids=["empty", "cut", "script", "32 bits", "big-endian"],
)  # fmt: skip
def test_what_is_no_elf64(data: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(data)
    with pytest.raises(ElfError, match=says):
        Elf(str(file))


def exercise(path: Path) -> None:
    """Everything that is read out of a file; only ElfError may come of it."""
    try:
        with Elf(str(path)) as file:
            file.symbols(["gpudiag_add", "puts", ""])
            for number, _ in enumerate(file.all_symbols()):
                if number > 10_000:
                    break
            for segment in file.segments:
                file.read(segment.address, min(segment.in_file, 4096))
    except ElfError:
        pass


@pytest.mark.process
@settings(max_examples=300)
@given(st.data())
def test_law_a_changed_file_gives_symbols_or_an_elf_error(
    small: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.so"
    changed = bytearray(small)
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(changed) - 1) | st.integers(0, min(0x400, len(changed) - 1)))
        word = data.draw(st.binary(min_size=1, max_size=8) | st.just(b"\xff" * 8) | st.just(bytes(8)))
        changed[at : at + len(word)] = word
    path.write_bytes(changed[: data.draw(st.just(len(changed)) | st.integers(0, len(changed)))])
    exercise(path)


@given(st.binary(max_size=400))
def test_law_noise_behind_a_header(tmp_path_factory: pytest.TempPathFactory, noise: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "noise.so"
    path.write_bytes(b"\x7fELF\2\1\1" + noise)
    exercise(path)


def test_a_fifo_and_a_folder_are_errors_and_nothing_hangs(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "fifo")
    with pytest.raises((ElfError, OSError)):
        Elf(str(tmp_path / "fifo"))
    with pytest.raises((ElfError, OSError)):
        Elf(str(tmp_path))


def test_bias() -> None:
    segments = (Segment(0, 0x400000, 0x100, 0x100, 4), Segment(0x1000, 0x402000, 0x100, 0x100, 5))
    assert elf.bias(segments, {0: 0x7F0000400000}) == 0x7F0000000000
    assert elf.bias(segments, {0x1000: 0x7F0000402000}) == 0x7F0000000000
    assert elf.bias(segments, {0x5000: 1}) is None


@given(st.text(alphabet=st.characters(codec="ascii"), max_size=40))
def test_law_the_hash_is_bernsteins(name: str) -> None:
    value = 5381
    for letter in name:
        value = value * 33 + ord(letter)
    assert elf.gnu_hash(name) == value % 2**32


def test_this_interpreter_has_what_is_needed() -> None:
    from probes.capture.inject import interpreter

    found = interpreter.image(int(Path("/proc/self").resolve().name))
    assert found is not None
    assert {"Py_AddPendingCall", "PyRun_SimpleString", "_PyRuntime", "Py_IsInitialized"} <= set(found.symbols)
    assert interpreter.free_threaded(found) == (not getattr(sys, "_is_gil_enabled", lambda: True)())
