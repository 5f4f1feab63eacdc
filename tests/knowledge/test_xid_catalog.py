"""Laws of the XID catalogue: complete, closed, acyclic, bilingual, light."""

from __future__ import annotations

import graphlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.catalog.xid import (
    Applies,
    Immediate,
    Investigate,
    Severity,
    XidRole,
    all_xids,
    applicability,
    product_column,
    xid,
)
from knowledge.compiled import shard
from tests.cases import each
from tests.conftest import ROOT

WITH_WORKFLOW = {13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 109, 119, 120, 137, *range(144, 151), 154}


def test_all_codes_are_present() -> None:
    assert [e.code for e in all_xids()] == list(range(1, 177))
    assert xid(0) is None
    assert xid(177) is None


def test_every_entry_is_in_words_of_both_languages() -> None:
    for e in all_xids():
        texts = [e.title, e.description, *e.workflow, *e.confirm, *(c.says for c in e.conflicts)]
        for text in texts:
            assert text.en, e.code
            assert any("\u4e00" <= c <= "\u9fff" for c in text.zh), (e.code, text.zh)
        assert e.title.en != e.mnemonic
        assert e.sources


def test_titles_are_distinct() -> None:
    titles = [e.title.en for e in all_xids()]
    assert len(set(titles)) == len(titles)


def test_severity_follows_the_action() -> None:
    for e in all_xids():
        match e.immediate:
            case Immediate.IGNORE:
                assert e.severity in (Severity.INFO, Severity.WARNING), e.code
            case Immediate.RESTART_APP:
                assert e.severity is Severity.ERROR, e.code
            case Immediate.RESET_GPU | Immediate.RESTART_BM:
                assert e.severity is Severity.CRITICAL, e.code


def test_what_nvidia_leaves_blank_stays_blank() -> None:
    blank = {e.code for e in all_xids() if e.immediate is Immediate.BLANK}
    assert blank == set(range(162, 177))
    assert all(xid_.investigate is Investigate.BLANK for c in blank if (xid_ := xid(c)))
    for code in (162, 167, 173, 176):
        entry = xid(code)
        assert entry
        assert "NVIDIA" in entry.description.en


def test_explains_is_acyclic_and_mirrored() -> None:
    graph = {e.code: set(e.explains) for e in all_xids()}
    tuple(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError
    for e in all_xids():
        for effect in e.explains:
            assert e.code in graph_by(effect), (e.code, effect)
        assert set(e.explained_by) == {code for code, effects in graph.items() if e.code in effects}


def graph_by(code: int) -> tuple[int, ...]:
    entry = xid(code)
    assert entry is not None
    return entry.explained_by


def test_roles() -> None:
    roles = {e.code: e.role for e in all_xids() if e.role is not XidRole.ROOT}
    assert roles == {
        43: XidRole.SECONDARY, 45: XidRole.SECONDARY, 174: XidRole.SECONDARY, 154: XidRole.CARRIER,
        171: XidRole.COMPANION, 172: XidRole.COMPANION,
    }  # fmt: skip
    assert {e.code: e.companion_of for e in all_xids() if e.companion_of} == {171: 48, 172: 48}


def test_fallout_explains_nothing() -> None:
    assert not any(e.explains for e in all_xids() if e.role is not XidRole.ROOT)


def test_a_dead_gpu_explains_what_it_reports_afterwards() -> None:
    dead = xid(79)
    assert dead
    assert {45, 74, 119, 120, 149, 154} <= set(dead.explains)


def test_workflows_stand_where_nvidia_has_one() -> None:
    assert {e.code for e in all_xids() if e.workflow} == WITH_WORKFLOW


@each(
    ("product", "column"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200", "h100"),
        ("NVIDIA GH200 480GB", "h100"),
        ("hopper", "h100"),
        ("NVIDIA B200", "b100"),
        ("NVIDIA GB200", "gb200"),
        ("blackwell", ""),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", ""),
        ("NVIDIA L40S", ""),
        ("Tesla V100-SXM2-32GB", ""),
        ("", ""),
    ],
)
def test_columns(product: str, column: str) -> None:
    assert product_column(product) == column


def test_applicability() -> None:
    assert applicability(74, "NVIDIA H200") is Applies.YES
    assert applicability(74, "NVIDIA B200") is Applies.NO
    assert applicability(74, "blackwell") is Applies.NO  # both columns agree
    assert applicability(121, "blackwell") is Applies.UNKNOWN  # they do not
    assert applicability(149, "NVIDIA A100-PCIE-40GB") is Applies.NO
    assert applicability(79, "NVIDIA L40S") is Applies.UNKNOWN
    assert applicability(173, "NVIDIA H100") is Applies.UNKNOWN
    assert applicability(999, "NVIDIA H100") is Applies.UNKNOWN


@pytest.mark.process
def test_importing_is_light_and_a_built_catalogue_needs_no_yaml(tmp_path: Path) -> None:
    """With the shards built, neither the loader nor the schemas are wanted: nothing that is installed is."""
    shards = ("xid", "sxid", "nvlink5", "nvlink74")
    build = f"from knowledge.compiled import shard\nfor s in {shards}: shard(s)"
    use = (
        "import knowledge.derive.xid as d\nfrom knowledge.catalog.xid import xid\n"
        "print(xid(79).immediate, d.xid_fields(149, 'NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)')['bucket'],"
        " d.sxid_fields(20034, 'Fatal')['bucket'], d.xid_fields(74, 'link 1(0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)')['link_class'])"
    )
    env = {**os.environ, "GPUDIAG_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", build], env=env, check=True, timeout=120)
    done = subprocess.run(
        [sys.executable, "-S", "-c", use], env=env, check=True, timeout=60, capture_output=True, text=True
    )
    assert done.stdout.split() == ["RESTART_BM", "RESET_GPU", "RESET_GPU", "ignore"]


def test_the_shard_is_what_the_entries_are_made_of() -> None:
    assert sorted(d["code"] for d in shard("xid")) == [e.code for e in all_xids()]
