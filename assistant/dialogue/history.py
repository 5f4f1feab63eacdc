"""What happened before: what the history holds about the things asked for, or that it holds nothing of them.

"Never" is an answer only as far as somebody looked: it names the time that the history goes back to, and how many
checks read the kernel log within it.
"""

from __future__ import annotations

from collections.abc import Sequence

from assistant.dialogue import Turn
from assistant.dialogue._past import About, about
from assistant.dialogue._past_rows import data_of, event_title, plain_course
from assistant.render.labels import colon, label, listed, subject_name
from assistant.render.sheet import Code, Heading, Items, Paragraph, Part, Table
from assistant.render.times import iso, readable
from assistant.reply import Reply
from assistant.session.recall import Course, PastThing, Span, Switched
from knowledge.language import Text
from knowledge.text import excerpt

SHOWN = 20  # rows of a table
QUOTED = 3  # raw lines
_HOW = {
    "": Text("still there at the last check", "最近一次检查时仍存在"),
    "changed": Text("still there, changed", "仍存在，有变化"),
    "unseen": Text("not known: not looked at since", "未知：此后未能查看"),
    "cleared": Text("gone", "已消除"),
    "alone": Text("in one recording", "仅见于一次录制"),
}
_NOW = {
    "": Text("still there", "仍存在"),
    "changed": Text("still there", "仍存在"),
    "unseen": Text("not known", "未知"),
    "cleared": Text("gone", "已消除"),
    "alone": Text("recorded", "见于录制"),
}  # in a table
_ASK = (
    Text("why?", "为什么？"), Text("check again", "再查一次"), Text("what happened since yesterday?", "昨天以来发生了什么？"),
)  # fmt: skip


def answer(turn: Turn) -> Reply:
    """What the rows of `turn.recalled` (see `assistant.session.recall`) say to the question. Pure."""
    span = next((r for r in turn.recalled if isinstance(r, Span)), Span(turn.host, 0))
    lang = turn.lang
    if span.begins is None:
        return _no_history(span, lang)
    courses = [r for r in turn.recalled if isinstance(r, Course)]
    things = [r for r in turn.recalled if isinstance(r, PastThing)]
    if span.good is not None:
        return _since_good(span, things, [r for r in turn.recalled if isinstance(r, Switched)], turn)
    asked = about(turn)
    if courses and not asked.what:
        return _values(span, courses, turn)
    meant = [t for t in things if asked.covers(t)]
    if not asked:
        return _everything(span, things, turn)
    if meant:
        return _seen(span, asked, meant, len(things) - len(meant), turn)
    return _never(span, asked, things, turn)


# --- the answers --------------------------------------------------------------------------


def _no_history(span: Span, lang: str) -> Reply:
    host = span.host
    if span.trouble:
        said = Text(
            f"The history cannot be asked: {span.trouble.en}.", f"无法查询历史：{span.trouble.zh or span.trouble.en}。"
        )
    elif span.hosts:
        said = Text(f"No check of {host} is in the history, so nothing is known about its past.",
                    f"历史中没有 {host} 的检查记录，无法得知其过去的情况。")  # fmt: skip
    else:
        said = Text("There is no history yet: no check has been remembered.", "还没有历史：尚未保存过任何检查。")
    ways = [
        Text("gpudiag check: each check is remembered", "gpudiag check：每次检查都会被保存"),
        Text("gpudiag watch: keeps checking, so that \"since when\" has an answer", "gpudiag watch：持续检查，从而能回答“从何时开始”"),
        Text("an older log answers too: gpudiag ask --log FILE \"...\"", "旧日志也可以回答：gpudiag ask --log 文件 \"……\""),
    ]  # fmt: skip
    parts: list[Part] = [Items(tuple(w.in_(lang) for w in ways))]
    if span.hosts:
        known = listed((excerpt(h, 60) for h in span.hosts[:12]), lang)
        parts.insert(0, Paragraph(Text(f"Known there: {known}", f"已有记录的节点：{known}").in_(lang)))
    return Reply(lang, said.in_(lang), tuple(parts), settled=False, data={"history": {"host": host, "rows": []}})


def _seen(span: Span, asked: About, meant: Sequence[PastThing], rest: int, turn: Turn) -> Reply:
    lang = turn.lang
    events = [t for t in meant if t.kind != "finding"]
    counted = events or meant
    count = sum(t.count for t in counted)
    first, last = min(t.first for t in counted), max(t.last for t in counted)
    what, host = asked.name(lang), excerpt(span.host, 60)
    times = Text(f"{count} time{'s' * (count != 1)}", f"共 {count} 次")
    when = (
        Text(f"at {_time(first)}", f"时间 {_time(first)}")
        if first == last
        else Text(f"first {_time(first)}, last {_time(last)}", f"首次 {_time(first)}，最近 {_time(last)}")
    )
    said = Text(
        f"{what} was seen on {host}: {times.en}, {when.en}.",
        f"{host} 上出现过{_gap(what)}{what}：{times.zh}，{when.zh}。",
    )
    parts: list[Part] = [*_states(meant, lang), *_tables(meant, lang), *_lines(events, lang)]
    if rest:
        parts.append(Paragraph(Text(f"Besides, {rest} other thing{'s' * (rest != 1)} happened in that time: ask \"what happened?\"",
                                    f"此外，该时段内还有 {rest} 项其他情况：可问“发生了什么？”").in_(lang)))  # fmt: skip
    return Reply(
        lang, said.in_(lang), (*parts, *_reach(span, lang)), suggestions=_asks(lang), data=data_of(span, meant)
    )


def _since_good(span: Span, things: Sequence[PastThing], switched: Sequence[Switched], turn: Turn) -> Reply:
    """What is different from when the node was last all right: its software first, then what was found since."""
    lang, host = turn.lang, excerpt(span.host, 60)
    if not span.good:
        said = Text(f"No check of {host} that found nothing wrong is in the history, so there is nothing to compare with.",
                    f"历史中没有 {host} 一切正常的检查，无从比较。")  # fmt: skip
        return Reply(
            lang, said.in_(lang), _reach(span, lang), settled=False, suggestions=_asks(lang), data=data_of(span, things)
        )
    when = _since(span)
    if switched:
        said = Text(f"The software of {host} has changed {when.en}, the last check that found nothing wrong.",
                    f"{when.zh}（最近一次一切正常的检查），{host} 的软件有变化。")  # fmt: skip
    else:
        said = Text(f"The software of {host} has not changed {when.en}, the last check that found nothing wrong, as far as checks read it.",
                    f"{when.zh}（最近一次一切正常的检查），检查所读取的 {host} 软件没有变化。")  # fmt: skip
    header = tuple(Text(*t).in_(lang) for t in (("what", "内容"), ("of", "对象"), ("then", "当时"), ("now", "现在")))
    rows = tuple(
        (s.fact, excerpt(subject_name(s.subject, lang), 60), excerpt(s.before, 60), excerpt(s.after, 60))
        for s in switched[:SHOWN]
    )
    parts = [*([Table(header, rows)] if rows else []), *_tables(things, lang), *_reach(span, lang)]
    data = data_of(span, things)
    data["history"]["software"] = [
        {"fact": s.fact, "subject": str(s.subject), "before": s.before, "after": s.after} for s in switched
    ]
    return Reply(lang, said.in_(lang), tuple(parts), suggestions=_asks(lang), data=data)


def _never(span: Span, asked: About, things: Sequence[PastThing], turn: Turn) -> Reply:
    lang = turn.lang
    what, host = asked.name(lang), excerpt(span.host, 60)
    if not span.checks:
        return _no_check(span, lang)
    since = _since(span)
    if not span.with_log and asked.events:
        said = Text(f"Cannot say whether {what} was seen on {host}: none of the {span.checks} checks {since.en} could read the kernel log.",
                    f"无法判断 {host} 上是否出现过{_gap(what)}{what}：{since.zh}的 {span.checks} 次检查均未能读取内核日志。")  # fmt: skip
        return Reply(lang, said.in_(lang), _reach(span, lang), settled=False, data=data_of(span, ()))
    said = Text(f"{what} was not seen on {host} {since.en}, as far as the history goes.",
                f"在历史所及范围内，{host} 上{since.zh}未出现过{_gap(what)}{what}。")  # fmt: skip
    parts: list[Part] = []
    if things and asked.soft:
        head = Text("What was seen in that time", "该时段内出现过的情况")
        parts = [Heading(head.in_(lang)), *_tables(things, lang)]
    return Reply(
        lang,
        said.in_(lang),
        (*parts, *_reach(span, lang)),
        suggestions=_asks(lang),
        data=data_of(span, things if asked.soft else ()),
    )


def _everything(span: Span, things: Sequence[PastThing], turn: Turn) -> Reply:
    lang = turn.lang
    host, since = excerpt(span.host, 60), _since(span)
    if not span.checks and not things:
        return _no_check(span, lang)
    if not things:
        said = Text(f"Nothing was found on {host} {since.en}.", f"{host} {since.zh}未发现任何问题。")
        return Reply(lang, said.in_(lang), _reach(span, lang), suggestions=_asks(lang), data=data_of(span, ()))
    findings = sum(t.kind == "finding" for t in things)
    events = sum(t.count for t in things if t.kind != "finding")
    here = sum(t.kind == "finding" and t.how in ("", "changed") for t in things)
    said = Text(
        f"On {host} {since.en}: {findings} finding{'s' * (findings != 1)} ({here} still there), {events} logged event{'s' * (events != 1)}.",
        f"{host} {since.zh}：{findings} 项发现（其中 {here} 项仍存在），{events} 条日志事件。",
    )
    parts = (*_tables(things, lang), *_reach(span, lang))
    return Reply(lang, said.in_(lang), parts, suggestions=_asks(lang), data=data_of(span, things))


def _values(span: Span, courses: Sequence[Course], turn: Turn) -> Reply:
    lang = turn.lang
    one = courses[0]
    what = f"{one.fact} ({subject_name(one.subject, lang)})"
    if one.changed is None:
        said = Text(f"{what} was {one.last[1]} all the time from {_time(one.first[0])} to {_time(one.last[0])}.",
                    f"{what} 自 {_time(one.first[0])} 至 {_time(one.last[0])} 一直为 {one.last[1]}。")  # fmt: skip
    else:
        said = Text(f"{what} went from {one.first[1]} ({_time(one.first[0])}) to {one.last[1]} ({_time(one.last[0])}); it changed last at {_time(one.changed)}.",
                    f"{what} 从 {one.first[1]}（{_time(one.first[0])}）变为 {one.last[1]}（{_time(one.last[0])}）；最近一次变化在 {_time(one.changed)}。")  # fmt: skip
    header = tuple(Text(*t).in_(lang) for t in (("fact", "事实"), ("of", "对象"), ("samples", "采样"), ("range", "范围"), ("first", "最早"),
                                                ("last", "最近"), ("changed last", "最近变化")))  # fmt: skip
    rows = tuple(
        (c.fact, excerpt(subject_name(c.subject, lang), 60), str(c.samples), _range(c), excerpt(c.first[1], 40),
         excerpt(c.last[1], 40), _time(c.changed) if c.changed is not None else "-")
        for c in courses
    )  # fmt: skip
    more = Paragraph(
        Text(f"Every sample: gpudiag history fact {one.fact}", f"全部采样：gpudiag history fact {one.fact}").in_(lang)
    )
    data = {"history": {"host": span.host, "values": [plain_course(c) for c in courses]}}
    return Reply(lang, excerpt(said.in_(lang), 600), (Table(header, rows), more, *_reach(span, lang)), data=data)


def _no_check(span: Span, lang: str) -> Reply:
    host, since = excerpt(span.host, 60), _since(span)
    last = _time(span.last) if span.last is not None else "-"
    said = Text(f"No check of {host} ran {since.en}, so nothing is known; the newest one is of {last}.",
                f"{host} {since.zh}没有进行过检查，因此无法得知；最近一次检查在 {last}。")  # fmt: skip
    return Reply(lang, said.in_(lang), settled=False, suggestions=_asks(lang), data=data_of(span, ()))


# --- pieces -------------------------------------------------------------------------------


def _states(meant: Sequence[PastThing], lang: str) -> list[Part]:
    """Whether it is still there, for the findings among what is meant."""
    findings = [t for t in meant if t.kind == "finding"]
    said = []
    for t in findings[-QUOTED:]:
        title = excerpt(t.title.in_(lang), 200)
        state = _HOW.get(t.how, _HOW["unseen"]).in_(lang)
        said.append(Text(f"{title}: {state} ({_time(t.last)}).", f"{title}：{state}（{_time(t.last)}）。").in_(lang))
    return [Paragraph("\n".join(dict.fromkeys(said)))] if said else []


def _tables(things: Sequence[PastThing], lang: str) -> list[Part]:
    findings = [t for t in things if t.kind == "finding"]
    events = [t for t in things if t.kind != "finding"]
    out: list[Part] = []
    if findings:
        out += [Heading(Text("Findings", "发现").in_(lang)), _table(findings, lang, "now", "现状")]
    if events:
        out += [Heading(Text("Logged events", "日志事件").in_(lang)), _table(events, lang, "times", "次数")]
    if len(findings) > SHOWN or len(events) > SHOWN:
        out.append(
            Paragraph(
                Text(
                    f"The newest {SHOWN} of each are shown; all: gpudiag history",
                    f"各显示最新 {SHOWN} 项；全部：gpudiag history",
                ).in_(lang)
            )
        )
    return out


def _table(things: Sequence[PastThing], lang: str, *tail: str) -> Table:
    header = tuple(
        Text(*t).in_(lang) for t in (("last", "最近"), ("first", "首次"), ("where", "位置"), tail, ("what", "内容"))
    )
    rows = []
    for t in things[-SHOWN:]:
        state = _NOW.get(t.how, _NOW["unseen"]).in_(lang) if t.kind == "finding" else str(t.count)
        rows.append(
            (_minute(t.last), _minute(t.first), excerpt(subject_name(t.subject, lang), 60), state, _title(t, lang))
        )
    return Table(header, tuple(rows))


def _title(t: PastThing, lang: str) -> str:
    if t.kind == "finding":
        return f"{label(t.severity, lang)}{colon(lang)}{excerpt(t.title.in_(lang), 200)}"
    return event_title(t.kind, t.code, lang)


def _lines(events: Sequence[PastThing], lang: str) -> list[Part]:
    quoted = tuple(dict.fromkeys(excerpt(t.line, 300) for t in events[-QUOTED:] if t.line))
    return [Heading(Text("Last lines", "最近的日志行").in_(lang)), Code(quoted)] if quoted else []


def _reach(span: Span, lang: str) -> tuple[Part, ...]:
    """How far the answer reaches: since when, how many checks, and what was not understood."""
    begins = _time(span.begins) if span.begins is not None else "-"
    last = _time(span.last) if span.last is not None else "-"
    said = [Text(f"{span.checks} check{'s' * (span.checks != 1)} looked, {span.with_log} of them read the kernel log; the history goes back to {begins}, the newest check is of {last}.",
                 f"期间有 {span.checks} 次检查，其中 {span.with_log} 次读取了内核日志；历史最早到 {begins}，最近一次检查在 {last}。")]  # fmt: skip
    for word in span.strange:
        name = excerpt(word, 40)
        said.append(Text(f"The time \"{name}\" was not understood: everything that is known was looked through.",
                         f"未能理解时间“{name}”：已查看全部记录。"))  # fmt: skip
    return (Paragraph("\n".join(t.in_(lang) for t in said)),)


def _since(span: Span) -> Text:
    when = span.since if span.since is not None else span.begins
    assert when is not None
    return Text(f"since {_time(when)}", f"自 {_time(when)} 以来")


def _time(ns: int) -> str:
    return readable(iso(ns - ns % 10**9))


def _minute(ns: int) -> str:
    """A time for a table."""
    return f"{_time(ns)[:16]}Z"


def _range(c: Course) -> str:
    return "-" if c.low is None or c.high is None else f"{c.low:.6g} .. {c.high:.6g}"


def _gap(what: str) -> str:
    """A Latin word stands apart from Han characters before it."""
    return " " if what[:1].isascii() else ""


def _asks(lang: str) -> tuple[str, ...]:
    return tuple(t.in_(lang) for t in _ASK)
