"""The line under a verdict: which machine it is about, what it has, and when and from what that was read."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING

from assistant.render.labels import UNSAID, aside, listed
from assistant.render.times import iso, readable
from knowledge.language import Text
from knowledge.observation import Origin, Scope, Status
from knowledge.text import clean, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assistant.diagnosis import Diagnosis

NODES, FILES = 4, 2  # that are named; more are counted
_HOUR = 3600 * 10**9
_DAY = 24 * _HOUR
_AGES = (
    (2 * 365 * _DAY, 365 * _DAY, Text("{n} years ago", "{n} 年前")),
    (2 * _DAY, _DAY, Text("{n} days ago", "{n} 天前")),
    (_HOUR, _HOUR, Text("{n} h ago", "{n} 小时前")),
)  # from this on, unit, words


def header(diagnosis: Diagnosis, lang: str, now: int = 0) -> tuple[str, ...]:
    """Node, GPUs, driver, source with its time; what is not known is left out.

    `now` (ns UTC) tells the age of what was recorded an hour ago or earlier; 0 says no age.
    """
    return tuple(clean(part) for part in _parts(diagnosis, lang, now) if part)


def subject(diagnosis: Diagnosis) -> dict[str, object]:
    """The same for programs: nodes, GPUs by name, driver versions, and how it was seen."""
    return {
        "nodes": _nodes(diagnosis), "gpus": dict(_gpus(diagnosis)), "drivers": _values(diagnosis, "node.driver.version"),
        "seen": diagnosis.seen or "files",
    }  # fmt: skip


def _parts(d: Diagnosis, lang: str, now: int) -> Iterator[str]:
    nodes = _nodes(d)
    if len(nodes) == 1:
        yield Text(f"node {nodes[0]}", f"节点 {nodes[0]}").in_(lang)
    elif nodes:
        named = listed([*nodes[:NODES], *(["..."] if len(nodes) > NODES else [])], lang)
        yield Text(f"{len(nodes)} nodes: {named}", f"{len(nodes)} 个节点：{named}").in_(lang)
    if len(nodes) <= 1:
        yield _of_gpus(d, lang)
        drivers = _drivers(d)
        yield Text(f"driver {drivers[0]}", f"驱动 {drivers[0]}").in_(lang) if len(drivers) == 1 else ""
    yield _source(d, lang, now)


def _nodes(d: Diagnosis) -> list[str]:
    """Names of the nodes; of what a person described, and of a machine without a name, there is none."""
    return sorted({s.id for s in d.facts.subjects(Scope.NODE) if s.id and s.id != UNSAID})


def _values(d: Diagnosis, fact: str, scope: Scope = Scope.NODE) -> list[str]:
    """What was read under `fact` of the parts of one kind, one value for each; not what somebody said."""
    seen = (
        {str(o.value) for o in d.facts.of(fact, s) if o.status is Status.OK and o.origin is not Origin.TOLD}
        for s in d.facts.subjects(scope)
    )
    return sorted(min(values) for values in seen if values)


def _gpus(d: Diagnosis) -> Counter[str]:
    return Counter(name.removeprefix("NVIDIA ") for name in _values(d, "gpu.name", Scope.GPU))


def _drivers(d: Diagnosis) -> list[str]:
    return sorted(set(_values(d, "node.driver.version")))


def _of_gpus(d: Diagnosis, lang: str) -> str:
    if found := _gpus(d):
        return listed([f"{n}x {excerpt(name, 40)}" for name, n in sorted(found.items())], lang)
    return Text("no GPU", "无 GPU").in_(lang) if _values(d, "node.pci.gpu_count") == ["0"] else ""


def _source(d: Diagnosis, lang: str, now: int) -> str:
    at = readable(iso(d.as_of - d.as_of % 10**9)) if d.as_of is not None else ""
    age = _age(now - d.as_of, lang) if d.as_of is not None and now else ""
    if d.seen == "live":
        return Text(f"seen {at}", f"查看于 {at}").in_(lang) if at else ""
    said = at + (aside(age, lang) if age else "")
    if d.seen == "recorded":
        return (
            Text(f"recorded {said}", f"记录于 {said}").in_(lang)
            if at
            else Text("recorded earlier", "先前的记录").in_(lang)
        )
    names = list(dict.fromkeys(PurePath(source).name or source for source in d.sources))
    more = [f"+{len(names) - FILES}"] if len(names) > FILES else []
    files = listed([excerpt(name, 60) for name in names[:FILES]] + more, lang)
    if not files:
        return Text(f"as of {said}", f"截至 {said}").in_(lang) if at else ""
    return Text(f"from {files}, up to {said}", f"来自 {files}，截至 {said}").in_(lang) if at else Text(f"from {files}", f"来自 {files}").in_(lang)  # fmt: skip


def _age(ns: int, lang: str) -> str:
    return next((words.in_(lang).format(n=ns // unit) for least, unit, words in _AGES if ns >= least), "")
