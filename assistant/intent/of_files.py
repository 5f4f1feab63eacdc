"""What is asked of files that were given, by the shape of the sentence: which of the things in them, when, how often, whether one
thing caused another. Of a machine, or of nothing, the same words may ask something else.
"""

from __future__ import annotations

import re
from dataclasses import replace

from assistant.intent import host_memory
from assistant.intent.caused import caused
from assistant.intent.changed import changed
from assistant.intent.extremes import extreme
from assistant.intent.lines import names_any
from assistant.intent.query import Intent, Query
from assistant.intent.topics import EXACT
from assistant.intent.steps import asked as steps
from assistant.intent.window import window_of
from knowledge.lazy import lazy

LONG = 160  # characters: who tells more than he asks is answered from what he tells
_I = re.IGNORECASE
_L, _R = "(?<![a-z])", "(?![a-z])"
_HAPPENED = lazy(
    rf"{_L}(?:what|which|any(?:thing)?|list|show|errors?|events?|happen\w*|occur\w*|logged|went wrong){_R}|发生|什么|哪些|有没有|报错|错误|事件|怎么了",
    _I,
)
_DIGIT = lazy("[0-9]")
_COUNTS = lazy(
    rf"{_L}how (?:often|many times){_R}|{_L}how many (?!ranks are there|gpus are|cards are|nodes are)(?:[a-z0-9-]+ ){{1,3}}?(?:were|was|are there|does|did|have|has|had|got|happen\w*|occur\w*|failed|timed|went|died|crashed|do you see|stand|show){_R}|几次|多少次|几回|几条|多少条",
    _I,
)
_WHEN = lazy(
    rf"{_L}(?:when (?:was|were|did|has|is|exactly)|(?:at )?what time|since when){_R}|什么时候|何时|几点|什么时间", _I
)
_FIRST = lazy(
    rf"{_L}(?:the )?first (?:error|sign|event|fault|failure|problem|thing that)|{_L}earliest|第一个(?:错误|报错|异常|问题)|最早的?(?:错误|报错|异常)",
    _I,
)
_NOUN = r"(?:gpus?|cards?|nodes?|hosts?|machines?|servers?|ranks?|tasks?|nics?|hcas?|ports?|interfaces?|adapters?|jobs?|pids?|process(?:es)?|programs?)"
_WHICH = lazy(
    rf"{_L}which (?:xid|error|fault|problem|issue|finding)s? (?:is|are|was|were) (?:the )?(?:worst|most [a-z]+){_R}|{_L}which (?:of (?:the|my|these|those|our) )?(?:[a-z]+ ){{0,2}}?{_NOUN}{_R}|{_L}what (?:{_NOUN}|job id|job number|host ?name|node name) (?:is|was|were|did|has|had|ran|got|failed|hit|went|are){_R}"
    rf"|哪(?:个|一?张|一?块|些|几?台|几张|几块|几个)?\s*(?:gpu|显?卡|节点|机器|主机|服务器|rank|任务|作业|网卡|网口|端口|进程|程序)|[是的]哪[张块台个]",
    _I,
)
_VALUE = lazy(
    rf"{_L}(?:what(?:'s| is| are) the|how (?:much|high|large|big)|how many [a-z]+ are there){_R}|几个|多少个|是多少|多高|多大|几度",
    _I,
)
_IN_GENERAL = lazy(
    rf"{_L}(?:means?|meaning|normal\w*|usual\w*|typical\w*|should|safe|allowed|limits?|thresholds?|wrong|problems?|issues?|difference|lost|wasted){_R}|正常|意思|通常|一般|应该|区别|算",
    _I,
)
_CHANGE = lazy(
    rf"{_L}what (?:should|do|must|can|could) (?:i|we) (?:need to |have to )?(?:change|adjust|do|fix) (?:before|to|when|in order)(?![a-z]).*{_L}(?:re)?(?:submit|start|run|queue|launch)|(?:重新?提交|重跑|重启作业).{{0,4}}前.{{0,8}}(?:改|调|做)",
    _I,
)
_MORE = lazy(
    rf"{_L}why{_R}|{_L}(?:kernels?|operators?|layers?|ops?)(?![a-z])|{_L}(?:should i buy|better|best|cheaper|recommend\w*|use for|use next|faster)|为什么|为啥",
    _I,
)
_CAUSES = lazy(
    rf"{_L}(?:hardware|hw){_R}.{{0,60}}{_L}(?:codes?|programs?|software|jobs?|scripts?|user'?s?){_R}|{_L}(?:codes?|programs?|software|jobs?|scripts?){_R}.{{0,60}}{_L}(?:hardware|hw){_R}"
    rf"|{_L}(?:is|was) (?:it|this|that|the problem) (?:the fault of |caused by |because of |due to )?(?:the |my |our |a )?(?:hardware|code|program|script|network|fabric)(?:'s)?{_R}"
    rf"|^\W*(?:so |and )?(?:is|was|are) .{{2,40}}{_L}(?:hardware|software)(?: (?:problem|fault|issue|error|failure|related))?[\s?？.]*$"
    r"|是(?:不是)?(?:我的|我们的|用户的)?(?:网络|硬件|代码|程序|脚本)(?:的|出的?)?(?:问题|故障|原因|锅)",
    _I,
)


def meant(query: Query) -> Intent | None:
    """The wish behind a question about what was given; None where its words show none of these."""
    text = _bare(query)
    if query.pasted or len(text) > LONG:
        return None
    if _CHANGE.search(text):
        return Intent.NEXT
    if changed(text) and not any(
        t.score >= EXACT for t in query.topics
    ):  # "difference between 94 and 95" asks for these
        return Intent.EVENTS
    if caused(text) is not None:
        return Intent.CAUSE
    if host_memory.modules(text):
        return Intent.WHICH
    if extreme(text) is not None:
        return Intent.WHICH
    if window_of(text, "") is not None and _HAPPENED.search(text) and not _MORE.search(text):
        return Intent.EVENTS
    shapes = ((_COUNTS, Intent.EVENTS), (_WHEN, Intent.EVENTS), (_FIRST, Intent.EVENTS), (_WHICH, Intent.WHICH), (_CAUSES, Intent.CAUSE))  # fmt: skip
    found = [
        (at.start(), wish)
        for shape, wish in shapes
        if (at := shape.search(text)) is not None and (shape is not _WHEN or names_any(text))
    ]
    more = _MORE.search(text)
    if found and (more is None or more.start() > min(found)[0]):
        return min(found)[1]  # what is asked first: "how many times was it, and which card?"
    if query.facts and query.intent in (Intent.EXPLAIN, Intent.DIAGNOSE) and _VALUE.search(text) and more is None and not _IN_GENERAL.search(text):  # fmt: skip
        return Intent.PROBE
    told = query.intent is Intent.EXPLAIN and (query.page or _DIGIT.search(text))  # "MFU 43 %, is that good?"
    if query.intent in (Intent.UNKNOWN, Intent.RERUN, Intent.EXPLAIN) and steps(text) and not told:
        return Intent.DIAGNOSE
    return None


def of_given(query: Query) -> Query:
    """A sentence as it is meant of what was given. One that asks which, when or how many states nothing: its words are no evidence."""
    wish = meant(query)
    if wish is None:
        return query
    asks = wish in (Intent.WHICH, Intent.EVENTS)
    return replace(query, intent=wish, observations=() if asks else query.observations)


def _bare(query: Query) -> str:
    """The sentence without the names of its files: "gpu3.log" names no GPU."""
    text = query.text
    for name in query.slots.file:
        text = text.replace(name, " ")
    return text
