"""The sentences in which a surface asks about what somebody points at: each is understood as it is meant, in both languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from knowledge.identity import is_pci
from knowledge.language import Text
from knowledge.observation import Scope, Status, Subject

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis
    from assistant.intent.query import Slots
    from rules.engine import Finding
    from rules.factbase import FactBase
    from rules.model import Rule


def why(lang: str) -> str:
    """Of the whole verdict."""
    return Text("why?", "为什么？").in_(lang)


def of_finding(f: Finding, d: Diagnosis, lang: str) -> str:
    """Why a finding holds."""
    there = place(f.subject, d.facts)
    return Text(f"why did you conclude {f.rule.id}{_on(there)}?", f"为什么判断{_of(there)}是 {f.rule.id}？").in_(lang)


def why_not(rule: Rule, subject: Subject | None, d: Diagnosis, lang: str) -> str:
    """Why a rule was not concluded."""
    there = place(subject, d.facts) if subject is not None else ""
    ahead = f"{there} 上" if there else ""
    return Text(f"why not {rule.id}{_on(there)}?", f"{ahead}为什么不是 {rule.id}？").in_(lang)


def of_section(key: str, lang: str) -> str:
    """What a list below the findings is about."""
    return {
        "ruled_out_title": Text("what did you rule out?", "排除了哪些原因？"),
        "undecided": Text("what else could it be?", "还可能是什么原因？"),
    }.get(key, Text("how sure are you?", "有多确定？")).in_(lang)


def of_topic(topic: str, lang: str) -> str:
    """What a page of knowledge says: ``xid 79``, ``fact gpu.ecc.mode``, ``action RESET_GPU``."""
    kind, _, name = topic.partition(" ")
    said = {
        "rule": Text(f"what is the rule {name}?", f"规则 {name} 是什么意思，请解释一下"),
        "fact": Text(f"what is the meaning of the fact {name}?", f"请解释一下 fact {name} 是什么意思"),
        "action": Text(f"what does {name} mean?", f"请问 {name} 是什么意思？"),
        "runbook": Text(f"show me the runbook {name}", f"runbook {name} 的步骤是什么？"),
    }
    return said.get(kind, Text(f"what is {topic}?", f"{topic} 是什么？")).in_(lang)


def of_remedy(lang: str) -> str:
    """What to do."""
    return Text("what next?", "下一步做什么？").in_(lang)


# --- places -------------------------------------------------------------------------------


def slots_of(subject: Subject, facts: FactBase) -> Slots:
    """The slots that mean exactly this; the nearest that it is part of where no slot names such a thing."""
    from assistant.intent.query import Slots

    nodes = facts.subjects(Scope.NODE)
    node = (subject.host,) if subject.host and len(nodes) > 1 else ()
    for s in subject.ancestors():
        if s.scope is Scope.GPU:
            return Slots(gpu=(_gpu(s, facts),), node=node)
        if s.scope is Scope.PROCESS and s.id.isdigit():
            return Slots(pid=(int(s.id),), node=node)
        if s.scope is Scope.RANK and s.id.isdigit():
            return Slots(rank=(int(s.id),), node=node)
        if s.scope is Scope.JOB:
            return Slots(job=(s.id,), node=node)
    return Slots(node=node)


def place(subject: Subject, facts: FactBase) -> str:
    """The words that are understood as those slots: ``gpu 3``, ``pid 4242 on gpu-12``; empty where it goes without saying."""
    slots = slots_of(subject, facts)
    said = [f"{slot} {values[0]}" for slot, values in slots.named() if slot != "node"]
    return " on ".join([*said, *slots.node])


def _gpu(subject: Subject, facts: FactBase) -> int | str:
    """The index by which people call it, where it is no other one's; else its address."""
    from assistant.dialogue._scope import gpu_index

    number = gpu_index(subject, facts)
    if number is not None:
        same = [s for s in facts.subjects(Scope.GPU) if s.host == subject.host and gpu_index(s, facts) == number]
        if same == [subject]:
            return number
    if is_pci(subject.id):
        return subject.id
    if subject.id.startswith("index:") and subject.id[6:].isdigit():
        return int(subject.id[6:])
    uuid = facts.current("gpu.uuid", subject)
    known = uuid is not None and uuid.status is Status.OK and isinstance(uuid.value, str)
    return str(uuid.value) if known and uuid is not None else subject.id


def _on(there: str) -> str:
    return f" on {there}" if there else ""


def _of(there: str) -> str:
    return f" {there} " if there else ""
