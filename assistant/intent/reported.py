"""What is reported of a machine and is answered by an entry of advice, for it is no fault, is past, or is told as a row of figures.

A link that rests, the fan of a card that has none, corrected errors alone, a fault that a reset ended, step times with one far above.
"""

from __future__ import annotations

import re

from assistant.intent import recurred
from assistant.intent.reading import Reading
from knowledge.lazy import lazy

_I = re.IGNORECASE
_LONG = 200  # characters: who reports more wants all of it looked at
_FAR = 1.8  # times the median, from which a step stands out; below _NEAR of spread none does
_NEAR = 1.1
_FEW = 1000  # corrected errors; from more on how fast they came is asked
_OF_LOSS = frozenset(("gpu-missing", "gpu-lost", "memory-errors", "node-unreachable"))  # what the code itself says
_NEVER_PAST = frozenset((64,))  # a repair that failed stays so
_GENERATION = lazy(
    r"(?<![a-z])(?:pci-?e?|link)(?![a-z]).{0,30}(?<![a-z])gen(?:eration)?\s?(?:\w+\s){0,2}?[1-5](?![0-9])"
    r"|(?<![a-z])gen(?:eration)?\s?[1-5](?![0-9]).{0,30}(?<![a-z])(?:pci-?e?|link)(?![a-z])",
    _I,
)
_RESTS = lazy(
    r"(?<![a-z])(?:idle|idling|at rest|nothing (?:is )?running|no (?:load|job|jobs))(?![a-z])|空闲|空载|没有任务|没任务",
    _I,
)
_LANES = lazy(
    r"(?<![a-z0-9])x\s?(?:1|2|4|8)(?![0-9])|(?<![a-z])(?:width|lanes?|replays?|aer|errors?|under load|busy|slow\w*|missing|xid)(?![a-z])|宽度|通道|重传|报错|负载下|慢",
    _I,
)
# persistence mode won't stay on after reboot | 功率限制重启后又变回默认
_SETTING = lazy(
    r"(?<![a-z])(?:persistence(?: mode)?|persistenced|power (?:limit|cap)s?|(?:locked |application )?clocks?|clock locks?|ecc mode|compute mode)(?![a-z])|持久化?模式|常驻模式|功[率耗](?:上限|限制|墙)|锁频|计算模式",
    _I,
)
_LOST_AT_BOOT = lazy(
    r"(?<![a-z])(?:(?:won'?t|wont|doesn'?t|doesnt|does not|not|never|isn'?t) (?:stay|stick|persist|survive|hold|kept|keep|remain)\w*|(?:is|are|gets?|goes|was|keeps?|turns?) (?:\w+ )?(?:lost|off|reset|resetting|gone|reverted|back|disabled))(?![a-z]).{0,30}(?<![a-z])(?:re-?boots?|restarts?|power[- ]?cycles?)(?![a-z])"
    r"|重启[^，。；,;]{0,6}(?:又|就|会|都|后)[^，。；,;]{0,8}(?:关|丢|失效|没了|不生效|变回|恢复默认|还原|掉|重置)",
    _I,
)
_FAN_STILL = lazy(
    r"(?<![a-z])fans?(?: speed)?(?: (?:is|at|shows?|reads?|reports?|says))? ?(?:0 ?%|0 ?rpm|n/?a|\[n/a\]|zero)(?![a-z0-9])|风扇(?:转速)?(?:是|为|显示)? ?(?:0|n/a)",
    _I,
)
_NO_FAN = lazy(r"(?<![a-z0-9])(?:sxm\d?|hgx|dgx|[abh][123]00s?|h20|l40s?|l4|a10|a30|a40|v100|gh200|gb200)(?![0-9])", _I)
_HOT = lazy(
    r"(?<![a-z])(?:hot|overheat\w*|thermal|throttl\w*|slow\w*)(?![a-z])|[89][0-9] ?(?:°|c(?![a-z])|度)|1[01][0-9] ?(?:°|c(?![a-z])|度)|过热|降频",
    _I,
)
_CORRECTED = lazy(
    r"(?<!un)(?<!un-)(?<![a-z])(?:corrected|correctable|single[- ]bit)(?: (?:ecc|memory|errors?|dram|hbm))*\s*(?:is|are|=|:|count|counter)?\s*(?P<n>[0-9]+)(?![0-9.])|(?<![0-9.])(?P<m>[0-9]+) (?:corrected|correctable|single[- ]bit)(?![a-z])|(?<!不)可纠正(?:错误)?\s*(?:是|为)?\s*(?P<z>[0-9]+)",
    _I,
)
_REST_NONE = lazy(
    r"(?<![a-z])(?:uncorrect(?:ed|able)|double[- ]bit|dbe)(?: (?:ecc|memory|errors?|dram|sram))*\s*(?:is|are|=|:)?\s*(?:0|none|zero)(?![0-9.])|(?<![0-9.])(?:0|no) (?:uncorrect\w+|double[- ]bit)|(?:everything|all) else (?:is )?(?:0|zero|fine|clean)|不可纠正(?:错误)?\s*(?:是|为)?\s*0|其[他它余]都?[是为]? ?0",
    _I,
)
_GROWS = lazy(
    r"(?<![a-z])(?:per|an?|each|every) (?:hour|day|minute|week)|/(?:h|hour|day|min)(?![a-z])|(?<![a-z])(?:grow\w*|ris\w+|increas\w*|jump\w*|climb\w*|since|pending|failure|failed|remap\w*|xid|crash\w*|others?|peers?)(?![a-z])|增长|上涨|一直涨|每[天小]|重映射",
    _I,
)
_NOT_GONE = lazy(
    r"(?<![a-z])(?:not|n't|never|isn't|nothing) (?:yet )?(?:gone|fine|ok|okay|cleared|disappeared)|没(?:有)?(?:消失|好|恢复)",
    _I,
)
_TOLD = lazy(r"(?<![a-z])(?:rebooted|power[- ]cycled|restarted)(?![a-z])", _I)  # an event, which ends what it cures
_TURNS = lazy(
    r"(?<![a-z])(?:but|however|yet|now|today|again(?! (?:ok|okay|fine|up|online)))(?![a-z])|但|不过|又|现在|今天", _I
)
_ASKS_USE = lazy(
    r"(?<![a-z])(?:usable|use|using|trust|keep|safe|ok|okay|fine|healthy|good|rma|replace|worry|return|back into|schedul\w+|drain)(?![a-z])|能用|可以用|还能|放心|要换|返修|正常吗|没事|要紧",
    _I,
)
_STEPS = lazy(
    r"(?<![a-z])(?:steps?|iter(?:ation)?s?|batch)(?: (?:times?|durations?|took|takes?|seconds))?(?![a-z])[^0-9]{0,20}(?P<row>[0-9.]+(?: ?(?:ms|s|sec\w*)(?![a-z]))?(?:[\s,;/]+[0-9.]+(?: ?(?:ms|s|sec\w*)(?![a-z]))?){3,40})|(?:步时间|迭代时间|每步(?:时间|耗时)?)[^0-9]{0,8}(?P<line>[0-9.]+(?: ?(?:ms|s|毫?秒))?(?:[\s,;/，、]+[0-9.]+(?: ?(?:ms|s|毫?秒))?){3,40})",
    _I,
)
_FIGURE = lazy(r"[0-9]+(?:\.[0-9]+)?")
_SLOW_ONE = lazy(
    r"(?<![a-z])(?:<gpu>|(?:one|1|a single) (?:gpu|card))(?![a-z]).{0,30}(?<![a-z])slower (?:than|compared)|<gpu>.{0,12}比其[他它余].{0,8}慢",
    _I,
)
_SLOW_NOW = lazy(
    r"(?<![a-z])slower (?:than|since) (?:<since>|before|last|yesterday|it was|it used)[^?]{0,80}(?:nothing|no(?:thing)? (?:has )?chang|same (?:code|nodes?|config|image))|比(?:上周|昨天|以前|之前|<since>)慢[^？]{0,30}(?:没(?:有)?(?:改|变|动)|什么都没)",
    _I,
)


# vllm reports OOM on two A100: GPU memory, and not the kernel that kills for want of host memory
_ENGINE = lazy(r"(?<![a-z])vllm(?![a-z])", _I)
_SHORTAGE = lazy(r"(?<![a-z])ooms?(?![a-z-])|out of (?:gpu )?memory|outofmemory|爆显存|显存不足|显存不够|显存溢出", _I)
_OF_HOST = lazy(
    r"(?<![a-z])(?:kill\w*|137|host|ram|cpu|dmesg|kernel|cgroup|pods?|decode|hours?|days?|requests?|kv)(?![a-z])|被杀|杀掉|内存不足|主机|几小时|跑着|请求|隔",
    _I,
)


def page(r: Reading) -> str:
    """The entry that answers what `r` reports; empty where a machine has to be looked at."""
    said = r.said
    if r.raw or r.pasted.pasted or len(said) > _LONG:
        return ""
    if _GENERATION.search(said) and _RESTS.search(said) and not _LANES.search(said):
        return "advice idle-pcie-generation"
    if _SETTING.search(said) and _LOST_AT_BOOT.search(said):
        return "advice settings-after-reboot"
    if _FAN_STILL.search(said) and _NO_FAN.search(said) and not _HOT.search(said):
        return "advice fan-zero"
    if (found := _CORRECTED.search(said)) and _only_corrected(found, said):
        return "advice corrected-ecc-rate"
    if _ENGINE.search(said) and _SHORTAGE.search(said) and not (_OF_HOST.search(said) or _names_one(r)):
        return "advice vllm-start-oom"
    return _steps(said) or _past(r) or _slow(r)


def _names_one(r: Reading) -> bool:
    """Whether a machine, a GPU or a job is called by its name: that one is looked at."""
    of = r.found.slots
    return any((of.node, of.gpu, of.pid, of.job, of.xid))


def _only_corrected(found: re.Match[str], said: str) -> bool:
    """Whether corrected errors are counted, not many, and the others are said to be none."""
    many = int(found["n"] or found["m"] or found["z"])
    return 0 < many <= _FEW and _REST_NONE.search(said) is not None and not _GROWS.search(said)


def _steps(said: str) -> str:
    """The entry for a row of step times: one stands far out, or all are alike."""
    found = _STEPS.search(said)
    if found is None:
        return ""
    from statistics import median  # not at the start: it loads fractions, decimals and random numbers

    row = [float(n) for n in _FIGURE.findall(found["row"] or found["line"])]
    if len(row) < 4 or not (middle := median(row)):
        return ""
    if max(row) >= _FAR * middle:
        return "advice step-time-outliers"
    return "advice step-variance" if max(row) <= _NEAR * min(row) else ""


def _past(r: Reading) -> str:
    """The entry for a fault that a reset or reboot ended, where it is asked if the GPU is good for work."""
    of = r.found.slots
    if len(of.xid) != 1 or not _NEVER_PAST.isdisjoint(of.xid) or not _ASKS_USE.search(r.said):
        return ""
    if not _OF_LOSS.issuperset(r.signs):
        return ""
    over = recurred.ended_by_cure(r.said) and not _NOT_GONE.search(r.said) and not recurred.back_after(r.said)
    return "advice gone-after-a-reset" if over and not (_TURNS.search(r.said) or _TOLD.search(r.said)) else ""


def _slow(r: Reading) -> str:
    """The entry for one GPU that is slower than the others, or a training that is slower than it was, with no reading beside it."""
    marked = re.sub(r"\s+", " ", r.found.marked)
    if _SLOW_NOW.search(marked):
        return "advice slower-than-before"
    return "advice one-gpu-slower" if _SLOW_ONE.search(marked) else ""
