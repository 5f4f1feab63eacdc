"""What somebody typed, out of what Slack makes of it; and the log within it.

Slack escapes three characters, turns addresses, mentions and channels into ``<...>``, and its clients make quotes round and two
dashes one. A log line that goes through all of this has to come out as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assistant.intent.paste import looks_pasted, take

FENCE = "```"
LEADING = 3  # lines ahead of a log that are taken for words of the person
_LENGTH = 240  # characters: no line that is longer is a sentence
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}  # Slack escapes these and no other
_ENTITY = re.compile("&(?:lt|gt|amp);")
# <@U024BE7LH>  <@U024BE7LH|ann>  <#C024BE7LH|ops>  <!here>  <!subteam^S0614TZR7|@oncall>  <!date^1392734382^{date}|Feb 18>
# <https://a.example/x>  <http://gpu-12.example|gpu-12.example>  <mailto:a@b.example|a@b.example>. What somebody typed in angle
# brackets comes as &lt;IRQ&gt;; in a slash command it may come bare, and looks like none of these.
_MARKUP = re.compile(
    r"<(?P<kind>[@#!](?=[A-Za-z])|[a-z][a-z0-9+.-]{0,20}://|mailto:|tel:)(?P<what>[^<>|\n]*)(?:\|(?P<label>[^<>\n]*))?>"
    r"|&(?:lt|gt|amp);"
)
_LITERAL = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)  # where no client makes anything round
_ROUND = {ord(c): to for chars, to in (("\u201c\u201d\u201e\u201f", '"'), ("\u2018\u2019\u201a\u201b", "'"), ("\u00a0\u202f", " "), ("\u2010\u2011", "-")) for c in chars}  # fmt: skip
_DASH = re.compile(r"(?:(?<=\s)|^)[\u2014\u2013](?=[A-Za-z])", re.MULTILINE)  # --host, as a telephone writes it
_WRAPPED = re.compile(r"(`|\*)([^`*\n]+)\1")  # `check gpu-12`, copied from a page
_TAGS = frozenset({"log", "text", "txt", "console", "bash", "sh", "json", "xml", "csv", "yaml", "python", "dmesg"})
_QUESTION = re.compile("[?\uff1f]\\s*$|[\u4e00-\u9fff]")  # no line of a log is in Chinese
_ASKS = re.compile(
    r"\b(?:what|why|how|which|who|can (?:i|we|you)|could you|should|is (?:this|it)|does|please|pls|help|any idea|diagnose|explain|"
    r"analy[sz]e|look at|check)\b",
    re.IGNORECASE,
)
_SPOKEN = re.compile(
    r"[A-Za-z@][^\[\]{}<>|=/\\\t*]* [^\[\]{}<>|=/\\\t*]+"
)  # two words, and none of what logs are full of
_STAMPED = re.compile(r"\d:\d\d|  |\d\.\d{3}")


def plain(text: str, bot: str = "") -> str:
    """`text` of a message or a command as it was typed, without mentions of ourselves (`bot`: our user id)."""
    text = _MARKUP.sub(lambda found: _undone(found, bot), text.replace("\r\n", "\n").replace("\r", "\n"))
    pieces = _LITERAL.split(text)  # what is literal stands at the odd places
    text = "".join(piece if n % 2 else _straight(piece) for n, piece in enumerate(pieces)).strip(" \n")
    wrapped = _WRAPPED.fullmatch(text)
    return wrapped[2].strip() if wrapped else text


def _undone(found: re.Match[str], bot: str) -> str:
    """One mention, address or entity."""
    kind, what, label = found["kind"], found["what"], found["label"]
    if kind is None:
        return _ENTITIES[found[0]]
    what, label = (_ENTITY.sub(lambda e: _ENTITIES[e[0]], part or "") for part in (what, label))
    if kind == "@":
        return "" if bot and what == bot else f"@{label or what}"
    if kind == "#":
        return f"#{label or what}"
    if kind == "!":
        return label or f"@{what.partition('^')[0]}"
    return label or (what if kind in ("mailto:", "tel:") else f"{kind}{what}")


def _straight(text: str) -> str:
    return _DASH.sub("--", text.translate(_ROUND))


# --- the log within -----------------------------------------------------------------------


def split(text: str) -> tuple[str, str]:
    """The sentence, and the log that was pasted with it; either may be empty.

    `text` is what `plain` gives. A log is several lines between fences, or lines of which the parsers know some; a line quoted
    within a sentence stays there: the conversation reads it. No line is lost: each stands in the one, in the other, or in both
    where it is not clear which it is. The first call loads the parsers (a fifth of a second).
    """
    return _fenced(text) if FENCE in text else _bare(text)


def _bare(text: str) -> tuple[str, str]:
    """`split` of what holds no fence."""
    lines = text.split("\n")
    if len(lines) == 1:
        found = take(text, text) if looks_pasted(text) else None
        return ("", text) if found is not None and not found.said and found.pasted else (text, "")
    known = [n for n, line in enumerate(lines) if looks_pasted(line)]
    if known:
        return _apart(lines, 0, known[0], known[-1] + 1)
    places = _document(lines)
    return (text, "") if places is None else _apart(lines, *places, places[1])


def _fenced(text: str) -> tuple[str, str]:
    """Several lines between fences are a log. One alone is, where it is one and nobody says anything about it."""
    words: list[str] = []
    log: list[str] = []
    quoted: list[tuple[int, int]] = []  # of a line that may belong to either: its places in both
    for n, piece in enumerate(text.split(FENCE)):
        body = (_untagged(piece) if n % 2 else piece).strip("\n")
        if n % 2 == 0:
            said, body = _bare(body)
            words.append(said.strip())
        elif "\n" not in body:
            if not looks_pasted(body):
                words.append(body.strip())
                continue
            quoted.append((len(words), len(log)))
            words.append("")
        log.append(body)
    if any(words):
        for place, line in quoted:
            words[place], log[line] = f"{FENCE}{log[line].strip()}{FENCE}", ""
    return " ".join(filter(None, words)), "\n".join(filter(None, log))


def _untagged(body: str) -> str:
    """Without the name of a language behind the opening fence."""
    first, line, rest = body.partition("\n")
    return rest if line and first.strip().casefold() in _TAGS else body


def _document(lines: Sequence[str]) -> tuple[int, int] | None:
    """Where a captured output begins, and up to where there may be words of the person; None when no format knows it."""
    from probes import registry  # loads every parser

    best, begins, words = 0, 0, 0
    for n in range(min(LEADING + 1, len(lines))):
        rest = "\n".join(lines[n:])
        found = registry.sniff(rest)
        score = found.sniff(rest) if found is not None else 0
        if score > best:
            best, begins, words = score, n, n
        elif best and score == best:
            words = n
            if begins == n - 1 and (_ASKS.search(lines[begins]) or lines[n].lstrip()[:1] in ("<", "{")):
                begins = n
        if not (_spoken(lines[n]) or not lines[n].strip()):
            break
    return (begins, words) if best else None


def _apart(lines: Sequence[str], begins: int, first: int, last: int) -> tuple[str, str]:
    """What is said in the lines ahead of `first`, and from `last` on; the log goes from `begins` to the end, without the questions
    around it. What only may be said stands in both."""
    words: list[str] = []
    for n, line in enumerate(lines[: min(first, LEADING)]):
        if line.strip() and not _spoken(line):
            break
        words.append(line.strip())
        if n == begins and (_QUESTION.search(line) or not line.strip()):
            begins = n + 1
    if first == 0 and _QUESTION.search(lines[0]):
        words.append(take(lines[0], lines[0]).said)
    end, behind = len(lines), []
    while end > max(last, begins) and (not lines[end - 1].strip() or _QUESTION.search(lines[end - 1])):
        end -= 1
        behind.append(lines[end].strip())
    words += [line.strip() for line in lines[max(last, begins) : end] if _ASKS.search(line) and _spoken(line)]
    return " ".join(filter(None, (*words, *reversed(behind)))), "\n".join(lines[begins:end])


def _spoken(line: str) -> bool:
    """Whether a person may have said that."""
    if len(line) > _LENGTH or looks_pasted(line):
        return False
    return bool(_QUESTION.search(line)) or (_SPOKEN.fullmatch(line.rstrip()) is not None and not _STAMPED.search(line))
