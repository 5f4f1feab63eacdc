"""Recorded incidents: each is found, quickly and alone, and the printed command gives the same answer."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from assistant.commands import demo
from assistant.config import Output
from assistant.render.diagnosis import show
from assistant.sources import tells
from probes.bundle import BundleHost
from tests import demo_incidents
from tests.cases import each, timeless
from tests.components import component
from tests.conftest import Gpudiag
from tests.demo_lab import GPUS, leaks
from tests.diagnoses import incident

ROOT = Path(__file__).parents[2]
NAMES = demo.names()
KIB = 1 << 10
LARGEST = 420 * KIB  # one folder; a tenth of that when packed


@dataclass(frozen=True)
class Expected:
    """What an incident must say: its causes, and what to do first."""

    code: int
    state: str
    roots: frozenset[tuple[str, str]] = frozenset()  # rule and subject of all that is worse than information
    bucket: str | None = None


def expect(state: str, bucket: str, *roots: tuple[str, str]) -> Expected:
    return Expected(1, state, frozenset(roots), bucket)


FINE = Expected(0, "ok")
EXPECTED = {
    "cpu-limit": expect("degraded", "CHANGE_SETTING", ("cgroup-cpu-throttled", "vit-train-1")),
    "data-starved": expect("degraded", "TUNE_JOB", ("trace-data-loader-in-process", "0")),
    "double-bit-error": expect("unhealthy", "DRAIN_AND_RESET", ("uncorrectable-ecc", "0000:48:00.0")),
    "driver-hangs": expect("unhealthy", "RESET_GPU", ("gsp-rpc-timeout", GPUS[3])),
    "fabric-manager-down": expect("unhealthy", "RESTART_FM", ("fabric-manager-failed", "hazel-h100-015")),
    "half-width": expect("degraded", "CHECK_MECHANICALS", ("pcie-link-narrower-than-peers", GPUS[4])),
    "healthy": FINE,
    "left-behind": expect("degraded", "ASK_PLATFORM", ("rank-outlived-its-launcher", "4203")),
    "mig": FINE,
    "nfs-hung": expect("unhealthy", "ASK_PLATFORM", ("filesystem-does-not-answer", "/data")),
    "nvswitch-fault": expect("unhealthy", "WORKFLOW_NVLINK_ERR", ("nvlink-error", GPUS[1])),
    "off-the-bus": expect("unhealthy", "RESTART_BM", ("gpu-fell-off-bus", GPUS[5])),
    "overheating": expect("degraded", "CHECK_MECHANICALS", ("hw-thermal-slowdown", GPUS[1])),
    "power-brake": expect(
        "degraded", "CHECK_MECHANICALS", ("power-brake-at-idle-clocks", "0000:9a:00.0"),
        ("power-brake-at-idle-clocks", "0000:ab:00.0"),
    ),
    "rail-down": expect("unhealthy", "INSPECT_NETWORK", ("compute-rail-link-down", "ibp3s0")),
    "row-remap-pending": expect("unhealthy", "DRAIN_AND_RESET", ("uncorrectable-ecc", GPUS[2])),
    "small-shm": expect("degraded", "CHANGE_SETTING", ("shared-memory-too-small", "vit-train-0")),
}  # fmt: skip
BUNDLES = sorted(n for n in NAMES if demo.load(n).get("bundle"))


def test_each_incident_has_an_expectation() -> None:
    assert sorted(EXPECTED) == NAMES
    assert sorted(demo_incidents.INCIDENTS) == BUNDLES


def shown(name: str, shape: str, lang: str = "en") -> str:
    """What ``gpudiag demo NAME`` writes."""
    return show(incident(name), Output(lang, shape, "never"), tells)


@pytest.mark.slow
@each("name", NAMES)
def test_the_cause_is_found_and_nothing_beside_it(name: str) -> None:
    data = json.loads(shown(name, "json"))
    expected = EXPECTED[name]
    roots = [f for f in data["findings"] if f["role"] == "root" and f["severity"] != "info"]
    assert {(f["rule"], f["subject"]["id"]) for f in roots} == expected.roots
    assert (data["verdict"]["state"], data["exit"]) == (expected.state, expected.code)
    assert [f["action"]["bucket"] for f in roots[:1]] == ([expected.bucket] if expected.bucket else [])
    assert data["notes"] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_printed_command_says_the_same(gpudiag: Gpudiag, name: str) -> None:
    told = gpudiag("demo", name)
    lines = [line.removeprefix("$ ") for line in told.err.splitlines() if line.startswith("$ ")]
    folder, command = (shlex.split(line) for line in lines)
    assert folder[0] == "cd"
    assert command[0] == "gpudiag"
    again = gpudiag(*command[1:], cwd=ROOT / folder[1])
    assert again.out == told.out
    assert told.out.split()[:20] == shown(name, "text").split()[:20]  # what fits below depends on the width
    assert (told.code, again.code) == (0, EXPECTED[name].code)


@each("name", NAMES)
def test_every_story_is_told_in_both_languages(name: str) -> None:
    story = demo.load(name)
    for part in ("title", "story"):
        assert set(story[part]) == {"en", "zh"}
        assert re.search(r"[\u4e00-\u9fff]", story[part]["zh"])
        assert not re.search(r"[\u4e00-\u9fff]", story[part]["en"])
    assert len(story["story"]["en"]) < 400
    assert set(story) <= {"title", "story", "bundle", "log", "input", "host", "expect_gpus"}
    for file in [*story.get("log", []), *story.get("input", [])]:
        assert (demo.FOLDER / name / file).is_file()


def test_the_story_stands_before_the_answer(gpudiag: Gpudiag) -> None:
    en, zh = gpudiag("demo", "rail-down", "--lang", "en"), gpudiag("demo", "rail-down", "--lang", "zh")
    assert "maple-h100-076" in en.err
    assert "端口" in zh.err
    assert "$ gpudiag check --bundle bundle --log train.log" in en.err
    assert gpudiag("demo", "-q").err == ""


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_list(gpudiag: Gpudiag, lang: str) -> None:
    shown = gpudiag("demo", "--list", "--lang", lang).out
    rows = {
        line.split()[0]: line.split(maxsplit=1)[1]
        for line in shown.splitlines()
        if line.split()[:1] and line.split()[0] in NAMES
    }
    assert rows == {name: demo.load(name)["title"][lang] for name in NAMES}


def test_each_is_laid_out_with_what_it_is_asked_with(gpudiag: Gpudiag, tmp_path: Path) -> None:
    listed = json.loads(gpudiag("demo", "--list", "--format", "json").out)["demos"]
    assert sorted(listed) == NAMES
    for name in NAMES:
        folder = tmp_path / name
        told = gpudiag("demo", name, "--extract", str(folder))
        assert (told.code, told.err) == (0, "")
        assert {p.name for p in folder.iterdir()} == {*demo.files(name)}
        assert told.out.splitlines()[1] == "$ " + shlex.join(["gpudiag", *listed[name]["arguments"]])
    with_it = gpudiag(*listed["power-brake"]["arguments"], cwd=tmp_path / "power-brake")
    assert with_it.out.split()[:20] == shown("power-brake", "text").split()[:20]
    again = gpudiag("demo", "healthy", "--extract", str(tmp_path / "healthy"))
    assert (again.code, "not empty" in again.err) == (2, True)
    assert gpudiag("demo", "--extract", str(tmp_path / "healthy" / "bundle" / "manifest.json" / "x")).code == 2


def test_a_page(gpudiag: Gpudiag) -> None:
    page = gpudiag("demo", "mig", "--format", "html", "--lang", "zh", "-q").out
    assert timeless(page) == timeless(shown("mig", "html", "zh"))


@each("name", NAMES)
@each("lang", ["en", "zh"])
def test_pages_hold_every_cause(name: str, lang: str) -> None:
    page = shown(name, "html", lang)
    assert page.lower().startswith("<!doctype html>")
    for _, subject in EXPECTED[name].roots:
        assert subject in page


@each("name", NAMES)
def test_folders_are_small(name: str) -> None:
    folder = demo.FOLDER / name
    assert sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) < LARGEST
    used = {"story.yaml", *(part for key in ("log", "input") for part in demo.load(name).get(key, []))}
    kept = {p.name for p in folder.iterdir() if p.is_file()}
    assert kept == used, "what the command does not read has no place here"


# --- recordings ---------------------------------------------------------------------------


@each("name", BUNDLES)
def test_a_bundle_is_whole_and_tells_nothing_of_where_it_was_made(name: str) -> None:
    folder = demo.FOLDER / name / "bundle"
    host = BundleHost(folder)
    assert host.name == demo_incidents.INCIDENTS[name][0]
    assert host.recording is not None
    assert {"nvml", "kernel-log", "pci", "processes", "rdma", "system"} <= set(host.recording.probes)
    assert host.recording.unasked == ()
    assert leaks(folder, Path("/var/tmp/machines")) == []
    manifest = json.loads((folder / "manifest.json").read_text())
    kept = {p.relative_to(folder).as_posix() for p in (folder / "raw").iterdir()}
    assert kept == {e[k] for e in manifest["entries"] for k in ("file", "stderr_file") if e.get(k)}


def _answer(gpudiag: Gpudiag, folder: Path, name: str) -> Any:
    words = shlex.split(demo.command(demo.load(name)))[1:]
    return json.loads(gpudiag(*words, "--format", "json", cwd=folder).out)["findings"]


def untimed(recorded: bytes) -> bytes:
    """Without how long calls took: on a busy machine some take longer than the recorder's clock lets pass for none."""
    return re.sub(rb'"slowest": \{[^}]*\}', b"", re.sub(rb'"seconds": [0-9.]+', b"", recorded))


@pytest.mark.parametrize(("name", "places"), [("healthy", 1), ("rail-down", 2), ("small-shm", 1)])
def test_recorded_again_it_is_the_same(gpudiag: Gpudiag, tmp_path: Path, name: str, places: int) -> None:
    component("cc")
    made: list[dict[str, bytes]] = []
    for place in range(places):
        into = tmp_path / str(place) / name
        into.mkdir(parents=True)
        demo_incidents.record(name, into, tmp_path / f"machines-{place}")
        made.append({p.relative_to(into).as_posix(): untimed(p.read_bytes()) for p in into.rglob("*") if p.is_file()})
    assert made[0] == made[-1]
    fresh = _answer(gpudiag, tmp_path / "0" / name, name)
    assert fresh == _answer(gpudiag, demo.FOLDER / name, name), "python -m tests.demo_incidents records them anew"
