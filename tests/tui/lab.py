"""The app without a terminal: a real session over recordings, driven by Textual's pilot."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual import events

from assistant import cli, config
from assistant.arguments import command_parser
from tests.conftest import ROOT

if TYPE_CHECKING:
    import argparse

    from textual.pilot import Pilot

    from tui.app import GpudiagApp

DEMOS = ROOT / "assistant" / "demos"
DBE = (
    "--log",
    str(DEMOS / "double-bit-error" / "kern.log"),
    "--input",
    str(DEMOS / "double-bit-error" / "nvidia-smi-q.txt"),
)
DEMO_BUS = ("--bundle", str(DEMOS / "off-the-bus" / "bundle"))
# The same machine, `thinned` to two GPUs: a look at it costs a tenth.
BUS = ("--bundle", str(Path(__file__).parent / "recordings" / "off-the-bus"))
BUS_GPUS = (0, 5)
DEAR = {"pci", "rdma", "processes", "system", "ibstat", "lspci", "nvidia-smi", "nvlink"}
_SIGNS = {"colon": ":", "slash": "/", "space": " "}
_NAMES = {sign: name for name, sign in _SIGNS.items()}
PATIENCE = 30.0  # seconds until something that must come is missed: machines are slow at times


def arguments(folder: Path, *words: str, lang: str = "en") -> argparse.Namespace:
    """What the command line hands the app; its memory lies in `folder`."""
    command = cli.load("tui")
    args: argparse.Namespace = command_parser(command).parse_args(list(words))
    environ = {"GPUDIAG_STATE_DIR": str(folder / "state"), "GPUDIAG_HISTORY_URL": "off"}
    args.settings = config.load({"format": None, "lang": lang, "color": None}, environ, ())
    return args


@asynccontextmanager
async def running(
    folder: Path, *words: str, size: tuple[int, int] = (120, 40), lang: str = "en", pause: float | None = None
) -> AsyncIterator[Pilot[int]]:
    """The app in a terminal of `size`; the recording has been read when it is yielded. `pause`: of its dialogs, in seconds."""
    from tui.app import PAUSE, GpudiagApp

    app = GpudiagApp(arguments(folder, *words, lang=lang), pause=PAUSE if pause is None else pause)
    app.animation_level = "none"  # where something glides to is what counts
    async with app.run_test(size=size, notifications=True) as pilot:
        if words:
            await until(pilot, lambda: app.desk.picture.diagnosis is not None or bool(app.desk.picture.trouble))
        yield pilot


def thinned(bundle: Path, target: Path, gpus: Collection[int]) -> Path:
    """A recording of the demos with some of its GPUs, and without what the dear probes found."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["probes"] = [name for name in manifest["probes"] if name not in DEAR]
    manifest["entries"] = [e for e in manifest["entries"] if e["kind"] != "snapshot" or e["call"][0] not in DEAR]
    (target / "raw").mkdir(parents=True)
    for entry in manifest["entries"]:
        if entry["file"] is not None:
            data = (bundle / entry["file"]).read_bytes()
            (target / entry["file"]).write_bytes(_of_gpus(data, gpus) if entry["call"] == ["nvml"] else data)
    (target / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return target


def _of_gpus(data: bytes, gpus: Collection[int]) -> bytes:
    """The readings of these GPUs alone."""
    snapshot = json.loads(data)
    snapshot["devices"] = [d for d in snapshot["devices"] if d["index"] in gpus]
    snapshot["proc_gpus"] = [pci for n, pci in enumerate(snapshot["proc_gpus"]) if n in gpus]
    snapshot["calls"]["nvmlDeviceGetCount_v2"] = len(snapshot["devices"])
    return json.dumps(snapshot).encode() + b"\n"


async def until(pilot: Pilot[Any], condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until `condition` holds; an AssertionError with the screen when it never does."""
    end = time.monotonic() + seconds
    wait = 0.02
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not come about:\n" + screen(pilot.app))
        await asyncio.sleep(wait)
        wait = min(0.1, wait * 1.25)  # most conditions draw the screen: what takes long is looked at less often
    await pilot.pause()


async def typed(pilot: Pilot[Any], *keys: str) -> None:
    """These keys in one burst, as a slow line brings them: `pilot.press` waits and draws after each of them."""
    for key in keys:
        sign = _SIGNS.get(key, key)
        pilot.app.post_message(events.Key(_NAMES.get(sign, key), sign if len(sign) == 1 else None))
    await pilot.pause()


def screen(app: Any) -> str:
    """What stands on the screen, as text: each line without the blanks at its end."""
    width, height = app.size
    lines = [""] * height
    for y, strips in enumerate(app.screen._compositor.render_strips()):  # the public way gives SVG only
        lines[y] = "".join(segment.text for segment in strips).rstrip()
    assert width
    return "\n".join(lines)


def app_of(pilot: Pilot[Any]) -> GpudiagApp:
    """The app that `pilot` drives."""
    from tui.app import GpudiagApp

    assert isinstance(pilot.app, GpudiagApp)
    return pilot.app


def understood(question: str, lang: str = "en") -> bool:
    """Whether the conversation knows what is asked: "explain this" must never lead to a shrug."""
    from assistant.intent.parse import understand
    from assistant.intent.query import Intent

    return understand(question, lang=lang).intent is not Intent.UNKNOWN
