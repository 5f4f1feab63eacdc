"""Pointing and saying are one: the query of an edited value is what the sentence beside it is understood as."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assistant.diagnosis import Diagnosis
from assistant.intent.parse import understand
from assistant.intent.query import Assumed, Intent, Query
from assistant.proofs.forms import form
from assistant.proofs.outline import outline
from assistant.proofs.supposing import Target, What, of_leaf, problem, query, supposed
from assistant.proofs.tree import tree, walk
from knowledge.facts import Type, vocabulary
from knowledge.observation import Observation, Source, Status, Subject, gpu, node
from knowledge.observation import Scope as S
from rules.evaluate import evaluate
from rules.loader import load
from rules.proof import LeafProof, Proof, leaf_proofs
from tests.assistant.dialogue.talk import OFF_BUS, ask, log, rules, said
from tests.cases import each
from tests.diagnoses import incident, smaller

INCIDENTS = (
    "off-the-bus",
    "double-bit-error",
    "overheating",
    "half-width",
    "rail-down",
    "nvswitch-fault",
    "row-remap-pending",
    "cpu-limit",
)
SOME = {Type.BOOL: "no", Type.INT: "7", Type.FLOAT: "1.5", Type.STR: "some other words"}


def targets(d: Diagnosis, lang: str = "en") -> Iterator[Target]:
    """Everything that the proofs of a diagnosis let one edit, once."""
    found: dict[tuple[object, ...], Target] = {}
    for e in outline(d, lang):
        for _, n in walk(tree(e, d, lang)):
            for t in n.targets:
                found.setdefault((t.what, t.name, t.subject, t.code), t)
    return iter(found.values())


def value(target: Target, d: Diagnosis) -> str:
    """Something that can be typed for it."""
    f = form(target, d, "en")
    if f.choices:
        return f.choices[-1][0]
    if target.what is What.THRESHOLD:
        return f.start
    spec = vocabulary()[target.name]
    return SOME.get(spec.type) or ", ".join(spec.values[:2]) or "a, b"


@pytest.mark.slow
@each("lang", ["en", "zh"])
@each("name", INCIDENTS)
def test_an_edited_value_is_understood_as_it_is_said(name: str, lang: str) -> None:
    """Not one by one answered, that takes long: the same assumption of the same thing gives the same answer."""
    d = incident(name)
    seen = 0
    for target in targets(d):
        typed = value(target, d)
        assert problem(target, typed, lang) == "", (target, typed)
        pointed = query(target, typed, d, lang)
        spoken = understand(pointed.text, lang="en", hosts=[s.id for s in d.facts.subjects(S.NODE)])
        assert spoken.intent is Intent.WHATIF, pointed.text
        assert spoken.lang == lang, pointed.text
        assert spoken.assumed == pointed.assumed, pointed.text
        assert _places(spoken) == _places(pointed), pointed.text
        seen += 1
    assert seen > 3


def _places(q: Query) -> tuple[object, ...]:
    """The slots that say whose a value is."""
    return (q.slots.gpu, q.slots.node, q.slots.pid, q.slots.rank, q.slots.job)


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_and_the_answers_are_the_same(lang: str) -> None:
    d = smaller("overheating")
    for target in list(targets(d))[:6]:
        pointed = query(target, value(target, d), d, lang)
        spoken = understand(pointed.text, lang=lang)
        here, there = supposed(d, rules(), pointed), ask(d, spoken)
        assert here.hypothetical
        assert said(here) == said(there), pointed.text


def test_the_gpu_that_is_pointed_at_and_no_other() -> None:
    d = incident("healthy")
    hot = Target(What.FACT, "gpu.temperature.core", gpu("0000:5d:00.0", d.facts.subjects(S.NODE)[0].id))
    q = query(hot, "95 C", d, "en")
    assert q.text == "what if gpu.temperature.core were 95 on gpu 3?"
    assert q.assumed == (Assumed("gpu.temperature.core", "95"),)
    assert (
        supposed(d, rules(), q).headline
        == "Supposed: the core temperature of GPU 0000:5d:00.0 is 95 °C. It would be DEGRADED instead of OK."
    )


def test_things_that_no_slot_names() -> None:
    """Of two ports that are alike only the one that is pointed at."""
    ports = [Subject(S.PORT, f"mlx5_{n}/1", node("n1")) for n in (0, 1)]
    spec = next(s for s in vocabulary() if s.scope is S.PORT and s.type is Type.ENUM)
    seen = [Observation(spec.name, p, spec.values[0], source=Source("t", "t.txt")) for p in ports]
    from assistant.diagnosis import diagnose

    d = diagnose(seen, rules())
    q = query(Target(What.FACT, spec.name, ports[1]), spec.values[1], d, "en")
    assert q.assumed[0].of == "port mlx5_1/1"
    spoken = understand(q.text)
    assert spoken.assumed == q.assumed
    assert "mlx5_1/1" in supposed(d, rules(), q).headline
    assert "2 ports" not in supposed(d, rules(), q).headline
    lost = replace(q, assumed=(q.assumed[0]._replace(of="port nobody/1"),))
    assert "No port is known here" in ask(d, lost).headline


def test_a_code_that_was_seen_can_only_be_taken_away() -> None:
    d = log(OFF_BUS)
    found = next(f for f in d.findings if f.rule.id == "gpu-fell-off-bus")
    (target, *_) = [t for n in walk(tree(outline(d, "en")[0], d, "en")) for t in n[1].targets if t.what is What.EVENT]
    f = form(target, d, "en")
    assert (f.title, f.now, [c for c, _ in f.choices]) == ("XID 79", "1 seen", ["none"])
    q = query(target, "none", d, "en")
    assert q.text == "what if there had been no xid 79 on gpu 0000:3b:00.0?"
    assert supposed(d, rules(), q, found.id).headline.startswith("Supposed: no XID 79 was seen. It would be OK")


def test_what_cannot_be_typed() -> None:
    d = incident("overheating")
    by_name = {t.name: t for t in targets(d)}
    core = next(
        t for name, t in by_name.items() if vocabulary().get(name) and vocabulary()[name].type in (Type.INT, Type.FLOAT)
    )
    assert "never 'warm'" in problem(core, "warm", "en")
    assert "不会是" in problem(core, "warm", "zh")
    with pytest.raises(ValueError, match="never"):
        query(core, "warm", d, "en")


def test_thresholds_keep_their_bounds() -> None:
    d = incident("overheating")
    rule = load()["thermal-margin-low"]
    (subject, *_) = d.facts.subjects(S.GPU)
    proof = evaluate(rule.when, subject, d.facts)
    made = [t for n in _leaves(proof) for t in of_leaf(n, subject, rule, d) if t.what is What.THRESHOLD]
    margin = next(t for t in made if t.name == "thermal-margin-low.margin")
    assert form(margin, d, "en").now == "5 °C"
    assert "from 1 °C to 20 °C" in problem(margin, "40", "en")
    assert query(margin, "9", d, "en").assumed == (Assumed("thermal-margin-low.margin", "9"),)


def _leaves(proof: Proof) -> list[LeafProof]:

    return list(leaf_proofs(proof))


def test_what_is_not_known_can_be_supposed() -> None:
    d = log(OFF_BUS)
    unknown = Target(What.FACT, "gpu.nvml.reachable", gpu("0000:3b:00.0"))
    assert form(unknown, d, "en").now == "not among the inputs"
    assert form(unknown, d, "zh").now == "输入中没有"
    assert supposed(d, rules(), query(unknown, "no", d, "en")).hypothetical


@each(
    ("sentence", "wanted"),
    [
        ("what if gpu 3 were at 95 C", ("gpu.temperature.core", "95")),
        ("what if gpu 3 were at 95°C", ("gpu.temperature.core", "95")),
        ("suppose gpu 3 was at 600 watts", ("gpu.power.draw", "600")),
        ("如果3号卡是95度呢", ("gpu.temperature.core", "95")),
        ('what if node.driver.version were "570.86.15"', ("node.driver.version", "570.86.15")),
    ],
)
def test_a_unit_names_its_reading(sentence: str, wanted: tuple[str, str]) -> None:
    found = understand(sentence)
    assert found.intent is Intent.WHATIF
    assert [(a.name, a.value) for a in found.assumed] == [wanted]


def test_a_number_without_a_unit_names_nothing() -> None:
    assert understand("what if gpu 3 were at 95").assumed == ()


def test_status_words_are_told() -> None:
    one = gpu("0000:3b:00.0")
    from assistant.diagnosis import diagnose

    d = diagnose(
        [
            Observation(
                "gpu.temperature.core", one, status=Status.DENIED, detail="run as root to see it", source=Source("t")
            )
        ],
        rules(),
    )
    assert form(Target(What.FACT, "gpu.temperature.core", one), d, "en").now.startswith("permission denied")
