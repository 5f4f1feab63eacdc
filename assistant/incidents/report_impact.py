"""What an incident cost, as a section of its report: the sums, the rows, and what was taken for granted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assistant.incidents import words
from assistant.incidents.impact import Row, Sum, hours
from assistant.incidents.report import Report
from assistant.render.labels import aside
from assistant.render.sheet import Fields, Items, Paragraph, Part, Table
from assistant.render.times import iso
from knowledge.language import Text
from knowledge.text import clean


def headline(r: Report, lang: str) -> str:
    """The sum for the first line: of the GPUs that are named, else of their nodes; empty when nothing could be counted."""
    if r.impact.named.gpu_ns is not None:
        return _figure(r.impact.named, r, lang)
    if r.impact.nodes.gpu_ns is None:
        return ""
    return _figure(r.impact.nodes, r, lang) + _t(lang)(" if the whole node was out of work", "，前提是整个节点停用")


def _t(lang: str) -> Callable[[str, str], str]:
    return lambda en, zh: Text(en, zh).in_(lang)


def _figure(which: Sum, r: Report, lang: str) -> str:
    """``At least 5.20 GPU-hours (1 GPU), 10.92 EUR``."""
    t, ns, n = _t(lang), which.gpu_ns or 0, which.gpus
    least = t("at least ", "至少 ") if which.least else ""
    said = (
        f"{least}{hours(ns)} {t('GPU-hours', 'GPU 小时')}{aside(t(f'{n} GPU' + 's' * (n != 1), f'{n} 个 GPU'), lang)}"
    )
    money = f"{t(', ', '，')}{r.price.of(ns)}" if r.price is not None else ""
    said += money
    return said[:1].upper() + said[1:]


def parts(r: Report, lang: str) -> list[Part]:
    """The section."""
    t = _t(lang)
    named, nodes = r.impact.named, r.impact.nodes
    if not named.rows and not nodes.rows:
        return [
            Paragraph(
                t(
                    "Not counted: no finding says which GPU or node it is about.",
                    "未统计：没有发现指明是哪个 GPU 或节点。",
                )
            )
        ]
    out: list[Part] = [Fields((
        (t("GPUs that findings name", "发现指明的 GPU"), _sum_words(named, r, lang)),
        (t("all GPUs of these nodes", "这些节点的全部 GPU"), _sum_words(nodes, r, lang)),
    ))]  # fmt: skip
    head = (
        t("node", "节点"),
        "GPU",
        t("from (UTC)", "开始（UTC）"),
        t("until (UTC)", "结束（UTC）"),
        t("GPU-hours", "GPU 小时"),
    )
    out.append(Table(head, tuple(_row(x, r.incident.changed_at, lang) for x in (*named.rows, *nodes.rows))))
    out.append(Items(tuple(assumptions(r, lang))))
    return out


def _sum_words(which: Sum, r: Report, lang: str) -> str:
    t = _t(lang)
    if which.gpu_ns is not None:
        return _figure(which, r, lang)
    if not which.rows:
        return t("none is named", "未指明任何 GPU")
    if all(x.gpus is None for x in which.rows):
        return t("not counted: how many there are was not recorded", "未统计：没有记录 GPU 数量")
    return t("not counted: the recorded times contradict each other", "未统计：记录的时间互相矛盾")


def _row(x: Row, newest: int, lang: str) -> tuple[str, ...]:
    t = _t(lang)
    known = (
        t(f"all {x.gpus}", f"全部 {x.gpus} 个")
        if x.gpus is not None
        else t("all, number not recorded", "全部，数量未记录")
    )
    since = words.moment(x.since) + (
        "" if x.measured else aside(t("written down; the start is not known", "记录时间；开始时间未知"), lang)
    )
    until = words.moment(x.until) if x.until is not None else t(
        f"goes on; counted to {words.moment(newest)}", f"仍在持续；计至 {words.moment(newest)}")  # fmt: skip
    return (clean(x.host) or "–", clean(x.gpu) or known, since, until, hours(x.gpu_ns) if x.gpu_ns is not None else "–")


def assumptions(r: Report, lang: str) -> list[str]:
    """How it was counted, and what was taken for granted."""
    t, rows = _t(lang), (*r.impact.named.rows, *r.impact.nodes.rows)
    out = [t("Counted from the first measured event of a cause until mitigated or closed was said; a GPU counts as lost all that time.",
             "从原因的首个实测事件起，计至标记为已缓解或已关闭；其间该 GPU 全部计为损失。")]  # fmt: skip
    if r.impact.named.beyond and r.impact.named.rows:
        out.append(t("A cause that names no GPU counts in the second sum only.", "未指明 GPU 的原因只计入第二项。"))
    if any(not x.measured for x in rows):
        out.append(t("Where the start is not known it counts from when the finding was written down: the true sum is not smaller.",
                     "开始时间未知时，从记录该发现时起算：实际损失不会更少。"))  # fmt: skip
    if any(x.until is None for x in rows):
        out.append(t("It is not over: counted to the newest event.", "尚未结束：计至最新事件。"))
    if any(x.ns is None for x in rows):
        out.append(
            t(
                "Where it was over before it began the clocks disagree: not counted.",
                "结束早于开始的，说明时钟不一致：未计入。",
            )
        )
    out.append(t("The second sum holds if the whole node was out of work; whether it was is not recorded.",
                 "第二项仅在整个节点停用时成立；是否停用没有记录。"))  # fmt: skip
    if r.price is not None:
        price = f"{r.price.amount:f} {r.price.currency}"
        out.append(t(f"{price} for a GPU-hour; not the work since the last checkpoint, nor people's time.",
                     f"每 GPU 小时 {price}；不含上次检查点之后的损失，也不含人力。"))  # fmt: skip
    else:
        out.append(
            t(
                "No money: no price was given (--price, or the setting gpu_hour_price).",
                "不计金额：未给出价格（--price 或设置 gpu_hour_price）。",
            )
        )
    return out


def _plain(which: Sum, r: Report) -> dict[str, Any]:
    ns = which.gpu_ns
    return {
        "gpu_hours": hours(ns).replace(",", "") if ns is not None else None, "gpus": which.gpus if ns is not None else None,
        "at_least": which.least, "money": r.price.of(ns) if r.price is not None and ns is not None else None,
        "rows": [{"host": x.host or None, "gpu": x.gpu or None, "gpus": x.gpus, "from": iso(x.since), "measured": x.measured,
                  "until": iso(x.until) if x.until is not None else None,
                  "gpu_hours": hours(x.gpu_ns).replace(",", "") if x.gpu_ns is not None else None} for x in which.rows],
    }  # fmt: skip


def plain(r: Report, lang: str) -> dict[str, Any]:
    """For JSON."""
    return {
        "named": _plain(r.impact.named, r),
        "nodes": _plain(r.impact.nodes, r),
        "assumptions": assumptions(r, lang),
    }
