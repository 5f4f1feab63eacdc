"""Whether a sentence is a question in general, about no machine, and which entry of knowledge answers it.

"How do I set up gres?", "FSDP or ZeRO-3?", "is it normal that the first step takes a minute?" are asked of a book: of a
look at this machine nothing would follow. The entry is the one whose own questions are most like it
(`assistant.find.asked`); where none is like it, that is said.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from assistant.find import asked
from assistant.intent import figures, tasks
from assistant.intent.query import Intent
from assistant.intent.reading import Reading
from assistant.intent.stated import stated
from knowledge.lazy import lazy

_LONG = 300  # characters: who asks in general says little else
OTHER = 0.26  # share below which a task was only reminded of by a word
MARGIN = 0.25  # by which another entry must be nearer than one that words together asked for
_STRANGE = 9.5  # weight that words of the field must have in a sentence that is otherwise not understood


class _Least(NamedTuple):
    """What an entry must have of a question to answer it."""

    share: float
    held: float


# By what the sentence would be taken for otherwise: who may have a machine or a run in mind gets the entry only where it is
# nearly the same question. Set by hand on sentences of both kinds, no finer than they tell.
_OUTRIGHT_LEAST = {
    Intent.EXPLAIN: _Least(0.64, 5.5), Intent.FIX: _Least(0.62, 5.9), Intent.VERDICT: _Least(0.62, 5.2), Intent.DIAGNOSE: _Least(0.62, 8.0),
    Intent.PROBE: _Least(0.75, 8.0), Intent.COST: _Least(0.75, 8.0), Intent.RUNBOOK: _Least(0.75, 8.0),
    Intent.UNKNOWN: _Least(0.62, _STRANGE),
}  # fmt: skip
_MAYBE_LEAST = {
    Intent.EXPLAIN: _Least(0.75, 6.0), Intent.VERDICT: _Least(0.78, 9.0), Intent.DIAGNOSE: _Least(0.8, 12.5),
    Intent.FIX: _Least(0.7, 8.0), Intent.UNKNOWN: _Least(0.75, _STRANGE),
}  # fmt: skip
_WHOLE, _FEW = 0.95, 4.0  # nearly the same question may be of few words: "which driver does CUDA 12 need"
_BESIDE = 0.1
_OF_REASON = _Least(0.8, 6.5)  # why is it so of a thing of which nothing is said to be wrong
_OF_TROUBLE = _Least(0.95, 9.0)  # ... and of one that is slow or fails, where it is the same question
_OF_SIGN = _Least(0.8, 7.0)  # what it means that something is low or fails
# How two things differ is answered by their pages: an entry that shares their names with it may be of something else about them.
_OF_DIFFERENCE = 0.85
_DIFFERS = lazy(r"(?<![a-z])differ(?:s|ence|ences|ent)?(?![a-z])|区别|差别|有什么不同", re.IGNORECASE)
LOOKS = (Intent.DIAGNOSE, Intent.VERDICT, Intent.PROBE)
_WITH_SIGNS = _Least(0.7, 9.0)  # where a remedy is asked for something that is wrong
# how do I | best way to | difference between | which should I | is it worth | pros and cons | do we need
_OUTRIGHT = lazy(
    r"(?<![a-z])how (?:do|does|can|could|should|would|to|must)(?![a-z])|(?<![a-z])how (?:many|much|long|often|big|large|far|fast|warm) .{0,60}(?:should|do (?:i|we|you) need|need(?:ed)?|is (?:ok|too|enough)|does it take|per (?:gpu|node|rack))"
    r"|(?<![a-z])(?:best|recommended|right|usual|proper|good|safest|safe|correct|easiest|fastest) (?:practices?|ways?|settings?|values?|tools?|approach|time|setup|method)(?![a-z])"
    r"|(?<![a-z])(?:difference|differences|pros and cons|trade-?offs?|rule of thumb|checklist|recommendations?) (?:between|of|for|in|when)(?![a-z])|what(?:'s| is) the difference|(?:which|what) [a-z0-9 _.-]{1,40} (?:does|do|will) [a-z0-9 _.-]{1,30} (?:want|need|require|expect|ask|have|support)(?![a-z])|(?<![a-z])how many [a-z0-9 _.-]{1,30} (?:does|do|has|have|can) (?:a|an|the|one|each)(?![a-z])|(?<![a-z])what(?:'s| is) the (?:cheapest|smallest|largest|fastest|minimum|maximum|real|actual)"
    r"|(?<![a-z])(?:which|what) [a-z0-9 /_.-]{0,50}?(?:should|shall|do|must|would) (?:i|we|one|you)(?![a-z])|(?<![a-z])(?:which|what) [a-z0-9 _.-]{0,40}?(?:is|are) (?:better|best|recommended|suitable|faster|cheaper|safer)"
    r"|(?<![a-z])when (?:should|do|shall|would|must|is it worth)(?: i| we| you| one)?(?![a-z])|(?<![a-z])is it (?:worth|better|cheaper|possible|safe|necessary|a good idea|recommended)(?![a-z])"
    r"|(?<![a-z])(?:do|does|must|would) (?:i|we|you|one) (?:really |still |also )?(?:need|have to)(?![a-z])|(?<![a-z])(?:should|shall) (?:i|we|one|you) (?:use|enable|disable|turn|set|choose|run|buy|install|upgrade|update|switch|prefer|always|quantize|mix|pin|keep|reboot .{0,20}regularly)(?![a-z])"
    r"|(?<![a-z])what (?:does|do) (?!(?:it|this|that|these|those|they|all (?:of )?(?:this|that|it))(?: all)? mean\s*(?:[^a-z\s]|and(?![a-z])|$))[a-z0-9_./ -]{1,50} (?:do|mean|stand for)|(?<![a-z])what (?:goes|belongs|should be|has to be) in(?:to)?(?![a-z])|(?<![a-z])(?:what|which) .{1,40} (?:is|are) (?:needed|required|recommended|typical|supported)"
    r"|怎么(?!办|回事|样|了|会|这|又|老|总|一直|突然)|如何|怎样|最佳实践|区别|差别|有什么不同|推荐|该不该|要不要|需不需要|有没有必要|选哪|用哪|哪个好|还是.{1,30}(?:好|合适|快)|什么时候(?:该|用|要|需要)|多少合适",
    re.IGNORECASE,
)
# should nodes run, is X needed, can I overclock, A or B?: of a kind of thing, unless what somebody does now is asked about
_OF_A_KIND = lazy(
    r"(?<![a-z])(?:should|shall) (?:[a-z0-9'-]+ ){1,4}[a-z]+|(?<![a-z])(?:is|are) [a-z0-9 _.-]{1,40} (?:needed|required|necessary|enough|supported|stable|recommended|worth|compatible|possible)(?![a-z])"
    r"|(?<![a-z])can (?:i|we|you|one) (?!use|run|start|launch|train|schedule|submit|put|keep|go|continue|trust|ship|return|resume|leave|see|get|look|check|wait|still|safely|do|place)[a-z]+|(?<![a-z])can (?:two|several|multiple|different|some|users|pods|containers|jobs|nodes|gpus)(?![a-z])"
    r"|(?<![a-z])(?:does|do) [a-z0-9 _.-]{1,40} (?:need|require|support|work with|matter)(?![a-z])|(?<![a-z])[a-z0-9_.-]+ (?:or|vs\.?|versus) [a-z0-9_.-]+(?: for [a-z0-9 _.-]+)?\s*\?\s*$|(?<![a-z])what happens (?:to|with|if|when)(?![a-z])",
    re.IGNORECASE,
)
# what is done with a machine now: a yes or a no of that one
_OF_NOW = lazy(
    r"(?<![a-z])(?:rma\w*|return(?:ed)?|replac\w+|drain\w*|reboot\w*|reset\w*|restart\w*|cordon\w*|schedul\w+|evict\w*|kill\w*|stop\w*|abort\w*|worr\w+|ignor\w+|continue|carry on|wrong|healthy|health|usable|broken|faulty|dead|ready|safe"
    r"|dangerous|keep (?:it|using|running|going|training)|use (?:it|this|that)|work(?:ing)?|idle|busy|training|ok|okay|fine|slow\w*)(?![a-z])|(?<![a-z])(?:it|this|that|them|these|those)\s*\??\s*$"
    r"|^\W*(?:那|现在)?(?:要不要|该不该|需不需要|有没有必要|用不用)(?:马上|立刻|先|直接|再)?(?:换|更换|修|重启|复位|重置|排空|下线|隔离|报修|返修|送修|停)(?:它|卡|机器|节点|机)?[吗呢啊]?\W*$",
    re.IGNORECASE,
)
# may be asked of a machine, too: why is it, is it normal, can I, X or Y?
_MAYBE = lazy(
    r"[?？吗呢]|(?<![a-z])(?:why|what|which|when|where|how|can|could|may|should|does|do|is|are|will|vs\.?|versus)(?![a-z])|为什么|为何|什么|哪|能不能|可以|正常|多少|多久|几|是不是|会不会",
    re.IGNORECASE,
)
# a sentence that points at something that was said or is looked at now, and not at things of a kind
_POINTS = lazy(
    r"(?<![a-z])(?:here|now|right now|currently|this (?:node|machine|gpu|box|server|host|card|one|job|run)|these (?:nodes|gpus)|(?:on|of) (?:this|it)|yesterday|today|tonight|last (?:night|week|hour)|since|ago|it just)(?![a-z])"
    r"|这台|这个节点|本机|本节点|这张卡|这块卡|现在|当前|刚才|刚刚|昨天|昨晚|今天|今早",
    re.IGNORECASE,
)


# is bf16 slower than fp16 | are L40S cheaper than A100: one kind of thing against another, and no machine that has become slower
_OF_TWO_KINDS = lazy(
    r"(?<![a-z])(?:is|are|would|will) (?!(?:it|this|that|they|my|our|the)(?![a-z]))[a-z0-9 _.-]{1,30}?(?:be |much |a lot |really )?(?:slower|faster|better|worse|cheaper|safer) (?:than|on|for|with)(?![a-z])(?! (?:all )?(?:the |its |my |our )?(?:others?|rest|peers?|neighbou?rs?|usual|before|normal|yesterday)(?![a-z]))",
    re.IGNORECASE,
)
_DIGIT = lazy("[0-9]")
_CODE = lazy("0x[0-9a-f]{3,}", re.IGNORECASE)  # asked about by itself: no entry like it in other words knows it
_WHY = lazy(r"(?<![a-z])why(?![a-z])|为什么|为何|为啥", re.IGNORECASE)


class General(NamedTuple):
    """A question in general, and the entry that answers it."""

    page: str = ""  # the entry: "advice slurm-gres"; empty where none is near enough
    share: float = 0.0  # how much of the question it holds
    outright: bool = False  # whether the sentence can be nothing but a question in general
    looks: bool = True  # whether a look at a machine may answer it


def general(r: Reading, intent: Intent) -> General:
    """What `r` asks in general; nothing where it is asked of a machine, a code, a process, or of a value that it tells.

    `intent`: what it would be taken for otherwise.
    """
    of = r.found.slots
    if (
        r.raw
        or r.pasted.pasted
        or len(r.said) > _LONG
        or not (_MAYBE.search(r.said) or tasks.asks_how(r.said))
        or _CODE.search(r.said)
    ):
        return General()
    if any((of.xid, of.sxid, of.pid, of.node, of.gpu, of.job, of.file, of.kernel, of.operator)) or by_id(r):
        return General()
    points = _POINTS.search(r.said) is not None
    written = _OUTRIGHT.search(r.said) is not None
    of_kind = not (points or r.signs or _OF_NOW.search(r.said)) and (written or _OF_A_KIND.search(r.said) is not None)
    of_kind = of_kind or (not points and _OF_TWO_KINDS.search(r.said) is not None)
    if not written and _tells_values(r, intent, of_kind=of_kind):
        return General()
    outright = written and not points
    least = _OUTRIGHT_LEAST[Intent.EXPLAIN] if of_kind and intent in LOOKS else _least(r, intent, outright)
    near = _near(r.said, intent)
    if near is None or least is None:
        return General(outright=outright, looks=not of_kind)
    held = _FEW if outright and intent in (Intent.EXPLAIN, Intent.UNKNOWN) and near.score >= _WHOLE else least.held
    share = max(least.share, _OF_DIFFERENCE) if _DIFFERS.search(r.said) else least.share
    taken = near.score >= share and near.held >= held
    return General(near.id if taken else "", near.score, outright, not of_kind)


def reported(r: Reading) -> str:
    """The entry about just what a sentence reports, in words that few entries have ("after the kernel update nvidia-smi cannot talk
    to the driver"). Empty where none is that near, where it names a symptom, of which the likely causes are told, or where a code or a
    process says which machine is looked at, or a rule by its name what is meant."""
    of = r.found.slots
    named = any((of.xid, of.sxid, of.pid, of.job, of.file, of.kernel, of.operator)) or by_id(r)
    if named or r.signs or r.raw or r.pasted.pasted or len(r.said) > _LONG or _POINTS.search(r.said):
        return ""
    near = asked.nearest(r.said, 1)
    if not near or not near[0].id.startswith("advice "):
        return ""
    return near[0].id if near[0].score >= _REPORTED.share and near[0].held >= _REPORTED.held else ""


def by_id(r: Reading) -> bool:
    """Whether a rule or a fact is called by the name that it is written with: words of that name are nobody's question
    ("why did you conclude sram-threshold-exceeded?")."""
    return any(name.startswith(("rule ", "fact ")) for name in r.known)


_REPORTED = _Least(0.72, 13.0)


def _tells_values(r: Reading, intent: Intent, *, of_kind: bool) -> bool:
    """Whether the sentence states a value, which is judged as it is."""
    if figures.measures(r.said):
        return True
    if of_kind or not _DIGIT.search(r.said):
        return False
    states = stated(r.said, r.found)
    return bool(states.observations) or (intent is Intent.VERDICT and states.counts)


def _least(r: Reading, intent: Intent, outright: bool) -> _Least | None:
    if r.signs and intent is Intent.FIX:
        return _WITH_SIGNS
    if intent is Intent.DIAGNOSE and not outright and _WHY.search(r.said):
        return _OF_TROUBLE if r.signs else _OF_REASON
    if r.signs and intent is Intent.EXPLAIN:
        return _OF_SIGN
    return (_OUTRIGHT_LEAST if outright else _MAYBE_LEAST).get(intent)


def _near(said: str, intent: Intent) -> asked.Near | None:
    """The entry that is nearest and answers as it is: a task answers how something is done, and a term or range has to be named,
    so that one of these comes first only where it is clearly nearer."""
    found = max((asked.nearest(core) for core in cores(said)), key=lambda near: near[0].score if near else 0.0)
    kinds = ("advice ", "howto ") if intent is Intent.FIX else ("advice ",)
    return next((n for n in found if n.id.startswith(kinds) and n.score > found[0].score - _BESIDE), None)


def cores(said: str) -> tuple[str, ...]:
    """The sentence, and of several clauses those that ask by themselves: what is told ahead of a question or behind it makes it no
    other question."""
    clauses = [c.strip() for c in _CLAUSE.split(said) if c.strip()]
    return (said, *(c for c in clauses if len(clauses) > 1 and _OUTRIGHT.search(c)))


_CLAUSE = lazy(r"[,;:?!，；：？！。]\s*|\.\s+|\s+-+\s+")


def nearer(found: General, page: str, said: str) -> bool:
    """Whether what was found is that much nearer to the question than `page`, that words together asked for."""
    return (
        bool(found.page)
        and found.page != page
        and found.share - max(asked.share(c, page) for c in cores(said)) > MARGIN
    )


def only_reminded(page: str, said: str) -> bool:
    """Whether a task shares a word or two with the question, and is not what it asks for: others are nearer to it. A clause that is
    near to nothing ("怎么查是谁") asks about what was told ahead of it."""
    best = [near[0] if near else asked.Near("", 0.0) for near in map(asked.nearest, cores(said))]
    if any(near.id == page for near in best) or any(near.score < OTHER for near in best[1:]):
        return False
    return max(asked.share(core, page) for core in cores(said)) < OTHER
