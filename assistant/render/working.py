"""What GPUs do with which nothing is wrong, in one sentence with its figures: a load that is as it should be is told as such."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from assistant.render.labels import gpu_numbers, headline
from assistant.render.times import readable, stamp
from knowledge.derive.working import BUSY, HOLDS_MIB, PEERS
from knowledge.facts import vocabulary
from knowledge.language import Text
from knowledge.observation import Scope, Status, Subject, Value
from rules.engine import ranges
from rules.factbase import FactBase
from rules.model import facts_named

FIGURES = Text(
    "[busy {gpu.work.busy} %, working {gpu.work.share} %|busy {gpu.work.busy} %|working {gpu.work.share} %|FP32 active {gpu.activity.fp32} %, tensor active {gpu.activity.tensor} %|FP64 active {gpu.activity.fp64} %, tensor active {gpu.activity.tensor} %|tensor active {gpu.activity.tensor} %, DRAM active {gpu.activity.dram} %|DRAM active {gpu.activity.dram} %|tensor active {gpu.activity.tensor} %][ ({gpu.work.power} of {gpu.work.power.limit} W)| ({gpu.work.power} W)]",
    "[利用率 {gpu.work.busy} %，SM 活跃 {gpu.work.share} %|利用率 {gpu.work.busy} %|SM 活跃 {gpu.work.share} %|FP32 active {gpu.activity.fp32} %，tensor active {gpu.activity.tensor} %|FP64 active {gpu.activity.fp64} %，tensor active {gpu.activity.tensor} %|tensor active {gpu.activity.tensor} %，DRAM active {gpu.activity.dram} %|DRAM active {gpu.activity.dram} %|tensor active {gpu.activity.tensor} %][（功耗 {gpu.work.power} W，上限 {gpu.work.power.limit} W）|（功耗 {gpu.work.power} W）]",
)
_NAMES = facts_named(FIGURES.en)
# Worth a word; that a GPU works, or is idle and free, goes without saying.
HELD = ("held_idle", "allocated_idle")
TOLD = ("tensor_bound", "memory_bound", "part_time", "fp64_bound", "fp32_work", "unseen", *HELD)
_IDLE = ("idle", *HELD)  # of MIG instances, which are parts of a GPU that was divided for somebody
_BUSY = Text("busy", "有 kernel 在跑")
IN_USE = 10.0  # percent of the time with a kernel: less is a desktop, or next to nothing
MOST = 60.0  # percent of the others, as in gpu-idle-while-peers-work
LEAST_HOURS = 0.5  # of GPUs: less is no waste to speak of
_OWNERS = 3  # of which the first line has room


def at_work(facts: FactBase, told: Sequence[str] = TOLD) -> Text | None:
    """``8 GPUs: busy 97 to 99 %, working 91 to 94 % (640 to 698 of 700 W): bound by their tensor cores.`` Of what most do; then who is
    idle beside them, which GPUs are shared, and which instances of MIG do nothing."""
    found = _by_class(facts, Scope.GPU, told)
    most = max(found, key=lambda k: (len(found[k]), -told.index(k))) if found else ""
    kinds = [most, *(k for k in HELD if k in found and k != most)] if found else []
    said = [_do(facts, kind, found[kind]) for kind in kinds]
    if told is TOLD:
        said += [_shared(facts, gpu) for gpu in facts.subjects(Scope.GPU) if _read(facts, "gpu.work.programs", gpu)][:2]
        if idle := _by_class(facts, Scope.MIG, _IDLE):
            said.append(_unused(facts, idle))
        if unread := [gpu for gpu in facts.subjects(Scope.GPU) if _read(facts, "gpu.work.unread", gpu)]:
            said.append(_blind(facts, unread))
        said += _partly(facts, kinds) + _unread(facts) + _held(facts) + _beside_busy(facts)
    return Text(" ".join(t.en for t in said), "".join(t.in_("zh") for t in said)) if said else None


def changed(facts: FactBase, about: Sequence[Subject] = ()) -> Text | None:
    """``Since 2026-11-12 02:09:30Z; until then: bound by tensor cores.`` Of GPUs that did something else before, those of `about` or any."""
    found: dict[tuple[str, str], list[Subject]] = defaultdict(list)
    gpus = [gpu for gpu in about if gpu.scope is Scope.GPU] or list(facts.subjects(Scope.GPU))
    for gpu in gpus:
        o = facts.current("gpu.work.before", gpu)
        if o is not None and o.status is Status.OK:
            found[str(o.value), readable(stamp(o.at, o.clock) or "")].append(gpu)
    if not found:
        return None
    (kind, since), its = max(found.items(), key=lambda k: len(k[1]))
    labels, before = vocabulary()["gpu.work.class"].labels, vocabulary()["gpu.work.class"].labels[kind]
    now = {str(_read(facts, "gpu.work.class", gpu) or "") for gpu in its}
    # what they do now goes without saying only where it is said
    named = labels.get(next(iter(now)), _BUSY) if not about and len(now) == 1 and not now.intersection(TOLD) else None
    if since:
        said = Text(f"since {since}; until then: {before.en}", f"自 {since} 起如此；此前：{before.in_('zh')}")
    else:
        last, whole = (_span(facts, f"gpu.work.{which}.samples", its) for which in ("now", "all"))
        en, zh = f"in the last {last} of {whole} samples; before that: ", f"{whole} 个采样中最后 {last} 个如此；此前："
        said = Text(f"{en}{before.en}", f"{zh}{before.in_('zh')}")
    if named is not None:
        said = Text(f"{named.en} {said.en}", f"{named.in_('zh')}，{said.in_('zh')}")
    elif len(its) == len(gpus):
        return Text(f"{said.en[:1].upper()}{said.en[1:]}.", f"{said.in_('zh')}。")
    return _sentence(facts, its, said)


def _span(facts: FactBase, fact: str, gpus: Sequence[Subject]) -> str:
    """``3``, or ``3-5`` where it differs between GPUs."""
    read = [v for gpu in gpus if isinstance(v := _read(facts, fact, gpu), int)]
    return "-".join(dict.fromkeys(str(v) for v in (min(read), max(read)))) if read else ""


def does(facts: FactBase, gpus: Sequence[Subject]) -> Text | None:
    """``GPU 3: busy 98 %, working 93 % (640 of 700 W): bound by tensor cores.`` What some GPUs do, whatever it is; None where it was not told."""
    labels, found = vocabulary()["gpu.work.class"].labels, defaultdict[str, list[Subject]](list)
    for gpu in gpus:
        if (kind := _read(facts, "gpu.work.class", gpu)) in labels:
            found[str(kind)].append(gpu)
    said = [_do(facts, kind, its) for kind, its in found.items()][:_OWNERS]
    return Text(" ".join(t.en for t in said), "".join(t.in_("zh") for t in said)) if said else None


def briefly(facts: FactBase, gpus: Sequence[Subject]) -> Text | None:
    """``GPU 2: busy and doing next to nothing; GPU 3: waiting within kernels`` of some GPUs; None where one has no class, or they are many kinds."""
    labels = vocabulary()["gpu.work.class"].labels
    found: dict[str, list[Subject]] = defaultdict(list)
    for gpu in dict.fromkeys(gpus):
        found[str(_read(facts, "gpu.work.class", gpu) or "")].append(gpu)
    if not found or not found.keys() <= labels.keys() or len(found) > _OWNERS:
        return None
    said = [_sentence(facts, its, labels[kind]) for kind, its in found.items()]
    return Text(
        "; ".join(t.en.removesuffix(".") for t in said), "；".join(t.in_("zh").removesuffix("。") for t in said)
    )


def _by_class(facts: FactBase, scope: Scope, told: Sequence[str]) -> dict[str, list[Subject]]:
    found: dict[str, list[Subject]] = defaultdict(list)
    for subject in facts.subjects(scope):
        kind = _read(facts, f"{scope}.work.class", subject)
        if kind in told:
            found[str(kind)].append(subject)
    return found


def _do(facts: FactBase, kind: str, gpus: Sequence[Subject]) -> Text:
    """What some GPUs do, with their figures; who has them, where they do nothing."""
    figures, words = ranges(FIGURES, [_known(facts, gpu) for gpu in gpus]), vocabulary()["gpu.work.class"].labels[kind]
    whose = _whose(facts, "gpu.work.owner", gpus) if kind in HELD else ""
    if kind in HELD and (hours := _hours(facts, gpus)):
        words = Text(
            f"{words.en} ({hours} GPU-hours in the samples)", f"{words.in_('zh')}（采样期间共 {hours} GPU 小时）"
        )
    beside = kind in HELD and all(_beside_work(facts, gpu) for gpu in gpus)
    en = f"{words.en}{', beside GPUs that work and hold as much' if beside else ''}{f': {whose}' if whose else ''}"
    zh = f"{words.in_('zh')}{'，而旁边占用相近的 GPU 在工作' if beside else ''}{f'：{whose}' if whose else ''}"
    return _sentence(facts, gpus, Text(f"{figures.en}: {en}", f"{figures.in_('zh')}：{zh}"))


def _hours(facts: FactBase, gpus: Sequence[Subject]) -> str:
    """How many hours of GPUs the samples cover, from half an hour on; empty below that."""
    read = (_read(facts, "gpu.work.seconds", gpu) for gpu in gpus)
    hours = sum(v for v in read if isinstance(v, int | float)) / 3600
    return f"{hours:.1f}" if hours >= LEAST_HOURS else ""


def _beside_work(facts: FactBase, gpu: Subject) -> bool:
    share = _read(facts, "gpu.work.peers.at_work", gpu)
    return isinstance(share, int | float) and share >= MOST


def _shared(facts: FactBase, gpu: Subject) -> Text:
    n, whose = _read(facts, "gpu.work.programs", gpu), _read(facts, "gpu.work.owner", gpu)
    return _sentence(facts, [gpu], Text(f"shared by {n} programs: {whose}", f"由 {n} 个程序共用：{whose}"))


def _unused(facts: FactBase, idle: dict[str, list[Subject]]) -> Text:
    """``GPU 0: 5 of 7 MIG instances do nothing: pod research/nb-2, ...``: by their pods, else by their numbers."""
    parts = sorted((part for its in idle.values() for part in its), key=lambda s: (str(s.parent), len(s.id), s.id))
    wholes = list(dict.fromkeys(part.up(Scope.GPU) or part for part in parts))
    all_of = sum(part.up(Scope.GPU) in wholes for part in facts.subjects(Scope.MIG))
    owners, several = _whose(facts, "mig.work.owner", parts), all_of > 1
    whose = owners or ", ".join(part.id.removeprefix("GPU-I ") for part in parts[:8])
    numbers = ("" if owners else "number ", "" if owners else "编号 ")
    en = f"{len(parts)} of {all_of} MIG instances" if several else "its MIG instance"
    zh = f"{all_of} 个 MIG 实例中有 {len(parts)} 个" if several else "其 MIG 实例"
    does = "do" if len(parts) > 1 else "does"
    return _sentence(
        facts, wholes, Text(f"{en} {does} nothing: {numbers[0]}{whose}", f"{zh}没有工作：{numbers[1]}{whose}")
    )


def _blind(facts: FactBase, gpus: Sequence[Subject]) -> Text:
    figures = ranges(FIGURES, [_known(facts, gpu) for gpu in gpus])
    en, zh = (f"{figures.en}: " if figures.en else "", f"{figures.in_('zh')}：" if figures.en else "")
    return _sentence(facts, gpus, Text(f"{en}profiling counters could not be read", f"{zh}未能读取 profiling 计数器"))


def _partly(facts: FactBase, told: Sequence[str]) -> list[Text]:
    """``GPU 3: busy 24 % (210 of 700 W): for a part of the time only, beside others that are busy and hold as much.`` Of GPUs whose memory
    is held and of which nothing else is told."""
    found: dict[bool, list[Subject]] = defaultdict(list)
    for gpu in facts.subjects(Scope.GPU):
        kind, busy, held = (_read(facts, name, gpu) for name in ("gpu.work.class", "gpu.work.busy", "gpu.memory.used"))
        if kind not in (None, "working", "part_time") or kind in told or not isinstance(busy, int | float):
            continue
        if IN_USE <= busy < BUSY and not (isinstance(held, int | float) and held < HOLDS_MIB):
            found[_beside_work(facts, gpu)].append(gpu)
    said = []
    for beside, gpus in sorted(found.items(), reverse=True):
        figures = ranges(FIGURES, [_known(facts, gpu) for gpu in gpus])
        en = "for a part of the time only, " + (
            "beside others that are busy and hold as much"
            if beside
            else "as where host, input or requests set the pace"
        )
        zh = "只有部分时间在工作，" + ("而旁边占用相近的 GPU 在忙" if beside else "节奏多由主机、输入或请求决定")
        said.append(_sentence(facts, gpus, Text(f"{figures.en}: {en}", f"{figures.in_('zh')}：{zh}")))
    return said


def _unread(facts: FactBase) -> list[Text]:
    """``GPU intel:0: busy 99 % (152 W): whether it works was not read (xpu-smi dump -m 0,1,11,17).`` Of Intel's, whose tool names no power limit;
    9 to 11 are what its EUs do, 17 the bandwidth of its memory (doc/smi_user_guide.md of intel/xpumanager)."""
    gpus = [
        gpu
        for gpu in facts.subjects(Scope.GPU)
        if _read(facts, "gpu.vendor", gpu) == "intel"
        and _read(facts, "gpu.work.class", gpu) is None
        and _is_busy(facts, gpu)
    ]
    if not gpus:
        return []
    figures, tool = ranges(FIGURES, [_known(facts, gpu) for gpu in gpus]), "xpu-smi dump -m 0,1,11,17"
    en, zh = (
        f"{figures.en}: whether that is work was not read ({tool})",
        f"{figures.in_('zh')}：是否在做功没有读到（{tool}）",
    )
    return [_sentence(facts, gpus, Text(en, zh))]


def _held(facts: FactBase) -> list[Text]:
    """``GPU 0: 69.1 GiB of memory held by ipykernel (pid 9812); how busy it is was not told.`` Of GPUs of which nobody told that."""
    silent = [
        gpu
        for gpu in facts.subjects(Scope.GPU)
        if _read(facts, "gpu.utilization.core", gpu) is None and _read(facts, "gpu.work.class", gpu) is None
    ]
    by_user: dict[Subject, list[Subject]] = defaultdict(list)
    for gpu in silent:
        for user in facts.related(gpu, Scope.PROCESS):
            by_user[user].append(gpu)
    said = []
    for user, gpus in by_user.items():
        held = _read(facts, "process.gpu_memory", user)
        busy = _read(facts, "process.gpu_utilization", user)
        if busy is not None or not isinstance(held, int | float) or held < HOLDS_MIB:
            continue
        name = _read(facts, "process.name", user) or _read(facts, "process.comm", user)
        whose = f"{str(name).rsplit('/', 1)[-1]} (pid {user.id})" if name else f"pid {user.id}"
        size, several = f"{held / 1024:.3g} GiB", len(gpus) > 1
        en = f"{size} of memory held by {whose}{' in all' if several else ''}; how busy it is was not told"
        zh = f"{whose} {'共' if several else ''}占用 {size} 显存；未给出忙碌程度"
        said.append(_sentence(facts, gpus, Text(en, zh)))
    return said[:_OWNERS]


def _beside_busy(facts: FactBase) -> list[Text]:
    """``GPU 5: busy 0 % (72 W): idle beside 7 that are busy; whether its memory is held was not read.`` A job leaves none of its GPUs idle."""
    by_node: dict[str, list[Subject]] = defaultdict(list)
    for gpu in facts.subjects(Scope.GPU):
        by_node[gpu.host].append(gpu)
    said = []
    for gpus in by_node.values():
        idle = [g for g in gpus if _read(facts, "gpu.work.class", g) == "idle"]
        idle = [g for g in idle if all(_read(facts, f"gpu.memory.{what}", g) is None for what in ("used", "share"))]
        busy = [g for g in gpus if g not in idle and _is_busy(facts, g)]
        if idle and len(busy) >= max(PEERS, len(idle) + 1) and len(idle) + len(busy) == len(gpus):
            figures, n = ranges(FIGURES, [_known(facts, g) for g in idle]), len(busy)
            en = f"{figures.en}: idle beside {n} that are busy; whether memory is held there was not read"
            zh = f"{figures.in_('zh')}：空闲，而旁边 {n} 个在忙；是否占用显存没有读到"
            said.append(_sentence(facts, idle, Text(en, zh)))
    return said[:_OWNERS]


def _is_busy(facts: FactBase, gpu: Subject) -> bool:
    read = (_read(facts, name, gpu) for name in ("gpu.work.busy", "gpu.utilization.core"))
    busy = next((v for v in read if v is not None), None)
    return isinstance(busy, int | float) and busy >= BUSY


def _whose(facts: FactBase, fact: str, subjects: Sequence[Subject]) -> str:
    """The first who have them, each once; that there are more is told by a sign that both languages have."""
    whose = list(dict.fromkeys(str(owner) for s in subjects if (owner := _read(facts, fact, s))))
    return ", ".join(whose[:_OWNERS]) + (f" (+{len(whose) - _OWNERS})" if len(whose) > _OWNERS else "")


def _sentence(facts: FactBase, about: Sequence[Subject], said: Text) -> Text:
    named = len({s.id for s in facts.subjects(Scope.NODE) if s.id}) > 1
    called = gpu_numbers(facts)
    return Text(
        *(
            f"{headline(said, about, lang, named=named, called=called)}{end}"
            for lang, end in (("en", "."), ("zh", "。"))
        )
    )


def _read(facts: FactBase, fact: str, subject: Subject) -> Value:
    o = facts.current(fact, subject)
    return o.value if o is not None and o.status is Status.OK else None


def _known(facts: FactBase, gpu: Subject) -> dict[str, float]:
    read = ((name, facts.current(name, gpu)) for name in _NAMES)
    return {
        n: float(o.value)
        for n, o in read
        if o is not None and o.status is Status.OK and isinstance(o.value, int | float)
    }
