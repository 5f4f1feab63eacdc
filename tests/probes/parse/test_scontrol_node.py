"""``scontrol show node``: states, reasons and counts; nodes apart; nothing invented."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assistant.render.times import iso
from knowledge.observation import Clock, Event, Observation
from probes.base import Context
from probes.parse import scontrol_node, slurm_jobs
from probes.parse.scontrol_node import FORMAT

TWO = """\
NodeName=gpu017 Arch=x86_64 CoresPerSocket=48
   CPUAlloc=0 CPUEfctv=192 CPUTot=192 CPULoad=0.10
   Gres=gpu:h100:6(S:0-1),gpu:a100:2,nic:1
   State=IDLE+DRAIN+INVALID_REG ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Reason=gres/gpu count reported lower than configured (7 < 8) [slurm@2026-11-20T03:14:15]

NodeName=gpu018 Arch=x86_64 CoresPerSocket=48
   Gres=(null)
   State=MIXED* ThreadsPerCore=2 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
"""


def values(text: str) -> dict[tuple[str, str], object]:
    return {(o.subject.id, o.fact): o.value for o in FORMAT.parse(text, Context("x"))}


def test_two_nodes_one_of_them_held() -> None:
    got = values(TWO)
    assert got["gpu017", "node.slurm.state"] == "IDLE+DRAIN+INVALID_REG"
    assert got["gpu017", "node.slurm.held"] is True
    assert got["gpu017", "node.slurm.gpus"] == 8
    event = got["gpu017", "slurmctld_inval"]
    assert isinstance(event, Event)
    assert (event.get("resource"), event.get("found"), event.get("configured")) == ("gres/gpu", 7, 8)
    assert got["gpu018", "node.slurm.held"] is True, "a node that does not answer gets no work"
    assert got["gpu018", "node.slurm.answers"] is False
    assert ("gpu018", "node.slurm.gpus") not in got
    assert ("gpu018", "node.slurm.reason") not in got


def test_lines_are_those_of_the_text() -> None:
    lines: dict[str, int | None] = {}
    for o in FORMAT.parse(TWO, Context("x")):
        lines.setdefault(o.fact + o.subject.id, o.source.line)
    assert lines["node.slurm.stategpu017"] == 4
    assert lines["node.slurm.reasongpu017"] == 5
    assert lines["node.slurm.stategpu018"] == 9


def test_the_reason_has_the_time_it_was_given_at_and_a_job_the_time_it_ended_at() -> None:
    held = [o for o in FORMAT.parse(TWO, Context("x")) if o.fact in ("node.slurm.reason", "slurmctld_inval")]
    sacct = "JobID      State Start               End                 NodeList\n------ --------- ------------------- ------------------- --------\n"
    ended = slurm_jobs.parse(f"{sacct}9      NODE_FAIL 2026-11-20T01:00:00 2026-11-20T03:14:15 gpu017\n", Context("x"))
    told = [o for o in (*held, *ended) if o.fact != "slurm_job_waits"]
    assert len(told) == 3
    assert {(iso(o.at or 0), o.clock) for o in told} == {("2026-11-20T03:14:15Z", Clock.LOCAL)}


def test_it_is_known_by_its_shape() -> None:
    assert FORMAT.sniff(TWO) == 95
    assert FORMAT.sniff("NodeName=n1 CPUs=4 State=UNKNOWN") == 0, "a line of slurm.conf tells no state that was seen"


@given(st.text(max_size=300), st.integers(0, len(TWO)))
def test_any_text_is_read_without_an_error(noise: str, cut: int) -> None:
    found: list[Observation] = scontrol_node.parse(TWO[:cut] + noise, Context("x"))
    assert all(o.subject.id for o in found)
