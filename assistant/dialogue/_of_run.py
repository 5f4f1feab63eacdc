"""What becomes of a run that is under way: stop it now, at its next checkpoint, or let it go on. The effect and the action
of what is wrong decide, and the words follow what was asked: a yes to "stop it?" is a no to "can it go on?"."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from assistant.dialogue._should import Advised, asked_in
from assistant.intent.of_run import Run, asked
from assistant.render.labels import colon, led
from knowledge.language import Text
from rules.model import Bucket, Usable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assistant.dialogue._words import Words
    from assistant.intent.query import Query


class Fate(StrEnum):
    """What to do with the run."""

    STOP = "stop"
    CHECKPOINT = "checkpoint"
    RESTART = "restart"
    GO_ON = "go_on"


_WHOLE_NODE = frozenset({Bucket.RESTART_BM, Bucket.RESTART_VM, Bucket.UPDATE_SWFW, Bucket.RESTART_FM})
_OF_PROGRAM = frozenset({Bucket.RESTART_APP, Bucket.FIX_CODE})
_FIRST: dict[tuple[Fate, Run], Text] = {
    (Fate.STOP, Run.STOP): Text("Yes, stop the run now and move it to {place}", "要停：现在停止训练，换到{place}"),
    (Fate.STOP, Run.GO_ON): Text("No, stop the run now and move it to {place}", "不能继续跑：现在停止训练，换到{place}"),
    (Fate.STOP, Run.EITHER): Text("Stop the run now and move it to {place}", "停：现在停止训练，换到{place}"),
    (Fate.CHECKPOINT, Run.STOP): Text("Not at once: let the run reach its next checkpoint, then stop it and move it to {place}", "不必立刻停：跑到下一个检查点后停止，再换到{place}"),
    (Fate.CHECKPOINT, Run.GO_ON): Text("Only to its next checkpoint: then stop the run and move it to {place}", "只可跑到下一个检查点：之后停止训练，换到{place}"),
    (Fate.CHECKPOINT, Run.EITHER): Text("Wait for the next checkpoint, then stop the run and move it to {place}", "等到下一个检查点后停止训练，再换到{place}"),
    (Fate.RESTART, Run.STOP): Text("Yes, if it still runs: stop the run and start it again; the machine can stay", "要停：该训练已出错，停止并重新启动；机器无需更换"),
    (Fate.RESTART, Run.GO_ON): Text("No, that run has failed: stop it and start it again; the machine can stay", "不能继续：该训练已出错，停止并重新启动；机器无需更换"),
    (Fate.RESTART, Run.EITHER): Text("Stop the run and start it again; the machine can stay", "停止该训练并重新启动；机器无需更换"),
    (Fate.GO_ON, Run.STOP): Text("No, let the run go on", "不用停，可以继续跑"),
    (Fate.GO_ON, Run.GO_ON): Text("Yes, let the run go on", "可以继续跑"),
    (Fate.GO_ON, Run.EITHER): Text("Let the run go on", "继续跑，不用停"),
}  # fmt: skip


_MEANWHILE = Text(
    "Save a checkpoint, and let the run go on until that is known.", "先保存检查点；查明之前可让训练继续。"
)

_HUNG = Text(
    "See where it stands first (gpudiag profile --pid PID, py-spy dump --pid PID), then stop it: a run that hangs makes no progress.",
    "先查看它停在哪里（gpudiag profile --pid PID、py-spy dump --pid PID），再停止：卡住的训练不会有进展。",
)


def of_run(query: Query) -> Run | None:
    """What a query asks of a run; None where it asks of none."""
    return asked(asked_in(query))


def fate(about: Sequence[Advised], usable: Usable) -> Fate:
    """What to do with a run on what is wrong, the worst first; `usable` of the whole.

    What cannot be used stops it, save where the action itself lets running work finish; what is impaired carries it to the
    next checkpoint. Where only the program failed, the machine stays as it is.
    """
    first = about[0]
    if usable.stops:
        return Fate.CHECKPOINT if first.bucket is Bucket.DRAIN_AND_RESET else Fate.STOP
    if first.bucket in _OF_PROGRAM:
        return Fate.RESTART
    return Fate.CHECKPOINT if usable is Usable.IMPAIRED else Fate.GO_ON


def decided(w: Words, run: Run, about: Sequence[Advised], usable: Usable) -> str:
    """The first line: what to do with the run, why, and the action."""
    first = about[0]
    node = first.bucket in _WHOLE_NODE
    place = w.t("another node", "其他节点") if node else w.t("another GPU or node", "其他 GPU 或节点")
    lead = _FIRST[fate(about, usable), run].in_(w.lang).format(place=place)
    return w.t(
        f"{led(lead, first.title, 'en')}. {first.action}", f"{lead}。原因：{w.quoted(first.title)}。{first.action}"
    )


def goes_on(w: Words, run: Run, why: str) -> str:
    """The first line where a look found nothing wrong, which `why` says."""
    return f"{_FIRST[Fate.GO_ON, run].in_(w.lang)}{colon(w.lang)}{why}"


def nothing_wrong(w: Words, run: Run, shown: str) -> str:
    """Of what was stated nothing asks to stop the run; `shown`: what that is."""
    zh = {Run.STOP: "不必因此停止训练", Run.GO_ON: "不妨碍继续训练", Run.EITHER: "不必因此停止训练，可继续"}[run]
    en = {
        Run.STOP: "No need to stop the run for that",
        Run.GO_ON: "Nothing in that keeps the run from going on",
        Run.EITHER: "Let the run go on: nothing in that asks to stop it",
    }[run]
    return w.t(f"{en}: {shown}. Nothing else was looked at.", f"{zh}：{shown}。没有查看其他信息。")


def meanwhile(query: Query) -> Text:
    """What to do with the run while nobody can say."""
    return _HUNG if "hang" in query.symptoms else _MEANWHILE
