"""Lists of ``nvidia-smi mig``."""

from __future__ import annotations

from probes.parse.nvidia_smi_mig import FORMAT
from tests.probes.parse.smi_case import CONTEXT, capture


def test_mig_devices_are_the_compute_instances() -> None:
    text = capture("smi/mig-lci.txt")
    assert FORMAT.sniff(text) == 94
    got = {(o.subject.id, o.fact): o.value for o in FORMAT.parse(text, CONTEXT)}
    assert (got["index:0", "gpu.mig.devices"], got["index:3", "gpu.mig.devices"]) == (2, 1)
    assert got["index:3", "gpu.mig.mode"] is True


def test_gpu_instances_and_profiles_tell_the_mode_alone() -> None:
    for title, row in (
        ("GPU instances:", "|   0  MIG 3g.40gb          9        1          4:4     |"),
        ("GPU instance profiles:", "|   0  MIG 1g.10gb+me    20     1/1        9.75       No     16     1     0   |"),
    ):
        text = f"| {title}                                        |\n{row}\n"
        assert [(o.fact, o.value) for o in FORMAT.parse(text, CONTEXT)] == [("gpu.mig.mode", True)]
    assert not FORMAT.sniff("| GPU instances are listed below |\n")
