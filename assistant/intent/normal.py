"""One spelling for a sentence: length capped, nothing invisible, NFKC, and the language it is written in."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from knowledge.lazy import lazy
from knowledge.text import clean

MAX_TEXT = 64 << 10  # characters; a paste may be long, its head and tail tell what it is
MAX_SAID = 1200  # characters of the sentence itself: beyond that nobody asks, something was pasted

_HAN = lazy("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_LATIN = lazy("[A-Za-z]{2,}")
# Words without which nobody makes an English sentence.
_ENGLISH = lazy(
    r"(?<![A-Za-z])(?:the|an?|is|are|was|were|do|does|did|has|have|had|can|could|should|will|would|what|why|how|when|where|which|who|my|our|this|that|it|its|i|we|you|to|of|for|with|but|because|if|from|after|since|explain|show|check|diagnose|list|tell)(?![A-Za-z])",
    re.IGNORECASE,
)
_FRAME = lazy("[了被吗呢吧是的在报没还能里]|日志|显示|提示|打印|输出")  # what holds a Chinese sentence together
_SHOWN = lazy(
    """(?:日志|显示|提示|打印|输出|报错?|返回)\\s*[:：]?\\s*["'“A-Za-z]"""
)  # dmesg 显示 no such device was found
# <@U0AB12CD>, <#C01|ops>, <https://host/page|text>: how Slack writes what is shown as @gpudiag, #ops, text
_MENTION = lazy(r"<[@#!][A-Za-z0-9^]{1,40}(?:\|[^<>\n]{0,80})?>")
_LINK = lazy(r"<(?:https?|mailto):[^<>\s|]{1,500}(?:\|([^<>\n]{0,200}))?>")
_ADDRESSED = lazy(
    r"\s*(?:(?:hey|hi|hello|ok)[ ,]+)?[/@!]?gpu-?diag(?![\w.-])[\s:,\uff0c]*(?:ask\b)?[\s:]*", re.IGNORECASE
)
_QUOTES = str.maketrans("\u2018\u2019\u02bc\u201c\u201d\u300c\u300d\u00b4", "'''\"\"\"\"'")
_ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
# Words that are written the same in both languages say nothing about the language.
_BOTH = frozenset(
    [
        "gpu",
        "gpus",
        "xid",
        "sxid",
        "pid",
        "nccl",
        "cuda",
        "ecc",
        "nvlink",
        "nvswitch",
        "pcie",
        "dcgm",
        "mig",
        "mps",
        "nvml",
        "uuid",
        "sm",
        "mfu",
        "rank",
        "node",
        "job",
        "cpu",
        "oom",
        "nan",
        "loss",
        "driver",
        "train",
        "training",
        "batch",
        "kernel",
        "pod",
        "docker",
        "slurm",
        "rdma",
        "ib",
        "infiniband",
        "pytorch",
        "torch",
        "vllm",
        "python",
        "log",
        "bios",
        "fabric",
        "manager",
        "nvidia",
        "smi",
        "persistence",
        "mode",
        "row",
        "remap",
        "util",
        "runbook",
        "rma",
        "hang",
        "dataloader",
        "checkpoint",
        "token",
    ]
)


class Normal(NamedTuple):
    """A message in the spelling that everything behind works on."""

    raw: str  # cleaned, bounded; lines kept: what a paste is parsed from
    text: str  # NFKC, quotes plain, without the address ("@gpudiag")


def normal(text: str) -> Normal:
    """Normalise a message of any size and content."""
    if len(text) > MAX_TEXT:
        text = f"{text[: MAX_TEXT // 2]}\n{text[-MAX_TEXT // 2 :]}"
    raw = clean(text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    for written, meant in _ENTITIES:
        raw = raw.replace(written, meant) if "&" in raw else raw
    if "<" in raw:
        raw = _LINK.sub(lambda m: m[1] or "", _MENTION.sub("", raw))
    said = raw if raw.isascii() else clean(unicodedata.normalize("NFKC", raw)).translate(_QUOTES)
    if has_han(said):
        from assistant.intent.han import simplified

        said = simplified(said)
    if found := _ADDRESSED.match(said):
        said = said[found.end() :]
    return Normal(raw, said.strip())


def language(text: str, fallback: str) -> str:
    """``zh`` or ``en`` by the words of `text`; `fallback` when it has none of its own language.

    With a Han character and no word that only an English sentence has, it is Chinese (remap 2 行 failure yes). Else half as many
    Han characters as Latin words is English with a term in it; terms that both languages write in Latin letters do not count. What is quoted in English within a Chinese frame
    ("... 报 bus error 了"), or behind a Chinese word for what shows it, is Chinese.
    """
    han = 0 if text.isascii() else len(_HAN.findall(text))
    if not han:
        return "en" if any(_plain_word(w) for w in _LATIN.findall(text)) else fallback
    shown = _SHOWN.search(text)
    if not _ENGLISH.search(text) or (shown is not None and not _ENGLISH.search(text[: shown.start()])):
        return "zh"
    words = sum(_plain_word(w) for w in _LATIN.findall(text))
    framed = han > 2 and _FRAME.search(text) is not None
    return "zh" if han * (3 if framed else 1) > words else "en"


def _plain_word(word: str) -> bool:
    return word.casefold() not in _BOTH and not word.isupper()


def has_han(text: str) -> bool:
    """Whether a Han character stands in `text`."""
    return not text.isascii() and _HAN.search(text) is not None
