"""What tells the outputs of machines, tasks or pods apart when they are gathered: a label before every line, or a heading above each.

``pdsh`` and ``clush`` write ``gpu03: ``, ``srun -l`` the task's number, ``kubectl logs --prefix`` ``[pod/NAME/CONTAINER] ``; a clock may
stand there too. A label stands before nearly every line, and there are few of them, or they are names of one kind that differ in
a number: ``key: value`` of a report is none. ``ansible``, ``clush -b``, ``dshbak`` and loops over ``ssh`` write a heading. Whether
what is left is an output that is known decides the caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from knowledge.lazy import lazy
from probes.base import Line, lines_of

_HOSTS = (
    lazy(
        r"(?!(?:NVRM|mce|nvidia(?:-(?:nvswitch\d{0,3}|nvlink|modeset|uvm))?|EDAC|BUG|Oops|INFO|AER): )"
        r"(?:pdsh@[\w.-]{1,80}: |clush: )?(?P<name>[A-Za-z0-9](?=[\w.-]{0,252}[A-Za-z.])[\w.-]{0,252}):(?: |$)"
    ),  # pdsh, clush, dsh, ssh in a loop
    # gpu01 | CHANGED | rc=0 | (stdout) GPU 0: NVIDIA H100 ...        ansible -o
    lazy(r"(?P<name>[\w.-]{1,253}) \| (?:CHANGED|SUCCESS|FAILED!?) \| rc=\d{1,5} \| \(std(?:out|err)\) ?"),
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
_NUMBERS = lazy(r"\d{1,20}")
# srun: error: gpu-07: task 3: Exited with exit code 6       srun: error: gpu-[07-08]: tasks 8-15: Killed
_LAUNCHER = lazy(r"(?:srun|slurmstepd): ")
_TASK_ON = lazy(r"srun: error: ([\w.-]{1,253}): task (\d{1,6}): ")
# gpu01 | CHANGED | rc=0 >>       gpu03 | UNREACHABLE! => {
_ANSIBLE = lazy(
    r"([\w.-]{1,253}) \| (?:CHANGED|SUCCESS|FAILED!?|UNREACHABLE!?)(?: \| rc=-?\d{1,5})? (?:>>|=> ?\{)\s{0,4}"
)
_RULE = lazy(r"-{3,200}\s{0,4}")  # above and below the names of clush -b and dshbak -c
# gpu[01-03,07] (4)       gpu01,gpu02
_NAMES = lazy(r"([A-Za-z][\w.,\[\]-]{1,2000}?)(?: \(\d{1,6}\))?\s{0,4}")
# === gpu01 ===       ##### node-17.example.org #####       >>> gpu01 <<<       gpu01:       gpu01
_NAMED = lazy(
    r"(?:[=#*>+-]{2,80} ?)?((?=[\w.-]{0,60}\d)[A-Za-z][A-Za-z0-9.-]{2,252}?)(?::|(?: ?[=#*<+-]{2,80}))?\s{0,4}"
)
_PARTS_OF_A_NODE = lazy(
    r"(?i)gpu\d|(?:eth|en[ops]|ib|mlx|rank|task|step|nvme|sd|card|cpu|core|hca|port|numa|socket|slot|psu|fan|run|test|part)\d.{0,12}"
    r"|(?:[habvl]|gh|gb|mi|rtx)\d{1,4}[a-z]?"
)
# $ for h in gh-01 gh-02; do echo "== $h"; ssh $h nvidia-smi --query-gpu=driver_version --format=csv,noheader; done
_LOOP = lazy(r".{0,80}\bfor \w{1,40} in .{1,1500}; ?do .{0,1500}\bssh .{1,1500}; ?done\s{0,4}")
_INSET = "    "
_FEW = 2  # headings of one shape at the least, where nothing but a name stands in them


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
    if parts == [(whole, lines)]:
        return [], left
    on = {f"task{int(m[2])}": m[1] for line in left if (m := _TASK_ON.match(line.text))}
    return [_joined(of._replace(host=on.get(of.label, of.host)), rows) for of, rows in parts], left


def headed(text: str) -> tuple[list[Part], list[Line], bool]:
    """The parts of a text in which a heading names the machine of what stands below it; what stands above the first heading;
    and whether the headings are a tool's, which are never anything else. No part where there are no such headings.
    """
    lines = lines_of(text)
    for find, sure in ((_of_tools, True), (_of_loops, False)):
        if heads := find(lines):
            above = [line for line in lines[: heads[0][0]] if line.text.strip()]
            asked = [line for line in above if not sure and _LOOP.fullmatch(line.text[:4000])]
            if asked == above:  # the loop ran one command everywhere: what it asked for tells what the columns are
                return _below(lines, heads, asked), [], sure
            return _below(lines, heads), above, sure
    return [], [], False


_Heading: TypeAlias = tuple[
    int, int, tuple[str, ...]
]  # its first line (an index), how many lines it takes, names of machines


def _of_tools(lines: list[Line]) -> list[_Heading]:
    """Headings of ``ansible``, and of ``clush -b`` and ``dshbak``: names between two rules."""
    from probes.parse.sinfo_reasons import nodes

    out: list[_Heading] = []
    for i, line in enumerate(lines):
        if m := _ANSIBLE.fullmatch(line.text[:400]):
            out.append((i, 1, (m[1],)))
        elif line.text.startswith("---") and i + 2 < len(lines) and _RULE.fullmatch(line.text[:210]):
            names = _NAMES.fullmatch(lines[i + 1].text[:2100])
            if names and _RULE.fullmatch(lines[i + 2].text[:210]) and (machines := tuple(nodes(names[1]))):
                out.append((i, 3, machines))
    return out


def _of_loops(lines: list[Line]) -> list[_Heading]:
    """Headings of a loop over machines, in which nothing stands but a name: those of the shape that most names have.

    Names without rules around them are headings where the text begins with one and something stands below each: a job that prints
    the names of its nodes does not.
    """
    shapes: dict[str, list[_Heading]] = {}
    ruled: set[int] = set()
    for i, line in enumerate(lines):
        if (m := _NAMED.fullmatch(line.text[:400])) and not _PARTS_OF_A_NODE.fullmatch(m[1]):
            shapes.setdefault(_NUMBERS.sub("#", m[1]), []).append((i, 1, (m[1],)))
            ruled |= {i} if line.text.strip().rstrip(":") != m[1] else set()
    most = max(shapes.values(), key=lambda found: len({names for _, _, names in found}), default=[])
    if len({names for _, _, names in most}) < _FEW:
        return []
    first = next((i for i, line in enumerate(lines) if line.text.strip() and not _LOOP.fullmatch(line.text[:4000])), 0)
    each = len(_below(lines, most)) == len(most) and most[0][0] == first
    return most if each or all(i in ruled for i, _, _ in most) else []


def _below(lines: list[Line], heads: list[_Heading], asked: Sequence[Line] = ()) -> list[Part]:
    """What stands below each heading, once for each machine that it names, and above each what was `asked` of all."""
    out: list[Part] = []
    for (start, taken, names), end in zip(heads, [*(h[0] for h in heads[1:]), len(lines)], strict=True):
        body = lines[start + taken : end]
        if all(line.text.startswith(_INSET) for line in body if line.text.strip()):  # salt
            body = [line._replace(text=line.text[len(_INSET) :]) for line in body]
        if any(line.text.strip() for line in body):
            out += [_joined(Part(name, name, "", ()), [*asked, *body]) for name in names]
    return out


def _of_one_shape(labels: Iterable[str]) -> bool:
    """Whether names differ in their numbers only, as those of machines and tasks do: gpu01, gpu02."""
    names = set(labels)
    return len(names) > 1 and len({_NUMBERS.sub("#", name) for name in names}) == 1


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
        if line.text.strip() and not _LAUNCHER.match(line.text):
            written.append(line.text)
        size += len(line.text)
        if size > _HEAD:
            break
    for pattern in kinds:
        labels = [_label(m) for text in written if (m := pattern.match(text))]
        each = 1 if _of_one_shape(labels) else _EACH
        if len(labels) >= max(_MOST * len(written), each * len(set(labels)), 1):
            return pattern
    return None


def _label(m: re.Match[str]) -> str:
    told = m.groupdict()
    number = told.get("task") or told.get("rank")
    return told.get("name") or (f"task{int(number)}" if number else "")
