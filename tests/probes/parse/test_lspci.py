"""Stories of the PCI bus."""

from __future__ import annotations

from pathlib import Path

from knowledge.observation import Observation, Scope, Status, Subject, gpu, node
from probes.base import Context
from probes.parse import lspci
from probes.parse.lspci import FORMAT
from tests.cases import each

TEXT = (Path(__file__).parents[2] / "captures" / "network" / "lspci.gpu-gone.txt").read_text()


def read(text: str) -> list[Observation]:
    return lspci.parse(text, Context("lspci", "gpu-1"))


def told(text: str) -> dict[tuple[Subject, str], object]:
    return {(o.subject, o.fact): o.value if o.status is Status.OK else o.status for o in read(text)}


def pci(address: str) -> Subject:
    return Subject(Scope.PCI, address, node("gpu-1"))


def test_a_gpu_that_left_the_bus() -> None:
    facts = told(TEXT)
    lost = gpu("0000:18:00.0", "gpu-1")
    assert facts[lost, "gpu.on_bus"] is False
    assert facts[lost, "gpu.pcie.width"] is Status.FAILED
    assert facts[pci("0000:18:00.0"), "pci.link.speed"] is Status.FAILED
    assert facts[node("gpu-1"), "node.pci.gone"] == ("0000:18:00.0",)
    assert facts[node("gpu-1"), "node.pci.gpu_count"] == 2


def test_a_link_below_its_capability() -> None:
    facts = told(TEXT)
    here, card = pci("0000:17:00.0"), gpu("0000:17:00.0", "gpu-1")
    assert (facts[here, "pci.link.width"], facts[here, "pci.link.width.max"], facts[here, "pci.link.downgraded"]) == (
        8,
        16,
        ("width",),
    )
    assert (facts[here, "pci.link.speed"], facts[card, "gpu.pcie.gen"], facts[card, "gpu.pcie.width"]) == (32.0, 5, 8)
    assert (facts[here, "pci.aer.uncorrectable"], facts[here, "pci.aer.correctable"]) == (("CmpltTO",), ("RxErr",))
    assert (facts[here, "pci.bar2.size"], facts[here, "pci.iommu_group"], facts[card, "gpu.numa"]) == (131072.0, 42, 1)
    assert facts[card, "gpu.on_bus"] is True


def test_bridges_and_switches() -> None:
    facts = told(TEXT)
    assert (facts[pci("0000:16:01.0"), "pci.acs.enabled"], facts[node("gpu-1"), "node.pci.acs_bridges"]) == (True, 1)
    assert facts[pci("0000:83:00.0"), "pci.driver"] == "nvidia-nvswitch"
    assert facts[node("gpu-1"), "node.pci.nvswitch_count"] == 1


def test_without_privilege_the_link_is_denied_not_absent() -> None:
    assert told(TEXT)[pci("0000:19:00.0"), "pci.link.width"] is Status.DENIED


@each(
    "head",
    [
        "0000:17:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)",
        "17:00.0 0302: 10de:2330 (rev a1)",
        "17:00.0 VGA compatible controller: NVIDIA Corporation TU104GL [Tesla T4] (rev a1) (prog-if 00 [VGA controller])",
        "0009:01:00.0 3D controller: NVIDIA Corporation Device 2342 (rev a1)",
    ],
)
def test_the_shapes_of_a_headline(head: str) -> None:
    [found] = [o for o in read(f"{head}\n\tKernel driver in use: nvidia\n") if o.fact == "gpu.on_bus"]
    assert found.value is True


def test_a_board_controller_is_no_gpu() -> None:
    facts = told(
        "00:00.0 Host bridge: X Device 1\n03:00.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev 52)\n"
    )
    assert facts[node("gpu-1"), "node.pci.gpu_count"] == 0


def test_a_listing_of_one_device_does_not_count_what_it_does_not_list() -> None:
    facts = told(
        "19:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n\tKernel driver in use: mlx5_core\n"
    )
    assert (node("gpu-1"), "node.pci.gpu_count") not in facts
    assert facts[node("gpu-1"), "node.pci.nic_count"] == 1


def test_a_header_of_ones_with_an_old_revision_is_gone_too() -> None:
    facts = told(
        "17:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\t!!! Unknown header type 7f\n\tKernel driver in use: nvidia\n"
    )
    assert facts[pci("0000:17:00.0"), "pci.device.responding"] is False


def test_a_link_of_unknown_speed_is_a_failure() -> None:
    facts = told(
        "17:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\t\tLnkSta:\tSpeed unknown, Width x0\n"
    )
    assert facts[pci("0000:17:00.0"), "pci.link.speed"] is Status.FAILED
    assert facts[pci("0000:17:00.0"), "pci.link.width"] == 0


CAP = "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
STATE = "\t\tLnkSta:\tSpeed {}, Width {}\n"


def test_links_that_were_picked_out_of_those_of_nvidia_are_of_gpus() -> None:
    text = (
        "$ lspci -vvv -d 10de: | grep -e LnkCap -e LnkSta\n"
        + CAP
        + STATE.format("32GT/s", "x16")
        + CAP
        + STATE.format("32GT/s", "x4 (downgraded)")
    )
    assert FORMAT.sniff(text) > 0
    facts = told(text)
    assert [facts[gpu(f"unknown:row {i}", "gpu-1"), "gpu.pcie.width"] for i in (0, 1)] == [16, 4]
    assert not [key for key in facts if key[1].startswith("node.")], "how many there are, rows do not tell"
    assert FORMAT.unread is not None
    assert not FORMAT.unread(text)


@each(
    ("text", "said"),
    [
        (CAP + STATE.format("32GT/s", "x8 (downgraded)"), "x8 of x16, and which device"),
        (STATE.format("2.5GT/s (downgraded)", "x16 (ok)"), "2.5GT/s (downgraded), and"),
        ("$ lspci -vvs 1b:00.0 | grep Lnk\n" + CAP + STATE.format("16GT/s", "x16"), "16GT/s of 32GT/s, and whether 0000:1b:00.0 is a GPU"),
        (CAP + STATE.format("32GT/s (ok)", "x16 (ok)"), ""),
    ],
)  # fmt: skip
def test_a_link_below_what_its_device_can_is_named_where_the_device_is_not(text: str, said: str) -> None:
    assert FORMAT.sniff(text) > 0
    assert FORMAT.unread is not None
    assert [said in str(why) for _, why in FORMAT.unread(text)] == ([True] if said else [])
    assert not told(text)


def test_what_kind_of_device_has_the_link_is_told() -> None:
    text = (
        "3b:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n\tSubsystem: Mellanox Technologies Device 0041\n"
        "\t\tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)\n"
    )
    found = {o.fact: o.value for o in FORMAT.parse(text, Context("-", "n1"))}
    assert (found["pci.kind"], found["pci.link.downgraded"]) == ("nic", ("width",))
