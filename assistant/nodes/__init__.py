"""Many nodes at a glance: what the last check of each said, how old that is, and where it is known from.

Pure: `past` reads the history, `bundles` a folder of recordings, and here the two become one list. A check that could not
tell does not wipe out the one before it that could: both are kept, each with its time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from knowledge.language import NO_TEXT, Text
from knowledge.record import dataclass

ORDER = ("unhealthy", "degraded", "unknown", "", "ok")  # what the eye should meet first; "": nobody ever looked
GROUPS = (*ORDER[:-1], "old", "ok")
SEVERITIES = ("critical", "error", "warning", "info")
OLD = 24 * 3600 * 10**9  # ns: a node that nobody looked at for a day may be another one by now
_PIECE = re.compile("([0-9]+)")
_NUMBER = re.compile("(.*?)([0-9]+)([^0-9]*)", re.DOTALL)
_LONGEST = 9  # digits of a number that is folded: what `assistant.session.nodeset` reads back


class Found(NamedTuple):
    """A finding of a check, as short as a list can say it."""

    id: str
    title: Text
    severity: str
    about: str  # the subject, as `assistant.store.codec.subject_text` writes it
    since: int | None  # ns UTC, of the check that saw it first


@dataclass(frozen=True, slots=True)
class Look:
    """What one check of a node came to."""

    state: str  # ok, degraded, unhealthy, unknown
    text: Text
    at: int | None  # ns UTC; None for a recording that does not tell
    source: str  # live, history, bundle
    place: str = ""  # path of the bundle; how the check in the history was made: live, watch, bundle
    run: int | None = None  # its number in the history
    findings: tuple[Found, ...] = ()  # those that nothing found explains and that ask for something, worst first

    @property
    def tells(self) -> bool:
        """Whether it could say how the node is."""
        return self.state not in ("unknown", "")


@dataclass(frozen=True, slots=True)
class Node:
    """A node and what is known of it."""

    host: str
    last: Look | None = None  # the newest check
    told: Look | None = None  # the newest that could tell; another one than `last` when that could not
    trouble: Text = NO_TEXT  # why its recording cannot be read
    here: bool = False  # it is the machine that this runs on

    @property
    def state(self) -> str:
        """Of the newest check; empty when there is none."""
        return "unknown" if self.trouble and self.last is None else self.last.state if self.last is not None else ""

    def stale(self, now: int) -> bool:
        """Whether what is known is too old to be shown as the present. A recording is of its time, and never is."""
        last = self.last
        return last is not None and last.source != "bundle" and last.at is not None and now - last.at > OLD


def listed(
    names: Iterable[str], looks: Mapping[str, Sequence[Look]], *, here: str = "", troubles: Mapping[str, Text] = {}
) -> list[Node]:
    """One node for each of `names`, and for each that was looked at or could not be: the worst first, then by name."""
    hosts = dict.fromkeys((*names, *looks, *troubles))
    nodes = [_node(host, looks.get(host, ()), troubles.get(host, NO_TEXT), host == here) for host in hosts]
    return sorted(nodes, key=lambda n: (ORDER.index(n.state), natural(n.host)))


def _node(host: str, looks: Sequence[Look], trouble: Text, here: bool) -> Node:
    last = max(looks, key=_newest, default=None)
    told = max((look for look in looks if look.tells), key=_newest, default=None)
    return Node(host, last, told, trouble, here)


def _newest(look: Look) -> tuple[int, int]:
    """Of two checks of the same moment the one that was made last in the history counts."""
    return (look.at if look.at is not None else -1, look.run or 0)


def by_state(nodes: Iterable[Node], now: int) -> dict[str, list[str]]:
    """Hosts by state, in `GROUPS`; states that no node is in are left out. What was fine long ago is not counted as fine."""
    out: dict[str, list[str]] = {}
    for node in nodes:
        out.setdefault("old" if node.state == "ok" and node.stale(now) else node.state, []).append(node.host)
    return {state: sorted(out[state], key=natural) for state in GROUPS if state in out}


def worst(findings: Iterable[Found]) -> tuple[Found, ...]:
    """`findings`, worst first, without those that ask for nothing."""
    kept = [f for f in findings if f.severity in SEVERITIES and f.severity != "info"]
    return tuple(sorted(kept, key=lambda f: (SEVERITIES.index(f.severity), f.id)))


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key by which ``gpu-2`` stands before ``gpu-10``."""
    return tuple((0, int(p), p) if p.isdecimal() else (1, 0, p) for p in _PIECE.split(name) if p)


def folded(names: Iterable[str], most: int = 0) -> str:
    """`names` as a set: ``gpu[001-064,070],login1``. With `most` characters at hand the rest is only counted.

    The opposite of `assistant.session.nodeset.expand`, for names that it can write.
    """
    words = list(_sets(sorted(dict.fromkeys(names), key=natural)))
    if most <= 0:
        return ",".join(word for word, _ in words)
    kept: list[str] = []
    for i, (word, _) in enumerate(words):
        rest = sum(count for _, count in words[i + 1 :])
        if len(",".join((*kept, word))) + (len(f" +{rest}") if rest else 0) > most:
            left = sum(count for _, count in words[i:])
            return f"{','.join(kept)} +{left}" if kept else ""
        kept.append(word)
    return ",".join(kept)


def _sets(names: Sequence[str]) -> Iterable[tuple[str, int]]:
    """Words of a set, each with how many names it stands for."""
    groups: dict[tuple[str, str, int], list[str]] = {}
    for name in names:
        match = _NUMBER.fullmatch(name)
        if match is None or len(match[2]) > _LONGEST or set(name) & set("[], "):
            groups.setdefault((name, "", -1), []).append("")
            continue
        # gpu-9 and gpu-10 belong together, and so do gpu-09 and gpu-10; gpu-009 does not belong to either
        width = len(match[2]) if match[2].startswith("0") and len(match[2]) > 1 else 0
        groups.setdefault((match[1], match[3], width), []).append(match[2])
    for (head, tail, _), numbers in _widths(groups).items():
        if numbers == [""]:
            yield head, 1
            continue
        spans = _spans(numbers)
        alone = len(numbers) == 1
        inner = ",".join(a if a == b else f"{a}-{b}" for a, b in spans)
        yield (f"{head}{numbers[0]}{tail}" if alone else f"{head}[{inner}]{tail}"), len(numbers)


def _widths(groups: Mapping[tuple[str, str, int], list[str]]) -> dict[tuple[str, str, int], list[str]]:
    """Numbers that are padded to a width join those of that width that need no padding: 09 and 10."""
    out: dict[tuple[str, str, int], list[str]] = {}
    padded = {key for key in groups if key[2] > 0}
    for (head, tail, width), numbers in groups.items():
        for number in numbers:
            key = (
                (head, tail, len(number)) if width == 0 and (head, tail, len(number)) in padded else (head, tail, width)
            )
            out.setdefault(key, []).append(number)
    return {key: sorted(numbers, key=lambda n: int(n or 0)) for key, numbers in out.items()}


def _spans(numbers: Sequence[str]) -> list[tuple[str, str]]:
    """First and last of each run without a gap; a run is written with the width of its first number."""
    out: list[tuple[str, str]] = []
    for number in numbers:
        if out and int(number) == int(out[-1][1]) + 1:
            out[-1] = (out[-1][0], number)
        else:
            out.append((number, number))
    return out
