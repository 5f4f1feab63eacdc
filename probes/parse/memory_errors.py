"""``edac-util -v`` and ``ras-mc-ctl``: errors of the host's memory by module, as EDAC counts them and as rasdaemon kept them."""

from __future__ import annotations

import re
from collections import defaultdict

from knowledge.observation import Observation, Scope, Status, Subject, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "memory-errors", 1
KINDS = {"Corrected": "corrected", "Uncorrected": "uncorrected", "Fatal": "uncorrected"}
PROVIDES = tuple(f"{what}.errors.{kind}" for what in ("dimm", "node.memory") for kind in ("corrected", "uncorrected"))
# mc0: csrow0: CPU_SrcID#0_MC#0_Chan#0_DIMM#0: 12 Corrected Errors      mc0: 0 Uncorrected Errors with no DIMM info
_EDAC = re.compile(
    r"(mc\d{1,3}): (?:(csrow\d{1,4}): )?(?:(\S[^:]{0,80}): )?(\d{1,12}) (Corrected|Uncorrected) Errors(?: with no DIMM info)?\.?"
)
# 	Corrected on DIMM Label(s): 'CPU_SrcID#0_MC#1_Chan#0_DIMM#1' location: 1:0:1:-1 errors: 212
_SUMMARY = re.compile(
    r"(Corrected|Uncorrected|Fatal) on DIMM Label\(s\): '(.{1,160})' location: ?([\d:-]{1,40}) errors: (\d{1,12})"
)
# 1 2026-09-30 10:00:00 +0000 1 Uncorrected error(s): memory read error at B2 location: 0:1:1:-1, addr 35, grain 5, syndrome 0
_RECORD = re.compile(
    r"\d{1,9} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} {1,4}(\d{1,9}) (Corrected|Uncorrected|Fatal) error\(s\):? {1,4}.{1,80}? at (.{1,160}?) location: ?([\d:-]{1,40}).{0,400}"
)
# mc#0csrow#2channel#0  0   0       below   Label                 CE      UE
_COUNTS_HEAD = re.compile(r"Label\s{1,200}CE\s{1,40}UE")
_COUNTS = re.compile(r"(\S.{0,120}?)\s{1,200}(\d{1,12})\s{1,40}(\d{1,12})")
# edac-util: No errors to report.       No Memory errors.
_NONE = re.compile(r"edac-util: No errors to report\.?|No Memory errors\.")


def sniff(head: str) -> int:
    """93 for a line of one of them."""
    return 93 if any(_told(clean(line.text[:800]).strip()) for line in lines_of(head)[:400]) else 0


def _told(text: str) -> bool:
    return any(form.fullmatch(text) for form in (_EDAC, _SUMMARY, _RECORD, _COUNTS_HEAD, _NONE))


def parse(text: str, context: Context) -> list[Observation]:
    """How many errors each module had, and all together."""
    here = node(context.host)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    lines: dict[tuple[str, str], Line] = {}
    table = False
    none: Line | None = None
    for line in lines_of(text):
        told = clean(line.text[:800]).strip()
        found: list[tuple[str, str, int]] = []
        if m := _EDAC.fullmatch(told):
            place = " ".join(part for part in m.group(1, 2) if part)
            found = [(f"{m[3]} ({place})" if m[3] else place, KINDS[m[5]], int(m[4]))]
        elif m := _SUMMARY.fullmatch(told):
            found = [(f"{m[2]} ({m[3]})", KINDS[m[1]], int(m[4]))]
        elif m := _RECORD.fullmatch(told):
            found = [(f"{m[3]} ({m[4]})", KINDS[m[2]], int(m[1]))]
        elif table and (m := _COUNTS.fullmatch(told)):
            found = [(m[1], "corrected", int(m[2])), (m[1], "uncorrected", int(m[3]))]
        table = _COUNTS_HEAD.fullmatch(told) is not None or (table and bool(found))
        none = line if _NONE.fullmatch(told) else none
        for module, kind, count in found:
            counts[module, kind] += count
            lines[module, kind] = line
    out = [
        _observation(f"dimm.errors.{kind}", Subject(Scope.OBJECT, module, here), count, lines[module, kind], context)
        for (module, kind), count in counts.items()
    ]
    for kind in ("corrected", "uncorrected"):
        own = [(count, lines[key]) for key, count in counts.items() if key[1] == kind]
        if own or none:
            total, last = sum(count for count, _ in own), own[-1][1] if own else none
            assert last is not None
            out.append(_observation(f"node.memory.errors.{kind}", here, total, last, context))
    return out


def _observation(fact: str, subject: Subject, count: int, line: Line, context: Context) -> Observation:
    shown = excerpt(clean(line.text.strip()), 300)
    return Observation(fact, subject, count, Status.OK, context.at(NAME, REVISION, line.number), excerpt=shown)


FORMAT = DocumentFormat(NAME, "edac-util -v, ras-mc-ctl", REVISION, PROVIDES, sniff, parse)
