"""How much may be asked: requests a minute, tokens a request, tokens and US dollars a day.

Counted in one small file of the user's, over all processes (flock) and restarts. What a request may take is booked before it is sent
and corrected afterwards, so that several at once do not go over together; one that is killed in the middle stays booked in
full. A file that cannot be understood is set aside and counting begins anew; one that cannot be written means that nothing is sent.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from assistant.narrate.reasons import NarrationError, Reason
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.whole import private_lock, replace_file

NAME = "llm-usage.json"
SCHEMA = "gpudiag/llm-usage/1"
TOKENS_IN = 12_000  # of one request: the largest reply of the demos makes 4,000
TOKENS_OUT = 1_500  # of one answer: a page of sentences
MINUTE = 60.0  # seconds
LOCK_WAIT = 2.0  # seconds that the file may be held by somebody else


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the site allows."""

    requests_per_minute: int = 10
    tokens_per_day: int = 200_000
    dollars_per_day: float = 1.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used. `recent`: when requests were sent in the last minute, Unix seconds."""

    day: str = ""  # UTC
    requests: int = 0
    tokens: int = 0
    micros: int = 0  # millionths of a US dollar: whole numbers add up
    recent: tuple[float, ...] = ()

    @property
    def dollars(self) -> float:
        """US dollars of the day."""
        return self.micros / 1e6


@dataclass(frozen=True, slots=True)
class Booking:
    """What was booked for one request."""

    day: str
    tokens: int
    micros: int
    note: Text | None = field(default=None, compare=False)  # said once, when the file had to be begun anew


def estimate(messages: Sequence[Mapping[str, str]]) -> int:
    """Tokens of `messages`, rather too many: three bytes each, which is one Chinese character or a short English word part."""
    return sum(8 + math.ceil(len(m.get("content", "").encode(errors="replace")) / 3) for m in messages)


class Limits:
    """The file, and what is allowed. `clock` gives Unix seconds."""

    def __init__(self, folder: Path, bounds: Bounds, clock: Callable[[], float] = time.time) -> None:
        self._path, self._bounds, self._clock = folder / NAME, bounds, clock

    def book(self, tokens_in: int, tokens_out: int, price: tuple[float, float] | None) -> Booking:
        """Book one request. `price`: US dollars a token in and out, where known. NarrationError when a limit is reached."""
        if tokens_in > TOKENS_IN or tokens_out > TOKENS_OUT:
            raise _reached("tokens of a request", "单次请求的 token", tokens_in, TOKENS_IN)
        micros = _micros(tokens_in, tokens_out, price)
        with self._alone():
            used, note = self._load()
            now = self._clock()
            self._check(used, tokens_in + tokens_out, micros)
            self._save(
                replace(
                    used, requests=used.requests + 1, tokens=used.tokens + tokens_in + tokens_out,
                    micros=used.micros + micros, recent=(*used.recent, now),
                )
            )  # fmt: skip
        return Booking(used.day, tokens_in + tokens_out, micros, note)

    def settle(self, booked: Booking, tokens: int, dollars: float) -> None:
        """Put what it took in place of what was booked. A booking of another day is left as it is."""
        with self._alone():
            used, _ = self._load()
            if used.day != booked.day:
                return
            micros = math.ceil(dollars * 1e6)
            self._save(
                replace(
                    used, tokens=max(0, used.tokens + tokens - booked.tokens), micros=max(0, used.micros + micros - booked.micros)
                )
            )  # fmt: skip

    def used(self) -> Usage:
        """What was used today."""
        with self._alone():
            return self._load()[0]

    def _check(self, used: Usage, tokens: int, micros: int) -> None:
        allowed = self._bounds
        if len(used.recent) >= allowed.requests_per_minute:
            raise _reached("requests in a minute", "每分钟请求数", len(used.recent), allowed.requests_per_minute)
        if used.tokens + tokens > allowed.tokens_per_day:
            raise _reached("tokens of the day", "当日 token", used.tokens, allowed.tokens_per_day)
        if micros and used.micros + micros > allowed.dollars_per_day * 1e6:
            raise _reached("US dollars of the day", "当日美元", f"{used.dollars:.4f}", f"{allowed.dollars_per_day:.2f}")

    def _load(self) -> tuple[Usage, Text | None]:
        now = self._clock()
        today = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        try:
            found = _usage(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            return Usage(today), None
        except (ValueError, RecursionError):
            return Usage(today), self._set_aside(now)
        recent = tuple(at for at in found.recent if now - MINUTE < at <= now)
        return (replace(found, recent=recent) if found.day == today else Usage(today, recent=recent)), None

    def _set_aside(self, now: float) -> Text:
        kept = self._path.with_name(f"{NAME}.corrupt-{int(now)}")
        self._path.replace(kept)
        return Text(f"The count of requests to the model could not be read and begins anew; the file is kept as {kept}.",
                    f"无法读取模型请求的计数，重新开始计数；原文件保存为 {kept}。")  # fmt: skip

    def _save(self, used: Usage) -> None:
        body = {"schema": SCHEMA, "day": used.day, "requests": used.requests, "tokens": used.tokens, "micros": used.micros,
                "recent": used.recent}  # fmt: skip
        replace_file(self._path, json.dumps(body).encode())

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else reads or writes meanwhile. NarrationError when the file cannot be had: uncounted, nothing is sent."""
        try:
            with os.fdopen(private_lock(self._path.with_suffix(".lock")), "w") as stream:
                _lock(stream.fileno(), time.monotonic() + LOCK_WAIT)
                yield
        except OSError as error:
            raise NarrationError(
                Reason.LIMIT, f"{self._path}: {error.strerror or error}",
                Text(f"Requests to the model cannot be counted in {self._path}, so none is sent.",
                     f"无法在 {self._path} 中为模型请求计数，因此不发送请求。"),
            ) from error  # fmt: skip


def _lock(descriptor: int, until: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise TimeoutError(f"held by another process for {LOCK_WAIT:.0f} s") from None
            time.sleep(0.01)


def _usage(data: Any) -> Usage:
    """ValueError for what is not ours."""
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("day"), str):
        raise ValueError("no count of ours")
    numbers = [data.get(name) for name in ("requests", "tokens", "micros")]
    recent = data.get("recent")
    if not all(_count(n) for n in numbers) or not isinstance(recent, list):
        raise ValueError("no count of ours")
    if not all(isinstance(at, (int, float)) and not isinstance(at, bool) and math.isfinite(at) for at in recent):
        raise ValueError("no count of ours")
    requests, tokens, micros = (int(n) for n in numbers if n is not None)
    return Usage(data["day"], requests, tokens, micros, tuple(map(float, recent)))


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _micros(tokens_in: int, tokens_out: int, price: tuple[float, float] | None) -> int:
    return math.ceil((tokens_in * price[0] + tokens_out * price[1]) * 1e6) if price else 0


def _reached(en: str, zh: str, used: object, most: object) -> NarrationError:
    return NarrationError(
        Reason.LIMIT, f"{en}: {used} of {most}",
        Text(f"A limit is reached, {en}: {used} of {most}.", f"已达到上限（{zh}）：{used} / {most}。"),
    )  # fmt: skip
