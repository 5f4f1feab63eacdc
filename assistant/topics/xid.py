"""XID codes: NVIDIA's catalogue entry, with the actions in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from assistant.render.sheet import Fields, Heading, Items, Paragraph, Part, Sheet
from assistant.topics import number
from knowledge.catalog.xid import XidEntry, all_xids, xid
from knowledge.errors import UnknownNameError
from knowledge.language import Text

KIND = "xid"
HELP = "an XID code of the NVIDIA driver"


def names() -> Iterable[str]:
    """Codes and mnemonics."""
    for entry in all_xids():
        yield str(entry.code)
        yield entry.mnemonic


def sheet(words: Sequence[str], lang: str) -> Sheet:
    """The page of one code, or of a mnemonic (``GPU_HAS_FALLEN_OFF_THE_BUS``)."""
    if len(words) == 1 and not words[0][:1].isdigit():
        wanted = words[0].upper()
        for candidate in all_xids():
            if wanted in (candidate.mnemonic.upper(), candidate.driver_name.upper()):
                return _page(candidate, lang)
        raise UnknownNameError("xid", words[0], (e.mnemonic for e in all_xids()))
    code = number(words, KIND)
    entry = xid(code)
    if entry is None:
        known = [e.code for e in all_xids()]
        error = UnknownNameError("xid", str(code), ())
        error.hint = (
            f"NVIDIA's catalogue holds {known[0]} to {known[-1]}; a line with another code is worth reading as it is"
        )
        raise error
    return _page(entry, lang)


def _page(e: XidEntry, lang: str) -> Sheet:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    immediate, spoken = _action(str(e.immediate), lang)
    applies = ", ".join(f"{name.upper()}: {_YES_NO[str(word)].in_(lang)}" for name, word in e.applies.items())
    parts: list[Part] = [
        Paragraph(e.description.in_(lang)),
        Fields((
            (t("severity", "级别"), SEVERITY[str(e.severity)].in_(lang)),
            (t("about", "涉及"), _AREA[str(e.scope)].in_(lang)),
            (t("role", "角色"), _ROLE[str(e.role)].in_(lang)),
            (t("action", "动作"), f"{immediate}{f': {spoken}' if spoken else ''}" if immediate else t("NVIDIA names none", "NVIDIA 未给出")),
            (t("to find the cause", "查明原因"), str(e.investigate)),
            (t("exists on", "适用产品"), applies),
            (t("leads to", "会引发"), _codes(e.explains)),
            (t("can come from", "可能源于"), _codes(e.explained_by)),
            (t("adds detail to", "补充说明"), _codes((e.companion_of,)) if e.companion_of else ""),
            (t("with XID 154 since", "自此版本起伴随 XID 154"), e.recovery_since),
            (t("driver's name", "驱动中的名称"), e.driver_name or e.mnemonic),
            (t("listed causes (r555 table)", "所列原因（r555 表）"), ", ".join(e.causes)),
        )),
    ]  # fmt: skip
    for heading, steps in ((t("Steps", "步骤"), e.workflow), (t("Check", "核对"), e.confirm)):
        if steps:
            parts += [Heading(heading), Items(tuple(s.in_(lang) for s in steps), numbered=steps is e.workflow)]
    if e.conflicts:
        parts += [Heading(t("Others say", "其他来源的说法"))]
        parts.append(Items(tuple(f"{c.source}: {c.says.in_(lang)}" for c in e.conflicts)))
    parts += [Heading(t("Sources", "来源")), Items(e.sources)]
    return Sheet(f"XID {e.code}: {e.title.in_(lang)}", tuple(parts), {"kind": KIND, "entry": asdict(e)})


def _codes(codes: Iterable[int | None]) -> str:
    return ", ".join(f"XID {c}" for c in codes if c is not None)


def _action(word: str, lang: str) -> tuple[str, str]:
    """The action word as the catalogue prints it, and its meaning (from the data: the rules are not needed here)."""
    from knowledge.compiled import shard

    name = "XID_154_EVAL" if word == "XID_154" else word
    return word, next((Text.of(b["text"]).in_(lang) for b in shard("buckets") if b["name"] == name), "")


_YES_NO = {"yes": Text("yes", "是"), "no": Text("no", "否"), "unknown": Text("unknown", "未知")}
SEVERITY = {
    "info": Text("info", "信息"),
    "warning": Text("warning", "警告"),
    "error": Text("error", "错误"),
    "critical": Text("critical", "严重"),
}
_AREA = {
    "application": Text("application", "应用程序"),
    "gpu": Text("GPU", "GPU"),
    "link": Text("link", "链路"),
    "node": Text("node", "节点"),
    "fabric": Text("fabric", "互联"),
    "firmware": Text("firmware", "固件"),
}
_ROLE = {
    "root": Text("can be the cause", "可为根因"),
    "secondary": Text("fallout of something else", "由其他问题引起"),
    "companion": Text("adds detail to another code", "为另一代码补充细节"),
    "carrier": Text("carries the driver's advice about another code", "携带驱动针对另一代码的建议"),
}
