"""Byte streams for the log scanner: files, pipes, gzip, zstd, xz, bzip2 and journals, read up to where they break."""

from __future__ import annotations

import errno
import fcntl
import io
import os
import stat
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Protocol, cast

from knowledge.errors import InputError
from knowledge.language import Text

if TYPE_CHECKING:
    import subprocess

CHUNK = 256 * 1024  # compressed bytes fed at once
_SIP = 16 * 1024  # of formats in which damage takes along what one step would have given
_GZIP = b"\x1f\x8b"
_JOURNAL = b"LPKSHHRH"
_MOST_JOURNAL = 4 << 30  # bytes: journald keeps no more in all (journald.conf(5), SystemMaxUse)
_XZ = b"\xfd7zXZ\x00"
_BZIP2 = (b"1AY&", b"\x17rE8")  # behind "BZh" and a digit: the first block, or the end of an empty file
_XZ_MEMORY = 128 << 20  # bytes: xz -9 needs 65 MiB to unpack
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # behind one byte 0x50..0x5f
# What cannot be scanned, by its first bytes, and what to do instead.
_FOREIGN = (
    (_JOURNAL, "a binary systemd journal: export it with `journalctl --file {name} -a -o short-iso-precise`",
     "systemd 二进制日志：请用 `journalctl --file {name} -a -o short-iso-precise` 导出"),
    (b"PK\x03\x04", "a zip archive: unpack it first", "zip 压缩包：请先解压"),
    (b"\x7fELF", "a program, not a log", "可执行文件，不是日志"),
    (b"\xff\xfe", "UTF-16 text: convert it with `iconv -f UTF-16 -t UTF-8 {name}`",
     "UTF-16 文本：请用 `iconv -f UTF-16 -t UTF-8 {name}` 转换"),
    (b"\xfe\xff", "UTF-16 text: convert it with `iconv -f UTF-16 -t UTF-8 {name}`",
     "UTF-16 文本：请用 `iconv -f UTF-16 -t UTF-8 {name}` 转换"),
)  # fmt: skip


class Reader(Protocol):
    """Text bytes in order. `problem` says, once the end is reached, why it came too early."""

    @property
    def problem(self) -> Text | None:
        """None where the end is that of the file."""
        ...

    @property
    def consumed(self) -> int:
        """Bytes taken from the file, before unpacking."""
        ...

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end."""
        ...


class Plain:
    """A stream that is not compressed, `ahead` being its first bytes."""

    def __init__(self, raw: BinaryIO, ahead: bytes) -> None:
        self._raw = raw
        self._ahead = ahead
        self.problem: Text | None = None
        self.consumed = len(ahead)

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end, also where the medium fails."""
        if self._ahead:
            out, self._ahead = self._ahead[:size], self._ahead[size:]
            return out
        try:
            out = self._raw.read(size) or b""
        except OSError as error:
            why = error.strerror or str(error)
            self.problem = Text(
                f"reading failed after {self.consumed} bytes ({why}); everything up to there was used",
                f"读取 {self.consumed} 字节后出错（{why}）；此前的内容均已使用",
            )
            return b""
        self.consumed += len(out)
        return out


class _Ahead:
    """A reader whose first bytes, `ahead`, were looked at."""

    def __init__(self, reader: Reader, ahead: bytes) -> None:
        self._reader = reader
        self._ahead = ahead

    @property
    def problem(self) -> Text | None:
        """That of the reader."""
        return self._reader.problem

    @property
    def consumed(self) -> int:
        """That of the reader."""
        return self._reader.consumed

    def read(self, size: int) -> bytes:
        """At most `size` bytes; empty at the end."""
        if self._ahead:
            out, self._ahead = self._ahead[:size], self._ahead[size:]
            return out
        return self._reader.read(size)


class _Unpacker:
    """What the packed formats share: the raw side, the count of what came out, and the verdict."""

    def __init__(self, raw: Reader) -> None:
        self.raw = raw
        self.problem: Text | None = None
        self.written = 0
        self.ended = False

    @property
    def consumed(self) -> int:
        """Bytes taken from the file."""
        return self.raw.consumed

    def broken(self, why: str, zh: str) -> None:
        """Stop: nothing behind this point can be read."""
        self.ended = True
        where = f"after {self.written} bytes of text"
        self.problem = self.raw.problem or Text(
            f"{why} {where}; everything up to there was used",
            f"{zh}（已解出 {self.written} 字节）；此前的内容均已使用",
        )


class Gzip(_Unpacker):
    """Members of gzip, one behind the other."""

    def __init__(self, raw: Plain) -> None:
        super().__init__(raw)
        self._inflate = zlib.decompressobj(31)
        self._input = b""

    def read(self, size: int) -> bytes:
        """At most `size` bytes of text."""
        while not self.ended:
            if self._inflate.eof and not self._next_member():
                break
            if not self._input:
                self._input = self.raw.read(CHUNK)
            if not self._input:
                self.broken("the gzip data is cut off", "gzip 数据不完整")
                break
            if out := self._step(size):
                self.written += len(out)
                return out
        return b""

    def _step(self, size: int) -> bytes:
        before = self._inflate.copy()
        try:
            out = self._inflate.decompress(self._input, size)
        except zlib.error as error:
            return self._salvage(before, error)
        self._input = self._inflate.unconsumed_tail or self._inflate.unused_data
        return out

    def _salvage(self, state: zlib._Decompress, error: zlib.error) -> bytes:
        """What can be had of the input in which the data turns bad, byte by byte at the end."""
        out: list[bytes] = []
        data, step = self._input, max(1, len(self._input) // 8)
        while data:
            before = state.copy()
            try:
                out.append(state.decompress(data[:step]))
                data = data[step:]
            except zlib.error:
                if step == 1:
                    break
                state, step = before, max(1, step // 8)
        text = b"".join(out)
        self.written += len(text)
        reason = str(error).rpartition(": ")[2]
        self.broken(f"the gzip data is damaged ({reason})", f"gzip 数据损坏（{reason}）")
        self.written -= len(text)  # counted again by the caller
        return text

    def _next_member(self) -> bool:
        """Go on to another member, if one follows; zero padding is not one."""
        rest = self._input
        while True:
            rest = rest.lstrip(b"\0")
            if len(rest) >= 2:
                break
            more = self.raw.read(CHUNK)
            if not more:
                break
            rest += more
        if not rest:
            self.ended = True
            return False
        if not rest.startswith(_GZIP):
            self.broken("bytes that are no gzip data follow the gzip data", "gzip 数据之后还有其他字节")
            return False
        self._input = rest
        self._inflate = zlib.decompressobj(31)
        return True


class Zstd(_Unpacker):
    """Frames of zstd, one behind the other, decoded block by block.

    A block holds at most 128 KiB of text, so that memory stays bounded whatever the ratio, and
    the end of the data shows whether the last frame is whole, which the library does not tell.
    RFC 8878, section 3.1.1.
    """

    def __init__(self, raw: Plain) -> None:
        super().__init__(raw)
        import zstandard

        self._library = zstandard
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._checksum = False
        self._text = b""

    def read(self, size: int) -> bytes:
        """At most `size` bytes of text."""
        while not self._text and not self.ended:
            try:
                self._text = self._block() if self._frame else self._open()
            except self._library.ZstdError as error:
                why = str(error).rpartition(": ")[2]
                self.broken(f"the zstd data is damaged ({why})", f"zstd 数据损坏（{why}）")
            except EOFError:
                self.broken("the zstd data is cut off", "zstd 数据不完整")
        out, self._text = self._text[:size], self._text[size:]
        self.written += len(out)
        return out

    def _exactly(self, size: int) -> bytes:
        out = b""
        while len(out) < size:
            part = self.raw.read(size - len(out))
            if not part:
                raise EOFError
            out += part
        return out

    def _open(self) -> bytes:
        """Read the header of the next frame."""
        first = self.raw.read(1)
        if not first:
            self.ended = True
            return b""
        magic = first + self._exactly(3)
        if magic[0] >> 4 == 5 and magic[1:] == _SKIPPABLE:
            self._exactly(int.from_bytes(self._exactly(4), "little"))
            return b""
        if magic != _ZSTD:
            self.broken("bytes that are no zstd data follow the zstd data", "zstd 数据之后还有其他字节")
            return b""
        descriptor = self._exactly(1)
        bits = descriptor[0]
        single = bits >> 5 & 1
        size = (0 if single else 1) + (0, 1, 2, 4)[bits & 3] + ((1 if single else 0), 2, 4, 8)[bits >> 6]
        self._checksum = bool(bits >> 2 & 1)
        self._frame = self._library.ZstdDecompressor().decompressobj()
        return self._frame.decompress(magic + descriptor + self._exactly(size))

    def _block(self) -> bytes:
        """Decode the next block; behind the last one the frame is closed."""
        assert self._frame is not None
        header = self._exactly(3)
        value = int.from_bytes(header, "little")
        content = self._exactly(1 if value >> 1 & 3 == 1 else value >> 3)
        out = self._frame.decompress(header + content)
        if value & 1:
            if self._checksum:
                self._text = out  # keep it if the checksum is missing or wrong
                out += self._frame.decompress(self._exactly(4))
            self._frame = None
        return out


class _Stepped(Protocol):
    """What the decompressors of `lzma` and `bz2` share."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /, max_length: int = -1) -> bytes: ...


class _Streams(_Unpacker):
    """Streams of xz or bzip2, one behind the other, unpacked in small steps: memory stays bounded whatever the ratio."""

    kind: ClassVar[str]

    def __init__(self, raw: Plain) -> None:
        super().__init__(raw)
        self._input = b""
        self._faults: tuple[type[Exception], ...] = (OSError, ValueError)  # what a decompressor raises
        self._stream = self._fresh()

    def _fresh(self) -> _Stepped:
        raise NotImplementedError

    def _begins(self, data: bytes) -> bool:
        """Whether `data`, 8 bytes or what there is, opens a stream."""
        raise NotImplementedError

    def read(self, size: int) -> bytes:
        """At most `size` bytes of text."""
        while not self.ended:
            if self._stream.eof and not self._next_stream():
                break
            if self._stream.needs_input and not self._input:
                self._input = self.raw.read(_SIP)
                if not self._input:
                    self.broken(f"the {self.kind} data is cut off", f"{self.kind} 数据不完整")
                    break
            try:
                out = self._stream.decompress(self._input, min(size, 4 * _SIP))
            except self._faults as error:
                self._damaged(error)
                break
            self._input = self._stream.unused_data if self._stream.eof else b""
            if out:
                self.written += len(out)
                return out
        return b""

    def _damaged(self, error: Exception) -> None:
        why = str(error).rstrip(".").lower() or type(error).__name__
        self.broken(f"the {self.kind} data is damaged ({why})", f"{self.kind} 数据损坏（{why}）")

    def _next_stream(self) -> bool:
        """Go on to another stream, if one follows; zero padding is not one."""
        rest = self._input.lstrip(b"\0")
        while len(rest) < 8 and (more := self.raw.read(_SIP)):
            rest = (rest + more).lstrip(b"\0")
        if not rest:
            self.ended = True
            return False
        if not self._begins(rest):
            self.broken(
                f"bytes that are no {self.kind} data follow the {self.kind} data", f"{self.kind} 数据之后还有其他字节"
            )
            return False
        self._input = rest
        self._stream = self._fresh()
        return True


class Xz(_Streams):
    """xz, as logrotate writes it on some systems."""

    kind = "xz"

    def _fresh(self) -> _Stepped:
        import lzma

        self._faults = (lzma.LZMAError, MemoryError)
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def _begins(self, data: bytes) -> bool:
        return data.startswith(_XZ)


class Bzip2(_Streams):
    """bzip2."""

    kind = "bzip2"

    def _fresh(self) -> _Stepped:
        import bz2

        return bz2.BZ2Decompressor()

    def _begins(self, data: bytes) -> bool:
        return _is_bzip2(data)


class Journal(_Unpacker):
    """A binary journal of systemd, told by its own journalctl; that reads files only, so a stream is kept in one for as long.

    Format: systemd.io/JOURNAL_FILE_FORMAT. The program gets the open file and no shell; it ends with the reader.
    """

    def __init__(self, raw: Reader, program: str, stream: BinaryIO | None) -> None:
        super().__init__(raw)
        import tempfile

        self._child: subprocess.Popen[bytes] | None = None
        try:
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the program
            self._kept = stream if stream is not None and _is_file(stream) else self._spooled()
            # from 3 on: 0 would be the program's own standard input
            file = fcntl.fcntl(self._kept.fileno(), fcntl.F_DUPFD_CLOEXEC, 3)
            try:
                self._child = self._begun(program, file)
            finally:
                os.close(file)
        except OSError as error:  # no room for the copy, no more processes
            why = error.strerror or str(error)
            self.broken(f"journalctl cannot be asked ({why})", f"无法调用 journalctl（{why}）")

    def _begun(self, program: str, file: int) -> subprocess.Popen[bytes]:
        import subprocess

        argv = [
            program,
            "--file",
            f"/proc/self/fd/{file}",
            "--all",
            "--output=short-iso-precise",
            "--no-pager",
            "--quiet",
        ]
        env = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said, env=env, pass_fds=[file]
        )

    def _spooled(self) -> BinaryIO:
        """A copy of the stream in a file. OSError where it has no room, or is more than a journal may be."""
        import tempfile

        kept = tempfile.NamedTemporaryFile(prefix="gpudiag-")  # noqa: SIM115 - gone with the reader; journalctl wants a name
        size = 0
        while part := self.raw.read(CHUNK):
            size += len(part)
            if size > _MOST_JOURNAL:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            kept.write(part)
        kept.flush()
        return cast("BinaryIO", kept)

    def read(self, size: int) -> bytes:
        """At most `size` bytes of text."""
        if self.ended or self._child is None or self._child.stdout is None:
            return b""
        if out := self._child.stdout.read(size):
            self.written += len(out)
            return out
        self.ended = True
        self._child.stdout.close()
        code = self._child.wait()
        self._said.seek(0)
        said = self._said.read(4096).decode("utf-8", "replace").strip().split("\n")[0]
        self._said.close()
        if self.raw.problem is not None:
            self.problem = self.raw.problem
        elif code or said:
            why = said or f"exit code {code}"
            self.broken(f"journalctl cannot read all of it ({why})", f"journalctl 无法完整读取（{why}）")
        return b""


def _is_file(stream: BinaryIO) -> bool:
    """Whether it is a file of the disk, whose beginning the program can be given again."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError, AttributeError):
        return False


def _is_bzip2(head: bytes) -> bool:
    return head.startswith(b"BZh") and head[3:4].isdigit() and head[4:8] in _BZIP2


STDIN = "stdin"  # the name for people of what is piped in


def opened(item: str | Path | BinaryIO) -> tuple[str, BinaryIO, int | None, bool]:
    """Name for people, stream, size in bytes if known, and whether to close it. InputError when it cannot be opened."""
    if not isinstance(item, str | Path):
        name = getattr(item, "name", "-")
        return (name if isinstance(name, str) else "-"), item, None, False
    if str(item) == "-":
        return STDIN, sys.stdin.buffer, None, False
    path = Path(item)
    if path.is_dir():
        raise InputError(f"{path} is a directory", hint=f"name the files in it, for instance {path}/*")
    try:
        stream = io.FileIO(path, "rb")
        size = path.stat().st_size
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except PermissionError:
        raise InputError(f"{path} may not be read by this user", hint="kernel logs often need root: try sudo") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    return str(path), io.BufferedReader(stream, 1 << 16), size or None, True


def unpacked(raw: BinaryIO) -> Reader:
    """A reader of the text in `raw`, recognised by its first bytes and not by its name; a journal may be packed."""
    ahead = b""
    plain = Plain(raw, b"")
    while len(ahead) < 8 and (part := plain.read(8 - len(ahead))):
        ahead += part
    plain = Plain(raw, ahead) if plain.problem is None else plain
    packed: Reader | None = None
    if ahead.startswith(_GZIP):
        packed = Gzip(plain)
    elif ahead.startswith(_ZSTD) or (len(ahead) >= 4 and ahead[0] >> 4 == 5 and ahead[1:4] == _SKIPPABLE):
        packed = Zstd(plain)
    elif ahead.startswith(_XZ):
        packed = Xz(plain)
    elif _is_bzip2(ahead):
        packed = Bzip2(plain)
    reader: Reader = plain
    if packed is not None:
        ahead = b""
        while len(ahead) < len(_JOURNAL) and (part := packed.read(len(_JOURNAL) - len(ahead))):
            ahead += part
        reader = _Ahead(packed, ahead)
    if ahead.startswith(_JOURNAL):
        import shutil

        if program := shutil.which("journalctl"):
            return Journal(reader, program, raw if packed is None else None)
    return reader


def foreign(head: bytes, name: str, *, packed: bool = False) -> Text | None:
    """Why `head` is not the beginning of a text; None when it may be one. `packed`: it came out of a compressed file.

    A crash leaves runs of zero bytes in a log: those do not make it a binary file.
    """
    for magic, en, zh in _FOREIGN:
        if head.startswith(magic) and (len(magic) > 2 or b"\0" in head):
            if packed and "{name}" in en:  # the command reads the file itself, not what it holds
                en, zh = f"{en} (FILE: the unpacked file)", f"{zh}（FILE：解压后的文件）"
                name = "FILE"
            return Text(f"is {en.format(name=name)}", f"是 {zh.format(name=name)}")
    body = head.replace(b"\0", b"")
    controls = len(body) - len(body.translate(None, bytes(set(range(32)) - {9, 10, 12, 13, 27}) + b"\x7f"))
    if controls * 20 > len(body):
        return Text("is a binary file, not a log", "是二进制文件，不是日志")
    return None
