"""The policy as a page, and one ruling with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from assistant.inventory.words import NAME, NO_NAME
from assistant.rights import words
from assistant.rights.model import DIRECT, ID, WHAT, Act, Decision, Person
from assistant.rights.reach import known_acts, terms
from knowledge.errors import UnknownNameError, UsageError
from knowledge.language import Text
from knowledge.text import excerpt

if TYPE_CHECKING:
    from assistant.render.sheet import Sheet
    from assistant.rights.model import Ruling
    from assistant.rights.policy import Policy

NONE = Text(
    "No policy file is set (policy_file), so nobody may have anything run from a chat.",
    "未设置权限文件（policy_file），因此任何人都不可通过聊天运行任何操作。",
)


def act_of(what: str, node: str, *, privileged: bool = False) -> Act:
    """The act that a command line means: cost and risk are those of the probe, the test, the step.

    UnknownNameError for what is nothing that can be run, UsageError for words that make no sense.
    """
    if not NAME.fullmatch(node):
        raise UsageError(f"--node {excerpt(node, 60)!r} {NO_NAME}")
    if not WHAT.fullmatch(what):
        raise UsageError(f"--act {excerpt(what, 60)!r} is no name", hint="a probe, test:NAME, step:RUNBOOK/STEP")
    if not what.startswith("step:") and what not in known_acts() and f"test:{what}" not in known_acts():
        raise UnknownNameError("probe or test", what, known_acts())
    cost, risk, needs = terms(what)
    if what.startswith("step:"):
        risk = _step_risk(what)
    return Act(what, node, cost, risk, privileged or needs)


def _step_risk(what: str) -> str:
    from knowledge.runbook import runbook

    book, _, step = what.removeprefix("step:").partition("/")
    return runbook(book).step(step).risk.value


def asked(user: str, groups: Iterable[str], channel: str, *, guest: bool, external: bool) -> Person:
    """The person that a command line means. UsageError for what is no id."""
    for word in (user, *groups, *([channel] if channel else [])):
        if not ID.fullmatch(word):
            raise UsageError(
                f"{excerpt(word, 60)!r} is no id", hint="--as U024BE7LH --group S0614TZR7 --channel C024BE7LH"
            )
    return Person(user, frozenset(groups), guest, external)


def anywhere(policy: Policy) -> str:
    """A channel of the list, for a ruling that is not about the channel."""
    named = sorted(policy.channels - {DIRECT})
    return named[0] if named else ""


def page(policy: Policy, lang: str, ruled: tuple[Person, Act, Ruling] | None = None) -> Sheet:
    """The sheet: the policy, or what it says of one act of one person."""
    from assistant.render.sheet import Sheet

    title = Text("Rights", "权限").in_(lang)
    data: dict[str, Any] = {"file": policy.file or None}
    if ruled is not None:
        return Sheet(ruled[2].why.in_(lang), *_ruled(*ruled, lang, data))
    data |= {
        "channels": sorted(policy.channels),
        "roles": [_role(policy, name) for name in policy.roles],
        "grants": [
            {
                "name": g.name, "roles": sorted(g.roles), "run": list(g.run.words), "nodes": list(g.nodes.words), "cost": g.cost,
                "risk": g.risk, "privileged": g.privileged, "approvers": sorted(g.approvers), "place": g.place,
            }
            for g in policy.grants
        ],
    }  # fmt: skip
    data |= {"keepers": list(policy.keepers), "doubts": [str(d) for d in policy.doubts]}
    if not policy.file:
        return Sheet(NONE.in_(lang), (), data)
    return Sheet(title, _parts(policy, lang, data), data)


def _role(policy: Policy, name: str) -> dict[str, Any]:
    role = policy.roles[name]
    return {
        "name": name, "users": sorted(role.users), "groups": sorted(role.groups), "guests": role.guests,
        "external": role.external, "see": sorted(s.value for s in role.see),
    }  # fmt: skip


def _parts(policy: Policy, lang: str, data: dict[str, Any]) -> tuple[Any, ...]:
    from assistant.render.sheet import Heading, Items, Paragraph, Table

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    def row(found: dict[str, Any], *keys: str) -> tuple[str, ...]:
        return tuple(", ".join(found[k]) if isinstance(found[k], list) else str(found[k]) for k in keys)

    def risk(found: dict[str, Any]) -> str:
        return words.RISK[found["risk"]].in_(lang) + (t(", privileged", "，特权") if found["privileged"] else "")

    def others(found: dict[str, Any]) -> str:
        told = [t("guests", "访客")] * found["guests"] + [t("other organisations", "外部组织")] * found["external"]
        return ", ".join(told) or "-"

    grants = tuple(
        (
            *row(g, "name", "roles", "run", "nodes"),
            words.COST[g["cost"]].in_(lang),
            risk(g),
            ", ".join(g["approvers"]) or "-",
        )
        for g in data["grants"]
    )
    roles = tuple(
        (r["name"], ", ".join((*r["users"], *r["groups"])) or "-", others(r), ", ".join(r["see"]) or "-")
        for r in data["roles"]
    )
    channels = ", ".join(data["channels"]) or "-"
    doubts = (
        (Heading(t("Named, and not there", "已指定但不存在")), Items(tuple(data["doubts"]))) if data["doubts"] else ()
    )
    return (
        Paragraph(policy.file),
        *doubts,
        Paragraph(t(f"Asked for in: {channels}. What stands in no grant is denied.",
                    f"可提出请求的频道：{channels}。未授权的一律拒绝。")),
        Heading(t("Grants", "授权")),
        Table((t("grant", "授权"), t("roles", "角色"), t("may run", "可运行"), t("on", "机器"), t("cost up to", "开销上限"),
               t("risk up to", "风险上限"), t("second person", "第二人")), grants),
        Heading(t("Roles", "角色")),
        Table((t("role", "角色"), t("members", "成员"), t("also for", "也适用于"), t("sees of others", "可查看他人的")), roles),
    )  # fmt: skip


def _ruled(person: Person, act: Act, ruling: Ruling, lang: str, data: dict[str, Any]) -> tuple[Any, Any]:
    from assistant.render.sheet import Fields

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    who = ", ".join((person.id, *sorted(person.groups)))
    fields = [
        (t("who", "人员"), who), (t("what", "操作"), act.what), (t("on", "机器"), act.node),
        (t("cost", "开销"), words.COST[act.cost].in_(lang)),
        (t("risk", "风险"), words.RISK[act.risk].in_(lang) + (t(", privileged", "，特权") if act.privileged else "")),
    ]  # fmt: skip
    if ruling.decision is Decision.SECOND_PERSON:
        fields.append((t("may agree", "可同意者"), ", ".join(sorted(ruling.approvers))))
    data["ruling"] = {
        "decision": ruling.decision.value, "rule": ruling.rule, "why": {"en": ruling.why.en, "zh": ruling.why.zh},
        "approvers": sorted(ruling.approvers), "person": person.id, "what": act.what, "node": act.node, "cost": act.cost,
        "risk": act.risk, "privileged": act.privileged,
    }  # fmt: skip
    return (Fields(tuple(fields)),), data
