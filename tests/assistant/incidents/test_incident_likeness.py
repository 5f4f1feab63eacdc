"""Which earlier incidents are like one and which open ones may be the same matter: by what was recorded, with the reason told."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.incidents import events as make
from assistant.incidents import pages
from assistant.incidents.book import Book
from assistant.incidents.events import Entry, Event, Hand, Kind
from assistant.incidents.fold import Incident, fold
from assistant.incidents.impact import impact
from assistant.incidents.links import WINDOW, link, offers
from assistant.incidents.opening import from_diagnosis
from assistant.incidents.report import report
from assistant.incidents.similar import full, line, similar, traits, why
from knowledge.errors import UnknownNameError, UsageError
from knowledge.observation import Status
from tests.assistant.store.history_lab import HOST, Machine, plain, seen, xid
from tests.assistant.store.history_lab import T0 as LAB_T0
from tests.diagnoses import of_log

T0 = 1_790_000_000 * 10**9
DAY = 86_400 * 10**9
ALICE, BOB = Hand("alice", "cli"), Hand("bob", "tui")


def found(rule: str, host: str, gpu: int | None = 1, first: int = 0, **more: Any) -> Entry:
    """A root finding; `first`: seconds after T0."""
    subject = f"node:{host}" + ("" if gpu is None else f"/gpu:0000:{gpu:02x}:00.0")
    at = T0 + first * 10**9
    data = {"key": f"{rule}@{subject}", "rule": rule, "host": host, "subject": subject, "role": "root", "severity": "error",
            "title": rule, "first": at, "last": at, "clock": "realtime"}  # fmt: skip
    return Entry(Kind.FINDING, {**data, **more})


def case(number: int, *entries: Entry, title: str = "it fell", at: int = T0) -> Incident:
    log = [Entry(Kind.OPENED, {"title": title}), *entries]
    return fold([Event(n, e.at or at, e.kind, "alice", "cli", e.data) for n, e in enumerate(log, 1)], number, "u")


# --- like earlier ones --------------------------------------------------------------------


def test_each_kind_of_likeness_is_told_and_they_are_ordered_as_the_module_says() -> None:
    now = case(
        20, found("a", "n1", xid=79, runbook="gpu-reset", parts={"serial": "S1"}), title="fans of rack seven stopped"
    )
    past = [
        case(1, title="fans of rack nine stopped"),
        case(2, found("b", "n9", runbook="gpu-reset")),
        case(3, found("b", "n1", 7)),
        case(4, found("b", "n9", xid=79)),
        case(5, found("b", "n9", 7, parts={"serial": "S1"})),  # the same board, in another node
        case(6, found("b", "n1", 1)),
        case(7, found("a", "n9")),
        case(8, found("a", "n1", 1)),
        case(9, title="nothing at all"),
        case(21, found("a", "n1", 1)),  # a later one
    ]
    random.Random(1).shuffle(past)
    hits = similar(now, past, 20)
    assert [h.incident.number for h in hits] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert [why(h, "en") for h in hits] == [
        "same cause a; same GPU; same node n1", "same cause a", "same GPU; same node n1", "same GPU", "same XID 79", "same node n1",
        "same runbook gpu-reset", "same words fans, rack, stopped",
    ]  # fmt: skip
    assert why(hits[0], "zh") == "原因相同 a；同一 GPU；同一节点 n1"


def test_of_two_that_are_alike_the_newer_one_comes_first_and_says_how_it_ended() -> None:
    def over(number: int, days: int, text: str) -> Incident:
        return case(number, found("a", "n1"), Entry(Kind.CLOSED, {"text": text}, T0 + days * DAY))

    now = case(9, found("a", "n1"), at=T0 + 10 * DAY)
    first, second, third = similar(
        now, [over(3, 1, "reseated"), over(5, 7, "board replaced"), case(4, found("a", "n1"))]
    )
    assert [h.incident.number for h in (first, second, third)] == [5, 4, 3]
    assert line(first, now.opened_at, "en") == "like #5 (closed 3 days earlier: board replaced)"
    assert line(first, now.opened_at, "zh") == "类似 #5（此前 3 天关闭：board replaced）"
    assert line(second, now.opened_at, "en") == "like #4 (open)"
    assert (
        full(third, now.opened_at, "en")
        == "#3 it fell; same cause a; same GPU; same node n1; closed 9 days earlier: reseated"
    )
    assert pages.one(now, "en", (first,)).data["similar"][0]["ended"] == "closed 3 days earlier: board replaced"


def test_titles_in_chinese_share_words_too() -> None:
    hits = similar(case(2, title="机架四风扇停转"), [case(1, title="机架九风扇停转")])
    assert [h.incident.number for h in hits] == [1]
    assert why(hits[0], "zh") == "相同词语 机架、风扇停转"
    assert similar(case(2, title="服务器坏了"), [case(1, title="服务器很热")]) == (), "one word is not enough"


def test_a_symptom_makes_no_likeness() -> None:
    hits = similar(case(2, found("a", "n1")), [case(1, found("a", "n9", role="symptom"))])
    assert hits == ()


hosts = st.sampled_from(["n1", "n2"])
some = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), hosts, st.integers(1, 2)), max_size=3)


@given(st.lists(some, max_size=6), some, st.randoms())
def test_hits_share_what_they_say_and_nobody_else_shares_more(
    past: list[list[tuple[str, str, int]]], own: list[tuple[str, str, int]], dice: random.Random
) -> None:
    others = [case(n, *(found(*x) for x in entries), title=f"t{n}") for n, entries in enumerate(past, 1)]
    now = case(99, *(found(*x) for x in own), title="now")
    hits = similar(now, others, 50)
    mixed = list(others)
    dice.shuffle(mixed)
    assert similar(now, mixed, 50) == hits
    mine = traits(now)
    for h in hits:
        theirs = traits(h.incident)
        assert tuple(h.same) == tuple(a & b for a, b in zip(mine, theirs, strict=True))
        assert why(h, "en")
    without = {o.number for o in others} - {h.incident.number for h in hits}
    for o in others:
        alike = any(a & b for a, b in zip(mine[:-1], traits(o)[:-1], strict=True))
        assert alike is not (o.number in without)
    ranks = [h.order for h in hits]
    assert ranks == sorted(ranks, reverse=True)


# --- the same matter on several nodes -----------------------------------------------------


def test_open_incidents_of_one_switch_or_of_one_hour_are_offered() -> None:
    now = case(1, found("rail-down", "n1", None, parts={"switch": "leaf-7"}))
    same_part = case(2, found("port-errors", "n2", None, 9000, parts={"switch": "leaf-7"}))
    same_time = case(3, found("rail-down", "n3", None, 240))
    late = case(4, found("rail-down", "n4", None, WINDOW // 10**9 + 1))
    same_node = case(5, found("port-errors", "n1", None, 0, parts={"switch": "leaf-7"}))
    over = case(6, found("rail-down", "n6", None), make.closed("x"))
    others = offers(now, [over, same_node, late, same_time, same_part, now])
    assert "leaf-7" in str(pages.one(now, "en", (), others).data["perhaps_the_same"])
    assert [(o.incident.number, [w.en for w in o.why]) for o in others] == [
        (2, ["same switch leaf-7"]), (3, ["rail-down within 4 min"]),
    ]  # fmt: skip
    assert (
        others[0].line(1, "en")
        == "incident 2 may be the same matter (same switch leaf-7): gpudiag incident link 1 --with 2"
    )
    assert (
        others[1].line(1, "zh") == "事件 3 可能是同一问题（4 分钟内同为 rail-down）：gpudiag incident link 1 --with 3"
    )


def test_of_several_nodes_the_nearest_in_time_is_told() -> None:
    one = case(1, found("rail-down", "n1", None))
    two = case(
        2,
        found("rail-down", "n2", None, 120),
        found("rail-down", "n3", None, 60),
        found("rail-down", "n4", None, 10**6),
    )
    assert [w.en for o in offers(one, [two]) for w in o.why] == ["rail-down within 1 min"]


def test_what_nodes_share_is_read_from_the_subject_too() -> None:
    one = case(1, found("a", "n1", subject="rack:r4/node:n1"))
    two = case(2, found("b", "n2", subject="rack:r4/node:n2", first=10**5))
    assert [w.en for o in offers(one, [two]) for w in o.why] == ["same rack r4"]


def test_the_title_of_an_incident_names_what_its_first_finding_is_about_and_no_more() -> None:
    lost, torn = "79, pid=1, name=x, GPU has fallen off the bus.", "48, pid=1, name=x, DBE (double bit error) ECC error"
    said = ((100, "3b", lost), (101, "86", lost), (105, "5e", torn))
    d = of_log("".join(f"[{at}.0] NVRM: Xid (PCI:0000:{bus}:00): {words}\n" for at, bus, words in said))
    assert {f.subject.id for f in d.roots} == {"0000:3b:00.0", "0000:86:00.0", "0000:5e:00.0"}
    opened, *_ = from_diagnosis(d)
    assert opened.data["title"]["en"].startswith("2 GPUs (0000:3b:00.0, 0000:86:00.0): GPU has fallen off the bus")


def test_a_diagnosis_keeps_what_a_report_asks_for() -> None:
    machine = Machine(more=[xid(79, LAB_T0)], uuid="GPU-5e1f")
    broken = [*machine.observations(LAB_T0), seen("gpu.vbios", None, LAB_T0, status=Status.DENIED)]
    opened, finding, *_ = from_diagnosis(plain(broken, LAB_T0), HOST)
    assert opened.data["gpus"] == {HOST: 1}
    told = opened.data["coverage"]
    assert [(g["facts"], g["n"]) for g in told["denied"]] == [(["gpu.vbios"], 1)]
    assert told["asked"] == told["answered"] + 1
    assert finding.data["parts"] == {"uuid": "GPU-5e1f"}
    moved = found("gpu-fell-off-bus", "n9", 7, parts={"uuid": "GPU-5e1f"})
    (hit,) = similar(case(2, finding), [case(1, moved)])
    assert why(hit, "en").startswith("same cause gpu-fell-off-bus; same GPU")


def test_linked_incidents_name_each_other_once(tmp_path: Path) -> None:
    book = Book(f"sqlite:///{tmp_path}/h.db", lambda: T0)
    for host in ("n1", "n2"):
        book.open(ALICE, [Entry(Kind.OPENED, {"title": host}), found("rail-down", host, None)])
    for _ in range(2):
        first = link(book, 1, 2, BOB)
    assert (first.links, book.incident(2).links) == ((2,), (1,))
    assert [e.kind for e in first.events].count(Kind.LINKED) == 1
    assert first.is_open
    assert len(first.findings) == 1, "nothing is merged unless somebody says so"
    assert offers(first, book.incidents()) == (), "what is linked is not offered again"
    text = str(pages.one(first, "en").data)
    assert "rail-down within 0 s" in text
    with pytest.raises(UsageError, match="same incident"):
        link(book, 1, 1, BOB)
    with pytest.raises(UnknownNameError):
        link(book, 1, 9, BOB)
    assert book.incident(1) == first


def test_a_link_counts_once_and_not_to_itself_whatever_was_written() -> None:
    strange: list[Any] = [3, 3, 1, True, "4", None, [5], 6]
    assert case(1, *(Entry(Kind.LINKED, {"incident": other}) for other in strange)).links == (3, 6)


def test_a_merged_incident_holds_the_findings_of_both_nodes(tmp_path: Path) -> None:
    book = Book(f"sqlite:///{tmp_path}/h.db", lambda: T0 + 3600 * 10**9)
    for host in ("n1", "n2"):
        book.open(
            ALICE,
            [
                Entry(Kind.OPENED, {"title": host, "gpus": {host: 8}, "coverage": {"asked": 10, "answered": 9}}),
                found("a", host),
            ],
        )
    both = link(book, 1, 2, BOB, merge=True)
    assert link(book, 1, 2, BOB, merge=True) == both, "said twice it is written once"
    assert both.hosts == ("n1", "n2")
    other = book.incident(2)
    assert (other.is_open, other.ended, other.links) == (False, "goes on in incident 1", (1,))
    headings = [p.text for p in pages.one(both, "en").parts if hasattr(p, "text") and p.text.startswith("Found on")]
    assert headings == ["Found on n1", "Found on n2"]
    assert report(both).answered == (20, 18)
    whole = impact(book.add(1, ALICE, make.closed("switch replaced")))
    assert [(r.host, r.gpus, r.ns) for r in whole.nodes.rows] == [("n1", 8, 3600 * 10**9), ("n2", 8, 3600 * 10**9)]
    with pytest.raises(UsageError, match="closed"):
        link(book, 1, 2, BOB, merge=True)
