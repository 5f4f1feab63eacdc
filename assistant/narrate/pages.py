"""Pages of ``gpudiag llm``: the verdict first, then exactly what was sent, what came back, and what it took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from assistant.narrate.limits import NAME, TOKENS_IN, TOKENS_OUT, Usage, estimate
from assistant.narrate.log import NAME as LOG
from assistant.narrate.narrator import Narrated, Reworded, Withheld
from assistant.render.sheet import Code, Fields, Heading, Paragraph, Part, Sheet, Table
from knowledge.language import Text
from knowledge.record import dataclass
from knowledge.text import clean

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assistant.config import Llm
    from assistant.narrate.completion import Completion
    from assistant.narrate.reasons import NarrationError
    from assistant.narrate.setup import Setup

MASK = "********"


@dataclass(frozen=True, slots=True)
class Look:
    """What is shown of one request."""

    llm: Llm
    asked: Reworded
    show_redaction: bool = False


def off(error: NarrationError, lang: str) -> Sheet:
    """Nothing can be asked, and why."""
    title = Text("Nothing is sent to any model.", "不会向任何模型发送内容。").in_(lang)
    parts = (
        Paragraph(error.said.in_(lang)),
        Paragraph(Text("docs/narration.md says how to set one up.", "设置方法见 docs/narration.md。").in_(lang)),
    )
    return Sheet(
        title,
        parts,
        {"narration": "off", "reason": error.reason.value, "said": error.said.in_(lang), "detail": error.detail},
    )


def status(found: Setup, used: Usage, folder: Path, lang: str) -> Sheet:
    """What is configured and what was used today."""

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    where, most = found.model.place, found.bounds
    title = t(f"Narration is on: {found.model.name}", f"叙述已启用：{found.model.name}")
    place = (
        t("this machine", "本机")
        if where.here
        else t("another machine, on the list of hosts", "其他机器，已在主机名单中")
    )
    plain = "" if where.encrypted or where.here else t("; not encrypted", "；未加密")
    rows = (
        (t("server", "服务器"), f"{where.base} ({place}{plain})"),
        (t("key", "密钥"), MASK if found.model.key else t("none", "无")),
        (t("interpreter", "解释器"), found.model.python),
        (t("written for", "面向"), found.audience),
        (t("deadline", "时限"), f"{found.deadline:g} s"),
    )
    header = (t("limit", "上限"), t("used", "已用"), t("allowed", "允许"))
    limits = (
        (t("requests in the last minute", "最近一分钟的请求"), str(len(used.recent)), str(most.requests_per_minute)),
        (t("tokens today (UTC)", "今日（UTC）token"), str(used.tokens), str(most.tokens_per_day)),
        (
            t("US dollars today, where a price is known", "今日美元（价格已知时）"),
            f"{used.dollars:.4f}",
            f"{most.dollars_per_day:.2f}",
        ),
        (t("tokens of one request, in and out", "单次请求的 token，输入与输出"), "", f"{TOKENS_IN}, {TOKENS_OUT}"),
    )
    files = Fields(((t("counted in", "计数文件"), str(folder / NAME)), (t("log", "日志"), str(folder / LOG))))
    data = {
        "narration": "on", "model": found.model.name, "base": where.base, "here": where.here, "encrypted": where.encrypted,
        "key": bool(found.model.key), "python": found.model.python, "audience": found.audience, "deadline": found.deadline,
        "requests_last_minute": len(used.recent), "requests_today": used.requests, "tokens_today": used.tokens,
        "dollars_today": used.dollars, "limits": {"requests_per_minute": most.requests_per_minute,
        "tokens_per_day": most.tokens_per_day, "dollars_per_day": most.dollars_per_day},
    }  # fmt: skip
    return Sheet(title, (Fields(rows), Heading(t("Limits", "上限")), Table(header, limits), files), data)


def tested(look: Look, found: Narrated | Withheld | None, lang: str, walls: Mapping[str, bool] | None) -> Sheet:
    """One request: `found` is None when it was not sent, `walls` when the process of the model did not begin."""
    parts = [
        *_verdict(found, lang),
        *_walls(walls, lang),
        *_sent(look, sent=found is not None, lang=lang),
        *_received(found, lang),
    ]
    data: dict[str, Any] = {
        "result": _word(found), "model": look.llm.model, "base": look.llm.base, "messages": [dict(m) for m in look.asked.messages],
        "max_tokens": TOKENS_OUT, "temperature": 0, "response_format": "json_object",
    }  # fmt: skip
    if walls is not None:
        data["walls"] = {name: walls.get(name, False) for name in _WALLS}
    if isinstance(found, Withheld):
        data |= {"reason": found.reason.value, "detail": found.detail}
    got = found.completion if found is not None else None
    if got is not None:
        data["received"] = {"text": got.text, "model": got.model, "tokens_in": got.prompt_tokens, "tokens_out": got.completion_tokens,
                            "cost_usd": got.cost_usd, "seconds": round(got.seconds, 3)}  # fmt: skip
    if isinstance(found, Narrated):
        data["narration"] = [{"text": s.text, "cites": list(s.cites)} for s in found.narration.sentences]
    if look.show_redaction:
        parts += _redaction(look, lang)
        data["redaction"] = dict(look.asked.redaction)
    return Sheet(_title(found, lang), tuple(parts), data)


def _word(found: Narrated | Withheld | None) -> str:
    return "not-sent" if found is None else "withheld" if isinstance(found, Withheld) else "shown"


def _title(found: Narrated | Withheld | None, lang: str) -> str:
    if found is None:
        return Text("This would be sent; nothing was.", "以下内容将被发送；本次未发送。").in_(lang)
    if isinstance(found, Withheld):
        return Text(
            "Narration withheld: the answer of gpudiag stands alone.", "叙述未采用：仅保留 gpudiag 自身的回答。"
        ).in_(lang)
    return Text("The model answered, and its words may be shown.", "模型已回答，其文字可以展示。").in_(lang)


def _verdict(found: Narrated | Withheld | None, lang: str) -> list[Part]:
    if isinstance(found, Withheld):
        detail = clean(found.detail)
        return [Paragraph(found.said.in_(lang)), *([Code((detail,))] if detail else [])]
    return [Paragraph(found.narration.text)] if found is not None else []


# What each wall keeps the process of the model from (walls.WALLS).
_WALLS = {
    "user": Text("it is not root", "它不是 root"),
    "privileges": Text("it has no capability, and gets none", "它没有任何特权，也无法获得"),
    "reads": Text("it reads its own packages and the certificates, no other file", "它只能读取自己的软件包与证书"),
    "writes": Text("it writes no file", "它不能写任何文件"),
    "programs": Text("it starts no program", "它不能启动任何程序"),
    "sockets": Text("it opens no connection: it is handed those to the server", "它不能自行建立连接：只使用交给它的到服务器的连接"),
    "processes": Text("it touches no other process", "它不能触及其他进程"),
}  # fmt: skip


def _walls(walls: Mapping[str, bool] | None, lang: str) -> list[Part]:
    if walls is None:
        return []

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    holds = {True: t("stands", "有效"), False: t("DOES NOT STAND HERE", "此处无效")}
    rows = tuple((text.in_(lang), holds[walls.get(name, False)]) for name, text in _WALLS.items())
    return [Heading(t("Walls around the process of the model, each run against", "模型进程周围的隔离（逐项实测）")), Table(
        (t("wall", "隔离"), t("held by the kernel", "由内核执行")), rows
    )]  # fmt: skip


def _sent(look: Look, *, sent: bool, lang: str) -> list[Part]:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    where = Fields(
        ((t("model", "模型"), look.llm.model or t("none is set", "未设置")), (t("server", "服务器"), look.llm.base),
         (t("tokens", "token"), t(f"about {estimate(look.asked.messages)} in, at most {TOKENS_OUT} out",
                                  f"输入约 {estimate(look.asked.messages)}，输出至多 {TOKENS_OUT}")))
    )  # fmt: skip
    heading = t("Sent, all of it", "发送的全部内容") if sent else t("To be sent, all of it", "将发送的全部内容")
    parts: list[Part] = [Heading(heading), where]
    for message in look.asked.messages:
        lines = tuple(clean(line) for line in message["content"].split("\n"))
        parts += [Paragraph(f"{message['role']}:"), Code(lines)]
    return parts


def _received(found: Narrated | Withheld | None, lang: str) -> list[Part]:
    got: Completion | None = found.completion if found is not None else None
    if got is None:
        return []

    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    price = t("no price is known", "价格未知") if got.cost_usd is None else f"{got.cost_usd:.6f} USD"
    took = Fields(
        ((t("model", "模型"), got.model), (t("tokens", "token"), t(f"{got.prompt_tokens} in, {got.completion_tokens} out",
                                                          f"输入 {got.prompt_tokens}，输出 {got.completion_tokens}")),
         (t("time", "用时"), f"{got.seconds:.2f} s"), (t("cost", "费用"), price))
    )  # fmt: skip
    return [
        Heading(t("Received, as it came", "收到的原文")),
        took,
        Code(tuple(clean(line) for line in got.text.split("\n"))),
    ]


def _redaction(look: Look, lang: str) -> list[Part]:
    def t(en: str, zh: str) -> str:
        return Text(en, zh).in_(lang)

    rows = tuple((sent, clean(kept)) for sent, kept in look.asked.redaction.items())
    heading = Heading(t("Kept here", "仅保留在本机"))
    if not rows:
        return [heading, Paragraph(t("No name of this site stood in it.", "其中没有本站点的名称。"))]
    return [heading, Table((t("sent", "发送"), t("stands for", "代表")), rows)]
