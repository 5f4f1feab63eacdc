"""A diagnosis as one HTML file: no script, no network, light and dark, and it prints."""

from __future__ import annotations

from html import escape

from assistant.render.labels import aside, colon, label, listed
from assistant.render.view import Block, Evidence, Step, View

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2127;--soft:#5c6670;--line:#d9dee3;--panel:#f5f7f9;--code:#eef1f4;
--ok:#1a7f37;--info:#0969da;--warning:#9a6700;--error:#b42318;--critical:#a40e26;--unknown:#5c6670}
@media (prefers-color-scheme:dark){:root{--bg:#14181d;--fg:#e4e8ec;--soft:#98a3ae;--line:#323a43;--panel:#1b2127;--code:#232a32;
--ok:#4ac26b;--info:#6cb6ff;--warning:#e3b341;--error:#ff8a80;--critical:#ff7b72;--unknown:#98a3ae}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1.25rem 3rem}
h1{font-size:1.25rem;line-height:1.4;margin:0 0 1.5rem;padding:.9rem 1.1rem;border-left:.4rem solid var(--c);background:var(--panel);font-weight:600}
.about{margin:-1rem 0 1.5rem}
h1 b{color:var(--c);margin-right:.6rem;letter-spacing:.02em}
h2{font-size:.85rem;text-transform:uppercase;letter-spacing:.08em;color:var(--soft);margin:2rem 0 .6rem;font-weight:600}
h3{font-size:1.05rem;margin:0;font-weight:600}
.tag{color:var(--c);font-size:.8rem;font-weight:700;margin-right:.5rem;letter-spacing:.04em}
.soft,.where{color:var(--soft)}
.where{font-size:.92rem;margin:.1rem 0 .5rem;overflow-wrap:anywhere}
section.card,ol>li{border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem;margin:0 0 .8rem}
ol{list-style:none;margin:0;padding:0}
pre{margin:.5rem 0;padding:.55rem .8rem;background:var(--code);border-radius:.35rem;overflow-x:auto;font-size:.88rem}
code,pre{font-family:ui-monospace,"DejaVu Sans Mono","Noto Sans Mono CJK SC",Menlo,Consolas,monospace}
table{border-collapse:collapse;width:100%;font-size:.88rem;margin:.5rem 0}
td{padding:.3rem .6rem .3rem 0;border-top:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
td:first-child{color:var(--soft);white-space:nowrap;width:1%}
td code{font-size:.84rem}
ul{margin:.2rem 0;padding-left:1.2rem}
li{overflow-wrap:anywhere}
p{margin:.3rem 0}
.risk{color:var(--warning);font-size:.92rem}
footer{margin-top:2.5rem;padding-top:.7rem;border-top:1px solid var(--line);color:var(--soft);font-size:.85rem}
a{color:inherit}
@media (max-width:40rem){td:first-child{white-space:normal;width:30%}}
@media print{body{font-size:11pt}main{max-width:none;padding:0}section.card,ol>li,tr{break-inside:avoid}pre{white-space:pre-wrap}}
""".strip()
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_COLOUR = {"degraded": "warning", "unhealthy": "critical"}


def document(title: str, body: str, lang: str) -> str:
    """A whole page around `body` (HTML); `title` is plain text."""
    tag = {"zh": "zh-CN"}.get(lang, "en")
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def answer(page: View) -> list[str]:
    """The verdict, what to do, and what it stands on: what every page of an answer begins with."""
    lang = page.lang
    colour = _COLOUR.get(page.state, page.state)
    parts = [f'<h1 style="--c:var(--{colour})"><b>{escape(page.state_label)}</b>{escape(page.headline)}</h1>']
    parts += [f'<p class="soft about">{escape(" · ".join(page.about))}</p>'] if page.about else []
    if page.steps:
        parts += [_heading("do_next", lang), "<ol>", *(_step(n, s, lang) for n, s in enumerate(page.steps, 1)), "</ol>"]
        if page.more:
            parts.append(f'<p class="soft">{escape(page.more)}</p>')
    if page.blocks:
        parts += [_heading("found", lang), *(_block(b, lang) for b in page.blocks)]
    return parts


def render(page: View, below: str = "") -> str:
    """The answer as one self-contained page. `below` is HTML that stands under it."""
    lang, parts = page.lang, answer(page)
    for key, items, more in page.lists:
        parts += [_heading(key, lang), _list([*items, *([more] if more else [])])]
    parts += [below] if below else []
    if page.footer:
        parts.append(f"<footer>{escape(' | '.join(page.footer))}</footer>")
    return document(f"{page.state_label}{colon(lang)}{page.headline}", "\n".join(parts), lang)


def _heading(key: str, lang: str) -> str:
    return f"<h2>{escape(label(key, lang))}</h2>"


def _list(items: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(i)}</li>' for i in items)}</ul>"


def _step(number: int, step: Step, lang: str) -> str:
    parts = [f"<li><h3>{number}. {escape(step.bucket)}</h3><p>{escape(step.text)}</p>"]
    if step.commands:
        commands = "\n".join(map(escape, step.commands))
        parts.append(f"<pre>{commands}</pre>")
    if step.risk != "safe":
        parts.append(f'<p class="risk">{escape(step.risk_label)}</p>')
    parts.append(f'<p class="soft">{escape(label("for", lang) + listed(step.reasons, lang, ";"))}</p>')
    parts += [f"<p>{escape(label('then', lang) + t)}</p>" for t in step.then]
    shown = (f"<code>gpudiag runbook show {escape(name)}</code>" for name in step.runbooks)
    parts += [f"<p>{escape(label('runbook', lang))}{command}</p>" for command in shown]
    return "".join(parts) + "</li>"


def _block(b: Block, lang: str) -> str:
    parts = [
        f'<section class="card" style="--c:var(--{b.severity})"><h3><span class="tag">{escape(b.severity_label)}</span>'
        f'{escape(b.title)}</h3><p class="where">{escape(b.where)} · {escape(b.grade)}</p>',
        f"<p><b>{escape(b.bucket)}</b><span class='soft'>{escape(aside(label('said_by', lang) + b.said_by, lang))}</span></p>",
    ]
    if b.impact:
        parts.insert(1, f'<p class="impact"><b>{escape(b.impact)}</b></p>')
    if b.evidence:
        parts.append(f"<table>{''.join(_row(e, lang) for e in b.evidence)}</table>")
    if b.more:
        parts.append(f'<p class="soft">{escape(label("more_lines", lang).format(n=b.more))}</p>')
    named = (("explains", b.explains), ("may_explain", b.may_explain), ("would_confirm", b.missing))
    for key, items in (*named, *(("known_issue", (said,)) for said in b.known)):
        if items:
            parts.append(f"<p>{escape(label(key, lang) + listed(items, lang, ';'))}</p>")
    for key, text in (("why", b.why), ("false_positives", b.false_positives)):
        if text:
            parts.append(f"<p>{escape(label(key, lang) + text)}</p>")
    if b.references:
        parts.append(f'<p class="soft">{escape(label("references", lang))}{escape(", ".join(b.references))}</p>')
    return "".join(parts) + "</section>"


def _row(e: Evidence, lang: str) -> str:
    raw = f"<code>{escape(e.raw)}</code>" if e.raw and e.raw not in e.text else ""
    said = escape(e.text) + ("<br>" if raw and e.text else "")
    note = f'<span class="soft">{escape(aside(e.note, lang))}</span>' if e.note else ""
    return f"<tr><td>{escape(e.place)}</td><td>{said}{raw}{note}</td></tr>"
