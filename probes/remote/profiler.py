"""A running job of another machine, looked into by the gpudiag that is installed there; from outside only.

A capture needs gpudiag and py-spy beside the job, so it is no text that could be sent over the line. Where gpudiag is installed
it is called as ``gpudiag profile --pid 4242 --outside --document``: it prints the document ``gpudiag/capture/1``, starts
nothing in the job, asks nobody and keeps nothing. What runs inside a job is agreed to on its own machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from knowledge.observation import Status
from knowledge.text import excerpt
from probes.host import Host, Reply
from probes.remote import ConnectError

COLLECTOR = "capture"
CAN = "--can"  # asked instead of ``--pid``: whether a job can be looked into there at all
# By the user's PATH and the folders of administrators (`probes.live_host.FOLDERS`), then where nothing else lies.
PLACES = ("gpudiag", "/opt/gpudiag/bin/gpudiag")
OUTSIDE = ("--outside", "--document")
_ELSEWHERE = "a running job is looked into from its own machine: run gpudiag profile on that machine"
_ABSENT = f"{_ELSEWHERE}; from here it can be done once gpudiag is installed there"
_ROOTED = f"{_ELSEWHERE}, outside the container through which it is looked at"
_INSIDE = f"what runs inside a job is agreed to where it runs. {_ELSEWHERE[0].upper()}{_ELSEWHERE[1:]}"

Which = Callable[[Sequence[str]], Mapping[str, str]]


def able(host: Host) -> bool:
    """Whether a running job can be looked into from outside on `host`, another machine or the recording of one."""
    return host.snapshot(COLLECTOR, CAN, deadline=5.0).whole


def answer(blank: Reply, root: str, which: Which, run: Callable[[Sequence[str]], Reply], name: str) -> Reply:
    """The reply to a capture of the machine called `name`.

    `root` is where its file system is mounted, `which` finds programs there, `run` gives `blank` as a command answers it.
    """
    words = blank.call[1:]
    wanted = words if words == (CAN,) else _pids(words)
    if not wanted or root:
        return replace(blank, status=Status.UNSUPPORTED, detail=_ROOTED if root else _INSIDE)
    try:
        there = which(PLACES)
    except ConnectError as error:
        return replace(blank, status=Status.FAILED, detail=error.why.en)
    # As it was asked for: nothing that came from there is started.
    program = next((p for p in PLACES if p in there), "")
    if not program:
        return replace(blank, status=Status.UNSUPPORTED, detail=_ABSENT)
    if wanted == (CAN,):
        return replace(blank, data=json.dumps({"program": there[program]}).encode() + b"\n", exit_code=0)
    return _told(run((program, "profile", *wanted, *OUTSIDE)), excerpt(name, 100))


def _pids(words: Sequence[str]) -> tuple[str, ...]:
    """``--pid 4242,4243`` and nothing else; empty for anything that asks for more."""
    fine = len(words) == 2 and words[0] == "--pid" and all(w.isascii() and w.isdigit() for w in words[1].split(","))
    return tuple(words) if fine else ()


def _told(reply: Reply, name: str) -> Reply:
    """`reply`, with a reason where the gpudiag there printed no document."""
    if reply.data.strip() or reply.status is not Status.OK:
        return reply
    if OUTSIDE[0] in reply.errors:  # its argument parser repeats what it does not know
        why = f"the gpudiag on {name} is older than this one and cannot do it for another machine: update it there"
    else:
        said = next((line for line in reply.errors.splitlines() if line.strip()), "")
        why = f"gpudiag on {name}: {excerpt(said.removeprefix('gpudiag: '), 240) or 'it printed nothing'}"
    return replace(reply, status=Status.FAILED, detail=why)
