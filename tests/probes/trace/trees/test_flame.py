"""Flame graphs: boxes within boxes, the terminal's tree, and an SVG that is whole XML and works without scripts."""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given

from probes.trace.columns import Group
from probes.trace.reading.reader import Trace
from probes.trace.trees.align import align
from probes.trace.trees.calltree import Time
from probes.trace.trees.flame import duration, layout, text
from probes.trace.trees.folded import from_folded
from probes.trace.trees.stacks import tree
from probes.trace.trees.svg import _COLOURS, svg
from tests.probes.trace.stack_cases import build, host, kernel, traces

SVG = "{http://www.w3.org/2000/svg}"


@given(traces())
def test_boxes_lie_within_their_callers_and_side_by_side(trace: Trace) -> None:
    found = tree(trace)
    times: tuple[Time, ...] = ("gpu", "cpu")
    for time in times:
        boxes = layout(found, time, 0)
        spans = {
            n: (x, x + w) for n, x, w in zip(*(c.tolist() for c in (boxes.node, boxes.x0, boxes.width)), strict=True)
        }
        assert boxes.total == int(found.own(time).sum())
        assert boxes.cut == 0
        for node, (low, high) in spans.items():
            above = spans.get(int(found.parent[node]), (0, boxes.total))
            assert above[0] <= low < high <= above[1]
        for level in set(boxes.depth.tolist()):
            row = sorted(spans[n] for n, d in zip(boxes.node.tolist(), boxes.depth.tolist(), strict=True) if d == level)
            assert all(left[1] <= right[0] for left, right in itertools.pairwise(row))


@given(traces())
def test_what_is_cut_is_told(trace: Trace) -> None:
    found = tree(trace)
    boxes = layout(found, "cpu", 0.2)
    leaves = np.ones(len(found), np.bool_)
    leaves[boxes.node] = False
    assert boxes.cut == int(found.cpu_ns[leaves].sum())
    assert (boxes.width >= 0.2 * boxes.total).all()


def stories() -> Trace:
    return build([
        host(Group.PYTHON, "train.py(1): main", 0, 1000), host(Group.PYTHON, "train.py(9): step", 0, 995),
        host(Group.OP, "aten::mm", 10, 600), host(Group.RUNTIME, "cudaLaunchKernel", 20, 10, correlation=1),
        host(Group.OP, "aten::<evil>&\"'\x1b[31m]]>", 700, 100), kernel("gemm<float>", 100, 900, 1),
    ])  # fmt: skip


def test_the_terminals_tree_joins_chains_and_says_what_is_left() -> None:
    lines = list(text(tree(stories()), "cpu", min_share=0.15))
    assert "thread 1" in lines[0]
    assert lines[1].split()[:3] == ["100.0%", "1", "us"]
    assert lines[1].endswith("train.py(1): main > train.py(9): step")
    assert "aten::mm" in lines[2]
    assert lines[3].startswith(" 11.0%")
    assert "no line" in lines[3]
    assert len(list(text(tree(stories()), "cpu", depth=0))) == 2
    assert "\x1b" not in "".join(text(tree(stories()), "cpu", min_share=0))
    assert list(text(tree(build([])), "gpu", lang="zh")) == ["未记录此类时间"]


def test_durations() -> None:
    assert [duration(n) for n in (0, 999, 12_300, 4_560_000, 7_890_000_000, 5_000_000_000_000)] == [
        "0 ns", "999 ns", "12.3 us", "4.56 ms", "7.89 s", "5,000 s"]  # fmt: skip
    assert duration(12_345, "samples") == "12,345"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_svg_is_whole_and_carries_nothing_from_outside(lang: str) -> None:
    for drawing in (
        svg(tree(stories()), "cpu", lang=lang),
        svg(align(tree(stories()), tree(build([]))), "gpu", lang=lang),
    ):
        root = ElementTree.fromstring(drawing)
        title, about = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
        assert title is not None
        assert title.text
        assert about is not None
        assert about.text
        assert not re.search(
            r"(?:href|src|url|@import|https?:)(?!//www\.w3\.org)", drawing.replace("http://www.w3.org/2000/svg", "")
        )
        boxes = [g for g in root.iter(f"{SVG}g") if g.get("class") == "f"]
        assert boxes
        assert all(g.find(f"{SVG}title") is not None for g in boxes)
        assert "\x1b" not in drawing
    assert "<script" not in svg(tree(stories()), script=False)
    assert "samples" in svg(from_folded(["a;b 3"]), "cpu")


def test_narrow_boxes_are_left_out_and_told() -> None:
    trace = build([host(Group.OP, "big", 0, 100_000), host(Group.OP, "small", 100_000, 10)])
    drawing = svg(tree(trace), "cpu", min_share=0.001)
    assert "small" not in drawing
    assert "0.0% is in boxes too narrow" in drawing


def test_text_on_every_colour_has_enough_contrast() -> None:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    reds = ["#ff9696", "#96caff", "#f2f2f2"]  # the strongest of a difference
    for colour in [*_COLOURS.values(), *reds]:
        assert (light(colour) + 0.05) / (light("#111111") + 0.05) >= 7


@pytest.mark.machine
def test_zoom_and_search_work_in_a_browser(tmp_path: Path, require: Callable[[str], str]) -> None:
    chromium = require("chromium")
    drawing = svg(tree(stories()), "cpu")
    press = """<script>window.prompt=function(){return 'mm'};
    var f=[].slice.call(document.querySelectorAll('.f'));
    f.filter(function(g){return g.getAttribute('data-n')==='aten::mm'})[0].dispatchEvent(new Event('click'));
    document.querySelector('.search').dispatchEvent(new Event('click'));
    document.title=f.filter(function(g){return g.style.display==='none'}).length+' hidden, found '+document.querySelector('.found').textContent;
    </script>"""
    page = tmp_path / "flame.html"
    page.write_text(
        f"<!doctype html><meta charset='utf-8'><title>x</title><body>{drawing}{press}</body>", encoding="utf-8"
    )
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
               "--dump-dom", page.as_uri()]  # fmt: skip
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "<title>1 hidden, found 60.0 %</title>" in shown
