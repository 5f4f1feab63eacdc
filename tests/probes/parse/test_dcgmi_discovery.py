"""The list of ``dcgmi discovery -l``."""

from __future__ import annotations

from knowledge.observation import Status
from probes.parse.dcgmi_discovery import FORMAT
from tests.probes.parse.smi_case import CONTEXT, capture

TEXT = capture("dcgm/dcgmi-discovery.txt")


def test_gpus_are_named_by_address_and_what_dcgm_could_not_read_failed() -> None:
    assert FORMAT.sniff(TEXT) == 94
    got = {(o.subject.id, o.fact): o for o in FORMAT.parse(TEXT, CONTEXT)}
    assert got["0000:18:00.0", "gpu.name"].value == "NVIDIA H200"
    assert got["0000:2a:00.0", "gpu.name"].status is Status.FAILED
    assert got["0000:2a:00.0", "gpu.uuid"].value == "GPU-66666666-7777-8888-9999-aaaaaaaaaaaa"
    assert got[CONTEXT.host, "node.gpu.listed"].value == 2


def test_fewer_than_announced_are_a_cut_list() -> None:
    text = TEXT[: TEXT.index("| 1      |")]
    (listed,) = [o for o in FORMAT.parse(text, CONTEXT) if o.fact == "node.gpu.listed"]
    assert (listed.status, listed.value) == (Status.FAILED, None)
    assert "ends early" in listed.detail
