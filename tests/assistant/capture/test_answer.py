"""The answer of a capture: what stands where, in every format and both languages, from documents made by hand."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assistant.capture import html as html_
from assistant.capture import looking, page
from assistant.capture.looking import Seen
from assistant.config import Output, Settings
from assistant.render.trace_page import Page, show
from tests.assistant.capture import documents
from tests.conftest import Gpudiag

SETTINGS = Settings(Output("en", "text", "never"))


def seen(document: dict[str, Any], folder: Path) -> Seen:
    """A record that is looked at."""
    return looking.load(documents.written(folder, document), SETTINGS)


def text(found: Seen, lang: str = "en", shape: str = "text") -> str:
    """The answer for people."""
    return show(Page("x", {}, lambda: page.parts(found, lang)), Output(lang, shape, "never"))


def test_the_late_rank_stands_first_and_everything_has_its_place(tmp_path: Path) -> None:
    said = text(seen(documents.two_ranks(), tmp_path / "a"))
    first = " ".join(said.partition("\n\n")[0].split())
    assert first.startswith(
        "DEGRADED Rank 1 (pid 4243): Imbalance: the other ranks wait for this one: in augment_slowly"
    )
    assert "Cause: CPU-bound: Python code in the loop takes the time" in first
    for part in ("Where the time went: rank 0", "Where the time went: rank 1", "GPU 0000:3b:00.0", "Iterations", "What was captured",
                 "At what cost", "What was left behind", "Next"):  # fmt: skip
        assert part in said, part
    assert "one thread of kineto stays" in said
    assert "longest iteration 150 ms" in said
    assert "gpudiag profile --job job-7 --yes" in said
    assert "utilisation" in said
    assert "SM activity" not in said  # unsupported is not drawn as nothing


def test_chinese_answers_are_chinese(tmp_path: Path) -> None:
    said = text(seen(documents.two_ranks(), tmp_path / "a"), "zh")
    for part in ("时间去向", "采集内容", "代价", "下一步", "未获同意"):
        assert part in said, part
    assert "What was captured" not in said


@pytest.mark.parametrize("shape", ["text", "markdown", "html", "json"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_format_by_the_command(gpudiag: Gpudiag, tmp_path: Path, shape: str, lang: str) -> None:
    folder = documents.written(tmp_path / "a", documents.two_ranks())
    answer = gpudiag("profile", "show", str(folder), "--format", shape, "--lang", lang)
    assert answer.code == 1, answer.err
    assert "augment" in answer.out
    if shape == "json":
        assert json.loads(answer.out)["schema"] == "gpudiag/profile/1"
    if shape == "html":
        assert "http://" not in re.sub(
            r'xmlns="[^"]*"|http://www\.w3\.org/\S*', "", answer.out.split("<script", maxsplit=1)[0]
        )


def test_the_same_record_gives_the_same_bytes(gpudiag: Gpudiag, tmp_path: Path) -> None:
    folder = documents.written(tmp_path / "a", documents.two_ranks())
    assert gpudiag("profile", "show", str(folder)).out == gpudiag("profile", "show", str(folder / "capture.json")).out


def test_nothing_seen_is_not_fine(gpudiag: Gpudiag, tmp_path: Path) -> None:
    failed = [{"item": "stacks", "outcome": "failed", "why": {"en": "py-spy is not there", "zh": ""}}]
    blind = documents.two_ranks(
        stacks={}, gpus=None, targets=[documents.target(0, parts=failed, iterations=None, aftermath=None)]
    )
    answer = gpudiag("profile", "show", str(documents.written(tmp_path / "a", blind)))
    assert answer.code == 3
    assert answer.out.startswith("UNKNOWN")
    assert "py-spy is not there" in answer.out


def test_a_capture_of_nobody_is_undecided(gpudiag: Gpudiag, tmp_path: Path) -> None:
    answer = gpudiag("profile", "show", str(documents.written(tmp_path / "a", documents.two_ranks(targets=[]))))
    assert answer.code == 3
    assert answer.out.startswith("UNKNOWN")


def test_names_of_strangers_leave_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\x1b[31m"
    found = seen(documents.two_ranks(notes=[{"en": evil, "zh": evil}]), tmp_path / "a")
    import argparse

    args = argparse.Namespace(settings=SETTINGS, quiet=True)
    whole = html_.page(args, found)
    assert "<script>alert" not in whole
    assert html.escape("<script>alert(1)</script>") in whole
    assert "\x1b" not in text(found)
    assert "\x1b" not in whole


def test_the_flame_graph_holds_all_samples(tmp_path: Path) -> None:
    found = seen(documents.two_ranks(), tmp_path / "a")
    for graph in html_.flames(found):
        assert graph.time == "stacks"
        assert graph.total_ns == 2 * 10**9
    tree = html_.tree_of(documents.stacks(4242, late=True))
    assert tree is not None
    assert int(tree.own("cpu").sum()) == 2 * 10**9


junk = st.recursive(st.none() | st.booleans() | st.integers(-5, 1 << 40) | st.text(max_size=6), lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=6), x, max_size=3), max_leaves=8)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["stacks", "threads", "gpus", "hang", "window", "notes", "observations", "clocks"]), junk)
def test_damaged_parts_never_raise(tmp_path: Path, key: str, value: Any) -> None:
    found = seen(documents.two_ranks(**{key: value}), tmp_path / "a")
    assert text(found)
    page.data(found, "en")


@pytest.mark.slow
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["parts", "aftermath", "iterations", "sources", "torch", "rank", "job", "gpus", "helpers"]), junk
)
def test_nor_do_damaged_targets(tmp_path: Path, key: str, value: Any) -> None:
    found = seen(documents.two_ranks(targets=[documents.target(0) | {key: value}]), tmp_path / "a")
    assert text(found)
    page.data(found, "zh")


def with_traces(folder: Path) -> Path:
    """A record of two ranks whose traces lie beside it."""
    from tests.trace_files import data_bound

    folder.mkdir()
    rows = []
    for rank in (0, 1):
        name = f"trace-{4242 + rank}.json"
        data_bound(steps=4, rank=rank, world=2).save(folder / name)
        parts = [{"item": i, "outcome": "ok", "rung": "pending-call", "file": name} for i in ("torch", "kernels")]
        rows.append(documents.target(rank, parts=[{"item": "stacks", "outcome": "ok", "rung": "py-spy"}, *parts]))
    return documents.written(folder, documents.two_ranks(targets=rows, observations=[], observations_revision=0))


def test_traces_beside_it_are_read_and_named_as_the_ranks_of_the_job(tmp_path: Path) -> None:
    found = looking.load(with_traces(tmp_path / "a"), SETTINGS)
    ranks = {str(o.subject): o.subject.parent for o in found.observations if o.fact == "trace.gpu_events"}
    assert set(ranks) == {"rank 0", "rank 1"}
    assert {str(j) for j in ranks.values()} == {"job job-7"}
    assert any(f.rule.area == "trace" for f in found.about.findings)
    said = text(found)
    assert "gpudiag trace summary" in said
    assert "trace-4242.json" in said


def test_the_page_is_the_trace_report_with_the_captures_own_sections(gpudiag: Gpudiag, tmp_path: Path) -> None:
    folder = with_traces(tmp_path / "a")
    answer = gpudiag("profile", "show", str(folder), "--format", "html")
    assert answer.code == 1, answer.err
    for name in ("captured", "activities", "cost", "breakdown", "over-time", "stacks", "kernels"):
        assert f'<section id="{name}"' in answer.out, name
    assert "augment_slowly" in answer.out
    checked = gpudiag("check", "--input", str(folder / "capture.json"), "--no-history", "--format", "json")
    assert any(f["rule"].startswith("trace-") for f in json.loads(checked.out)["findings"])


def test_a_trace_that_is_damaged_is_a_note_on_the_page(gpudiag: Gpudiag, tmp_path: Path) -> None:
    folder = with_traces(tmp_path / "a")
    for path in folder.glob("trace-*.json"):
        path.write_text("no trace")
    answer = gpudiag("profile", "show", str(folder), "--format", "html")
    assert "bug" not in answer.err
    assert '<section id="captured"' in answer.out
    assert gpudiag("profile", "show", str(folder)).out
