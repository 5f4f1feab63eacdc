"""Whether a sentence asks how grave a code is, which of several codes is the graver one, or whether it is the hardware's."""

from __future__ import annotations

import re

from knowledge.lazy import lazy

# which is worse | more serious than | by severity | what do I handle first | 哪个严重 | 比 94 严重 | 先处理哪个
_MORE = lazy(
    r"(?<![a-z])(?:worse|worst|graver|gravest|scarier|scariest|nastier|(?:more|most|less|least|as|equally) (?:serious|severe|dangerous|critical|urgent|alarming|worrying|harmful|bad|important)|worry more|bigger (?:problem|deal|concern|issue)"
    r"|(?:rank|order|sort|rate)(?:ed)?(?![a-z]).{0,60}(?:severity|serious\w*|badness|urgency|importance)|(?:by|in order of) (?:severity|seriousness|urgency)"
    r"|(?:handle|fix|look at|treat|deal with|take care of|tackle|prioriti[sz]e|comes?)(?: [a-z]+)? first|(?:which|what)(?: one)? .{0,20}first)(?![a-z])"
    r"|(?:哪个|哪一个|哪种|哪条|谁)(?:错误?)?(?:更|最|比较)?(?:为)?(?:严重|危险|要紧|紧急|要命|可怕|糟|致命)|更(?:严重|危险|要紧|紧急|糟|可怕)|比.{0,16}(?:严重|危险|要紧|糟)"
    r"|(?:严重|危险|紧急)(?:程度|性)?.{0,8}(?:排|对比|比较|高低)|按(?:严重|危险|紧急)|(?:先|优先)(?:处理|看|修|解决|管|查)(?:哪|谁)|哪个.{0,4}(?:先|优先)|哪[个种条](?:才|是)?(?:要|需要|该|得|必须)(?:马上|立刻)?(?:换|报修|返修|重启|停|处理|管|下线)",
    re.IGNORECASE,
)
_HOW = lazy(
    r"(?<![a-z])(?:serious|severe|severity|bad|dangerous|critical|grave|fatal|urgent|harmless|worrying|a big deal)(?![a-z])|严重|危险|要紧|致命|紧急",
    re.IGNORECASE,
)


def asks_which(said: str) -> bool:
    """Whether of several things the gravest is asked for."""
    return _MORE.search(said) is not None


def asks_how(said: str) -> bool:
    """Whether it is asked how grave a thing is."""
    return _HOW.search(said) is not None


# is it hardware? | is xid 48 a hardware problem | was that my code | 是硬件问题吗: one side alone
_HARDWARE = lazy(
    r"(?<![a-z])(?:is|was) (?:it|this|that|(?:an? |the )?s?xid [0-9]{1,5})(?: (?:a|an|my|the|really|always|usually))* (?:hardware|hw|software|codes?|programs?|scripts?|bugs?)(?![a-z])"
    r"|是(?:不是)?[^，。？?]{0,2}(?:硬件|程序|代码|软件)[^，。？?]{0,4}(?:吗|么|[?？]|$)",
    re.IGNORECASE,
)


def asks_if_hardware(said: str) -> bool:
    """Whether it is asked if a fault is the hardware's, or the program's, with no word of the other."""
    return _HARDWARE.search(said) is not None
