"""What happened before: from a real history, through the reading of it, to the sentence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from assistant import store
from assistant.config import Settings
from assistant.config import load as load_settings
from assistant.diagnosis import Diagnosis, diagnose
from assistant.dialogue import Turn
from assistant.dialogue.history import answer
from assistant.intent.query import Intent, Query, Slots, Topic
from assistant.render.sheet import Code, Items, Paragraph, Table
from assistant.reply import Reply
from assistant.session.recall import recall
from assistant.session.since import start_of
from knowledge.language import Text
from knowledge.observation import Clock, Event, Observation, Source, Status, Subject, gpu, node
from probes.runner import ProbeResult
from rules.loader import load as load_rules
from tests.cases import each

HOUR, DAY = 3600 * 10**9, 86_400 * 10**9
NOW = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()) * 10**9
HOST, OTHER = "gpu-12", "gpu-13"


def line(code: int, at: int, slot: str = "3b", clock: Clock = Clock.REALTIME, host: str = HOST) -> Observation:
    text = f"NVRM: Xid (PCI:0000:{slot}:00): {code}, pid=77, name=train.py, at {at}"
    return Observation(
        "xid", gpu(f"0000:{slot}:00.0", host), Event(code, {"text": text}), source=Source("kernel-log", "dmesg", 1),
        at=at, clock=clock, excerpt=text,
    )  # fmt: skip


def value(fact: str, what: int | float | str, at: int, about: Subject | None = None) -> Observation:
    return Observation(
        fact, about or gpu("0000:3b:00.0", HOST), what, source=Source("nvml", "nvml"), at=at, clock=Clock.REALTIME
    )


def settings(tmp_path: Path) -> Settings:
    environ = {"GPUDIAG_HISTORY_URL": f"sqlite:///{tmp_path / 'h.db'}", "GPUDIAG_HOST_NAME": HOST}
    return load_settings({}, environ, ())


def check(
    tmp_path: Path,
    at: int,
    *seen: Observation,
    log: str = "ok",
    host: str = HOST,
    boot: str = "b1",
    origin: str = "live",
) -> Diagnosis:
    """One check of the node at a time, in which the kernel log was read, or not."""
    status = Status(log)
    found = list(seen)
    if status is Status.OK:
        found.append(
            Observation(
                "log.kernel.readable",
                node(host),
                True,
                source=Source("kernel-log", "dmesg"),
                at=at,
                clock=Clock.REALTIME,
            )
        )
        if not any(o.fact == "xid" for o in seen):
            whole = (at - DAY, at)
            found.append(
                Observation(
                    "xid",
                    node(host),
                    None,
                    Status.NONE_SEEN,
                    Source("kernel-log", "dmesg"),
                    at,
                    Clock.REALTIME,
                    window=whole,
                )
            )
    diagnosis = diagnose(found, load_rules(), as_of=at)
    results = [ProbeResult("kernel-log", (), status), ProbeResult("nvml", (), Status.OK)]
    url = settings(tmp_path).history.url
    assert store.remember(url, host, diagnosis, results, origin, boot_id=boot, rules=load_rules().rules) is None
    return diagnosis


def ask(
    tmp_path: Path, slots: Slots = Slots(), *, lang: str = "en", topics: Iterable[Topic] = (), facts: tuple[str, ...] = (),  # noqa: B008
    text: str = "has it happened before?", symptoms: tuple[str, ...] = (), base: Query | None = None, focus: str = "", host: str = HOST,
) -> Reply:  # fmt: skip
    query = Query(text, lang, Intent.HISTORY, slots, tuple(topics), symptoms, facts)
    rows, note = recall(settings(tmp_path), query, host, NOW)
    assert note is None
    reply = answer(Turn(query, lang, load_rules(), base=base, focus=focus, host=host, recalled=rows))
    assert reply.lang == lang
    return reply


def text_of(reply: Reply) -> str:
    """All that an answer says, for looking something up in it."""
    out = [reply.headline]
    for part in reply.parts:
        match part:
            case Paragraph(text):
                out.append(text)
            case Items(items, _):
                out += items
            case Code(lines):
                out += lines
            case Table(header, rows):
                out += ["|".join(row) for row in (header, *rows)]
            case other:
                out.append(str(getattr(other, "text", "")))
    return "\n".join(out)


def rows_of(reply: Reply) -> list[dict[str, object]]:
    return list(reply.data["history"]["rows"])


def test_what_changed_since_it_last_worked(tmp_path: Path) -> None:
    since_good = Slots(since=("good",))

    def driver(what: str, at: int) -> Observation:
        return value("node.driver.version", what, at, node(HOST))

    bad = check(tmp_path, NOW - 4 * HOUR, line(79, NOW - 5 * HOUR), driver("550.54.15", NOW - 4 * HOUR))
    assert bad.findings
    none = ask(tmp_path, since_good)
    assert not none.settled
    assert "No check of gpu-12 that found nothing wrong" in none.headline
    check(tmp_path, NOW - 3 * HOUR, driver("550.90.07", NOW - 3 * HOUR), boot="b2")
    check(tmp_path, NOW - 2 * HOUR, line(48, NOW - 2 * HOUR), driver("550.90.07", NOW - 2 * HOUR), boot="b2")
    assert "has not changed" in ask(tmp_path, since_good).headline
    check(tmp_path, NOW - HOUR, line(48, NOW - 2 * HOUR), driver("570.133.20", NOW - HOUR), boot="b2")
    reply = ask(tmp_path, since_good)
    assert "The software of gpu-12 has changed since 2026-11-21 09:00" in reply.headline
    assert reply.data["history"]["software"] == [
        {"fact": "node.driver.version", "subject": f"node {HOST}", "before": "550.90.07", "after": "570.133.20"}
    ]
    assert "node.driver.version|node gpu-12|550.90.07|570.133.20" in text_of(reply)
    assert "XID 48" in text_of(reply)
    assert "软件有变化" in ask(tmp_path, since_good, lang="zh").headline


# --- no history ---------------------------------------------------------------------------


@pytest.mark.parametrize(("lang", "said"), [("en", "There is no history yet"), ("zh", "还没有历史")])
def test_no_history_says_so_and_how_to_begin_one(tmp_path: Path, lang: str, said: str) -> None:
    reply = ask(tmp_path, lang=lang)
    assert said in reply.headline
    assert not reply.settled
    assert "gpudiag watch" in text_of(reply)
    assert not (tmp_path / "h.db").exists(), "asking writes nothing"


def test_a_history_that_is_off_or_cannot_be_read_says_so(tmp_path: Path) -> None:
    query = Query("?", "en", Intent.HISTORY)

    def said(url: str) -> str:
        rows, _ = recall(load_settings({}, {"GPUDIAG_HISTORY_URL": url}, ()), query, HOST, NOW)
        reply = answer(Turn(query, "en", load_rules(), recalled=rows))
        assert not reply.settled
        return reply.headline

    assert "the history is off" in said("off")
    (tmp_path / "strange").write_bytes(b"x" * 5000)
    assert "cannot be asked" in said(f"sqlite:///{tmp_path / 'strange'}")
    assert "cannot be asked" in said("mysql://x")


def test_a_node_that_was_never_checked(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR)
    reply = ask(tmp_path, Slots(node=("gpu-99",)))
    assert "No check of gpu-99 is in the history" in reply.headline
    assert f"Known there: {HOST}" in text_of(reply)
    assert not reply.settled


# --- seen ---------------------------------------------------------------------------------


def test_what_happened_before_is_counted_and_dated(tmp_path: Path) -> None:
    times = [NOW - 3 * DAY, NOW - 2 * DAY, NOW - 2 * HOUR]
    for at in times:
        check(tmp_path, at + 60 * 10**9, line(63, at), line(13, at + 1, "5e"))
    reply = ask(tmp_path, Slots(xid=(63,)))
    assert reply.headline == (
        f"XID 63 was seen on {HOST}: 3 times, first 2026-11-18 12:00:00Z, last 2026-11-21 10:00:00Z."
    )
    assert "still there at the last check" in text_of(reply)
    assert f"63, pid=77, name=train.py, at {times[-1]}" in text_of(reply)
    assert "13, pid=77" not in text_of(reply)
    assert {r["code"] for r in rows_of(reply)} == {63}
    assert "other thing" in text_of(reply)
    zh = ask(tmp_path, Slots(xid=(63,)), lang="zh")
    assert zh.headline == f"{HOST} 上出现过 XID 63：共 3 次，首次 2026-11-18 12:00:00Z，最近 2026-11-21 10:00:00Z。"


def test_since_and_place_narrow_it(tmp_path: Path) -> None:
    check(tmp_path, NOW - 3 * DAY, line(63, NOW - 3 * DAY))
    check(
        tmp_path, NOW - HOUR, line(63, NOW - HOUR, "5e"), value("gpu.index", 4, NOW - HOUR, gpu("0000:5e:00.0", HOST))
    )
    assert ": 1 time, " in ask(tmp_path, Slots(xid=(63,), since=("2h",))).headline
    assert ": 2 times, " in ask(tmp_path, Slots(xid=(63,), since=("7d",))).headline
    for name in (4, "0000:5e:00.0"):
        assert ": 1 time, at 2026-11-21 11:00:00Z" in ask(tmp_path, Slots(xid=(63,), gpu=(name,))).headline
    assert "was not seen" in ask(tmp_path, Slots(xid=(63,), gpu=(0,))).headline
    strange = ask(tmp_path, Slots(xid=(63,), since=("full moon",)))
    assert '"full moon" was not understood' in text_of(strange)
    assert ": 2 times, " in strange.headline


def test_gone_and_not_looked_at_are_told_apart(tmp_path: Path) -> None:
    check(tmp_path, NOW - 2 * DAY, line(79, NOW - 2 * DAY))
    check(tmp_path, NOW - DAY, log="denied")
    assert "not known: not looked at since" in text_of(ask(tmp_path, Slots(xid=(79,))))
    check(tmp_path, NOW - HOUR, boot="b2")
    assert ": gone (" in text_of(ask(tmp_path, Slots(xid=(79,))))


def test_another_node_is_another_node(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR, line(63, NOW - HOUR))
    check(tmp_path, NOW - HOUR, host=OTHER)
    assert "was not seen on gpu-13" in ask(tmp_path, Slots(xid=(63,), node=("GPU-13",))).headline
    assert "was seen on gpu-12" in ask(tmp_path, Slots(xid=(63,), node=("local",)), host="").headline
    assert "was seen on gpu-12" in ask(tmp_path, Slots(xid=(63,))).headline


def test_lines_without_a_time_count_from_when_they_were_read(tmp_path: Path) -> None:
    check(tmp_path, NOW - 5 * HOUR, line(63, 77 * 10**9, clock=Clock.BOOT))
    assert "at 2026-11-21 07:00:00Z" in ask(tmp_path, Slots(xid=(63,))).headline
    check(tmp_path, NOW - HOUR)
    assert "was not seen" in ask(tmp_path, Slots(xid=(63,), since=("2h",))).headline


# --- never --------------------------------------------------------------------------------


def test_never_is_an_answer_as_far_as_somebody_looked(tmp_path: Path) -> None:
    for hours in (50, 3, 1):
        check(tmp_path, NOW - hours * HOUR)
    reply = ask(tmp_path, Slots(xid=(79,)))
    assert reply.settled
    assert reply.headline.startswith(f"XID 79 was not seen on {HOST} since 2026-11-19 10:00:00Z")
    assert "3 checks looked, 3 of them read the kernel log" in text_of(reply)
    assert "2026-11-19 10:00:00Z" in text_of(reply)
    zh = ask(tmp_path, Slots(xid=(79,)), lang="zh")
    assert "未出现过 XID 79" in zh.headline


def test_never_is_none_when_nobody_read_the_log(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR, log="denied")
    reply = ask(tmp_path, Slots(xid=(79,)))
    assert reply.headline.startswith("Cannot say whether XID 79")
    assert not reply.settled
    assert "无法判断" in ask(tmp_path, Slots(xid=(79,)), lang="zh").headline


def test_a_time_without_a_check_is_no_never(tmp_path: Path) -> None:
    check(tmp_path, NOW - 3 * DAY)
    for slots in (Slots(xid=(79,), since=("2h",)), Slots(since=("2h",))):
        reply = ask(tmp_path, slots)
        assert reply.headline == (
            f"No check of {HOST} ran since 2026-11-21 10:00:00Z, so nothing is known; "
            "the newest one is of 2026-11-18 12:00:00Z."
        )
        assert not reply.settled


# --- everything, guesses, the talk --------------------------------------------------------


def test_what_happened_lists_findings_and_events(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR, line(63, NOW - HOUR), line(79, NOW - HOUR + 1, "5e"))
    reply = ask(tmp_path, Slots(since=("yesterday",)))
    assert "2 logged events" in reply.headline
    assert {(r["kind"], r["code"]) for r in rows_of(reply)} >= {("xid", 63), ("xid", 79), ("finding", 79)}
    assert "XID 79 (" in text_of(reply)
    assert "日志事件" in text_of(ask(tmp_path, lang="zh"))


def test_nothing_happened(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR)
    reply = ask(tmp_path, Slots(since=("2h",)))
    assert reply.headline == f"Nothing was found on {HOST} since 2026-11-21 10:00:00Z."
    assert reply.settled


BUS = Topic("rule gpu-fell-off-bus", 1.0, Text("GPU has fallen off the bus", "GPU 从总线上掉线"))


def test_a_guess_never_hides_what_happened(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR, line(63, NOW - HOUR))
    missed = ask(tmp_path, text="has the gpu fallen off the bus before?", topics=[BUS])
    assert missed.headline.startswith(f'"GPU has fallen off the bus" was not seen on {HOST}')
    assert {r["code"] for r in rows_of(missed)} == {63}
    check(tmp_path, NOW - HOUR // 2, line(79, NOW - HOUR // 2))
    hit = ask(tmp_path, text="has the gpu fallen off the bus before?", topics=[BUS])
    assert '"GPU has fallen off the bus" was seen' in hit.headline
    zh = ask(tmp_path, text="GPU 从总线上掉线过吗", topics=[BUS], lang="zh")
    assert "“GPU 从总线上掉线”" in zh.headline


def test_a_topic_that_was_only_near_is_not_what_was_asked(tmp_path: Path) -> None:
    check(tmp_path, NOW - HOUR, line(63, NOW - HOUR))
    near = [Topic("xid 63", 9.0, Text("GPU memory row remapping")), BUS]
    reply = ask(tmp_path, text="what happened to the gpu last night?", topics=near)
    assert reply.headline.startswith(f"On {HOST} since")


def test_when_did_this_start_is_about_the_talk(tmp_path: Path) -> None:
    check(tmp_path, NOW - 2 * DAY, line(79, NOW - 2 * DAY))
    last = check(tmp_path, NOW - HOUR, line(79, NOW - 2 * DAY), line(63, NOW - HOUR, "5e"))
    bus = next(f for f in last.findings if f.xid == 79)
    base = Query("what is wrong?", "en", Intent.DIAGNOSE, echo=Text("diagnose"))
    reply = ask(tmp_path, base=base, focus=bus.id)
    assert "first 2026-11-19 12:00:00Z" in reply.headline
    assert {r["code"] for r in rows_of(reply)} == {79}
    wide = ask(tmp_path, Slots(since=("7d",)), base=base, focus=bus.id)
    assert {r["code"] for r in rows_of(wide)} == {63, 79}, "a time that is named asks for all of it"


def test_how_a_value_went(tmp_path: Path) -> None:
    for hours, count in ((5, 0), (4, 0), (3, 7), (1, 7)):
        check(tmp_path, NOW - hours * HOUR, value("gpu.pcie.replay", count, NOW - hours * HOUR))
    reply = ask(tmp_path, facts=("gpu.pcie.replay",))
    assert (
        "went from 0 (2026-11-21 07:00:00Z) to 7 (2026-11-21 11:00:00Z); it changed last at 2026-11-21 09:00:00Z"
        in reply.headline
    )
    assert "gpudiag history fact gpu.pcie.replay" in text_of(reply)
    same = ask(tmp_path, Slots(since=("2h",)), facts=("gpu.pcie.replay",))
    assert "was 7 all the time" in same.headline
    assert "一直为 7" in ask(tmp_path, Slots(since=("2h",)), facts=("gpu.pcie.replay",), lang="zh").headline


# --- times --------------------------------------------------------------------------------


@each(
    ("said", "when"),
    [
        ("2h", "2026-11-21 16:30"),
        ("2.5h", "2026-11-21 16:00"),
        ("7d", "2026-11-14 18:30"),
        ("today", "2026-11-21 00:00"),
        ("yesterday", "2026-11-20 00:00"),
        ("yesterday 14:05", "2026-11-20 14:05"),
        ("last night", "2026-11-20 18:00"),
        ("this morning", "2026-11-21 05:00"),
        ("14:00", "2026-11-21 14:00"),
        ("19:00", "2026-11-20 19:00"),
        ("saturday", "2026-11-14 00:00"),
        ("friday", "2026-11-20 00:00"),
        ("2026-11-20", "2026-11-20 00:00"),
        ("2026-11-20T03:04:05", "2026-11-20 03:04:05"),
    ],
)
def test_since_when(said: str, when: str) -> None:
    zone = timezone(timedelta(hours=8))
    now = datetime(2026, 11, 21, 18, 30, tzinfo=zone)
    found = start_of(said, int(now.timestamp()) * 10**9, zone=zone)
    assert found is not None
    assert datetime.fromtimestamp(found / 10**9, zone) == datetime.fromisoformat(when).replace(tzinfo=zone)


def test_since_in_utc_and_since_the_boot() -> None:
    assert start_of("2026-11-21 11:00Z", NOW, zone=timezone(timedelta(hours=8))) == NOW - HOUR
    assert start_of("boot", NOW, [NOW - 9 * HOUR, NOW - HOUR, NOW + HOUR]) == NOW - HOUR
    assert start_of("boot", NOW) is None


@each("said", ["", "full moon", "25:99", "2026-13-45", "yesterday 26:00", "9" * 400 + "d", "\0"])
def test_a_time_that_is_none(said: str) -> None:
    assert start_of(said, NOW) is None


def test_rows_are_clean_and_bounded(tmp_path: Path) -> None:
    ugly = [
        Observation(
            "xid", gpu("0000:3b:00.0", HOST), Event(1000 + n, {"text": "x"}), source=Source("kernel-log", "dmesg", n),
            at=NOW - HOUR + n, clock=Clock.REALTIME, excerpt=f"NVRM: \x1b[31mXid\u202e {n} " + "y" * 5000,
        )
        for n in range(60)
    ]  # fmt: skip
    check(tmp_path, NOW, *ugly)
    said = text_of(ask(tmp_path))
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert max(map(len, said.splitlines())) < 1000
    assert "The newest 20 of each are shown" in said
