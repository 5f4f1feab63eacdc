"""From a sentence to a `Query`, without a language model.

In this order: one spelling, pasted log lines through the parsers, typing errors, slots, phrases of the lexicon,
symptoms, and last the topics that knowledge has a page about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from assistant.intent import (
    advised,
    amounts,
    assumed,
    busy,
    clauses,
    compared,
    contrasts,
    figures,
    general,
    made_of,
    models,
    normal,
    of_run,
    ranked,
    recurred,
    reported,
    setting,
    sums,
    symptoms,
    tasks,
    told,
    topics,
)
from assistant.intent.capped import capped
from assistant.intent.echo import echo
from assistant.intent.grammar import facts_of, page_of, words_of
from assistant.intent.judge import decide
from assistant.intent.needed import needed
from assistant.intent.order import ordered
from assistant.intent.query import Assumed, Compared, Intent, Query, Slots
from assistant.intent.reading import Reading, ends, read
from assistant.intent.slots import Named, slots
from assistant.intent.stated import NO, Stated, asks_usual, of_readings, reports_trouble, stated
from assistant.intent.supported import supported
from knowledge.facts import vocabulary
from knowledge.lazy import lazy
from knowledge.observation import Event, Observation, Scope
from rules.model import Bucket

_MARKS = lazy(r"<([a-z]+)>")
_NO_HAN = lazy("[^\u4e00-\u9fff]+")
_MAY_STATE = (*told.TELLS, Intent.EXPLAIN, Intent.FIX, Intent.NEXT, Intent.PROBE, Intent.HISTORY, Intent.UNKNOWN)
# Asks what something is, whatever else is said.
_MEANS = lazy(
    r"\b(?:means?|meaning|explain|definition|differ(?!ent (?!from|to|than|between)[a-z])\w*|what (?:is|are|does|do) (?:an? |the )?[a-z]+|what's an?|how (?:do|to|can) (?:i|we)?)\b|什么意思|啥意思|是什么|含义|解释|区别|不一样|不同|差别|定义|如何|怎样",
    re.IGNORECASE,
)
_WHY = lazy(r"\bwhy\b|为什么|为啥|为何|咋回事|怎么回事|原因", re.IGNORECASE)
_AT_PRESENT = lazy(r"\b(?:right now|currently|at the moment|at present)\b|现在|当前|目前", re.IGNORECASE)
_RANGE = lazy(r"\b(?:range|limit|max\w*|min\w*|normal)\b|范围|上限|下限|正常", re.IGNORECASE)
_WHY_NOT_ACT = lazy(
    r"\bwhy (?:don'?t|not|can'?t|shouldn'?t) (?:i |we |you |it )?(?:just |simply )?(?:reboot|reset|restart|drain|replace|rma|swap)|(?:为什么|为啥|为何|干嘛|何)不(?:直接|干脆|能|可以|先)?.{0,3}(?:重启|复位|重置|排空|更换|换)",
    re.IGNORECASE,
)
_WHAT_NOW = lazy(
    r"\bwhat (?:now|next|should (?:i|we)|do (?:i|we))\b|怎么办|咋办|咋整|怎么半|怎么处理|怎么解决|怎么弄", re.IGNORECASE
)
_JUDGED = lazy(
    r"\b(?:ok|okay|fine|normal|usual|expected|typical|reasonable|good|healthy|safe|bad|worry|wrong|right|too hot|rma|keep|carry|use|usable|ignore|matter|go|a problem|an issue)\b|正常|健康|没问题|没事|要紧|行|可以|能|影响|吗|不$|吧",
    re.IGNORECASE,
)
# is that bad?: of what was told ahead, and nothing is supposed
_IS_THAT = lazy(
    r"(?<![a-z])(?:is|are) (?:that|this|it|these|those|they) (?:too )?(?:bad|ok|okay|fine|normal|good|high|low|a problem|wrong|expected|healthy)(?![a-z])",
    re.IGNORECASE,
)
_MATTERS = lazy(
    r"要紧|严重吗|影响(?:大|训练|使用)?[吗不]|有事吗|没事吧|(?<![a-z])(?:serious|does (?:it|this|that) matter|a problem|worry)(?![a-z])",
    re.IGNORECASE,
)
_PLACED = lazy(r"[0-9]|\b(?:gpu|node)\b")  # how often, or where: nobody asks that of a book
_PARTED = lazy(r"[,;:.!，；。：！]\s*\S|\b(?:is|are) (?:that|this|it|they)\b", re.IGNORECASE)
# What goes wrong with a job: of "the fan is dead" and "stuck at x8" no job was spoken of.
_OF_JOBS = frozenset(
    ["hang", "crash", "startup-fails", "out-of-memory", "disk-trouble", "low-utilization", "slow-training"]
)
_ASKS_FACTS = (Intent.PROBE, Intent.WHATIF, Intent.EXPLAIN, Intent.FIX, Intent.DIAGNOSE, Intent.HISTORY)


_WORKS = (
    "gpu.utilization",
    "gpu.activity",
    "gpu.power.draw",
    "gpu.clock.sm",
    "gpu.memory.share",
    "gpu.memory.used",
    "gpu.pcie.rx",
    "gpu.pcie.tx",
)
_OF_FIGURES = (
    Intent.DIAGNOSE,
    Intent.VERDICT,
    Intent.FIX,
    Intent.PROBE,
    Intent.UNKNOWN,
    Intent.WHY,
    Intent.HISTORY,
    Intent.NEXT,
)
# "How do I know if ...", "how do I undo that": of the talk itself, or supposed, and no task.
_NO_TASK = (Intent.WHATIF, Intent.UNDO, Intent.CANCEL, Intent.EXPORT, Intent.HELP, Intent.COST, Intent.RUNBOOK, Intent.CONFIRM, Intent.DENY)  # fmt: skip
# Whatever else a sentence seems to want: who asks whether to stop a run asks for a yes or a no.
_OF_RUN = (Intent.DIAGNOSE, Intent.EXPLAIN, Intent.FIX, Intent.PROBE, Intent.HISTORY, Intent.UNKNOWN, Intent.NEXT)
_FAULTS = frozenset(["crash", "gpu-missing", "gpu-lost", "memory-errors", "nan-loss", "out-of-memory"])
_STOPPED = lazy(
    r"hang|hung|stuck|deadlock|freez|frozen|卡死|卡住|挂住|挂起|死锁", re.IGNORECASE
)  # 卡 alone is slow, too
ADVICE = "advice "  # ahead of the ids of its pages
HOWTO = "howto "
_GPU_USERS = "find-gpu-users"
_READS = (Intent.EXPLAIN, Intent.UNKNOWN)  # of these a sentence with readings of one GPU asks what is wrong with it


def understand(text: str, *, lang: str = "en", pending: bool = False, hosts: Sequence[str] = ()) -> Query:
    """What `text` asks: of several questions the one that weighs most, with the others beside it. Never raises on text; the
    same text gives the same query.

    `lang` is answered in when the sentence has no words of its own language ("79"); `pending`: the last answer
    ended in a question; `hosts` are the names of the inventory.
    """
    query = _one(text, lang=lang, pending=pending, hosts=hosts)
    whole = bool(query.pasted or sums.asked(query.text) is not None or models.compared(query.text))
    whole = whole or capped(query.text) is not None  # "cap at 400 W? how much do we lose": one question
    apart = () if whole else clauses.questions(normal.normal(text).text)
    return _several(query, apart, hosts) if apart else query


# A question of how things are is answered ahead of one of a book.
_WEIGHT = {
    Intent.VERDICT: 3,
    **dict.fromkeys((Intent.DIAGNOSE, Intent.WHICH, Intent.EVENTS, Intent.CAUSE, Intent.PROBE, Intent.HISTORY, Intent.SUMMARY), 2),
    Intent.FIX: 1, Intent.NEXT: 1, Intent.EXPLAIN: 0, Intent.COST: 0, Intent.RUNBOOK: 0,
}  # fmt: skip


def _several(whole: Query, apart: Sequence[str], hosts: Sequence[str]) -> Query:
    """The questions `apart` of a message that reads as `whole`; that, where they are not several of which each is understood."""
    asked = [_one(_called(part, whole.slots, hosts), lang=whole.lang, hosts=hosts) for part in apart]
    codes = all(q.intent is Intent.EXPLAIN and (q.slots.xid or q.slots.sxid) for q in asked)  # side by side in a table
    leans = any(_of_a_book(a) and _vague(b) for a, b in pairwise(asked))
    if codes or leans or any(q.intent not in _WEIGHT for q in asked):
        return whole
    first = max(asked, key=lambda q: _WEIGHT[q.intent])
    return echo(
        replace(first, lang=whole.lang, also=tuple(replace(q, lang=whole.lang) for q in asked if q is not first))
    )


def _of_a_book(query: Query) -> bool:
    return query.intent in (Intent.EXPLAIN, Intent.FIX) and not any(query.slots)


def _vague(query: Query) -> bool:
    """Whether a question names neither a machine nor trouble: behind one that is asked of a book it is about that ("is it worth it")."""
    looks = (query.general or query.intent in (*general.LOOKS, Intent.NEXT)) and not (
        query.symptoms or query.observations or any(query.slots)
    )
    return looks and not _MACHINE.search(query.text)


_MACHINE = lazy(
    r"(?<![a-z])(?:gpus?|cards?|nodes?|machines?|servers?|hosts?|box|jobs?|training|runs?)(?![a-z])|卡|机器|节点|主机|服务器|任务|作业|训练",
    re.IGNORECASE,
)


def _called(part: str, of: Slots, hosts: Sequence[str]) -> str:
    """`part` with what the message names, where it names nothing itself: "do I have to RMA the card?" of XID 95."""
    if any(slots(part, hosts).slots):
        return part
    names = [f"{kind} {n}" for kind, values in of.named() if kind in _CALLED for n in values[:1]]
    return ", ".join((*names, part))


_CALLED = ("xid", "sxid", "gpu", "rank", "pid")


def _one(text: str, *, lang: str, pending: bool = False, hosts: Sequence[str] = ()) -> Query:
    """What one question asks."""
    r = read(text, pending=pending, hosts=hosts)
    said = _MARKS.sub(r"\1", r.found.marked)
    wish = _wish(r, said)
    how = wish.task != "" and tasks.asks_how(r.said)  # how something is done is asked, whatever is told beside it
    may_state = not (wish.outright or wish.of_a_book or how)
    intent, signs = wish.intent, wish.signs
    if intent is Intent.HISTORY and (signs or r.raw) and not _ASKS_PAST.search(said):
        intent = Intent.DIAGNOSE  # 凌晨三点任务挂了: when it was is told, and nothing of the past is asked
    states, pairs = Stated(), tuple[Compared, ...]()
    if intent in _MAY_STATE and may_state and not (r.raw and r.pasted.observations):
        intent, signs, states, pairs = _stating(r, intent, signs, said, hosts)
    judged = _IS_THAT.search(said) is not None and figures.measures(r.said)
    if may_state and not wish.task and intent in _OF_ERRORS and (error := _error(r, states)):
        intent, signs, wish = Intent.EXPLAIN, (), wish._replace(page=error, outright=(error,))
    elif may_state and not (wish.task or judged) and intent in _OF_ERRORS and (told_of := general.reported(r)):
        intent, signs, wish = Intent.EXPLAIN, (), wish._replace(page=told_of, outright=(told_of,))
    if (
        intent is Intent.EXPLAIN
        and r.raw
        and any(isinstance(o.value, Event) for o in r.pasted.observations)
        and _MATTERS.search(r.normal.text)
    ):
        intent = Intent.VERDICT  # a line that was pasted, and the question if it matters
    if intent is Intent.EXPLAIN and (r.found.slots.xid or r.found.slots.sxid) and ranked.asks_if_hardware(r.said):
        intent = Intent.VERDICT  # "is xid 48 hardware": yes or no, and no page about the code
    of_amounts = intent in _OF_FIGURES and (
        _refused(r) or (not (wish.outright or r.pasted.observations or wish.task) and amounts.told(r.said))
    )
    if of_amounts:
        intent = Intent.EXPLAIN  # figures of which no machine has to be asked
    figured = _figured(r, intent, wish, states, signs, pairs)
    if figured:
        intent = Intent.EXPLAIN
    elif (
        intent is Intent.EXPLAIN
        and not of_amounts
        and (asks_usual(said) or figures.measures(r.said))
        and not (wish.outright or wish.task or r.found.slots.xid or r.found.slots.sxid)
        and figures.trouble_beside(r.said)
    ):
        intent = Intent.DIAGNOSE  # that one value is usual is no answer to what else is told
    filled = assumed.elsewhere(_filled(r), wish.supposed)
    facts = _facts(r) if intent in _ASKS_FACTS else ()
    known = (*((f"howto {wish.task}",) if wish.task and intent is Intent.FIX else ()), *wish.outright, *r.known)
    best, unsure = topics.topics(intent, filled, said, known, signs, r.pasted.observations)
    if figured or wish.summed:  # of words that a page shares with the sentence none is meant
        best = tuple(t for t in best if t.score >= topics.EXACT)
    if intent not in told.TELLS:  # whether a value is usual takes the value
        kept = states.observations if intent is Intent.EXPLAIN and asks_usual(said) and not wish.outright else ()
        kept = states.observations if figured else kept
        states, pairs = Stated(kept), ()
    events = told.events(intent, r.said, r.found, any_program=recurred.with_any_program(r.said))
    around, unread = _around(
        r, states, (*events, *states.observations), bool(signs), intent in _MAY_STATE and may_state
    )
    if around.contrast and intent not in told.TELLS:
        intent = Intent.DIAGNOSE
    query = Query(
        text=r.normal.raw if len(r.normal.raw) <= normal.MAX_SAID else ends(r.normal.raw),
        lang=normal.language(_without_names(r.said, r.found), lang),
        intent=intent, slots=filled, topics=best, symptoms=signs if intent is not Intent.UNKNOWN else (), facts=facts,
        assumed=wish.supposed,
        observations=(*r.pasted.observations, *events, *states.observations, *around.back, *around.contrast),
        pasted=r.raw, asks=states.asks, compared=pairs, unread=unread, fine=states.fine, fixed=r.fixed, unsure=unsure,
        page=wish.page, general=wish.general and intent is Intent.EXPLAIN,
    )  # fmt: skip
    return echo(ordered(query))


def _refused(r: Reading) -> bool:
    """Whether all that was pasted is a message of a GPU that refused less memory than was free."""
    if not r.pasted.observations or any(o.fact != "cuda_oom" for o in r.pasted.observations):
        return False
    told_so = amounts.oom(r.normal.raw)
    return told_so is not None and told_so.free is not None and (told_so.requested or told_so.free + 1) <= told_so.free


def _figured(
    r: Reading, intent: Intent, wish: _Wish, states: Stated, signs: Sequence[str], pairs: Sequence[Compared]
) -> bool:
    """Whether one value is stated that is known by itself, and neither a machine nor a run is asked about."""
    said, of = r.said, r.found.slots
    wanted = intent in (*_OF_FIGURES, *_READS) and not (wish.outright or wish.of_a_book or wish.task)
    if not wanted or r.pasted.observations or of_run.asked(said) is not None or _APART.search(said):
        return False
    if any((of.xid, of.sxid, of.pid, of.node, of.job)) or any(map(reports_trouble, states.unread)):
        return False
    found = figures.figure(r.normal.text)  # what is read again for the answer: a unit or a tool is no slip
    if found is None or (pairs and isinstance(found, figures.Share)):
        return False
    return figures.alone(found, states.observations, signs)


_APART = lazy(
    r"\b(?:explain|definition|differ\w*|what happens if|how (?:do|to|can))\b|解释|区别|不同|差别|定义|如何|怎样",
    re.IGNORECASE,
)
_MEASURES = lazy(
    r"[0-9]\s*%.{0,40}(?:used|full|usage|busy|on /)|(?:用了|已用|占用|使用率|满了?).{0,12}[0-9]\s*%|[0-9]\s*%.{0,12}(?:已用|占用|满)",
    re.IGNORECASE,
)
_SURE = lazy(
    r"\b(?:sure|certain\w*|confiden\w*|probab\w*|likely|likelihood|chance|trust)\b|把握|确定|可能性|概率|置信|可信|靠谱",
    re.IGNORECASE,
)


class _Wish(NamedTuple):
    """What a sentence wants, before it is read what it states."""

    intent: Intent
    signs: tuple[str, ...]  # symptoms that it names
    page: str  # that its words ask for
    outright: tuple[str, ...]  # pages that it asks for and nothing else
    of_a_book: bool  # whether something is needed, what a power cap costs, which GPU model: no machine is asked
    task: str  # how-to that it asks for
    supposed: tuple[Assumed, ...]
    summed: bool = False  # whether a sum is asked for
    general: bool = False  # whether it is asked in general, and nothing is known of it


_DOTTED = lazy(r"(?<![\w.])[a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)+(?![\w.])|(?<![\w.-])[A-Z]{3,}(?:_[A-Z0-9]+)*(?![\w-])")
_KIND_AND_NAME = lazy(r"\b(?:rule|fact|term|action|runbook|symptom|howto|advice) [a-z0-9]+(?:-[a-z0-9]+)+")


def _by_its_name(text: str) -> bool:
    """Whether a sentence calls a page by its own name: `gpu.energy`, `RESTART_FM`, `MONITOR`, "the rule rank-late"."""
    return _KIND_AND_NAME.search(text) is not None or any(
        word in vocabulary() or word in Bucket.__members__ for word in _DOTTED.findall(text)
    )


def _action(said: str) -> tuple[str, ...]:
    """The page of the action whose meaning is asked: "what does MONITOR mean?"."""
    found = [word for word in _DOTTED.findall(said) if word in Bucket.__members__]
    return (f"action {found[0]}",) if len(found) == 1 and _MEANING.search(said) else ()


# what it means, and neither how it is done nor how it differs
_MEANING = lazy(
    r"\b(?:means?|meaning|stands? for|explain|definition)\b|什么意思|啥意思|是什么|含义|解释|定义", re.IGNORECASE
)


def _wish(r: Reading, said: str) -> _Wish:
    if not r.raw and (made := made_of.asked(r.words)) is not None:
        return _Wish(made, (), "", (), False, "", ())
    among = tuple(f"gpu {m.id}" for m in models.compared(r.said))
    if not among and not r.raw and (of_sheet := supported(r.said) or models.specified(r.said)) is not None:
        among = (f"gpu {of_sheet.of[0].id}",)
    advice = advised.Asked() if r.pasted.pasted or among else _advice(r)
    if told_page := reported.page(r):
        return _Wish(Intent.EXPLAIN, (), told_page, (told_page,), False, "", ())
    if not r.pasted.pasted and ranked.asks_which(r.said) and len((*r.found.slots.xid, *r.found.slots.sxid)) > 1:
        return _Wish(Intent.EXPLAIN, (), "", (), True, "", ())  # which of several codes is the graver stands in a book
    if not r.pasted.pasted and sums.asked(r.normal.raw) is not None:
        return _Wish(Intent.EXPLAIN, (), "", (), True, "", (), summed=True)
    read_lines = r.pasted.pasted and (r.raw or r.pasted.observations)  # of lines that tell nothing the words are left
    phrased = "" if read_lines or among else _page(r)
    if phrased.startswith(ADVICE) and tasks.wants_commands(r.said) and (done_by := _task(r, Intent.FIX)):
        phrased = f"{HOWTO}{done_by}"
    if phrased.startswith(ADVICE):  # words in their order say more than the same ones anywhere
        advice = advised.Asked()
    page = "" if advice.reports else f"{ADVICE}{advice.id}" if advice.id else phrased
    named = topics.outright(r.normal.raw) or _action(r.said)
    by_name = bool(named) or _by_its_name(r.normal.raw)
    if by_name:
        page, advice = "" if page.startswith(ADVICE) else page, advised.Asked()
    bare = by_name or among or advice.reports or assumed.left_alone(said)
    decided = None if bare else decide(r)
    near = general.general(r, decided) if decided is not None else general.General()
    asks_how = "" if r.raw else tasks.asked_how(r.said, r.found.marked)
    # said in so many words: no entry like it is meant
    done = bool(asks_how) and tasks.done_to(asks_how, r.found.marked)
    if not done and (not page or general.nearer(near, page, r.said)):
        page = near.page or page
    howto = page.removeprefix(HOWTO) if page.startswith(HOWTO) else ""
    page = "" if howto else page
    whole = _WHOLE.fullmatch(r.found.marked) is not None or _PART_OF_IT.fullmatch(r.found.marked) is not None
    outright = named or among or ((page,) if page else ())
    unanswered = False
    of_a_book = needed(r.said) is not None or capped(r.said) is not None
    if outright or of_a_book:
        intent, task = Intent.EXPLAIN, ""
    else:
        intent = Intent.COST if _priced(r.said) else decided or decide(r)
        # a page that its words name is no wish for help with this program ("how do I know ...")
        task = howto if howto and (intent not in _NO_TASK or intent is Intent.HELP) else _task(r, intent)
        if (
            task
            and near.outright
            and not (done and task == asks_how)
            and general.only_reminded(f"{HOWTO}{task}", r.said)
        ):
            task = ""
        intent = _after_task(r, Intent.FIX if task else intent, task, said)
        if not near.looks and intent in general.LOOKS and not (task or of_run.asked(r.said)):
            intent, unanswered = Intent.EXPLAIN, True  # where nothing is known of it, that is said: no look tells more
        if intent is Intent.CONFIDENCE and _MEASURES.search(said) and not _SURE.search(said):
            intent = Intent.DIAGNOSE  # "97 % used on /": a share, and not how sure the last answer is
    if intent in (Intent.EXPLAIN, Intent.DIAGNOSE, Intent.PROBE) and whole:
        intent = Intent.VERDICT
    if (
        intent is Intent.EXPLAIN
        and not (outright or of_a_book)
        and _AT_PRESENT.search(said)
        and facts_of(r.words)
        and not (asks_usual(said) or _RANGE.search(said))
    ):
        intent = Intent.PROBE  # "what temperature is it right now"
    coded = r.found.slots.xid or r.found.slots.sxid or any(o.fact in ("xid", "sxid") for o in r.pasted.observations)
    if intent is Intent.DIAGNOSE and coded and not (r.raw or r.signs) and _MEANING.search(said):
        intent = Intent.EXPLAIN  # "gpu 3 threw xid 79, what does it mean"
    if intent is Intent.FIX and r.pasted.observations and not (task or outright or coded):
        intent = Intent.DIAGNOSE  # what to do about a line that was pasted stands behind what it says
    if intent in _OF_RUN and of_run.asked(r.said) is not None and not outright:
        intent = Intent.VERDICT
    supposed = assumed.assumed(r.said, r.words, r.found.slots) if intent is Intent.WHATIF else ()
    if (
        intent is Intent.WHATIF
        and not supposed_at_all(r.said)
        and (((not supposed or _IS_THAT.search(said)) and figures.measures(r.said)) or stated(r.said, r.found).codes)
    ):
        intent, supposed = Intent.DIAGNOSE, ()  # "no xid 79, but xid 48": what is so, and nothing that might be
    signs = () if page.startswith(ADVICE) or whole else r.signs
    if intent in (Intent.DIAGNOSE, Intent.WHY, Intent.WHYNOT, Intent.UNKNOWN) and _WHY_NOT_ACT.search(said):
        intent, signs = Intent.VERDICT, ()  # "why don't we reboot it?": judged as "should we"
    if (
        intent in (Intent.WHATIF, Intent.WHY, Intent.NEXT, Intent.UNKNOWN, Intent.DENY)
        and not supposed
        and assumed.left_alone(said)
    ):
        intent, signs = Intent.DIAGNOSE, ()  # what comes of it stands in the verdict
    if of_run.asked(r.found.marked) is not None:
        named = symptoms.find(words_of(of_run.without(r.found.marked)))
        signs = tuple(s for s in signs if s in named)
    if advice.reports and intent in (*_OF_RUN, Intent.VERDICT):
        page = f"{ADVICE}{advice.id}"
        if intent in (Intent.FIX, Intent.UNKNOWN):  # what to do about it is what the advice is
            intent, outright, signs, task = Intent.EXPLAIN, (page,), (), ""
    return _Wish(
        intent, signs, page, outright, of_a_book, task, supposed, general=unanswered and intent is Intent.EXPLAIN
    )


_OF_ERRORS = (Intent.DIAGNOSE, Intent.UNKNOWN, Intent.PROBE, Intent.WHY, Intent.CAUSE, Intent.NEXT, Intent.RERUN)


def _error(r: Reading, states: Stated) -> str:
    """The page of an error that a sentence quotes or names, where nothing else is told: it says more than a symptom does."""
    told_so = (*r.pasted.observations, *states.observations)
    if any(isinstance(o.value, Event) or not o.fact.endswith((".version", ".name")) for o in told_so):
        return ""
    quoted, plain = topics.quoted(r.pasted.matches), _letters(r.normal.raw)
    found = (name for name in r.known if name in quoted or _letters(name.partition(" ")[2]) in plain)
    errors = (name for name in found if name.startswith(("cuda ", "pytorch ", "nccl ")))
    return next((name for name in errors if not _SHORTAGE.search(name)), "")


def _letters(text: str) -> str:
    return text.translate({ord("-"): None, ord("_"): None}).casefold()


_SHORTAGE = lazy(
    r"oom|out-of-memory|MemoryAllocation|OUT_OF_MEMORY|ALLOC_FAILED"
)  # what holds the memory has to be looked at


# gpu 正常吗 | 这台机器健康吗 | 卡都没问题吧: asked of the whole thing, and of no reading of it
_WHOLE = lazy(
    r"\W*(?:请问|麻烦|看看|看下|现在|目前|我们?|你们?|的|这|那|几|[张块台个]|所有|全部|[0-9]+|<(?:gpu|node)>|\s)*(?:gpus?|显卡|卡|机器|节点|服务器|主机|集群|<(?:gpu|node)>)\s*(?:[0-9]+|上|的|状态|情况|现在|目前|都|还|是|否|算|\s)*(?:正常|健康|有没有(?:问题|故障|毛病|异常)|有无(?:问题|故障|异常)|有问题|没问题|没事|有毛病|ok|好|坏)\s*(?:的|了|着)*\s*(?:吗|么|嘛|吧|没|不|不正常|没有|否)*\W*",
    re.IGNORECASE,
)


# is memory healthy?: of the part of this machine, and of no reading of it
_PART_OF_IT = lazy(
    r"\s*(?:is|are) (?:the |our |my )?(?:gpu |host |system )?(?:memory|ram|hbm|vram|ecc|nvlinks?|nvswitch(?:es)?|pcie|pci|infiniband|ib|network|fabric|disks?|drives?|storage|cooling|fans?|drivers?) (?:all |still )?(?:healthy|ok|okay|fine|in order)\s*\?*\s*",
    re.IGNORECASE,
)


_OF_REQUEST = f"{ADVICE}other-gpus-than-requested"
_RUNNERS = lazy(r"ollama|llama[ ._-]?cpp|llama-server|lm ?studio|gguf", re.IGNORECASE)
# What is graver than a program that does not find its GPU, or results that differ: it is looked at first.
_GRAVER = lazy(
    r"(?<![a-z])(?:no devices were found|fallen off|fell off|off the bus|uncorrectable|ecc errors?)(?![a-z])|掉卡|掉线|不可纠正|ecc ?错误",
    re.IGNORECASE,
)
_BEHIND_GRAVER = ("torch-runs-on-cpu", "ollama-on-cpu", "reproducible-training", "rank-zero-memory", "bonded-nics")


def _is_of(page: str, r: Reading) -> bool:
    """Whether an entry that the words ask for is of what the sentence names: that of rank 0 of no other rank, that of ollama of no
    other server, none of speed where the job stands still, and none of them where a fault is told."""
    entry, of = page.removeprefix(ADVICE), r.found.slots
    if entry in _BEHIND_GRAVER and (of.xid or of.sxid or _GRAVER.search(r.said)):
        return False
    if entry == "scaling-efficiency" and _STOPPED.search(r.said):
        return False
    if entry == "rank-zero-memory" and (of.gpu or of.rank):
        return set(map(str, (*of.gpu, *of.rank))) == {"0"}
    return entry != "ollama-on-cpu" or _RUNNERS.search(r.said) is not None


_SEES_MANY = lazy(
    r"(?<![a-z])(?:sees?|saw|shows?|finds?|gets?|got)\s+(?:only |just |me )*(?:[0-9]{1,2}|one|two|three|four|six|seven|eight|all)(?: of (?:the )?[0-9]{1,2}| of them|(?: [0-9]{1,2})? (?:gpus?|cards?))?(?=\s*(?:[,.;?!]|$)|\s+(?:why|in|inside|instead|of|gpus?|cards?)(?![a-z]))"
    r"|(?:看到|看见|识别到|识别出|认到)了?\s*(?:全部|所有|[0-9]{1,2}|[一两二三四五六七八])\s*(?:张|块|个|卡|的|gpu)",
    re.IGNORECASE,
)


_SO_MANY_CARDS = lazy(r"[0-9]{1,2}\s*[张块个]")


def _counts_only(r: Reading) -> bool:
    """Whether a sentence tells how many GPUs a job sees, and of no other trouble or value."""
    told = _SEES_MANY.search(r.said) is not None and not figures.measures(_SO_MANY_CARDS.sub(" ", r.said))
    return told and not r.found.slots.xid and set(r.signs) <= {"gpu-missing", "container-no-gpu"}


def _page(r: Reading) -> str:
    """The page that the words ask for; none of advice where the sentence only reports trouble ("quota exceeded: pod pending"),
    or asks if a value is usual ("dram active 11 % in decode, normal?")."""
    page = _of_mask(r.said) or page_of(r.words)
    if not page.startswith(ADVICE):
        return page
    if r.found.slots.sxid:
        return ""  # a switch's code says more of reboot or return than what holds of GPUs
    if page == _OF_REQUEST and not _counts_only(r):
        return ""  # a GPU that broke is missing to the job as well
    if not _is_of(page, r):
        return ""
    reports = (r.signs or reports_trouble(r.said)) and not _QUESTION.search(r.said)
    reports = reports and not advised.of_reports(page.removeprefix(ADVICE))
    judges = (asks_usual(r.said) or _FINE_AT_END.search(r.said)) and figures.measures(r.said)
    reports = reports or (advised.of_reports(page.removeprefix(ADVICE)) and _states_fault(r))
    return "" if reports or (judges and not advised.of_reports(page.removeprefix(ADVICE))) else page


def _states_fault(r: Reading) -> bool:
    """Whether a sentence states a value of what is broken memory or a dead link, or names its GPU: that is judged, whatever its words
    remind of."""
    if not _OF_FAULT.search(r.said):
        return False
    if r.found.slots.gpu:
        return True  # of one GPU by its number it is asked, and not of a book
    return any(o.fact.startswith(_FAULT_FACTS) for o in stated(r.said, r.found).observations)


_OF_FAULT = lazy(r"ecc|remap|retire|uncorrect|inactive|blacklist|nvlink|重映射|退役|不可纠正|断", re.IGNORECASE)
_FAULT_FACTS = (
    "gpu.ecc.volatile.uncorrected",
    "gpu.ecc.aggregate.uncorrected",
    "gpu.row_remap.",
    "gpu.retired_pages.",
    "link.state",
)


def _of_mask(said: str) -> str:
    """The page of a mask of clock event reasons that stands beside their name: its bits are what is asked."""
    found = _HEX.search(said) if _REASONS.search(said) and _MEANS.search(said) else None
    if found is None:
        return ""
    from knowledge.catalog.clock_events import decode

    return f"clock {found[0]}" if decode(int(found[0], 16))[0] else ""


_HEX = lazy(r"(?<![0-9a-z])0x[0-9a-f]{1,16}(?![0-9a-z])", re.IGNORECASE)
_REASONS = lazy(
    r"clocks?[ _](?:event|throttle)[ _]reasons?|thrott(?:le|ling)[ _]reasons?|降频原因|时钟事件", re.IGNORECASE
)
# util sits at 30%, fine?: asked of that value
_FINE_AT_END = lazy(
    r"[0-9]\s?%[^,?，？]{0,12}[,，.]?\s*(?:ok|okay|fine|good|bad|low|normal)\s*[?？]*\s*$", re.IGNORECASE
)
_OK_AT_END = lazy(
    r"(?<![a-z])(?:ok|okay|fine|good|bad|safe|normal|usual|expected|too (?:hot|high|low))\s*[?？]*\s*$", re.IGNORECASE
)
_QUESTION = lazy(
    r"(?<![a-z])(?:how|what|which|when|where|why|should|can|could|is|are|do|does|worth)(?![a-z])|[?？吗哪几]|怎|如何|什么|多少|多久|要不要|该不该|能不能|会不会|是不是|合适|区别|值得|还是(?=[a-z直先重换报返送停用选]| [a-z])",
    re.IGNORECASE,
)


_OF_TOOL = "smi-beside-jobs"
# nvidia-smi 显示 ERR! | nvidia-smi says GPU is lost: what it prints of a GPU that does not answer
_TOOL_SHOWS = lazy(
    r"(?<![a-z_])(?:err!|\[?unknown error|gpu is lost|no devices were found|couldn't communicate)|(?:gpu|显卡|卡) ?(?:丢失|掉了)",
    re.IGNORECASE,
)


def _advice(r: Reading) -> advised.Asked:
    """The advice that is asked for; none where a code or a process is named, which have answers of their own."""
    of = r.found.slots
    if r.raw or of.xid or of.sxid or of.pid or of.job:
        return advised.Asked()
    if "driver-hangs" in r.signs:
        return advised.Asked()  # the tool itself is what is in trouble
    if (of_work := busy.asked(r.said)).id:
        return of_work
    troubled = not _FAULTS.isdisjoint(r.signs) or _STOPPED.search(r.said) is not None
    found = advised.asked(r.said, r.found.marked, troubled=troubled)
    # nothing is asked about the tool where what it shows is reported
    return advised.Asked() if found.id == _OF_TOOL and _TOOL_SHOWS.search(r.said) else found


def _task(r: Reading, intent: Intent) -> str:
    """The how-to that is asked for; empty where none is."""
    task = "" if r.raw or intent in _NO_TASK else tasks.asked_how(r.said, r.found.marked)
    if intent is Intent.PROBE and task == _GPU_USERS and tasks.asked_who(r.said, r.found.marked):
        return ""  # who uses a GPU is looked at, where there is one; whom a kernel killed is no longer there
    return task


def _after_task(r: Reading, intent: Intent, task: str, said: str) -> Intent:
    """What is wanted where no how-to is: a fault that came back is judged, and a wish without a thing asks what to do next."""
    if task:
        return intent
    back = recurred.back_after(r.said) != "" or recurred.with_any_program(r.said)
    came_back = bool(r.found.slots.xid or r.found.slots.sxid) and back
    asks = intent in (*_MAY_STATE, Intent.RERUN) and intent not in told.TELLS
    if came_back and asks and not _MEANS.search(said):
        return Intent.DIAGNOSE  # "xid 79 came back after a gpu reset" asks for no reset
    filled = _filled(r)
    nothing = not (filled.xid or filled.sxid or r.known or r.pasted.observations)
    return Intent.NEXT if intent is Intent.FIX and nothing and topics.only_wishes(said) else intent


def _stating(
    r: Reading, intent: Intent, signs: tuple[str, ...], said: str, hosts: Sequence[str]
) -> tuple[Intent, tuple[str, ...], Stated, tuple[Compared, ...]]:
    """What a sentence states, and what it wants in the light of that."""
    # a line alone is what is stated
    text, of = (r.said, r.found) if r.said else (r.normal.text, slots(r.normal.text, hosts))
    states = stated(text, of, diagnosed=intent is Intent.DIAGNOSE, fixed=r.fixed)
    pairs = compared.compared(text, of)
    states = _with_pairs(states, pairs, text, of)
    intent, signs = _wanted(intent, states, said), _signs(signs, states)
    signs = of_readings(states.observations, signs, r.said)
    stands = signs or states.observations or states.unread or r.pasted.observations or any(_filled(r))
    if intent is Intent.DIAGNOSE and r.known and not stands and _WHY.search(said):
        intent = Intent.EXPLAIN  # why it is so of the thing itself: nothing is said to be wrong
    reported = intent is Intent.VERDICT and not states.asks  # "it used to do 470, now 210" asks of no use
    if pairs and (intent not in told.TELLS or reported):
        intent = Intent.DIAGNOSE  # whoever compares asks what is wrong with the worse one
    if intent in _READS and len({o.fact for o in states.observations if o.fact.startswith(_WORKS)}) > 1:
        intent = Intent.DIAGNOSE  # what readings mean together no page about one of them tells
    if intent in _READS and compared.lists(states.observations):
        intent = Intent.VERDICT if asks_usual(said) else Intent.DIAGNOSE  # nor of a list which of them stands out
    facts = {o.fact for o in states.observations}
    if intent in _READS and "gpu.name" in facts and len(facts) > 1 and _OK_AT_END.search(r.said):
        intent = Intent.VERDICT  # "memory temp 98 on an H100 ok?": its value is judged, whatever is known of the model
    return intent, signs, states, pairs


class _Around(NamedTuple):
    """What is told around a fault: that it came back, and where or since when it is so and where not."""

    back: tuple[Observation, ...] = ()
    contrast: tuple[Observation, ...] = ()


def _around(
    r: Reading, states: Stated, said: Sequence[Observation], signs: bool, may_state: bool
) -> tuple[_Around, tuple[str, ...]]:
    """What stands around the fault, and the clauses that nothing was understood of."""
    back = tuple(recurred.told(r.said, r.found, said)) if recurred.of_fault(said) else ()
    trouble = bool(signs or said or states.unread or _WRONG.search(r.said))
    contrast, words = contrasts.told(r.said, r.found, trouble=trouble) if may_state else ((), "")
    if back:  # what was changed to mend it did not bring it about
        contrast = tuple(o for o in contrast if o.fact != contrasts.SINCE)
    unread = contrasts.without(states.unread, words) if contrast else states.unread
    return _Around(back, contrast), setting.without(recurred.without(unread) if back else unread)


def _filled(r: Reading) -> Slots:
    return _with_paste(r.found.slots, r.pasted.observations, r.raw, r.pasted.pasted)


def _facts(r: Reading) -> tuple[str, ...]:
    """Names of facts that are written or meant."""
    written = [name.partition(" ")[2] for name in r.known if name.startswith("fact ")]
    return tuple(dict.fromkeys((*written, *(name for _, _, name in facts_of(r.words)))))


def _without_names(said: str, found: Named) -> str:
    """The words of a sentence that tell its language: of what it names only the Han characters (3号卡)."""
    han = "".join(_NO_HAN.sub("", said[start:end]) for start, end, _ in found.spans)
    return f"{_MARKS.sub(' ', found.marked)} {han}"


def _with_pairs(states: Stated, pairs: Sequence[Compared], said: str, found: Named) -> Stated:
    """What is stated, with the values of a comparison as those of the things that they are of, in place of what their clauses told alone."""
    if not pairs:
        return states
    told_so = tuple(compared.observations(pairs, said, found))
    facts = {o.fact for o in told_so}
    numbers = [n for pair in pairs for n in compared.figures(pair)]  # a list: the value of an event has no hash
    own = [o for o in states.observations if o.fact not in facts and o.value not in numbers]
    unread = tuple(c for c in states.unread if not compared.taken(c, pairs, own))
    return states._replace(observations=(*told_so, *own), unread=unread)


def _priced(said: str) -> bool:
    """Whether a sentence gives the price of GPU hours and asks for a sum."""
    return all(p.search(said) is not None for p in (_PRICE, _AN_HOUR, _HOW_MUCH))


_PRICE = lazy(
    r"[$€£¥]\s*[0-9]|(?<![a-z0-9])[0-9][0-9.,]*\s*(?:usd|eur|gbp|dollars?|euros?|bucks?|元|块(?!\s*(?:gpu|卡|显卡))|美元|美金|欧元)",
    re.IGNORECASE,
)
_AN_HOUR = lazy(
    r"(?:/|per|an?|each)\s*(?:gpu[- ]?|card[- ]?)?(?:hours?|hrs?|h)(?![a-z])|gpu[- ]hours?|(?:卡|gpu\s*)(?:小时|时)|每小时",
    re.IGNORECASE,
)
_HOW_MUCH = lazy(
    r"(?<![a-z])(?:how much|what (?:do|does|did|is|are|will|would)|cost\w*|waste\w*|pay\w*|lose|burn\w*|spend\w*)(?![a-z])|多少|花|浪费|费用|成本",
    re.IGNORECASE,
)
_WRONG = lazy(
    r"(?<![a-z])(?:slow\w*|hang\w*|hung|crash\w*|fail\w*|stuck|error\w*|broken?|drop\w*|worse|bad|wrong|die[sd]?|oom|nan|timeout\w*)(?![a-z])|慢|卡|挂|崩|失败|报错|错误|超时|掉|异常|不行|变差|现在\s*[0-9]",
    re.IGNORECASE,
)
_SUPPOSES = lazy(
    r"(?<![a-z])(?:if|suppose|supposing|assum\w+|imagine|were|would|without|pretend|ignoring)(?![a-z])|如果|假如|假设|要是|若|的话|万一|当作|就算|除去|排除|忽略|不算|去掉",
    re.IGNORECASE,
)


def supposed_at_all(said: str) -> bool:
    """Whether a sentence has a word that supposes something."""
    return _SUPPOSES.search(said) is not None


# when was the last time ... | how often did it | 上次是什么时候: a question about what was, whatever it mentions
_ASKS_WHEN = lazy(
    r"(?<![a-z])(?:when (?:was|were|did|has|have|is)|last time|how (?:often|many times)|ever)(?![a-z])|上次|上一次|什么时候|何时|几次|多少次|多久",
    re.IGNORECASE,
)
# what happened last night | 昨晚发生了什么 | 有没有掉卡: a question about what was
_ASKS_PAST = lazy(
    r"(?<![a-z])(?:what|when|which|who|where|how|did|does|do|has|have|had|was|were|any|anything|show|list|history|log|logs|events?|happen\w*|ever|count|often|summar\w+|tell|check|look)(?![a-z])"
    r"|发生|历史|记录|出过|有过|几次|多少|多久|上次|什么|啥|何时|哪|有没有|是否|查|看|列|统计|日志里|总结|以来|[?？吗]",
    re.IGNORECASE,
)
_REPORTS = lazy(
    r"(?<![a-z])(?:but|except|got|threw|throws|had|has|have|saw|seen|see|shows?|reports?|logged)(?![a-z])|nvswitch\s?#?[0-9]|有|报|出现|看到",
    re.IGNORECASE,
)


def _wanted(intent: Intent, states: Stated, said: str) -> Intent:
    """What is wanted of a sentence that states how something is: that it is judged, and no page about its words."""
    book = _MEANS.search(said) or _WHY.search(said)
    parted, judged = _PARTED.search(said) is not None, _JUDGED.search(said) is not None
    told_so = (states.unread and parted) or (states.codes and _REPORTS.search(said))
    if intent is Intent.EXPLAIN and not book and (told_so or (states.counts and not judged)):
        return Intent.VERDICT if judged else Intent.DIAGNOSE if states.counts else intent
    reports = bool(states.observations) or states.counts or (states.codes and _REPORTS.search(said) is not None)
    if intent is Intent.HISTORY and _ASKS_WHEN.search(said):
        return intent
    if intent is Intent.HISTORY and states.observations and judged and states.asks:
        return Intent.VERDICT  # 历史上有 3 个 dbe，继续跑行吧: told, and asked if it may go on
    if intent in (Intent.PROBE, Intent.HISTORY) and reports and not states.shown:
        return Intent.DIAGNOSE  # a sentence that reports something, and asks to be shown nothing
    if intent in told.TELLS or not (states.observations or (states.codes and states.fine)):
        return intent
    if intent is Intent.UNKNOWN and all(
        isinstance(o.value, int | float) and o.subject.up(Scope.GPU) is not None for o in states.observations
    ):
        return intent  # a number and a unit may be of anything
    read = [o for o in states.observations if o.fact != "gpu.name"]  # a model is what is asked about, and no reading
    asked = judged or book or intent is Intent.FIX
    happened = any(isinstance(o.value, Event) or _of_part(o) for o in read) and _PLACED.search(said) is not None
    broken = read and read[0].subject.scope is Scope.NODE and isinstance(read[0].value, str)  # the state of a node
    if intent is Intent.FIX and broken and _WHAT_NOW.search(said):
        return Intent.DIAGNOSE
    if intent in (Intent.EXPLAIN, Intent.FIX) and len(read) == 1 and asked and not happened and not parted:
        return intent  # H100 温度 85 度正常吗 | 行重映射 pending 怎么处理: asked of a book
    if _WHAT_NOW.search(said):
        return Intent.DIAGNOSE
    if intent is Intent.FIX and _PARTED.search(said):
        return Intent.DIAGNOSE  # what is stated has a remedy of its own
    if _MEANS.search(said) or intent is Intent.FIX:
        return intent
    if _WHY.search(said) or intent in (Intent.NEXT, Intent.UNKNOWN):
        return Intent.DIAGNOSE
    if judged:
        return Intent.VERDICT
    # what is only stated asks what is wrong with it
    return Intent.DIAGNOSE if happened or (read and not states.shown) else intent


def _of_part(o: Observation) -> bool:
    """Whether a reading is of a part that has to be called by its name: a drive, a mount, a power supply."""
    return o.subject.scope is Scope.OBJECT


# "not responding", "not ready", "not found": the trouble itself, and no word that it is absent
_NOT_AS_IT_SHOULD = lazy(
    r"(?<![a-z])(?:not|n't|never)\s+(?:respond|answer|ready|found|reach|available|work|run|start|load|visible|detect|recogni[sz]|enough|schedul|register|connect|join|come|boot)",
    re.IGNORECASE,
)
_PIECES = lazy(r"[,;，；。]|\b(?:but|yet|however)\b|但是?|不过|却|(?<=[\u4e00-\u9fff])\s+(?=[\u4e00-\u9fffa-z])")


def _signs(signs: Sequence[str], states: Stated) -> tuple[str, ...]:
    """The symptoms of a sentence, without those that only words held which were taken as facts of the hardware, or denied."""
    if not signs or not (states.observations or states.denied):
        return tuple(signs)
    affirmed, denied = states.left, set[str]()
    for piece in _PIECES.split(states.denied):
        if _NOT_AS_IT_SHOULD.search(piece):
            continue
        words = words_of(piece)
        at = next((n for n, w in enumerate(words) if w in NO), len(words))
        ahead = symptoms.find(
            words[:at]
        )  # "hangs every hour, no error" as one clause: what stands ahead of the "no" is so
        bare = [w for w in words if w not in NO]
        if (
            len(bare) < len(words) and not ahead and (named := symptoms.find(bare))
        ):  # "no packet loss"; "no gpu is visible" names one by its "no"
            affirmed, denied = affirmed.replace(piece, ""), denied.union(named)
    left = symptoms.find(words_of(affirmed))
    return tuple(s for s in signs if s in left or not (s in _OF_JOBS or s in denied))


def _with_paste(said: Slots, observations: Sequence[Observation], raw: bool, text: str) -> Slots:
    """The slots of what is said, and what the log lines name."""
    return told.with_lines(said, observations, text) if raw else said
