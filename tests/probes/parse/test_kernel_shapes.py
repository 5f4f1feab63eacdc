"""Every shape of line gives the same event, with its own time, clock and host."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from knowledge.observation import Clock, Event, Observation, Status
from probes.base import Context, lines_of
from probes.parse import kernel_log
from probes.parse._kernel_shape import Kind, entries_of, parse_line
from probes.parse._logtime import MONTHS, month_number
from tests.cases import each

MESSAGE = "NVRM: Xid (PCI:0000:3B:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."


def ns(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, rest: int = 0) -> int:
    return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()) * 10**9 + rest


def xids(text: str, host: str = "") -> list[tuple[Observation, Event]]:
    found = kernel_log.parse(lines_of(text), Context("log", host))
    return [(o, o.value) for o in found if o.fact == "xid" and isinstance(o.value, Event)]


def journal(message: object, **more: str) -> str:
    record = {"__REALTIME_TIMESTAMP": "1665755809123456", "_HOSTNAME": "n7", "_TRANSPORT": "kernel", "MESSAGE": message}
    return json.dumps(record | more)


EXPORT = """__CURSOR=s=1;i=2
__REALTIME_TIMESTAMP=1665755809123456
_BOOT_ID=0
_TRANSPORT=kernel
SYSLOG_IDENTIFIER=kernel
{message}
_HOSTNAME=n7
_SOURCE_MONOTONIC_TIMESTAMP=77
"""
PRETTY = """{{
\t"__REALTIME_TIMESTAMP" : "1665755809123456",
\t"_HOSTNAME" : "n7",
\t"MESSAGE" : {message},
\t"_TRANSPORT" : "kernel"
}}
"""
VERBOSE = """Fri 2022-10-14 13:56:49.123456 UTC [s=06;i=1;b=5;m=1;t=5;x=f]
    _TRANSPORT=kernel
    SYSLOG_IDENTIFIER=kernel
    _HOSTNAME=n7
    MESSAGE={message}
    PRIORITY=3
"""
UTC_2022 = 1665755809123456000

SHAPES = [
    (MESSAGE, None, Clock.NONE, ""),
    (f"    {MESSAGE}", None, Clock.NONE, ""),
    (f"{MESSAGE}\r", None, Clock.NONE, ""),
    (f"[  365.969681] {MESSAGE}", 365969681000, Clock.BOOT, ""),
    (f"[  365.969681] [ T1234] {MESSAGE}", 365969681000, Clock.BOOT, ""),
    (f"[  365.969681][   C17] {MESSAGE}", 365969681000, Clock.BOOT, ""),
    (f"[  365.969681 <    0.000012>] {MESSAGE}", 365969681000, Clock.BOOT, ""),
    (f"[  365.969681] n7 kernel: {MESSAGE}", 365969681000, Clock.BOOT, "n7"),
    (f"[  +0.000844] {MESSAGE}", 0, Clock.MONOTONIC, ""),
    (f"[Fri Oct 14 14:56:49 2022] {MESSAGE}", ns(2022, 10, 14, 14, 56, 49), Clock.LOCAL, ""),
    (f"[二 11月 15 14:15:47 2022] {MESSAGE}", ns(2022, 11, 15, 14, 15, 47), Clock.LOCAL, ""),
    (f"[Sep20 12:30] {MESSAGE}", ns(2000, 9, 20, 12, 30), Clock.YEARLESS, ""),
    (f"kern  :warn  : 2025-01-21T04:41:44,283302+00:00 {MESSAGE}", ns(2025, 1, 21, 4, 41, 44, 283302000), Clock.REALTIME, ""),
    (f"kern  :err   : [  365.969681] {MESSAGE}", 365969681000, Clock.BOOT, ""),
    (f"<3>[6085126.134786] {MESSAGE}", 6085126134786000, Clock.BOOT, ""),
    (f"6,3973,227996636,-;{MESSAGE}", 227996636000, Clock.BOOT, ""),
    (f"3,3973,227996636,-,caller=T12;{MESSAGE}", 227996636000, Clock.BOOT, ""),
    (f"Nov 22 18:29:55 n7 kernel: {MESSAGE}", ns(2000, 11, 22, 18, 29, 55), Clock.YEARLESS, "n7"),
    (f"Nov 22 18:29:55 n7 kernel: [ 966.503025] {MESSAGE}", ns(2000, 11, 22, 18, 29, 55), Clock.YEARLESS, "n7"),
    (f"Nov  2 18:29:55.123456 n7 kernel: {MESSAGE}", ns(2000, 11, 2, 18, 29, 55, 123456000), Clock.YEARLESS, "n7"),
    (f"Nov 22 2024 18:29:55 n7 kernel: {MESSAGE}", ns(2024, 11, 22, 18, 29, 55), Clock.LOCAL, "n7"),
    (f"Mar 29 15:38:59 kernel: {MESSAGE}", ns(2000, 3, 29, 15, 38, 59), Clock.YEARLESS, ""),
    (f"Mar 29 15:38:59 {MESSAGE}", ns(2000, 3, 29, 15, 38, 59), Clock.YEARLESS, ""),
    (f"Mar 29 15:38:59 n7 {MESSAGE}", ns(2000, 3, 29, 15, 38, 59), Clock.YEARLESS, "n7"),
    (f"11月 15 14:15:47 n7 kernel: {MESSAGE}", ns(2000, 11, 15, 14, 15, 47), Clock.YEARLESS, "n7"),
    (f"févr. 29 14:15:47 n7 kernel: {MESSAGE}", ns(2000, 2, 29, 14, 15, 47), Clock.YEARLESS, "n7"),
    (f"Okt 03 14:15:47 n7 kernel: {MESSAGE}", ns(2000, 10, 3, 14, 15, 47), Clock.YEARLESS, "n7"),
    (f"192.168.11.119: kern: warning: [2026-04-22T21:30:51.526447914Z]: {MESSAGE}", ns(2026, 4, 22, 21, 30, 51, 526447914), Clock.REALTIME, "192.168.11.119"),
    (f"2024-05-01T10:00:00.5+02:00 n7 kernel: [123.4] {MESSAGE}", ns(2024, 5, 1, 8, 0, 0, 500000000), Clock.REALTIME, "n7"),
    (f"2024-05-01T10:00:00-0530 n7 kernel: {MESSAGE}", ns(2024, 5, 1, 15, 30), Clock.REALTIME, "n7"),
    (f"2024-05-01 10:00:00 n7 kernel: {MESSAGE}", ns(2024, 5, 1, 10), Clock.LOCAL, "n7"),
    (f"Fri 2022-10-14 14:56:49 UTC n7 kernel: {MESSAGE}", ns(2022, 10, 14, 14, 56, 49), Clock.REALTIME, "n7"),
    (f"Fri 2022-10-14 14:56:49 CEST n7 kernel: {MESSAGE}", ns(2022, 10, 14, 14, 56, 49), Clock.LOCAL, "n7"),
    (f"1665755809.123456 n7 kernel: {MESSAGE}", UTC_2022, Clock.REALTIME, "n7"),
    (f"<4>1 2024-05-01T10:00:00.1Z n7 kernel - - - [  1.2] {MESSAGE}", ns(2024, 5, 1, 10, 0, 0, 100000000), Clock.REALTIME, "n7"),
    (f"<4>Aug 17 06:18:01 n7 kernel: [  1.2] {MESSAGE}", ns(2000, 8, 17, 6, 18, 1), Clock.YEARLESS, "n7"),
    (f"Aug 17 06:18:01 n7 kern.warn kernel: {MESSAGE}", ns(2000, 8, 17, 6, 18, 1), Clock.YEARLESS, "n7"),
    (f"kernel: {MESSAGE}", None, Clock.NONE, ""),
    (f"n7 kernel: {MESSAGE}", None, Clock.NONE, "n7"),
    (f"n7: [  365.969681] {MESSAGE}", 365969681000, Clock.BOOT, "n7"),
    (f"2024-05-01T10:00:00.1Z stdout F [  12.3] {MESSAGE}", ns(2024, 5, 1, 10, 0, 0, 100000000), Clock.REALTIME, ""),
    (journal(MESSAGE), UTC_2022, Clock.REALTIME, "n7"),
    (journal(list(MESSAGE.encode())), UTC_2022, Clock.REALTIME, "n7"),
    (EXPORT.format(message=f"MESSAGE={MESSAGE}"), UTC_2022, Clock.REALTIME, "n7"),
    (EXPORT.format(message=f"MESSAGE\n\x7f\x01\x02\x03\x04\x05\x06\x07{MESSAGE}"), UTC_2022, Clock.REALTIME, "n7"),
    (PRETTY.format(message=json.dumps(MESSAGE)), UTC_2022, Clock.REALTIME, "n7"),
    (VERBOSE.format(message=MESSAGE), UTC_2022, Clock.REALTIME, "n7"),
    (json.dumps({"ts": "2024-08-21T18:35:35Z", "details": {"reason": "Xid", "message": MESSAGE}}), ns(2024, 8, 21, 18, 35, 35), Clock.REALTIME, ""),
    (json.dumps({"log": f"[ 12.3] {MESSAGE}\n", "time": "2024-05-01T10:00:00Z"}), ns(2024, 5, 1, 10), Clock.REALTIME, ""),
    ("Aug 1 10:00:00 n7 watchd[1]: " + json.dumps({"msg": MESSAGE}), ns(2000, 8, 1, 10), Clock.YEARLESS, "n7"),
    (f'Aug 1 10:00:00 n7 watchd[1]: level=warn msg="{MESSAGE}" node=x', ns(2000, 8, 1, 10), Clock.YEARLESS, "n7"),
    (f"\x1b[32m[  365.969681]\x1b[0m {MESSAGE}", 365969681000, Clock.BOOT, ""),
    (f"Panic#2 Part1\n<1>[  365.969681] {MESSAGE}", 365969681000, Clock.BOOT, ""),
]  # fmt: skip


@each(("line", "at", "clock", "host"), SHAPES, ids=range(len(SHAPES)))
def test_shape(line: str, at: int | None, clock: Clock, host: str) -> None:
    [(observation, event)] = xids(line)
    assert observation.subject.id == "0000:3b:00.0"
    assert (observation.at, observation.clock, observation.subject.host) == (at, clock, host)
    assert event.code == 79
    assert event.fields == {"text": "GPU has fallen off the bus."}


@each(
    ("inside", "address"),
    [
        ("PCI:0000:3b:00", "0000:3b:00.0"), ("PCI:0000:41:00 GPU-I:05", "0000:41:00.0"), ("0000:3b:00", "0000:3b:00.0"), ("0009:00", "0000:09:00.0"),
        ("PCI:0000:3B:00.0", "0000:3b:00.0"), ("PCI:00000000:3b:00", "0000:3b:00.0"), ("PCI:0019:01:00", "0019:01:00.0"),
        ("PCI:0001:ab:cd", "0001:ab:cd.0"), ("PCI:0000:..:00", "unknown:0000:..:00"), ("...", "unknown:..."),
    ],
)  # fmt: skip
def test_addresses(inside: str, address: str) -> None:
    [(observation, _)] = xids(f"NVRM: Xid ({inside}): 31, pid=1, name=x, Ch 00000001")
    assert observation.subject.id == address


@each(
    ("body", "pid", "process", "text"),
    [
        ("pid=8494,   name=RenderThread, channel 0x0d", 8494, "RenderThread", "channel 0x0d"),
        ("pid=12, name=VLLM::Worker, Ch 00000002", 12, "VLLM::Worker", "Ch 00000002"),
        ("pid=12, name=nvc:[driver], GPU has fallen off the bus.", 12, "nvc:[driver]", "GPU has fallen off the bus."),
        ("pid=12, name=a, b c, Ch 00000002", 12, "a, b c", "Ch 00000002"),
        ("pid=12, name=python3 main.py, something new", 12, "python3 main.py", "something new"),
        ("pid='12', name='x y', Ch 1", 12, "x y", "Ch 1"),
        ("pid='<unknown>', name=<unknown>, Ch 1", None, None, "Ch 1"),
        ("pid=<unknown>, name=<unknown>, Ch 1", None, None, "Ch 1"),
        ("pid=0, GPU has fallen off the bus.", 0, None, "GPU has fallen off the bus."),
        ("pid=1896, Row Remapper: New row marked", 1896, None, "Row Remapper: New row marked"),
        ("Ch 00000001, engmask 00000120", None, None, "Ch 00000001, engmask 00000120"),
        ("pid=12, name=pyt", 12, "pyt", None),
        ("pid=12", 12, None, None),
        ("", None, None, None),
    ],
)
def test_bodies(body: str, pid: int | None, process: str | None, text: str | None) -> None:
    [(_, event)] = xids(f"[1.0] NVRM: Xid (PCI:0000:3b:00): 13, {body}".rstrip())
    assert (event.get("pid"), event.get("process"), event.get("text")) == (pid, process, text)


def test_a_wrapped_body_is_joined() -> None:
    [(_, event)] = xids("NVRM: Xid (0000:01:00): 16, \nHead 00000000 Count 00006e2e")
    assert event.get("text") == "Head 00000000 Count 00006e2e"
    [(_, event)] = xids(
        "   NVRM: Xid (PCI:0000:d4:00): 154, GPU recovery action changed from 0x0 (None) to\n"
        "         0x1 (GPU Reset Required)\n   NVRM: next"
    )
    assert str(event.get("text")).endswith("from 0x0 (None) to 0x1 (GPU Reset Required)")


def test_lines_that_were_printed_over_each_other_are_two_events() -> None:
    first, second = xids("[1.0] NVRM: Xid (PCI:0000:01:00): 31, pid=7, na[1.0] NVRM: Xid (PCI:0000:02:00): 43, Ch 1")
    assert (first[0].subject.id, first[1].code) == ("0000:01:00.0", 31)
    assert (second[0].subject.id, second[1].code, second[1].get("text")) == ("0000:02:00.0", 43, "Ch 1")
    assert "NVRM" not in str(first[1].fields)


def test_a_line_cut_ahead_of_the_code_is_not_silent() -> None:
    found = kernel_log.parse(lines_of("[1.0] NVRM: Xid (PCI:0000:3b:00): "), Context("log"))
    [xid] = [o for o in found if o.fact == "xid" and o.status is not Status.NONE_SEEN]
    assert xid.status is Status.FAILED
    assert xid.subject.id == "0000:3b:00.0"


def test_the_year_turns_in_december() -> None:
    text = "\n".join(
        f"{day} 10:00:00 n7 kernel: NVRM: Xid (PCI:0000:3b:00): 13, Ch 1"
        for day in ("Nov 30", "Dec 31", "Jan  1", "Dec 31", "Feb 29")
    )
    times = [o.at for o, _ in xids(text)]
    assert times[:3] == [ns(2000, 11, 30, 10), ns(2000, 12, 31, 10), ns(2001, 1, 1, 10)]
    assert times[3] == ns(2000, 12, 31, 10)  # a late line of the old year
    assert times[4] is not None
    assert times[4] > ns(2001, 2, 28)


def test_boots_in_one_file_keep_their_order() -> None:
    first = "[  100.000000] NVRM: Xid (PCI:0000:3b:00): 79, x"
    second = "[    0.000000] Linux version 6.1.0 (a@b)\n[   50.000000] NVRM: Xid (PCI:0000:3b:00): 13, x"
    (a, _), (b, _) = xids(f"{first}\n{second}")
    assert (a.at, b.at) == (100 * 10**9, 150 * 10**9)
    newest_first = "\n".join(f"[  {n}.000000] NVRM: Xid (PCI:0000:3b:00): 13, x" for n in (300, 200, 100))
    assert [o.at for o, _ in xids(newest_first)] == [n * 10**9 for n in (300, 200, 100)]


def test_deltas_add_up_only_while_no_line_is_missing() -> None:
    text = "\n".join(f"[  +0.500000] NVRM: Xid (PCI:0000:3b:00): 13, x{n}" for n in range(3))
    assert [o.at for o, _ in xids(text)] == [0, 500_000_000, 1_000_000_000]


@each("word", ["Mär", "mars", "März", "мар", "3月", "3월", "bře", "MAR", "maalis"])
def test_march_in_many_languages(word: str) -> None:
    assert month_number(word) == 3


@each("word, number", [
    ("Dis", 12), ("jūn", 6), ("liep.", 7), ("lapkr.", 11), ("jaan", 1), ("dets", 12), ("velj", 2), ("stu", 11), ("ное", 11),
    ("мај", 5), ("сту", 1), ("xuñ", 6), ("urr", 10), ("ágú", 8), ("Agu", 8), ("İyn", 6), ("Μαΐ", 5), ("ינו", 1), ("พ.ย.", 11),
])  # fmt: skip
def test_months_of_further_languages(word: str, number: int) -> None:
    assert month_number(word) == number


def test_no_month_has_two_numbers() -> None:
    words = [word for names in MONTHS for word in names.split()]
    assert len(words) == len(set(words))


def test_a_host_may_be_called_like_a_month_of_another_language() -> None:
    assert [parse_line(1, f"Nov 22 14:56:44 {name} kernel: x").host for name in ("api", "mac", "lis")] == [
        "api",
        "mac",
        "lis",
    ]


def test_the_x_server_is_not_the_kernel() -> None:
    assert parse_line(1, '[    12.345] (II) LoadModule: "nvidia"').kind is Kind.BARE


@given(st.text(max_size=300))
def test_any_text_is_some_entry(text: str) -> None:
    for entry in entries_of(lines_of(text)):
        assert entry.number >= 1


@given(st.lists(st.sampled_from([line for line, *_ in SHAPES if "\n" not in line]), max_size=6), st.integers(0, 200))
def test_lines_cut_anywhere_are_read_without_an_error(lines: list[str], end: int) -> None:
    text = "\n".join(line[: max(1, len(line) - end)] for line in lines)
    first = kernel_log.parse(lines_of(text), Context("log"))
    assert first == kernel_log.parse(lines_of(text), Context("log"))
