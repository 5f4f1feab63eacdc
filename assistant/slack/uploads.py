"""Files that were shared or pasted in Slack: kept in a private folder, a sub-folder a thread, for some days.

``FOLDER/<digest of the thread>/<digest of the file>/<name>``: of the name that a person gave only letters, digits and a few marks
are left, so it never leads anywhere; it is kept because a rank is often told by nothing else (``rank3.json.gz``), and because
answers name it. Nothing else of this machine may be opened for somebody in Slack (`Uploads.owns`).
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from assistant.session.state import Origin, Seen
from assistant.slack._download import TIMES, LostError, download, larger
from assistant.slack._kept import bytes_in, digest, incoming, inside, is_recording, listed, placed
from assistant.slack.heard import File, Place
from knowledge.errors import UsageError
from knowledge.language import Text
from knowledge.text import excerpt
from knowledge.whole import private_folder

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

THREADS = 16  # times the most of one thread: what is kept in all
SIDE_BY_SIDE = 4  # downloads
FILES = 20  # of one message; Slack's clients send ten at once
DAY = 86_400  # s
PASTED = "pasted.log"
_KINDS = {
    "external": Text("it is kept by another service, not by Slack: upload the file itself",
                     "该文件存放在其他服务上，不在 Slack：请直接上传文件本身"),
    "tombstone": Text("it was deleted", "该文件已被删除"),
    "hidden_by_limit": Text("the plan of the workspace hides it: upload it again", "工作区的套餐限制隐藏了该文件：请重新上传"),
    "space": Text("it is a canvas, not a file: paste its text", "这是画布而不是文件：请粘贴其中的文字"),
    "quip": Text("it is a canvas, not a file: paste its text", "这是画布而不是文件：请粘贴其中的文字"),
}  # fmt: skip


class Given(NamedTuple):
    """What came of the files of a message: those that can be read, and what is to be said of the others."""

    paths: tuple[Path, ...] = ()
    notes: tuple[Text, ...] = ()


class FilesError(UsageError):
    """Files cannot be kept, or not be asked about together."""

    def __init__(self, why: Text, hint: Text) -> None:
        super().__init__(why.en, hint=hint.en)
        self.why, self.what = why, hint

    def in_(self, language: str) -> str:
        """In a language."""
        return f"{self.why.in_(language)}\n  {self.what.in_(language)}"


class Uploads:
    """The folder. One for a bot; `fetch` in its event loop, the rest anywhere."""

    def __init__(self, client: AsyncWebClient, folder: Path, *, most: int = 256 << 20, days: int = 7) -> None:
        """`most`: bytes of one thread's files. `days`: how long they are kept after the last one came. FilesError."""
        self._client, self._most, self._days = client, most, days
        self.folder = Path(os.path.realpath(folder))
        self._within = re.compile(
            rf"{re.escape(str(self.folder))}(?:/[0-9a-f]{{32}})?(?:/[0-9a-f]{{16}})?(?:/|(?![\w+-]|\.\w))"
        )
        self._slots = asyncio.Semaphore(SIDE_BY_SIDE)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        try:
            private_folder(self.folder)
            self.folder.chmod(0o700)
            self.prune()
        except OSError as error:
            raise self._trouble(error) from error

    # --- what comes in ----------------------------------------------------------------------

    async def fetch(self, place: Place, files: Sequence[File]) -> Given:
        """The files of a message that was written in `place`, each once however often it is asked for. FilesError."""
        from aiohttp import ClientSession

        thread = self._thread(place)
        lock = self._locks.setdefault(thread.name, asyncio.Lock())
        given = Given()
        try:
            await asyncio.to_thread(self.prune, thread.name)
            async with (
                lock,
                self._slots,
                ClientSession(timeout=TIMES, auto_decompress=False, trust_env=True) as session,
            ):
                for file in files[:FILES]:
                    found = await self._one(session, thread, file)
                    given = Given((*given.paths, *found.paths), (*given.notes, *found.notes))
        except OSError as error:
            raise self._trouble(error) from error
        if len(files) > FILES:
            n = len(files) - FILES
            given = given._replace(notes=(*given.notes, Text(
                f"{n} more files were left out: at most {FILES} of one message are read",
                f"略去另外 {n} 个文件：每条消息最多读取 {FILES} 个",
            )))  # fmt: skip
        return given

    async def _one(self, session: Any, thread: Path, file: File) -> Given:
        """One file: its path, or why there is none."""
        try:
            file = await self._whole(file)
            home = thread / digest(f"file {file.id} {file.size} {file.url}", 16)
            if (known := inside(home)) is not None:
                return Given((known,))
            room = self._most - await asyncio.to_thread(bytes_in, thread)
            if file.size > room:
                raise LostError(larger(max(room, 0)))
            with incoming(thread) as (stream, path):
                got = await download(self._client, session, file, stream, room)
                stream.flush()
                if not got:
                    raise LostError(Text("it is empty", "文件为空"))
                path = placed(thread, home, path, file.name)
        except LostError as error:
            return Given((), (_about(file, error.why),))
        if file.size and got != file.size:
            return Given((path,), (_about(file, Text(
                f"Slack announced {file.size} bytes and sent {got}; these were read",
                f"Slack 声明为 {file.size} 字节，实际发送 {got} 字节；已按收到的内容读取",
            )),))  # fmt: skip
        return Given((path,))

    async def _whole(self, file: File) -> File:
        """With its address: an event of a shared channel has the id alone (``check_file_info``). LostError."""
        if (why := _KINDS.get(file.mode)) is not None:
            raise LostError(why)
        if file.url:
            return file
        from slack_sdk.errors import SlackClientError

        try:
            answer = await self._client.files_info(file=file.id)
        except (SlackClientError, OSError, TimeoutError) as error:
            response = getattr(error, "response", None)
            word = excerpt(str(response.get("error") if response is not None else error), 80)
            raise LostError(Text(f"Slack does not show it: {word}", f"Slack 不提供该文件：{word}")) from error
        told = answer.get("file") or {}
        size, mode = told.get("size"), str(told.get("mode") or "hosted")
        if (why := _KINDS.get("external" if told.get("is_external") else mode)) is not None:
            raise LostError(why)
        url = str(told.get("url_private_download") or told.get("url_private") or "")
        return file._replace(name=file.name or str(told.get("name") or ""), url=url, mode=mode,
                             size=size if isinstance(size, int) else file.size)  # fmt: skip

    def paste(self, place: Place, text: str) -> Path:
        """A pasted log as a file; the same text gives the same one. FilesError, also when the thread has no room."""
        data = text.encode("utf-8", "replace")
        thread = self._thread(place)
        try:
            home = thread / digest(f"paste {text}", 16)
            if (known := inside(home)) is not None:
                return known
            if len(data) > (room := self._most - bytes_in(thread)):
                raise FilesError(
                    larger(max(room, 0)),
                    Text("paste less of it, or begin a new thread", "请粘贴更少的内容，或另开话题"),
                )
            with incoming(thread) as (stream, path):
                stream.write(data)
                stream.flush()
                return placed(thread, home, path, PASTED)
        except OSError as error:
            raise self._trouble(error) from error

    # --- what it is used for ----------------------------------------------------------------

    def origin(self, paths: Sequence[Path]) -> Origin:
        """What a conversation about these files is about: a recorded machine, and logs, outputs and traces beside it.

        Told by content. FilesError for two recorded machines: a conversation is about one.
        """
        machines = [path for path in paths if is_recording(path)]
        if len(machines) > 1:
            raise FilesError(
                Text(f"{', '.join(p.name for p in machines)}: each is a recording of a machine",
                     f"{'、'.join(p.name for p in machines)}：每个都是一台机器的记录"),
                Text("share one of them, and the next one afterwards", "请一次分享一个"),
            )  # fmt: skip
        others = tuple(str(path) for path in paths if path not in machines)
        return Origin(bundle=str(machines[0]) if machines else "", inputs=others)

    def owns(self, path: str) -> bool:
        """Whether it is a file that was shared or pasted. Links count as what they lead to."""
        try:
            real = Path(os.path.realpath(path))
            parts = real.relative_to(self.folder).parts
            return len(parts) == 3 and real.is_file()
        except (OSError, ValueError):
            return False

    def shown(self, path: str) -> str:
        """A path as the name that the person gave; within any text, too: nothing else of it changes."""
        return self._within.sub("", path)

    def told(self, seen: Seen) -> Seen:
        """What was seen in files, with their names instead of their paths wherever they stand."""
        here = str(self.folder)

        def named(value: Any) -> Any:
            if isinstance(value, str):
                return self.shown(value) if here in value else value
            return tuple(map(named, value)) if isinstance(value, tuple) else value

        observations = tuple(
            replace(o, value=named(o.value), detail=named(o.detail), excerpt=named(o.excerpt),
                    source=replace(o.source, call=named(o.source.call)))
            if here in f"{o.source.call}{o.detail}{o.excerpt}{o.value}" else o
            for o in seen.observations
        )  # fmt: skip
        return replace(
            seen, observations=observations, notes=named(seen.notes), sources=named(seen.sources), cut=named(seen.cut)
        )

    # --- the folder -------------------------------------------------------------------------

    def prune(self, using: str = "") -> None:
        """Forget threads whose time is over; and the oldest ones, while there is more than may be kept. `using`: one that stays."""
        threads = sorted((entry.stat().st_mtime, entry) for entry in listed(self.folder))
        kept = sum(sizes := [bytes_in(entry) for _, entry in threads])
        for (at, entry), size in zip(threads, sizes, strict=True):
            over = at < time.time() - self._days * DAY or kept > THREADS * self._most
            if over and entry.name != using:
                shutil.rmtree(entry, ignore_errors=True)
                kept -= size

    def _thread(self, place: Place) -> Path:
        """Its sub-folder, which may not be there yet."""
        return self.folder / digest("\0".join(place), 32)

    def _trouble(self, error: OSError) -> FilesError:
        why = error.strerror or type(error).__name__
        return FilesError(
            Text(f"files cannot be kept: {why}", f"无法保存文件：{why}"),
            Text(
                "whoever runs the bot has to look at its state folder and its disk",
                "请运行机器人的人检查其状态目录和磁盘",
            ),
        )


def _about(file: File, why: Text) -> Text:
    name = excerpt(file.name, 120)
    return Text(f"{name or 'a file'}: {why.en}", f"{name or '文件'}：{why.zh}")
