"""What can be said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assistant.slack.page import Page, Rendered
from assistant.slack.rich import bullets, section, span
from knowledge.language import Text

if TYPE_CHECKING:
    from assistant.slack.bot import Asker, Bot
    from assistant.slack.heard import Heard
    from assistant.slack.ledger import Ticket

COMMANDS = ("help", "帮助", "?")
_TITLE = Text("Ask in your own words, or with one of these:", "请直接提问，或使用以下命令：")
_ROWS = (
    ("check gpu-12", Text("is the node healthy, can it be used", "节点是否健康、可否使用")),
    ("why pid 4242 on gpu-12", Text("why a job is slow or hangs", "作业为何缓慢或挂起")),
    ("explain xid 79", Text("what a code, a fact or a rule means", "某个代码、指标或规则的含义")),
    ("profile pid 4242 on gpu-12", Text("look into a running job, after a yes", "查看运行中的作业（需先同意）")),
    ("incident", Text("open incidents; incident open, show, note, run, report, close", "未结事件；incident open、show、note、run、report、close")),
    ("history of gpu-12", Text("what was found before", "以前发现过什么")),
)  # fmt: skip
_MORE = Text(
    "In a thread: why, how do you know, what if ..., again, export. Paste log lines or share files (logs, nvidia-smi output, "
    "bundles, traces): they are diagnosed as they are.",
    "在话题中：为什么、你怎么知道、假如……、再查一次、导出。粘贴日志或上传文件（日志、nvidia-smi 输出、数据包、trace）即可直接诊断。",
)


def page(lang: str) -> Rendered:
    """The message."""
    out = Page(lang, [span(_TITLE.in_(lang), "bold")])
    out.add(bullets([[span(words, "code"), span(f"  {meaning.in_(lang)}")] for words, meaning in _ROWS]))
    out.add(section(span(f"\n{_MORE.in_(lang)}")))
    return out.done()


async def handle(bot: Bot, heard: Heard, asker: Asker, ticket: Ticket | None) -> None:
    """Only to whoever asked."""
    del ticket
    if heard.answer_to:
        await bot.poster.answer(heard.answer_to, page(asker.lang))
    else:
        await bot.poster.whisper(heard.place, asker.person.id, page(asker.lang))
