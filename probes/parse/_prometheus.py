"""The Prometheus text exposition format, and its OpenMetrics variant: samples with labels, strictly read.

A line that is not a sample, a comment or a blank is counted as malformed, never guessed at.
Format: prometheus.io/docs/instrumenting/exposition_formats (0.0.4) and OpenMetrics 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field

from knowledge.record import dataclass
from knowledge.text import clean
from probes.base import Line

MAX_LABELS = 200  # real series have a dozen; a label bomb has millions
_NAME = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]{0,300}")
_LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_BLANKS = re.compile(r"[ \t]+")
_INTEGER = re.compile(r"[+-]?\d{1,20}")
_FLOAT = re.compile(r"[+-]?(?:\d{1,40}\.?\d{0,40}|\.\d{1,40})(?:[eE][+-]?\d{1,4})?")
_SPECIAL = {"nan": float("nan"), "+inf": float("inf"), "inf": float("inf"), "-inf": float("-inf")}
_ESCAPES = {"\\": "\\", '"': '"', "n": "\n"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: name, labels, value (an int where no fraction was printed), time in ns if given."""

    name: str
    labels: Mapping[str, str]
    value: float
    line: int
    text: str
    at: int | None = None


@dataclass(slots=True)
class Exposition:
    """All samples of a scrape, the HELP and TYPE lines by name, and the lines that are none of these."""

    samples: list[Sample] = field(default_factory=list)
    helps: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    malformed: list[Line] = field(default_factory=list)


def exposition(lines: Iterable[Line]) -> Exposition:
    """Read a scrape."""
    out = Exposition()
    timed: list[tuple[int, float]] = []
    open_metrics = False
    for line in lines:
        text = line.text.strip(" \t")
        if not text:
            continue
        if text.startswith("#"):
            open_metrics = open_metrics or text == "# EOF"
            _comment(out, text)
            continue
        read = _sample(text, line.number)
        if read is None:
            out.malformed.append(line)
            continue
        sample, stamp = read
        if stamp is not None:
            timed.append((len(out.samples), stamp))
        out.samples.append(sample)
    scale = 10**9 if open_metrics else 10**6  # OpenMetrics writes seconds, Prometheus milliseconds
    for position, stamp in timed:
        old = out.samples[position]
        out.samples[position] = Sample(old.name, old.labels, old.value, old.line, old.text, round(stamp * scale))
    return out


def _comment(out: Exposition, text: str) -> None:
    words = text[1:].strip().split(None, 2)
    if len(words) == 3 and words[0] in ("HELP", "TYPE"):
        (out.helps if words[0] == "HELP" else out.types)[words[1]] = clean(words[2])


def _sample(text: str, number: int) -> tuple[Sample, float | None] | None:
    name = _NAME.match(text)
    if name is None:
        return None
    at = name.end()
    labels: dict[str, str] = {}
    rest = text[at:].lstrip(" \t")
    if rest.startswith("{"):
        read = _labels(text, text.index("{", at) + 1)
        if read is None:
            return None
        labels, at = read
        rest = text[at:]
    elif not rest or rest == text[at:]:  # a blank must follow a bare name
        return None
    words = _BLANKS.split(rest.strip(" \t"))
    value = number_of(words[0])
    if value is None:
        return None
    stamp: float | None = None
    if len(words) > 1 and words[1] != "#":
        given = number_of(words[1])
        if given is None or not abs(given) <= 1e18:  # NaN is no time either
            return None
        stamp = given  # a whole number stays exact
    behind = words[1:] if stamp is None else words[2:]
    if behind and behind[0] != "#":  # only an exemplar may stand behind
        return None
    return Sample(name[0], labels, value, number, text), stamp


def _labels(text: str, at: int) -> tuple[dict[str, str], int] | None:
    """Labels from behind the opening brace, and the place behind the closing one."""
    labels: dict[str, str] = {}
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return labels, at + 1
        name = _LABEL.match(text, at)
        if name is None or len(labels) >= MAX_LABELS:
            return None
        at = _skip(text, name.end())
        if text[at : at + 1] != "=":
            return None
        at = _skip(text, at + 1)
        if text[at : at + 1] != '"':
            return None
        read = _quoted(text, at + 1)
        if read is None or name[0] in labels:
            return None
        labels[name[0]], at = read
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at += 1
        elif text[at : at + 1] != "}":
            return None


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t") and at < len(text):
        at += 1
    return at


def _quoted(text: str, at: int) -> tuple[str, int] | None:
    """A label value up to its closing quote, unescaped."""
    out: list[str] = []
    while at < len(text):
        char = text[at]
        if char == '"':
            return "".join(out), at + 1
        if char == "\\":
            escaped = _ESCAPES.get(text[at + 1 : at + 2])
            if escaped is None:
                return None
            out.append(escaped)
            at += 2
        else:
            out.append(char)
            at += 1
    return None


def number_of(text: str) -> float | None:
    """A sample value; whole numbers stay exact, so that sentinels can be told apart."""
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.lower() in _SPECIAL:
        return _SPECIAL[text.lower()]
    return float(text) if _FLOAT.fullmatch(text) else None
