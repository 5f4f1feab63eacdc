"""Whose accelerator a PCI function is: GPUs of other vendors, and everything that looks like one and is none."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from knowledge.facts import vocabulary
from probes.parse._pci_vendor import NAMES, NVIDIA, VENDORS, accelerator, may_be_gpu
from tests.cases import each


@each(
    ("vendor", "class_", "driver", "word"),
    [
        ("1002", "1200", "amdgpu", "amd"),  # MI300X
        ("1002", "0380", "amdgpu", "amd"),  # MI250X
        ("1002", "0302", "", "amd"),
        ("1002", "0300", "amdgpu", "amd"),  # Radeon PRO
        ("8086", "0380", "xe", "intel"),  # Data Center GPU Max
        ("8086", "0300", "i915", "intel"),  # Flex and Arc cards
        ("19e5", "1200", "devdrv_device_driver", "huawei"),  # Ascend 910
        ("1da3", "1200", "habanalabs", "habana"),
        ("1ed5", "0302", "mtgpu", "moorethreads"),
        ("cabc", "1200", "", "cambricon"),
        ("1d94", "1200", "", "hygon"),
        ("ffff", "1200", "", "other"),
        ("ffff", "0302", "", "other"),
    ],
)
def test_accelerators(vendor: str, class_: str, driver: str, word: str) -> None:
    assert accelerator(vendor, class_, "0000:3b:00.0", driver) == word


@each(
    ("vendor", "class_", "pci", "driver"),
    [
        ("10de", "0302", "0000:3b:00.0", "nvidia"),
        ("10de", "0300", "0000:3b:00.0", "nvidia"),
        ("10de", "1200", "0000:3b:00.0", ""),
        ("1a03", "0300", "0000:02:00.0", "ast"),  # ASPEED, a management controller's screen
        ("102b", "0300", "0000:02:00.0", "mgag200"),  # Matrox
        ("19e5", "0300", "0000:02:00.0", "hibmc-drm"),  # Huawei's Hi171x
        ("8086", "0300", "0000:00:02.0", "i915"),  # graphics of a processor
        ("8086", "0380", "0000:00:02.0", "xe"),
        ("8086", "1200", "0000:00:0b.0", "intel_vpu"),  # NPU of a processor
        ("10ee", "1200", "0000:3b:00.0", ""),  # FPGA
        ("1234", "0300", "0000:00:02.0", "bochs-drm"),  # emulated
        ("1af4", "0380", "0000:00:02.0", "virtio-pci"),
        ("1002", "0300", "0000:3b:00.0", ""),  # a card that nothing computes on
        ("1002", "0300", "0000:3b:00.0", "radeon"),
        ("1002", "0403", "0000:3b:00.1", "snd_hda_intel"),  # its sound
        ("1022", "0604", "0000:3a:00.0", "pcieport"),
        ("", "", "", ""),
    ],
)  # fmt: skip
def test_what_is_no_accelerator_of_another_vendor(vendor: str, class_: str, pci: str, driver: str) -> None:
    assert accelerator(vendor, class_, pci, driver) == ""


@given(st.text("0123456789abcdef", max_size=4), st.text("0123456789abcdef", max_size=4), st.text(max_size=12))
def test_every_word_is_one_of_the_vocabulary(vendor: str, class_: str, driver: str) -> None:
    word = accelerator(vendor, class_, "0000:3b:00.0", driver)
    assert word == "" or (word in vocabulary()["pci.accelerator"].values and word in vocabulary()["gpu.vendor"].values)
    assert vendor != NVIDIA or not word


def test_names_and_numbers_are_of_the_same_vendors() -> None:
    assert set(NAMES.values()) == set(VENDORS)


@each(
    ("vendor", "class_", "pci", "driver", "may"),
    [
        ("1002", "0300", "0000:3b:00.0", "", True), ("1002", "0300", "0000:3b:00.0", "radeon", True),
        ("8086", "0300", "0000:03:00.0", "", True), ("1002", "1200", "0000:05:00.0", "", True),
        ("8086", "0300", "0000:00:02.0", "", False), ("10de", "0302", "0000:3b:00.0", "nvidia", False),
        ("10de", "0300", "0000:3b:00.0", "nouveau", False), ("1a03", "0300", "0000:02:00.0", "ast", False),
        ("19e5", "0300", "0000:02:00.0", "hibmc-drm", False), ("8086", "1200", "0000:00:0b.0", "intel_vpu", False),
        ("1002", "0403", "0000:3b:00.1", "snd_hda_intel", False), ("8086", "0200", "0000:3b:00.0", "igb", False),
    ],
)  # fmt: skip
def test_what_may_be_a_gpu_of_another_vendor(vendor: str, class_: str, pci: str, driver: str, may: bool) -> None:
    assert may_be_gpu(vendor, class_, pci, driver) is may
