"""Which events the words of a question mean: "the OOM kill", "GSP timeouts", "Xid 63", "链路断开".

A word of the table below stands for what lines say in other words. All words of a question that the table knows have to hold
for an event; of a question without any nothing is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Scope

_I = re.IGNORECASE
_CODED = ("xid", "xid_reported", "xid_exported", "xid_implied")


class _Word(NamedTuple):
    """One thing that people name: how they say it, and what the lines and titles of such events hold."""

    id: str
    said: re.Pattern[str]
    line: re.Pattern[str]


def _word(name: str, said: str, line: str) -> _Word:
    return _Word(name, lazy(said, _I), lazy(line, _I))


_L, _R = "(?<![a-z])", "(?![a-z])"
_WORDS = (
    _word("nvlink", "nvlink", "nvlink"),
    _word("nccl", rf"{_L}(?:nccl|collectives?|watchdog|all_?reduces?){_R}|集合通信", "nccl|watchdog"),
    _word("gsp", rf"{_L}gsp{_R}", rf"{_L}gsp{_R}"),
    _word("timeout", r"time[- ]?outs?|timed out|超时", r"time[- ]?out|timed out|retry_exc"),
    _word("oom", rf"{_L}ooms?{_R}|(?:out of|ran out of|run out of|short of)(?: \w+)? memory|oom|内存不足|内存不够|爆内存|爆显存|显存不足|显存不够", r"out of[_ ]memory|oom"),
    _word("kill", rf"{_L}kill(?:s|ed)?{_R}|被杀|杀死|杀掉|杀进程", "kill|cancelled"),
    _word("ecc", rf"{_L}(?:ecc|dbes?|sbes?)|double[- ]bit|(?:un)?contained|memory errors?|显存错误|(?:不可纠正|双比特)", r"ecc|double bit|dbe|remap|contained|page retirement"),
    _word("remap", r"remap\w*|重映射", "remap"),
    _word("pcie", r"pci-?e?(?![a-z:])|(?<![a-z])aer(?![a-z])", r"pcie|pci express|(?<![a-z])aer(?![a-z])"),
    _word("fatal", r"(?:pci-?e?|(?<![a-z])aer)(?![a-z:]).{0,30}?(?<!non[- ])(?:fatal|致命)|(?<!non[- ])fatal.{0,12}(?:pci-?e?|aer)(?![a-z:])", r"(?<!non-)(?<!non )fatal"),
    _word("bus", r"f[ae]ll(?:s|en|ing)? off|off the bus|掉卡|掉线的?卡|总线", "fallen off the bus"),
    _word("network", rf"{_L}(?:network\w*|fabric|infiniband|ib|roce|nics?|hcas?){_R}|网络|网卡", r"link_carrier|nic_error|net/ib|mlx5|infiniband|roce|network|ib_"),
    _word("link", rf"{_L}links?{_R}|链路", r"(?<!nv)link"),
    _word("flap", rf"{_L}flap\w*|抖动|闪断|反复通断", r"link_carrier|link (?:down|up)|flap|up and down"),
    _word("down", rf"{_L}(?:went|goes|go|going|gone|get|got|was|come|came) (?:\w+ )?down{_R}|{_L}down{_R}|断开?|掉线", r"\bdown\b|unplugged"),
    _word("reboot", rf"{_L}(?:re)?boot(?:s|ed|ing)?{_R}|重启", r"boot"),
    _word("hang", rf"{_L}(?:hang|hangs|hung|blocked|stuck){_R}|卡死|卡住|挂起", r"blocked for|hung|hang|lockup"),
    _word("page fault", rf"page faults?|{_L}mmu{_R}|illegal (?:memory )?access|缺页", r"mmu|page fault|illegal"),
    _word("nan", rf"{_L}nans?{_R}", rf"{_L}nan{_R}"),
    _word("throttle", r"throttl\w*|降频|overheat\w*|过热|thermal|too hot", r"throttl|thermal|too hot|slowdown|clock lost|temperature|lowers its clock"),
    _word("reset", rf"{_L}resets?{_R}|复位|重置", r"reset"),
    _word("requeue", r"requeu\w*|重新排队", "requeue"),
    _word("respond", r"respond\w*|无响应|无应答", "not responding|does not answer"),
    _word("job", rf"{_L}(?:jobs?|training|run){_R}|作业|任务|训练", r"job_|slurm_step_ended|rank_failed|job"),
    _word("cancel", r"cancel\w*|取消", "cancel"),
)  # fmt: skip
_GPU = lazy(rf"{_L}(?:gpus?|cards?|xids?){_R}|显?卡", _I)
_CODE = lazy(rf"{_L}(?:xid|sxid)s?[ :#]{{0,3}}([0-9]{{1,5}}(?:(?:\s*,\s*|\s+and\s+|和|、)[0-9]{{1,5}})*)", _I)


def text_of(o: Observation) -> str:
    """What an event says, with the title of its code and the name of its kind."""
    from knowledge.catalog.xid import xid

    assert isinstance(o.value, Event)
    code = o.value.code if o.fact in _CODED and isinstance(o.value.code, int) else None
    entry = xid(code) if code is not None else None
    kinds = (str(v) for k in ("kind", "reason", "state") if (v := o.value.get(k)))
    return " ".join((o.fact, *kinds, o.excerpt, entry.title.en if entry else ""))


def codes(text: str) -> set[int]:
    """The codes of errors that a text names."""
    return {int(n) for found in _CODE.finditer(text) for n in re.findall("[0-9]+", found[1])}


def words(text: str) -> tuple[re.Pattern[str], ...]:
    """What lines hold of the things that a text names."""
    named = [w for w in _WORDS if w.said.search(text)]
    if any(w.id == "nvlink" for w in named):
        named = [w for w in named if w.id != "link"]
    return tuple(w.line for w in named)


def names_any(text: str) -> bool:
    """Whether a text names a thing that lines could tell of."""
    return bool(codes(text) or words(text) or _GPU.search(text))


_KINDS_OF_TROUBLE = ("nvlink", "gsp", "ecc", "remap", "pcie", "bus", "page fault", "nan", "throttle", "oom")


def specific(text: str) -> bool:
    """Whether a text names a kind of trouble that findings are told apart by."""
    return any(w.id in _KINDS_OF_TROUBLE and w.said.search(text) for w in _WORDS)


def meant(text: str, events: Iterable[Observation]) -> tuple[Observation, ...]:
    """The events that the words of `text` mean, in their order; none where it names nothing of what happened."""
    return tuple(_meant(text, events))


def _meant(text: str, events: Iterable[Observation]) -> Iterator[Observation]:
    numbers, lines = codes(text), words(text)
    of_gpu = not (numbers or lines) and _GPU.search(text) is not None
    if not (numbers or lines or of_gpu):
        return
    for o in events:
        if not isinstance(o.value, Event):
            continue
        if numbers:
            if o.value.code in numbers:
                yield o
        elif of_gpu:
            if o.subject.up(Scope.GPU) is not None:
                yield o
        elif all(line.search(text_of(o)) for line in lines):
            yield o
