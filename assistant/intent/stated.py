"""What a sentence states as so: "volatile uncorrectable ecc is 3", "one NVLink is inactive", "7 of 8 GPUs show up".

Names, units and values are those of the fact vocabulary and of the lexicon. What was stated and could not be taken as a
fact is kept word for word: nobody may say yes over it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from assistant.intent import parts, phrases, setting, shares, symptoms, things
from assistant.intent.assumed import written
from assistant.intent.grammar import words_of
from assistant.intent.numerals import in_a_row, numerals
from assistant.intent.readings import is_content, is_number, named_in, values
from assistant.intent.slots import Named
from assistant.intent.things import About
from assistant.intent.told import TOLD
from assistant.values import Problem, parse
from knowledge.facts import FactSpec, Kind, Type, vocabulary
from knowledge.lazy import lazy
from knowledge.lexicon import Told, lexicon
from knowledge.observation import Event, Observation, Origin, Scope, Value
from knowledge.text import excerpt

MOST = 32  # facts of one sentence
_I = re.IGNORECASE
_ENDS = lazy(
    r"[;?。；！？\n，]|(?<=what now):|(?<=[a-z]):(?=\s+(?:ok|fine|good|xid|sxid|<xid>|<sxid>))|(?<=[a-z0-9]):(?=\s+(?:is|are|was|were|do|does|did|has|have)\s+[a-z<][^.;,!?:]{1,80}\?)|\.(?=\s|$)|,(?![0-9])|(?<![0-9]),|!(?=\s+[A-Z])|(?<![a-z])(?:and|but|while|whereas|with(?=\s+(?:all\s+)?(?:the\s+)?(?:others?|rest)(?![a-z])))\s+(?=(?:only\s+)?(?:one|an?other|(?:all\s+)?(?:the\s+)?others?|(?:all\s+)?the\s+rest|<gpu>|[0-9]+\s+of|[0-9]+\s+(?:are\s+|is\s+)?(?:inactive|down))(?![a-z]))|(?=其他|其余|另外)"
    r"|(?<=正常)(?=就是|但|可是|却|只是)|(?<=没问题)(?=就是|但|可是|却|只是)|(?<=没毛病)(?=就是|但|可是|却|只是)"
    r"|(?<=[吗么呢吧])\s+|\s+(?=但|不过|可是|然而|就是(?!说)|只是|唯独)",
    _I,
)
# What a question begins with; what stands ahead of it is a clause of its own, with or without a comma.
_ASKS_EN = lazy(
    r"(?<![a-z'])(?<!why )(?:can (?:i|we|it|you|this|that|they|the)|could (?:i|we|it)|should (?:i|we|it|this|that|the)|shall (?:i|we)|may (?:i|we)|"
    r"is (?:it|this|that|the (?:node|gpu|machine|card|box|server|host|hardware|system)|my|our|there|everything|all)|are (?:we|they|the|these|those|my|our|there)|am i|do (?:i|we|you)|does (?:it|this|that)|did|"
    r"will (?:it|this|that|the)|would (?:it|you|that)|what'?s?|why|hows?|which(?!\s+(?:is|are|was|has|shows?|runs?|sits?|draws?|reads?)\s+(?:at|on|in|only|just|stuck|down|[0-9]))|ready (?:for|to)|too (?:hot|high|low|slow|much)(?=\s*\?)|good to go|(?:since )?when (?:can|should|will|was|were|did|is)|where(?=\s+(?:is|are|do|does|can|did|should))|who|any (?:idea|advice)|anything (?:to|left to|i can|we can|wrong|off|odd|unusual|suspicious)|any (?:headroom|room|gain|way)|worth (?:worrying|a look|looking|caring)|"
    r"(?:(?:memory|compute|latency|bandwidth|io|cpu|network|communication)[ -]?(?:bound)? or (?:memory|compute|latency|bandwidth|io|cpu|network|communication)[ -]?bound)|(?:good|ready) to (?:go|train|run|use)|"
    r"(?:still )?(?:usable|safe|ok|okay|fine) (?:to|for)|still (?:ok|okay|fine|usable|good)|(?:ok|okay|safe|fine|usable|bad|normal|healthy)\s*\?)(?![a-z])"
    r"|(?:^\s*|(?<=[-,.;:!?]\s))(?:stop|kill|abort|pause|interrupt|keep|continue|let|leave|wait|finish)(?=[^,;.!?]{1,60}(?<![a-z])or(?![a-z]))(?![a-z])"
    # what is wished for stands first, or behind a word that wishes; "all gpus run at 99 C" wishes for nothing
    r"|(?:^\s*|(?<=[,.;:!?]\s)|(?<=please\s)|(?<=you\s)|(?<=then\s)|(?<=to\s))(?:show(?!\s+up)|explain|tell me|check|look|run|list|give me|help)(?![a-z])",
    _I,
)
_ASKS_ZH = lazy(
    "瓶颈(?:是|在)?(?:哪|什么)|能(?=[训上接撑开启起凑扛])|还?能不能|能否|可否|可不可以|要不要|该不该|是不是|是否|需不需要|还可以|还能|可以(?!看到)|能(?:继续|用|跑|好(?!几)|恢复吗|解决吗)|需要(?!复位)|要换|该换|应该怎|怎么|如何|为什么|为何|为啥|什么|有啥|哪|正常吗|有问题吗|有没有|多少|请(?:看|查|解释)|查看|看看|解释"
    "|有没有必要|有必要|(?<![必不])要(?:申请|赶紧|马上|立刻|直接|先|去|不要){0,2}(?:重启|复位|重置|reset|下线|排空|drain|隔离|停|修|报修|返修|rma|处理|管|换)(?=.{0,6}[吗么嘛不])"
    "|还?[要缺差](?:再|看|查|做|补|注意|检查|确认){0,2}(?:啥|什么|哪)"
    "|(?:要紧|严重|问题大|影响大|有影响|有事|算坏|坏了|废了|还行|ok|OK)(?:吗|么|嘛|不(?=\\W*$))|要不要紧|没(?:啥|什么|有|大)?(?:问题|事|毛病)(?:吧|吗|么|嘛)|问题不大吧|不要紧吧|还好吧|能用吧|咋[办整弄样回]|会不会|行不行|好不好|对不对"
)
_BEGINS = lazy(
    r"(?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|should(?! (?:be|have|see|show|list|read)(?![a-z]))|shall|may|might|must)(?![a-z])",
    _I,
)
_ASKS_LAST = lazy(
    r"[吗么呢]$|(?:没问题|没啥问题|没什么问题|没有问题|没大问题|没毛病|问题不大|没事|没啥事|没什么事|没大事|不要紧|不影响|可以|能用|能跑|正常|还好|还行|要紧|行|好|对|ok)吧$|[用要行好]不$|行不行|好不好|对不对|正常不|要不要紧|会不会|咋[办整弄样]|怎么半|(?:启动|运行|起来|加载|在跑|开|挂|停)了没有?$"
)
# States that nobody would mention of something in order.
_BAD = lazy(
    r"(?<![a-z])(?:fail(?:s|ed|ing|ures?)?|errors?|err|faults?|faulty|down|dead|died|inactive|missing|lost|broken?|hangs?|hung|stuck|crash\w*|could not|cannot|can'?t|unable|won'?t|doesn'?t|does not|did not|flap(?:s|ped|ping)?|"
    r"degraded|unhealthy|wrong|hot|slow(?:er|ly)?|timeouts?|timed out|drops?|dropped|corrupt(?:ed|ion)?|panic(?:s|ked)?|unstable|disconnect(?:s|ed)?|unresponsive|unkillable|uninterruptible|zombie|leak(?:s|ed|ing)?|"
    r"throttl(?:es|ed|ing)|overheat(?:s|ed|ing)?|unreachable|refus(?:es|ed)|killed|gone|disappear(?:s|ed)|mismatch|exceed(?:s|ed)|bad|weird|strange|drained|tainted|nan|oom|xid|pending|full|exhausted|used up|rejected|vanished|fell off)(?![a-z])|"
    r"坏|失败|只读|卡 ?[在着]|异 ?响|异 ?味|焦 ?味|冒 ?烟|满|用完|用光|耗尽|溢|错|掉|断|丢|异常|挂|死|慢|卡住|超时|故障|不见|不通|不动|没反应|无响应|降频|过热|烫|泄漏|崩|报警|告警|不一致|不匹配|缺|少了",
    _I,
)


class Stated(NamedTuple):
    """What a sentence states."""

    observations: tuple[Observation, ...] = ()  # of origin told
    asks: str = ""  # the clauses that ask, where others state
    unread: tuple[str, ...] = ()  # clauses that state something, and that no fact was read from
    fine: tuple[str, ...] = ()  # clauses that say that something is in order, and tell no value of it
    left: str = ""  # the sentence without the clauses that facts were read from
    denied: str = ""  # ... and the clauses that deny something
    codes: bool = False  # whether a code is reported, and not only asked about
    shown: bool = False  # whether a clause of it asks something
    counts: bool = False  # whether a number stands in what was not read


def asks_usual(text: str) -> bool:
    """Whether a question asks if something is usual."""
    return _USUAL.search(text) is not None


def reports_trouble(clause: str) -> bool:
    """Whether a clause without a number tells that something is wrong."""
    return _BAD.search(clause) is not None and _NUMBER.search(numerals(clause)) is None


# HBM3e at 90 C: the generation is no value
_HBM = lazy(r"(?<![a-z])hbm[ -]?[2-4]e?(?![a-z0-9.])", re.IGNORECASE)


def stated(said: str, found: Named, *, diagnosed: bool = False, fixed: Sequence[tuple[str, str]] = ()) -> Stated:
    """The facts that a sentence states, about the things that it names.

    `diagnosed`: what is wrong is asked, so a clause that names a symptom is understood as that. `fixed`: slips that
    were mended in `said`; what is quoted is quoted as it was written.
    Of what it only asks, nothing: neither "is the row remap pending?" nor "what is a row remap failure?" states one.
    """
    if not _worth(found.marked):
        return Stated()
    text, originals, counted = _without_models(said, found)
    text = _HBM.sub(lambda m: "hbm" + " " * (len(m[0]) - 3), things.without_differences(_with_rate(text)))
    text = _INTRODUCED.sub(
        r"\g<name> ",
        _UP_FOR.sub(" uptime ", _SERVER_OPTION.sub(" ", _ERROR_NAME.sub(" ", _RAILS.sub(r"\g<rate>", text)))),
    )
    wholes = [(m[0], f"{m[1]} {m[2] or m[3]}") for m in _OF_WHOLE.finditer(text)]
    for as_said, meant in wholes:
        text = text.replace(as_said, meant)
    fixed = (*fixed, *wholes)
    text = _LOAD.sub(r"load average \g<n>", text)
    text = _TWO_COUNTS.sub(_of_bus_and_driver, _SLURM.sub(_of_slurm, things.SHARE_OF_GPUS.sub(_of_all, text)))
    text = _KUBERNETES.sub(_of_kubernetes, _with_tail(_NEXT_GPU.sub("; ", _OTHER_GPU.sub(_apart, text))))
    text = things.with_utilization(text)
    text = _LONE_ROOT.sub(
        " 根目录 " if _HAN.search(text) else " root filesystem ",
        AT_REST_CLAUSE.sub(" ", _curve_named(_OUTCRY.sub(" ", _EXIT.sub(" exit ", text)))),
    )
    so_far: list[Observation] = []
    asked, unread, fine, loose = list[str](), list[str](), list[str](), list[str]()
    left, denied, codes, counts, shared = list[str](), list[str](), False, False, False
    now = _NOW.search(said) is not None
    before, about = "", About("", (), excerpt(said))
    for clause, asks in _clauses(text):
        words = _MARK.sub(lambda _: next(originals, ""), clause)
        quoted = _as_written(excerpt(" ".join(words.split()), 120), fixed)
        links, about = about, things.about(numerals(clause), words, found.slots, about)
        if before.startswith(_GPU_LEVELS) and about == links._replace(many=1) and _alike(clause, about):
            about = links  # 8 张 H100 全是 100%，功耗 120W: of the same
        shared = "<share>" in clause or (shared and _THE_REST.fullmatch(clause) is not None)
        clause = _SHARE.sub(lambda _: f" | {next(counted).phrase} | ", clause)
        read = Read()
        if not asks and before and _SHOULD.search(clause):  # what would be right is no reading
            read = Read([*_most(clause, before, about)])
        elif not asks:
            read = (
                _written(words, about)
                or _links_down(clause, links, before)
                or _told(clause, about, before)
                or _same_of_others(clause, so_far, about)
            )
        elif _TOLD_IN_QUESTION.search(clause):
            read = _told(clause, about, "")._replace(rest="", open=False)
            if _ASKS_IF_RUNS.search(clause):  # 我们的 DGX 上 docker 在跑吗: asked, and told by nobody
                read = read._replace(observations=[o for o in read.observations if not o.fact.startswith(_SERVICE)])
        if _OTHER_RATE.search(text) and not _OF_USE.search(
            text
        ):  # a bandwidth that goes up and down is no work of a GPU
            read = read._replace(observations=[o for o in read.observations if o.fact != "gpu.window.waves"])
        values = [float(v) for v in re.findall(r"(?<![0-9.])[0-9]{1,3}(?![0-9.])", numerals(clause))]
        if len(values) > 1 and min(values) >= _STILL_WORKS:  # between 85 and 95 is no wave that ends in nothing
            read = read._replace(observations=[o for o in read.observations if o.fact != "gpu.window.waves"])
        if read and _IN_WAVES.search(clause):  # how busy it is for some of the time is no reading of now
            kept = [o for o in read.observations if not o.fact.startswith("gpu.utilization.")]
            read = read._replace(observations=kept)
        wanted = not asks and not read and bool(before and _SHOULD.search(clause) and _NUMBER.search(numerals(clause)))
        read, before, past = _of_now(read, words, before) if now else (read, before, False)
        if wanted or past:
            unread.append(quoted)  # neither what it was nor what it should be is how it is
            counts = True
        told = read.observations
        if asks:
            asked.append(quoted)
        if _DENIES.search(clause) and not asks:
            denied.append(clause)
        if told:
            if any(o.fact == b.fact and o.subject == b.subject and o.value != b.value for o in told for b in so_far):
                unread.append(quoted)  # another value of the same: the first is kept, and this one does not vanish
            so_far += told
            before = told[-1].fact
            apart = False
            for part, said_so in _parts(clause, words):
                if not _told(part, about, "").observations and not _CODE.search(part):
                    where = fine if _is_fine(part) else loose if _says_something(part) else []
                    if where is not fine:
                        left.append(part)
                    where.append(_as_written(said_so, fixed))
                    apart = apart or where is loose
            if not apart and (read.open or _says_more(read.rest, diagnosed)) and not setting.only(read.rest):
                loose.append(quoted)
            continue
        if asks or not _is_fine(clause):
            left.append(clause)
        codes = codes or (not asks and _CODE.search(clause) is not None)
        if (
            asks
            or past
            or _EXCLAIMS.fullmatch(clause)
            or _CODE.search(clause)
            or (before and _MORE.fullmatch(clause))
            or (shared and _THE_REST.fullmatch(clause))
        ):
            continue
        if _is_fine(clause):
            fine.append(quoted)
        elif _states(clause, diagnosed):
            unread.append(quoted)
            counts = counts or _NUMBER.search(things.without_counts(clause)) is not None
        elif _says_something(clause):
            loose.append(quoted)
    if so_far or unread or fine:  # beside what was read nothing may vanish
        unread += loose
    so_far += _models(so_far, found.marked)
    if len(found.slots.gpu) == 1:  # "ecc is 5, can I use gpu 3": said once, it is what all of it is about
        one = things.named(found.slots.gpu[0])
        if not any(owner.id == one for o in so_far if (owner := o.subject.up(Scope.GPU)) is not None):
            so_far = [o.about(things.of_gpu(o.subject, one)) for o in so_far]
    return Stated(
        _once(so_far), ", ".join(asked) if so_far or unread else "", tuple(dict.fromkeys(unread)), tuple(dict.fromkeys(fine)),
        ", ".join(left), ", ".join(denied), codes, bool(asked), counts,
    )  # fmt: skip


def _with_tail(text: str) -> str:
    """`text` with a comma between what it tells and what it asks of that: "350W 1.2GHz 是降频了吗", "what does SM 12 % with util 100 mean"."""
    text = _MEAN_TOGETHER.sub(r"\1, what does that mean", text)
    together = len(_WITH_UNIT.findall(text)) > 1 or AT_REST.search(text) is not None
    return _ASKED_BEHIND.sub(r"\1，", text) if together else text


_WITH_UNIT = lazy(r"[0-9]\s?(?:%|w|瓦|[mg]hz|°?c(?![a-z])|度|gb?/s)", _I)
_ASKED_BEHIND = lazy(
    r"(?<=[0-9])(\s?(?:%|w|瓦|[mg]hz|°?c(?![a-z])|度|gb?/s)?)\s*(?=(?:是|正常|算|有没有|要不要|说明|怎么|为什么|为啥|咋|能不能|可以|会不会)[^，。,0-9]{0,16}$)",
    _I,
)
# of one value a book tells what it means; of several together it is asked what they say of a GPU
_MEAN_TOGETHER = lazy(
    r"^\s*what (?:does|do|would) (?:an? |the |my )?((?=[^?]{0,120}(?:util|sm|tensor|dram|power|occupancy))(?=[^?]{0,120}[0-9][^?]{1,60}[0-9])[^?]{4,120}?) (?:mean|tell(?: me| us)?|say|indicate|imply)(?![a-z])",
    _I,
)
# how a process ended is a name, and no reading of anything: exit code 137, 退出码 137, signal 9
_EXIT = lazy(
    r"(?<![a-z])(?:exit(?:ed)?(?:\s+with)?(?:\s+(?:exit\s+)?(?:code|status))?|exit ?code|signal|returned)\s*[:=]?\s*-?[0-9]{1,3}(?![0-9.%]|\s*(?:%|gi?b|mi?b|mhz|w|c|ms|s)(?![a-z]))|(?:退出码|返回码|错误码|信号)\s*[:：=为是]?\s*-?[0-9]{1,3}(?![0-9.%])",
    _I,
)
# node up 20 days | the server has been up for 3 weeks
_UP_FOR = lazy(
    r"(?<=node|host|rver|hine|stem)\s+(?:has been |is |was )?up (?:for )?(?=[0-9]{1,4} ?(?:days?|weeks?|hours?|minutes?)(?![a-z]))",
    _I,
)
# ERR_NVGPUCTRPERM: the name of an error, and no "ERR!" in the place of a reading
# IB 200G x 8 per node: as many cards of that rate, and no lanes of a slot
_RAILS = lazy(
    r"(?<![a-z0-9])(?P<rate>(?:25|40|50|100|200|400|800)\s?g(?:b|be|bps|bit|b/s)?)\s?[x*×]\s?[0-9]{1,2}(?![0-9])", _I
)
# max-running-requests 256, mem-fraction-static 0.9: what a server is told, and no count of requests that run
_SERVER_OPTION = lazy(
    r"(?<![a-z])(?:max[-_]running[-_]requests|max[-_]num[-_]seqs|mem[-_]fraction[-_]static)\s*[=:]?\s*[0-9.]+", _I
)
_ERROR_NAME = lazy(r"(?<![a-z0-9_])err_[a-z]\w{3,}", _I)
# at either end of a sentence, and neither a question nor a fact: wtf gpu 3 is gone | 搞什么鬼 3 号卡不见了
# 79.1GiB / 80GiB, 79/80GB: how much of how much, as nvidia-smi prints it, and no list of two
# gpu0 61C gpu1 62C gpu2 94C: a list without commas
_NEXT_GPU = lazy(r"(?<=[0-9a-z%度瓦])\s+(?=<gpu>\s*[:=]?\s*[0-9])", _I)
# gpu 1 正常 gpu 2 掉卡了: a list without commas, of states
_OTHER_GPU = lazy(r"(?<=[0-9\u4e00-\u9fff])(?<![和与跟及在把上到是给从对用看])\s*(?=<gpu>)")


def _apart(m: re.Match[str]) -> str:
    ahead = m.string[: m.start()]
    return "; " if "<gpu>" in ahead or _RANGE.search(ahead) else m[0]


_RANGE = lazy(r"[0-9]\s?[-~到至]\s?[0-9]{1,2}\s?号?\s?(?:卡|gpu)", _I)


# allocatable 7，capacity 8 | capacity 8, allocatable only 7 | kubelet 只上报了 7 张，实际 8 张: two counts over a comma
_KUBERNETES = lazy(
    r"(?:(?<![a-z])allocatable|可分配|(?:kubelet|device[ -]?plugin|插件)\s*(?:只|仅|就)?\s*(?:上报|注册|报|给)了?|(?:k8s|kubernetes)[^0-9]{0,12}?(?:gpu|卡)[^0-9]{0,4}?(?:数量?|个数))[^0-9]{0,28}?(?P<a>[0-9]{1,2})(?![0-9.])[^0-9]{0,20}?(?:capacity|总数|总共|一共|实际|nvidia-smi|节点|机器|物理)[^0-9]{0,28}?(?P<b>[0-9]{1,2})(?![0-9.])"
    r"|(?:(?<![a-z])capacity|总数|总共|一共|实际)[^0-9]{0,28}?(?P<d>[0-9]{1,2})(?![0-9.])[^0-9]{0,20}?(?:allocatable|可分配)[^0-9]{0,28}?(?P<c>[0-9]{1,2})(?![0-9.])",
    _I,
)


def _of_kubernetes(m: re.Match[str]) -> str:
    given, whole = int(m["a"] or m["c"]), int(m["b"] or m["d"])
    if re.search(r"少了?\s*$", m.string[m.start() : m.start("a" if m["a"] else "c")]):
        given = max(whole - given, 0)
    return f"allocatable {given} of {whole}"


# gres 数不对 配置 8 实际 7
_SLURM = lazy(
    r"(?<![a-z])gres(?:/gpu)?[^0-9<]{0,16}(?:配置|配了?|应[该为有是]*)[^0-9<]{0,8}(?P<b>[0-9]{1,2})(?![0-9.])[^0-9<]{0,10}(?:实际|只有|上报|报|节点|现)[^0-9<]{0,8}(?P<a>[0-9]{1,2})(?![0-9.])"
    r"|(?<![a-z])gres(?:/gpu)?[^0-9<]{0,16}(?:实际|只有|上报|报|节点|现)[^0-9<]{0,8}(?P<c>[0-9]{1,2})(?![0-9.])[^0-9<]{0,10}(?:配置|配了?|应[该为有是]*)[^0-9<]{0,8}(?P<d>[0-9]{1,2})(?![0-9.])",
    _I,
)


def _of_slurm(m: re.Match[str]) -> str:
    return f"gres gpu count reported lower than configured {m['a'] or m['c']} than {m['b'] or m['d']}"


# load 5，cpu 30%: a load without a percent sign is that of the host
_LOAD = lazy(
    r"(?<![a-z])(?<!gpu )(?<!gpu的)(?<!卡的)(?<!cpu )(?<!full )(?<!under )(?<!no )(?<!at )(?<!heavy )load\s*(?:is|of|=|:|：|是|为|到)?\s*(?P<n>[0-9]{1,4}(?:\.[0-9]{1,2})?)(?=\s*(?:[,，。;；?？]|$|多|左右))",
    _I,
)


def _of_all(m: re.Match[str]) -> str:
    there, whole = m["a"] or m["c"], m["b"] or m["d"]
    return f"{whole} 张卡只看到 {there} 张" if _HAN.search(m[0]) else f"gpu count {there}, should be {whole}"


# lspci 8 个，nvidia-smi 7 个 | nvidia-smi shows 7, lspci 8: two counts of which each names its tool
_TWO_COUNTS = lazy(
    r"(?:(?<![a-z])lspci[^0-9，。；,;?？]{0,16}?(?P<a>[0-9]{1,2})(?![0-9.:])(?:\s*(?:[个张块]卡?|gpus?|cards?|devices?))?[\s，,；;]*(?:(?:and|but|while)\s+|但是?|而)?nvidia-?smi[^0-9，。；,;?？]{0,16}?(?P<b>[0-9]{1,2})(?![0-9.:%])(?:\s*(?:[个张块]卡?|gpus?|cards?))?"
    r"|(?<![a-z])nvidia-?smi[^0-9，。；,;?？]{0,16}?(?P<d>[0-9]{1,2})(?![0-9.:%])(?:\s*(?:[个张块]卡?|gpus?|cards?))?[\s，,；;]*(?:(?:and|but|while)\s+|但是?|而)?lspci[^0-9，。；,;?？]{0,16}?(?P<c>[0-9]{1,2})(?![0-9.:])(?:\s*(?:[个张块]卡?|gpus?|cards?|devices?))?)",
    _I,
)


def _of_bus_and_driver(m: re.Match[str]) -> str:
    bus, driver = m["a"] or m["c"], m["b"] or m["d"]
    if _HAN.search(m.string):
        return f"lspci 能看到 {bus} 张卡，nvidia-smi 只有 {driver} 张"
    return f"lspci shows {bus} gpus, nvidia-smi shows only {driver} gpus"


def _with_rate(text: str) -> str:
    """`text`, how fast a counter of a link grows as a clause that names it: "replay counter at 41877 and climbing 50/s"."""
    counter = _LINK_COUNTER.search(text)
    if counter is None:
        return text
    crc, nvlink = "crc" in counter[0].casefold(), _NVLINK.search(text) is not None
    if crc and not nvlink:
        return text

    def named(m: re.Match[str]) -> str:
        many = float((m["n"] or m["z"]).replace(",", "")) * _THOUSANDS.get((m["k"] or m["zk"] or "").casefold(), 1)
        unit = _SPANS_SAID[(m["u"] or m["zu"])[:1].casefold()]
        name = "nvlink crc errors" if crc else "nvlink replay errors" if nvlink else "pcie replay"
        if not _MORE_THAN_NAME.search(text[counter.end() : m.start()]):
            name = ""  # it stands right ahead
        rate = f"{many:.10g} per {unit}"
        return f", {name} {rate}, " if name else f" {rate}, "

    return _GROWS_BY.sub(named, text)


_MORE_THAN_NAME = lazy("[0-9,;.，。；:：]")
_NVLINK = lazy(r"(?<![a-z])nv ?links?(?![a-z])", _I)
_LINK_COUNTER = lazy(r"(?<![a-z])(?:replays?|crc)(?![a-z])|(?:nvlink|pcie)[^，。,.;]{0,8}重传", _I)
_THOUSANDS = {"k": 1000, "百": 100, "千": 1000, "万": 10_000}
_SPANS_SAID = {"s": "second", "m": "minute", "h": "hour", "d": "day", "秒": "second", "分": "minute", "小": "hour", "个": "hour", "天": "day"}  # fmt: skip
_GROWS_BY = lazy(
    r"(?:\s*,?\s*(?:and|but)\s+)?(?:(?:it|is|it's|keeps?|still|now|which)\s+)*(?:(?:climb|grow|increas|ris|gain|add)\w*|go(?:es|ing) up|up)\s+(?:(?:by|at|about|around|roughly|some|another|a rate of|~|≈)\s*)*"
    r"(?P<n>[0-9][0-9,]*(?:\.[0-9]+)?)\s?(?P<k>k(?![a-z]))?\s*(?:(?:times|replays?|errors?|packets?)\s*)?(?:/|per|an?|every|each)\s*(?P<u>s(?:ec(?:ond)?)?|min(?:ute)?|h(?:r|our)?|day)s?(?![a-z])"
    r"|[\s，,]*(?:(?:一直|持续|还|仍|不停)?在?(?:涨|增长|增加|上升)[\s，,]*)?(?:每|一|1)\s?(?P<zu>秒|分|小时|个小时|天)钟?[\s内里]*(?:(?:涨|增加|增长|大约|约|新增|有|就|差不多|多了)\s*)*(?P<z>[0-9]+(?:\.[0-9]+)?)\s*(?P<zk>[百千万])?\s*(?:多|次|个|左右|条)*",
    _I,
)


# temps across the box: 64 66 63 65, 各卡功率如下：690 688 701 312: what stands between a name and a list says where it was read
_INTRODUCED = lazy(
    r"(?P<name>(?<![a-z])(?:temp(?:erature)?s?|power(?: draws?)?|watts|util(?:i[sz]ation)?s?|(?:sm )?clocks?|fans?(?: speeds?)?)|温度|功[率耗]|利用率|频率|时钟|转速)"
    r"(?:\s+(?:readings?|values?|draws?|of|on|across|over|in|for|per|by|from|at|while|during|under|right|now|today|here|are|is|as)(?![a-z])[^:：;,.<\n]{0,48}?)?[\s\u4e00-\u9fff]{0,12}[:：=]\s*"
    r"(?=[0-9]{1,4}(?:\.[0-9])?\s?(?:c|w|%|mhz|度|瓦)?(?:[\s,/、，]+[0-9]{1,4}(?:\.[0-9])?\s?(?:c|w|%|mhz|度|瓦)?){3,})",
    _I,
)
_OF_WHOLE = lazy(
    r"(?<![\w.])(\d+(?:\.\d+)?)\s?([mg]i?b?)?\s*/\s*\d+(?:\.\d+)?\s?([mg]i?b?)(?![a-z0-9/])", re.IGNORECASE
)
_OUTCRY = lazy(
    r"^\W*(?:wt[fh]|wtaf|omg|what the (?:hell|heck|fuck)|ugh|argh|damn|搞?什么鬼|搞毛|卧槽|我去|靠|天哪|救命)(?![a-z])[\s,，!！。:：?？]*"
    r"|[\s,，]+(?:wt[fh]|wtaf|omg|ugh|argh|lol|搞?什么鬼|救命|在线等|急)(?![a-z])\W*$",
    _I,
)
# wtf | what the hell is going on | any ideas | 咋回事啊 | 这是什么情况: asks why in the words of the street, and states nothing
_EXCLAIMS = lazy(
    r"\W*(?:(?:so|and|but|guys|man|dude|bro|omg|oh|huh|ugh|argh|damn|help|please|now|again|here|there|with (?:this|that|it)|wt[fh]|wtaf|lol|is|are|going on|happening|"
    r"what(?:'s| is)?(?: the (?:hell|heck|fuck|f|deal|matter))?(?: is)?(?: (?:going on|happening|up|wrong|that|this))?|how come|any (?:ideas?|clues?|thoughts|advice|tips)|no (?:idea|clue)s?(?: why)?|"
    r"(?:yes )?or (?:not|no|what)|right|ok|thoughts|(?:is )?(?:that|this|it) (?:bad|ok|okay|normal|fine|serious))(?![a-z])\W*){1,5}"
    r"|\W*(?:这|那|到底|究竟|又|请问|大佬们?|各位|老哥|兄弟们?|有人知道)*(?:是|算)?(?:咋回事儿?|怎么回事儿?|怎么个事|咋了|怎么了|咋整|咋搞的?|怎么搞的|什么情况|啥情况|搞?什么鬼|啥问题|什么问题|什么毛病|啥毛病|什么原因|啥原因|什么意思|啥意思|求助|求解|救命|急|在线等)[啊呀呢吗吧么了啦,，!！?？。\s]*",
    _I,
)
# The slash alone is a file system: "/ is 97% full", "97 % used on /", / 已用 97%.
_LONE_ROOT = lazy(  # and no part of a whole: 79.1GiB / 80GiB
    r"(?<![0-9]\s)(?<![0-9][a-z]\s)(?<![0-9][a-z]{2}\s)(?<![0-9][a-z]{3}\s)(?<![^\s(\"'“])/(?=\s+(?:is|was|are|at|has|got|full|usage|partition|fs|mount|[0-9])|\s*(?:分区|目录|盘|已|满|快|用|使用|占|写)|\s*[)\"'”]?\s*(?:[,.;?!，。；？]|$))",
    _I,
)
# That a GPU rests: said beside a reading, and no reading itself.
AT_REST = lazy(
    r"(?<![a-z])(?:idle\w{0,3}|at rest|no load|without load|unloaded|(?:nothing|no jobs?) (?:is |are )?running|doing nothing)(?![a-z])|空闲|闲着|闲置|空载|待机|没有负载|无负载|没任务|没有任务|没跑(?:任务|东西|程序)",
    _I,
)
_USUAL = lazy(
    r"(?<![a-z])(?:normal|usual|expected|typical|reasonable|too (?:high|low|much|many)|a lot)(?![a-z])"
    # 温度都正常，但掉卡了: said, and not asked
    r"|正常(?:[吗么嘛吧不]|的吗|范围|值|水平|是多少)|正不正常|(?:算|属于|是否|是不是|应该)正常|(?<![都也很切着来还全均])正常(?=[?？\s]*$)|合理|常见|算高|算低|偏高|偏低|(?:是不是|会不会|是否)(?:太|有点|过|偏)?[高低](?:了|$|[?？])|太[高低]了?[吗吧]|算?合格吗|达标吗|高不高|高吗|低吗|多吗",
    _I,
)
AT_REST_CLAUSE = lazy(
    r"(?<![a-z])(?:while|when|at|in|being)\s+(?:it is\s+|it's\s+)?(?:idle|idling|rest)(?:\s+state)?(?![a-z])|(?:在|处于)?(?:空闲|空载|待机)(?:时候?|状态下?|的时候|下)",
    _I,
)
_DENIES = lazy(r"(?<![a-z])(?:no|not|without|never|none|isn't|aren't|wasn't|hasn't|haven't)(?![a-z])|没|无|未|不是", _I)
# Of a share that was told: what the rest is follows from it.
_THE_REST = lazy(
    r"\s*(?:and |but |while )?(?:all |the )*(?:others?|rest|remaining(?: ones| one)?|other (?:one|ones|two|three|four|ports?|links?|fans?|psus?))\s+(?:is|are|were|was|stay|show)\s+(?:all |still )?(?:up|active|ok|okay|fine|good|working|down|inactive|dead|failed|broken|missing|gone|not (?:up|active|working|visible))\s*"
    r"|\s*(?:其他|其余|另外|剩下|剩余)的?(?:[一二两三四五六七八九0-9]+[个条张块根])?(?:都|全|全部|是|为)*(?:正常|好的?|通|亮|在|坏了?|断了?|不通|挂了?|故障|没亮|down|up|active)\s*",
    _I,
)
# Of a reading that was told: growing | should be x16 | in the last hour
_MORE = lazy(
    r"\s*(?:(?:and |but |it is |it'?s |is |still |还在|还|一直)*(?:grow\w*|ris\w+|increas\w+|climb\w*|going up|stable|constant|running|working|up|ok|okay|fine|active|涨|增长|上升|增加|稳定)|(?:but |and |it |they |而 ?)*(?:should|must|ought to)(?: normally)? (?:be|have|show|read|run)\b.{0,40}|.{0,4}(?:应该|应为|正常|本来|本应|原来)(?:应该)?(?:是|有|为)?.{0,24}|(?:而)?不是.{1,16}|(?:and )?not .{1,16})\s*",
    _I,
)
_SAID_FINE = lazy(
    r"(?<![a-z])(?:ok|okay|fine|good|normal|healthy|clean|green|visible|there|present|consistent|match(?:es)?|idle|new|ruled out|excluded|half used|half full|half empty)\s*$|排除|[没未](?:有)?(?:用|占|跑)?满|正常|没(?:有|啥|什么)*(?:问题|毛病|异常)|良好|都好|健康|都在|一致|没事",
    _I,
)
# What is no word of a statement: pleasantries, when, where, and what the person does.
_PLAIN = lazy(
    r"(?<![a-z])(?:hi|hello|hey|team|all|guys|sorry|thanks?|please|pls|help|rma|what now|(?:keep|carry|go) (?:going|using|on|training|running|working)\w*|since \w+|(?:while |during |in )?(?:the )?(?:training|inference|serving)|today|yesterday|tonight|now|last (?:night|week|month)|this (?:morning|week)|"
    r"(?:we|i|you|they|users?|people|customers?)(?:'ve|'re|'m|'d|'ll)? .*|on|of|in|at|for|from|after|before|during|with|under|our|my|the|a|an|one|this|that|these|it|is|are|was|node|gpus?|cards?|machine|server|box|cluster|host|h100s?|here|there|same (?:job|load|workload|node|model|run)|again|still|just|only|and|but|so|then|or|to|yes|no|also)(?![a-z'])"
    r"|<[a-z]+>|[0-9]+|(?:正在|在)?(?:训练|推理|运行)(?:中|时)?|你好|大家好|请问|麻烦|谢谢|求助|今天|昨天|昨晚|刚才|现在|目前|最近|早上|我们?.*|这[台个块张]?|那[台个块张]?|(?:都)?(?:是|跑的?|在)?同[一样]的?个?(?:任务|作业|节点|负载|模型|代码|配置|型号|程序|脚本|参数|命令|镜像|数据集?)|(?:(?:软硬件|机器|环境)?配置|负载|任务|代码|环境|参数|镜像|模型|数据|脚本|驱动|版本|硬件)(?:都|也|完全|基本|是)*(?:一样|相同|一致|未变更?|没有?变(?:化|更)?|未改动?|没改)的?|(?:各位|诸位)?(?:大佬|老师|大神|兄弟|老哥|同学|同事|专家|领导|师傅)们?(?:好|帮忙|帮看下?|看下)?|请教(?:一下|个问题)?|如题|工单\s*[:：]?|(?:有)?(?:用户|客户|同事|业务方?|同学)(?:反馈|反映|报障|投诉|说)|请(?:协助|帮忙)?(?:确认|排查|处理|看下|协助)(?:一下|下)?|帮忙?看(?:一?下|看)?|在线等|急|(?:代码|配置|镜像|环境|数据|参数|什么|啥|其他)?(?:都|也)?没(?:有)?(?:人)?(?:改|动|变|注意|在意)(?:过|动|化)?(?:代码|配置|任何东西|东西|什么|啥)?|机器|节点|服务器|显卡|卡|的|了|上|里|吧|呢|啊|但是?|不过|就是|只是|而且|还有?",
    _I,
)


def _is_fine(clause: str) -> bool:
    """Whether a clause only says that something is in order, or that nothing is wrong."""
    bare = re.sub(r"<([a-z]+)>", r" \1 ", things.without_counts(numerals(clause)))
    if _NUMBER.search(bare):
        return False
    return negated(bare) or (_SAID_FINE.search(bare) is not None and re.search(r"(?<![a-z])(?:not|no longer|never|n't)(?![a-z])|不(?!影响)(?!良)", bare, _I) is None)  # fmt: skip


def _says_something(clause: str) -> bool:
    """Whether a clause that no fact was read from holds more than pleasantries, times and places."""
    rest = _PLAIN.sub(" ", things.without_counts(numerals(clause)))
    return len(re.findall(r"[a-z]{2,}", rest, _I)) > 1 or len(_HAN.findall(rest)) > 2


_SHOULD = lazy(
    r"(?<![a-z])(?:should|must|ought|supposed|expect(?:ed|ing)?)(?![a-z])|^\s*(?:and )?not (?=x|gen)|应该|应为|本应|本来|^\s*而?不是",
    _I,
)


# In a reading these tell how it is, and name no trouble of their own.
_LEVELS = lazy(
    r"(?<![a-z])(?:stuck|hot|slow(?:er)?|drop(?:s|ped)|down|exceed(?:s|ed)|degraded|bad|weird|wrong|errors?|err|throttl\w+|pending|failed|failure|xid)(?![a-z])|错|慢|烫|掉|降频|过热|异常|少了",
    _I,
)


def _says_more(rest: str, diagnosed: bool) -> bool:
    """Whether the words of a clause that told none of its facts name a trouble, or say something else."""
    if not rest or negated(rest):
        return False
    bare = _LEVELS.sub(
        " ", " ".join(w for w in rest.split(" ") if not w.isascii() or w == "|" or is_content(w) or _BAD.search(w))
    )
    if _BAD.search(bare) is not None and not (diagnosed and symptoms.find(words_of(rest))):
        return True
    return len(re.findall(r"[a-z]{3,}", _PLAIN.sub(" ", _CONTEXT.sub(" ", bare)), _I)) > 3


# during the night run | under our llama training | on a PCIe card: where and when, and nothing of how it is
_CONTEXT = lazy(
    r"(?<![a-z])(?:during|while|after|before|since|for|under|in|on|at|with|from|because of|according to|via|per)\s+[^,;]{1,60}",
    _I,
)


# 利用率偶尔掉到 0 | drops to 0 every 30 s
_IN_WAVES = lazy(
    r"周期性|定期|有规律|时不时|偶尔|间歇|间断|有时|忽高忽低|一阵一阵|隔一[会阵段]|每[隔过]|不时|反复|来回"
    r"|(?<![a-z])(?:periodic\w*|occasional\w*|intermittent\w*|sometimes|now and then|from time to time|every (?:few|[0-9]+|<[a-z]+>)|briefly|for a few seconds|regularly)(?![a-z])",
    _I,
)


_STILL_WORKS = 50  # percent
_OTHER_RATE = lazy(
    r"(?<![a-z])(?:busbw|algbw|bandwidth|throughput|latency|loss|temperature|clocks?)(?![a-z])|带宽|吞吐|延迟|网速|温度|频率|时钟|速度",
    _I,
)
_OF_USE = lazy(r"(?<![a-z])(?:util\w*|usage|busy|activity|sm)(?![a-z])|利用率|使用率|占用率|忙", _I)


# of what was read just now: the fact that says how much it should be
_EXPECTED = (("node.gpu.expected", r"(?<![0-9.a-z])([0-9]+)"),)
_SHOULD_BE = {"node.gpu.count": _EXPECTED, "node.pci.gpu_count": _EXPECTED}


def _most(clause: str, before: str, about: About) -> Iterator[Observation]:
    """ "it should be gen5 x16": what the link could have."""
    said = numerals(clause)
    for name, number in (
        ("gpu.pcie.width.max", r"x\s*([0-9]+)"),
        ("gpu.pcie.gen.max", r"gen\s*([0-9]+)"),
        *_SHOULD_BE.get(before, ()),
    ):
        found = re.search(number, said, _I)
        if found and not isinstance(read := parse(spec := vocabulary()[name], found[1]), Problem):
            yield from about.tell(spec, (read,))


def _parts(clause: str, words: str) -> Iterator[tuple[str, str]]:
    """What "and" and "but" part within a clause, marked and as it was said; nothing where a part is too short to say anything."""
    marked, said = _JOINS.split(clause), _JOINS.split(words)
    whole = len(_statements(words_of(numerals(clause)))) == sum(len(_statements(words_of(numerals(m)))) for m in marked)
    if len(marked) > 1 and len(marked) == len(said) and whole:
        for part, so in zip(marked, said, strict=True):
            if len(part.split()) > 2 or len(_HAN.findall(part)) > 3:
                yield part, excerpt(" ".join(so.split()), 120)


_JOINS = lazy(
    r"\s(?:and|but|while|though|although|plus)\s+(?!should|must|not|it is\b|growing|rising)|但是|但|而且|并且|以及", _I
)


def _as_written(clause: str, fixed: Sequence[tuple[str, str]]) -> str:
    """A clause with the spelling that it was written in."""
    meant = {read.casefold(): said for said, read in fixed}
    if not meant:
        return clause
    words = "|".join(map(re.escape, meant))
    return re.sub(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", lambda m: meant[m[0].casefold()], clause, flags=_I)


_SERIES = lazy(
    r"(?<![0-9.])[0-9]{1,3}\s*%?(?:\s*(?:,|，|、|/|->|→|then|and then|再|然后)?\s*(?:back to |到)?(?<![0-9])[0-9]{1,3}\s*%?){3,40}",
    _I,
)
_CURVE = lazy(r"graph|curve|chart|plot|comb|saw|over time|goes|looks like|曲线|图|锯齿|梳子|波形|走势", _I)
_OF_UTILISATION = lazy(r"(?<![a-z])(?:util\w*|usage|busy|load)(?![a-z])|利用率|使用率|占用率|负载", _I)


def _curve_named(text: str) -> str:
    """A text in which utilisation over time that goes up and down is called that: "the curve is a comb: 90, 5, 92, 3, 95, 4"."""
    if not (_CURVE.search(text) and _OF_UTILISATION.search(text)):
        return text

    def named(series: re.Match[str]) -> str:
        sides = [v >= 70 for n in re.findall("[0-9]+", series[0]) if (v := int(n)) >= 70 or v <= 20]
        return " sawtooth " if sum(a != b for a, b in pairwise(sides)) >= 3 else series[0]

    return _SERIES.sub(named, text)


# What each of several GPUs has of its own.
_GPU_LEVELS = ("gpu.utilization.", "gpu.power.", "gpu.activity.", "gpu.temperature.", "gpu.clock.", "gpu.memory.")


def _alike(clause: str, about: About) -> bool:
    """Whether a clause goes on about the GPUs of the one ahead: it names and counts none."""
    return not _ONE.search(clause) and things.group(numerals(clause), about.counted) is None


_ONE = lazy(
    r"(?<![a-z])(?:one|another|other|only|the node|total|sum|altogether|combined)(?![a-z])|一[张块个]|其中|另|总|整机|合计",
    _I,
)
_WORK = frozenset({"gpu.power.draw", "gpu.activity.sm", "gpu.activity.tensor", "gpu.activity.dram"})
_BUSY = 75  # percent of the time with a kernel, as in knowledge/derive/working.py


def _fewer(told: Sequence[Observation]) -> bool:
    """Whether fewer GPUs are told to be seen than there should be; a tool that counts them does not hang."""
    there = {o.fact: o.value for o in told if isinstance(o.value, int)}
    seen, wanted = there.get("node.gpu.count", there.get("node.pci.gpu_count")), there.get("node.gpu.expected")
    return seen is not None and wanted is not None and seen < wanted


def of_readings(told: Sequence[Observation], signs: tuple[str, ...], said: str) -> tuple[str, ...]:
    """The symptoms, that of a GPU that is busy ahead of what the words alone made of it: where its utilisation is stated beside
    what tells work from waiting ("shows 100 % but draws only 130 W" misses no GPU), or that the job is slow."""
    if any(o.subject.id.startswith(things.OTHER) for o in told) and not _ABSENT.search(said):
        signs = tuple(
            s for s in signs if s != "gpu-missing"
        )  # 7 张卡 98%，一张 61%: they are counted, and all are there
    if _fewer(told):
        return ("gpu-missing", *(s for s in signs if s not in ("gpu-missing", "driver-hangs")))
    busy = any(o.fact == "gpu.utilization.core" and isinstance(o.value, int) and o.value >= _BUSY for o in told)
    if not busy or ("slow-training" not in signs and _WORK.isdisjoint(o.fact for o in told)):
        return signs
    graver = tuple(s for s in signs if s in GRAVER)
    if graver and _ENDS_OR_HANGS.search(said):
        return (
            *graver,
            *(s for s in signs if s not in (*graver, "gpu-missing")),
        )  # that it hangs or ends says more than how busy it looks meanwhile
    return ("busy-but-slow", *(s for s in signs if s in ("hang", "slow-training", "straggler", "slow-data-loading")))


_ABSENT = lazy(
    r"(?<![a-z])(?:missing|gone|lost|disappear\w*|vanish\w*|not (?:there|visible|listed|seen|found|detected)|fell off|dropp\w+ off)(?![a-z])|少|掉|丢|缺|没了|不见|[找看认检识][别测]?不",
    _I,
)
_ENDS_OR_HANGS = lazy(
    r"(?<![a-z])(?:hang\w*|hung|stuck|freez\w*|frozen|stall\w*|crash\w*|die[sd]?|dead ?lock\w*|nan|oom|out of memory|fail\w*|abort\w*|time[sd]?[ -]?out\w*)(?![a-z])|卡住|卡死|卡在|必卡|挂|死|崩|失败|超时|显存不足|内存不足|不动",
    _I,
)
GRAVER = frozenset(["hang", "crash", "startup-fails", "out-of-memory", "nan-loss", "gpu-lost", "driver-hangs"])


def _models(told: Sequence[Observation], said: str) -> Iterator[Observation]:
    """What the GPU of a reading is called: the one model that the sentence names."""
    about = dict.fromkeys(o.subject for o in told if o.subject.scope is Scope.GPU)
    words = {m[0].strip().upper() for m in things.MODEL.finditer(said)} if about else set()
    from knowledge.gpus import candidates

    named = {name for word in words if (name := next((n for n in (word, word.removesuffix("S")) if candidates(n)), ""))}
    if len(named) == 1:
        name = named.pop()
        for subject in about:
            yield Observation("gpu.name", subject, name, source=TOLD, excerpt=excerpt(said), origin=Origin.TOLD)


def _same_of_others(clause: str, before: Sequence[Observation], about: About) -> Read:
    """ "... and the others 65", "and gpu 7 at 345": the reading named last, of the GPUs that are named now."""
    numbers = re.findall(r"[0-9]+(?:\.[0-9]+)?", things.without_counts(numerals(clause), about.counted))
    last = next(
        (o for o in reversed(before) if isinstance(o.value, int | float) and o.subject.scope is Scope.GPU), None
    )
    if last is None or len(numbers) != 1 or isinstance(last.value, bool):
        return Read()
    if last.fact == "gpu.nvlink.active" and _BAD.search(clause):
        return Read()  # so many that are not active
    spec = vocabulary()[last.fact]
    if "%" in clause and spec.unit not in ("percent", "ratio"):  # "one at 120 W, others 0 %": how busy they are
        spec = vocabulary()["gpu.utilization.core"]
    if isinstance(read := parse(spec, numbers[0]), Problem) or not (about.others or _ONLY_AT.fullmatch(clause)):
        return Read()
    return Read([*about.tell(spec, (read,))])


def _of_now(read: Read, words: str, before: str) -> tuple[Read, str, bool]:
    """What a clause of a sentence that tells of now says of now, the fact spoken of last, and whether readings of another day were left out.

    What happened and what was counted stays: "xid 79 yesterday" is in the log today.
    """
    if not read or not _PAST.search(words):
        return read, before, False
    known = vocabulary()
    keeps = [o for o in read.observations if known[o.fact].kind in (Kind.EVENT, Kind.COUNTER)]
    past = len(keeps) < len(read.observations)
    return read._replace(observations=keeps), read.observations[-1].fact if past else before, past


_NOW = lazy(
    r"(?<![a-z])(?:now|today|currently|at the moment|right now)(?![a-z])|现在|目前|今天|今日|今早|当前|此刻|眼下", _I
)
# since yesterday it is so: that is no past
_PAST = lazy(
    r"(?<![a-z])(?<!since )(?<!from )(?:yesterday|last (?:night|week|month)|(?:days?|weeks?|hours?) ago|earlier)(?![a-z])|(?<![从自])(?:昨天|昨晚|昨夜|昨日|前天|上周|上个?月)(?!开始|起|以来|到)",
    _I,
)


def _links_down(clause: str, about: About, before: str) -> Read:
    """ "12 are active, 另外 6 条 inactive": the other NVLinks of the GPU that was spoken of, not links of other GPUs."""
    found = _INACTIVE.fullmatch(numerals(clause)) if before == "gpu.nvlink.active" else None
    if found is None:
        return Read()
    known = vocabulary()
    down = about.tell(known["gpu.nvlink.inactive"], (int(found[1]),)) if int(found[1]) else ()
    return Read([*down, *(about.tell(known["link.state"], ("inactive",)) if down else ())])


_INACTIVE = lazy(
    r"\s*(?:(?:and|but|while|the|other|others|remaining|another)\s+){0,4}(?:另外|其他|其余|剩下|还有|有|的|但){0,3}\s*([0-9]{1,2})\s*(?:条|根|个|others?|more|of them)?\s*(?:nvlinks?|links?|链路)?\s*(?:are|is|都|是|为|全|处于|已|show|shows)?\s*(?:inactive|down|not active|off|断开?|不通|未激活|没起来|掉)\s*了?\s*",
    _I,
)
_ONLY_AT = lazy(
    r"\s*(?:and |but |only |just |但|而|只有)*(?:<gpu>|which|that one|it)\s*(?:is |at |has |shows |only |just |runs |sits |是|有|为|只有|却)*[0-9.]+\s*",
    _I,
)


def _once(found: Sequence[Observation]) -> tuple[Observation, ...]:
    """Each fact of a thing once: of two values nobody can tell which is meant."""
    found = [parts.called(o) for o in parts.of_maker([*parts.per_core(found)])]
    first = {(o.fact, o.subject): o for o in reversed(found)}
    return tuple(o for o in found if first[o.fact, o.subject] is o)[:MOST]


_MARK = lazy(r"<[a-z]+>")
_SHARE_OR_MODEL = lazy(rf"<share[0-9]{{1,2}}>|{_MARK.pattern}|{things.MODEL.pattern}", _I)
_HAN = lazy("[\u4e00-\u9fff]")
_SHARE = lazy("<share>")
_CODE = lazy("<s?xid>")  # told as an event already

# "can I use a GPU that has fallen off the bus" states it, and so does "why is gpu 2 at 150 W"; "is the link down?" does not.
_TOLD_IN_QUESTION = lazy(
    r"(?<![a-z])(?:(?<!^is )(?<!^was )that|which|whose|with|since|because|although|when|if)(?![a-z])|的|^is\b(?=.*[0-9]).{1,80}(?:a problem|an issue|enough|normal|too (?:low|slow|high|hot)|slower|expected|wrong)\b|^(?:is|are)\s+[0-9][0-9.]*\s?(?:w|watts?|°?c|mhz|%)(?![a-z])|(?<![a-z])why\b[^?]{0,200}[0-9]|为(?:什么|何|啥)[^？]{0,200}[0-9]",
    _I,
)

_SERVICE = "node.service."
_ASKS_IF_RUNS = lazy(r"(?:跑|运行|启动|起来?|开|活|正常|挂|停)(?:了|着|中)?(?:没有|没|[吗么嘛])$")


def _worth(marked: str) -> bool:
    """Whether a sentence can state anything: most hold neither a number nor a word of trouble, nor a name with a value."""
    return (
        _BAD.search(marked) is not None
        or re.search(r"[0-9]|(?<![a-z])(?:(?:is|are|was)(?:n't)?|on|off|yes|true|up|running|active|detected|listed|found|sees?)(?![a-z])|是|有|没|未|不|在|都|全", marked, _I) is not None
        or bool(named_in(words_of(marked)))
    )  # fmt: skip


def _without_models(said: str, found: Named) -> tuple[str, Iterator[str], Iterator[shares.Share]]:
    """The sentence with a mark for each slot, each name of a product and each share, what stood in their places, and the shares."""
    spans = [said[start:end] for start, end, _ in found.spans]
    slots, originals, plain = iter(spans), list[str](), found.marked
    counted, of_share = shares.shares(plain), dict[str, str]()
    for n, one in reversed([*enumerate(counted)]):
        of_share[f"<share{n}>"] = plain[one.start : one.end]
        plain = f"{plain[: one.start]} <share{n}> {plain[one.end :]}"

    def mark(m: re.Match[str]) -> str:
        if m[0] in of_share:
            originals.append(_MARK.sub(lambda _: next(slots, ""), of_share[m[0]]))
            return "<share>"
        slot = m[0].startswith("<")
        originals.append(next(slots, "") if slot else m[0])
        return m[0] if slot else " <model> "

    text = _SHARE_OR_MODEL.sub(mark, in_a_row(plain))
    return text, iter(originals), iter(counted)


# 温度 68 训练也没变慢: a blank for a comma, where a clause without a number begins
_BLANK = lazy(
    r"(?<=[0-9%])\s+(?=(?!之间|左右|以[上下内])(?![度瓦秒分个张块条次行页台步卡号岁年月日天小兆])[\u4e00-\u9fff]{4,}(?:\s|$))"
)
_ASKS_APART = lazy(r"\s+[^\s0-9<]*[\u4e00-\u9fff]{2}[^\s0-9<]*[吗么嘛不吧]$")
_ASKED_FIRST = lazy(r"(?<=[a-z\u4e00-\u9fff])[:：]\s+", _I)  # can I schedule on it: kubelet stopped
_ONLY_ASKS = lazy(r"\s*(?:why|how|what|when|where|and|so)\s*", _I)


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    """The clauses of a sentence, each with whether it asks."""
    cuts = sorted({m.start() for pattern in (_ASKS_EN, _ASKS_ZH) for m in pattern.finditer(text)})
    cuts = [b for a, b in zip([-1, *cuts], cuts, strict=False) if a < 0 or not _ONLY_ASKS.fullmatch(text[a:b])]
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for piece in pieces:
        asks = _ASKS_EN.match(piece) is not None or _ASKS_ZH.match(piece) is not None
        piece = piece if asks else _BLANK.sub("; ", piece)
        for part in _ENDS.split(_ASKED_FIRST.sub("; ", piece, count=1) if asks else piece):
            part = part.strip(" ,?？，")
            if not asks and (tail := _ASKS_APART.search(part)) is not None and _NUMBER.search(part[: tail.start()]):
                yield part[: tail.start()], False  # 温度 85 ecc 0 会有影响吗: a blank for a comma
                part, asks = tail[0].strip(), True
            if part:
                yield part, asks or _ASKS_LAST.search(part) is not None or _BEGINS.match(part) is not None
                asks = False


def _states(clause: str, diagnosed: bool) -> bool:
    """Whether a clause says that something is not in order, or how much of something there is."""
    if not _VERSION.search(clause) and values(words_of(things.without_counts(numerals(clause)))).open:
        return True  # a number that nothing known took
    if negated(clause):
        return False
    bare = re.sub(r"<([a-z]+)>", r" \1 ", things.without_counts(numerals(clause)))
    words = words_of(bare)
    read = _NUMBER.search(bare) is not None and (_SAYS.search(bare) is not None or bool(named_in(words)))
    if symptoms.find(words):
        return not diagnosed or (read and any(_COUNTED.search(name) for _, _, name in named_in(words)))
    if read or _IS.search(bare) is not None or _BAD.search(bare) is not None or _LAST_NUMBER.search(bare) is not None:
        return True
    return _HAS.search(bare) is not None and any(_COUNTED.search(name) for _, _, name in named_in(words))


_VERSION = lazy(
    r"(?<![a-z])(?:cuda|driver|pytorch|torch|python|nccl|ubuntu|rhel|version|kernel|vllm|sglang|firmware|v)\s*[0-9]|版本",
    _I,
)
# qps 抖动因子 7.2 | GPU 5 has the uncorrectable ecc
_LAST_NUMBER = lazy(r"(?:[\u4e00-\u9fff]{2}|[a-z]{3}\s*[:=])\s*[0-9.]+\s*[a-z%/]{0,6}\s*$", _I)
_HAS = lazy(r"(?<![a-z])(?:has|have|got|with|shows?|reports?)(?![a-z])|有|出现|报", _I)
_COUNTED = lazy(r"error|uncorrect|retired|remap|replay|failure|pending")
_NUMBER = lazy(r"(?<![a-z0-9_-])[0-9]")
_SAYS = lazy(
    r"(?<![a-z])(?:is|are|was|were|at|went|goes|rose|grew|jumped|fell|shows?|reports?|says?|reads?|has|have|had|got|gets?|runs?|sits?|stays?|drops?|only|about|every|per)(?![a-z])|[=:]|是|为|有|报|显示|只|达|到|才",
    _I,
)


# "the port is polling": whatever it is, somebody thought it worth saying. What is said to be fine is no doubt.
_FINE = r"(?:all |completely |running |still |also )?(?:ok|okay|fine|good|normal|healthy|up|running|working|new|clean|green|idle|ready|there|here|正常|没问题|好的|健康|空闲|新的|干净)"
_IS = lazy(
    rf"(?<![a-z])(?!(?:it|this|that|there|he|she|what|which|who)(?![a-z]))[a-z0-9_)\]/%-]+\s+(?:is|are|was|were)(?:n't)?\s+(?!{_FINE}(?![a-z]))\S|[\u4e00-\u9fffa-z0-9]\s*[是为]\s*(?!{_FINE})[^否不什\s]",
    _I,
)


def negated(clause: str) -> bool:
    """ "no errors in dmesg", "没有报错", "xid 一个都没有": nothing is wrong with what is not there."""
    if _NO_TROUBLE.search(clause) is not None:
        return True
    words = words_of(clause)
    return any(_denied(words, start, end) for start, end, _ in _statements(words))


_NO_TROUBLE = lazy(
    rf"(?:(?<![a-z])(?:no|without|zero|never|nothing)\s+(?:\w+\s+){{0,2}}|(?:没有?|无|未见?|未报)[\u4e00-\u9fff]{{0,2}}\s*)(?:xids|sxid|{_BAD.pattern})"
    r"|(?:xid|错误|报错|告警|异常|errors?|faults?)s?[^，,]{0,8}?(?:都没|没有|没出|未出|(?<![a-z])(?:none|zero)(?![a-z]))",
    _I,
)


# --- facts of a clause --------------------------------------------------------------------


_MODELS = lazy(r"(?<![0-9.])[0-9]{1,5}\s*x?\s*<model>")  # 8 H100


class Read(NamedTuple):
    """What a clause tells."""

    observations: list[Observation] = []
    rest: str = ""  # its words that told none of that
    open: bool = False  # whether a number is among these

    def __bool__(self) -> bool:
        return bool(self.observations)


def _written(said: str, about: About) -> Read:
    """Facts under their full names, each with the words behind it, as many as are one of its values."""
    out: list[Observation] = []
    for name, word, rest in written(said):
        spec = vocabulary().get(name)
        if spec is None or spec.kind is Kind.EVENT:
            continue
        tries = [" ".join([word, *rest[:more]]) for more in (2, 1, 0)]
        reads = [parse(spec, said) for said in (tries if spec.type is Type.ENUM else tries[2:])]
        read = next((r for r in reads if not isinstance(r, Problem)), None)
        if read is not None:
            out += about.tell(spec, (read,))
    return Read(out)


def _told(clause: str, about: About, before: str) -> Read:
    out: list[Observation] = []
    rest = _without_names(words_of(_MODELS.sub(" ", numerals(clause))))
    whole = [(a, b) for a, b, _ in named_in(rest) if b - a > _LONG]
    for start, end, tells in _statements(rest):
        if any(a < end and start < b and (a < start or end < b) for a, b in whole):
            continue  # words of a name that says more
        if _denied(rest, start, end):
            rest[start:end] = ["|"] * (end - start)
            continue
        numbers = [w for w in rest[start:end] if is_number(w)]
        of = about._replace(many=many, parts=True) if (many := shares.many(rest[start:end])) else about
        for one in tells:
            out += _of_statement(one, numbers, of)
        rest[start:end] = ["|"] * (end - start)
    plain = words_of(things.without_counts(_LOADED.sub(" ", " ".join(rest)), about.counted))
    if _at_full(clause, about.line):
        plain = [*plain, "|", "gpu", "utilization", "100", "%"]
    read = values(plain, before, words_of(clause), foreign=about.foreign)
    for fact, told, _ in read.taken:
        if fact == _ANY_EVENT and told == (True,) and _THROTTLING.search(clause) and not _OF_HARDWARE.search(clause):
            continue  # "it throttles" is a symptom: what lowers the clocks is not said
        out += about.tell(vocabulary()[fact], told)
        if (grows := _growing(fact)) and _GROWS.search(clause) and all(o.fact != grows for o in out):
            out += about.tell(vocabulary()[grows], (True,))
    used = frozenset[int]().union(*(t.places for t in read.taken))
    return Read(out, " ".join(w for n, w in enumerate(plain) if n not in used and w != "|"), bool(read.open))


def _without_names(words: Sequence[str]) -> list[str]:
    """The words without names of products; "one A100", 一张 A100 are one GPU."""
    return [
        "gpu" if w == "<model>" else w
        for w, ahead in zip(words, ["", *words], strict=False)
        if w != "<model>" or ahead in _ONE_OF
    ]


_ONE_OF = frozenset({"one", "same", "single", "张", "块"})


def _growing(counter: str) -> str:
    """The fact that says that a counter grows; empty where none does."""
    return next((grows for start, grows in _GROWING if re.match(start, counter) and counter != grows), "")


_GROWING = (
    (r"gpu\.pcie\.replay$", "gpu.pcie.replay.growing"),
    (r"gpu\.nvlink\.errors\.", "gpu.nvlink.errors.growing"),
    (r"gpu\.ecc\.\w+\.uncorrected\.", "gpu.ecc.uncorrected.growing"),
    (r"gpu\.ecc\.\w+\.corrected\.", "gpu.ecc.corrected.growing"),
    (r"port\.counters\.", "port.errors.growing"),
)
# 41200 and climbing | still going up, 还在涨
_GROWS = lazy(
    r"(?<![a-z])(?:and|still|keeps?|is|are|but|,)\s+(?:still |it(?:'s| is) |keeps? )*(?:climb|grow|ris|increas|count)(?:ing|s|es)?(?: up)?(?![a-z])|(?<![a-z])(?:climbing|growing|rising|increasing|going up)(?![a-z])|(?:还|一直|持续|不断|不停)在?(?:往上)?(?:涨|增长|上升|增加|变多|跳)|在涨",
    _I,
)
_ANY_EVENT = "gpu.clock.event.hw_slowdown"  # of the clock events the one that a bare "throttling" asks for
_THROTTLING = lazy(r"(?<![a-z])throttl(?:ing|ed|es?)(?![a-z])(?!\s+(?:reasons?|status|events?))", _I)
_OF_HARDWARE = lazy(r"(?<![a-z])(?:hw|hardware|slowdown)(?![a-z])|硬件", _I)
_LONG = 2  # words of a name from which on a statement that shares some of them was not meant
NO = frozenset(["no", "not", "without", "never", "neither", "nor", "没", "无", "未"])
# Under load it is meant, and no value of the load.
_LOADED = lazy(r"(?:under|at|with)\s+(?:full\s+|heavy\s+|max\s+)?load|满 载|满 负 载|负 载 下|带 载", _I)
_FULL = lazy(
    r"(?<![a-z])(?:under|at|with)\s+(?:full|heavy|max|100\s*%)\s+(?:load|utili[sz]ation|usage)(?![a-z])|^\s*(?:at |under )?full load\s*$|满载|满负载|满负荷|满利用率",
    _I,
)
_WATTS = lazy(r"[0-9]\s*k?w(?:atts?)?(?![a-z])|[0-9]\s*瓦", _I)


def at_full_load(text: str) -> bool:
    """Whether a text says that a GPU is under full load."""
    return _FULL.search(text) is not None


def _at_full(clause: str, line: str) -> bool:
    """Whether a clause tells by "full load" how busy a GPU is: beside another reading it only says when that was taken, but
    what a GPU draws is held against it, where its model tells how much that could be."""
    if _FULL.search(clause) is None:
        return False
    bare = things.without_counts(numerals(_FULL.sub(" ", clause)))
    return _NUMBER.search(bare) is None or (_WATTS.search(bare) is not None and things.MODEL.search(line) is not None)


def _denied(words: Sequence[str], start: int, end: int) -> bool:
    """Whether a statement stands behind a word that denies it: "no smoke comes out", 没有冒烟."""
    ahead = [w for w in words[max(0, start - 3) : start] if w not in ("|", ",")]
    return bool(NO & set(ahead[-2:])) and not NO & set(words[start:end])


def _statements(words: Sequence[str]) -> list[tuple[int, int, tuple[Told, ...]]]:
    """Start, end and facts of each statement that the words hold, the longest first, none within another."""
    by_first, rows = _rows()
    shape = ["<n>" if is_number(w) else w for w in words]
    noughts = [
        "0" if w in ("0", "0.0") else s for w, s in zip(words, shape, strict=True)
    ]  # "at 0 rpm" says more than a number
    found = []
    for said in (shape, noughts) if "0" in noughts else (shape,):
        for at, word in enumerate(said):
            for number in by_first.get(word, ()):
                row, tells = rows[number]
                if ends := phrases.ends(row, said, [at]):
                    found.append((at, max(ends), tells))
    found.sort(key=lambda one: (one[0] - one[1], one[0]))
    out: list[tuple[int, int, tuple[Told, ...]]] = []
    for start, end, tells in found:
        if all(end <= a or start >= b for a, b, _ in out):
            out.append((start, end, tells))
    return out


@cache
def _rows() -> tuple[Mapping[str, list[int]], list[tuple[phrases.Row, tuple[Told, ...]]]]:
    """The statements of the lexicon as rows, and those that each word can begin."""
    rows = [(phrases.parse(s.text.replace("<m>", "<n>"), {}), s) for s in lexicon().statements]
    by_first: dict[str, list[int]] = {}
    out: list[tuple[phrases.Row, tuple[Told, ...]]] = []
    for number, (row, s) in enumerate(rows):
        for word in phrases.firsts(row):
            by_first.setdefault(word, []).append(number)
        out.append((row, _ordered(s.text, s.tells)))
    return by_first, out


def _ordered(text: str, tells: tuple[Told, ...]) -> tuple[Told, ...]:
    """The facts with <n> and <m> as the first and the second number of this phrase: "8 卡只有 7 张" says the greater first."""
    if 0 <= text.find("<m>") < text.find("<n>"):
        swap = {"<n>": "<m>", "<m>": "<n>"}
        return tuple(
            t._replace(value=swap.get(t.value, t.value) if isinstance(t.value, str) else t.value) for t in tells
        )
    return tells


# the first or the second number, the second without the first, what is left of a hundred; with its unit, where the words say it
_VALUE = lazy(r"<(n|m|m-n|100-n)>(?: (s|ms|min))?")
_MINUTE = 60  # seconds


def _of_statement(one: Told, numbers: Sequence[str], about: About) -> Iterator[Observation]:
    spec = vocabulary().get(one.fact)
    if spec is None:
        return
    if spec.kind is Kind.EVENT:
        yield from about.tell(spec, (Event(None, dict(one.where)),))
        return
    value = _value_of(one, spec, numbers)
    if value is None or isinstance(value, Problem):
        return
    yield from about.tell(spec, (value,))
    if one.others is not None:
        yield about.one(spec, one.others, things.OTHER)


def _value_of(one: Told, spec: FactSpec, numbers: Sequence[str]) -> Value | Problem:
    """The value that a statement tells with these numbers; none where it needs more of them."""
    if not isinstance(one.value, str) or (which := _VALUE.fullmatch(one.value)) is None:
        return parse(spec, one.value) if spec.type is Type.SET and isinstance(one.value, str) else one.value
    if len(numbers) < 1 + ("m" in which[1]):
        return None
    n, m = float(numbers[0]), float(numbers[-1 if len(numbers) < 2 else 1])
    if which[1] in ("m-n", "100-n"):
        return parse(spec, f"{abs(m - n) if which[1] == 'm-n' else max(100 - n, 0):g}")
    said = numbers["nm".index(which[1])]
    return parse(spec, f"{float(said) * _MINUTE:g} s" if which[2] == "min" else f"{said} {which[2] or ''}".strip())
