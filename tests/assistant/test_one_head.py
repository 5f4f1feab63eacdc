"""One verdict behind every command: what `trace`, `profile` and `check` say of the same input is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assistant.diagnosis import State, diagnose
from assistant.exits import Exit
from rules.loader import load
from tests.assistant.capture import documents
from tests.assistant.test_more_evidence import told
from tests.conftest import Gpudiag
from tests.trace_jobs import Cluster

JOBS: dict[str, Cluster] = {
    "late": Cluster(compute=[4000, 4000, 6000, 4000], steps=3),
    "behind": Cluster(compute=[1000] * 4, late=[0, 0, 5000, 0], steps=3),
    "link": Cluster(compute=[1000] * 4, groups=[((0, 1), 400), ((2, 3), 1600), ((0, 1, 2, 3), 300)], steps=4),
}


@pytest.mark.parametrize("name", JOBS)
def test_traces_of_ranks(gpudiag: Gpudiag, tmp_path: Path, name: str) -> None:
    files = JOBS[name].save(tmp_path)
    checked = gpudiag("check", *files, "--no-history", "--format", "json")
    verdict = json.loads(checked.out)["verdict"]
    shown = gpudiag("trace", "summary", *files, "--format", "json")
    first = json.loads(shown.out)["headline"]
    assert {key: verdict[key] for key in ("state", "usable", "text")} == {
        key: first[key] for key in ("state", "usable", "text")
    }
    compared = gpudiag("trace", "ranks", *files, "--format", "json")
    assert json.loads(compared.out)["headline"]["state"] == verdict["state"]
    assert checked.code == shown.code == compared.code == Exit.FINDING
    root = next(f["title"] for f in json.loads(compared.out)["verdicts"] if f["role"] == "root")
    assert root in verdict["text"]  # the comparison alone finds the same cause


def test_a_capture(gpudiag: Gpudiag, tmp_path: Path) -> None:
    folder = documents.written(tmp_path / "a", documents.two_ranks())
    checked = json.loads(gpudiag("check", str(folder / "capture.json"), "--no-history", "--format", "json").out)[
        "verdict"
    ]
    shown = json.loads(gpudiag("profile", "show", str(folder), "--format", "json").out)["verdict"]
    assert {key: checked[key] for key in shown if key != "label"} == {
        key: shown[key] for key in shown if key != "label"
    }


def test_ranks_that_were_asked_for_and_not_found_are_said(gpudiag: Gpudiag, tmp_path: Path) -> None:
    alone = documents.two_ranks(line="gpudiag profile --pid 4242 --all-ranks", targets=[documents.target(0)])
    answer = gpudiag("profile", "show", str(documents.written(tmp_path / "a", alone)))
    assert "Not the whole: Node gpu-12: Of all ranks only some are known to be captured" in " ".join(answer.out.split())
    ended = documents.target(0, aftermath={"after": {"alive": False}}, iterations={})
    quiet = documents.two_ranks(targets=[ended], stacks={}, gpus={})
    answer = gpudiag("profile", "show", str(documents.written(tmp_path / "b", quiet)))
    assert answer.out.startswith("UNKNOWN  ")
    assert answer.code == Exit.UNDECIDED


def test_what_is_not_the_whole_is_never_fine() -> None:
    """Of every rule that leaves an answer open, beside the facts of any healthy trace."""
    found = [r for r in load().rules if r.leaves_open]
    assert len(found) > 3
    healthy = told("matched")["trace-gpu-compute-bound"]
    for rule in found:
        d = diagnose([*healthy, *told()[rule.id]], load())
        assert (d.verdict.state, d.exit) != (State.OK, Exit.OK), rule.id
        assert rule.id in {f.rule.id for f in d.findings}


def test_no_grave_finding_of_a_job_says_that_its_node_can_be_used() -> None:
    for rule in load().rules:
        if rule.area in ("capture", "trace") and rule.severity.rank > 1:
            assert rule.action.usable is not None, rule.id
            assert str(rule.action.usable) != "yes", rule.id
