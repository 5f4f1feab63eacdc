"""Why there is no narration: a closed list, each with its sentence."""

from __future__ import annotations

from enum import Enum

from knowledge.language import NO_TEXT, Text


class Reason(Enum):
    """The values are the words of the log and of JSON."""

    OFF = "off"
    NOT_CONFIGURED = "not-configured"
    HOST = "host-not-allowed"
    NOT_INSTALLED = "not-installed"
    UNSAFE = "unsafe-version"
    LIMIT = "limit"
    BUSY = "busy"
    SLOW = "slow"
    DOWN = "down"
    REFUSED = "refused"
    CUT = "cut"
    HUGE = "huge"
    MALFORMED = "malformed"
    FENCE = "fence"
    NOTHING = "nothing-to-reword"
    CLOSED = "closed"
    BROKEN = "broken"

    @property
    def text(self) -> Text:
        """The sentence for a person."""
        return _TEXTS[self]


_TEXTS = {
    Reason.OFF: Text("Narration is off: no model is set (llm_model).", "叙述未启用：没有设置模型（llm_model）。"),
    Reason.NOT_CONFIGURED: Text("The settings of the model are not complete.", "模型的设置不完整。"),
    Reason.HOST: Text(
        "The server of the model is not on the list of hosts (llm_hosts).", "模型服务器不在主机名单（llm_hosts）中。"
    ),
    Reason.NOT_INSTALLED: Text(
        "litellm is not installed where llm_python points.", "llm_python 所指的环境中没有安装 litellm。"
    ),
    Reason.UNSAFE: Text(
        "This version of litellm is not used: it is compromised or has known holes.",
        "不使用这个版本的 litellm：它已被植入恶意代码，或存在已知漏洞。",
    ),
    Reason.LIMIT: Text("A limit of requests, tokens or money is reached.", "请求数、token 数或费用已达到上限。"),
    Reason.BUSY: Text("Other requests to the model are still under way.", "仍有其他发往模型的请求在进行中。"),
    Reason.SLOW: Text("The model did not answer in time.", "模型没有按时回答。"),
    Reason.DOWN: Text("The model cannot be reached.", "无法连接模型。"),
    Reason.REFUSED: Text("The server of the model refused the request.", "模型服务器拒绝了请求。"),
    Reason.CUT: Text("The answer of the model was cut off.", "模型的回答被截断。"),
    Reason.HUGE: Text("The answer of the model is longer than allowed.", "模型的回答超出允许的长度。"),
    Reason.MALFORMED: Text("The answer of the model is not in the form asked for.", "模型的回答不符合要求的格式。"),
    Reason.FENCE: Text("The answer of the model says what the findings do not.", "模型的回答说了结论中没有的内容。"),
    Reason.NOTHING: Text("There is nothing to retell in this answer.", "这个回答没有可转述的内容。"),
    Reason.CLOSED: Text("Narration has ended.", "叙述已结束。"),
    Reason.BROKEN: Text("Narration failed on our side.", "叙述在我们这一侧出错。"),
}


class NarrationError(Exception):
    """No completion, and why. `detail` is for the log and for `llm test`: cleaned, and without the key."""

    def __init__(self, reason: Reason, detail: str = "", said: Text = NO_TEXT) -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason, self.detail = reason, detail
        self.said = said or reason.text  # what, where, what to do
