"""Should I drain, replace, reboot or reset it: what is asked for, held against what is advised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from assistant.render.labels import led
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.record import dataclass
from rules.model import Bucket

if TYPE_CHECKING:
    from assistant.dialogue._words import Words
    from assistant.intent.query import Query


_CLAUSE = lazy(r"[^,;.!?，。；！？]+[?？]?")


class Asked(StrEnum):
    """An action that somebody asks about."""

    DRAIN = "drain"
    REPLACE = "replace"
    REBOOT = "reboot"
    RESET = "reset"
    RESTART_JOB = "restart_job"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Should:
    """An action that is asked about, and how a sentence calls it."""

    asked: Asked
    word: Text
    doing: Text
    without: bool = False  # whether it is asked if it can be done without
    either: bool = False  # whether it is one of two: "keep or drain" has no yes and no no


_WORDS: tuple[tuple[Should, re.Pattern[str]], ...] = tuple(
    (Should(asked, word, doing), lazy(pattern))
    for asked, word, doing, pattern in (
        (Asked.REPLACE, Text("replace it", "更换"), Text("replacing it", "更换"),
         r"(?<![a-z])(?:replac(?:e|ed|ing)|rma(?:'?d)?|swap(?:ped)?|(?:return|send back) (?:it|them|the (?:gpu|card|board)s?))(?![a-z])|更换|换掉|换卡|换新|换[吗么嘛不]|[要该得]换(?!驱动)|返修|返厂|报修|送修|[能有没]救|救[得不]?回|(?<![a-z])(?:salvag|beyond repair|(?:it|gpu|card|board) (?:is )?(?:dead|toast|bricked)(?![a-z]))"),
        (Asked.DRAIN, Text("drain the node", "排空节点"), Text("draining the node", "排空节点"), r"\b(?:un)?(?:drain|cordon)(?:ed|ing)?\b|排空|腾空|封锁|隔离|下线|停机|(?<![a-z])take (?:it|the (?:node|machine|box|host)) (?:down|offline|out)(?![a-z])"),
        (Asked.RESET, Text("reset the GPU", "复位 GPU"), Text("resetting the GPU", "复位 GPU"), r"\b(?:gpu[- ]?)?reset(?:ting)?\b|复位|重置"),
        (Asked.REBOOT, Text("reboot the node", "重启节点"), Text("rebooting the node", "重启节点"),
         r"\b(?:reboot(?:ed|ing)?|power[- ]?cycle)\b|\brestart (?:it|the (?:node|machine|server|host|box))\b|重启(?!.{0,4}(?:作业|任务|进程|应用|训练))"),
        (Asked.RESTART_JOB, Text("restart the job", "重启作业"), Text("restarting the job", "重启作业"),
         r"\b(?:restart|resubmit|requeue|rerun) (?:only |just )?(?:my |the )?(?:job|training|process|app|application|run)\b|\b(?:restart|resume|continue|go on|start)(?: it| the (?:job|training|run))? from (?:the |a |my |an )?(?:last |latest |earlier |previous )?(?:checkpoint|ckpt)|从.{0,6}(?:检查点|checkpoint|ckpt).{0,4}(?:重启|恢复|继续|重新)|重启.{0,4}(?:作业|任务|进程|应用|训练)|重新提交"),
        (Asked.UPDATE, Text("update the driver", "升级驱动"), Text("updating the driver", "升级驱动"), r"\b(?:update|upgrade|reinstall) (?:the )?(?:driver|firmware)|升级(?:驱动|固件)|重装驱动"),
    )
)  # fmt: skip
# What each advised action includes of those that people ask about.
_INCLUDES: dict[Asked, frozenset[Bucket]] = {
    Asked.DRAIN: frozenset({Bucket.DRAIN_AND_RESET, Bucket.RESTART_BM}),
    Asked.REPLACE: frozenset(),
    Asked.REBOOT: frozenset({Bucket.RESTART_BM}),
    Asked.RESET: frozenset({Bucket.DRAIN_AND_RESET, Bucket.RESET_GPU}),
    Asked.RESTART_JOB: frozenset({Bucket.RESTART_APP}),
    Asked.UPDATE: frozenset({Bucket.UPDATE_SWFW}),
}
# Advice of which the outcome decides about what is asked.
_DECIDES: dict[Asked, frozenset[Bucket]] = {
    Asked.REPLACE: frozenset(
        {
            Bucket.CONTACT_SUPPORT,
            Bucket.CHECK_MECHANICALS,
            Bucket.WORKFLOW_NVLINK_ERR,
            Bucket.WORKFLOW_NVLINK5_ERR,
            Bucket.XID_154_EVAL,
        }
    ),
    Asked.RESET: frozenset({Bucket.WORKFLOW_NVLINK_ERR, Bucket.WORKFLOW_NVLINK5_ERR, Bucket.XID_154_EVAL}),
}
_STRONGER: dict[Asked, frozenset[Bucket]] = {
    Asked.RESET: frozenset({Bucket.RESTART_BM, Bucket.CHECK_MECHANICALS, Bucket.CONTACT_SUPPORT}),
    Asked.REBOOT: frozenset({Bucket.CHECK_MECHANICALS, Bucket.CONTACT_SUPPORT}),
    Asked.RESTART_JOB: frozenset({Bucket.RESET_GPU, Bucket.DRAIN_AND_RESET, Bucket.RESTART_BM, Bucket.RESTART_FM,
                                  Bucket.CHECK_MECHANICALS, Bucket.CONTACT_SUPPORT}),
}  # fmt: skip


_ASKS = lazy(
    r"[?？吗么]|要不要|需不需要|是不是|用不用|是否|该不该|(?<![a-z])(?:should|shall|must|need|do (?:i|we)|can (?:i|we)|rma|replace)(?![a-z])"
)


_BARE = lazy(
    r"\W*(?:(?:is|would) (?:that|this|it) (?:be )?)?(?:ok|okay|fine|enough|right|possible|an option|good idea)\W*|\W*(?:这样)?(?:行不行|行吗|可以吗|可不可以|能行吗|好吗|好不好|够吗|够不够)\W*",
    re.IGNORECASE,
)


def asked_of(query: Query) -> Should | None:
    """The action that a question is about; None for "can I use it", and for an action that is only told of ("the reset failed")."""
    text = asked_in(query).casefold()
    found = ((should, pattern.search(text)) for should, pattern in _WORDS)
    should, at = next(((s, m) for s, m in found if m is not None), (None, None))
    if should is None or at is None:
        return None
    return replace(
        should, without=_WITHOUT.search(text[: at.start()]) is not None, either=_EITHER.search(text) is not None
    )


# keep or drain | drain or leave it | 排空还是继续用
_EITHER = lazy(r"(?<![a-z])or(?![a-z]| not| just wait)|还是(?![^，。？?]{0,3}[没不])")


# can it be fixed without a reboot | how do I avoid a reset | 不重启能修好吗; 要不要重启 and 为什么不重启 ask for the act
_WITHOUT = lazy(
    r"(?<![a-z])(?:without|avoid(?:ing)?|skip(?:ping)?|instead of|rather than)\s+(?:(?:an?|the|any|having to|needing to)\s+)?$"
    r"|(?<![要何么啥嘛])不$|(?<![用需要])(?:不用|不必|不需要|无需|避免|免)$"
)


def asked_in(query: Query) -> str:
    """The words of a sentence that ask; all of it where it states nothing."""
    if query.asks and query.unread and _BARE.fullmatch(query.asks):
        return (
            f"{' '.join(query.unread)} {query.asks}"  # "restart only the job, ok?": the act stands ahead of what asks
        )
    if query.asks or not query.observations:
        return query.asks or query.text
    return " ".join(clause for clause in _CLAUSE.findall(query.text) if _ASKS.search(clause.casefold()))


_IT = lazy(r"\brestart (?:it|this|that)\b|重启(?!.{0,4}(?:节点|机器|主机|服务器|整机))", re.IGNORECASE)
_A_JOB = lazy(r"(?<![a-z])(?:job|run|training|process|program|app)(?![a-z])|任务|作业|训练|进程|程序", re.IGNORECASE)


def speaks_of_a_job(text: str) -> bool:
    """Whether a sentence has work in it that "it" may be: "my job died, can I just restart it"."""
    return _A_JOB.search(text) is not None


def of_a_job(should: Should | None, query: Query) -> Should | None:
    """`should`, where what is wrong is a job's, or ended one: to restart "it" is to start the job anew."""
    if should is None or should.asked is not Asked.REBOOT or not _IT.search(query.text):
        return should
    return next(s for s, _ in _WORDS if s.asked is Asked.RESTART_JOB)


class Advised(NamedTuple):
    """What is advised for one thing that is wrong."""

    title: str
    bucket: Bucket
    action: str  # the word and its sentence
    stops: bool  # whether the thing is not to be used until it is done
    then: Text = NO_TEXT  # what is done after it, where that can end in a replacement
    reset: Text = NO_TEXT  # what is done after it, where that is a reset


def compared(w: Words, should: Should, about: Sequence[Advised], until: Text) -> str:
    """Yes, no or not yet: the action that is asked about against the one that is advised for the first thing that is wrong."""
    first, asked, doing = about[0], should.asked, should.doing.in_(w.lang)
    title, bucket, action = first.title, first.bucket, first.action
    same = next((x for x in about if x.bucket in _INCLUDES[asked]), None)
    more = next((x for x in about if x.bucket in _STRONGER.get(asked, ())), None)
    if should.without and (needed := more or same):
        act = w.t("more than that" if more is not None else doing, "更多处置" if more is not None else doing)
        return w.t(
            f"{led(f'No, {act} is needed', needed.title, 'en')}. {needed.action}",
            f"不行，需要{act}：{w.quoted(needed.title)}。{needed.action}",
        )
    if more is not None and should.either:  # "reset or reboot": there is no "no" to that
        lead = f"{should.doing.en[0].upper()}{should.doing.en[1:]} is not enough"
        return w.t(
            f"{led(lead, more.title, 'en')}. {more.action}", f"{doing}不够：{w.quoted(more.title)}。应当 {more.action}"
        )
    if more is not None:  # of one GPU whose spare rows are used up no reset saves it, whatever else a reset would end
        return w.t(
            f"{led('No, that is not enough', more.title, 'en')}. {more.action}",
            f"不够：{w.quoted(more.title)}。应当 {more.action}",
        )
    if same is not None:
        word = should.word.en
        yes = led(f"{word[0].upper()}{word[1:]}" if should.either else f"Yes, {word}", same.title, "en")
        return w.t(f"{yes}. {same.action}", f"需要{should.word.in_('zh')}：{w.quoted(same.title)}。{same.action}")
    if asked is Asked.REPLACE and bucket is Bucket.CONTACT_SUPPORT:
        return w.t(
            f"{led('Likely, and the vendor decides', title, 'en')}. {action}",
            f"很可能需要，由厂商判定：{w.quoted(title)}。{action}",
        )
    if asked is Asked.REPLACE and first.then:
        then = first.then.in_(w.lang)
        return w.t(
            f"{led('Not decided yet', title, 'en')}. First {action} {then}",
            f"还不能断定：{w.quoted(title)}。先 {action}{then}",
        )
    if asked is Asked.RESET and first.reset:
        later = first.reset.in_(w.lang)
        return w.t(
            f"{led('Later, not at once', title, 'en')}. {action} {later}",
            f"需要，但不必立即：{w.quoted(title)}。{action}{later}",
        )
    if asked is Asked.RESTART_JOB and bucket in (Bucket.FIX_CODE, Bucket.TUNE_JOB):
        return w.t(
            f"{led('As it is it would end the same way', title, 'en')}. First {action}",
            f"照原样重启会得到同样的结果：{w.quoted(title)}。先 {action}",
        )
    if bucket in _DECIDES.get(asked, ()):
        return w.t(
            f"{led('Not yet', title, 'en')}. First {action} What comes of it decides.",
            f"还不确定：{w.quoted(title)}。先 {action}由其结果决定。",
        )
    if asked is Asked.DRAIN and first.stops:
        when = until.in_(w.lang)
        lead = f"{'Drain it and' if should.either else 'Yes,'} keep new work away until {when or 'it is repaired'}"
        return w.t(f"{led(lead, title, 'en')}. {action}",
                   f"需要，在{when or '修复'}之前不要安排新任务：{w.quoted(title)}。{action}")  # fmt: skip
    if should.without:
        return w.t(
            f"{led(f'Yes, without {doing}', title, 'en')}. {action}", f"可以不{doing}：{w.quoted(title)}。{action}"
        )
    yet, so_far = (" so far", "目前") if asked is Asked.REPLACE and bucket in _FIRST_OF_A_FAULT else ("", "")
    return w.t(
        f"{led(f'Not {doing}' if should.either else f'No, {doing} is not called for{yet}', title, 'en')}. {action}",
        f"{so_far}不需要{doing}：{w.quoted(title)}。建议 {action}",
    )


# What is tried on a fault of the hardware before the board is given up.
_FIRST_OF_A_FAULT = frozenset({Bucket.RESET_GPU, Bucket.DRAIN_AND_RESET, Bucket.RESTART_BM})
