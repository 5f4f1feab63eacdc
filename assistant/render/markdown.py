"""A diagnosis as Markdown for a ticket or a chat: everything from inputs is escaped or fenced."""

from __future__ import annotations

import re

from assistant.render.labels import aside, colon, label, listed
from assistant.render.view import Block, Step, View

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&@#$])|(?<=[a-zA-Z])(:)(?=//)|(?<=www)(\.)")
_OPENING = re.compile(r"^([-+=:]|\d+(?=[.)](?:\s|$)))")  # would open a list, a heading or a table row


def escape(text: str) -> str:
    """`text` as literal Markdown on one line: no markup, link, mention or HTML of a stranger comes through."""
    out = _SPECIAL.sub(lambda m: "\\" + m[0], " ".join(text.split()))
    return _OPENING.sub(lambda m: m[0] + "\\" if m[0][0].isdigit() else "\\" + m[0], out)


def code(text: str) -> str:
    """A code span that survives backticks within."""
    text = " ".join(text.split())
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    tick = "`" * (longest + 1)
    blank = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{tick}{blank}{text}{blank}{tick}" if text else ""


def fence(lines: list[str], language: str = "") -> list[str]:
    """A fenced block that nothing within can close."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    tick = "`" * max(3, longest + 1)
    return [tick + language, *lines, tick]


def answer(page: View) -> list[str]:
    """The verdict, what to do, and what it stands on, each line ended by a blank one: what every page of an answer begins with."""
    lang = page.lang
    out = [f"# {page.state_label}{colon(lang)}{escape(page.headline)}", ""]
    out += [escape(" · ".join(page.about)), ""] if page.about else []
    if page.steps:
        out += [f"## {label('do_next', lang)}", ""]
        for number, step in enumerate(page.steps, 1):
            out += [*_step(number, step, lang), ""]
        if page.more:
            out += [escape(page.more), ""]
    if page.blocks:
        out += [f"## {label('found', lang)}", ""]
        for block in page.blocks:
            out += [*_block(block, lang), ""]
    return out


def render(page: View) -> str:
    """The answer as one Markdown document."""
    lang, out = page.lang, answer(page)
    for key, items, more in page.lists:
        out += [f"## {label(key, lang)}", "", *(f"- {escape(i)}" for i in (*items, more) if i), ""]
    if page.footer:
        out += ["---", escape(" | ".join(page.footer))]
    return "\n".join(out) + "\n"


def _step(number: int, step: Step, lang: str) -> list[str]:
    out = [f"{number}. **{step.bucket.replace('_', chr(92) + '_')}** {escape(step.text)}"]
    if step.commands:
        out += ["", *(f"   {line}" for line in fence(list(step.commands), "sh")), ""]
    if step.risk != "safe":
        out.append(f"   - {escape(step.risk_label)}")
    out.append(f"   - {label('for', lang)}{escape(listed(step.reasons, lang, ';'))}")
    out += [f"   - {label('then', lang)}{escape(t)}" for t in step.then]
    out += [f"   - {label('runbook', lang)}{code(f'gpudiag runbook show {name}')}" for name in step.runbooks]
    return out


def _block(b: Block, lang: str) -> list[str]:
    out = [f"### {b.severity_label}{colon(lang)}{escape(b.title)}", "", f"{escape(b.where)} · {b.grade}", ""]
    if b.impact:
        out += [escape(b.impact), ""]
    said_by = aside(label("said_by", lang) + escape(b.said_by), lang)
    out.append(f"- {label('action', lang)}{colon(lang)}**{b.bucket.replace('_', chr(92) + '_')}**{said_by}")
    for e in b.evidence:
        said = f"{escape(e.text)} " if e.text else ""
        raw = code(e.raw) if e.raw and e.raw not in e.text else ""
        note = aside(escape(e.note), lang) if e.note else ""
        out.append(f"- {code(e.place)} {said}{raw}{note}".rstrip())
    if b.more:
        out.append(f"- {label('more_lines', lang).format(n=b.more)}")
    named = (("explains", b.explains), ("may_explain", b.may_explain), ("would_confirm", b.missing))
    for key, items in (*named, *(("known_issue", (said,)) for said in b.known)):
        if items:
            out.append(f"- {label(key, lang)}{escape(listed(items, lang, ';'))}")
    for key, text in (("why", b.why), ("false_positives", b.false_positives)):
        if text:
            out.append(f"- {label(key, lang)}{escape(text)}")
    out += [f"- {label('references', lang)}<{r}>" for r in b.references]
    return out
