"""Whether a sentence asks if one suspected thing is the cause: "is it the power cap?", "did the driver do it?", 是显存不够吗; or which
of two is: "is it the cable or the switch?", 是线缆还是网卡的问题."""

from __future__ import annotations

import re

from knowledge.lazy import lazy
from knowledge.suspects import Suspect, suspected

_I = re.IGNORECASE
_ASKS = r"^\W*(?:(?:so|and|but|ok|then|now|well)\W+)?"
_IT = r"(?:it|this|that|these|they|(?:the|my|our) (?:problem|issue|fault|cause|reason|root cause|culprit|bottleneck|slowdown|crash|hang|failure|error)s?)"
_OF = r"(?:caused by|because of|due to|down to|related to|to do with|the fault of|from|about|on)"
_SHAPES = tuple(
    lazy(shape, _I)
    for shape in (
        # is it the power cap? | could this be a cable problem? | is the slowdown caused by the network?
        rf"{_ASKS}(?:isn'?t|is|are|was|were|could|can|might|may|would) {_IT} (?:be )?(?:really |maybe |perhaps |just |only |possibly |not )*(?:{_OF} )?(?:(?:a|an|the|my|our|some|too much|too little) )?(?P<a>[a-z0-9/ .-]{{2,40}}?)(?:['’]s)?(?: (?:problem|issue|fault|trouble|error|failure|related|thing))?[\s?.!]*$",
        # did the driver cause it? | does heat do this?
        rf"{_ASKS}(?:did|does|do|could|can|might|would|has|have) (?:the |my |our |a |an |some )?(?P<a>[a-z0-9/ .-]{{2,40}}?) (?:caused?|do|done|make|trigger(?:ed)?|break|broken?|kill(?:ed)?|explain|be behind|be responsible for|be the reason for) (?:it|this|that|these|all this|{_IT})[\s?.!]*$",
        # is the data loader slow? | is my gpu memory bad? | is the network to blame?
        rf"{_ASKS}(?:is|are|was|were) (?:the |my |our |an? |one of (?:the|my|our) |any )(?P<a>[a-z0-9/ .-]{{2,40}}?) (?:really |too |just )?(?:slow|bad|broken|faulty|defective|to blame|at fault|guilty|responsible|(?:the )?(?:problem|cause|reason|culprit|bottleneck|issue)|a problem|an issue|overheating|involved)[\s?.!]*$",
        # is a power cap the cause
        rf"{_ASKS}(?:is|was|are|were) there (?:a|an|any|some) (?P<a>[a-z0-9/ .-]{{2,40}}?) (?:problem|issue|fault|trouble|error)s?[\s?.!]*$",
        r"^\W*(?:那|这|它|到底|应该|请问)*(?:是不是|会不会是|难道是|可能是|不会是|是)(?:因为|由于|由)?(?P<a>[^，。,?？]{1,12}?)(?:的)?(?:问题|原因|锅|故障|毛病)?(?:导致|引起|造成)?(?:的)?(?:吗|么|吧|嘛)?[?？]?$",
        r"^\W*(?:这个?|它)?(?:和|跟|与)(?P<a>[^，。,?？]{1,12}?)(?:有没有|有无|有)(?:什么)?关系?(?:吗|么|嘛)?[?？]?$",
        r"^\W*(?P<a>显卡|gpu|卡|硬件|网卡|网络|驱动|电源|磁盘|存储|显存|散热|风扇|线缆|光模块|数据加载|cpu)(?:是不是|是否|会不会)?(?:坏|挂|太慢|慢|有故障|有问题|出问题)了?(?:吗|么|没|没有|嘛)?[?？]?$",
    )
)  # fmt: skip
_WHY_NOT = lazy(
    r"^\W*why (?:is it |isn'?t it |not |couldn'?t it be |can'?t it be )+(?:(?:a|an|the|my|our) )?(?P<a>[a-z0-9/ .-]{2,40}?)(?: (?:problem|issue|fault))?[\s?.!]*$"
    r"|^\W*(?:为什么|为何|为啥|凭什么)(?:就)?(?:不是|不会是|不可能是|排除)(?P<b>[^，。,?？]{1,12}?)(?:的)?(?:问题|原因|锅|故障)?(?:呢)?[?？]?$",
    _I,
)
# more than one thing, or none: "is it the cable or the switch" is another question
_NOT_ONE = lazy(
    r"(?<![a-z])(?:or|and|vs|versus|still|now|ok|okay|fine|normal|safe|up|over|back|first|last|here)(?![a-z])|还是|什么|哪|谁|怎么|多少|正常|第"
)
# is it the cable or the GPU? | cable or transceiver? | bad riser or bad card | 是线缆问题还是 GPU 坏了
_EITHER = tuple(
    lazy(shape, _I)
    for shape in (
        r"^\W*(?:(?:so|and|but|then|now)\W+)?(?:(?:is|was|are|would|could|do (?:you|we) (?:think|blame)|should (?:i|we) (?:blame|suspect|swap|replace)|what (?:is|do i (?:swap|replace))|which is it|whose fault is (?:it|this))\W+)?"
        r"(?:(?:it|this|that|the (?:problem|fault|cause|culprit)|bad|broken|is|first|with)\W+)*(?:(?:a|an|the|my|our|bad|broken|faulty)\s+)*(?P<a>[a-z][a-z0-9 /'-]{1,30}?)(?:\s+(?:problem|issue|fault))?,?\s+or\s+(?:is it\s+|was it\s+)?"
        r"(?:(?:a|an|the|my|our|bad|broken|faulty)\s+)*(?P<b>[a-z][a-z0-9 /'-]{1,30}?)(?:\s+(?:problem|issue|fault|itself|that is bad|is bad|broken))?[\s?.!]*$",
        r"^\W*(?:那|这|它|到底|究竟|请问)*(?:应该)?(?:是|算|换|先换|该换)?(?P<a>[^，。,?？是]{1,10}?)(?:的)?(?:问题|原因|锅|故障|毛病|坏了?)?[，,]?还是(?:换)?(?P<b>[^，。,?？]{1,10}?)(?:的)?(?:问题|原因|锅|故障|毛病|坏了?)?(?:呢|啊)?[?？]?$",
    )
)  # fmt: skip
_ANAPHORA = lazy(r"^(?:it|this|that|there|one|same)$", _I)


def asked(text: str) -> str:
    """The words of the one thing that is suspected; empty where a sentence suspects none, or several."""
    found = next((m for shape in (*_SHAPES, _WHY_NOT) if (m := shape.search(text)) is not None), None)
    if found is None:
        return ""
    thing = next((g for g in found.groups() if g), "").strip()
    return "" if _NOT_ONE.search(thing) or _ANAPHORA.match(thing) else thing


def suspect_of(text: str) -> Suspect | None:
    """The one thing that is suspected; None where none is, or no hypotheses are known of it."""
    thing = asked(text)
    return suspected("hardware" if _A_GPU.fullmatch(thing) else thing) if thing else None


def either_of(text: str) -> tuple[Suspect, Suspect] | None:
    """The two things of which one is suspected; None where a sentence asks no such thing, or both are one."""
    found = next((m for shape in _EITHER if (m := shape.search(text)) is not None), None)
    if found is None:
        return None
    one, other = (suspected("hardware" if _A_GPU.fullmatch(found[g].strip()) else found[g]) for g in "ab")
    return (one, other) if one is not None and other is not None and one is not other else None


_A_GPU = lazy(r"(?:my |the |a )?(?:gpus?|(?:graphics |video )?cards?|显?卡)(?:坏了?|有?故障)?", _I)  # that it is broken
