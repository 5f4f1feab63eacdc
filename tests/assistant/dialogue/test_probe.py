"""Values as they are: which, where, with what unit, from whom; and why there is none."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assistant.diagnosis import diagnose
from assistant.dialogue import Turn
from assistant.dialogue.probe import answer, wanted_probes
from assistant.intent.query import Intent, Query, Slots
from assistant.render.labels import aside
from assistant.render.sheet import Fields, Items, Paragraph, Table
from assistant.reply import Reply
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Source, Status, Subject, gpu, node
from probes.live import probes
from rules.loader import load
from tests.cases import each

HOST = "n1"
GPUS = [gpu(f"0000:{bus}:00.0", HOST) for bus in ("1a", "3b", "4c", "5d")]
AT = 1_783_515_944 * 10**9
CORE = "gpu.temperature.core"


def seen(fact: str, value: object, on: Subject, status: Status = Status.OK, **more: object) -> Observation:
    source = Source("nvml-snapshot", "nvmlDeviceGetTemperature(0)")
    return Observation(fact, on, value, status, source, AT, Clock.REALTIME, **more)  # type: ignore[arg-type]


INDEXES = [seen("gpu.index", i, g) for i, g in enumerate(GPUS)]
WARM = [seen(CORE, t, g) for t, g in zip((40, 90, 41, 42), GPUS, strict=True)]


def said(observations: Sequence[Observation], text: str = "", lang: str = "en", **query: object) -> Reply:
    d = diagnose(list(observations), load(), as_of=AT)
    return answer(Turn(Query(text, lang, Intent.PROBE, **query), lang, load(), d))  # type: ignore[arg-type]


def table(reply: Reply) -> Table:
    return next(p for p in reply.parts if isinstance(p, Table))


def words(reply: Reply) -> str:
    out = [reply.headline]
    for p in reply.parts:
        match p:
            case Table(header, rows):
                out += [*header, *(cell for row in rows for cell in row)]
            case Items(items, _):
                out += items
            case Fields(rows):
                out += [cell for row in rows for cell in row]
            case Paragraph(text):
                out.append(text)
            case _:
                out += [str(getattr(p, name)) for name in p.__slots__]
    return "\n".join(out)


def test_one_value_is_a_sentence_with_its_unit() -> None:
    reply = said([*INDEXES, *WARM], slots=Slots(gpu=(3,)), facts=(CORE,))
    assert "0000:5d:00.0" in reply.headline
    assert "42 °C" in reply.headline
    assert reply.settled


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_many_values_are_a_table_with_place_time_and_source(lang: str) -> None:
    reply = said([*INDEXES, *WARM], facts=(CORE,), lang=lang)
    assert "40" in reply.headline
    assert "90 °C" in reply.headline
    rows = table(reply).rows
    assert [r[:2] for r in rows] == [
        (f"GPU {n}{aside(g.id, lang)}", f"{t} °C") for n, (g, t) in enumerate(zip(GPUS, (40, 90, 41, 42), strict=True))
    ]
    assert all("2026-07-08" in r[2] for r in rows)
    assert all("nvmlDeviceGetTemperature" in r[3] for r in rows)


def test_a_value_on_which_a_finding_stands_is_marked_and_only_there() -> None:
    reply = said([*INDEXES, *WARM, seen("gpu.row_remap.pending", True, GPUS[1])], facts=("gpu.row_remap.pending",))
    assert table(reply).rows[0][-1] == "! row-remap-pending"
    assert "row-remap-pending" in words(reply)
    hotter = said([*INDEXES, *WARM], facts=(CORE,))
    marks = {r[0]: r[-1] for r in table(hotter).rows if r[-1].startswith("!")}
    assert set(marks) <= {f"GPU 1 ({GPUS[1].id})"}


@each(
    ("status", "detail", "lang", "why"),
    [
        (Status.DENIED, "", "en", "permission denied"),
        (Status.DENIED, "", "zh", "权限不足"),
        (Status.UNSUPPORTED, "", "en", "not reported"),
        (Status.TIMEOUT, "", "zh", "超时"),
        (Status.FAILED, "no such call", "en", "no such call"),
    ],
)
def test_where_there_is_no_value_stands_why(status: Status, detail: str, lang: str, why: str) -> None:
    reply = said(
        [*INDEXES, seen(CORE, None, GPUS[0], status, detail=detail)], slots=Slots(gpu=(0,)), facts=(CORE,), lang=lang
    )
    assert why in reply.headline
    assert why in table(reply).rows[0][1]
    assert not reply.settled


def test_known_values_come_before_unknown_ones() -> None:
    reply = said([*INDEXES, seen(CORE, None, GPUS[0], Status.DENIED), WARM[1]], facts=(CORE,))
    assert [r[1] for r in table(reply).rows] == ["90 °C", "permission denied"]


def test_what_was_told_is_no_measurement() -> None:
    reply = said([*INDEXES, seen(CORE, 50, GPUS[0], origin=Origin.TOLD), WARM[1]], facts=(CORE,))
    assert table(reply).rows[0][3] == "as told"


def test_processes_of_a_gpu_are_those_that_use_it() -> None:
    one, two = (Subject(Scope.PROCESS, pid, node(HOST)) for pid in ("41", "42"))
    uses = [seen("process.uses_gpu", f"gpu:{GPUS[0].id}", one), seen("process.uses_gpu", f"gpu:{GPUS[1].id}", two)]
    named = [seen("process.comm", "train", one), seen("process.comm", "serve", two)]
    reply = said([*INDEXES, *uses, *named], slots=Slots(gpu=(0,)), facts=("process.uses_gpu", "process.comm"))
    assert "train" in words(reply)
    assert "serve" not in words(reply)


def test_events_are_shown_the_newest_ones_and_silence_says_so() -> None:
    lines = [
        Observation(
            "xid",
            GPUS[0],
            Event(13, {"text": f"n{i}"}),
            source=Source("kernel-log", "k", i),
            at=AT + i,
            clock=Clock.REALTIME,
        )
        for i in range(30)
    ]
    assert len(table(said(lines, facts=("xid",))).rows) == 10
    quiet = seen("xid", None, node(HOST), Status.NONE_SEEN)
    assert "none seen" in said([quiet], facts=("xid",)).headline


def test_an_unknown_gpu_is_named_with_those_there_are() -> None:
    reply = said([*INDEXES, *WARM], slots=Slots(gpu=(9,)), facts=(CORE,))
    assert "9" in reply.headline
    assert "0000:1a:00.0" in words(reply)
    assert not reply.settled


def test_what_nobody_told_names_the_probe_that_would() -> None:
    reply = said(INDEXES, facts=("node.memory.available",))
    assert "gpudiag check --probe system" in words(reply)
    assert not reply.settled


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_is_not_understood_offers_the_closest(lang: str) -> None:
    reply = said(INDEXES, text="show me the frobs temperature", lang=lang)
    assert "gpu.temperature" in words(reply)
    assert any("gpu.temperature" in s for s in reply.suggestions)
    assert not reply.settled


def test_before_anything_was_looked_at_there_is_nothing_to_show() -> None:
    reply = answer(Turn(Query("", "en", Intent.PROBE, facts=(CORE,)), "en", load()))
    assert not reply.settled


def test_a_named_tool_shows_what_it_tells() -> None:
    reply = said([*INDEXES, *WARM], text="run nvidia-smi")
    assert "nvidia-smi" in reply.headline
    assert any(row[0] == CORE for row in table(reply).rows)


def test_hostile_names_do_no_harm() -> None:
    bad = Subject(Scope.PROCESS, "41", node(HOST))
    reply = said([seen("process.comm", "\x1b[31mred\u202e", bad)], facts=("process.comm",))
    assert "\x1b" not in words(reply)
    assert "\u202e" not in words(reply)


def test_a_flood_is_cut() -> None:
    many = [seen("process.comm", f"p{i}", Subject(Scope.PROCESS, str(i), node(HOST))) for i in range(500)]
    reply = said(many, facts=("process.comm",))
    assert len(table(reply).rows) == 40
    assert "460 more" in words(reply)


@each(
    ("facts", "text", "names"),
    [((CORE,), "", ("nvml",)), ((), "run nvidia-smi", ("nvidia-smi",)), (("gpu.power.share",), "", ("nvml",)),
     (("process.holds_gpu",), "", ("nvml", "processes")), ((), "hello", ()), (("gpu.peer.path",), "", ("nvidia-smi-topo",))],
)  # fmt: skip
def test_the_probes_that_tell_it(facts: tuple[str, ...], text: str, names: tuple[str, ...]) -> None:
    assert set(wanted_probes(Query(text, "en", Intent.PROBE, facts=facts), probes())) == set(names)
