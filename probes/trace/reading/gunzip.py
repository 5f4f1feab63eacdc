"""Text out of gzip, up to the very byte where a file is cut off or damaged.

A reader that fails as a whole block loses what stands before the fault in it; a killed job's small trace is
one block. Here the compressed bytes are fed in small pieces, and a fault costs at most one.
"""

from __future__ import annotations

from typing import Any, BinaryIO, Final

_READ: Final = 1 << 18  # compressed bytes from the file at a time
_PIECE: Final = 2048  # that are inflated at a time: what damage may cost
_GZIP: Final = 31  # wbits: header and checksum of gzip (zlib.decompressobj)
_MAGIC: Final = b"\x1f\x8b"


class Gunzip:
    """A stream of one or more gzip members, read with `read1`."""

    def __init__(self, raw: BinaryIO) -> None:
        from isal import isal_zlib

        self._raw = raw
        self._new: Any = isal_zlib.decompressobj
        self._faults: Any = (EOFError, OSError, isal_zlib.error)
        self._inflate = self._new(_GZIP)
        self._input = b""
        self._at = 0
        self._fault: Exception | None = None
        self._begun = False  # this member has bytes

    def read1(self, size: int) -> bytes:
        """About `size` bytes of text; none at the end. A fault is raised when all that stands before it was given.

        EOFError for a file that is cut off, isal_zlib.error or OSError for a damaged one.
        """
        if self._fault is not None:
            raise self._fault
        parts: list[bytes] = []
        have = 0
        try:
            while have < size and (piece := self._piece()):
                text = self._inflate.decompress(piece)
                have += len(text)
                parts.append(text)
                if self._inflate.eof:
                    self._next_member()
        except self._faults as error:  # raised after the text before it was handed out
            self._fault = error
            if not have:
                raise
        return b"".join(parts)

    def _piece(self) -> bytes:
        """The next compressed bytes; none at a proper end. EOFError within a member."""
        if self._at >= len(self._input):
            self._input, self._at = self._raw.read(_READ), 0
            if not self._input and self._begun:
                raise EOFError("the compressed file ends before its end")
        piece = self._input[self._at : self._at + _PIECE]
        self._at += len(piece)
        self._begun = self._begun or bool(piece)
        return piece

    def _next_member(self) -> None:
        """Behind a member: another one, or padding of zeros up to the end (RFC 1952 knows none; tapes and tools do)."""
        self._input, self._at = self._inflate.unused_data + self._input[self._at :], 0
        self._inflate, self._begun = self._new(_GZIP), False
        while not self._input.strip(b"\0"):
            self._input = self._raw.read(_READ)
            if not self._input:
                return
        self._input = self._input.lstrip(b"\0")
        if len(self._input) < len(_MAGIC):
            self._input += self._raw.read(_READ)
        if not self._input.startswith(_MAGIC):
            raise OSError("what follows the compressed text is not gzip")

    def close(self) -> None:
        """Nothing to close: the file belongs to who opened it."""
