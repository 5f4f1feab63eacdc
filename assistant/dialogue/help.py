"""What can be asked: a few examples of each kind, short enough to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.dialogue._pages import data_of, text_in
from assistant.render.sheet import Paragraph, Part, Table
from assistant.reply import Reply
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.dialogue import Turn

# Kind of question, and sentences of it. `tests/assistant/dialogue/test_help.py` has each of them understood.
EXAMPLES: tuple[tuple[Text, tuple[Text, ...]], ...] = (
    (
        Text("what is wrong", "哪里有问题"),
        (Text("why is pid 4242 slow?", "为什么 pid 4242 很慢？"), Text("check this node", "检查本节点")),
    ),
    (
        Text("may it be used", "能否使用"),
        (Text("is gpu 3 healthy?", "GPU 3 健康吗？"), Text("can I keep using it?", "还能继续用吗？")),
    ),
    (
        Text("what it means", "什么意思"),
        (Text("what is xid 79?", "xid 79 是什么？"), Text("is 43 % MFU good?", "MFU 43% 算好吗？")),
    ),
    (
        Text("what to do", "怎么处理"),
        (Text("how do I fix xid 79?", "如何处理 xid 79？"), Text("how do I enable ECC?", "如何开启 ECC？")),
    ),
    (Text("the steps", "步骤"), (Text("runbook for xid 79", "xid 79 的处置手册"),)),
    (
        Text("show a value", "查看数值"),
        (Text("what is the temperature of gpu 3?", "GPU 3 的温度是多少？"), Text("show ecc errors", "显示 ECC 错误")),
    ),
    (Text("what happened", "发生过什么"), (Text("has xid 63 happened before?", "以前出现过 xid 63 吗？"),)),
    (
        Text("after an answer", "追问"),
        (
            Text("why?", "为什么？"), Text("how do you know?", "你是怎么知道的？"), Text("how sure are you?", "有多确定？"),
            Text("what else could it be?", "还可能是什么？"), Text("what if ECC is off?", "如果 ECC 关闭呢？"),
            Text("what next?", "下一步做什么？"), Text("check again", "再查一次"),
        ),
    ),
)  # fmt: skip


def answer(turn: Turn) -> Reply:
    """Examples by kind, and what else can be given."""
    lang = turn.lang
    rows = tuple((kind.in_(lang), _listed(sentences, lang)) for kind, sentences in EXAMPLES)
    paste = text_in(
        lang,
        "Log lines and tracebacks can be pasted as they are. Nothing is ever changed on a machine: actions are words and commands for you.",
        "日志行与 traceback 可以直接粘贴。不会改动任何机器：动作只以文字和命令给出。",
    )
    parts: tuple[Part, ...] = (
        Table((text_in(lang, "kind", "类别"), text_in(lang, "for example", "例如")), rows),
        Paragraph(paste),
    )
    headline = text_in(
        lang,
        "Ask about GPUs, their nodes and jobs, in English or Chinese: what is wrong, whether they may be used, what a code means, what to do.",
        "可以用中文或英文询问 GPU、节点与作业：哪里有问题、能否使用、代码的含义、如何处理。",
    )
    return Reply(lang, headline, parts, suggestions=examples(lang), data=data_of("help", []))


def examples(lang: str) -> tuple[str, ...]:
    """Three sentences to begin with."""
    few = (
        Text("check this node", "检查本节点"),
        Text("what is xid 79?", "xid 79 是什么？"),
        Text("how do I enable ECC?", "如何开启 ECC？"),
    )
    return tuple(t.in_(lang) for t in few)


def _listed(sentences: tuple[Text, ...], lang: str) -> str:
    return " | ".join(s.in_(lang) for s in sentences)
