"""Names that people use, resolved to subjects through the facts."""

from __future__ import annotations

from assistant.diagnosis import Diagnosis
from assistant.dialogue._scope import KNOWN, belongs, scoped
from assistant.intent.query import Slots
from knowledge.observation import Scope
from tests.assistant.dialogue.talk import OFF_BUS, log
from tests.cases import each
from tests.diagnoses import incident


def lost() -> Diagnosis:
    return incident("off-the-bus")


GPU5 = "0000:ba:00.0"


@each("value", [5, GPU5, "0000:BA:00", "ba:00.0", "GPU-5e1f0000-1111-2222-3333-000000000004"[:-1] + "4"])
def test_a_gpu_by_any_name(value: int | str) -> None:
    where = scoped(lost(), Slots(gpu=(value,)))
    expected = "0000:9a:00.0" if str(value).startswith("GPU-") else GPU5
    assert [s.id for s in where.subjects] == [expected]
    assert where.named
    assert where.narrow
    assert not where.unknown


def test_findings_are_split_and_none_is_lost() -> None:
    where = scoped(lost(), Slots(gpu=(5,)))
    assert {f.id for f in where.about} | {f.id for f in where.others} == {f.id for f in lost().findings}
    assert not {f.id for f in where.about} & {f.id for f in where.others}
    assert where.about[0].rule.id == "gpu-fell-off-bus"
    other = scoped(lost(), Slots(gpu=(3,)))
    assert "gpu-fell-off-bus" in {f.rule.id for f in other.others}
    assert all(f.subject.up(Scope.GPU) is None for f in other.about)


def test_a_process_brings_the_gpu_that_it_uses() -> None:
    where = scoped(lost(), Slots(pid=(4205,)))
    assert [s.id for s in where.subjects] == ["4205"]
    assert "gpu-fell-off-bus" in {f.rule.id for f in where.about}
    assert "gpu-fell-off-bus" not in {f.rule.id for f in scoped(lost(), Slots(pid=(4201,))).about}


def test_what_is_not_known_is_named_with_what_there_is() -> None:
    (gpu,) = scoped(lost(), Slots(gpu=(42,))).unknown
    assert (gpu.slot, gpu.value) == ("gpu", "42")
    assert gpu.known[5] == f"5 ({GPU5})"
    (pid,) = scoped(lost(), Slots(pid=(1,))).unknown
    assert pid.known == tuple(str(4200 + n) for n in range(8))
    assert len(pid.known) <= KNOWN
    (node,) = scoped(lost(), Slots(node=("elsewhere",))).unknown
    assert node.known == ("oak-h100-042",)
    assert scoped(lost(), Slots(gpu=("GPU-0",))).unknown, "too short for a UUID"


@each("name", ["oak-h100-042", "OAK-H100-042.cluster.local", "oak-h100-[001-064]", "oak-h100-[7,42]"])
def test_a_node_by_name_or_set(name: str) -> None:
    where = scoped(lost(), Slots(node=(name,)))
    assert [s.id for s in where.subjects] == ["oak-h100-042"]
    assert not where.narrow
    assert len(where.about) == len(lost().findings)


@each("name", ["oak-h100-[001-041]", "oak-h100-[]", "oak-h100-[x]", "[1-9]", "-", "oak"])
def test_a_node_set_that_means_another(name: str) -> None:
    assert scoped(lost(), Slots(node=(name,))).unknown


def test_the_node_whose_name_nobody_told() -> None:
    where = scoped(log(OFF_BUS), Slots(node=("gpu-12",)))
    assert where.unnamed_node
    assert [s.id for s in where.subjects] == [""]
    assert len(where.about) == 1


def test_nothing_named_is_everything() -> None:
    where = scoped(lost(), Slots())
    assert not where.named
    assert where.about == lost().findings
    assert where.others == ()


def test_a_node_narrows_what_else_is_named() -> None:
    assert scoped(lost(), Slots(node=("oak-h100-042",), gpu=(5,))).narrow
    assert scoped(lost(), Slots(job=("48213",))).subjects[0].scope is Scope.JOB
    ranks = scoped(lost(), Slots(rank=(3,))).subjects
    assert {s.id for s in ranks} == {"3"}
    assert len(ranks) == 2, "of the job and of its log"


def test_a_process_by_name() -> None:
    assert {s.id for s in scoped(lost(), Slots(process=("python3",))).subjects} >= {"4200"}
    assert scoped(lost(), Slots(process=("vllm",))).unknown[0].known


def test_belongs() -> None:
    gpus = lost().facts.subjects(Scope.GPU)
    (node,) = lost().facts.subjects(Scope.NODE)
    assert belongs(node, gpus[:1], lost().facts)
    assert belongs(gpus[0], [node], lost().facts)
    assert not belongs(gpus[0], gpus[1:2], lost().facts)
