"""Conversations on disk: one compressed file each, so that a talk goes on in the next process.

What is kept holds log lines and command lines, so folder and files are their owner's alone. A file is replaced
at once or not at all; between reading and writing it a lock keeps others out, so that two turns at a time lose
none. Trouble costs the memory, never the answer: it becomes a line in `Dialogues.complaints`.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assistant.session.key import Key
from knowledge.language import Text
from knowledge.whole import private_folder, replace_file

if TYPE_CHECKING:
    from assistant.config import Settings

SCHEMA = "gpudiag/dialogue/1"
FOLDER = "dialogues"
SUFFIX, LOCK = ".json.gz", ".lock"
DAY = 86_400 * 10**9  # ns
LIMIT = 64 << 20  # bytes of JSON: a thousand turns over the largest bundle are below, and a parser stays bounded
PATIENCE = 90.0  # seconds to wait for another turn of the same conversation: all probes' budget three times over
_PRUNED = ".pruned"  # its time of change says when old files were looked for last


class Memory:
    """What `Dialogues.opened` gives: the state as it was kept, to be changed in place or put anew."""

    __slots__ = ("data",)

    def __init__(self, data: dict[str, Any] | None) -> None:
        self.data = data  # None: nothing was kept, or nothing is to be kept


class Dialogues:
    """The conversations of one folder."""

    def __init__(self, folder: Path, days: int = 7, clock: Callable[[], int] = time.time_ns) -> None:
        """`days` after its last turn a conversation is forgotten; 0 keeps nothing. `clock` tells ns UTC."""
        self.folder, self.days, self._clock = folder, days, clock
        self.complaints: list[Text] = []

    # --- one conversation -----------------------------------------------------------------

    def load(self, key: Key) -> dict[str, Any] | None:
        """What was kept under `key`; None when there is nothing, it is too old, or it cannot be understood."""
        if not self.days:
            return None
        path = self.folder / _name(key)
        try:
            raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if not self.complaints:  # that it cannot be written was said, and this is the same trouble
                self._complain(Text(f"{path} cannot be read: {error.strerror}; the conversation begins anew",
                                    f"无法读取 {path}：{error.strerror}；对话重新开始"))  # fmt: skip
            return None
        try:
            found = _unpacked(raw)
        except ValueError:
            self.set_aside(key, Text("is damaged", "已损坏"))
            return None
        if found.get("schema") != SCHEMA:
            self.set_aside(key, Text("was written by another version of gpudiag", "由其他版本的 gpudiag 写入"))
            return None
        data, saved = found.get("data"), found.get("saved")
        if found.get("key") != list(key) or not isinstance(data, dict) or not isinstance(saved, int):
            self.set_aside(key, Text("is damaged", "已损坏"))
            return None
        return data if self._clock() - saved <= self.days * DAY else None

    def save(self, key: Key, data: Mapping[str, Any]) -> bool:
        """Keep `data` (JSON; tuples come back as lists), whole or not at all. Whether it is kept."""
        with self._alone(key, PATIENCE) as alone:
            return alone and self._save(key, data)

    def forget(self, key: Key) -> bool:
        """Remove what is kept under `key`. Whether there was anything."""
        path = self.folder / _name(key)
        if not path.exists():
            return False
        with self._alone(key, PATIENCE):
            try:
                path.unlink()
            except FileNotFoundError:
                return False
            except OSError as error:
                self._complain(
                    Text(f"{path} cannot be removed: {error.strerror}", f"无法删除 {path}：{error.strerror}")
                )
                return False
        return True

    @contextmanager
    def opened(self, key: Key, patience: float = PATIENCE) -> Iterator[Memory]:
        """The state of a conversation, kept again when the body ends well: `Memory.data` as it is then, None forgets.

        Nobody else has it open meanwhile. Whoever has had it for longer than `patience` (seconds) keeps it: then
        the body runs with what was kept before, and what it adds is not kept.
        """
        with self._alone(key, patience) as alone:
            memory = Memory(self.load(key))
            before = memory.data
            yield memory
            if alone and memory.data is not None:
                self._save(key, memory.data)
            elif alone and before is not None:
                with suppress(OSError):
                    (self.folder / _name(key)).unlink(missing_ok=True)
        self._prune_daily()

    def set_aside(self, key: Key, why: Text) -> None:
        """What is kept under `key` is not understood: out of the way with it, never away. Says so."""
        path = self.folder / _name(key)
        aside = path.with_name(f"{path.name}.damaged")
        try:
            path.replace(aside)
        except OSError:
            self._complain(Text(f"{path} {why.en}; the conversation begins anew", f"{path} {why.zh}；对话重新开始"))
            return
        self._complain(Text(f"{path} {why.en}; the conversation begins anew, and it is kept as {aside.name}",
                            f"{path} {why.zh}；对话重新开始，原文件保留为 {aside.name}"))  # fmt: skip

    # --- all of them ----------------------------------------------------------------------

    def prune(self, now: int) -> int:
        """Remove conversations whose last turn is too old at `now` (ns UTC). How many there were.

        A conversation that somebody has open stays: it is not old.
        """
        oldest, gone = now - self.days * DAY, 0
        for path in self._files():
            with suppress(OSError):
                if self.days and path.stat().st_mtime_ns >= oldest:
                    continue
                if path.name.endswith((SUFFIX, LOCK)):
                    gone += self._removed(path.with_name(path.name.removesuffix(LOCK)), oldest)
                else:  # set aside, or left by a writer that was killed
                    path.unlink()
        return gone

    def _removed(self, path: Path, oldest: int) -> bool:
        with self._locked(path, 0.0) as alone:
            was = path.exists()
            if not alone or (self.days and was and path.stat().st_mtime_ns >= oldest):
                return False
            path.unlink(missing_ok=True)
            _lock_of(path).unlink()  # its holder removes it: who waits for it sees that, and takes a new one
            return was

    def _files(self) -> list[Path]:
        try:
            return [p for p in self.folder.iterdir() if p.name != _PRUNED]
        except OSError:
            return []

    def _prune_daily(self) -> None:
        mark, now = self.folder / _PRUNED, self._clock()
        with suppress(OSError):
            if mark.exists() and 0 <= now - mark.stat().st_mtime_ns < DAY:
                return
            if self.folder.is_dir():
                mark.touch(mode=0o600)
                os.utime(mark, ns=(now, now))
        self.prune(now)

    # --- writing --------------------------------------------------------------------------

    def _save(self, key: Key, data: Mapping[str, Any]) -> bool:
        if not self.days:
            return False
        path = self.folder / _name(key)
        now = self._clock()
        text = json.dumps({"schema": SCHEMA, "key": key, "saved": now, "data": data}).encode()
        if len(text) > LIMIT:
            self._complain(Text("the conversation has grown too large to be remembered: begin a new one",
                                "对话过大，无法保存：请开始新的对话"))  # fmt: skip
            return False
        try:
            for left in self.folder.glob(f".{path.name}.*"):  # of a writer that was killed: nobody else writes now
                left.unlink(missing_ok=True)
            replace_file(path, gzip.compress(text, 3, mtime=0))
            os.utime(path, ns=(now, now))  # `prune` goes by it
        except OSError as error:
            self._unwritable(error)
            return False
        return True

    @contextmanager
    def _alone(self, key: Key, patience: float) -> Iterator[bool]:
        """Inside, nobody else reads and writes this conversation; False where that could not be had."""
        if not self.days:
            yield False
            return
        try:
            private_folder(self.folder)
            if self.folder.stat().st_mode & 0o077:
                self.folder.chmod(0o700)
        except OSError as error:
            self._unwritable(error)
            yield False
            return
        with self._locked(self.folder / _name(key), patience) as alone:
            if alone is False:
                self._complain(Text("another turn of this conversation is still running: this one is not remembered",
                                    "同一对话的另一轮仍在进行：本轮不会被保存"))  # fmt: skip
            yield bool(alone)

    @contextmanager
    def _locked(self, path: Path, patience: float) -> Iterator[bool | None]:
        """True inside the lock of `path`; False when it was not to be had in time; None when it cannot be made."""
        try:
            handle = _taken(_lock_of(path), patience)
        except OSError as error:
            self._unwritable(error)
            yield None
            return
        try:
            yield handle is not None
        finally:
            if handle is not None:
                os.close(handle)

    def _unwritable(self, error: OSError) -> None:
        self._complain(Text(f"{self.folder} cannot be written: {error.strerror}; the conversation is not remembered",
                            f"无法写入 {self.folder}：{error.strerror}；对话不会被保存"))  # fmt: skip

    def _complain(self, said: Text) -> None:
        if said not in self.complaints:
            self.complaints.append(said)


def dialogues(settings: Settings) -> Dialogues:
    """Where this user's conversations are kept."""
    from assistant.config import state_folder

    return Dialogues(state_folder(settings) / FOLDER, settings.dialogue.days)


def _name(key: Key) -> str:
    return key.stem + SUFFIX


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + LOCK)


def _taken(path: Path, patience: float) -> int | None:
    """A handle that holds the lock file `path`; None when another one has it for longer than `patience` (s). OSError."""
    until, pause = time.monotonic() + patience, 0.005
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same(handle, path):
                handle, mine = -1, handle
                return mine
        except BlockingIOError:
            if time.monotonic() >= until:
                return None
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
        finally:
            if handle >= 0:
                os.close(handle)


def _same(handle: int, path: Path) -> bool:
    """Whether what is locked is still what others will lock."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _unpacked(raw: bytes) -> dict[str, Any]:
    """The contents of a file. ValueError when it is none of ours."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(raw, LIMIT + 1)
        if len(text) > LIMIT or not unpacker.eof:
            raise ValueError("it was cut off, or is larger than any that is written")
        found = json.loads(text)
    except (zlib.error, RecursionError) as error:
        raise ValueError(str(error)) from error
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - of the file, not of an argument
    return found
