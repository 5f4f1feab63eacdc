"""The things that a clause is about: GPUs that it names, so many of which nobody said which ("three GPUs", 7 of 8), a port, a node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from assistant.intent.query import Slots
from assistant.intent.slots import slots
from assistant.intent.told import TOLD
from knowledge.facts import FactSpec
from knowledge.identity import UNKNOWN_PCI
from knowledge.lazy import lazy
from knowledge.observation import Observation, Origin, Scope, Subject, Value, gpu, node

OTHERS = 16  # GPUs that one clause is about, at most
UNSAID = f"{UNKNOWN_PCI}?"
OTHER = f"{UNKNOWN_PCI}others"
_I = re.IGNORECASE
# A100, H100s, 8xH100, MI300X, GB200, 910B, H100 80GB: a number within a name counts nothing.
# GPU count 7/8 | gpu count is 7 of 8 | 7/8 GPUs | GPU 数量 7/8: how many are there of how many, and no reading of any other kind
SHARE_OF_GPUS = lazy(
    r"(?:(?<![a-z])(?:gpu|card|accelerator) (?:count|number)|(?<![a-z])number of (?:gpus|cards)|(?:gpu|卡|显卡)\s?的?(?:数量|个数|总数|数))"
    r"(?: is| shows|是|为|显示)?\s?[:：=]?\s?(?P<a>[0-9]{1,2})\s?(?:/|of|out of)\s?(?P<b>[0-9]{1,2})(?![0-9./]|\s*[a-z]?%|\s*[°℃度])"
    r"|(?<![0-9./a-z])(?P<c>[0-9]{1,2})\s?/\s?(?P<d>[0-9]{1,2}) ?(?:gpus|cards|accelerators|张卡|块卡)(?: (?:are )?(?:visible|seen|present|detected|there)|(?=\s*(?:[,;.?!，。；？]|$)))",
    re.IGNORECASE,
)


MODEL = lazy(
    r"(?<![a-z0-9-])(?:nvidia\s)?(?:[lt]4)(?![a-z0-9])|(?<![a-z0-9-])nvidia\sa2(?![a-z0-9])|(?:昇腾|(?<![a-z])ascend)\s?[0-9]{3}[a-z]?[0-9]?(?![a-z0-9])|(?<![a-z0-9.])(?:910[a-d]|310p)[0-9]?(?![a-z0-9])|(?:(?<![a-z0-9])|(?<=[0-9]x))(?!p(?:50|75|9[059]|99[0-9])(?![0-9a-z]))(?:rtx|gtx|tesla|quadro)?\s?(?:[abghlvtp]|gb|gh|mi|rtx\s?|gtx\s?|rx\s?(?=[0-9]{4}))[0-9]{2,4}[a-z]{0,3}(?:[ -](?:40|80|96|141|192)\s?gi?b)?(?![a-z0-9])|(?<![a-z0-9.])[0-9]{1,3}\s?x(?=\s+(?!slow|fast|more|less|long|short|high|low|big|small|worse|better|the|as|its)[a-z])"
    # a 4090 | 3090 空闲: cards that go by their number alone
    r"|(?:^\s*|(?<=[,;，；。]\s)|(?<=[，；。的张块])|(?<=(?<![a-z])a\s)|(?<=(?<![a-z])(?:an|my|on|of)\s)|(?<=(?<![a-z])(?:the|our)\s))(?:2080|3080|3090|4080|4090|5080|5090)(?:\s?(?:ti|super|d))?(?![a-z0-9.]|\s*(?:%|w|mhz|mi?b|gi?b|c|rpm|ms|s|errors?|times)(?![a-z]))",
    _I,
)
_THINGS = r"(?:<model>|gpus?|nodes?|cards?|machines?|hosts?|ranks?|jobs?|devices)(?![a-z])"
# 8 GPUs | 8 卡 | 8xH100 | 7 of 8 GPUs | 8 张卡里 7 张: how many there are is no reading of any.
COUNT = lazy(
    r"(?<![a-z])(?:all|each of the|on all)\s+(?P<every>[0-9]{1,3}|eight|four|sixteen)(?=\s+(?:at|on|are|is|have|show|run|under)(?![a-z])|\s*(?:[,.;?]|$))|"
    rf"(?<![a-z0-9.])(?<!xid )(?<!xid: )(?<!xid=)(?:(?P<some>[0-9]{{1,6}})\s*(?:(?:out\s+)?of|/)\s*(?:the|our|my|its)?\s*)?(?P<all>[0-9]{{1,6}})\s*(?:-\s*)?(?:other\s+)?{_THINGS}"
    r"|(?<![0-9.])(?P<whole>[0-9]{1,6})\s*[块张]?\s*(?:(?:<model>|卡|gpu)\s*){0,2}(?:(?:里面?|中|当中|之中)\s*(?:有|只有)?|有(?=\s*[0-9]+\s*[块张]))\s*(?P<part>[0-9]{1,6})\s*[块张个]?\s*(?:卡|gpu)?|(?<![0-9.])(?P<han>[0-9]{1,6})\s*(?:[块张]\s*(?:<model>|卡|gpu)?|台|个\s*(?:节\s*点|gpu|卡)|卡(?!\s*[里的]?\s*第))",
    _I,
)
# ... 3 at x16, 1 at x4: of those that were counted just now
_SO_MANY = lazy(
    r"^\s*(?:and |but |only |just |the other )*(?P<n>[0-9]{1,4})\s+(?:(?:of (?:them|these|those)|others?)\s+)?(?=(?:at|on|is|are|has|have|shows?|runs?|sits?|reads?|draws?|only)(?![a-z]))",
    _I,
)
_OTHERS = lazy(
    r"(?<![a-z])(?:the\s+|all\s+|everyone\s+)?(?:others?|rest)(?![a-z])|everyone else|其\s?他|其\s?余|另\s?外|别\s?的",
    _I,
)
_BUT = lazy(
    r"(?<![a-z])(?:all|every\w*|each)\s+(?:gpus?\s+)?(?:but|except)\s+<gpu>|除\s*了?\s*<gpu>\s*[以之]?\s*外", _I
)  # all but GPU 3
_FOREIGN = lazy(
    r"(?<![a-z])(?:nvme[0-9n]*|ssds?|disks?|drives?|cpus?|psus?|power suppl\w+|inlet|transceivers?|optics?|nics?|hcas?|bmc|dimms?|switch)(?![a-z])|硬盘|电源(?!刹车|限)|网卡|光模块|交换机",
    _I,
)
_OF_GPUS = lazy(
    r"<gpu>|<model>|(?<![a-z])(?:gpus?|cards?|hbm|vram|sm|nvlinks?|ecc|core)(?![a-z])|显存|显卡|[张块号]\s*卡", _I
)
PORT = lazy(r"(?<![a-z0-9])(?:mlx[0-9]{1,2}_[0-9]{1,3}|ib[0-9]{1,3}|ibp[0-9a-z]{2,16}|hca[0-9]{1,2})(?![a-z0-9])", _I)


_SIZED = lazy(
    r"\s*-?(?:box|node|server|machine|host|system|chassis)(?![a-z])|\s*(?:的)?(?:机(?!房|柜)|服务器|节点|主机)", _I
)


_ONLY_SEEN = lazy(
    r"(?:只|仅|就|才)\s*(?:能)?\s*(?:有|剩下?|看得?\s*到|认\s*到|识\s*别\s*[到出]?|显\s*示|列\s*出?)\s*(?:[出了]\s*)?$"
)


class Group(NamedTuple):
    """So many GPUs of which nobody said which."""

    some: int
    of: int = 0  # of how many; 0: that was not said


def is_foreign(text: str) -> bool:
    """Whether a text is about a drive, a CPU, a power supply, and about no GPU."""
    return _FOREIGN.search(text) is not None and _OF_GPUS.search(text) is None


def group(clause: str, counted: bool = False) -> Group | None:
    """How many GPUs a clause is about: "3 of 8 GPUs", "three GPUs", 八张卡里七张. None where it does not say so, or of one.

    `counted`: GPUs were counted ahead of it, so "3 at x16" are three of them.
    """
    for found in COUNT.finditer(clause):
        if found["han"] and _ONLY_SEEN.search(clause, 0, found.start()):
            continue  # nvidia-smi 只有 7 张: so many are there, and none of them is in question
        if not found["some"] and _SIZED.match(clause, found.end()):
            continue  # 8 卡机, an 8 GPU box: how large the machine is
        if found["some"]:
            return Group(int(found["some"]), int(found["all"]))
        if found["part"]:
            return Group(int(found["part"]), int(found["whole"]))
        if found["every"]:
            return None  # of all of them
        if re.search(r"gpu|card|[块张卡]", found[0], _I):
            return Group(int(found["all"] or found["han"]))
    if (models := _OF_MODEL.search(clause)) is not None:
        return Group(int(models["n"]))
    some = _SO_MANY.search(clause) if counted else None
    return Group(int(some["n"])) if some else None


# 8 H100s all at 100 %, and no 8x H100 node
_OF_MODEL = lazy(
    r"(?<![0-9.])(?P<n>[0-9]{1,2})\s*x?\s*<model>\s*s?\s+(?:all|each|both|are|sit|sitting|stuck|pegged|pinned|at|show|showing|draw|drawing|read|reading|report|run|running)(?![a-z])",
    _I,
)


def without_counts(clause: str, counted: bool = False) -> str:
    """A clause without the numbers that count things."""
    return COUNT.sub(" ", _SO_MANY.sub(" ", clause) if counted else clause)


def of_others(clause: str, many: Group | None) -> int:
    """How many GPUs a clause is about that are not the ones in question: "the others" of at least two, most of those there."""
    if many is not None and many.some > 1 and 2 * many.some > many.of > 0:
        return min(many.some, OTHERS)
    if _OTHERS.search(clause) or _BUT.search(clause):
        return min(max(many.some, 1), OTHERS) if many is not None else 2
    return 0


def named(one: int | str) -> str:
    """The id of a GPU that is called by a number, an address or a UUID."""
    return f"index:{one}" if isinstance(one, int) else one


def of_gpu(subject: Subject, called: str) -> Subject:
    """A thing of which nobody said whose it is, as one of the GPU `called`."""
    if subject.scope is Scope.GPU and subject.id == UNSAID:
        return Subject(Scope.GPU, called, subject.parent)
    if subject.scope is Scope.LINK and subject.parent is not None:
        return Subject(Scope.LINK, subject.id, of_gpu(subject.parent, called))
    return subject


class About(NamedTuple):
    """The things that a clause is about."""

    host: str
    gpus: tuple[int | str, ...]  # as they are named; empty when it was not said which
    line: str
    port: str = ""  # ib3, mlx5_0
    many: int = 1  # how many GPUs, where nobody said which
    others: int = 0  # GPUs that are not in question
    counted: bool = False  # whether GPUs were counted in it or ahead of it
    foreign: bool = False  # whether it is about a drive, a CPU, a power supply, and no GPU
    parts: bool = False  # whether ports, drives, power supplies are what was counted

    def tell(self, spec: FactSpec, values: Sequence[Value]) -> Iterator[Observation]:
        """The fact of each thing that is meant: the GPUs named, else one or some of which nobody said which; of values that
        are listed each of its own."""
        if spec.scope is Scope.PORT and self.port:
            yield self.one(spec, values[0], self.port)
            return
        gpus = tuple(map(named, self.gpus)) if spec.scope in (Scope.GPU, Scope.LINK) else ()
        if len(values) > 1:
            ids = (
                gpus
                if len(gpus) == len(values)
                else [f"{UNSAID}{n} of {len(values)}" for n in range(1, len(values) + 1)]
            )
            yield from (self.one(spec, value, called) for value, called in zip(values, ids, strict=True))
        elif self.others and spec.scope is Scope.GPU:
            yield from (self.one(spec, values[0], f"{OTHER}{n + 1}") for n in range(self.others))
        else:
            gpus_own = spec.scope in (Scope.GPU, Scope.LINK)
            some = (
                f"{UNSAID}x{self.many}"
                if self.many > 1 and (spec.scope is Scope.GPU if not self.parts else not gpus_own)
                else UNSAID
            )
            yield from (self.one(spec, values[0], called) for called in gpus[:OTHERS] or (some,))

    def one(self, spec: FactSpec, value: Value, called: str) -> Observation:
        """The fact of one thing; of a link that is down the GPU is known, and rarely which link."""
        host = node(self.host)
        subject = host
        if spec.scope is Scope.GPU:
            subject = gpu(called, self.host)
        elif spec.scope is Scope.LINK:
            others = called == OTHER
            owner = next(map(named, self.gpus), UNSAID) if others else called
            subject = Subject(Scope.LINK, OTHER if others else UNSAID, gpu(owner, self.host))
        elif spec.scope is not Scope.NODE:
            subject = Subject(spec.scope, called, host)
        return Observation(spec.name, subject, value, source=TOLD, excerpt=self.line, origin=Origin.TOLD)


def about(clause: str, words: str, slots_: Slots, last: About) -> About:
    """The things of a clause: the GPUs that it names, else those of the clause before. `words` is it as it was said."""
    host = slots_.node[0] if len(slots_.node) == 1 and "[" not in slots_.node[0] else ""
    port = PORT.search(words)
    many = group(clause, last.counted)
    others = of_others(clause, many)
    gpus = slots(words).slots.gpu if "<gpu>" in clause else () if many is not None or others else last.gpus
    so_many = many.some if many is not None and not others else 1
    return About(
        host,
        gpus,
        last.line,
        port[0].casefold() if port else "" if _OTHERS.search(clause) else last.port,
        so_many,
        0 if "<gpu>" in clause and not _BUT.search(clause) else others,
        last.counted or many is not None,
        _FOREIGN.search(clause) is not None if _FOREIGN.search(clause) or _OF_GPUS.search(clause) else last.foreign,
    )


def with_utilization(text: str) -> str:
    """`text`, a bare share of a GPU named as what it is where nothing else is named: "1 of 8 gpus at 0%" is its utilisation."""
    text = _GPU_SHARE.sub(lambda m: f", gpu util {m[1]} %", text)

    def named(m: re.Match[str]) -> str:
        behind = _BEHIND.match(text, m.end())
        of_it = _OF_WHAT.search(text, 0, m.end()) or (behind is not None and _OF_WHAT.search(behind[0]))
        return m[0] if of_it else f"{m[0]} util"

    return _AT_SHARE.sub(named, text)


# 1 of 8 gpus at 0% | one card sits at 3%: of what, where nothing else is named, is its utilisation
_AT_SHARE = lazy(
    r"(?:(?<![a-z])(?:gpus?|cards?|accelerators?|[abhlmv]i?[0-9]{2,3}[a-z]?)|<[a-z]+>)\s+(?:(?:is|are|all|each|both|sits?|sitting|stuck|pegged|pinned|runs?|running|stays?|only|goes|go|drops?|dropped|falls?|fell)\s+){0,3}(?:at|on|to)\s+[0-9]{1,3}(?:\.[0-9]+)?\s?%"
    r"|(?:[张块](?:卡|gpu|<[a-z]+>)?|号卡?|(?<![a-z])(?:gpus?|cards?)|<[a-z]+>\s*显?卡?)\s*(?:[都全部是在跑到掉才有只为约]|差不多|基本)*\s*[0-9]{1,3}(?:\.[0-9]+)?\s?%",
    _I,
)
# What stands behind a share as far as the next reading: "100 % util", "90% of its memory", and none of "100 % and 120 W", "100% 功耗 120W"
_BEHIND = lazy(
    r"(?!\s*(?:功耗|power(?: draw)?)[^0-9,，。;；]{0,8}[0-9.]+\s?(?:w|瓦))(?:(?!(?<![a-z])(?:and|but|yet|while|with|at)(?![a-z])|[但却而])[^0-9,，。;；?？])*",
    _I,
)
# cpu 100% gpu 30%
_GPU_SHARE = lazy(
    r"(?<![a-z])gpus?\s*([0-9]{1,3}(?:\.[0-9]+)?)\s?%(?!\s*(?:的)?(?:显存|内存|功耗|mem|power|util|of|usage|busy|used|full))",
    _I,
)
_OF_WHAT = lazy(
    r"(?<![a-z])(?:util\w*|busy|usage|mem\w*|vram|hbm|power|tdp|fan|clock\w*|occupan\w*|sm|tensor|mfu|cpu|speed|perf\w*|progress|bandwidth|load|full|used|nvlink\w*|pci\w*)(?![a-z])|利用率|显存|内存|功耗|风扇|频率|占用|带宽|负载",
    _I,
)


# 15 degrees hotter than the others | 比别的高 15 度: how far two values lie apart is none of them
_AMOUNT = r"[0-9]+(?:\.[0-9]+)?\s*(?:°\s?c|℃|c|celsius|degrees?|deg|kw|watts?|w|mhz|ghz|gi?b|mi?b|摄氏度|度|瓦)?"
_BY_HOW_MUCH = lazy(
    rf"(?<![a-z0-9_.])(?:about |around |~ ?)?{_AMOUNT}\s*(?=(?:hott?|warm|cool|cold|high|low|few|less|more|bigg|small)[a-z]*\s+than\s+(?:all |its |any |every )?(?:the )?(?:other|rest|peers?|neighbou?r|sibling|average|median|remaining|one)s?(?![a-z]))"
    rf"|(?P<zh>(?:比|较)(?:其[他它余]|别的|旁边|相邻|平均|另外)[^，。；,0-9]{{0,8}}?[高低热冷多少])(?:了|出)?\s*(?:大约|约|将近|近)?\s*{_AMOUNT}",
    re.IGNORECASE,
)


def without_differences(text: str) -> str:
    """`text` without the amounts by which one differs from others: they are values of neither."""
    return _BY_HOW_MUCH.sub(lambda m: m["zh"] or "", text)
