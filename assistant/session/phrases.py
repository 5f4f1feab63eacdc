"""What the session itself says: about questions, consent, places and what it cannot do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from assistant.intent.query import Query
from assistant.render.labels import listed
from assistant.render.sheet import Items, Paragraph
from assistant.reply import Reply
from assistant.session.state import Frame, Pending
from knowledge.language import NO_TEXT, Text
from knowledge.lazy import lazy
from knowledge.text import clean

if TYPE_CHECKING:
    from assistant.planner import Question
    from assistant.session.inventory import Inventory
    from probes.live import ProbeSpec

_FORMATS = (("html", "html"), ("json", "json"), ("markdown", "markdown"), ("md", "markdown"), ("text", "text"),
            ("txt", "text"), ("网页", "html"), ("文本", "text"))  # fmt: skip
_ASKING = lazy(r"\bask(?:ing|ed|s)?\b|\bneed(?: to)? know\b|\bwant to know\b|问|需要知道", re.IGNORECASE)
_DIGIT = lazy("[0-9]")
_FEW = 6  # names of nodes that are told, where nobody can say which was meant
_THIS_ONE = lazy(r"\b(?:here|this (?:node|machine|host|server|box))\b|本机|本节点|这台|这个节点|这里", re.IGNORECASE)
_GPU_MEANT = lazy(
    r"(?<![a-z0-9-])(?:gpus?|cards?|(?:nvidia|rocm|amd)-smi|dcgmi?|nvml|hbm|vram|fabric ?manager)(?![a-z0-9-])|显卡|[张块号]卡",
    re.IGNORECASE,
)


PAGES = 3  # of what is known, that come closest to a question
HEALTHY = Text("is this node healthy?", "这个节点健康吗？")  # the question that a look at the whole machine answers
BROKEN = Text("Broken off; the conversation is as it was before.", "已中断；对话保持在此之前的状态。")


def this_machine(text: str) -> bool:
    """Whether a sentence speaks of the machine that it is typed on ("this node", "here")."""
    return _THIS_ONE.search(text) is not None


_ANOTHER = lazy(
    r"(?<![a-z])(?:an?other|(?:the|our|my|their|his|her|your) other|(?:the|our|my|a|some) (?:customer|colleague|client|user|friend|tenant)'?s?)"
    r" (?:[a-z0-9-]+(?:'s)? ){0,2}?(?:node|machine|box|host|server|cluster|site)(?![a-z])"
    r"|(?<![a-z])(?:that|(?:the|our|my|their|his|her|your)(?: [a-z]+'s?)?|(?:an? )?[a-z]+'s) (?:[a-z0-9-]+ )?(?:dgx|hgx|mgx)(?![a-z0-9-])"
    r"|(?<![a-z])that (?:[a-z0-9-]+ )?(?:node|machine|box|host|server)(?![a-z])"
    r"|(?:我们|客户|同事|用户|他们|你们|公司|别人)(?:家|那边|那台)?的?\s?(?:[a-z0-9]+ )?(?:dgx|hgx)(?![a-z0-9-])|那台\s?(?:[a-z0-9]+ ?)?(?:节点|机器|服务器|主机|dgx|hgx)"
    r"|(?<![a-z])(?:two|three|four|[2-9]|[1-9][0-9]) (?:new |more |other )?(?:nodes|machines|boxes|hosts|servers)(?![a-z])|(?:两|几|[0-9二三四五六七八九十]+)\s?台|另\s?(?:一|外)?\s?(?:个|台)\s?(?:节点|机器|服务器|主机|集群)|别的(?:节点|机器|服务器)|(?:客户|同事|用户)的?(?:节点|机器|服务器)",
    re.IGNORECASE,
)
_OF_JOBS = lazy(
    r"(?<![a-z])(?:nccl|all[-_]?reduce|collectives?|ranks?|trainings?|trainers?|pre-?train\w*|fine[- ]?tun\w+|multi[- ]?node|nodes|cluster|rack|vllm|sglang|inference|fabric ?manager|nvlinks?|nvswitch\w*|infiniband|roce|sinfo|squeue|checkpoints?|ckpts?|data ?loaders?|fsdp|ddp|deepspeed|megatron|torch\w*|pytorch|cuda|epochs?|py-?spy|nsys|ncu|nsight|slurm\w*|sbatch|srun|gres|pyxis|enroot|apptainer|kubectl|k8s|kubernetes|pods?|helm|exporter|prometheus|grafana|wandb|tensorboard|mpirun|conda|grad(?:ient)?[- ]norms?|loss)(?![a-z])|梯度|损失|训练|检查点|多卡|显存|微调|多机|多节点|单机|集群|机架|通信|推理",
    re.IGNORECASE,
)


def another_machine(text: str) -> bool:
    """Whether a sentence speaks of a machine that is not the one that it is typed on ("our other node", 那台机器)."""
    return _ANOTHER.search(text) is not None and not this_machine(text)


def speaks_of_jobs(text: str) -> bool:
    """Whether a sentence speaks of work that takes GPUs, or of several machines: none that runs where no GPU is."""
    return _OF_JOBS.search(text) is not None


def not_meant(lang: str) -> str:
    """Why this machine was left out of an answer about another one."""
    return Text(
        "Another machine is meant, so nothing of this one is in this answer. To look at that one: gpudiag check --host NODE, --bundle FILE or --log FILE.",
        "所指的是另一台机器，因此本回答不含本机信息。要查看那台机器：gpudiag check --host NODE、--bundle FILE 或 --log FILE。",
    ).in_(lang)


def not_this_machine(host: str, lang: str) -> str:
    """Why this machine was left out of an answer, and how the one that is meant can be looked at."""
    name = f" ({host})" if host else ""
    return Text(
        f"This machine{name} has no GPU, so nothing of it is in this answer. To look at the machine meant: "
        "gpudiag check --host NODE, --bundle FILE or --log FILE.",
        f"本机{f'（{host}）' if host else ''}没有 GPU，因此本回答不含本机信息。要查看所指的机器："
        "gpudiag check --host NODE、--bundle FILE 或 --log FILE。",
    ).in_(lang)


def nothing_said(host: str, text: str, lang: str) -> Reply:
    """A question about a GPU where there is none, that states nothing which could be judged: what comes closest stands below."""
    from assistant.dialogue._pages import closest, distinct
    from assistant.find import search
    from assistant.intent.stated import reports_trouble

    nothing = (
        Text("nothing that was said could be judged", "所述内容都无法据以判断")
        if reports_trouble(text) or _DIGIT.search(text)
        else Text("nothing was said of how the one meant is", "没有说明所指的 GPU 是什么情况")
    )
    here = Text(
        f"this machine{f' ({host})' if host else ''} has no GPU", f"本机{f'（{host}）' if host else ''}没有 GPU"
    )
    if another_machine(text):
        here = Text("another machine than this one is meant", "所指的是另一台机器")
    reply = _said(
        lang,
        f"Cannot say: {here.en}, and {nothing.en}. "
        "Look at it: gpudiag check --host NODE, --bundle FILE or --log FILE; or tell what it shows, for instance an XID, a temperature, a line of its log.",
        f"无法判断：{here.zh}，{'而' if nothing.zh.startswith('所') else '也'}{nothing.zh}。"
        "要查看它：gpudiag check --host NODE、--bundle FILE 或 --log FILE；或说明看到了什么，例如 XID、温度、一行日志。",
        settled=False,
    )
    return replace(reply, parts=(*closest(distinct(search(text))[:PAGES], lang),))


_IN_GENERAL = lazy(
    r"(?<![a-z])(?:(?:do|should|would|must) (?:i|we|you|one) (?:need|use|buy|choose|pick|take|prefer|want|run|set|enable|disable|have)|(?:can|could) (?:i|we|you|one) (?:buy|choose|put|mix|have|get)|how (?:long|often|many|much|big|large|do|does|can|should|to)|which|what(?:'s| is| are)? (?:the |a |an )?(?:best|difference|right|good|normal|typical|usual)|when (?:should|do|to)|why (?:does|do|is|are|would)|worth|better|versus|vs)(?![a-z])"
    r"|多少|几[张块台个种]|多久|要不要|该不该|值得|哪[个种些]|怎么|如何|为什么|区别|推荐|建议",
    re.IGNORECASE,
)
_SOME_MACHINE = lazy(
    r"(?<![a-z])(?:my|our|his|her|their|this|that|these|those|it|its|now|today|just|still|currently|keeps?|again)(?![a-z])|这|那|一直|总是|老是|继续|我的|我们|它|该|本|现在|今天|昨天|刚",
    re.IGNORECASE,
)


def in_general(query: Query) -> bool:
    """Whether a question is about no machine in particular ("do I need NVLink for inference?")."""
    of = query.slots
    named = of.gpu or of.node or of.pid or of.job or of.rank
    return not named and _IN_GENERAL.search(query.text) is not None and not _SOME_MACHINE.search(query.text)


def speaks_of_gpus(text: str) -> bool:
    """Whether a sentence speaks of GPUs or of cards."""
    return _GPU_MEANT.search(text) is not None


def _said(lang: str, en: str, zh: str, *, settled: bool = True, suggestions: Sequence[tuple[str, str]] = ()) -> Reply:
    offered = tuple(Text(*pair).in_(lang) for pair in suggestions)
    return Reply(lang, Text(en, zh).in_(lang), settled=settled, suggestions=offered)


def question(pending: Pending) -> Question:
    """What was asked, for the parser of the answer."""
    from assistant.planner import Question
    from knowledge.facts import vocabulary
    from knowledge.observation import node

    spec = vocabulary()[pending.fact]
    subject = pending.subject or node()
    return Question(pending.fact, subject, pending.text, pending.kind, spec.values, pending.reason, (),
                    tuple(spec.labels.items()), spec.unit)  # fmt: skip


def is_no_answer(query: Query) -> bool:
    """Whether somebody says not to know what nobody asked."""
    from assistant.planner import DONT_KNOW, Question, answer_value
    from knowledge.observation import node

    nobody = Question("", node(), Text(""), "bool", (), Text(""), ())
    return answer_value(nobody, query.text, query.lang) is DONT_KNOW


def about_asking(text: str) -> bool:
    """Whether a "why" is about our question ("why do you ask?") and not about the answer."""
    return bool(_ASKING.search(text))


def why_asked(pending: Pending, lang: str) -> Reply:
    """Why a question was asked, or consent."""
    return Reply(lang, pending.reason.in_(lang) or pending.text.in_(lang))


def consent(spec: ProbeSpec, whom: Text = NO_TEXT) -> Text:
    """The question for consent to a probe: what it is and of `whom`, what it costs, what it does beside reading."""
    from probes.live import Cost

    heavy = spec.cost >= Cost.HEAVY
    cost = Text("may take minutes", "可能需要数分钟") if heavy else Text("takes some seconds", "需要数秒")
    effects_en = "; ".join(e.en for e in spec.side_effects)
    effects_zh = "；".join(e.zh for e in spec.side_effects)
    tail_en, tail_zh = (f"; it {effects_en}" if effects_en else ""), (f"；{effects_zh}" if effects_zh else "")
    of_en, of_zh = (f" on {whom.en}", f"查看{whom.zh}") if whom.en else ("", "")
    return Text(
        f"Run {spec.name}{of_en} ({spec.title.en})? It {cost.en}{tail_en}.",
        f"是否运行 {spec.name} {of_zh}（{spec.title.zh}）？{cost.zh}{tail_zh}。".replace(" （", "（"),
    )


def which_process(titles: Sequence[str], lang: str) -> Reply:
    """A name that several processes have: each with the sentence that means it."""
    near = listed(titles, lang)
    reply = _said(lang, f"Which one: {near}?", f"是指哪一个：{near}？", settled=False)
    pids = [title.partition(" ")[0] for title in titles[:3]]
    asked = (Text(f"why is pid {pid} slow?", f"pid {pid} 为什么慢？").in_(lang) for pid in pids)
    return replace(reply, suggestions=tuple(asked))


def overwrite(path: str) -> Text:
    """The question before a file is lost."""
    return Text(f"Overwrite {path}?", f"是否覆盖 {path}？")


def exists(path: str, lang: str) -> Reply:
    """A file of that name is there."""
    return _said(lang, f"{path} exists already.", f"{path} 已存在。", settled=False)


def written(path: str, trouble: str, lang: str) -> Reply:
    """Where the answer was written to, or why it was not."""
    if trouble:
        return _said(lang, f"{path or 'the file'} was not written: {trouble}",
                     f"未能写入 {path or '文件'}：{trouble}", settled=False)  # fmt: skip
    return _said(lang, f"The answer was written to {path}.", f"答案已写入 {path}。")


def noted(reply: Reply, note: str) -> Reply:
    """`reply` with a remark below it."""
    return replace(reply, parts=(*reply.parts, Paragraph(note)))


def beside(reply: Reply, other: Reply) -> Reply:
    """`reply`, with what `other` says first of all below it."""
    return replace(reply, parts=(*reply.parts, Paragraph(other.headline), *other.parts))


def nothing_yet(lang: str) -> Reply:
    """A follow-up to nothing."""
    return _said(
        lang, "There is no answer yet that this could be about: ask something first.",
        "还没有可供追问的答案：请先提一个问题。", settled=False,
        suggestions=(("is this node healthy?", "这个节点健康吗？"), ("why is training slow?", "训练为什么慢？")),
    )  # fmt: skip


def nothing_pending(lang: str) -> Reply:
    """A yes or a no to nothing."""
    return _said(lang, "Nothing is waiting for a yes or a no.", "当前没有等待确认的事项。",
                 suggestions=(("what next?", "下一步做什么？"),))  # fmt: skip


def another_node(before: str, now: str, lang: str) -> str:
    """What was looked at again is of another node."""
    before, now = clean(before), clean(now)
    return Text(
        f"This is node {now}; the look before was at {before}: nothing is compared.",
        f"这是节点 {now}；上一次查看的是 {before}，因此不作比较。",
    ).in_(lang)


def no_answer(lang: str) -> Reply:
    """A yes or a no where something else was asked for; the question follows."""
    return _said(lang, "That does not answer the question.", "这不是对该问题的回答。", settled=False)


def kept(path: str, lang: str) -> Reply:
    """A file is not overwritten."""
    return _said(lang, f"{path} stays as it is; nothing was written.", f"{path} 保持不变，未写入任何内容。")


def cancelled(something: bool, lang: str) -> Reply:
    """What was asked is dropped."""
    if something:
        return _said(lang, "Dropped; nothing was run.", "已取消，未执行任何操作。")
    return _said(lang, "There is nothing to cancel.", "没有需要取消的事项。")


def nothing_to_undo(lang: str) -> Reply:
    """The conversation is at its beginning."""
    return _said(lang, "There is nothing to undo.", "没有可撤销的内容。")


def undone(frame: Frame, lang: str) -> Reply:
    """Where the talk stands after a step back."""
    if frame.query is None:
        return _said(lang, "Undone: the conversation is at its beginning.", "已撤销：对话回到开头。")
    asked = frame.query.echo.in_(lang) or clean(frame.query.text)
    reply = _said(lang, f"Undone. The talk is about: {asked}", f"已撤销。当前话题：{asked}")
    return replace(reply, parts=(Paragraph(frame.headline),)) if frame.headline else reply


def unknown_node(name: str, suggestions: Sequence[str], lang: str, known: Sequence[str] = ()) -> Reply:
    """A node that nobody has heard of: what it may have meant, else (when they are few) all that are `known`."""
    name = clean(name)
    near = ", ".join(suggestions)
    some = "" if near else listed([clean(n) for n in known[:_FEW]], lang) if len(known) <= _FEW else ""
    en, zh = (f"; did you mean {near}?", f"；是否指 {near}？") if near else (".", "。")
    en, zh = (f"; these are: {some}.", f"；已知节点：{some}。") if some else (en, zh)
    reply = _said(lang, f"No node called {name} is known{en}", f"未知节点 {name}{zh}", settled=False)
    offered = tuple(suggestions[:3]) or tuple(known[:3] if some else ())
    return replace(reply, parts=_ways(name, lang), suggestions=offered)


def not_here(name: str, here: str, lang: str) -> Reply:
    """A node that is known, but that cannot be looked at from here."""
    name = clean(name)
    reply = _said(
        lang, f"{name} cannot be looked at from here ({here}).", f"无法从本机（{here}）查看 {name}。", settled=False
    )
    return replace(reply, parts=_ways(name, lang))


def one_at_a_time(names: Sequence[str], lang: str) -> Reply:
    """Several nodes that can be looked at."""
    names = [clean(n) for n in names]
    more = f", ... ({len(names)})" if len(names) > 3 else ""
    near = listed(names[:3], lang) + more
    reply = _said(lang, f"One node is looked at at a time: {near}.", f"一次只查看一个节点：{near}。", settled=False)
    asked = (Text(f"is {n} healthy?", f"{n} 健康吗？").in_(lang) for n in names[:3])
    return replace(reply, suggestions=tuple(asked))


def unreached(name: str, why: str, lang: str, *, partly: bool = False) -> Reply:
    """A node that does not answer, or (`partly`) whose connection broke: why, and what to do about it in the lines below."""
    name = clean(name)
    first, _, rest = clean(why).removeprefix(f"{name}: ").removeprefix(f"{name}：").partition("\n")
    if partly:
        en, zh = f"The look at {name} ended early: {first}", f"对 {name} 的查看提前结束：{first}"
    else:
        en, zh = f"{name} was not looked at: {first}", f"未能查看 {name}：{first}"
    reply = _said(lang, en, zh, settled=False, suggestions=(("again", "再查一次"),))
    return replace(reply, parts=(Paragraph(rest.strip()),)) if rest.strip() else reply


def job_there(name: str, lang: str) -> str:
    """A running job of another machine on which no gpudiag is installed, or none that can look at it."""
    name = clean(name)
    return Text(
        f"What a running job does is looked into on its own machine: gpudiag profile, or gpudiag ask, on {name}. "
        "From here it takes a gpudiag that is installed there",
        f"运行中的作业须在其所在机器上查看：在 {name} 上运行 gpudiag profile 或 gpudiag ask。若要从本机查看，需先在该机器上安装 gpudiag",
    ).in_(lang)


def _ways(name: str, lang: str) -> tuple[Items]:
    ways = (
        Text(
            f"let it be looked at from here: name it in the inventory (gpudiag config hosts), or --host {name} --via ssh",
            f"允许从本机查看：将其写入机器清单（gpudiag config hosts），或使用 --host {name} --via ssh",
        ),
        Text(f"on {name}: gpudiag check", f"在 {name} 上运行：gpudiag check"),
        Text(
            f"or record it there with gpudiag collect -o {name}.tar.gz and ask here with --bundle {name}.tar.gz",
            f"或在该节点用 gpudiag collect -o {name}.tar.gz 录制，再在本机用 --bundle {name}.tar.gz 提问",
        ),
        Text("or ask about its log here with --log FILE", "或在本机用 --log FILE 分析它的日志"),
    )
    return (Items(tuple(w.in_(lang) for w in ways)),)


def other_target(text: str, inventory: Inventory, base: Query, now: str = "") -> str | Reply:
    """The one other node, or this one; else the question which one is meant. `now`: another machine that the talk is about."""
    lang = base.lang
    if now and _THIS_ONE.search(text):
        return inventory.here
    if not speaks_of_gpus(text):
        from assistant.session.inventory import other

        current = now or (base.slots.node[0] if base.slots.node else inventory.here)
        if name := other(inventory, current):
            return name
        others = [h for h in inventory.hosts if h != current]
        if others:
            names = ", ".join(others[:6])
            return _said(lang, f"Which one: {names}?", f"是指哪一个：{names}？", settled=False)
        return _said(lang, "No other node is known.", "没有其他已知节点。", settled=False)
    return _said(lang, "Which one? Say for example: and for gpu 3?", "是指哪一块？例如：gpu 3 呢？", settled=False)


def format_named(text: str) -> str:
    """The format that a sentence names; empty when it names none."""
    lowered = text.casefold()
    return next(
        (form for word, form in _FORMATS if re.search(rf"(?<![a-z0-9.]){re.escape(word)}(?![a-z0-9])", lowered)), ""
    )
