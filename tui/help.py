"""Keys and commands, as they hold now."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen

from tui import commands
from tui.widgets.page import Page

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from tui.app import GpudiagApp


class HelpScreen(ModalScreen[None]):
    """A page over everything."""

    app: GpudiagApp
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss", "Close")]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll { width: 90%; max-width: 100; height: 90%; background: $panel; padding: 1 2; }
    """

    def compose(self) -> ComposeResult:
        """The page."""
        from assistant.render.sheet import Fields, Heading

        t, lang = self.app.t, self.app.desk.lang
        keys = (
            (
                "1 … 9",
                t(
                    "screens (from the chat: Alt with the digit, or Esc before it)",
                    "切换画面（在对话中：Alt+数字，或先按 Esc）",
                ),
            ),
            ("z", t("one side over the whole width", "单侧全宽")),
            ("j k  g G  PgUp PgDn", t("walk; h l: columns; s: sort by the column", "上下移动；h l：换列；s：按列排序")),
            ("e", t("explain what is under the cursor: the chat answers", "解释光标处的内容（在对话中回答）")),
            ("/", t("filter; Esc takes it away", "筛选；Esc 取消")),
            (":", t("command; Ctrl-P finds one by its words", "命令；Ctrl-P 按词查找")),
            ("y", t("copy the row", "复制该行")),
            ("r", t("look again now", "立即重新读取")),
            (
                t("space < > [ ] + -", "空格 < > [ ] + -"),
                t("replay of a recording: play, marks, ten seconds, speed", "录制回放：播放、事件、十秒、速度"),
            ),
            (
                "v  m  w  o",
                t(
                    "Live: all GPUs, next metric, span, processes of the chosen GPU or MIG instance",
                    "实时：全部 GPU、下一指标、时段、所选 GPU 或 MIG 实例的进程",
                ),
            ),
            ("Ctrl-O", t("between node and recording", "在节点与录制之间切换")),
            ("Esc", t("cancel, close, other side", "取消、关闭、换到另一侧")),
            ("Ctrl-Q", t("leave", "退出")),
        )
        chat = (
            ("Enter", t("ask; Ctrl-J: a new line", "提问；Ctrl-J：换行")),
            ("Tab", t("complete sentences, nodes, codes", "补全语句、节点、代码")),
            (t("up down", "上 下"), t("earlier sentences that begin so", "之前以此开头的语句")),
            ("Alt-a … Alt-n", t("choose what has the letter", "选择带该字母的项")),
            ("Shift-Tab", t("to the answers: j k, Enter folds or copies, e explains, y copies",
                            "转到答案：j k，Enter 展开或复制，e 解释，y 复制")),
            ("Esc", t("break off; the conversation stays as it was", "中断；对话保持原样")),
        )  # fmt: skip
        rows = tuple((f":{c.name} {c.usage}".strip(), c.about.in_(lang)) for c in commands.available(self.app))
        pane = self.app.workspace.pane
        here = tuple(pane.own_keys()) if pane is not None else ()
        own = (Heading(t("On this screen", "本画面")), Fields(here)) if here else ()
        with VerticalScroll():
            yield Page(
                "gpudiag",
                (
                    Heading(t("Keys", "按键")), Fields(keys), *own, Heading(t("In the chat", "对话中")), Fields(chat),
                    Heading(t("Commands", "命令")), Fields(rows),
                ),
            )  # fmt: skip
