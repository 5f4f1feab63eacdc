"""What a dialog shows of a value that can be supposed to be another: what it is, whose, how it is now, what it can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue import _clauses
from assistant.proofs.supposing import CODED, NONE, SEEN, Target, What, leaf_fact
from assistant.proofs.values import in_words, unit_of
from assistant.render.labels import listed, reason_name, subject_name
from assistant.render.meanings import meaning
from knowledge.facts import FactSpec, Type, vocabulary
from knowledge.language import Text
from knowledge.observation import Event, Observation, Status
from knowledge.record import dataclass
from knowledge.text import clean, opened
from knowledge.units import symbol
from rules.condition import FactLeaf

if TYPE_CHECKING:
    from assistant.diagnosis import Diagnosis


@dataclass(frozen=True, slots=True)
class Form:
    """What a dialog shows of a target."""

    title: str
    about: str  # whose value it is
    now: str  # as it was seen; why it is not known
    against: str  # what the clause asks for
    unit: str
    allowed: str  # what can be typed
    choices: tuple[tuple[str, str], ...] = ()  # value and words; empty: it is typed
    start: str = ""  # what stands in the field at first


def form(target: Target, d: Diagnosis, lang: str) -> Form:
    """What a dialog asks."""
    if target.what is What.THRESHOLD:
        return _threshold_form(target, lang)
    assert target.subject is not None
    about = clean(subject_name(target.subject, lang))
    if target.what is What.EVENT:
        return _event_form(target, d, about, lang)
    known = d.facts.vocabulary
    spec = known[target.name]
    seen = d.facts.current(target.name, target.subject)
    against = (
        _clauses.wanted(target.leaf, known, lang)
        if isinstance(target.leaf, FactLeaf) and target.leaf.fact == target.name
        else ""
    )
    choices = _choices(spec, lang)
    return Form(
        opened(meaning(target.name, known, lang)), about, _now(spec, seen, lang), against, unit_of(spec),
        _allowed(spec, lang), choices, "" if choices else _start(seen),
    )  # fmt: skip


def _threshold_form(target: Target, lang: str) -> Form:
    rule = target.name.partition(".")[0]
    unit = symbol(target.param.unit) if target.param is not None else unit_of(vocabulary().get(leaf_fact(target)))
    title = Text(f"Threshold {target.title.en}", f"阈值 {target.title.en}").in_(lang)
    now = target.now
    if target.leaf is None:  # a site may have set another: nothing in the proof tells
        now = Text(f"{now} as shipped", f"{now}（出厂值）").in_(lang)
    return Form(title, rule, now, "", unit, target.allowed.in_(lang), start=target.now.split(" ")[0])


def _event_form(target: Target, d: Diagnosis, about: str, lang: str) -> Form:
    title = target.name.upper() if target.name in CODED else meaning(target.name, d.facts.vocabulary, lang)
    title = f"{title} {target.code}" if target.code is not None else opened(title)
    assert target.subject is not None
    seen = [o for o in d.facts.events_within(target.name, target.subject) if _is(o, target.code)]
    now = Text(f"{len(seen)} seen", f"共 {len(seen)} 条").in_(lang) if seen else Text("none seen", "未见").in_(lang)
    choices = [(NONE, Text("it had not been seen", "未曾出现").in_(lang))]
    if target.name in CODED and target.code is not None and not seen:
        choices = [(SEEN, Text("it had been seen", "曾经出现").in_(lang))]
    return Form(title, about, now, "", "", "", tuple(choices))


def _is(o: Observation, code: int | None) -> bool:
    return isinstance(o.value, Event) and (code is None or o.value.code == code)


def _choices(spec: FactSpec, lang: str) -> tuple[tuple[str, str], ...]:
    if spec.type is Type.BOOL:
        return (("yes", Text("yes", "是").in_(lang)), ("no", Text("no", "否").in_(lang)))
    if spec.type is Type.ENUM:
        return tuple((value, in_words(spec, value, lang)) for value in spec.values)
    return ()


def _now(spec: FactSpec, seen: Observation | None, lang: str) -> str:
    if seen is None:
        return reason_name(str(Status.NOT_ASKED), lang)
    if seen.status is Status.OK:
        return in_words(spec, seen.value, lang)
    return reason_name(f"{seen.status}: {clean(seen.detail)}" if seen.detail else str(seen.status), lang)


def _start(seen: Observation | None) -> str:
    if seen is None or seen.status is not Status.OK:
        return ""
    said = in_words(None, seen.value, "en")
    return "" if said == "none" else said


def _allowed(spec: FactSpec, lang: str) -> str:
    unit = unit_of(spec)
    match spec.type:
        case Type.INT:
            return Text(
                f"a whole number{f' in {unit}' if unit else ''}", f"整数{f'（单位 {unit}）' if unit else ''}"
            ).in_(lang)
        case Type.FLOAT:
            return Text(f"a number{f' in {unit}' if unit else ''}", f"数字{f'（单位 {unit}）' if unit else ''}").in_(
                lang
            )
        case Type.SET:
            some = listed(spec.values[:8], lang) + (" …" if len(spec.values) > 8 else "")
            return Text(f"words with commas between them, or none{f': {some}' if some else ''}",
                        f"以逗号分隔的词，或“无”{f'：{some}' if some else ''}").in_(lang)  # fmt: skip
        case Type.STR:
            return Text("any word", "任意文字").in_(lang)
        case _:
            return ""
