"""Where the time went, what was found, and the kernels that took most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from knowledge.language import Text
from tui.tones import MARKS, Tone, of_severity
from tui.traces.view import BarsView
from tui.widgets.bars import BLANK, Bars, Part, Said

if TYPE_CHECKING:
    from assistant.intent.query import Query
    from tui.traces.opened import Opened
    from tui.widgets.bars import Line

_CAUSES = ("data_loader", "sync", "host", "launch", "kernel", "unknown")
_FOUND = 6  # findings
_COLOURS = {"compute": "plot-3", "exposed_comm": "plot-4", "exposed_mem": "plot-1", "idle": "faint"}


class Overview(BarsView):
    """Bars between sentences."""

    KEY = "overview"
    TITLE = Text("Overview", "概览")
    SENTENCE = 1  # the whole of it stands below

    def __init__(self) -> None:
        super().__init__()
        self._rank: Mapping[str, Any] = {}
        self._found: dict[str, Mapping[str, Any]] = {}

    def show(self, opened: Opened, answer: Any) -> None:
        """The rank that is shown; the findings of the whole job."""
        ranks = answer.get("ranks") or []
        self._rank = next((r for r in ranks if r["file"] == opened.file), ranks[0] if ranks else {})
        self._found = {
            v["id"]: v for v in answer.get("verdicts", ()) if v["role"] == "root" and v["grade"] != "ruled_out"
        }
        notes = [*self._rank.get("notes", ()), *(f"{f['file']}: {f['why']}" for f in answer.get("failed", ()))]
        self.query_one(Bars).load(list(self._lines(len(ranks) > 1, notes)))

    def _lines(self, many: bool, notes: list[str]) -> Iterator[Line]:
        if self._rank:
            yield from self._times(self._rank, many)
        if self._found:
            yield BLANK
            yield Said(self.t("Found", "发现"), Tone.STRONG)
            yield from self._findings(many)
        if self._rank.get("top_kernels"):
            yield BLANK
            yield Said(self.t("Top kernels", "耗时最多的 kernel"), Tone.STRONG)
            yield from self._kernels()
        if self._rank.get("span_ns"):
            yield BLANK
            yield from self._facts(self._rank)
        if notes:
            yield BLANK
            yield Said(self.t("Notes", "备注"), Tone.STRONG)
            yield from (Said(note, Tone.DIM, lead="  ") for note in dict.fromkeys(notes))

    def _times(self, r: Mapping[str, Any], many: bool) -> Iterator[Line]:
        """Computing, exposed communication, exposed copies and idle add up to the window; below idle its causes."""
        from assistant.render.trace_units import durations, ratio, share
        from assistant.trace.words import word

        title = self.t("Where the time went", "时间去向") + (
            f" · rank {r['rank']}" if many and r["rank"] is not None else ""
        )
        yield Said(title, Tone.STRONG)
        span = r["span_ns"]
        if (window := r["window"]) is not None:
            from assistant.trace.words import window_text
            from probes.trace.model import Window

            yield Said(window_text(Window(**window), self.lang), Tone.DIM)
        if span is None:
            yield Said(self.t("nothing ran on a GPU: not known", "没有 GPU 活动：未知"), Tone.UNKNOWN, lead="  ")
            return
        shown = [
            "compute",
            *(["exposed_comm"] if r["comm_kernels"] else []),
            *(["exposed_mem"] if r["mem_ops"] else []),
            "idle",
        ]
        values = dict(zip(shown, durations([r[f"{k}_ns"] for k in shown]), strict=True))
        longest = max(r[f"{k}_ns"] for k in shown)
        for key in shown:
            part = ratio(r[f"{key}_ns"], span)
            yield Part(key, word(key, self.lang), values[key], part, share(part), 0, _COLOURS[key])
        idle = r["idle"] or {}
        for key in _CAUSES:
            ns = idle.get(f"{key}_ns")
            if ns:
                part = ratio(ns, span * r["devices"])
                yield Part(
                    f"idle:{key}", word(key, self.lang), durations([ns, longest])[0], part, share(part), 1, "faint"
                )

    def _findings(self, many: bool) -> Iterator[Line]:
        for found in list(self._found.values())[:_FOUND]:
            who = f"{found['subject'].get('id', '')}" if many and isinstance(found.get("subject"), dict) else ""
            yield from finding(found, self.lang, who)

    def _kernels(self) -> Iterator[Line]:
        from assistant.render.trace_units import durations, share
        from assistant.trace.words import short

        top = self._rank["top_kernels"]
        values = durations([k["total_ns"] for k in top])
        for n, (k, value) in enumerate(zip(top, values, strict=True)):
            yield Part(f"kernel:{n}", short(k["name"]), value, k["share"], share(k["share"]), 0, "plot-3")

    def _facts(self, r: Mapping[str, Any]) -> Iterator[Line]:
        """A few numbers more."""
        from assistant.render.trace_units import digits, duration, number, share

        if r["gpu"]:
            yield Said(f"{r['devices']} × {r['gpu']}" if r["devices"] > 1 else r["gpu"], Tone.DIM)
        if (o := r["launches"]) and o["count"]:
            yield Said(self.t(
                f"{number(o['count'])} launches, {digits(o['per_ms'])} per ms; the median kernel takes {duration(o['median_kernel_ns'])}",
                f"启动 {number(o['count'])} 次，每毫秒 {digits(o['per_ms'])} 次；kernel 时长中位数 {duration(o['median_kernel_ns'])}"), Tone.DIM)  # fmt: skip
        if cores := r["tensor_core"]:
            yield Said(self.t(f"tensor cores: {share(cores['yes'])} of kernel time, by the kernels' names",
                              f"张量核心：占 kernel 时间的 {share(cores['yes'])}（按 kernel 名称判断）"), Tone.DIM)  # fmt: skip

    def question(self) -> Text | None:
        """Of the phase, finding or kernel."""
        from assistant.trace import questions

        key = self.query_one(Bars).key
        kind, _, rest = key.partition(":")
        if kind == "finding":
            return questions.finding(self._found[rest]["rule"]) if rest in self._found else None
        if kind == "kernel":
            k = self._rank["top_kernels"][int(rest)]
            return questions.named_kernel(k["name"])
        return questions.phase(rest or kind) if key else None

    def asked(self) -> Query | None:
        """Of a kernel."""
        from assistant.trace import questions

        kind, _, rest = self.query_one(Bars).key.partition(":")
        if kind != "kernel":
            return None
        return questions.query_of("kernel", self._rank["top_kernels"][int(rest)]["name"], self.lang)

    def detail(self) -> tuple[str, str]:
        """Of a kernel its whole name and spread; of a phase what it means."""
        from assistant.render.trace_units import duration, number

        kind, _, rest = self.query_one(Bars).key.partition(":")
        if kind == "kernel":
            k = self._rank["top_kernels"][int(rest)]
            return k["name"], self.t(
                f"{k['kind']} · {number(k['count'])} calls · mean {duration(k['mean_ns'])} · {duration(k['min_ns'])} to {duration(k['max_ns'])}",
                f"{k['kind']} · {number(k['count'])} 次 · 平均 {duration(k['mean_ns'])} · {duration(k['min_ns'])} 至 {duration(k['max_ns'])}",
            )
        if kind == "finding" and rest in self._found:
            f = self._found[rest]
            return f"{f['rule']} · {f['grade']}", "; ".join(b["text"] for b in f["because"][:2] if b.get("text"))
        about = _MEANING.get(rest or kind)
        return (about.in_(self.lang) if about else ""), ""

    def kernel_name(self) -> str:
        """The kernel under the cursor; empty on any other line."""
        kind, _, rest = self.query_one(Bars).key.partition(":")
        return str(self._rank["top_kernels"][int(rest)]["name"]) if kind == "kernel" else ""

    def copied(self) -> str:
        """The line."""
        return self.query_one(Bars).text()

    def hints(self) -> str:
        """Keys."""
        return self.t("e explain · v next view · w whole trace or steps", "e 解释 · v 下一视图 · w 整个轨迹或迭代")


def finding(found: Mapping[str, Any], lang: str, who: str = "") -> Iterator[Line]:
    """What was found, what explains it, what to do. `who`: whose it is."""
    tone = of_severity(found["severity"])
    title = found["title"] + (f" · {who}" if who else "")
    yield Said(title, tone, f"finding:{found['id']}", lead=f"{MARKS.get(tone, '·')} ")
    if said := explained(found, lang):
        yield Said(said, Tone.DIM, lead="  ")
    if action := found["action"]["text"]:
        yield Said(action, lead="  → ")


def explained(found: Mapping[str, Any], lang: str) -> str:
    """How much of the time a finding explains; empty where nobody knows."""
    from assistant.render.labels import label
    from assistant.render.trace_units import duration, share

    if (impact := found.get("impact")) is None:
        return ""
    said = label("impact", lang).format(share=share(impact["share"]).removesuffix(" %"), of=impact["of"])
    return said if impact["seconds"] is None else f"{said}, {duration(impact['seconds'] * 1e9)}"


_MEANING = {
    "compute": Text("a kernel that is no communication runs", "正在运行非通信 kernel"),
    "exposed_comm": Text("communication runs and no computing hides it", "通信正在运行，且没有被计算掩盖"),
    "exposed_mem": Text("copies and sets run, and neither computing nor communication", "只有拷贝与置零在运行"),
    "idle": Text("nothing runs on the GPU", "GPU 上没有任何活动"),
    "data_loader": Text("idle: the host waits in the data loader", "空闲：主机停在数据加载中"),
    "sync": Text("idle: the host is in a call that waits for the GPU", "空闲：主机停在等待 GPU 的同步调用中"),
    "host": Text("idle: the host does other things, Python or operators", "空闲：主机在执行 Python 或算子"),
    "launch": Text("idle: the launch call and its way to the device", "空闲：启动调用及其到达设备的过程"),
    "kernel": Text("idle: launched, and the device waits for a stream, an event or itself", "空闲：已启动，设备在等待流、事件或自身"),
    "unknown": Text("idle: the call behind the gap was not recorded", "空闲：间隔之后的调用未被记录"),
}  # fmt: skip
