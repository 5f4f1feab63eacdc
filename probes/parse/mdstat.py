"""``/proc/mdstat``: software arrays, and how many members each of them lacks (drivers/md/md.c, md_seq_show)."""

from __future__ import annotations

import re

from knowledge.observation import Observation, Scope, Status, Subject, Value, node
from knowledge.text import clean, excerpt
from probes.base import Context, DocumentFormat, Line, lines_of

NAME, REVISION = "mdstat", 1
PROVIDES = ("raid.action", "raid.level", "raid.members.missing", "raid.state")
# Personalities : [raid1] [raid0]
_HEAD = re.compile(r"Personalities :(?: \[\w{2,20}\]){0,20}\s{0,8}")
# md0 : active raid1 nvme1n1p2[1] nvme0n1p2[0](F)        md127 : active (auto-read-only) raid1 sdb[1] sda[0]        md2 : inactive sdc[0](S)
_ARRAY = re.compile(
    r"(md[\w-]{1,40}) : (active|inactive)(?: \((read-only|auto-read-only)\))?(?: (raid\d{1,2}|linear|multipath|faulty))?(?: .{0,2000})?"
)
#       937561088 blocks super 1.2 [2/1] [_U]
_MEMBERS = re.compile(r"\s{1,12}\d{1,20} blocks.{0,200}? \[(\d{1,4})/(\d{1,4})\] \[[U_]{1,400}\].{0,40}")
#       [===>.................]  recovery = 12.6% (37043392/292945152) finish=127.5min speed=33440K/sec
_ACTION = re.compile(r"\s{1,12}(?:\[[=>.]{1,60}\]\s{1,8})?(recovery|resync|reshape|check)\s{0,3}=.{0,200}")
_ACTIONS = {"recovery": "recover"}  # as sync_action of sysfs calls it


def sniff(head: str) -> int:
    """94 for its first line."""
    return 94 if any(_HEAD.fullmatch(line.text[:400]) for line in lines_of(head)[:10]) else 0


def parse(text: str, context: Context) -> list[Observation]:
    """Level, state, what it does and how many members are missing, of each array."""
    out: list[Observation] = []
    here: Subject | None = None

    def add(fact: str, subject: Subject, value: Value, line: Line) -> None:
        source = context.at(NAME, REVISION, line.number)
        out.append(Observation(fact, subject, value, Status.OK, source, excerpt=excerpt(clean(line.text.strip()), 300)))

    for line in lines_of(text):
        told = line.text[:2400]
        if array := _ARRAY.fullmatch(told):
            here = Subject(Scope.OBJECT, array[1], node(context.host))
            add("raid.state", here, array[3] or array[2], line)
            if array[4]:
                add("raid.level", here, array[4], line)
        elif here is not None and (members := _MEMBERS.fullmatch(told)):
            add("raid.members.missing", here, max(0, int(members[1]) - int(members[2])), line)
        elif here is not None and (action := _ACTION.fullmatch(told)):
            add("raid.action", here, _ACTIONS.get(action[1], action[1]), line)
    return out


FORMAT = DocumentFormat(NAME, "/proc/mdstat", REVISION, PROVIDES, sniff, parse)
