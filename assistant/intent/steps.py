"""What is asked of the steps of a training run: whether they became slower, how fast they are, what becomes of the loss."""

from __future__ import annotations

import re

from knowledge.lazy import lazy

_I = re.IGNORECASE
_L, _R = "(?<![a-z])", "(?![a-z])"
# What is asked, the first that fits
_KINDS = {
    "resume": lazy(
        rf"{_L}(?:which|what|from which|from what) (?:step |saved |last )?(?:checkpoint|ckpt|step|snapshot)s? .{{0,30}}{_L}(?:resume|restart|load|use|continue|go back|roll ?back|start){_R}|{_L}(?:resume|restart|continue|roll ?back) (?:it |the (?:run|job|training) )?(?:from|to|at) (?:which|what){_R}"
        r"|(?:从|用|回到?|退到|加载)(?:哪|第几|什么)(?:一)?(?:个|步|次)?.{0,8}(?:checkpoint|ckpt|检查点|存档|step|步).{0,6}(?:恢复|继续|重启|重跑|接着|加载|开始|跑)?|(?:哪个|哪一个|什么)(?:checkpoint|ckpt|检查点).{0,8}(?:恢复|继续|好|能用|可用|干净)",
        _I,
    ),
    "loss": lazy(rf"{_L}(?:loss|diverg\w*|converg\w*){_R}|损失|发散|收敛|loss", _I),
    "slower": lazy(
        rf"{_L}(?:throughput|speed|pace|tokens\S*(?: per second)?|tflops?)(?: has| have)? (?:drop\w*|decreas\w*|fall\w*|fell|degrad\w*|go(?:ne|ing|es)? down|went down|lower){_R}|{_L}(?:drop|decrease|fall) in (?:throughput|speed|tokens){_R}|"
        rf"{_L}(?:slower|slowing|slow(?:ed|s)? down|slowdown|degrad\w*|get(?:ting|s)? slow|became slow|become slow|(?:at|since|from) (?:which|what) (?:step|iteration|iter)|steady|stable|speeding up){_R}"
        rf"|{_L}(?:is|are|was|were|does|do) (?:it|(?:the |my |our |this )?(?:train\w*|run|job|steps?|pace|model)) (?:still |now |really |too |running |getting )*slow(?: at the end.*| now)?[\s?.!]*$"
        r"|训练(?:是不是|是否|还|现在)?(?:很|还)?慢(?:吗|不慢|么)|变慢|越来越慢|慢下来|慢了|掉速|(?:从|在)?(?:哪|第几)(?:一|个)?(?:步|个? ?step|次迭代)|稳定吗|平稳",
        _I,
    ),
    "speed": lazy(
        rf"{_L}(?:how fast|speed|throughput|tokens?(?: per|/) ?s\w*|tokens per second|samples per second|step time|time per (?:step|iteration)|how long (?:does|is|do) (?:a|each|one|the) (?:step|iteration)|tflops?|pace|mfu|iterations? per second){_R}"
        r"|多快|速度|吞吐|每秒|每步|一步(?:要|多)|多少 ?(?:tokens?|步)",
        _I,
    ),
    "whole": lazy(
        rf"(?:{_L}(?:wrong|ok(?:ay)?|fine|normal|healthy|well|good|problem|how is|how did|how does){_R}.{{0,40}}{_L}train\w*{_R})|(?:{_L}train\w*{_R}.{{0,40}}{_L}(?:ok(?:ay)?|fine|normal|healthy|well|good|going|look){_R})"
        r"|训练.{0,6}(?:正常|有问题|怎么样|健康|如何|顺利|好吗)",
        _I,
    ),
}
_WHY = lazy(rf"{_L}why{_R}|为什么|为啥|怎么(?:会|变)|mean(?:s|ing)?{_R}|是什么意思", _I)


def asked(text: str) -> str:
    """Which of these questions a sentence asks; empty for any other."""
    if _WHY.search(text):
        return ""
    return next((kind for kind, said in _KINDS.items() if said.search(text)), "")
