"""``gpudiag incident`` as a person runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ROOT, Answer, Gpudiag

BUNDLE = str(ROOT / "assistant" / "demos" / "off-the-bus" / "bundle")
HEALTHY = str(ROOT / "assistant" / "demos" / "healthy" / "bundle")
Incident = Callable[..., Answer]


@pytest.fixture
def incident(gpudiag: Gpudiag, tmp_path: Path) -> Incident:
    address = f"sqlite:///{tmp_path}/history.db"

    def run(*words: str, lang: str = "en", **env: str) -> Answer:
        return gpudiag("incident", *words, "--lang", lang, env={"GPUDIAG_HISTORY_URL": address} | env)

    return run


def test_from_the_diagnosis_to_the_end(incident: Incident) -> None:
    assert "No incident is open" in incident().out
    opened = incident("open", "--bundle", BUNDLE, "--owner", "bob", "--by", "alice")
    assert (opened.code, opened.err) == (0, "")
    assert "has fallen off the bus" in opened.out
    assert "alice" in opened.out
    again = incident("open", "--bundle", BUNDLE)
    assert "incident 1 is open about it already" in again.err
    assert incident("step", "1", "1", "done", "kept as kern.log").code == 0
    moved = incident("step", "1", "presence", "doing")
    assert moved.out.startswith("#1 ")
    assert "presence" in moved.out
    assert incident("note", "1", "the", "slot", "is", "warm").code == 0
    shown = incident("show", "1").out
    for words in (
        "1 of 13 steps done",
        "kept as kern.log",
        "the slot is warm",
        "lspci -nn -s 0000:",
        "bob takes care of it",
    ):
        assert words in shown, words
    assert incident("close", "1", "board replaced").code == 0
    assert "No incident is open" in incident("list").out
    assert "board replaced" in incident("show", "1").out
    assert "closed" in incident("list", "--all").out
    assert incident("change", "1", "--status", "working", "--note", "it is back").code == 0
    assert "working" in incident().out


def test_as_data_and_as_markdown(incident: Incident) -> None:
    incident("open", "--bundle", BUNDLE, "--note", "who has the key to the cage?")
    one = json.loads(incident("show", "1", "--format", "json").out)["incident"]
    assert (one["status"], one["severity"], one["hosts"][:1]) == ("open", "critical", one["hosts"])
    assert [e["kind"] for e in one["events"]][:2] == ["opened", "finding"]
    assert one["steps"][1]["command"].startswith("lspci -nn -s 0000:")
    many = json.loads(incident("list", "--format", "json").out)["incidents"]
    assert [(i["number"], i["runbooks"][0]) for i in many] == [(1, "gpu-off-bus")]
    page = incident("show", "1", "--format", "markdown").out
    assert page.startswith(("# \\#1 ", "# #1 "))
    assert "| `evidence` |" in page
    assert "who has the key to the cage?" in page
    assert "事件" in incident("list", lang="zh").out
    assert "处置手册 gpu-off-bus：13 步中已完成 0 步" in incident("show", "1", lang="zh").out


def test_by_hand(incident: Incident) -> None:
    opened = incident(
        "open", "--title", "rack 4 smells of smoke", "--severity", "error", "--runbook", "thermal", "--host", "n7"
    )
    assert opened.code == 0
    assert "rack 4 smells of smoke" in opened.out
    assert "n7" in opened.out
    assert incident("change", "1", "--severity", "critical", "--owner", "carol", "--runbook", "node-reboot").code == 0
    line = next(x for x in incident("list").out.splitlines() if "rack 4" in x)
    assert "CRITICAL" in line
    assert "carol" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("open", "--bundle", HEALTHY), "nothing was found that asks for an incident"),
        (("open", "--bundle", BUNDLE, "--finding", "no-such"), "no finding named"),
        (("open", "--title", "x", "--severity", "bad"), "there is no severity 'bad'"),
        (("open", "--title", "x", "--runbook", "gpu-of-bus"), "gpu-off-bus"),
        (("note", "4", "x"), "no incident named '4'"),
        (("show", "4"), "no incident named '4'"),
        (("change", "1"), "nothing is to be changed"),
    ],
    ids=lambda w: "-".join(w[:2]) if isinstance(w, tuple) else "",
)
def test_what_cannot_be_done_is_told(incident: Incident, words: tuple[str, ...], said: str) -> None:
    answer = incident(*words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_a_step_that_is_none_and_an_end_that_has_been(incident: Incident) -> None:
    incident("open", "--bundle", BUNDLE)
    assert "reset" in incident("step", "1", "resett", "done").err
    assert "there is no state 'fine'" in incident("step", "1", "reset", "fine").err
    incident("close", "1")
    assert "closed already" in incident("close", "1").err


def test_without_a_history_it_is_said(incident: Incident) -> None:
    for words in (("list",), ("open", "--bundle", BUNDLE), ("note", "1", "x")):
        answer = incident(*words, GPUDIAG_HISTORY_URL="off")
        assert (answer.code, answer.out) == (2, "")
        assert "incidents are kept in the history, and it is off" in answer.err
    assert "历史功能已关闭" in incident("list", lang="zh", GPUDIAG_HISTORY_URL="off").err


def test_from_the_first_sign_to_the_post_mortem(incident: Incident, tmp_path: Path) -> None:
    """A GPU falls off the bus, is replaced, and falls off again: the second time people see the first."""
    assert incident("open", "--bundle", BUNDLE, "--by", "alice").code == 0
    incident("close", "1", "board replaced")
    again = incident("open", "--bundle", BUNDLE, "--owner", "bob", "--by", "alice")
    assert "like #1 (closed " in again.err
    assert "earlier: board replaced)" in again.err
    incident("note", "2", "rank", "5", "hangs", "--from", "carol", "--where", "#gpu-ops")
    incident("step", "2", "evidence", "done", "kept as kern.log")
    incident("close", "2", "slot was bent")
    written = tmp_path / "post-mortem.md"
    assert incident("report", "2", "-o", str(written), "--price", "2.00", "EUR").code == 0
    page = written.read_text()
    first = page.splitlines()[0]
    assert first.startswith("# CLOSED: GPU 0000:ba:00.0 has fallen off the bus. Over ")
    assert "GPU-hours (1 GPU), " in first
    assert first.endswith("EUR. Slot was bent.")
    for words in ("2026-08-19 02:40:56Z", "carol (\\#gpu-ops): rank 5 hangs", "GPU has fallen off the bus.", "kept as kern.log",
                  "facts were answered", "neither done nor skipped",
                  "same cause gpu-fell-off-bus; same GPU; same node oak-h100-042"):  # fmt: skip
        assert words in page, words
    data = json.loads(incident("report", "2", "--format", "json", GPUDIAG_GPU_HOUR_PRICE="3 USD").out)["report"]
    named, nodes = (data["impact"][x] for x in ("named", "nodes"))
    assert float(nodes["gpu_hours"]) == pytest.approx(8 * float(named["gpu_hours"]), abs=0.1)
    assert named["money"].endswith(" USD")
    told = incident("show", "2", "--timeline").out
    assert "2026-08-19 02:40:55Z" in told
    assert "Runbook" not in told
    shown = incident("show", "2", lang="zh").out
    assert "以往类似事件" in shown
    assert "原因相同 gpu-fell-off-bus" in shown
    html = incident("report", "2", "--format", "html", lang="zh").out
    assert "<title>已关闭：" in html


def test_a_report_that_cannot_be_written_says_why(incident: Incident, tmp_path: Path) -> None:
    incident("open", "--title", "rack 4 smells")
    for words, said in ((("report", "9"), "no incident named '9'"), (("report", "1", "--price", "two", "EUR"), "no price"),
                        (("report", "1", "-o", str(tmp_path / "no" / "such.md")), "cannot be written"),
                        (("link", "1", "--with", "1"), "same incident")):  # fmt: skip
        answer = incident(*words)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
    assert "gpu_hour_price" in incident("report", "1", GPUDIAG_GPU_HOUR_PRICE="cheap").err
