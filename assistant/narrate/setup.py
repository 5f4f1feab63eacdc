"""From the settings to what a worker and the limits need. NarrationError names the setting that is missing or wrong."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from assistant.narrate.completion import Model
from assistant.narrate.hosts import place
from assistant.narrate.limits import Bounds
from assistant.narrate.reasons import NarrationError, Reason
from knowledge.language import Text
from knowledge.record import dataclass

if TYPE_CHECKING:
    from assistant.config import Llm

KEY_CAP = 4096  # characters; keys of providers have some dozens


@dataclass(frozen=True, slots=True)
class Setup:
    """A model that can be asked."""

    model: Model
    bounds: Bounds
    audience: str
    deadline: float  # seconds
    price: tuple[float, float] | None  # US dollars a token in and out, as the site says; None: as litellm says


def setup(llm: Llm) -> Setup:
    """What is configured. Reads the file of the key, starts nothing."""
    if not llm.model:
        raise NarrationError(Reason.OFF)
    if llm.model.startswith("-") or not llm.model.isprintable() or "/" not in llm.model:
        raise _wrong(
            "llm_model", "a provider and a model, such as openai/qwen3-32b", "应为“提供方/模型”，例如 openai/qwen3-32b"
        )
    where = place(llm.base, llm.hosts)
    dollars = _number("llm_dollars_per_day", llm.dollars_per_day)
    return Setup(
        Model(_python(llm.python), where, llm.model, _key(llm)),
        Bounds(llm.requests_per_minute, llm.tokens_per_day, dollars), llm.audience, float(llm.deadline), _price(llm.price),
    )  # fmt: skip


def _python(named: str) -> str:
    """Not resolved: the link in a virtual environment is what makes it one. The child has a working folder of its own."""
    return str(Path(named).absolute()) if "/" in named else named or sys.executable


def _key(llm: Llm) -> str:
    if llm.key or llm.key_file is None:
        key, origin = llm.key, "GPUDIAG_LLM_KEY"
    else:
        key, origin = _key_of(llm.key_file), str(llm.key_file)
    if key and (len(key) > KEY_CAP or not key.isascii() or not key.isprintable() or " " in key):
        raise _wrong(
            origin, "one line of printable characters: the key and nothing else", "应只有一行可打印字符：密钥本身"
        )
    return key


def _key_of(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as stream:
            key = stream.read(KEY_CAP + 2).strip()
    except OSError as error:
        raise _wrong(
            f"llm_key_file {path}", f"a file that can be read ({error.strerror})", f"无法读取（{error.strerror}）"
        ) from error
    if not key:
        raise _wrong(f"llm_key_file {path}", "a file with a key in it: it is empty", "文件为空")
    return key


def _number(name: str, text: str) -> float:
    try:
        value = float(text or "0")
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise _wrong(name, "a number of US dollars, such as 1.00", "应为美元数，例如 1.00")
    return value


def _price(text: str) -> tuple[float, float] | None:
    if not text:
        return None
    first, slash, second = text.partition("/")
    if not slash:
        raise _wrong("llm_price", "two numbers, such as 0.15/0.60", "应为两个数，例如 0.15/0.60")
    return _number("llm_price", first) / 1e6, _number("llm_price", second) / 1e6


def _wrong(name: str, en: str, zh: str) -> NarrationError:
    return NarrationError(
        Reason.NOT_CONFIGURED, f"{name} is not {en}", Text(f"{name} is not {en}.", f"{name} 的值不可用：{zh}。")
    )
