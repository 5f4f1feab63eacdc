"""A runbook walked in a thread: the real bot, real commands on this machine, a real incident and journal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("slack_bolt")

from assistant.incidents import claims
from assistant.incidents.deeds import deeds, open_ended
from assistant.incidents.events import Hand, Kind, StepState
from assistant.journal import Entry, Journal
from assistant.rights.fold import State
from assistant.slack.heard import Place
from assistant.slack.walk_talk import ThreadTalk, choices, understood
from assistant.slack.walks import Walks
from knowledge.language import Text
from tests.assistant.slack.test_robust import started
from tests.assistant.slack.walk_lab import WALKING, Walker, opened, people, runbooks, states
from tests.slack_blocks import faults
from tests.slack_bot import Lab, buttons, lab, quiet, words
from tests.slack_lab import Slack


@pytest.fixture
def slack() -> Iterator[Slack]:
    with Slack() as slack:
        people(slack)
        yield slack


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    with runbooks(tmp_path / "site") as mark:
        yield mark


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/history.db"


async def begun(here: Lab, user: str = "U1") -> Walker:
    return Walker(here, await here.command("incident run 1", user=user), user)


@pytest.mark.process
async def test_a_walk_from_the_first_step_to_a_second_person_and_the_end(
    slack: Slack, tmp_path: Path, mark: Path
) -> None:
    book = opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here)
        first = await one.asked("Run this command?")
        # Only the walker's answers count, and what people say to each other is none.
        await one.press(first, "Yes", user="U2")
        await slack.until(lambda: here.whispers("U2"))
        assert "only their answers count" in words(here.whispers("U2")[-1])
        await one.writes("what is this about?")
        await quiet(0.3)
        assert states(book.incident(1)) == {}
        await one.press(first, "Yes")
        looked = await one.says("Verified by facts")
        assert "\nlooked at gpu-12" in words(looked)
        assert "?" in looked.text  # what a lock screen shows is the question
        assert states(book.incident(1))["look"] == "done"
        # The step that interrupts: somebody else has to agree, then the node's name is typed, then it is run, once.
        await one.press(await one.asked("Do this step?"), "Yes")
        card = await one.says("A second person has to agree", having="approve")
        await here.press(card, "approve", user="U1")
        await slack.until(lambda: here.whispers("U1"))
        assert not mark.exists()
        await here.press(card, "approve", user="U9")
        await one.asked("Type the node's name (gpu-12)")
        await one.writes("no idea what")
        await one.writes("gpu-12")
        await one.press(await one.asked("Run this check?"), "Yes")
        checked = await one.asked("Did it work?")
        assert "it is changed" in words(checked)
        assert "secret_token=" in words(checked)
        assert "hunter2" not in words(checked)
        await one.press(await one.asked("Did it work?"), "Yes")
        assert mark.read_text() == "changed\n"
        # What the policy does not grant is shown with the reason, and not run.
        await one.asked("Run this command?")
        await one.writes("yes")
        refused = await one.asked("Is it done?")
        assert "/bin/echo never" in words(refused)
        await one.press(refused, "Done")
        await one.press(await one.asked("Did it work?"), "Yes")
        # What destroys is never run; its placeholder is not even asked for.
        await one.press(await one.asked("Do this step?"), "Skip")
        await one.press(await one.asked("Run this command?"), "Skip")
        await one.says("No step is left.")
        incident = book.incident(1)
        assert states(incident) == {
            "look": "done",
            "change": "done",
            "secret": "done",
            "lose": "skipped",
            "slow": "skipped",
        }
        assert {e.who for e in incident.events if e.kind == Kind.STEP} == {"u1 (U1)"}
        assert {e.surface for e in incident.events if e.kind == Kind.STEP} == {"slack"}
        ran = [e.data["step"] for e in deeds(incident.events) if e.kind == Kind.ACTION]
        assert ran == ["look", "change", "change"]
        kinds = [r.kind for r in here.bot.journal.of(incident.uid)]
        assert kinds == ["intent", "result"] * 3
        used = [r for r in here.bot.journal.records() if r.kind == "used"]
        assert len(used) == 1
        await slack.until(lambda: not here.bot.ledger.cut_off())


async def test_somebody_takes_over_and_leaves_and_a_terminal_goes_on(slack: Slack, tmp_path: Path, mark: Path) -> None:
    book = opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here)
        first = await one.asked("Run this command?")
        other = await begun(here, "U2")
        offer = await other.says("u1 has #1 in hand")
        await here.press(offer, "take_over", user="U2")
        await one.says("u2 takes over")
        await other.asked("Run this command?")
        assert not buttons(here.said("C1", one.thread)[first.ts], "walk_answer")
        await other.writes("yes", user="U1")  # not theirs any more
        await quiet(0.3)
        assert states(book.incident(1)) == {}
        await other.writes("stop")
        await other.says("Left.")
        await slack.until(lambda: not here.bot.ledger.cut_off())
        assert not [r for r in here.bot.journal.records() if r.kind == "intent"]


@pytest.mark.process
async def test_a_command_is_ended_when_its_walker_leaves(slack: Slack, tmp_path: Path, mark: Path) -> None:
    book = opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here)
        for _ in range(4):
            await one.press(await one.asked("this "), "Skip")
            await quiet(0.4)
        await one.press(await one.asked("Run this command?"), "Yes")
        await slack.until(mark.exists, 30)
        other = await begun(here, "U2")
        offer = await other.says("u1 has #1 in hand")
        await here.press(offer, "take_over", user="U2")  # not while a command runs
        await slack.until(lambda: any("is running" in words(m) for m in here.whispers("U2")))
        await one.writes("stop")
        await one.says("stopped, with all that it started")
        event = claims.last(book.incident(1), "walked", "slow")
        assert claims.holder(event, "anybody") is claims.Holder.LEFT


@pytest.mark.process
async def test_a_restart_leaves_the_walk_and_says_so(slack: Slack, tmp_path: Path, mark: Path) -> None:
    book = opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here)
        await one.press(await one.asked("Run this command?"), "Yes")
        await one.press(await one.asked("Do this step?"), "Yes")
        await one.says("A second person has to agree", having="approve")
        thread = one.thread
    event = claims.last(book.incident(1), "walked", "change")
    assert claims.holder(event, "anybody") is claims.Holder.LEFT  # a bot that ends in order leaves its walks
    # One that is killed does not: the step stays in hand, and nobody knows how its command ended.
    hand, incident = Hand("u1 (U1)", "slack"), book.incident(1)
    book.add(1, hand, claims.step_entry("walked", "change", StepState.DOING))
    Journal(url(tmp_path)).append(incident.uid, hand, Entry("intent", {"what": "step:walked/change"}))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        again = Walker(here, thread)
        told = await again.says("gpudiag was restarted", having="walk")
        assert "/gpudiag incident run 1" in words(told)
        assert "It is not known how this ended: step:walked/change" in words(told)
        assert claims.holder(claims.last(book.incident(1), "walked", "change"), "anybody") is claims.Holder.LEFT
        await slack.until(lambda: not here.bot.ledger.cut_off())
        asked = [a for a in here.bot.journal.records() if a.kind == "requested"]
        assert here.bot.approvals.look(asked[0].subject).state is State.REFUSED
        await here.press(told, "walk")
        await again.asked("Do this step?")
        assert not mark.exists()


@pytest.mark.process
async def test_killed_in_a_command_the_next_card_says_that_it_may_have_run(
    slack: Slack, tmp_path: Path, mark: Path
) -> None:
    """The command itself kills the bot. What was begun stands in the report and in the journal, and nobody runs it again unasked."""
    book, page = opened(url(tmp_path)), tmp_path / "site/walked.md"
    page.write_text(page.read_text().replace("; echo changed'", "; kill -9 $PPID'"), encoding="utf-8")
    here, site = Lab(slack, None, ""), str(tmp_path / "site")  # type: ignore[arg-type]  # the bot is a process of its own
    child = started(tmp_path, slack, WALKING, GPUDIAG_RUNBOOK_DIRS=site)
    try:
        await slack.until(lambda: slack.connected, 60)
        one = await begun(here)
        await one.press(await one.asked("Run this command?", 60), "Skip")
        await one.press(await one.asked("Do this step?", 60), "Yes")
        card = await one.says("A second person has to agree", 60, having="approve")
        assert "may have run" not in words(card)
        await here.press(card, "approve", user="U9")
        await one.asked("Type the node's name (gpu-12)", 60)
        await one.writes("gpu-12")
        await slack.until(lambda: child.poll() is not None, 60)
        assert child.returncode == -signal.SIGKILL
        child = started(tmp_path, slack, WALKING, GPUDIAG_RUNBOOK_DIRS=site)
        again = Walker(here, one.thread)
        told = await again.says("gpudiag was restarted", 60, having="walk")
        assert "It is not known how this ended: step:walked/change" in words(told)
        await here.press(told, "walk")
        await again.press(await again.asked("Do this step?", 60), "Yes")
        await slack.until(lambda: "may have run already" in words(again.newest("A second person has to agree")), 60)
    finally:
        child.kill()
        child.wait(60)
    assert mark.read_text() == "changed\n"
    incident = book.incident(1)
    assert [r.kind for r in Journal(url(tmp_path)).of(incident.uid)] == ["intent"]
    ran = [e for e in deeds(incident.events) if e.kind == Kind.ACTION]
    assert [(e.data["step"], open_ended(e)) for e in ran] == [("change", True)]


async def test_a_right_that_is_lost_after_the_approval_is_lost(slack: Slack, tmp_path: Path, mark: Path) -> None:
    book = opened(url(tmp_path))
    book.add(1, Hand("ann", "cli"), claims.step_entry("walked", "look", StepState.SKIPPED))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here)
        await one.press(await one.asked("Do this step?"), "Yes")
        await here.press(await one.says("A second person has to agree", having="approve"), "approve", user="U9")
        await one.asked("Type the node's name (gpu-12)")
        (tmp_path / "policy.toml").write_text(WALKING.replace('"step:walked/change", ', ""))
        await one.writes("gpu-12")
        await one.asked("Is it done?")  # shown, for a person with a login
        assert not mark.exists()
        assert not [r for r in here.bot.journal.records() if r.kind in ("intent", "used")]


async def test_two_presses_at_once_are_one_walk(slack: Slack, tmp_path: Path, mark: Path) -> None:
    opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        root = await here.command("incident 1")
        card = here.said()[root]
        await asyncio.gather(*(here.press(card, "walk") for _ in range(3)))
        await Walker(here, root).asked("Run this command?")
        await slack.until(lambda: len([m for m in here.whispers("U1") if "You walk it already" in words(m)]) == 2)
        await slack.until(lambda: len(here.bot.ledger.cut_off()) == 1)  # a turn ends a moment after its answer


async def test_nobody_answers_and_the_walk_is_left(slack: Slack, tmp_path: Path, mark: Path) -> None:
    opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        here.bot.walks = Walks(here.bot, patience=0.3)
        one = await begun(here)
        await one.says("nobody answered")
        await slack.until(lambda: not here.bot.ledger.cut_off())


async def test_who_may_not_run_it_is_shown_why(slack: Slack, tmp_path: Path, mark: Path) -> None:
    book = opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here, "U9")  # may look, and holds no grant for steps
        await one.press(await one.asked("Run this command?"), "Yes")
        shown = await one.asked("Is it done?")
        assert "/bin/echo looked at gpu-12" in words(shown)
        assert not [e for e in book.incident(1).events if e.kind == Kind.ACTION]
        await one.press(shown, "Leave")
        await one.says("Left.")


@pytest.mark.process
async def test_what_a_command_prints_is_for_who_may_see_other_users(slack: Slack, tmp_path: Path, mark: Path) -> None:
    book = opened(url(tmp_path))
    async with lab(tmp_path, slack, policy=WALKING) as here:
        one = await begun(here, "U5")
        await one.press(await one.asked("Run this command?"), "Yes")
        told = words(await one.asked("Did it work?"))
        assert "your roles may not see" in told
        assert "\nlooked at gpu-12" not in told
        assert "exit code 0" in told
        # The verification's probe was denied to them: that is said, and they are asked.
        assert "no grant" in told.lower() or "may not" in told.lower()
        (ran,) = [e for e in deeds(book.incident(1).events) if e.kind == Kind.ACTION]
        assert "looked at" not in ran.text()
        await one.writes("离开")
        await one.says("Left.")


async def test_what_is_longer_than_a_message_is_a_file(slack: Slack, tmp_path: Path) -> None:
    async with lab(tmp_path, slack, policy=WALKING) as here:
        place = Place("T0LAB", "C1", slack.say("root").ts)
        talk = ThreadTalk(here.bot, place, await here.bot.asker("U1", place), 1, "key", 1.0)
        output = "\n".join(f"{n} <!channel> " + "x" * 900 for n in range(40))
        talk.say(Text(f"{output}\n[exit code 0, 0.1 s]"))
        await asyncio.to_thread(talk.flush)
        (message,) = [m for m in here.said("C1", place.thread).values() if not m.files]
        assert not faults(message.blocks)
        (file,) = slack.files.values()
        assert file.content is not None
        assert file.content.decode().count("<!channel>") == 40


# --- questions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "shown", "said", "meant"),
    [
        (Text("Run this command? [y]es, [s]kip, [q]uit", "运行该命令？[y] 是，[s] 跳过，[q] 离开"), "y s", "Yes!", "y"),
        (Text("Run this command? [y]es, [s]kip, [q]uit", "运行该命令？[y] 是，[s] 跳过，[q] 离开"), "y s", "why?", None),
        (Text("Did it work? It says [N/A] [y]es, [n]o, [q]uit", "是否成功？[N/A] [y] 是，[n] 否，[q] 离开"), "y n", "否", "n"),
        (Text("Run this check? It only reads. [y/N]", "运行该核对命令？它只读取。[y/N]"), "y n", "是", "y"),
        (Text("Enter when it is done:", "完成后按回车："), "done", "done", ""),
        (Text("Enter when it is done:", "完成后按回车："), "done", "is it?", None),
        (Text("file (a file), or nothing:", "file（文件），可留空："), "unknown", "/tmp/x", "/tmp/x"),
        (Text("This interrupts. Type the node's name (gpu-12) to run it:", "输入节点名（gpu-12）以运行："), "", "GPU-12", "gpu-12"),
        (Text("This interrupts. Type the node's name (gpu-12) to run it:", "输入节点名（gpu-12）以运行："), "", "cancel", "q"),
    ],
)  # fmt: skip
def test_what_a_question_offers_and_what_an_answer_means(
    question: Text, shown: str, said: str, meant: str | None
) -> None:
    asked = choices(question)
    assert " ".join(asked.words) == shown
    assert understood(asked, said) == meant
    for text in (asked.text.en, asked.text.in_("zh")):
        assert not text.rstrip().endswith(("uit", "离开", "[y/N]"))
    if "[N/A]" in question.en:
        assert asked.text.en.endswith("[N/A]")
