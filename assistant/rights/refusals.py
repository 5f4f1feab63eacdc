"""Why an approval cannot be asked for, given or used, in both languages."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from knowledge.errors import GpudiagError
from knowledge.language import Text


class Reason(StrEnum):
    """Why not."""

    DENIED = "denied"
    ALONE = "alone"
    UNKNOWN = "unknown"
    NOBODY = "nobody"
    SELF = "self"
    ROLE = "role"
    APPROVED = "approved"
    REFUSED = "refused"
    EXPIRED = "expired"
    USED = "used"
    WAITING = "waiting"
    OTHER = "other"
    CHANGED = "changed"
    REQUESTER = "requester"
    LOST = "lost"


_SAID: Mapping[Reason, Text] = {
    Reason.ALONE: Text("This needs no approval: it may be run at once.", "此操作无需审批，可直接运行。"),
    Reason.UNKNOWN: Text("There is no such request. Ask again.", "没有这个请求。请重新提出。"),
    Reason.NOBODY: Text("Only people can agree or refuse, and this is no person's id.",
                        "只有人员可以同意或拒绝，而这不是人员的 ID。"),
    Reason.SELF: Text("You asked for this yourself. Somebody else has to agree.", "这是您自己提出的请求，须由他人同意。"),
    Reason.ROLE: Text("You hold no role that may decide about this.", "您没有可以对此作出决定的角色。"),
    Reason.APPROVED: Text("Somebody has agreed to this already.", "此请求已有人同意。"),
    Reason.REFUSED: Text("This was refused or taken back, and stays so. Ask again where it is still needed.",
                         "此请求已被拒绝或撤回，不再有效。如仍需要，请重新提出。"),
    Reason.EXPIRED: Text("The time for this is over, and nothing was run. Ask again.",
                         "此请求已过期，未运行任何操作。请重新提出。"),
    Reason.USED: Text("This was run already. An approval counts once.", "此操作已运行过。一次审批仅可使用一次。"),
    Reason.WAITING: Text("Nobody has agreed to this yet, and nothing was run.", "尚无人同意此请求，未运行任何操作。"),
    Reason.OTHER: Text("Only the person who asked can have this run.", "只有提出请求的人可以运行此操作。"),
    Reason.CHANGED: Text("This is not what was agreed to: node, command or risk is another one. Ask again.",
                         "这不是已获同意的操作：节点、命令或风险不同。请重新提出。"),
    Reason.REQUESTER: Text("The person who asked for this may not do so any more. Nothing was run.",
                           "提出请求的人已不再有此权限，未运行任何操作。"),
    Reason.LOST: Text("The person who agreed may not do so any more. Nothing was run. Ask again.",
                      "同意此请求的人已不再有此权限，未运行任何操作。请重新提出。"),
}  # fmt: skip


class RightsError(GpudiagError):
    """Somebody may not do what they asked for. `said` is the reason in both languages."""

    def __init__(self, reason: Reason, said: Text) -> None:
        super().__init__(said.en)
        self.reason, self.said = reason, said

    def in_(self, language: str) -> str:
        """In a language."""
        return self.said.in_(language)


def refusal(reason: Reason) -> RightsError:
    """The error for a reason that is always said in the same words."""
    return RightsError(reason, _SAID[reason])
