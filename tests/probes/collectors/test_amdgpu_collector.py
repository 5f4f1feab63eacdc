"""The `amdgpu` collector as a process, on trees of healthy and sick machines, with its parser behind it."""

from __future__ import annotations

import ast
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Observation, Status, Subject, gpu, node
from probes.base import Context
from probes.parse.amdgpu_snapshot import FORMAT, RAS
from tests.probes.amd_tree import GPUS, machine, sicken
from tests.probes.collectors.collecting import FOLDER, collect, read, told
from tests.probes.collectors.sysfs_tree import Node, block, put
from tests.probes.parse.vocabulary_check import assert_in_vocabulary

HERE = node("gpu-1")
FIRST = gpu(GPUS[0], "gpu-1")


@pytest.fixture
def tree(tmp_path: Path) -> Node:
    return machine(tmp_path / "root")


def look(tree: Node, **more: Any) -> dict[tuple[str, Subject], Any]:
    found = read(FORMAT, collect("amdgpu", tree.root, **more))
    assert_in_vocabulary(found, FORMAT)
    return told(found)


@pytest.mark.process
def test_a_healthy_node(tree: Node) -> None:
    facts = look(tree)
    assert facts["node.gpus.amd", HERE] == 4
    expected = {
        "gpu.vendor": "amd", "gpu.driver.name": "amdgpu", "gpu.name": "AMD Instinct MI300X OAM", "gpu.numa": 0,
        "gpu.utilization.core": 97, "gpu.memory.total": 196592, "gpu.power.draw": 612.0, "gpu.power.limit": 750.0,
        "gpu.clock.graphics": 1945, "gpu.temperature.hotspot": 71, "gpu.temperature.hotspot_slowdown": 100,
        "gpu.temperature.memory": 58, "gpu.temperature.memory_slowdown": 105, "gpu.ras.uncorrected": 0,
        "gpu.ras.corrected": 0, "gpu.ras.deferred": 0, "gpu.ras.uncorrected.blocks": (), "gpu.bad_pages.retired": 0,
        "gpu.bad_pages.pending": 0, "gpu.bad_pages.failed": 0,
    }  # fmt: skip
    assert {fact: facts[fact, FIRST] for fact in expected} == expected
    assert ("gpu.temperature.core", FIRST) not in facts  # this GPU has no sensor at its edge


@pytest.mark.process
def test_errors_and_bad_pages(tree: Node) -> None:
    sicken(tree)
    facts, sick = look(tree), gpu(GPUS[2], "gpu-1")
    assert [facts[fact, sick] for fact in RAS] == [7, 2, 1]
    assert facts["gpu.ras.uncorrected.blocks", sick] == ("umc",)
    assert (facts["gpu.bad_pages.retired", sick], facts["gpu.bad_pages.pending", sick]) == (1, 1)


@pytest.mark.process
def test_a_card_without_ras_counts_no_errors(tree: Node) -> None:
    shutil.rmtree(tree.pci(GPUS[0]) / "ras")
    facts = look(tree)
    assert {facts[fact, FIRST] for fact in RAS} == {Status.NOT_APPLICABLE}


@pytest.mark.process
def test_a_folder_of_ras_without_counters_is_no_answer(tree: Node) -> None:
    for path in (tree.pci(GPUS[0]) / "ras").glob("*_err_count"):
        path.unlink()
    assert {look(tree)[fact, FIRST] for fact in RAS} == {Status.UNSUPPORTED}


@pytest.mark.process
def test_a_gpu_that_sleeps_is_not_asked(tree: Node) -> None:
    put(tree.pci(GPUS[0]) / "power/runtime_status", "suspended")
    for path in (tree.pci(GPUS[0]) / "ras").glob("*"):
        block(path)  # whoever reads it hangs
    facts = look(tree, deadline=20)
    assert facts["gpu.runtime_status", FIRST] == "suspended"
    assert {facts[fact, FIRST] for fact in RAS} == {Status.NOT_ASKED}
    assert ("gpu.utilization.core", FIRST) not in facts


@pytest.mark.process
def test_xgmi_is_never_read(tree: Node) -> None:
    put(tree.pci(GPUS[0]) / "xgmi_error", "2")
    block(tree.pci(GPUS[0]) / "xgmi_error")
    assert look(tree)["gpu.ras.uncorrected", FIRST] == 0


@pytest.mark.process
def test_one_gpu_that_hangs_hides_no_other(tree: Node) -> None:
    block(tree.pci(GPUS[1]) / "ras/gfx_err_count")
    facts = look(tree, deadline=2)
    assert {facts[fact, gpu(GPUS[1], "gpu-1")] for fact in RAS} == {Status.TIMEOUT}
    assert [facts["gpu.ras.uncorrected", gpu(GPUS[i], "gpu-1")] for i in (0, 2, 3)] == [0, 0, 0]


@pytest.mark.process
@pytest.mark.parametrize("said", ["", "no idea", "ue: 65535\nce: 65535"])
def test_a_counter_that_cannot_be_read_makes_no_zero(tree: Node, said: str) -> None:
    put(tree.pci(GPUS[0]) / "ras/gfx_err_count", said)
    facts = look(tree)
    assert {facts[fact, FIRST] for fact in RAS} == {Status.FAILED}
    assert ("gpu.ras.uncorrected.blocks", FIRST) not in facts


@pytest.mark.process
def test_errors_that_were_read_are_told_beside_a_counter_that_was_not(tree: Node) -> None:
    put(tree.pci(GPUS[0]) / "ras/gfx_err_count", "no idea")
    put(tree.pci(GPUS[0]) / "ras/umc_err_count", "ue: 3\nce: 0")
    facts = look(tree)
    assert (facts["gpu.ras.uncorrected", FIRST], facts["gpu.ras.corrected", FIRST]) == (3, Status.FAILED)


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_counters_that_only_root_may_read(tree: Node) -> None:
    for path in (tree.pci(GPUS[0]) / "ras").glob("*"):
        path.chmod(0)
    for path in (tree.root, *tree.root.parents):
        if path.stat().st_uid == 0 and path != Path("/"):
            path.chmod(path.stat().st_mode | 0o055)
    facts = look(tree, uid=65534)
    assert {facts[fact, FIRST] for fact in RAS} == {Status.DENIED}


@pytest.mark.process
def test_without_a_driver_there_is_a_reason(tmp_path: Path) -> None:
    found = read(FORMAT, collect("amdgpu", machine(tmp_path / "root", driver=False).root))
    (count,) = found
    assert (count.fact, count.value is None, count.detail != "") == ("node.gpus.amd", True, True)


def test_any_python_that_a_node_may_have() -> None:
    assert ast.parse((FOLDER / "amdgpu.py").read_text(), feature_version=(3, 8))


# --- the parser alone -----------------------------------------------------------------------

JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=12), st.builds(list), st.builds(dict),
    st.just({"error": "EIO: Input/output error"}), st.just("ue: 7\nce: x"), st.just("\x1b[31m\u202e"), st.just("9" * 30),
)  # fmt: skip
KEYS = ("files", "hwmon", "ras", "ras_folder", "pages", "hung", "asleep", "power")


def parse(devices: Any) -> list[Observation]:
    document = {"schema": "gpudiag/amdgpu/1", "at_ns": 1, "host": "gpu-1", "devices": devices}
    return FORMAT.parse(json.dumps(document), Context("-", "gpu-1"))


@given(
    record=st.dictionaries(
        st.sampled_from(KEYS),
        JUNK
        | st.dictionaries(
            st.sampled_from(("umc_err_count", "temp1_input", "gpu_busy_percent", "gpu_vram_bad_pages")), JUNK
        ),
    )
)
def test_any_record_of_a_device(record: dict[str, Any]) -> None:
    found = parse({GPUS[0]: record})
    assert_in_vocabulary(found, FORMAT)
    assert {o.fact for o in found} >= {"gpu.vendor", *RAS}


@pytest.mark.parametrize("devices", [None, [], 7, {"x": {}}, {"0000:zz:00.0": {}}])
def test_devices_that_are_none(devices: Any) -> None:
    assert [(o.fact, o.value) for o in parse(devices)] == [("node.gpus.amd", 0)]


@pytest.mark.process
def test_a_document_that_is_cut_says_nothing(tree: Node) -> None:
    text = collect("amdgpu", tree.root)
    assert FORMAT.parse(text[: len(text) // 2], Context("-", "gpu-1")) == []
