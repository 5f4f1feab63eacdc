"""Names of nodes, files, processes and jobs, told apart from names of models, versions and products.

A hyphenated name with a number ("gpu-12", "ip-10-0-3-4") is a node; so is any name with a number behind "node" or
"on". What only looks like one ("H100-80GB", "llama-3", "cuda-12.4") is kept out by its first part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeAlias

from assistant.intent import machines
from knowledge.gpus import candidates
from knowledge.lazy import lazy
from knowledge.lexicon import lexicon

_I = re.IGNORECASE
_L, _R = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
Place: TypeAlias = tuple[str, int, int, str]  # slot, start, end, name

# gpu[001-064] | rack1-gpu[1,3,5-9].cluster
_SET = lazy(
    r"(?<![A-Za-z0-9_.-])[A-Za-z][A-Za-z0-9_-]*(?:\[[0-9]{1,6}(?:[-,][0-9]{1,6}){0,200}\][A-Za-z0-9_.-]{0,64}){1,3}"
)
_TOKEN = lazy(
    r"(?<![A-Za-z0-9_.@/-])[A-Za-z0-9][A-Za-z0-9_-]{0,62}(?:\.[A-Za-z0-9][A-Za-z0-9_-]{0,62}){0,8}(?![A-Za-z0-9_@/[(])"
)
_ADDRESS = lazy(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")
_HYPHENED = lazy(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-[a-z]*[0-9][a-z0-9]*(?:-[a-z0-9]+)*|[a-z]+[0-9]+(?:-[a-z0-9]+)+", _I)
# node17, dgx7, nid001234: a number glued to a word that means a machine
_GLUED = lazy(
    r"(?:node|dgx|hgx|nid|host|server|srv|compute|cn|gn|machine|gpunode|gpuhost|gpuserver|gpu(?=0[0-9]))[0-9]{1,7}[a-z]?",
    _I,
)
_MACHINE = lazy(
    rf"(?:{_L}(?:compute |gpu |worker |k8s |the )*(?:nodes?|hosts?|hostname|machines?|servers?|boxe?s?)(?:\s+(?:called|named))?|节点|机器|主机|服务器|机子)[\s:#=]*$",
    _I,
)
_BARE = lazy(rf"(?:{_L}(?:nodes?|hosts?|hostname)|节点|主机)[\s:#=]*$", _I)
_PLACED = lazy(rf"(?:{_L}(?:on|from|onto|and on|at)\s+|在\s*|上\s*)$", _I)
# H100-80GB, A100-SXM4, RTX-4090, 8xH100, 70b, fp8, sm_90, v2, 80GB: products, formats and measures
_PRODUCT = lazy(
    r"(?:[0-9]+x)?(?:[abhlptv][0-9]{1,3}[a-z]?|g[bh][0-9]{2,3}|mi[0-9]{3}[a-z]?|rtx|gtx|quadro|tesla|geforce)(?:[- ].*)?|[0-9.]+[a-z]{1,4}|[0-9.]+|"
    r"(?:fp|bf|tf|int|sm|cu|cuda|cc|v|x|py|u|gen|ipv|p|l|k|s|o|z)_?[0-9.]+[a-z]*|.*[0-9]gb|[0-9]+-(?:gpu|node|rank|way|bit|core|card)s?",
    _I,
)
_CARD = lazy(r"a[2-6][0-9]{3}", _I)
_HOSTLIKE_MODEL = lazy(r"[abhlptv][0-9]{1,3}-(?:0[0-9]{1,3}|[0-9]{1,2}|[a-z]*node[a-z0-9-]*)", _I)  # h100-003
_INDEX_RANGE = lazy(r"gpus?[0-9]{1,3}-[0-9]{1,3}", _I)

# drives, partitions, interfaces, switches, file systems of the kernel log
_PART = lazy(
    r"nvme[0-9]{1,3}(?:c[0-9]{1,3})?(?:n[0-9]{1,3}(?:p[0-9]{1,3})?)?|sd[a-z]{1,2}[0-9]{0,3}|(?:dm|md|loop)-?[0-9]{1,3}|(?:eth|bond|ens|eno|enp|ibp|ibs|br|veth)[0-9][0-9a-z]{0,15}|"
    r"nvswitch-?[0-9]{1,3}|(?:ext[234]|xfs|btrfs)-?(?:fs)?|psu-?[0-9]{1,2}|fan-?[0-9]{1,2}|dimm-?[0-9a-z]{1,4}|pod-[0-9]{1,4}"
)
# Behind these a name is of a thing that runs on a machine.
_OF_WORK = lazy(
    rf"(?:{_L}(?:pods?|containers?|deployments?|statefulsets?|daemonsets?|namespaces?|replicasets?|services?|pvcs?|volumes?|images?|queues?|partitions?)(?:\s+(?:called|named))?|容器|命名空间|镜像|队列|分区)[\s:#=]*$",
    _I,
)

_FILE = lazy(
    r"(?<![A-Za-z0-9_./~-])(?:~?/|\.{1,2}/)[A-Za-z0-9_@%+=:,./-]{1,400}"
    r"|(?<![A-Za-z0-9_./~-])(?:[A-Za-z0-9_@%+=-]+[/.])*[A-Za-z0-9_@%+=-]+\.(?:log|txt|json|jsonl|xml|csv|html?|md|pdf|out|err|dmesg|tar|tgz|"
    r"gz|zst|xz|bz2|zip|bundle|yaml|yml|toml|nsys-rep|ncu-rep|pt|trace)(?:\.(?:gz|zst|xz|bz2|[0-9]{1,3}))?(?![A-Za-z0-9_])",
    _I,
)
_SCRIPT = lazy(
    r"(?<![A-Za-z0-9_-])(?:[A-Za-z0-9_~.-]*/)*([A-Za-z0-9_-][A-Za-z0-9_.-]*\.(?:py|sh|ipynb|exe|jl|lua))(?![A-Za-z0-9_])",
    _I,
)
_PYTHON = lazy(rf"{_L}(?:the\s+)?(?:process\s+|进程\s*)?(?:python[0-9.]*\s+(?:-[a-z]\s+)?)?$", _I)
_PROCESS = lazy(
    rf"(?:{_L}process(?:es)?(?P<en>\s+(?:called|named)?)\s*|进程(?P<zh>[\s:]*(?:名为|叫|名)?)\s*)[\"'`]?(?P<name>[A-Za-z_][A-Za-z0-9_.:-]{{1,63}})",
    _I,
)
_WANTED = lazy(rf"{_L}(?:run|start|launch|execute)\s+(?:an?\s+|the\s+)?$|(?:运行|启动|执行|跑)(?:一下|一次)?\s*$", _I)
_DEVICES = lazy(r"/(?:dev|proc|sys)/.*|/gpudiag.*|/(?:s|sec|step)")
# Behind these a path is what is to be read or written; elsewhere one without the ending of a file is a place: "/home is full".
_READ = lazy(
    r"(?:(?<![a-z])(?:read|open|see|from|to|into|as|file|log|logs|bundle|recording|input|folder|diagnose|check|analy[sz]e|inspect|parse|load|look(?:ing)? (?:at|into)|use|with|save|export|write|attached)|文件|日志|录制|读取?|打开|分析|看看?|查看|检查|诊断|导出到?|保存到?|写到|存到|用)[\s:：\"'`]*$",
    _I,
)
# ds_config.json | train.yaml | model.pt: what a program is told with, and nothing that tells how a machine is
_OF_PROGRAM = lazy(r"\.(?:ya?ml|toml|pt)$|conf(?:ig)?[^/]*\.json$", _I)
_OPENED = lazy(r"(?:(?<![a-z])(?:read|open|check|audit|lint|inspect|analy[sz]e|look(?:ing)? (?:at|into))|打开|读取?|查看|检查|分析)[\s:：\"'`]*$", _I)  # fmt: skip
# saving a checkpoint to /ckpt | dataset is copied into /scratch: a program writes there; "export to /tmp/x" asks for it
_WRITES = lazy(
    r"(?<![a-z])(?:sav(?:ing|es|ed)|writ(?:ing|es|ten)|wrote|copi(?:es|ed)|copying|checkpoint(?:s|ing|ed)?|ckpts?|logs? (?:going|go|written))(?![a-z])[^,.;?!]{0,60}(?<![a-z])(?:to|into)\s*$",
    _I,
)
_LOGS = ("/var/log/", "./", "../", "~")


def is_job(name: str, called: bool) -> bool:
    """Whether what stands by the word "job" is its name: a number, or a word with a number or an underscore."""
    low = name.lower()
    if _PRODUCT.fullmatch(low) and not low.replace("_", "").isdecimal():
        return False
    if called:
        return low not in _common()
    first = low.replace("_", "-").partition("-")[0]
    return any(c.isdigit() for c in low) or "_" in low or ("-" in low.strip("-") and first not in _common())


def files(text: str) -> Iterator[Place]:
    """Paths and names of files, places ("path") where nothing is to be read; a script is the process that runs it."""
    if "." not in text and "/" not in text:
        return  # most sentences: no pattern is compiled for them
    for found in _SCRIPT.finditer(text):
        ahead = _PYTHON.search(text[max(0, found.start() - 30) : found.start()])
        yield "process", found.start() - (len(ahead[0].lstrip()) if ahead else 0), found.end(), found[1]
    for found in _FILE.finditer(text):
        name = found[0].rstrip(".,:")
        if not _DEVICES.fullmatch(name.casefold()) and len(name) > 3:
            last, before = name.rpartition("/")[2], text[: found.start()]
            place = ("." not in last and not name.startswith(_LOGS)) or _OF_PROGRAM.search(last) is not None
            read = _OPENED if _OF_PROGRAM.search(last) else _READ
            place = place and (not read.search(before[-24:]) or _WRITES.search(before) is not None)
            yield "path" if place else "file", found.start(), found.start() + len(name), name


def find(text: str, hosts: Mapping[str, str]) -> Iterator[Place]:
    """Nodes and processes."""
    for found in _SET.finditer(text) if "[" in text else ():
        yield "node", _machine(text, found.start()), found.end(), found[0]
    for found in _TOKEN.finditer(text):
        name = found[0]
        ahead, behind = text[max(0, found.start() - 60) : found.start()], text[found.end() : found.end() + 60]
        if is_node(name, ahead, hosts, behind):
            yield "node", _machine(text, found.start()), found.end(), hosts.get(name.casefold(), name.lower())
    for found in _PROCESS.finditer(text) if "proce" in text.casefold() or "进程" in text else ():
        name = found["name"].rstrip(".:-")
        explicit = bool((found["en"] or found["zh"] or "").strip())
        if explicit or any(c in name for c in "._-:") or any(map(str.isdigit, name)) or name.lower() in _programs():
            yield "process", found.start(), found.start("name") + len(name), name
    for found in _TOKEN.finditer(text):
        wanted = _WANTED.search(text[max(0, found.start() - 24) : found.start()])  # "run gpu-burn": it does not run yet
        if not wanted and found[0].lower() in _programs() - {"python", "python3"}:
            yield "process", *found.span(), found[0]


def is_node(name: str, ahead: str, hosts: Mapping[str, str] = {}, behind: str = "") -> bool:
    """Whether `name`, between the texts `ahead` and `behind`, is a machine."""
    low = name.casefold()
    if low in hosts and not low.isdecimal():
        return low not in _common() or _meant(low, ahead, behind)
    if hosts and _PLACED.search(ahead) and not _PRODUCT.fullmatch(low) and _sibling(low, hosts):
        return True
    if not _looks_like_node(low, ahead, hosts, behind):
        return False
    return not _PART.fullmatch(low) and (_MACHINE.search(ahead) is not None or not _OF_WORK.search(ahead))


def _looks_like_node(low: str, ahead: str, hosts: Mapping[str, str], behind: str) -> bool:
    """Whether a name that no inventory holds has the form, or the place, of a machine's."""
    digit = any(c.isdigit() for c in low)
    if not digit and low not in _words_of_day() and machines.only_machine(low, ahead, behind):
        return True
    if not digit:  # "on login-node", "node alpha": only a name when it is said to be one and no word
        return bool(_MACHINE.search(ahead)) and "-" in low and low.partition("-")[0] not in _words_of_day()
    first = re.split(r"[-.]", low)[0].rstrip("0123456789")
    if _HOSTLIKE_MODEL.fullmatch(low.partition(".")[0]):
        return True
    if low.isdecimal():
        return bool(_BARE.search(ahead)) and low in hosts
    if _ADDRESS.fullmatch(low):
        return bool(_MACHINE.search(ahead) or _PLACED.search(ahead))
    if _PRODUCT.fullmatch(low):
        return bool(_MACHINE.search(ahead)) and not low[0].isdigit() and low[-1].isdigit() and len(low) > 4
    if _MACHINE.search(ahead) and "_" not in low:
        return first not in _not_hosts() or "-" in low
    if _CARD.fullmatch(low) and candidates(low):
        return False  # on A6000: a card by its short name
    if first in _not_hosts() or "_" in low or low[0].isdigit() or _INDEX_RANGE.fullmatch(low):
        return False
    if "." in low and not _HYPHENED.fullmatch(low.partition(".")[0]):
        return bool(_PLACED.search(ahead)) and low.rpartition(".")[2].isalpha()
    if _HYPHENED.fullmatch(low.partition(".")[0]) or _GLUED.fullmatch(low):
        return True
    return bool(_PLACED.search(ahead)) and first != "gpu" and low[0].isalpha() and first not in _common()


def _meant(word: str, ahead: str, behind: str) -> bool:
    """Whether a word of every day means the machine that is called by it: where a place is named, or a machine asked about."""
    last = not behind[:2].strip(" ?!.,;？！。，；")  # "slow on hole?"
    if _MACHINE.search(ahead) or (last and _PLACED.search(ahead)):
        return True
    return not machines.means_itself(word) and machines.asked_about(ahead, behind)


def _sibling(name: str, hosts: Mapping[str, str]) -> bool:
    """Whether `name` is one that nobody knows of a series that somebody does, as dgx-b is beside dgx-a, and h12 beside h3: it
    is asked back rather than taken for no machine."""
    stem, dash, last = name.rpartition("-")
    if not dash:
        stem = name.rstrip("0123456789")
        last = name[len(stem) :]
    if not stem or not last or stem in _not_hosts() or (stem == "gpu" and not dash):  # "on gpu3": a GPU
        return False
    begun = stem + dash
    others = (h[len(begun) :] for h in hosts if h.startswith(begun))
    return any((o.isdecimal() and last.isdecimal()) or (len(o) == len(last) and (o + last).isalpha()) for o in others)


def _machine(text: str, start: int) -> int:
    """Where the word "node" ahead of a name begins."""
    ahead = text[max(0, start - 40) : start]
    found = _MACHINE.search(ahead)
    return start - len(found[0]) if found else start


@cache
def _not_hosts() -> frozenset[str]:
    return frozenset(lexicon().roles.get("nothost", ()))


@cache
def _common() -> frozenset[str]:
    return frozenset(lexicon().roles.get("common", ()))


@cache
def _words_of_day() -> frozenset[str]:
    return _common() | _not_hosts()


@cache
def _programs() -> frozenset[str]:
    return frozenset(lexicon().roles.get("program", ()))
