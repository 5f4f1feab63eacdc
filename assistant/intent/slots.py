"""What a sentence names: codes, GPUs, nodes, processes, ranks, jobs, times and files.

Grammar, no dictionary of the site: each slot has its own small patterns, tried in an order in which the more
exact goes first and takes its characters away from the rest. No ``\\b``: beside Han characters there is no word
boundary ("pid4242很慢").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from assistant.intent import names
from assistant.intent.query import Slots
from assistant.intent.times import times
from knowledge.identity import is_pci, normalise_pci
from knowledge.lazy import lazy

MOST = 1024  # members of a range
TAKEN = "\0"  # stands where a slot was found: no other slot reaches across it
_I = re.IGNORECASE
_L, _R = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
# What may stand between the members of a list, and what makes two of them a range.
_AND = (
    r",|;|/|&|\+|、|和|与|跟|及|或者?|以及|还有|(?:然后|之后|接着|后来|后|又|再)又?(?:报|出现|出|抛出?|爆)了?|然后|之后|接着|再|"
    r"(?<![a-z])(?:vs\.?|versus|and|or|then|followed by|after|plus|as well as|also)(?![a-z])"
)
_TO = r"-|~|–|—|\.{2,3}|(?<![a-z])(?:to|through|thru|till|up to)(?![a-z])|到|至"
# Behind these a number counts or measures: "gpu 3, 80 GB used", "xid 79 and 8 GPUs".
_COUNTS = (
    r"(?!\s*(?:%|°|(?:gi?b|mi?b|ki?b|tb|watts?|w|degrees?|c|percent|mhz|ghz|gpus?|nodes?|ranks?|hosts?|times|ms|s|secs?|"
    r"seconds?|min|mins|minutes?|hours?|hrs?|h|days?|x|steps?|errors?|processes|jobs?)(?![A-Za-z0-9_])|度|块|张|台|次|倍|小时|分钟|秒|天|\s*号)"
    r"|[.:][0-9])"
)
_COUNTED_AHEAD = lazy(
    r"(?<![A-Za-z0-9_])(?:[0-9]{1,4}|per|each|every|all|across|two|three|four|eight|sixteen)\s+(?:the\s+)?$",
    _I,
)
_NEXT = lazy(rf"\s*(?:(?P<to>{_TO})|(?:(?:{_AND})\s*){{1,3}})\s*#?", _I)
_SPACE = lazy(r"\s+(?=[0-9])")
_STANDS_AT = lazy(
    r"\s*(?:(?:by |right )?now|already|so far|today)\s*(?:[,.;?!]|$)|\s*and (?:still )?(?:climb|grow|count|ris|increas)\w+",
    _I,
)
_NUMBER = lazy(rf"([0-9]{{1,10}})(?![0-9A-Za-z_]){_COUNTS}", _I)
# Right behind the word a number is its code, whatever thing is named next: "xid 79 gpu 3 is lost", "Xid 154 GPU Reset Required".
_CODE = lazy(r"([0-9]{1,10})(?![0-9A-Za-z_]|[.:][0-9]|\s*%)(?=\s*(?:gpu|node|rank|host|job)(?![A-Za-z_]))", _I)
_OF = r"[\s:#=_(\[\"']*(?:(?:error|errors|code|codes|number|no\.?|num|id|ids|index|idx|event|events|是|为|号|编号|错误|代码|号码)[\s:#=]*){0,2}"

_XID = lazy(rf"(?<![A-Za-z])(?P<s>s?)xids?-?{_OF}(?=[0-9])", _I)
_PID = lazy(
    rf"{_L}(?<!parent )(?:pids?|process(?:es)?|procs?)-?{_OF}(?=[0-9])|(?<!父)进程{_OF}(?:pid)?{_OF}(?=[0-9])", _I
)
_CALLED = lazy(
    r"(?P<what>\bkernels?|\boperators?|\bops?|算子|内核(?:函数)?)"
    r"(?:\s{0,3}[`'\"“‘「](?P<quoted>[^`'\"”’」]{1,300})[`'\"”’」]|(?:\s{1,3}|(?<=[\u4e00-\u9fff]))(?P<name>[A-Za-z_$?][\w:.$<>,*&()\[\]~+/-]{1,300}))",
    _I,
)
_NO_WORD = lazy(r"::|_|<|[a-z][A-Z]|#")
_RANK = lazy(rf"{_L}(?:(?:local|global|world)[ _-])?ranks?-?{_OF}(?=[0-9])", _I)
_GPU = lazy(
    rf"(?<![A-Za-z0-9_.-])(?<!com/)(?<!gres )(?<!gres/)(?<!allocatable )(?<!capacity )(?<!可分配 )(?<!可分配)(?<!other )(?<!all )(?:gpus?|graphics cards?|cards?|devices?|accelerators?|cuda(?=:)|nvidia(?=[0-9]))(?:\s*卡)?{_OF}(?=[0-9])"
    rf"|(?<![0-9单多整])(?:显卡|加速卡|卡){_OF}(?=[0-9])",
    _I,
)
_HAN_NUMBER = "[0-9]{1,4}|[零一二两三四五六七八九十]"
_HAN_THING = rf"(?P<what>(?:gpus?|ranks?){_R}|(?:显|加速|计算)?卡)"
# 第3块GPU | 3号卡 | 0号和1号卡 | 第三张显卡
_HAN_GPU = lazy(
    rf"(?:第\s*(?P<one>{_HAN_NUMBER})\s*[块张个]\s*|(?P<many>(?:第?(?:{_HAN_NUMBER})\s*号?\s*(?:和|与|、|,|到|至|-)\s*){{0,16}}"
    rf"第?(?:{_HAN_NUMBER}))\s*号\s*){_HAN_THING}",
    _I,
)
# 第二块掉了 | 5号呢: the noun left out
_HAN_BARE = lazy(
    rf"第\s*(?P<one>{_HAN_NUMBER})\s*(?:卡|[块张])(?!\s*(?:硬盘|磁盘|盘|网卡|主板|电源|内存|板|图|表|ssd|nvme))"
    r"|(?<![0-9月第-])(?P<two>[0-9]|1[0-5]|[零一二三四五六七八九十])\s*号(?=呢|也|还能|能不能|怎么样|又|那[张块])"
    r"|(?<![0-9.])(?P<zero>0)\s*卡(?![0-9])",
    _I,
)
# 4242号进程 | 4242这个进程 | 881号作业
_HAN_PID = lazy(r"(?<![0-9A-Za-z_.])([0-9]{2,7})\s*(?:号|这个|那个)?\s*进程")
_HAN_JOB = lazy(r"(?<![0-9A-Za-z_.])([0-9]{2,9}(?:_[0-9]+)?)\s*(?:号|这个|那个)\s*(?:作业|任务)")
# 又报79了 | 79号错误
_HAN_XID = lazy(
    rf"(?:报|爆|抛|刷)(?:的是|的|了|出了?|错)?(?:一个|个)?\s*(?P<one>[0-9]{{2,3}})(?![0-9A-Za-z_]){_COUNTS}"
    r"|(?<![0-9A-Za-z_.:-])(?P<two>[0-9]{2,3})\s*(?:号|这个)\s*(?:错误|报错|错)"
)
_JOB = lazy(
    rf"(?:{_L}(?:(?:slurm|k8s|training|pytorch|batch)\s+)?(?:job[ _]?ids?|jobs?)-?|作业|任务)(?P<called>[\s:#=(]*(?:(?:id|number|no\.?|named|called|号|编号|名为|叫)[\s:#=]*)?)"
    rf"(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{{0,63}})",
    _I,
)
_THE_JOB = lazy(rf"{_L}(?P<name>[A-Za-z0-9][A-Za-z0-9_.-]{{0,63}})\s+(?:training\s+)?job{_R}", _I)
_UUID = lazy(rf"{_L}(GPU|MIG)-[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}{_R}", _I)
_PCI = lazy(
    r"(?:(?<![0-9A-Za-z:.])(?:PCI:)?|(?<=gpu)|(?<=gpu:))(?:[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?|[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])(?![0-9A-Za-z]|:[0-9A-Fa-f])",
    _I,
)
_WORDED_PCI = lazy(rf"(?:{_L}(?:gpu|pci|pcie|card|device|bus|显卡|卡)s?\s*(?:at\s+|@\s*)?)$", _I)
# gpu-fell-off-bus | thermal-margin-low.margin
_RULE = lazy(
    r"(?<![A-Za-z0-9_./-])([a-z][a-z0-9]{0,30}(?:-[a-z0-9]{1,30}){1,9})(?:\.[a-z][a-z0-9_]{0,40}){0,6}(?![A-Za-z0-9_-]|\.[A-Za-z0-9])"
)
# gpu.ecc.volatile.uncorrected.total
_FACT = lazy(
    r"(?<![A-Za-z0-9_./-])([a-z][a-z0-9_]{0,40}(?:\.[a-z][a-z0-9_]{0,40}){1,6})(?![A-Za-z0-9_/-]|\.[A-Za-z0-9])"
)
_URL = lazy(r"(?:https?|ftp|ssh|s3)://[^\s<>\"'\u3000-\u9fff]{1,500}", _I)


class Named(NamedTuple):
    """The slots of a sentence, and the sentence with a mark (``<xid>``) where each stood."""

    slots: Slots
    marked: str
    spans: tuple[tuple[int, int, str], ...]  # start, end and slot, in the order of the text


class Reader:
    """A sentence from which one slot after the other is taken."""

    def __init__(self, text: str, hosts: Collection[str]) -> None:
        self.text = text  # with TAKEN where something was found
        self.low = text.casefold()
        self.hosts = {name.casefold(): name for name in hosts}
        self.found: dict[str, dict[Any, int]] = {name: {} for name in Slots._fields}
        self.spans: list[tuple[int, int, str]] = []

    def take(self, slot: str, start: int, end: int, values: Collection[Any]) -> None:
        """Note what the characters from `start` to `end` name."""
        for value in values:
            self.found[slot].setdefault(value, start)
        self.hide(slot, start, end)

    def hide(self, mark: str, start: int, end: int) -> None:
        """Put the mark there, so that nothing else is read from these characters."""
        self.spans.append((start, end, mark))
        self.text = self.text[:start] + TAKEN * (end - start) + self.text[end:]

    def named(self, original: str) -> Named:
        """The result; values of a slot in the order in which they were said."""
        self.spans.sort()
        out: list[str] = []
        at = 0
        for start, end, mark in self.spans:
            out += (original[at:start], f" <{mark}> ")
            at = end
        slots = Slots(**{name: tuple(sorted(found, key=found.__getitem__)) for name, found in self.found.items()})
        return Named(slots, "".join((*out, original[at:])), tuple(self.spans))


def slots(text: str, hosts: Collection[str] = ()) -> Named:
    """The slots of a normalised sentence. `hosts` are names of the inventory: each is a node wherever it stands."""
    reader = Reader(text, hosts)
    for step in _STEPS:
        step(reader)
    return reader.named(text)


def numbers(
    text: str,
    at: int,
    again: re.Pattern[str],
    spaced: bool = False,
    most: int = 10**10,
    kind: str | None = None,
    coded: bool = False,
) -> tuple[list[int], int]:
    """The numbers of a list that begins at `at` ("48, 63 and 64", "0-3", "48 then xid 63"), and where it ends.

    `again` is the word ahead of the list, which may be said again; `spaced`: blanks alone part the members too; `most`: a
    greater number behind the first is none of them, nor is one that says how far something came ("gpu 2, 412 now"); `kind`:
    the "s" of sxid, which no xid of its list has; `coded`: the first number is a code and counts nothing.
    """
    found = _NUMBER.match(text, at) or (_CODE.match(text, at) if coded else None)
    if not found:
        return [], at
    out, end = [int(found[1])], found.end(1)
    while len(out) < MOST and end < len(text):
        step = _NEXT.match(text, end) or (_SPACE.match(text, end) if spaced else None)
        if not step:
            break
        word = again.match(text, step.end())
        if word is not None and word.groupdict().get("s") != kind:
            break  # "sxid 12028 or xid 79"
        found = _NUMBER.match(text, word.end() if word else step.end())
        if not found:
            break
        value, upto = int(found[1]), bool(step.groupdict().get("to"))
        if not (word or upto) and (value > most or _STANDS_AT.match(text, found.end(1))):
            break
        out += range(out[-1] + 1, min(value, out[-1] + MOST) + 1) if upto and value > out[-1] else [value]
        end = found.end(1)
    return out[:MOST], end


def _closing(text: str, end: int) -> int:
    """Past the bracket of "xid(79)", the quote of xid="79"."""
    return end + 1 if text[end : end + 1] in (")", "]", '"', "'") else end


def _numbered(slot: str, pattern: re.Pattern[str], *hints: str) -> Callable[[Reader], None]:
    """A slot that is a word and a list of numbers."""

    def read(r: Reader) -> None:
        if not any(hint in r.low for hint in hints):
            return  # a pattern is compiled when it is first needed
        for found in pattern.finditer(r.text):
            if slot == "gpu" and _COUNTED_AHEAD.search(r.text, max(0, found.start() - 24), found.start()):
                continue  # "on the 8 cards 58 60 59", "per gpu: 0 0 3"
            name = f"s{slot}" if found.groupdict().get("s") else slot
            spaced = found[0].rstrip(" :#=").lower().endswith("s")
            most = MOST if slot == "gpu" else 10**10
            values, end = numbers(r.text, found.end(), pattern, spaced, most, found.groupdict().get("s"), slot == "xid")
            if values:
                r.take(name, found.start(), _closing(r.text, end), values)

    return read


def _urls(r: Reader) -> None:
    for found in _URL.finditer(r.text) if "://" in r.text else ():
        r.hide("url", *found.span())


def _pages(r: Reader) -> None:
    """Ids of rules and names of facts: names, whatever words they are made of."""
    for kind, _, start, end in pages_in(r.text):
        r.hide(kind, start, end)


def pages_in(text: str) -> Iterator[tuple[str, str, int, int]]:
    """The rules and facts that a text names as they are written: kind, name, start and end."""
    from assistant.find import topic

    for kind, pattern, sign in (("rule", _RULE, "-"), ("fact", _FACT, ".")):
        for found in pattern.finditer(text) if sign in text else ():
            if topic(f"{kind} {found[1]}") is not None:
                yield kind, found[1], *found.span()


def _devices(r: Reader) -> None:
    for found in _UUID.finditer(r.text) if r.text.count("-") > 4 else ():
        kind, _, rest = found[0].partition("-")
        r.take("gpu", *found.span(), [f"{kind.upper()}-{rest.lower()}"])
    for found in _PCI.finditer(r.text) if ":" in r.text else ():
        address = normalise_pci(found[0])
        if is_pci(address):
            ahead = _WORDED_PCI.search(r.text[max(0, found.start() - 24) : found.start()])
            start = found.start() - (len(ahead[0]) if ahead else 0)
            r.take("gpu", start, found.end(), [address])


def _times(r: Reader) -> None:
    for when in times(r.text):
        if TAKEN not in r.text[when.start : when.end]:
            r.take("since", when.start, when.end, [when.value])


def _han_gpus(r: Reader) -> None:
    for found in _HAN_GPU.finditer(r.text) if not r.text.isascii() else ():
        slot = "rank" if found["what"].lower() == "rank" else "gpu"
        said = found["one"] or found["many"]
        values: list[int] = []
        for part in re.finditer(rf"(?P<to>到|至|-)?\s*第?(?P<n>{_HAN_NUMBER})", said):
            value = _han_number(part["n"])
            values += range(values[-1] + 1, min(value, values[-1] + MOST) + 1) if part["to"] and values else [value]
        r.take(slot, *found.span(), values)
    for found in _HAN_BARE.finditer(r.text) if not r.text.isascii() else ():
        r.take("gpu", *found.span(), [_han_number(found["one"] or found["two"] or found["zero"])])


def _han_numbered(r: Reader) -> None:
    """Numbers ahead of their noun: "4242号进程"; and XIDs without their name: "又报79了"."""
    if r.text.isascii():
        return
    for found in _HAN_PID.finditer(r.text) if "进程" in r.text else ():
        r.take("pid", *found.span(), [int(found[1])])
    for found in _HAN_JOB.finditer(r.text) if "作业" in r.text or "任务" in r.text else ():
        r.take("job", *found.span(), [found[1]])
    for found in _HAN_XID.finditer(r.text) if not r.found["xid"] else ():
        code = int(found["one"] or found["two"])
        if _is_xid(code):
            start = found.start("one") if found["one"] else found.start()
            r.take("xid", start, found.end("one") if found["one"] else found.end("two"), [code])


def _is_xid(code: int) -> bool:
    from assistant.find import topic

    return topic(f"xid {code}") is not None


def _han_number(word: str) -> int:
    return int(word) if word.isdecimal() else "零一二三四五六七八九十".find(word.replace("两", "二"))


def _jobs(r: Reader) -> None:
    for pattern in (_JOB, _THE_JOB) if any(hint in r.low for hint in ("job", "作业", "任务")) else ():
        for found in pattern.finditer(r.text):
            name = found["name"].rstrip(".-")
            named = bool(found.groupdict().get("called", "").strip(" :#=("))
            if names.is_job(name, called=named) and not _measured(r.text, found):
                r.take(
                    "job", found.start(), found.start("name") + len(name) if pattern is _JOB else found.end(), [name]
                )


def _measured(text: str, found: re.Match[str]) -> bool:
    """ "job 8 GPUs": a count behind the word."""
    return found["name"].isdecimal() and _NUMBER.match(text, found.start("name")) is None


def _names(r: Reader) -> None:
    """Nodes, files and processes: see `assistant.intent.names`."""
    for slot, start, end, value in names.find(r.text, r.hosts):
        if TAKEN not in r.text[start:end]:
            r.take(slot, start, end, [value])


def _files(r: Reader) -> None:
    for slot, start, end, value in names.files(r.text):
        if TAKEN not in r.text[start:end]:
            r.take(slot, start, end, [value]) if slot != "path" else r.hide(slot, start, end)


def _of_traces(r: Reader) -> None:
    """Kernels and operators behind their words, by names that are no words: ``aten::mm``, ``ncclDevKernel_AllReduce``, or quoted."""
    for found in (
        _CALLED.finditer(r.text) if any(hint in r.low for hint in ("kernel", "operator", "op ", "算子", "内核")) else ()
    ):
        name = (found["quoted"] or found["name"] or "").strip()
        if name and (found["quoted"] or _NO_WORD.search(name)):
            slot = "kernel" if found["what"].lower().startswith(("kernel", "内核")) else "operator"
            r.take(slot, *found.span(), [name])


_STEPS: tuple[Callable[[Reader], None], ...] = (
    _urls, _of_traces, _pages, _devices, _files, _times, _numbered("xid", _XID, "xid"), _numbered("pid", _PID, "pid", "proc", "进程"), _numbered("rank", _RANK, "rank"), _jobs,
    _han_numbered, _names, _han_gpus, _numbered("gpu", _GPU, "gpu", "card", "device", "accelerator", "cuda", "nvidia", "卡"),
)  # fmt: skip
