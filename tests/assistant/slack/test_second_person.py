"""An active test asked for in Slack: two people, one command, run once; and nobody alone."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")

from assistant.journal import Journal
from tests import nvml_lab
from tests.active_lab import Lab as Tools
from tests.assistant.active.test_command import KILLS
from tests.assistant.slack.test_robust import started
from tests.slack_bot import Lab, buttons, lab, quiet, words
from tests.slack_lab import Slack


@pytest.fixture
def tools(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """This machine has eight idle GPUs and nvbandwidth."""
    tools = Tools(tmp_path_factory.mktemp("node"), 8)
    tools.prints("nvbandwidth", "nvbandwidth.healthy8.txt")
    monkeypatch.setenv("PATH", tools.environ["PATH"])
    monkeypatch.setenv("LD_LIBRARY_PATH", str(nvml_lab.folder(tmp_path_factory.getbasetemp(), "healthy8")))
    return tools


async def asked(here: Lab) -> str:
    """U1 asks for the test and agrees to its cost: the thread, with the card for the second person in it."""
    thread = await here.command("run nvbandwidth on gpu-12")
    question = await here.answer(thread)
    assert "second person" in words(question)
    await here.press(question, "agree" if buttons(question, "agree") else "run_next")
    await here.slack.until(lambda: any(buttons(m, "approve") for m in here.said("C1", thread).values()), 20)
    return thread


@pytest.mark.process
async def test_the_second_person_agrees_and_it_runs_once(slack: Slack, tools: Tools, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        thread = await asked(here)
        card = next(m for m in here.said("C1", thread).values() if buttons(m, "approve"))
        assert not tools.called()
        await here.press(card, "approve", user="U1")  # nobody agrees to their own
        await here.press(card, "approve", user="U2")  # no role that may
        await slack.until(lambda: here.whispers("U1") and here.whispers("U2"), 20)
        assert not tools.called()
        (approve,) = buttons(card, "approve")
        for _ in range(3):  # the same press, and a hasty finger
            await here.press(card, "approve", user="U9", old=approve)
        told = await here.answer(thread, such=lambda m: bool(buttons(m, "export")), seconds=90)
        assert "GB/s" in words(told)
        assert len([c for c in tools.called() if "nvbandwidth" in c.split()[0]]) == 1
        kinds = [r.kind for r in here.bot.journal.records()]
        assert [k for k in kinds if k in ("requested", "approved", "used")] == ["requested", "approved", "used"]
        assert kinds.index("used") < kinds.index("intent", kinds.index("used")) < len(kinds)


async def test_refused_it_never_runs(slack: Slack, tools: Tools, tmp_path: Path) -> None:
    async with lab(tmp_path, slack) as here:
        thread = await asked(here)
        card = next(m for m in here.said("C1", thread).values() if buttons(m, "approve"))
        (late,) = buttons(card, "approve")
        await here.press(card, "refuse", user="U9")
        await slack.until(lambda: not buttons(here.said("C1", thread)[card.ts], "approve"), 20)
        await here.press(card, "approve", user="U9", old=late)
        await slack.until(lambda: here.whispers("U9"), 20)
        await quiet()
        assert not tools.called()


@pytest.mark.process
async def test_killed_in_a_test_a_second_card_says_so_and_nothing_runs_again(
    slack: Slack, tools: Tools, tmp_path: Path
) -> None:
    """The test itself ends the bot. Of an old card nothing comes any more; a new one says what may have run already."""
    tools.prints("nvbandwidth", "nvbandwidth.healthy8.txt", before=KILLS.format(tools.state))
    here = Lab(slack, None, "")  # type: ignore[arg-type]  # the bot is a process of its own
    child = started(tmp_path, slack)
    try:
        await slack.until(lambda: slack.connected, 60)
        thread = await asked(here)
        card = next(m for m in here.said("C1", thread).values() if buttons(m, "approve"))
        (approve,) = buttons(card, "approve")
        assert "may have run" not in words(card)
        await here.press(card, "approve", user="U9")
        await slack.until(lambda: child.poll() is not None, 90)
        assert child.returncode == -signal.SIGKILL
        child = started(tmp_path, slack)
        await slack.until(lambda: any("restart" in words(m) or "cut off" in words(m) for m in [*slack.messages]), 60)
        before = len(here.whispers("U9"))
        await here.press(card, "approve", user="U9", old=approve)
        await slack.until(lambda: len(here.whispers("U9")) > before, 30)
        again = await asked(here)
        second = next(m for m in here.said("C1", again).values() if buttons(m, "approve"))
        assert "nvbandwidth may have run already: begun at" in words(second)
        assert len(tools.called()) == 1
    finally:
        child.kill()
        child.wait(60)
    records = Journal(f"sqlite:///{tmp_path}/history.db").records()
    assert len([r for r in records if "nvbandwidth" in r.data.get("probes", ()) and r.kind == "intent"]) == 1
    (intent,) = [r for r in records if "nvbandwidth" in r.data.get("probes", ())]
    assert not [r for r in records if r.data.get("intent") == intent.seq]
