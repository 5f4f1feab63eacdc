"""Whether each clause of a Chinese sentence rests on one statement of a cited finding; see `assistant.narrate.support`.

Chinese has no spaces: a run of characters is taken apart into words that say nothing of their own and pieces of two characters
or more of the statement. What cannot be taken apart so is said by no statement.
"""

# ruff: noqa: SIM905
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from assistant.narrate import freewords as fw
from assistant.narrate import lexicon as lex
from assistant.narrate.alike import IMPLIED_ZH
from assistant.narrate.material import Item, Kind
from assistant.narrate.placeholders import PLACEHOLDER
from assistant.narrate.roles import entity
from assistant.narrate.sentence import Sentence
from assistant.narrate.statements import Mode, Statement, statements
from assistant.narrate.vocabulary import denied_in, han_negations, stemmed, with_alike
from assistant.narrate.wording import pairs, runs, stem, tokens

FREE = frozenset(
    """
的 了 着 过 在 于 是 有 和 与 及 并 且 也 还 就 则 即 但 而 已 正 被 把 将 为 以 从 到 至 由 对 向 其 它 该 此 这 那 可 会 后 前 中 上 下 里 内 时 等 之 所 地 得 给 用 出 来
它们 其中 其他 其余 这些 那些 这个 那个 以及 或者 或 而且 并且 但是 然而 同时 此外 另外 然后 随后 接着 其 因此 因而 所以 由于 因为 导致 引起 引发 造成 使 使得 令 由 因 故 致 所致 从而
目前 现在 当前 仍然 仍 依然 已经 正在 说明 表明 表示 显示 指出 可见 看到 发现 检测 检测到 观察到 记录 记录了 记录为 记为 报告 报告了 报出 报 打印 打印了 写入 写下 出现 发生 出现了 发生了 存在 处于 位于 属于
情况 状态 问题 现象 症状 结果 后果 影响 受影响 相关 有关 关于 对于 根据 按照 依据 通过 原因 根源 根因 起因 根本 根本原因 解释 源于 来自 缘故 影子
日志 消息 代码 代码为 时间 时刻 次 个 块 条 台 处 种 类 项 些 人员 驱动记录 驱动报告 驱动在 驱动打印 驱动打印了 日志代码 共 约 为 一个 一块 一台 一条 一次 某个 某 一些 部分 单个 有一块 有一个
请 应 需 需要 应当 应该 建议 务必 必须 要 可以 能 能够 可能 或许 也许 似乎 疑似 大概 很可能 有可能 多半 怀疑 几乎 一般 即可 进行 加以 予以 采取 操作 措施 步骤 做法 办法 处理 下一步 先 再 然后 之后 以后 之前 以前 在此之前 此前 此后 随之
因此 由此 也由此 为此 对此 于此 以此 虽然 尽管 却 则是 就是 都是 均 均为 不过 只能 才能 那么 例如 比如 如 若 如果 一旦 当 时候 期间 自 自从 起 以来 本身 自身 自己 称为 即为 作为 成为 视为 受到 受 遭 遭到 涉及 带来 变得 变为
如下 上述 上面 下面 而言 来说 来看 看来 得到 得知 属 系 便 亦 又称 指 指向 说 指的是 意味着 意味 为了 以便 让 给 上的 中的 内的 里的
去 做 见 出在 还会 也会 将会 会有 有所 具有 拥有 带有 本次 该次 此次 这次 这一 那一 同 同一 另 同样 同样是 也是 其上 受害者 产生 产生了 还产生了 并非 没有 无 未 不 无法 不能 不可 不会 不再 尚未 尚 无需 不必 别 勿 请勿 不要 无须 无需处理 无法
""".split()
)
_CUT = re.compile(
    r"[，；：。（）]|导致|引起|引发|造成|使得|(?<![即])使(?!用)|所致|因此|因而|所以|由于|因为|原因是|原因在于|是由|(?<![自理])由(?!于|此)|是(?=[^，。]*的(?:后果|结果|症状|影子))|(?:的|其|同样是|也是|都是|是)*(?:后果|结果|症状)"
)
_TELLS = re.compile(
    r"请|(?<![响对相反适供回])应(?![用答])|必须|建议|务必|需要|(?<![无])需(?!要)|(?<![需必重主不])要|下一步"
)
_USE = ("使用", "可用", "启用")
_IF = re.compile(r"若|如果|一旦|时|后|再次|反复|之前|前|直到|如")
_LATER = re.compile(r"下次|下一次|维护|窗口|空闲|之后|后")
_STATES = (
    "节点",
    "机器",
    "服务器",
    "系统",
    "设备",
    "GPU",
    "恢复",
    "完成",
    "继续",
    "照常",
    "保持",
    "使用",
    "可用",
    "暂不",
    "暂时",
    "直到",
    "之前",
    "该卡",
    "投入",
    "仍可",
    "可以",
    "该节点",
    "目前",
    "仍能",
    "这台",
)


def support(s: Sentence) -> str:
    """Which clause rests on nothing; empty when each rests on a statement."""
    parts = [_PLACE.sub("", p) for p in _CUT.split(s.text) if p and p.strip(" .,")]
    told, tells = [], False
    for p in parts:
        tells = (
            tells or bool(_TELLS.search(p)) or re.sub("^(?:先|再|然后|随后|并)", "", p.strip()).startswith(lex.ZH_DEEDS)
        )
        told.append(tells)
    for part, deed in zip(parts, told, strict=True):
        deed = deed or (any(told) and bool(re.match(r" ?(?:若|如果|一旦|在|当)|.*(?:之前|之后|后|前|时) ?$", part)))
        options = list(_options(s, part, deed))
        if not _said(part) or any(_covers(s, st, part) for st in options):
            continue
        if not any(_halved(s, part, options)):
            return f"no statement says: {part.strip()[:30]}"
    return _sequence(s)


def _halved(s: Sentence, part: str, options: Sequence[Statement]) -> Iterable[bool]:
    for m in re.finditer(r"并且|而且|并|且|和|与|而|、", part):
        one, two = part[: m.start()], part[m.end() :]
        if _said(one) and _said(two):
            yield all(any(_covers(s, st, half) for st in options) for half in (one, two))


def _options(s: Sentence, part: str, deed: bool) -> Iterable[Statement]:
    uses = any(w in s.text for w in _USE)
    hedged = any(w in s.text for w in (*lex.ZH_HEDGES, "或", "若", "如果", "是否", "例如"))
    for st in (x for i in s.items for x in statements(i, "zh")):
        if (
            (st.mode is Mode.FACT and (not deed or "需" in st.text))
            or (st.mode is Mode.OPEN and hedged)
            or (st.mode is Mode.DEED and deed)
            or (st.mode is Mode.LATER and (deed or uses))
            or (st.mode is Mode.STATE and uses and any(w in part for w in ("用", "继续", "恢复", "之前", "维持")))
        ):
            yield st


_PLACE = re.compile(r"^ ?(?:该|本|此)?(?:节点|机器|服务器)(?:上的?|中的?|内的?|的(?!不)|(?=挂载))")


@lru_cache(maxsize=2048)
def _said(part: str) -> bool:
    """Whether a part says anything by itself."""
    return any(_strange(run, ()) for run in runs(part)) or bool(_latin(part))


def _latin(text: str) -> frozenset[str]:
    bare = PLACEHOLDER.sub(" ", text)
    return frozenset(stem(t) for t in tokens(bare) if t[0].isascii() and t[0].isalpha())


@lru_cache(maxsize=65536)
def _strange(run: str, given: tuple[str, ...]) -> str:
    """The place from which a run is made neither of free words nor of pieces of `given`."""
    reach = {0}
    for i in range(len(run)):
        if i in reach:
            for j in range(i + 1, min(len(run), i + 12) + 1):
                piece = run[i:j]
                if piece in FREE or (j - i >= 2 and any(piece in r for r in given)):
                    reach.add(j)
    return "" if len(run) in reach else run[max(reach) : max(reach) + 4]


def _covers(s: Sentence, st: Statement, part: str) -> bool:
    item = s.material.by_id[st.item]
    alone = st.mode is Mode.FACT and bool(_TELLS.search(part))
    return any(_covered(s, item, st, part, more) for more in ((), *((o,) for o in _beside(item, st) if not alone)))


@lru_cache(maxsize=2048)
def _beside(item: Item, st: Statement) -> tuple[Statement, ...]:
    every = statements(item, "zh")
    modes = (Mode.STATE, Mode.LATER, Mode.DEED)
    return tuple(
        o for o in every
        if o is not st and ((st.mode in modes and o.mode in modes and st.mode is not o.mode and not (st.mode is Mode.DEED and o.mode is Mode.STATE)) or (o.mode is st.mode and len(_pairs(o.text) & _pairs(st.text)) >= (2 if (o.name and "{" in st.text) or (st.name and "{" in o.text) else 3)))
    )  # fmt: skip


def _pairs(text: str) -> frozenset[str]:
    return frozenset(p for r in runs(text) for p in pairs(r) if p not in FREE)


def _covered(s: Sentence, item: Item, st: Statement, part: str, more: tuple[Statement, ...]) -> bool:
    texts = [st.text, *(o.text for o in more)]
    given = tuple(r for t in texts for r in runs(t))
    given += tuple(w for key, words in IMPLIED_ZH.items() if any(key in r for r in given) for w in words)
    if st.mode in (Mode.STATE, Mode.LATER):
        given += _STATES if st.mode is Mode.STATE else ("恢复", "完成", "结束", "重新")
    if PLACEHOLDER.search(part):
        given += ("仅", "仅为", "只有")
    if item.kind is not Kind.FINDING:
        given += ("排除", "已排除", "读取", "查看", "判断", "无法", "来源", "应答")
    given += _kinds(item) if st.mode not in (Mode.DEED, Mode.LATER) and not _TELLS.search(part) else ()
    if any(_strange(run, given) for run in runs(part)):
        return False
    latin = frozenset(with_alike({w for t in texts for w in _latin(t)})) | (
        _entities(item, st) if st.mode is Mode.STATE or not _TELLS.search(part) else frozenset()
    )
    if _latin(part) - latin - {"gpu"} or ("gpu" in _latin(part) and "gpu" not in latin):
        return False
    return not (
        _turned(part, texts)
        or _another_object(part, item)
        or _signs_differ(part, texts)
        or _values_elsewhere(part, item, texts)
        or _without_condition(s, st)
    )


def _entities(item: Item, st: Statement) -> frozenset[str]:
    if st.mode is Mode.STATE:
        return frozenset({"gpu", "rank"})
    if st.mode is Mode.DEED:
        return frozenset()
    names = {entity(n) for n in PLACEHOLDER.findall(" ".join((item.where, *item.members)))} - {""}
    return with_alike(stemmed(frozenset(names)) & fw.ENTITIES | (_latin(item.what) & fw.ENTITIES))


def _kinds(item: Item) -> tuple[str, ...]:
    names = " ".join((item.where, *item.members))
    return tuple(
        w
        for kind, words in (
            ("{node", ("节点", "机器", "服务器")),
            ("{process", ("进程",)),
            ("{job", ("作业", "任务", "训练")),
            ("{rank", ("训练",)),
        )
        if kind in names
        for w in words
    )


def _signs_differ(part: str, texts: Sequence[str]) -> bool:
    """Whether what the statement denies is asserted, or the other way round."""
    denied = {p for t in texts for p in denied_in(t, "zh")}
    affirmed = {p for t in texts for p in _pairs(t)} - denied
    here = denied_in(part, "zh")
    mine = _pairs(part)
    if han_negations(part):
        lacking = any(
            w in t
            for t in texts
            for w in (
                "否",
                "勿",
                "非",
                "失败",
                "丢失",
                "掉线",
                "断开",
                "卡",
                "超时",
                "消失",
                "退出",
                "不",
                "未",
                "无",
                "没",
            )
        )
        return not lacking or bool(here & affirmed - denied and not here & denied)
    lack = any(w in part for w in ("停止", "超时", "断开", "失败", "中断", "掉线", "丢失", "消失", "直到", "退出"))
    return bool((denied - affirmed) & mine - here) and not lack


def _values_elsewhere(part: str, item: Item, texts: Sequence[str]) -> bool:
    mine = {n for n in PLACEHOLDER.findall(part) if "." in n and any(f"{{{n}}}" in line for line in item.seen)}
    return bool(mine) and not any(f"{{{n}}}" in x for n in mine for x in texts)


def _without_condition(s: Sentence, st: Statement) -> bool:
    """Whether a deed for some case or for later is told as if it were for all and now."""
    if st.mode is not Mode.DEED:
        return False
    if st.text.startswith(("若", "如果", "如")) or "则" in st.text:
        return not re.search(r"若|如果|一旦|再次|反复|如", s.text)
    return bool(re.search(r"下次|维护|窗口|空闲", st.text)) and not _LATER.search(s.text)


_DOES = ("等待", "占用", "持有")


def _around(text: str, verb: str) -> tuple[frozenset[str], frozenset[str]]:
    """What stands before a verb and what behind it; an ending such as "would" or "by" apart."""
    one, _, two = text.partition(verb)
    return _pairs(one) | _latin(one), _pairs(two) | _latin(two)


def _turned(part: str, texts: Sequence[str]) -> bool:
    """Whether somebody waits for what waits for him there."""
    for verb in _DOES:
        same = [_around(t, verb) for t in texts if verb in t]
        if verb in part and same:
            before, behind = _around(part, verb)
            if "的" in part.partition(verb)[2] and not before:  # "what uses the GPU": the one who does it stands behind
                continue
            if all((before & b - a) or (behind & a - b) for a, b in same):
                return True
    return False


_OBJECT_ENDS = re.compile(
    r"[，。；：（）、]|并|然后|再|之前|之后|后|前|时|" + "|".join(sorted(lex.ZH_DEEDS, key=len, reverse=True))
)


def _objects(text: str, verb: str) -> frozenset[str]:
    """What follows a verb, up to the next deed."""
    found = (PLACEHOLDER.sub("", _OBJECT_ENDS.split(piece)[0]) for piece in text.split(verb)[1:])
    return frozenset(re.sub("^[该此其这]", "", x.strip(" .")).strip() for x in found) - {""}


def _heads(text: str, verb: str) -> frozenset[str]:
    """The last word of what is done to: Chinese names the thing last."""
    out = set()
    for bare in _objects(text, verb):
        if found := re.search(r"([A-Za-z]+|[\u3400-\u9fff]{2})$", bare):
            out.add(found[1].lower())
    return frozenset(out)


def _another_object(part: str, item: Item) -> bool:
    """Whether a deed is done to something else than in the statements that tell to do it."""
    told = [st.text for st in statements(item, "zh") if st.mode is Mode.DEED]
    for verb in lex.ZH_DEEDS:
        known = frozenset().union(*(_heads(t, verb) for t in told))
        starts = {o for t in told for o in _objects(t, verb)}
        if any(x.startswith(o) for o in _objects(part, verb) for x in starts):
            continue
        if (
            known
            and (mine := _heads(part, verb))
            and not mine & known
            and not all(h in FREE or h[-1] in "后时前的" for h in mine)
        ):
            return True
    return False


def _sequence(s: Sentence) -> str:
    """Deeds in another order than that in which they are to be done."""
    told = "".join(x for i in s.items for x in (*i.actions, *i.then))
    m = re.search(r"再(?!次)|然后|之后|随后", s.text)
    if not m:
        return ""
    ahead, behind = (
        {w for w in lex.ZH_DEEDS if w in half and w in told} for half in (s.text[: m.start()], s.text[m.end() :])
    )
    wrong = [a for a in ahead for b in behind - ahead if told.index(a) > told.index(b)]
    return f"the order of deeds is another: {wrong[0]}" if wrong else ""
