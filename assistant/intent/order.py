"""What came after what, where a sentence says that a reboot ended it: "xid 79 on gpu 6, node back up after a reboot"."""

from __future__ import annotations

import re
from dataclasses import replace

from assistant.intent.query import Query
from knowledge.lazy import lazy
from knowledge.observation import Clock, Event, Observation, Origin, Scope, Subject, node
from rules.life import BACK_AFTER

_WELL = r"(?:back|fine|ok(?:ay)?|good|normal|clean|healthy|working|works|up|recovered)"
# back up after a reboot | after the reboot it is fine | rebooted and clean since | 重启以后又好了
_ENDED = lazy(
    rf"(?<![a-z]){_WELL}(?: again)? (?:after|since)(?: an?| the)? (?:reboot|power cycle|restart)"
    rf"|(?<![a-z])(?:after|since)(?: an?| the)? (?:reboot|power cycle|restart),?(?: \w+){{0,3}} {_WELL}(?![a-z])"
    r"|(?:errors?|xids?|it|they|that|problems?|issues?|messages?|fault)\s+(?:is|are|was|were|has|have|went|all|been|now)?\s*gone (?:after|since|with)(?: an?| the)? (?:reboot|power cycle|restart)"
    rf"|(?<![a-z])(?:rebooted|power cycled)(?: it| the node| the host| the machine)?,?(?: and| since| now)?(?: \w+){{0,4}} {_WELL}(?![a-z])"
    r"|(?<![a-z])(?:before|until|prior to)(?: the| a| our| last| yesterday's| this morning's){0,2} (?:reboot|power cycle|restart)"
    r"|重启(?:以后|之后|过后|后|完|过|了)?[,，]?(?:又|就|都|也|已经?|现在|它|节点|机器|卡|一切|目前|到现在|至今|再){0,4}(?:好了|正常|恢复|没事|没再|没有再|没有了|没出现|未再|起来了|回来|认到|识别|能用|可用)"
    r"|重启[^。；]{0,8}(?:卡|gpu|节点|机器)\s*(?:又|再次|重新){0,2}(?:出现|回来|认到|识别)"
    r"|重启(?:以|之)?前",
    re.IGNORECASE,
)
_AGAIN = lazy(
    r"(?<![a-z])(?:again|reappear\w*|still there|recurr\w*) (?:after|since|on)|(?:s?xids?|errors?|faults?|it)\s*(?:[0-9]+\s*)?(?:came|comes|has come|is|was) back"
    r"|(?:after|since)[a-z ]{0,24}(?:reboot|restart)[^.;]{0,30}(?<![a-z])again(?![a-z])|又(?:报|掉)|(?<!卡)(?<!gpu)(?<!gpu )又出现",
    re.IGNORECASE,
)


def ordered(query: Query) -> Query:
    """`query`, its events put ahead of the reboot that ended them, where one is told of."""
    told = [o for o in query.observations if o.origin is Origin.TOLD and isinstance(o.value, Event)]
    again = _AGAIN.search(query.text) or any(o.fact == BACK_AFTER for o in query.observations)
    if not told or again or not _ENDED.search(query.text):
        return query
    hosts = dict.fromkeys(o.subject.up(Scope.NODE) or node() for o in told)
    return replace(
        query,
        unread=tuple(clause for clause in query.unread if not _ENDED.search(clause)),
        observations=(
            *(replace(o, at=1, clock=Clock.MONOTONIC) if o in told else o for o in query.observations),
            *(_boot(told[0], host) for host in hosts),
        ),
    )


def _boot(like: Observation, host: Subject) -> Observation:
    return replace(like, fact="boot", subject=host, value=Event(None, {}), at=2, clock=Clock.MONOTONIC)
