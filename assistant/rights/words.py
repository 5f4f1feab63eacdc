"""What a ruling says, to the person it is about: their own rights, and nobody else's."""

from __future__ import annotations

from collections.abc import Iterable

from assistant.rights.model import COSTS, RISKS, Act, Lack
from knowledge.language import NO_TEXT, Text
from knowledge.text import excerpt

COST = {
    "free": Text("free", "无开销"), "cheap": Text("cheap", "低开销"),
    "seconds": Text("some seconds", "数秒"), "heavy": Text("heavy", "高开销"),
}  # fmt: skip
RISK = {
    "safe": Text("safe", "安全"), "disruptive": Text("disruptive", "会造成中断"),
    "destructive": Text("destructive", "会造成不可恢复的损失"),
}  # fmt: skip
_OUTSIDE = {
    Lack.PERSON: Text("Denied: only people can ask, and this is no person's id.",
                      "拒绝：只有人员可以请求，而这不是人员的 ID。"),
    Lack.MEMBER: Text("Denied: no role of the policy names you or a user group of yours.",
                      "拒绝：权限文件中没有任何角色包含您或您所在的用户组。"),
    Lack.GUEST: Text("Denied: you are a guest of this workspace, and no role of yours is open to guests.",
                     "拒绝：您是此工作区的访客，而您的角色均不对访客开放。"),
    Lack.EXTERNAL: Text("Denied: you belong to another organisation, and no role of yours is open to that.",
                        "拒绝：您属于其他组织，而您的角色均不对外部人员开放。"),
    Lack.CHANNEL: Text("Denied: this channel is not on the list of the policy.",
                       "拒绝：此频道不在权限文件的频道列表中。"),
    Lack.SOUND: Text("Denied: what is asked for is written in words that the policy does not know.",
                     "拒绝：请求的内容不是权限文件所认识的写法。"),
    Lack.GRANT: Text("Denied: no grant names a role of yours.", "拒绝：没有任何授权包含您的角色。"),
}  # fmt: skip

NOBODY = Text("Denied: the policy names nobody who could agree to it.", "拒绝：权限文件未指定可以同意此操作的人。")


def allowed(grant: str) -> Text:
    """One person is enough."""
    return Text(f"Allowed by the grant {grant}.", f"授权 {grant} 允许此操作。")


def second_person(grant: str, act: Act) -> Text:
    """Somebody else has to agree."""
    what = RISK[act.risk] if act.risk != "safe" else Text("privileged", "需要特权")
    return Text(
        f"A second person has to agree: this is {what.en}. The grant {grant} lets you ask for it.",
        f"需要第二人同意：此操作{what.zh}。授权 {grant} 允许您提出请求。",
    )


def denied(lack: Lack, act: Act | None = None, most: str = "") -> Text:
    """Which condition failed; those of `_OUTSIDE` are not about the act. `most`: the highest cost or risk that the person has here."""
    if act is None or lack in _OUTSIDE:
        return _OUTSIDE[lack]
    what, node = excerpt(act.what, 80), excerpt(act.node, 80)
    match lack:
        case Lack.ACT:
            return Text(f"Denied: no grant of yours covers {what}.", f"拒绝：您的授权均不包含 {what}。")
        case Lack.NODE:
            return Text(
                f"Denied: you may have {what} run, but not on {node}.", f"拒绝：您可以运行 {what}，但不可在 {node} 上。"
            )
        case Lack.COST:
            cost, top = COST[act.cost], COST[most]
            return Text(
                f"Denied: {what} on {node} costs more ({cost.en}) than you may have run there ({top.en} at most).",
                f"拒绝：在 {node} 上运行 {what} 的开销（{cost.zh}）超出您的上限（{top.zh}）。",
            )
        case Lack.RISK:
            risk, top = RISK[act.risk], RISK[most]
            return Text(
                f"Denied: {what} on {node} is {risk.en}, and your rights there end at {top.en}.",
                f"拒绝：在 {node} 上运行 {what} {risk.zh}，而您的权限上限为“{top.zh}”。",
            )
        case Lack.PRIVILEGED:
            return Text(
                f"Denied: {what} on {node} needs privileges, and no grant of yours gives them.",
                f"拒绝：在 {node} 上运行 {what} 需要特权，而您的授权均不包含特权。",
            )
    return NO_TEXT


def highest_cost(costs: Iterable[str]) -> str:
    """The highest of them."""
    return max(costs, key=COSTS.index)


def highest_risk(risks: Iterable[str]) -> str:
    """The highest of them."""
    return max(risks, key=RISKS.index)
