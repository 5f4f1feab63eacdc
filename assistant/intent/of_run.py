"""Whether it is asked what becomes of a run that is under way: to stop it, to let it go on, or which of both."""

from __future__ import annotations

import re
from enum import StrEnum

from knowledge.lazy import lazy

_I = re.IGNORECASE
_RUN = r"(?:runs?|jobs?|train\w*|pretraining|fine-?tun\w+|experiments?|workloads?|tasks?|epochs?)"
_THE = r"(?:(?:the|my|our|this|that|its|all|whole|running|current|ongoing)\s+){0,3}"
_IT = rf"(?:it(?!\s+from)|them|everything|{_THE}{_RUN})"


class Run(StrEnum):
    """What is asked of a run."""

    STOP = "stop"
    GO_ON = "go_on"
    EITHER = "either"  # "kill it or wait?"


# stop the run | kill my job | interrupt training | pull the plug on the job | 停训练 | 任务要杀掉吗
_STOP = lazy(
    rf"(?<![a-z])(?:stop|kill|abort|interrupt|terminate|pause|halt|cancel|quit)(?:p?ing)?\s+{_IT}(?![a-z])"
    rf"|(?<![a-z])(?:take|bring|shut|pull)\s+{_THE}{_RUN}\s+(?:down|off)(?![a-z])|(?<![a-z])stop(?:ping)?\s+(?:now|here|right away|immediately)(?![a-z])"
    r"|(?:停|杀|终止|中断|中止|暂停|打断|kill)(?:掉|下|止|了)?(?:这个|当前|我的|正在跑的)?(?:训练|任务|作业|实验|run(?![a-z])|job)"
    r"|(?:训练|任务|作业|实验|run(?![a-z])|job)[^，。；,;？?]{0,10}?(?:停|杀|终止|中断|中止|暂停|打断|kill(?!ed))|(?:要不要|该不该|用不用|需不需要|是否|得|该)(?:先|马上|立刻|现在|赶紧)?(?:停(?!用)|kill|杀掉)",
    _I,
)
# let it finish the night | keep training | can the job go on | 还能接着跑吗 | 等它跑完
_GO_ON = lazy(
    rf"(?<![a-z])(?:let|leave)(?:ting|ing)?\s+{_IT}\s+(?:to\s+)?(?:run\w*|finish|go|going|continue|complete|train|be|alone|on)(?![a-z])"
    rf"|(?<![a-z])(?:keep|continue|carry on|go on|go ahead|proceed)\s+(?:on\s+)?(?:with\s+)?(?:(?:re-?)?train(?:ing)?(?![a-z])|running(?!\s+(?:on|jobs))|{_THE}{_RUN}(?![a-z])|it running)"
    rf"|(?<![a-z])(?:finish|complete)\s+{_THE}(?:night|{_RUN})(?![a-z])|{_THE}{_RUN}\s+(?:safely\s+)?(?:go on|carry on|continue|keep going|keep running|finish|survive)(?![a-z])"
    r"|(?:继续|接着)(?:训|跑(?!分|测))|[能可](?:以)?(?:再)?(?:训练吗|跑完|训完)|(?:让|等)(?:它|他|任务|作业|训练|这个任务)[^，。；,;]{0,8}(?:跑|完|结束)|(?:训练|任务|作业)[^，。；,;？?]{0,6}(?:继续|接着|跑完)|(?:撑|坚持|跑)到(?:早上|明天|天亮|周末|跑完|训练结束)",
    _I,
)
_OR = lazy(r"(?<![a-z])or(?![a-z])|还是(?!能|可以)", _I)
_WAIT = lazy(r"(?<![a-z])(?:wait|keep|continue|let|leave|go on|carry on|not)(?![a-z])|等|继续|接着|让", _I)
# "kill the job" alone is an order, and "the job stopped" a report: who asks, asks whether
_ASKS = lazy(
    r"(?<![a-z])(?:should|shall|must|can|could|may|do|does|need|have to|better|safe|ok|okay|fine|or|wise)(?![a-z])|[吗么嘛]|要不要|该不该|用不用|需不需要|是否|还是|能|可以|可否|得不得|行不行|要.{0,8}[?？]",
    _I,
)
# what was, and how to: neither asks whether
_NOT_WHETHER = lazy(
    r"(?<![a-z])(?:how (?:do|can|to|should)|why|what happens|did|when did)(?![a-z])|怎么|如何|为什么|为何|为啥", _I
)


def asked(text: str) -> Run | None:
    """What a question asks of a run; None where it asks nothing of one, or only tells of one that stopped."""
    if not _ASKS.search(text) or _NOT_WHETHER.search(text):
        return None
    stop, on = _STOP.search(text) is not None, _GO_ON.search(text) is not None
    if (stop and (on or (_OR.search(text) and _WAIT.search(text)))) or (on and stop):
        return Run.EITHER
    return Run.STOP if stop else Run.GO_ON if on else None


def without(text: str) -> str:
    """`text` without what is asked of a run: "kill the job" is no complaint of a job that was killed."""
    return _GO_ON.sub(" ", _STOP.sub(" ", text)) if asked(text) is not None else text
