"""What stands before every line when the outputs of machines, tasks or pods are gathered, or a clock is put before each line.

``pdsh`` and ``clush`` write ``gpu03: ``, ``srun -l`` the task's number, ``kubectl logs --prefix`` ``[pod/NAME/CONTAINER] ``. A label
stands before nearly every line, and there are few of them: ``key: value`` of a report is none. Whether what is left is an output that
is known decides the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowledge.lazy import lazy
from probes.base import Line, lines_of

_HOSTS = (
    lazy(r"(?P<name>[A-Za-z0-9](?=[\w.-]{0,252}[A-Za-z.])[\w.-]{0,252}):(?: |$)"),  # pdsh, clush, dsh, ssh in a loop
    lazy(r"\[(?P<name>[A-Za-z0-9](?=[\w.-]{0,252}[A-Za-z.])[\w.-]{0,252})\](?: out)?:?(?: |$)"),  # parallel-ssh, fabric
    lazy(r"(?P<name>[A-Za-z][\w.-]{0,252})\t"),  # parallel --tag
)
_OTHERS = (
    lazy(r" {0,6}(?P<task>\d{1,6}):(?: |$)"),  # srun -l
    lazy(
        r"\[(?:\d{1,6},(?P<task>\d{1,6})\]<std(?:out|err)>:|\S{1,80},(?P<rank>\d{1,6})\]<std(?:out|err)>: ?)"
    ),  # mpirun --tag-output of Open MPI 4, 5
    lazy(r"\[pod/(?P<name>[\w.-]{1,253})/[\w.-]{1,253}\](?: |$)"),  # kubectl logs --prefix
    lazy(r"(?P<name>[A-Za-z][\w.-]{0,252}) {1,40}\|(?: |$)"),  # docker compose logs
)
# 2025-11-12T10:00:00.123456789Z       [2025-11-12 10:00:00]       Nov 12 10:00:00       10:00:00
_WHEN = lazy(
    r"\[?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?:?(?: |\t|$)"
)
_MOST = 0.9  # of the lines that are not blank, as for the quote signs of `probes.around`
_EACH = 3  # lines a label at the least, on average: more labels than that are the keys of a report
_HEAD = 65_536


class Part(NamedTuple):
    """What one machine, task or pod printed, without its labels."""

    label: str  # as it is shown to people; empty for a clock
    host: str  # the node that the label names; of several tasks or pods, whose nodes nobody names, the label
    text: str
    numbers: tuple[int, ...]  # of each line that of the text it was taken from


def apart(text: str) -> tuple[list[Part], list[Line]]:
    """The parts of a labelled text in order, and its lines that have no label; no part where it is not labelled."""
    left: list[Line] = []
    whole = Part("", "", text, ())
    lines = lines_of(text)
    parts = list(_parts(whole, lines, left, (*_HOSTS, *_OTHERS, _WHEN)))
    return ([] if parts == [(whole, lines)] else [_joined(*part) for part in parts]), left


def _parts(
    of: Part, lines: list[Line], left: list[Line], kinds: Sequence[re.Pattern[str]]
) -> Iterator[tuple[Part, list[Line]]]:
    pattern = _pattern(lines, kinds)
    if pattern is None:
        yield of, lines
        return
    groups: dict[str, list[Line]] = {}
    label = ""
    for line in lines:
        if (m := pattern.match(line.text)) is None:
            if line.text.strip():
                left.append(line)
            elif label in groups:
                groups[label].append(line)
            continue
        label = _label(m)
        groups.setdefault(label, []).append(Line(line.number, line.text[m.end() :]))
    for label, rows in groups.items():
        host = label if pattern in _HOSTS or len(groups) > 1 else ""
        behind = () if pattern is _WHEN else (_WHEN,)  # kubectl logs --prefix --timestamps
        yield from _parts(Part(of.label or label, of.host or host, "", ()), rows, left, behind)


def _joined(of: Part, lines: list[Line]) -> Part:
    return of._replace(text="\n".join(line.text for line in lines), numbers=tuple(line.number for line in lines))


def _pattern(lines: list[Line], kinds: Sequence[re.Pattern[str]]) -> re.Pattern[str] | None:
    """The kind of label that stands before these lines."""
    written, size = [], 0
    for line in lines:
        if line.text.strip():
            written.append(line.text)
        size += len(line.text)
        if size > _HEAD:
            break
    for pattern in kinds:
        labels = [_label(m) for text in written if (m := pattern.match(text))]
        if len(labels) >= max(_MOST * len(written), _EACH * len(set(labels)), 1):
            return pattern
    return None


def _label(m: re.Match[str]) -> str:
    told = m.groupdict()
    number = told.get("task") or told.get("rank")
    return told.get("name") or (f"task{int(number)}" if number else "")
