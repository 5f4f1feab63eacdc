"""What holds for every report of an incident: it tells what the events tell, the same each time, and nothing of a stranger acts in it."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from assistant.config import Output
from assistant.incidents import report_html, report_page
from assistant.incidents.events import Event, Kind, Status
from assistant.incidents.fold import Incident, fold
from assistant.incidents.impact import Price, Row, hours, impact, price_of, set_price
from assistant.incidents.report import report, timeline
from assistant.incidents.similar import similar
from assistant.incidents.words import lasting, moment
from assistant.render.sheet import show
from knowledge.errors import UsageError
from tests.assistant.incidents.test_incident_laws import logs

T0 = 1_790_000_000
SECOND = 10**9
EUR = Price(Decimal("2.10"), "EUR")


def every_shape(incident: Incident, others: Sequence[Incident] = (), price: Price | None = EUR) -> dict[str, str]:
    made = report(incident, similar(incident, others), price)
    out = {}
    for lang in ("en", "zh"):
        for shape in ("text", "markdown", "json"):
            out[f"{shape} {lang}"] = show(report_page.sheet(made, lang), Output(lang, shape, "never"))
        out[f"html {lang}"] = report_html.render(made, lang)
    return out


def plain(incident: Incident, price: Price | None = None) -> dict[str, Any]:
    return report_page.plain(report(incident, (), price), "en")


# --- events of a sound incident -----------------------------------------------------------


def about(
    host: str, gpu: int | None, first: int | None = None, key: str = "", **more: Any
) -> tuple[str, dict[str, Any]]:
    """A finding of GPU number `gpu`, or of the node; `first`: seconds after T0 of its first event."""
    subject = f"node:{host}" + ("" if gpu is None else f"/gpu:0000:{gpu:02x}:00.0")
    at = None if first is None else (T0 + first) * SECOND
    clock = "none" if first is None else "realtime"
    data = {
        "key": key or f"r@{subject}", "rule": "gpu-fell-off-bus", "host": host, "subject": subject, "role": "root", "severity": "error",
        "title": {"en": "GPU has fallen off the bus", "zh": "GPU 从总线上掉线"}, "first": at, "last": at, "clock": clock,
        "evidence": [{"line": f"Xid of {subject}", "source": "kern.log"}],
    }  # fmt: skip
    return Kind.FINDING, {**data, **more}


def told(*entries: tuple[int, tuple[str, dict[str, Any]]], number: int = 7) -> Incident:
    """An incident of entries, each written so many seconds after T0."""
    return fold(
        [Event(n, (T0 + at) * SECOND, kind, "alice", "cli", data) for n, (at, (kind, data)) in enumerate(entries, 1)],
        number,
        "u",
    )


def status(word: str) -> tuple[str, dict[str, Any]]:
    return (Kind.CLOSED, {"text": "over"}) if word == "closed" else (Kind.STATUS, {"status": word})


words_of_state = st.sampled_from([s.value for s in Status])
histories = st.lists(st.tuples(st.integers(0, 40), words_of_state), max_size=6)
found = st.lists(
    st.tuples(st.sampled_from(["n1", "n2"]), st.none() | st.integers(1, 3), st.none() | st.integers(0, 60)),
    min_size=1,
    max_size=5,
)


def made(
    findings: list[tuple[str, int | None, int | None]], history: list[tuple[int, str]], counts: dict[str, int]
) -> Incident:
    """Findings written at second 60, then what was said, each some seconds later."""
    entries: list[tuple[int, tuple[str, dict[str, Any]]]] = [(60, (Kind.OPENED, {"title": "it fell", "gpus": counts}))]
    entries += [(60, about(host, gpu, first, key=f"k{n}")) for n, (host, gpu, first) in enumerate(findings)]
    at = 60
    for wait, word in history:
        at += wait
        entries.append((at, status(word)))
    return told(*entries)


def lost(since: int, history: list[tuple[int, str]]) -> int:
    """Seconds lost, counted one by one: it goes on until somebody says that it is over."""
    at, going, total = 60, True, 60 - since
    for wait, word in history:
        total += wait * going
        at, going = at + wait, word not in ("mitigated", "closed")
    return total


# --- laws ---------------------------------------------------------------------------------


@given(found, histories)
def test_gpu_hours_are_those_that_one_counts_by_hand(
    findings: list[tuple[str, int | None, int | None]], history: list[tuple[int, str]]
) -> None:
    counts = {"n1": 8}
    seen = impact(made(findings, history, counts))
    expected: dict[tuple[str, int | None], list[int | None]] = {}
    whole: dict[str, list[int | None]] = {}
    for host, gpu, first in findings:
        whole.setdefault(host, []).append(first)
        if gpu is not None:
            expected.setdefault((host, gpu), []).append(first)

    def seconds(firsts: list[int | None]) -> int:
        return lost(min((f for f in firsts if f is not None), default=60), history)

    def rows(of: Sequence[Row]) -> list[tuple[str, int]]:
        return sorted((r.host, r.ns or 0) for r in of)

    assert rows(seen.named.rows) == sorted((h, seconds(f) * SECOND) for (h, _), f in expected.items())
    assert seen.named.gpu_ns == (sum(seconds(f) for f in expected.values()) * SECOND if expected else None)
    node = {h: seconds(f) for h, f in whole.items()}
    assert seen.nodes.gpu_ns == (8 * node["n1"] * SECOND if "n1" in node else None), (
        "a count that nobody recorded is not guessed"
    )
    over = history != [] and history[-1][1] in ("mitigated", "closed")
    unmeasured = any(all(x is None for x in f) for f in expected.values())
    nameless = any(gpu is None for _, gpu, _ in findings)
    assert seen.named.least == (nameless or (bool(expected) and (not over or unmeasured)))


@given(found, histories)
def test_each_number_of_a_report_stands_in_the_events_or_is_counted_from_them(
    findings: list[tuple[str, int | None, int | None]], history: list[tuple[int, str]]
) -> None:
    incident = made(findings, history, {"n1": 8})
    seen = impact(incident)
    known = [json.dumps([dict(e.data) for e in incident.events]), str(incident.number), "2.10 1"]
    known += [moment(e.at) for e in incident.events]
    known += [moment(v) for e in incident.events for n in ("first", "last") if isinstance(v := e.data.get(n), int)]
    for each in (seen.named, seen.nodes):
        for ns in (each.gpu_ns, *(r.gpu_ns for r in each.rows)):
            if ns is not None:
                euro = (Decimal("2.10") * ns / (3600 * SECOND)).quantize(Decimal("0.01"), ROUND_HALF_UP)
                known += [hours(ns), f"{euro}"]
        known.append(str(sum(r.gpus or 0 for r in each.rows)))
    if incident.closed_at is not None:
        known += [
            lasting(incident.closed_at - at, "en") for at in (incident.opened_at, *(r.since for r in seen.nodes.rows))
        ]
    allowed = set(re.findall(r"\d+", " ".join(known)))
    text = every_shape(incident)["text en"]
    assert set(re.findall(r"\d+", text)) <= allowed


@given(st.lists(logs, max_size=2), logs)
def test_the_same_events_give_the_same_bytes_whatever_is_in_them(past: list[list[Event]], events: list[Event]) -> None:
    others = [fold(e, n, "u") for n, e in enumerate(past, 1)]
    first = every_shape(fold(events, 7, "u"), others)
    again = [Event(e.seq, e.at, e.kind, e.who, e.surface, json.loads(json.dumps(e.data))) for e in events]
    assert every_shape(fold(again, 7, "u"), list(reversed(others))) == first
    for name, text in first.items():
        if name.startswith("json"):
            assert json.loads(text)["report"]["number"] == 7


@given(found, st.permutations(range(5)), st.lists(st.integers(0, 5), max_size=4))
def test_who_wrote_first_changes_the_timeline_only(
    findings: list[tuple[str, int | None, int | None]], order: list[int], notes: list[int]
) -> None:
    entries = [(60, about(host, gpu, first, key=f"k{n}")) for n, (host, gpu, first) in enumerate(findings)]
    start = (60, (Kind.OPENED, {"title": "it fell", "gpus": {"n1": 8}}))
    end = (99, status("closed"))
    other = [entries[n] for n in order if n < len(entries)]
    for at in notes:
        other.insert(min(at, len(other)), (60, (Kind.NOTE, {"text": "I look"})))
    one, two = plain(told(start, *entries, end), EUR), plain(told(start, *other, end), EUR)
    for name in ("verdict", "causes", "impact", "not_seen", "open_points", "actions"):
        assert one[name] == two[name]


class _Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'><b onclick=x>", "](http://evil) [x](http://evil)", "![x](http://evil)",
    "| a | b |\n| - | - |", "\n# A heading\n", "```\n<b>\n", "<http://evil>", "http://evil.example", "</code></pre><script>", "* x\n- y\n1. z",
    "\u202eltr\u202c", "\x1b[31mred", "&lt;b&gt;", "`code`", "故障<b>",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_strangers_write_is_shown_and_does_nothing(text: str) -> None:
    finding: Any = {
        "title": text,
        "grade": text,
        "evidence": [{"line": text, "source": text}],
        "parts": {"rack": text},
        "key": text,
    }
    gap = [{"why": text, "facts": [text], "n": 1}]
    opened = {
        "title": {"en": text, "zh": text}, "host": text, "source": text, "gpus": {text: 8}, "verdict": {"en": text},
        "coverage": {"denied": gap, "failed": gap, "not_asked": gap, "cut": [text]},
    }  # fmt: skip
    entries = [
        (Kind.OPENED, opened), about(text, 1, 0, **finding), (Kind.NOTE, {"text": text}), (Kind.OWNER, {"owner": text}),
        (Kind.MESSAGE, {"text": text, "from": text, "where": text}), (Kind.STEP, {"runbook": text, "step": text, "state": "failed", "text": text}),
        (Kind.ACTION, {"name": text, "argv": [text], "excerpt": text, "exit": 3}), ("newer", {"name": text, "text": text}),
        (Kind.LINKED, {"incident": 3, "why": {"en": text}}), (Kind.CLOSED, {"text": text}),
    ]  # fmt: skip
    incident = fold(
        [Event(n, T0 * SECOND + n, kind, text, text, data) for n, (kind, data) in enumerate(entries, 1)], 7, "u"
    )
    quiet = fold([Event(1, T0 * SECOND, Kind.OPENED, "a", "cli", {"title": "x"}), *incident.events[1:]], 7, "u")
    shapes = every_shape(incident, [fold(incident.events, 2, "v")])
    for lang in ("en", "zh"):
        seen = _Tags()
        seen.feed(shapes[f"html {lang}"])
        assert seen.tags <= set(
            re.findall(
                "[a-z0-9]+",
                "html head meta title style body main h1 h2 h3 b span p ul li div table tr td code pre section",
            )
        )
        assert seen.attributes <= {"lang", "charset", "http-equiv", "content", "name", "style", "class", "id"}
        page = MarkdownIt("commonmark").enable("table").parse(shapes[f"markdown {lang}"])
        inner = {c.type for token in page for c in token.children or ()}
        assert not inner & {"link_open", "image", "html_inline"}
        assert not {t.type for t in page} & {"html_block", "blockquote_open"}
        headings = [t.type for t in page].count("heading_open")
        assert headings == len(report_page.sections(report(quiet), lang)) + 1, "no heading but ours"
    for name, shown in shapes.items():  # JSON is data, and carries it as it was written
        assert not set(shown) & ({"\x1b"} if name.startswith("json") else {"\x1b", "\u202e"})


# --- what is not known is said ------------------------------------------------------------


def test_what_was_not_recorded_is_said_and_not_guessed() -> None:
    made_by_hand = told((0, (Kind.OPENED, {"title": "rack 4 smells", "origin": "hand"})), (3600, status("closed")))
    text = every_shape(made_by_hand)["text en"]
    for words in ("No cause was recorded", "Not counted: no finding says", "Not recorded: it was opened by hand"):
        assert words in text
    assert "GPU-hours" not in text.splitlines()[0]
    of_node = told((0, about("n1", None, 0)), (3600, status("closed")))
    assert plain(of_node)["impact"]["nodes"]["gpu_hours"] is None
    assert "how many there are was not recorded" in every_shape(of_node)["text en"]
    unmeasured = told((0, about("n1", 1)), (3600, status("closed")))
    named = plain(unmeasured)["impact"]["named"]
    assert (named["gpu_hours"], named["at_least"], named["rows"][0]["measured"]) == ("1.00", True, False)
    assert "At least 1.00 GPU-hours (1 GPU)" in every_shape(unmeasured)["text en"]


@pytest.mark.parametrize("clock", ["boot", "local", "yearless", "none", "of a newer version"])
def test_a_clock_that_is_no_utc_gives_no_start(clock: str) -> None:
    """Ten hours since a boot, or a wall clock of no zone: nobody knows which moment that was."""
    incident = told((0, about("n1", 1, -36000, clock=clock)), (3600, status("closed")))
    (row,) = impact(incident).named.rows
    assert (row.measured, row.since, row.ns) == (False, T0 * SECOND, 3600 * SECOND)


def test_clocks_that_disagree_are_not_counted() -> None:
    incident = told((0, about("n1", 1, 500)), (60, status("closed")))
    assert plain(incident)["impact"]["named"]["gpu_hours"] is None
    assert "the recorded times contradict each other" in every_shape(incident)["text en"]


def test_two_names_of_one_gpu_are_one_gpu() -> None:
    uuid = {"parts": {"uuid": "GPU-1"}}
    twice = told((0, about("n1", 1, 0, "a", **uuid)), (0, about("n1", 2, 0, "b", **uuid)), (3600, status("closed")))
    assert plain(twice)["impact"]["named"]["gpu_hours"] == "1.00"


def test_the_first_line_says_what_its_sum_rests_on() -> None:
    counts = (0, (Kind.OPENED, {"title": "rail down", "gpus": {"n1": 8}}))
    of_node = told(counts, (0, about("n1", None, 0)), (3600, status("closed")))
    first = every_shape(of_node, price=None)["markdown en"].splitlines()[0]
    assert (
        first
        == "# CLOSED: rail down. Over 1 h after its first event. 8.00 GPU-hours (8 GPUs) if the whole node was out of work. Over."
    )
    both = told(counts, (0, about("n1", None, 0)), (0, about("n1", 1, 0)), (3600, status("closed")))
    assert "At least 1.00 GPU-hours (1 GPU)" in every_shape(both)["text en"]
    assert "A cause that names no GPU counts in the second sum only." in " ".join(every_shape(both)["text en"].split())


def test_a_day_that_goes_wrong_twice_counts_twice_and_the_pause_not() -> None:
    incident = told(
        (0, about("n1", 1, 0)), (3600, status("mitigated")), (7200, status("working")), (10800, status("closed"))
    )
    assert plain(incident, EUR)["impact"]["named"]["gpu_hours"] == "2.00"
    assert plain(incident, EUR)["impact"]["named"]["money"] == "4.20 EUR"
    assert plain(incident)["impact"]["named"]["money"] is None
    assert "No money: no price was given" in every_shape(incident, price=None)["text en"]


def test_a_chain_goes_from_the_root_to_what_it_explains() -> None:
    def below(key: str, *explains: str, role: str = "symptom") -> tuple[int, tuple[str, dict[str, Any]]]:
        return 0, about("n1", 1, 0, key, role=role, explains=list(explains), rule=key)

    incident = told(below("c"), below("a", "b", "c", role="root"), below("b", "c", "b", "a"), below("d"))
    (cause,) = plain(incident)["causes"]
    assert [(x["depth"], x["rule"]) for x in cause["explains"]] == [(1, "b"), (2, "c")]
    assert "Symptoms that no recorded cause explains" in every_shape(incident)["text en"]


def test_times_that_were_measured_stand_beside_those_of_writing() -> None:
    incident = told((7200, about("n1", 1, 0)), (7300, (Kind.MESSAGE, {"text": "it hangs", "from": "bob", "at": (T0 + 60) * SECOND})),
                    (7400, (Kind.FINDING, {**about("n2", 1)[1], "clock": "boot", "first": 5 * SECOND, "last": 65 * SECOND})))  # fmt: skip
    one, two, three = timeline(incident, "en")
    assert (one.measured, moment(one.events[0].at)) == (moment(T0 * SECOND), moment((T0 + 7200) * SECOND))
    assert (two.measured, two.text) == (moment((T0 + 60) * SECOND), "bob: it hangs")
    assert three.measured.startswith("boot+5."), "another clock is no UTC"


def test_a_newer_gpudiag_is_no_riddle() -> None:
    incident = told(
        (0, about("n1", 1, 0, impact={"share": 1}, evidence="moved")),
        (5, ("handed-over", {"text": "to the vendor", "to": 3})),
    )
    text = " ".join(every_shape(incident)["text en"].split())  # on a narrow terminal it is wrapped
    assert "handed-over: to the vendor" in text
    assert "1 event of kinds that this version does not know" in text
    assert "No line of evidence was recorded." in text


@pytest.mark.parametrize(("amount", "currency"), [("x", "EUR"), ("-1", "EUR"), ("nan", "EUR"), ("inf", "EUR"), ("2", ""), ("2", "E R"),
                                                  ("2", "EUR2"), ("2000000", "EUR")])  # fmt: skip
def test_what_is_no_price_is_refused(amount: str, currency: str) -> None:
    with pytest.raises(UsageError):
        price_of(amount, currency)


def test_a_price_is_set_as_amount_and_currency() -> None:
    assert set_price("2.10 EUR") == EUR
    assert set_price("") is None
    with pytest.raises(UsageError, match="gpu_hour_price"):
        set_price("2.10")


@pytest.mark.slow
def test_ten_thousand_events_are_told_at_once() -> None:
    dice = random.Random(3)
    entries: list[tuple[int, tuple[str, dict[str, Any]]]] = [
        (0, (Kind.OPENED, {"title": "a rack is down", "gpus": {"n1": 8}}))
    ]
    for n in range(9_999):
        kinds = (about(f"n{n % 40}", n % 8, n % 50, key=f"k{n % 400}"), (Kind.NOTE, {"text": f"note {n}"}),
                 (Kind.STEP, {"runbook": "gpu-reset", "step": "reset", "state": "doing"}), (Kind.PROBE, {"name": "nvml"}))  # fmt: skip
        entries.append((n, dice.choice(kinds)))
    began = time.process_time()
    incident = told(*entries)
    text = report_html.render(report(incident), "en")
    assert text.count("note ") > 2000
    assert time.process_time() - began < 8
