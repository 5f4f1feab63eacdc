"""Whether it is asked what became of a fault: "is it still there after the reset?", "did it come back?", 重启之后好了吗.

Asked of files that were given this is answered from what they tell behind the reset, and is no wish to look again.
"""

from __future__ import annotations

import re
from enum import StrEnum

from knowledge.lazy import lazy

_I = re.IGNORECASE
_CURE = r"(?:(?:gpu|driver|node|host|machine|server|cold|warm|hard|last|second|full)[ -])*(?:resets?|re-?boots?|re-?starts?|re-?loads?|power[ -]?cycles?|re-?seat(?:ing)?|cure|repair|fix|boot|update|upgrade|swap|replacement)"
_CURE_ZH = r"(?:重启|复位|重置|重载|重新加载|重新启动|断电|上电|冷启动|插拔|修复|维修|升级|换卡|换线)"
_ASKS = r"^\W*(?:(?:so|and|but|ok|then|now|well)\W+)?"
_THING = r"(?:it|this|that|they|these|those|everything|things|(?:(?:the|my|our|this|that|its?|any|a) )?(?:[a-z0-9_:./-]+ ){0,4}?[a-z0-9_:./-]+)"


class Became(StrEnum):
    """What of it is asked."""

    STATE = "state"  # is it still there, is it up again
    CURED = "cured"  # did the reset help
    HELD = "held"  # how long did the reset hold
    TRIED = "tried"  # was it rebooted at all
    AHEAD = "ahead"  # will it come back


_AHEAD = lazy(
    rf"{_ASKS}(?:will|would|might|could|can) {_THING} (?:just |only |ever )?(?:come back|recur|return|happen again|reappear|re-?occur|fail again|break again)(?![a-z])"
    r"|(?:会不会|会|能)(?:再|又|还)?(?:次)?(?:出现|发生|复发|掉|坏|报错?)(?:吗|么)?[?？]?$|会不会再|还会(?:再)?(?:出现|发生|复发|掉|坏)",
    _I,
)
_HELD = lazy(
    rf"(?<![a-z])how long (?:did|has|was|were) (?:the |that |this |our )?(?:{_CURE} (?:hold|held|last|help|work|stick|keep)|it (?:hold|last|stay|quiet|ok|fine|good|clean|up)\w*(?: \w+)? (?:after|since) (?:the |that )?{_CURE})"
    rf"|{_CURE_ZH}(?:之?后|以后)?.{{0,4}}(?:撑|管|维持|坚持|好|正常)了?多久|{_CURE_ZH}(?:之?后|以后)多久(?:又|再|就)",
    _I,
)
_TRIED = lazy(
    rf"{_ASKS}(?:(?:was|were|is) there (?:a|an|any)|did (?:any(?:one|body)|some(?:one|body)|they|ops|it|the (?:node|machine|host|driver|gpu)) (?:try|do|get|have)?(?: a| an)?) ?(?:[a-z]+ )?{_CURE}(?![a-z])(?!.{{0,30}}(?:help|fix|work|solve))"
    rf"|{_ASKS}(?:was|were|has|have) (?:the |that |a |any )?{_CURE} (?:been )?(?:done|performed|carried out|run|executed|made|tried)(?![a-z])"
    rf"|{_ASKS}(?:was|were|has|have|did) (?:the |my |our |this )?(?:it|node|machine|host|server|gpu|card|driver|box)s? (?:been |ever )?(?:re-?boot|reset|re-?load|re-?start|power[ -]?cycl)\w*"
    rf"|(?:有没有|是否|有无)(?:人)?(?:被|做|过|执行|尝试)?(?:过)?{_CURE_ZH}|{_CURE_ZH}过(?:吗|没|么)",
    _I,
)
_CURED = lazy(
    rf"{_ASKS}(?:did|does|has|have) (?:the |a |that |this |our |my )?(?:{_CURE}|resetting(?: it)?|rebooting(?: it)?|restarting(?: it)?|reloading(?: \w+){{0,2}})(?: attempt)? (?:really |actually |finally )?(?:help|work|fix|solve|cure|succeed|clear|mend|repair|go through|do any|take)\w*"
    rf"|{_ASKS}(?:was|is) (?:the |that |this |our )?{_CURE}(?: attempt)? (?:successful|enough|sufficient|ok|okay|effective|any good|a success)(?![a-z])"
    rf"|{_CURE_ZH}(?:之?后|以后)?(?:是否|到底|真的)?(?:成功|有用|管用|有效|生效|起作用|奏效|解决)(?:了)?(?:吗|没|么|没有|不)?",
    _I,
)
_GOOD = r"(?:up|back(?: up| online| again)?|over|gone|fixed|resolved|solved|cleared|recovered|healed|alive|online|finished|reachable|healthy again|ok again|fine again|working again|quiet)"
_STATE = lazy(
    rf"{_ASKS}(?:is|are|was|were|does|do|did|has|have) (?!(?:anything|something|what) else){_THING} still (?!(?:safe|usable|under|need|use|ok|okay|fine|good|worth|work|run|train|make|in warranty|possible|recommend|be (?:used|safe)))[a-z]+"
    rf"|{_ASKS}(?:is|are|was|were) (?:it|this|that|they|(?:the|my|our) (?:[a-z0-9_-]+ ){{1,3}}?)\s*(?:really |all |now |already )?{_GOOD}(?: now| again| yet| by now| already| for good| at the end)?\s*(?:(?:after|since|at the end|by the end)(?![a-z]).{{0,40}})?[?.!\s]*$"
    rf"|{_ASKS}(?:did|has|have|does) {_THING} (?:ever |really |just |finally )?(?:(?:come|came|comes?) (?:back|up again)|recur\w*|return(?:ed)?|happen(?:ed)? again|re-?appear\w*|re-?occur\w*|recover\w*|go(?:ne)? away|went away|clear(?:ed)? up|heal\w*|stay(?:ed)? (?:gone|quiet|up|fixed|down)|fail(?:ed)? again|stop(?:ped)? after)(?![a-z])"
    rf"|{_ASKS}(?:(?:is|are|was|were) {_THING} (?:ok|okay|fine|good|clean|healthy|quiet|normal|better)|any(?:thing)?(?: new| more| other)?(?: errors?| xids?| faults?| problems?)?|(?:was|were|is|are) there (?:any(?:thing)?|more|new)(?: [a-z]+){{0,3}}|what (?:happened|came)) (?:[a-z]+ ){{0,2}}?(?:after|since) (?:the |that |this |our |my )?{_CURE}"
    rf"|{_CURE_ZH}(?:之?后|完|以后|了(?:之?后|以后)?)[^，。]{{0,8}}?(?:好了?|恢复了?|正常了?|还[在有报是会]?|又|再|消失了?|没了|回来了?|解决了?|起来了?|怎么样|如何)[^，。]{{0,6}}?(?:吗|没|么|没有|[?？])"
    rf"|{_ASKS}(?:does|do|did|is|are|can) {_THING} (?:answer(?:ing)?|respond(?:ing)?|work(?:ing)?|run(?:ning)?|reachable|visible|there|up) again(?![a-z])"
    r"|^[^，。?？怎如]{0,12}(?:恢复|修好|缓过来)(?:过来)?了(?:吗|没有?|么)[?？]?$"
    r"|^\W*(?:现在|目前|后来|最后|最终|那)?(?:它|这个?|错误|故障|问题|链路|网络|网口|节点|机器|gpu|卡|显卡|服务|任务)?(?:现在|目前|后来|最后|最终)?(?:都|已经|是否)?(?:好|恢复|通|修好|解决|正常|起来|消失|没|回来|结束|缓过来)了(?:吗|没有?|么)[?？]?$"
    r"|还在(?:吗|不|么|报|掉|断|抖|卡|出|[?？])|还(?:在)?(?:报|掉|断|抖|出)(?:错|着|现|卡)?(?:吗|么|没)|(?:后来|之后|以后|后面)?(?:又|再次?)(?:出现|发生|报错?|掉卡?|断|复发|坏)(?:了|过)?(?:吗|没|么)|有没有(?:再|又)(?:次)?(?:出现|发生|报|掉|断)|复发了?(?:吗|没)",
    _I,
)
_SHAPES = ((Became.AHEAD, _AHEAD), (Became.HELD, _HELD), (Became.TRIED, _TRIED), (Became.CURED, _CURED), (Became.STATE, _STATE))  # fmt: skip
_WORDS = lazy(rf"(?<![a-z]){_CURE}(?![a-z])|{_CURE_ZH}", _I)


def became(text: str) -> Became | None:
    """What is asked of the life of a fault; None where a sentence asks nothing of the kind."""
    return next((kind for kind, shape in _SHAPES if shape.search(text)), None)


def without_cure(text: str) -> str:
    """The text without what was done about it: of "did the link come back after the reset" the link is asked about."""
    return _WORDS.sub(" ", text)


def names_cure(text: str) -> bool:
    """Whether a text names something that was done about it."""
    return _WORDS.search(text) is not None


def prevents(text: str) -> bool:
    """Whether it is asked how what was found is kept from coming back: "how do I stop it from happening again?"."""
    return _PREVENT.search(text) is not None


_PREVENT = lazy(
    r"(?<![a-z])(?:how (?:do|can|could|to|should|would|might)|what (?:can|should|do)|(?:is there )?a(?:ny)? way to)(?: (?:i|we|you|one))?(?: do)?(?: to)? (?:prevent|avoid|stop|keep) (?:it|this|that|them|these|such (?:a |an )?(?:things?|errors?|faults?|crash(?:es)?))(?: from)?(?: (?:happening|coming back|recurring|occurring|reoccurring|returning|breaking|failing|to happen|going wrong))?(?: again| in (?:the )?future| next time)?[\s?.!]*$"
    r"|so (?:that )?(?:it|this) (?:does|will|won'?t|doesn'?t)(?: not|n't)? (?:happen|come back|occur) again|(?<![a-z])(?:how|what).{0,40}(?:never|not) happen again"
    r"|(?:怎么|如何|怎样|怎么才能|怎样才能|有什么办法)(?:才能|能|可以)?(?:防止|避免|预防|杜绝|阻止)(?:它|这种?|这个|此类|类似)?(?:问题|错误|情况|故障|事情|事)?(?:再|再次|又|以后|下次)?(?:次)?(?:发生|出现|复发|重演)?(?:吗|呢)?[?？]?$|下次(?:怎么|如何)(?:避免|防止|预防)|(?:怎么|如何)(?:让它|才能|保证)?(?:以后)?不再(?:发生|出现|复发)",
    _I,
)
