"""`gpudiag explain`: every kind, every entry, both languages, and the nearest name for what is unknown."""

from __future__ import annotations

import json
import re

import pytest

from assistant.commands.explain import page
from assistant.config import Output
from assistant.render import sheet
from assistant.topics import kinds, topic
from knowledge.errors import GpudiagError, UnknownNameError, UsageError
from tests.cases import each
from tests.conftest import Gpudiag

KINDS = kinds()
SHAPES = ("text", "json", "markdown", "html")


@pytest.mark.slow
@each("kind", KINDS)
def test_every_entry_has_a_page_in_both_languages_and_all_shapes(kind: str) -> None:
    found = topic(kind)
    assert kind == found.KIND
    assert found.HELP
    names = list(found.names())
    assert names
    for n, name in enumerate(dict.fromkeys(names)):
        for lang in ("en", "zh"):
            made = found.sheet([name], lang)
            assert made.title
            shapes = SHAPES if n % 25 == 0 else ("text",)
            for shape in shapes:
                text = sheet.show(made, Output(lang, shape, "never"))
                assert text.endswith("\n")
                assert "\x1b" not in text
                if shape == "json":
                    data = json.loads(text)
                    assert data["schema"] == "gpudiag/sheet/1"
                    assert data["kind"] == kind


@each(
    ("words", "title"),
    [
        (["xid", "79"], "XID 79: "),
        (["xid", "0x4f"], "XID 79: "),
        (["79"], "XID 79: "),
        (["xid79"], "XID 79: "),
        (["sxid", "12028"], "SXid 12028: "),
        (["NVRM: Xid (PCI:0000:3b:00): 48, pid=1, name=x, DBE"], "XID 48: "),
        (["nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 1 x"], "SXid 12028: "),
        (["nccl", "2"], "A system call inside NCCL failed"),
        (["nccl", "ncclSystemError"], "A system call inside NCCL failed"),
        (["cuda", "719"], "cudaErrorLaunchFailure: "),
        (["cuda", "CUDA_ERROR_LAUNCH_FAILED"], "cudaErrorLaunchFailure: "),
        (["RuntimeError: CUDA error: unspecified launch failure"], ""),
        (["dcgm", "150"], "DCGM_FI_DEV_GPU_TEMP"),
        (["gpu", "H100"], "H100: "),
        (["gpu", "NVIDIA H100 80GB HBM3"], "H100 SXM5"),
        (["clock", "0x80"], "HW Power Brake Slowdown"),
        (["clock", "0x84"], "0x84"),
        (["status", "0x65"], "NV_ERR_TIMEOUT (0x65): the call timed out"),
        (["NV_ERR_RESET_REQUIRED"], "NV_ERR_RESET_REQUIRED (0x62): a reset is required"),
        (
            ["status", "(0x62:0x65:1860)"],
            "RmInitAdapter (0x62:0x65:1860): the GPU's firmware (GSP) did not start: the call timed out",
        ),
        (["action", "reset-gpu"], "RESET_GPU"),
        (["fact", "gpu.temperature.core"], "gpu.temperature.core"),
        (["rule", "gpu-fell-off-bus"], "GPU has fallen off the bus"),
        (["gpu-fell-off-bus"], "GPU has fallen off the bus"),
        (["runbook", "gpu-off-bus"], ""),
        (["row", "remapping"], "Row remapping"),
    ],
)
def test_what_people_type(words: list[str], title: str) -> None:
    assert page(words, "en").title.startswith(title)


def test_a_prefix_lists_the_facts_below_it() -> None:
    made = page(["fact", "gpu.ecc"], "en")
    names = made.data["names"]
    assert len(names) > 5
    assert all(n.startswith("gpu.ecc.") for n in names)


@each(
    ("words", "hint"),
    [
        (["xid", "999"], "1 to"),
        (["xid", "ROBUST_CHANNEL_GPU_HAS_FALLEN_OF_THE_BUS"], ""),
        (["cuda", "cudaErrorNoDevic"], "cudaErrorNoDevice"),
        (["fact", "gpu.temprature.core"], "gpu.temperature.core"),
        (["rule", "gpu-fell-of-bus"], "gpu-fell-off-bus"),
        (["gpu", "H10O"], "H100"),
        (["action", "REST_GPU"], "RESET_GPU"),
        (["gpu-fell-of-bus"], "gpu-fell-off-bus"),
        (["purple", "elephants"], "xid"),
    ],
)
def test_unknown_names_bring_the_nearest(words: list[str], hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        page(words, "en")
    assert hint in caught.value.hint


@each("words", [["xid", "seventy", "nine"], ["xid", "-3"], ["sxid", "1e9"], ["fact", "a", "b"], ["rule", "a", "b"]])
def test_what_is_no_name(words: list[str]) -> None:
    with pytest.raises(GpudiagError):
        page(words, "en")


def test_a_kind_alone_asks_for_a_name() -> None:
    with pytest.raises(UsageError, match="needs a name"):
        page(["xid"], "en")


def test_chinese_pages_have_chinese_labels(gpudiag: Gpudiag) -> None:
    for words in (
        ("xid", "79"),
        ("sxid", "12028"),
        ("cuda", "719"),
        ("fact", "gpu.temperature.core"),
        ("rule", "gpu-fell-off-bus"),
    ):
        out = gpudiag("explain", *words, "--lang", "zh").out
        labels = re.findall(r"^  (\S+)  ", out, re.MULTILINE)
        assert labels
        for label in labels:
            assert re.search(r"[\u4e00-\u9fff]", label), label
