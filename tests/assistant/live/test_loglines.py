"""A log as lines to read: what stands in them, when, and what they mean."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant import formats
from assistant.intent.query import Intent
from assistant.live.loglines import BATCH, LogLine, Spot, lines, when, whole, written
from assistant.live.logmarks import LABELS, SEVERITIES, judge_of
from knowledge.facts import Kind, vocabulary
from knowledge.observation import Clock, Observation
from probes.scan import scan
from rules.loader import load
from tests.cases import each
from tests.tui.lab import understood

JUDGE = judge_of(load())
OFF_BUS = "2026-08-19T02:51:07.220431+00:00 oak kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python, GPU has fallen off the bus."


def seen(text: str) -> tuple[Observation, ...]:
    import io

    return scan([io.BytesIO(text.encode("utf-8", "surrogatepass"))], formats.log_formats()).observations


def read(text: str, first: int = 1) -> list[LogLine]:
    batches = lines(text.encode("utf-8", "surrogatepass"), seen(text), JUDGE, first=first)
    return [line for batch in batches for line in batch]


def severity(text: str) -> str:
    made = read(text)
    assert len(made) == 1
    return made[0].decoded.severity if made[0].decoded else ""


def test_an_xid_is_told_beside_its_line() -> None:
    plain, xid = read(f"2026-08-19T02:51:00.000000+00:00 oak kernel: usb 1-1: new device\n{OFF_BUS}\n")
    assert plain.decoded is None
    assert plain.message == "usb 1-1: new device"
    assert xid.message.startswith("NVRM: Xid (PCI:0000:3b:00): 79")
    assert xid.raw == OFF_BUS
    assert xid.decoded is not None
    assert xid.decoded.label.en == "XID 79"
    assert "bus" in xid.decoded.meaning.en
    assert xid.decoded.topic == "xid 79"
    assert xid.decoded.grave
    assert "RESTART_BM" in xid.decoded.more("en")
    assert when(xid.at, xid.clock) == "08-19 02:51:07"
    assert whole(xid.at, xid.clock, "en") == "2026-08-19 02:51:07.220431 UTC"


def test_an_sxid_is_as_bad_as_its_line_says() -> None:
    fatal, other = read(
        "[  100.5] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)\n"
        "[  101.5] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)\n"
    )
    assert fatal.decoded is not None
    assert other.decoded is not None
    assert fatal.decoded.label.en == "SXid 24007"
    assert SEVERITIES.index(fatal.decoded.severity) > SEVERITIES.index(other.decoded.severity)
    assert when(fatal.at, fatal.clock) == "[100.500]"


@each(
    ("line", "bad"),
    [
        ("[1.0] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "critical"),
        ("[1.0] pcieport 0000:3a:00.0: AER: Corrected error received: 0000:3b:00.0", "info"),
        ("[1.0] Kernel panic - not syncing: Fatal exception", "critical"),
        ("[1.0] Linux version 6.8.0-45-generic (buildd@lcy02)", "info"),
        ("[1.0] usb 1-1: new high-speed USB device number 2", ""),
        (
            "[1.0] NVRM: Xid (PCI:0000:3b:00): 9999, pid=1, name=x, something new",
            "warning",
        ),  # no code is harmless unseen
        ("[1.0] NVRM: Xid (PCI:0000:3b", "warning"),  # cut off ahead of the code
    ],
)
def test_a_line_is_as_bad_as_what_follows_from_it_alone(line: str, bad: str) -> None:
    assert severity(line) == bad


def test_every_event_of_a_log_has_a_short_name_in_both_languages() -> None:
    named = {fact for f in formats.log_formats() for fact in f.provides}
    events = {name for name in named if (spec := vocabulary().get(name)) is not None and spec.kind is Kind.EVENT}
    assert events - {"xid", "sxid", "xid_reported"} <= set(LABELS)
    assert set(LABELS) <= set(vocabulary_names())
    assert all(en and zh and len(en) <= 16 for en, zh in LABELS.values())


def vocabulary_names() -> list[str]:
    return [s.name for s in vocabulary()]


def test_the_level_that_a_line_says_is_kept() -> None:
    made = read(
        "kern  :warn  : 2026-08-19T02:51:00,000000+00:00 one\n<3>[  12.5] two\n6,3973,227996636,-;three\n[ 1.0] four\n"
    )
    assert [line.level for line in made] == ["warning", "err", "info", ""]
    assert [line.message for line in made] == ["one", "two", "three", "four"]


def test_a_traceback_keeps_its_indentation_and_tabs_become_blanks() -> None:
    made = read('Traceback (most recent call last):\n  File "train.py", line 3, in step\n\tloss.backward()\n')
    assert made[1].message.startswith("  File")
    assert made[2].message == "    loss.backward()"


def test_times_of_the_boot_clock_are_placed_where_the_boot_is_known() -> None:
    def spot(latest: int | None) -> Spot:
        assert latest is None
        return lambda at, clock: (at + 10**18, Clock.REALTIME) if clock is Clock.BOOT else (at, clock)

    (line,) = [x for batch in lines(b"[  12.5] hello\n", (), JUDGE, spot=spot) for x in batch]
    assert (line.at, line.clock) == (10**18 + 12_500_000_000, Clock.REALTIME)


def test_events_ahead_of_what_is_held_are_kept() -> None:
    text = f"{OFF_BUS}\n" + "".join(f"[{n}.0] line {n}\n" for n in range(2, 50))
    held = text.split("\n", 40)[40]
    made = [x for batch in lines(held.encode(), seen(text), JUDGE, first=41) for x in batch]
    assert [line.number for line in made] == [1, *range(41, 50)]
    assert made[0].decoded is not None
    assert made[0].decoded.topic == "xid 79"
    assert "fallen off the bus" in made[0].raw


def test_ten_thousand_lines_come_in_batches_in_their_order() -> None:
    text = "".join(f"[{n}.000001] line {n}\n" for n in range(1, 10_001))
    batches = list(lines(text.encode(), (), JUDGE))
    assert max(map(len, batches)) <= BATCH
    numbers = [line.number for batch in batches for line in batch]
    assert numbers == list(range(1, 10_001))
    assert all(a.at < b.at for b1 in batches for a, b in pairwise(b1) if a.at is not None and b.at is not None)


def test_reading_ends_where_it_is_given_up() -> None:
    class GivenUp(Exception):
        pass

    def check() -> None:
        raise GivenUp

    with pytest.raises(GivenUp):
        list(lines(b"one\ntwo\n", (), JUDGE, check=check))


XID_79 = "4,9001,5000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."


def test_a_record_that_has_just_been_written_is_read_like_any_other() -> None:
    (line,) = written([(10**18, f"{XID_79}\n SUBSYSTEM=pci\n")], [], JUDGE)
    assert line.decoded is not None
    assert line.decoded.topic == "xid 79"
    assert (line.at, line.clock, line.level) == (10**18, Clock.REALTIME, "warning")


AER = (
    "pcieport 0000:00:01.1: AER: Corrected error received: 0000:01:00.0",
    "nvidia 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Transmitter ID)",
    "nvidia 0000:01:00.0:   device [10de:2330] error status/mask=00001000/0000a000",
    "nvidia 0000:01:00.0:    [12] Timeout",
)
BURST = tuple(
    f"NVRM: Xid (PCI:0000:3b:00): 94, pid={n}, name=a, Contained: SM (0x1). RST: No, D-RST: No" for n in range(3000)
)


@pytest.mark.parametrize("messages", [AER, BURST], ids=["several lines", "a burst"])
@pytest.mark.parametrize("split", [0, 1, 3])
def test_lines_that_are_written_mean_what_they_mean_in_a_log(messages: tuple[str, ...], split: int) -> None:
    """Also where the first of them were heard before."""
    records = [f"3,{n},{5_000_000 + n},-;{message}" for n, message in enumerate(messages)]
    made = written([(10**18, record) for record in records[split:]], records[:split], JUDGE)
    marks = [line.decoded and (line.decoded.topic, line.decoded.event.times) for line in read("\n".join(records))]
    assert any(marks)
    assert [line.decoded and (line.decoded.topic, line.decoded.event.times) for line in made] == marks[split:]


@given(st.lists(st.text(max_size=80), max_size=30))
def test_no_text_breaks_the_reading_and_no_line_is_told_twice(texts: list[str]) -> None:
    text = "\n".join(texts)
    made = read(text)
    assert len({line.key for line in made}) == len(made)
    assert all(a.number <= b.number for a, b in pairwise(made))
    assert all("\n" not in line.message and "\t" not in line.message for line in made)
    for line in made:
        when(line.at, line.clock)
        for lang in ("en", "zh"):
            assert whole(line.at, line.clock, lang)
            line.question(lang)


@each("lang", ["en", "zh"])
@each(
    "text",
    [
        OFF_BUS,
        "[1.0] NVRM: Xid (PCI:0000:4e:00): 74, pid=3321, name=python3, NVLink: fatal error detected on link 6(0x10000, 0x0)",
        "[1.0] nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 24007, Fatal, Link 28 sourcetrack timeout error (First)",
        "[1.0] pcieport 0000:3a:00.0: AER: Corrected error received: 0000:3b:00.0",
        "[1.0] Out of memory: Killed process 4242 (python) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0",
        "[1.0] usb 1-1: new high-speed USB device number 2 using xhci_hcd",
        "[1.0] systemd[1]: Started Daily apt download activities.",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
    ],
)
def test_what_a_line_is_asked_by_is_understood(text: str, lang: str) -> None:
    (line,) = read(text)
    query = line.query(lang)  # a line that no parser knows says itself as what it is meant
    assert understood(line.question(lang), lang) if query is None else query.intent is Intent.EXPLAIN
    assert (query is None) == (line.decoded is not None)
