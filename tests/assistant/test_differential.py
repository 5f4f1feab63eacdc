"""Differential diagnoses: what speaks for and against each hypothesis, and that nothing unseen is ruled out."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assistant.commands import demo
from assistant.diagnosis import Diagnosis, diagnose
from assistant.differential import ROWS, SHUT, Row, Stand, differential, summary, table
from assistant.planner import Candidate, Plan, Question
from assistant.render.cells import width
from assistant.render.sheet import Paragraph, Table
from knowledge.facts import Kind, vocabulary
from knowledge.language import LANGUAGES, Text
from knowledge.observation import Event, Observation, Scope, Source, Status, Subject, Value, gpu, node
from knowledge.priors import order
from knowledge.symptoms import hypotheses, hypotheses_of, symptoms
from rules.engine import applies
from rules.evaluate import evaluate
from rules.loader import load
from rules.model import Rule
from rules.proof import Truth
from tests.assistant.stories import DBE, HOSTILE
from tests.cases import each
from tests.diagnoses import incident as diagnosed
from tests.diagnoses import of_log

DEMOS = demo.names()
WATCHDOG = (
    "[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=57, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of "
    "which 1.10 GiB is free. Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated "
    "memory 75.00 GiB is allocated by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated.\n"
)


def seen(fact: str, value: Value, on: Subject) -> Observation:
    return Observation(fact, on, value=value, source=Source("nvml", "nvml"))


def by_id(rows: tuple[Row, ...]) -> dict[str, Row]:
    return {row.id: row for row in rows}


# --- incidents ----------------------------------------------------------------------------


@pytest.mark.slow
@each(
    ("incident", "symptom", "first"),
    [
        ("overheating", "slow-training", "thermal-throttling"),
        ("power-brake", "slow-training", "power-throttling"),
        ("half-width", "straggler", "pcie-degraded"),
        ("off-the-bus", "gpu-missing", "gpu-lost"),
        ("driver-hangs", "driver-hangs", "firmware-stopped"),
        ("double-bit-error", "memory-errors", "uncorrectable-memory-error"),
        ("row-remap-pending", "crash", "uncorrectable-memory-error"),
        ("cpu-limit", "low-utilization", "cpu-short"),
        ("fabric-manager-down", "startup-fails", "nvswitch-fabric"),
        ("nvswitch-fault", "crash", "nvlink-trouble"),
        ("left-behind", "out-of-memory", "gpu-memory-leftover"),
        ("nfs-hung", "hang", "storage-slow"),
        ("rail-down", "network-trouble", "network-link-down"),
        ("small-shm", "crash", "shared-memory-small"),
    ],
)
def test_the_cause_of_an_incident_stands_first(incident: str, symptom: str, first: str) -> None:
    d = diagnosed(incident)
    for lang in LANGUAGES:
        rows = differential([symptom], d, None, lang)
        assert (rows[0].id, rows[0].state) == (first, Stand.FOR)
        assert rows[0].for_
        assert rows[0].next
        assert set(rows[0].findings) <= {f.id for f in d.findings}
        assert rows[0].title in summary(rows, lang) or rows[0].title[1:] in summary(rows, lang)


@pytest.mark.slow
@each("incident", ["healthy", "mig"])
@each("symptom", symptoms)
def test_nothing_is_supported_on_a_healthy_node(incident: str, symptom: str) -> None:
    rows = differential([symptom], diagnosed(incident), None, "en")
    assert [row.id for row in rows if row.state is Stand.FOR] == []


def test_a_healthy_node_rules_out_what_was_looked_at() -> None:
    rows = by_id(differential(["slow-training"], diagnosed("healthy"), None, "en"))
    out = {name for name, row in rows.items() if row.state is Stand.AGAINST}
    assert {"thermal-throttling", "power-throttling", "pcie-degraded", "cpu-short", "gpu-shared"} <= out
    assert all(rows[name].against and not rows[name].unknown and not rows[name].next for name in out)
    assert rows["program-changed"].state is Stand.UNKNOWN, "no probe looks at the program"
    assert "commit" in rows["program-changed"].next


@each("lang", LANGUAGES)
@each("symptom", ["crash", "gpu-missing", "hang", "gpu-lost"])
def test_gpus_of_nvidia_alone_rule_out_those_of_others(symptom: str, lang: str) -> None:
    rows = by_id(differential([symptom], diagnosed("healthy"), None, lang))
    row = rows["other-gpu-faulty"]
    assert (row.state, row.unknown, row.next) == (Stand.AGAINST, (), "")
    assert {"en": "accelerators of other vendors than NVIDIA on", "zh": "非 NVIDIA 加速器：无"}[lang] in row.against[0]


def all_of_nvidia(host: str = "n1", gpus: int = 8) -> list[Observation]:
    here = node(host)
    return [seen("node.pci.gpu_count", gpus, here), seen("node.pci.other_gpus", (), here)]


AMD_LOG = Observation("amdgpu_reset", gpu("0000:65:00.0", "n1"), Event(None, {"text": "GPU reset begin!"}))
OPEN = {
    "nobody looked at the bus": [seen("node.gpu.count", 8, node("n1"))],
    "a list of NVIDIA's alone": [seen("node.pci.gpu_count", 8, node("n1"))],
    "the bus did not tell": [seen("node.pci.gpu_count", 8, node("n1")),
                             Observation("node.pci.other_gpus", node("n1"), None, Status.TIMEOUT)],
    "a card that may be one": [seen("node.pci.gpu_count", 8, node("n1")), seen("node.pci.other_gpus", ("0000:65:00.0",), node("n1"))],
    "no GPU at all": all_of_nvidia(gpus=0),
    "another node": [*all_of_nvidia(), seen("node.gpu.count", 8, node("n2"))],
    "the log speaks of one": [*all_of_nvidia(), AMD_LOG],
    "a tool lists one": [*all_of_nvidia(), seen("gpu.vendor", "amd", gpu("amd:0", "n1"))],
    "a log without a name": [*all_of_nvidia(), replace(AMD_LOG, subject=gpu("0000:65:00.0"))],
}  # fmt: skip


@each("observations", OPEN.values(), ids=OPEN)
def test_what_may_be_there_is_not_ruled_out(observations: list[Observation]) -> None:
    rows = by_id(differential(["crash"], diagnose(observations, load()), None, "en"))
    assert rows["other-gpu-faulty"].state in (Stand.UNKNOWN, Stand.POSSIBLE, Stand.FOR)


def test_on_each_of_several_nodes_it_has_to_be_known() -> None:
    both = diagnose([*all_of_nvidia(), *all_of_nvidia("n2")], load())
    assert by_id(differential(["crash"], both, None, "en"))["other-gpu-faulty"].state is Stand.AGAINST


def test_a_consequence_is_no_cause() -> None:
    rows = differential(["slow-training"], diagnosed("overheating"), None, "en")
    power = by_id(rows)["power-throttling"]
    assert power.causes
    assert power.state is Stand.POSSIBLE
    assert power.next.startswith("follows from: GPU is slowed down by its hardware")
    assert any(row[4].startswith("follows from") for row in shown(rows, "en"))
    assert "power" not in summary(rows, "en").casefold()


# --- words --------------------------------------------------------------------------------


def test_a_hang_with_a_timeout_in_the_log_alone() -> None:
    rows = by_id(differential(["hang"], of_log(WATCHDOG, "log"), None, "en"))
    assert rows["rank-missing-or-late"].state is Stand.POSSIBLE
    assert "py-spy" in rows["rank-missing-or-late"].next
    assert [name for name, row in rows.items() if row.state is Stand.AGAINST] == [], "a log of one rank clears nothing"


def test_out_of_memory_in_a_traceback() -> None:
    rows = by_id(differential(["out-of-memory"], of_log(OOM, "log"), None, "zh"))
    assert rows["gpu-memory-too-small"].state is Stand.FOR
    assert rows["gpu-memory-fragmented"].state is Stand.AGAINST
    assert "均不是此类" in rows["gpu-memory-fragmented"].against[0]
    assert rows["gpu-shared"].next == "运行探针 nvml（约 1 秒）", (
        "who shares a GPU is computed from what its processes are"
    )


def test_of_several_possible_causes_the_usual_one_stands_first() -> None:
    rows = differential(["nan-loss"], of_log("FloatingPointError: Loss is nan\n", "log"), None, "en")
    assert [r.id for r in rows[:2]] == ["loss-diverged", "number-format-overflow"]
    assert rows[0].state is Stand.POSSIBLE
    assert summary(rows, "en").startswith("Possible: training diverged; fp16 overflows, or a mask")


def test_a_probe_that_would_tell_is_named_with_its_cost() -> None:
    rows = by_id(differential(["gpu-too-hot"], of_log(DBE, "log"), None, "en"))
    hot = rows["thermal-throttling"]
    assert hot.state is Stand.UNKNOWN
    assert hot.next == "run the probe nvml (about 1 s)"
    assert hot.unknown == (
        "nvml: Clock event reason: the hardware lowers the clocks because of heat; "
        "Clock event reason: the driver lowers the clocks because of heat",
    )
    in_chinese = by_id(differential(["gpu-too-hot"], of_log(DBE, "log"), None, "zh"))["thermal-throttling"]
    assert in_chinese.next == "运行探针 nvml（约 1 秒）"


def test_the_plan_says_which_probe() -> None:
    waits = (("gpu.clock.event.hw_thermal", "hw-thermal-slowdown"),)
    planned = Plan(probes=(Candidate("nvidia-smi", 1.0, 1.0, waits, False, Text("", "")),), decided=False)
    rows = by_id(differential(["gpu-too-hot"], of_log(DBE, "log"), planned, "en"))
    assert rows["thermal-throttling"].next.startswith("run the probe nvidia-smi (")
    assert rows["thermal-throttling"].unknown[0].startswith("nvidia-smi: Clock event reason")


def test_the_plan_says_which_question() -> None:
    asked = Question(
        "job.step.data_wait.share",
        node("n1"),
        Text("How long?", "多久？"),
        "float",
        (),
        Text("", ""),
        ("input-bound-job",),
    )
    rows = by_id(differential(["low-utilization"], of_log(DBE, "log"), Plan(questions=(asked,)), "zh"))
    assert rows["input-starved"].next == "多久？"


def test_what_a_person_said_decides() -> None:
    job = Subject(vocabulary()["job.step.data_wait.share"].scope, "1")
    for share, stand in ((40.0, Stand.FOR), (1.0, Stand.AGAINST)):
        d = diagnose([seen("job.step.data_wait.share", share, job)], load())
        assert by_id(differential(["low-utilization"], d, None, "en"))["input-starved"].state is stand


def test_against_names_the_value_that_came_closest() -> None:
    flags = ("gpu.draining", "gpu.clock.event.hw_power_brake")
    gpus = [gpu(f"0000:0{n}:00.0", "n1") for n in range(1, 5)]
    facts = [seen(name, False, g) for g in gpus for name in flags]
    draw = [seen("gpu.power.draw", 100.0 + n, g) for n, g in enumerate(gpus)]
    limits = [seen(name, 700.0, g) for g in gpus for name in ("gpu.power.limit", "gpu.power.limit.default")]
    more = [seen("gpu.utilization.core", 99, g) for g in gpus]
    rows = by_id(differential(["gpu-too-hot"], diagnose([*facts, *draw, *limits, *more], load()), None, "en"))
    assert any("(and 3 others)" in line for line in rows["power-throttling"].against)


def shown(rows: tuple[Row, ...], lang: str) -> tuple[tuple[str, ...], ...]:
    part = table(rows, lang)[0]
    assert isinstance(part, Table)
    assert all(len(row) == len(part.header) for row in part.rows)
    return part.rows


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_table_is_short_and_says_what_it_left_out(lang: str) -> None:
    rows = differential(["crash"], diagnosed("healthy"), None, lang)
    lines = shown(rows, lang)
    _, rest = table(rows, lang)
    assert isinstance(rest, Paragraph)
    assert str(len(rows) - ROWS - SHUT) in rest.text
    assert len(lines) == ROWS + SHUT
    assert all(line[3] for line in lines[:ROWS])  # what is open says what is not known
    assert all(line[2] and not line[1] for line in lines[ROWS:])  # what is not says what speaks against it
    assert max(width(cell) for line in lines for cell in line) <= 80
    assert max(width(line[0]) for line in lines) <= 60
    assert not any("\n" in cell for line in lines for cell in line)
    assert len(table(rows[:3], lang)) == 1
    assert len(shown(rows[:3], lang)) == 3


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_step_by_hand_fits_into_a_cell(lang: str) -> None:
    """What to do stands in the first sentence; the row has all of it."""
    d = diagnose([], load())
    for symptom in symptoms():
        every = differential([symptom], d, Plan(), lang)
        rows = [r for r in every if r.next and r.next == hypotheses()[r.id].find_out.in_(lang)]
        cells = [line[4] for line in shown(tuple(rows[:ROWS]), lang)]
        for row, cell in zip(rows, cells, strict=False):
            assert row.next.startswith(cell.removesuffix(" ..."))
            assert 0 < len(cell) <= len(row.next)
            assert " ... " not in cell


def test_what_was_cut_off_may_hold_anything() -> None:
    d = diagnosed("healthy")
    part = replace(d, cut=("kern.log",))
    whole_rows, part_rows = (by_id(differential(["crash"], x, None, "en")) for x in (d, part))
    assert whole_rows["gpu-reports-fault"].state is Stand.AGAINST
    assert part_rows["gpu-reports-fault"].state is Stand.UNKNOWN
    assert part_rows["network-link-down"].state is Stand.UNKNOWN, "links that went down stand in the log"


def test_a_rule_that_the_site_took_out_decides_nothing() -> None:
    kept = tuple(r for r in load().rules if r.id != "sw-thermal-slowdown")
    d = diagnosed("healthy")
    rows = by_id(differential(["gpu-too-hot"], d, None, "en", replace(load(), rules=kept)))
    assert rows["thermal-throttling"].state is Stand.UNKNOWN
    assert by_id(differential(["gpu-too-hot"], d, None, "en", load()))["thermal-throttling"].state is Stand.AGAINST


def test_without_hypotheses_nothing_is_said() -> None:
    d = diagnosed("healthy")
    assert differential([], d, None, "en") == ()
    assert differential(["no-such-symptom"], d, None, "en") == ()
    assert summary((), "en") == ""
    assert shown((), "en") == ()


# --- laws ---------------------------------------------------------------------------------


def check(rows: tuple[Row, ...], d: Diagnosis, ids: list[str], lang: str) -> None:
    """What holds of every differential diagnosis."""
    wanted = hypotheses_of(ids)
    assert sorted(r.id for r in rows) == sorted(h.id for h in wanted)
    stands = [list(Stand).index(r.state) for r in rows]
    assert stands == sorted(stands)
    for row in rows:
        h = hypotheses()[row.id]
        assert row.title == h.title.in_(lang)
        if row.state is Stand.AGAINST:
            assert h.decides
            assert not row.unknown
            assert not open_rules(row.id, d) or known_absent(h.needs, d), "missing is never fine"
        if row.state is Stand.FOR:
            assert {f.rule.id for f in d.findings if f.id in row.findings} <= set(h.rules)
            assert row.findings
            assert row.for_
    open_rows = [r for r in rows if r.state is Stand.UNKNOWN]
    ranks = {cause: i for i, cause in enumerate(order(h.cause for h in wanted))}
    causes = [ranks[hypotheses()[r.id].cause] for r in open_rows]
    assert causes == sorted(causes) or not d.facts.observations, (
        "what is common comes first where a machine was looked at"
    )
    assert summary(rows, lang)
    shown(rows, lang)


def known_absent(needs: str, d: Diagnosis) -> bool:
    """Whether each node told that it has none of what the hypothesis is about."""
    told = [d.facts.current(needs, n) for n in d.facts.subjects(Scope.NODE)] if needs else []
    return bool(told) and all(o is not None and o.status.answered and not o.value for o in told)


@cache
def by_name() -> dict[str, Rule]:
    return {r.id: r for r in load().rules}


_OPEN: dict[tuple[str, int], tuple[Diagnosis, set[str]]] = {}


def open_rules(hypothesis: str, d: Diagnosis) -> set[str]:
    """Deciding rules that are not known to fail on everything they are about."""
    if (hypothesis, id(d)) not in _OPEN:  # an incident is asked for each symptom, in each language
        _OPEN[hypothesis, id(d)] = d, _open_rules(hypothesis, d)
    return _OPEN[hypothesis, id(d)][1]


def _open_rules(hypothesis: str, d: Diagnosis) -> set[str]:
    excluded = {(f.rule.id, f.subject) for f in d.ruled_out}
    out = set()
    for rule in (by_name()[name] for name in hypotheses()[hypothesis].decides):
        subjects = d.facts.subjects(rule.scope)
        about = [s for s in subjects if applies(rule, s, d.facts) and (rule.id, s) not in excluded]
        if not subjects or any(evaluate(rule.when, s, d.facts).truth is not Truth.FALSE for s in about):
            out.add(rule.id)
    return out


@pytest.mark.slow
@each("incident", DEMOS)
def test_every_incident_with_every_symptom(incident: str) -> None:
    """In one language, in turns."""
    d = diagnosed(incident)
    for n, symptom in enumerate(symptoms(), DEMOS.index(incident)):
        lang = LANGUAGES[n % len(LANGUAGES)]
        check(differential([symptom], d, None, lang), d, [symptom], lang)


SUBJECTS = [gpu("0000:3b:00.0", "n1"), gpu("0000:4c:00.0", "n1")]


@cache
def names_of_facts() -> list[str]:
    scopes = (SUBJECTS[0].scope, node().scope)
    return sorted(s.name for s in vocabulary() if s.scope in scopes and s.kind is not Kind.RELATION)


@st.composite
def observed(draw: st.DrawFn) -> list[Observation]:
    """Some facts of a node and its GPUs: answered, refused, or not there."""
    out = []
    for name in draw(st.lists(st.sampled_from(names_of_facts()), min_size=5, max_size=60, unique=True)):
        spec = vocabulary()[name]
        for subject in SUBJECTS if spec.scope is SUBJECTS[0].scope else [node("n1")]:
            status = draw(st.sampled_from([Status.OK, Status.OK, *Status]))
            value = draw(values(spec.type, spec.values)) if status is Status.OK else None
            good = status is not Status.OK or (value is not None and spec.accepts(value))
            if good:
                out.append(Observation(name, subject, value=value, status=status, source=Source("nvml", "nvml")))
    return out


def values(kind: str, words: tuple[str, ...]) -> st.SearchStrategy[Value]:
    match kind:
        case "bool":
            return st.booleans()
        case "int":
            return st.sampled_from([0, 1, 5, 50, 95, 100, 4096])
        case "float":
            return st.sampled_from([0.0, 1.0, 29.0, 99.0, 700.0])
        case "enum":
            return st.sampled_from(words)
        case "set":
            return st.just(words[:1])
        case "str":
            return st.sampled_from(["", "550.54.15", "x"])
        case _:
            return st.none()


@pytest.mark.slow
@given(
    observed(), st.deferred(lambda: st.lists(st.sampled_from(sorted(symptoms())), min_size=1, max_size=3, unique=True))
)
def test_what_is_not_known_is_never_ruled_out(observations: list[Observation], ids: list[str]) -> None:
    d = diagnose(observations, load())
    check(differential(ids, d, None, "en"), d, ids, "en")


@each("text", [DBE, HOSTILE, WATCHDOG, OOM])
def test_logs_with_every_symptom(text: str) -> None:
    d = of_log(text, "log")
    for symptom in symptoms():
        rows = differential([symptom], d, None, "en")
        check(rows, d, [symptom], "en")
        said = "".join(line for row in rows for line in (*row.for_, *row.against, *row.unknown, row.next))
        assert not {"\x1b", "\u202e", "\u200b"} & set(said)


def test_a_gpu_that_nothing_tells_of_is_not_cleared() -> None:
    one = gpu("0000:3b:00.0", "n1")
    cool = [seen(f"gpu.clock.event.{name}", False, one) for name in ("hw_thermal", "sw_thermal")]
    few = diagnose(cool, load())
    assert by_id(differential(["gpu-too-hot"], few, None, "en"))["thermal-throttling"].state is Stand.AGAINST
    many = diagnose([*cool, seen("node.gpu.count", 8, node("n1"))], load())
    assert by_id(differential(["gpu-too-hot"], many, None, "en"))["thermal-throttling"].state is Stand.UNKNOWN
