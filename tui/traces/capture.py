"""A capture of a running job: what its processes did, what was found, what could not be captured, and the traces in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any

from knowledge.language import Text
from tui.tones import Tone
from tui.traces.overview import finding
from tui.traces.view import BarsView
from tui.widgets.bars import BLANK, Bars, Part, Said

if TYPE_CHECKING:
    from tui.traces.opened import Opened
    from tui.widgets.bars import Line

_COLOURS = {"green": "plot-3", "yellow": "plot-4", "blue": "plot-1", "red": "plot-2", "dim": "faint"}
_DONE = ("ok", "partial")


class Capture(BarsView):
    """Bars between sentences."""

    KEY = "capture"
    TITLE = Text("Capture", "采集")
    SENTENCE = 1  # the whole of it stands below

    def __init__(self) -> None:
        super().__init__()
        self._data: Mapping[str, Any] = {}
        self._found: dict[str, Mapping[str, Any]] = {}

    def show(self, opened: Opened, answer: Any) -> None:
        """This capture."""
        self._data = answer
        pids = {str(target["pid"]) for target in answer["targets"]}
        roots = [f for f in answer["diagnosis"]["findings"] if f["role"] == "root" and f["grade"] != "ruled_out"]
        self._found = {f["id"]: f for f in roots if _of_job(f["subject"], pids)}
        self.query_one(Bars).load(list(self._lines()))

    def _lines(self) -> Iterator[Line]:
        for n, target in enumerate(self._data["targets"]):
            yield from self._target(n, target)
        if self._found:
            yield Said(self.t("Found", "发现"), Tone.STRONG)
        for found in self._found.values():
            yield from finding(found, self.lang)
        if self._data["traces"]:
            yield BLANK
            yield Said(self.t("Traces of the window", "该窗口的轨迹"), Tone.STRONG)
            yield from (Said(name, Tone.ACCENT, f"trace:{name}", lead="  ") for name in self._data["traces"])
        if notes := self._data["notes"]:
            yield BLANK
            yield from (Said(note, Tone.DIM) for note in notes)

    def _target(self, n: int, target: Mapping[str, Any]) -> Iterator[Line]:
        """What one process did, and of it what could not be looked at."""
        from assistant.capture.words import ACTIVITIES
        from assistant.render.trace_units import durations, share

        yield Said(target["name"], Tone.STRONG)
        known = [
            (f"{name}.share", percent)
            for name, percent in target["activities"].items()
            if f"{name}.share" in ACTIVITIES
        ]
        values = durations([percent * self._data["seconds"] * 1e7 for _, percent in known])
        for (fact, percent), value in zip(known, values, strict=True):
            title, tone = ACTIVITIES[fact]
            said = share(percent / 100)
            yield Part(f"{n}:{fact}", title.in_(self.lang), value, percent / 100, said, 1, _COLOURS.get(tone, "plot-1"))
        for part in target["parts"]:
            if part["outcome"] not in _DONE:
                why = " · ".join(x for x in (part["why"], part["remedy"]) if x)
                yield Said(f"{part['item']}: {why or part['outcome']}", Tone.UNKNOWN, lead="  ? ")
        for worry in (*target["left"], *target["worries"]):
            yield Said(worry, Tone.WARNING, lead="  ▲ ")
        yield BLANK

    def question(self) -> Text | None:
        """Of the finding; of anything else what bounds the job."""
        from assistant.trace import questions

        kind, _, rest = self.query_one(Bars).key.partition(":")
        if kind == "finding" and rest in self._found:
            return questions.finding(self._found[rest]["rule"])
        if kind.isdigit():
            return questions.activity(rest)
        return questions.BOUND

    def detail(self) -> tuple[str, str]:
        """Of a finding what it rests on."""
        kind, _, rest = self.query_one(Bars).key.partition(":")
        if kind == "finding" and rest in self._found:
            f = self._found[rest]
            return f"{f['rule']} · {f['grade']}", "; ".join(b["text"] for b in f["because"][:2] if b.get("text"))
        if kind == "trace":
            return rest, self.t("Enter opens it", "Enter 打开")
        return "", ""

    def trace(self) -> str:
        """The trace under the cursor; empty on any other line."""
        kind, _, rest = self.query_one(Bars).key.partition(":")
        return rest if kind == "trace" else ""

    def copied(self) -> str:
        """The line."""
        return self.query_one(Bars).text()

    def hints(self) -> str:
        """Keys."""
        return self.t("e explain · o other files", "e 解释 · o 其他文件")


def _of_job(subject: Mapping[str, Any], pids: Set[str]) -> bool:
    """Whether a finding is about what was captured; those of the machine stand in their own screen."""
    return subject["scope"] in ("rank", "job") or (subject["scope"] == "process" and str(subject["id"]) in pids)
