"""The report in a real browser: it draws, sorts, searches, zooms, prints, and asks the network for nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.assistant.report import pages
from tests.assistant.report.browser import Page

SHOWN = "document.getElementById('timeline-shown').textContent"
FIRST = "[...document.querySelectorAll('#kernels tbody tr')].map(r => Number(r.cells[1].dataset.v))"


@pytest.fixture
def browser(require: Callable[[str], str], tmp_path: Path) -> Iterator[Page]:
    with Page(require("chromium"), tmp_path / "profile") as page:
        yield page


def opened(browser: Page, folder: Path, html: str) -> Page:
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    browser.open(file)
    assert browser.ask("document.documentElement.dataset.ready") == "yes", browser.errors
    return browser


def untroubled(browser: Page) -> None:
    assert browser.errors == []
    assert [r for r in browser.requests if not r.startswith(("file:", "data:image/", "about:"))] == []
    assert len([r for r in browser.requests if r.startswith("file:")]) == 1


def test_everything_is_drawn_offline(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.two(tmp_path))
    ids = page.ask(
        "[...document.querySelectorAll('.chart')].filter(c => !c.querySelector('svg.main-svg')).map(c => c.id)"
    )
    assert ids == []
    assert page.ask("document.querySelectorAll('.rangeslider-container').length") >= 1
    for name in ("timeline", "flame-0", "flame-1"):
        painted = f"""(() => {{const c = document.querySelector('#{name} .rows canvas'), d = c.getContext('2d')
          .getImageData(0, 0, c.width, c.height).data; return d.some((v, i) => i % 4 === 3 && v > 0)}})()"""
        assert page.ask(painted), name
    assert page.ask("document.querySelectorAll('svg.bars rect').length") >= 4
    untroubled(page)


def test_tables_sort_and_search(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.two(tmp_path))
    page.ask("document.querySelectorAll('#kernels th button')[1].click()")
    down = page.ask(FIRST)
    assert down == sorted(down, reverse=True)
    assert page.ask("document.querySelectorAll('#kernels th')[1].getAttribute('aria-sort')") == "descending"
    page.ask("document.querySelectorAll('#kernels th button')[1].click()")
    assert page.ask(FIRST) == sorted(down)
    type_in = "(() => {const i = document.querySelector('#iterations input'); i.value = 'rank 1'; i.dispatchEvent(new Event('input'))})()"
    page.ask(type_in)
    shown = page.ask(
        "[...document.querySelectorAll('#iterations tbody tr')].filter(r => !r.hidden).map(r => r.cells[1].textContent)"
    )
    assert shown == ["rank 1"] * 4
    assert page.ask("document.querySelector('#iterations [role=status]').textContent") == "4 of 8 rows"
    untroubled(page)


def test_the_timeline_zooms_by_keys_and_by_wheel(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.one(tmp_path))
    page.ask("document.querySelector('#timeline .rows canvas').focus()")
    page.key("0")
    whole = page.ask(SHOWN)
    page.key("+")
    near = page.ask(SHOWN)
    assert near != whole
    page.key("ArrowRight")
    assert page.ask(SHOWN) != near
    page.key("0")
    assert page.ask(SHOWN) == whole
    page.key("n")
    chosen = page.ask("document.querySelector('#timeline .chosen').textContent")
    assert "lasts" in chosen
    page.key("Enter")
    assert page.ask(SHOWN) != whole
    page.key("0")
    go = "document.querySelector('#over-time select')"
    assert page.ask(f"{go}.options.length") == 9  # eight iterations, and the invitation
    page.ask(f"(() => {{{go}.value = '3'; {go}.dispatchEvent(new Event('change'))}})()")
    assert page.ask(SHOWN) != whole
    page.ask("document.querySelector('#timeline .rows canvas').focus()")
    page.key("0")
    page.ask("document.getElementById('timeline').scrollIntoView()")
    box = page.ask("(r => [r.x, r.y])(document.querySelector('#timeline .rows canvas').getBoundingClientRect())")
    page.mouse("mouseWheel", box[0] + 500, box[1] + 12, deltaX=0, deltaY=-400)
    page.wait(f"{SHOWN} !== {whole!r}")
    page.key("0")
    for x in range(190, 1000, 5):  # across the first stream: something runs there
        page.mouse("mouseMoved", box[0] + x, box[1] + 10)
        if not page.ask("document.querySelector('#timeline .tip').hidden"):
            break
    assert "lasts" in page.ask("document.querySelector('#timeline .tip').textContent")
    untroubled(page)


def test_the_flame_graph_zooms_and_finds(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.one(tmp_path))
    page.ask("document.querySelector('#flame-0 .rows canvas').focus()")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.key(key)
    assert "of the whole" in page.ask("document.querySelector('#flame-0 .chosen').textContent")
    find = "(() => {const i = document.querySelector('#stacks input'); i.value = 'gemm'; i.dispatchEvent(new Event('input'))})()"
    page.ask(find)
    told = page.ask("document.querySelector('#stacks .tools-bar [role=status]').textContent")
    assert "of the whole" in told
    assert not told.startswith("0 ")
    untroubled(page)


def test_names_of_strangers_do_nothing(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.hostile(tmp_path))
    assert page.ask("document.querySelectorAll('img').length") == 0
    assert "</script><img src=x onerror=alert(1)>" in page.ask("document.querySelector('#kernels code').textContent")
    assert page.ask("document.title").startswith("</script>")
    untroubled(page)


def test_it_prints_opened_and_light(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.one(tmp_path))
    page.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
    page.ask("window.dispatchEvent(new Event('beforeprint'))")
    assert page.ask("document.querySelectorAll('details:not([open])').length") == 0
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.ask("Math.max(...[...document.querySelectorAll('.chart .main-svg')].map(s => s.clientWidth))") <= 690
    page.ask("window.dispatchEvent(new Event('afterprint'))")
    assert page.ask("document.querySelectorAll('details:not([open])').length") > 0
    pdf = page.pdf()
    assert pdf.startswith(b"%PDF")
    assert 3 <= pdf.count(b"/Type /Page") - pdf.count(b"/Type /Pages") <= 30
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.ask("getComputedStyle(document.querySelector('nav')).display") == "none"


def test_it_fits_a_narrow_window(browser: Page, tmp_path: Path) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=800, height=900, deviceScaleFactor=1, mobile=False)
    page = opened(browser, tmp_path, pages.two(tmp_path, lang="zh"))
    assert page.ask("document.documentElement.scrollWidth") <= 800
    untroubled(page)


CONTRAST = """(() => {
  const probe = document.body.appendChild(document.createElement('i'));
  const rgb = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  };
  const light = (c) => c.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  return (pairs) => pairs.map(([a, b]) => {
    const [x, y] = [light(rgb(a)), light(rgb(b))].sort((p, q) => q - p);
    return (x + 0.05) / (y + 0.05);
  });
})()"""
READ = [
    *((front, back) for front in ("--fg", "--soft", "--info", "--warning", "--error", "--critical", "--ok", "--unknown")
      for back in ("--bg", "--panel")),
    ("--fg", "--code"), ("--on-compute", "--compute"), ("--on-comm", "--comm"), ("--on-mem", "--mem"), ("--on-idle", "--idle"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_read_stands_out(browser: Page, tmp_path: Path, scheme: str) -> None:
    """At least 4.5 to 1 between text and what is behind it (WCAG 2.2, 1.4.3)."""
    browser.call("Emulation.setEmulatedMedia", media="", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page = opened(browser, tmp_path, pages.one(tmp_path))
    ratios = page.ask(f"{CONTRAST}({json.dumps(READ)})")
    low = {pair: round(ratio, 2) for pair, ratio in zip(READ, ratios, strict=True) if ratio < 4.5}
    assert low == {}


def test_it_can_be_read_aloud_and_walked_by_keys(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.two(tmp_path))
    levels = page.ask("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    nameless = """[...document.querySelectorAll('input,select,button,canvas:not([aria-hidden]),[role=img],[role=group],[role=region],nav,section')]
      .filter(e => !(e.getAttribute('aria-label') || '').trim() && !e.textContent.trim()
        && !(e.getAttribute('aria-labelledby') || '').split(' ').some(i => document.getElementById(i)?.textContent.trim()))
      .map(e => e.outerHTML.slice(0, 80))"""
    assert page.ask(nameless) == []
    assert page.ask("[...document.querySelectorAll('th')].filter(t => !t.scope).length") == 0
    ids = page.ask("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    for _ in range(12):
        page.key("Tab")
        style = page.ask("(s => [s.outlineStyle, s.outlineWidth])(getComputedStyle(document.activeElement))")
        assert style == ["solid", "2px"]
    untroubled(page)


def test_the_contents_do_not_cover_where_they_lead(browser: Page, tmp_path: Path) -> None:
    page = opened(browser, tmp_path, pages.two(tmp_path))
    for name in ("iterations", "kernels", "stacks"):
        page.ask(f"document.querySelector('nav a[href=\"#{name}\"]').click()")
        assert page.ask("document.querySelector('nav').getBoundingClientRect().top") >= 0  # it stays in sight
        bottom = page.ask("document.querySelector('nav').getBoundingClientRect().bottom")
        assert page.ask(f"document.getElementById('h-{name}').getBoundingClientRect().top") >= bottom
