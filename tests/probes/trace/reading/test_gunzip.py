"""Gzip up to the byte where it ends."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probes.trace.reading.document import _faults
from probes.trace.reading.gunzip import Gunzip


def everything(data: bytes, size: int = 1 << 20) -> tuple[bytes, Exception | None]:
    stream, out = Gunzip(io.BytesIO(data)), b""
    try:
        while part := stream.read1(size):
            out += part
    except _faults() as fault:
        return out, fault
    return out, None


@given(st.lists(st.binary(max_size=5000), min_size=1, max_size=4), st.integers(1, 4096), st.integers(0, 9))
def test_members_one_after_the_other(parts: list[bytes], size: int, zeros: int) -> None:
    data = b"".join(gzip.compress(p) for p in parts) + bytes(zeros)
    assert everything(data, size) == (b"".join(parts), None)


TEXT = b"".join(
    b'{"ph": "X", "ts": %d.%03d, "name": "kernel %d"},\n' % (i, i * 7 % 1000, i * i % 97) for i in range(9000)
)
PACKED = gzip.compress(TEXT)


@given(st.integers(20, len(PACKED) - 1))
def test_a_cut_costs_no_whole_line_but_the_last_few(cut: int) -> None:
    got, fault = everything(PACKED[:cut])
    assert isinstance(fault, EOFError)
    assert TEXT.startswith(got)
    import zlib

    told = zlib.decompressobj(31).decompress(PACKED[:cut])
    assert len(got) >= len(told) - 512  # what the bit buffers of another library hold back


def test_damage_costs_one_piece() -> None:
    data = bytearray(PACKED)
    half = len(data) // 2
    data[half : half + 64] = bytes(64)
    got, fault = everything(bytes(data))
    assert fault is not None
    import zlib

    sure = zlib.decompressobj(31).decompress(PACKED[: half - 4096])
    assert TEXT[: len(sure)] == got[: len(sure)]


@pytest.mark.parametrize("tail", [b"x", b"\0\0hello", b"\x1f"])
def test_what_is_no_gzip_behind_it_is_told_after_the_text(tail: bytes) -> None:
    got, fault = everything(PACKED + tail)
    assert got == TEXT
    assert fault is not None
