"""What is asked of files that were given, by the shape of the sentence: which of the things in them, when, how often, whether one
thing caused another. Of a machine, or of nothing, the same words may ask something else.
"""

from __future__ import annotations

import re
from dataclasses import replace

from assistant.intent import host_memory
from assistant.intent.after import became, names_cure, prevents
from assistant.intent.caused import caused
from assistant.intent.changed import changed
from assistant.intent.extremes import extreme
from assistant.intent.kinds import asks_of_others
from assistant.intent.lines import names_any
from assistant.intent.query import Intent, Query
from assistant.intent.steps import asked as steps
from assistant.intent.suspicion import either_of, suspect_of
from assistant.intent.topics import EXACT
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


# how do I fix it | 怎么恢复: of what was found, and no thing by name
_MEND = lazy(
    r"^\W*(?:so |and |ok )?(?:how|what) (?:do|can|could|should|to|would)(?: (?:i|we|you))? (?:do to )?(?:fix|recover|repair|solve|resolve|restore|mend|clear|get rid of)(?: from)?(?: (?:it|this|that|them|things|the (?:problem|issue|error|fault)))?[\s?.!]*$"
    r"|^\W*(?:那|现在|这个?)?(?:该|应该|要|能)?(?:怎么|如何|怎样|咋)(?:才能|去)?(?:恢复|修复?|修好|解决|处理|搞定|弄好|复原|救)(?:它|这个?|一下|呢)?(?:问题|故障)?[?？]?$",
    _I,
)
# 这卡要不要换 | 需不需要重启: a yes or a no, whatever words of it a page shares
_SHALL = lazy(
    r"(?:要不要|该不该|需不需要|用不用|有没有必要|有必要|得不得|是不是(?:要|该|得|需要)|需要|用得着)(?:先|马上|立刻|直接|去)?(?:把?它)?(?:换|更换|修|返修|返厂|报修|送修|重启|复位|重置|排空|下线|隔离|停)[^，。]{0,6}$",
    _I,
)
_FINE = lazy(
    rf"{_L}(?:ok|okay|fine|good|well|healthy|safe|usable|affected|unaffected|keep|run|running|stay|use|used|trust|work|working|problems?|wrong|broken|too){_R}|正常|好的?吗|没事|问题|能|可以|影响|坏",
    _I,
)
_COMPARES = lazy(rf"{_L}(?:than|which|what|why|how|when|where){_R}|比|为什么|为啥|哪|怎么|多少", _I)
# 有没有问题 | 这日志有问题吗: whether anything is wrong, and not what else it could be
_ANY_WRONG = lazy(
    r"^\W*(?:请问|帮忙|看看|看下|看一下|这里?|那|这个|这份|这段|里面?|中|日志|文件|输出|结果|现在|目前|机器|节点|整体|到底|\s)*(?:有没有|有无|是不是有|是否有|有|出)(?:什么|啥|任何|了)?(?:问题|毛病|故障|异常|错误|报错|不对)(?:的?地方)?了?(?:吗|么|嘛|没有?|不)?[?？]?\s*$",
    _I,
)
_LASTED = lazy(
    rf"{_L}how long (?:did|was|has|had|have) (?:it|this|that|they|the [a-z0-9 ]{{2,30}}?) (?:last(?:ed)?|take|taken|been|down|out|off|gone|away|slow|hang(?:ing)?|hung|stuck|stall(?:ed)?|waiting|pending|blocked|unreachable|unavailable)|(?:持续|等|挂|断|卡|停|中断|排队|坏|慢)了?(?:有)?(?:多久|多长时间|多少分钟|几分钟|几个?小时)",
    _I,
)
_FIRST_LAST = lazy(
    rf"{_L}(?:first and (?:the )?last|last and first|when (?:was|is|did) (?:it |the )?(?:first|last)|since when and){_R}|第一次.{{0,6}}最后一次|最后一次.{{0,8}}(?:时候|时间|几点|何时)|第一次.{{0,8}}(?:时候|时间|几点|何时)|最[早初先].{{0,6}}最[晚后]",
    _I,
)
_PRICED = lazy(
    rf"[$€£¥]|{_L}(?:usd|eur|dollars?|euros?|pric\w*|money|expens\w*|budget|bill\w*|cheap\w*|per (?:gpu )?hour|spend|spent|cents?|worth){_R}|元|钱|费用|价格|预算|成本|美元|多贵",
    _I,
)
_OUTAGE = lazy(rf"{_L}(?:outage|downtime|incident){_R}|停机|故障(?:损失|成本)|宕机", _I)  # what that costs is money
_NEED = lazy(
    r"^\W*(?:so |and |then )?(?:do|will|would|should) (?:i|we|it) (?:really |now )?(?:need|want|buy|get|require) (?:a |an |another |more |some |the )?(?:bigger|larger|better|faster|newer|different|other|new|second|more|another)(?: [a-z0-9-]+){1,4}[\s?.!]*$|(?:需要|要)(?:换|买|加|用)?(?:更大|更好|更多|更快|另一)[^，。]{0,8}(?:吗|么|[?？])$",
    _I,
)
_MEANS = lazy(
    rf"{_L}(?:means?|meaning|definition|define|explain|stands? for|what(?:'s| is| are) (?:an? )?(?:x?xid|sxid|[a-z-]+)[\s?.!]*$){_R}|意思|含义|解释|是什么[?？]?$",
    _I,
)


def _of_what_is_here(query: Query, text: str) -> bool:
    """Whether an answer from a book, or of prices, would say nothing of the files: what it costs the job, what rank 5 did last."""
    if query.intent is Intent.COST:
        return not _PRICED.search(text) and not _OUTAGE.search(text)
    if query.intent is not Intent.EXPLAIN or query.slots.xid or query.slots.sxid or _MEANS.search(text):
        return False
    of = query.slots
    return _NEED.search(text) is not None or bool(not query.page and (of.rank or of.pid or of.job or of.node))


# Which remedy it takes, and whether one may be taken: decided by what the files show, and in general only where that is asked.
_REMEDIES = frozenset(
    f"advice {name}"
    for name in ("reset-or-reboot", "reset-reboot-or-return", "return-or-reboot", "reset-beside-jobs", "when-to-return-a-gpu", "reseat-or-rma")
)  # fmt: skip
_OF_ALL = lazy(
    rf"{_L}(?:difference|differ|in general|generally|usually|when (?:should|do|does|is|to)|how many|how long|policy|rule of thumb|an? (?:gpu|card|node|reset|reboot|rma) (?:is|does|helps|takes))(?![a-z])|区别|一般|通常|什么时候|多少次",
    _I,
)


_OF_HEAT = lazy(r"heat|(?<![a-z])hot|thermal|过热|温度", _I)  # the symptom has its temperatures


def meant(query: Query) -> Intent | None:
    """The wish behind a question about what was given; None where its words show none of these."""
    text = _bare(query)
    if query.pasted or len(text) > LONG:
        return None
    if _CHANGE.search(text) or prevents(text) or _MEND.search(text):
        return Intent.NEXT
    named = any(t.score >= EXACT for t in query.topics)  # "difference between 94 and 95" asks for these
    if changed(text) and not named and query.intent not in (Intent.WHATIF, Intent.WHYNOT, Intent.WHY):
        return Intent.EVENTS
    if steps(text) == "resume" or _ANY_WRONG.search(text):
        return Intent.DIAGNOSE
    if query.intent in (Intent.EXPLAIN, Intent.FIX, Intent.UNKNOWN, Intent.PROBE) and _SHALL.search(text):
        return Intent.VERDICT
    if query.intent is Intent.EXPLAIN and query.page in _REMEDIES and not (_OF_ALL.search(text) or _MEANS.search(text)):
        return Intent.VERDICT
    if asks_of_others(text) and _FINE.search(text) and not _COMPARES.search(text):
        return Intent.VERDICT
    if _LASTED.search(text) or (_FIRST_LAST.search(text) and not _MORE.search(text)):
        return Intent.EVENTS
    if _of_what_is_here(query, text):
        return Intent.DIAGNOSE
    if became(text) is not None and (query.intent is not Intent.RERUN or names_cure(text)):
        return Intent.VERDICT  # what came of it stands in them; "is it fixed now" in a talk looks again
    if caused(text) is not None:
        return Intent.CAUSE
    if (suspect_of(text) is not None or either_of(text) is not None) and not _OF_HEAT.search(text):
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
    page = "" if query.page in _REMEDIES else query.page
    return replace(query, intent=wish, page=page, observations=() if asks else query.observations)


def _bare(query: Query) -> str:
    """The sentence without the names of its files: "gpu3.log" names no GPU."""
    text = query.text
    for name in query.slots.file:
        text = text.replace(name, " ")
    return text
