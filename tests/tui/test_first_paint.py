"""What stands between the command and the first frame: nothing that the frame does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.tui.lab import BUS

pytestmark = pytest.mark.process

HEAVY = {
    "numpy", "sqlmodel", "sqlalchemy", "alembic", "pydantic", "plotly", "msgspec", "psutil", "re2", "yaml", "asyncssh", "dask",
    "prometheus_client", "textual_serve", "aiohttp", "sqlite3", "zstandard", "isal", "markdown_it", "pygments",
}  # fmt: skip
OURS = ("rules.engine", "rules.loader", "probes.live", "probes.trace", "probes.parse", "assistant.dialogue", "assistant.trace",
        "assistant.store", "assistant.intent.parse", "assistant.session.driver", "assistant.find")  # fmt: skip
PROGRAM = """
import sys
from assistant import cli, config
from assistant.arguments import command_parser
args = command_parser(cli.load("tui")).parse_args(sys.argv[1:])
args.settings = config.load({"format": None, "lang": None, "color": None})
import tui.launch, tui.terminal
from tui.app import GpudiagApp
class Seen(GpudiagApp):
    def _painted(self):
        print(*sys.modules, file=sys.__stderr__)
        self.exit(0)
Seen(args).run(headless=True, size=(120, 40))
"""


@pytest.mark.parametrize("words", [(), ("--screen", "findings"), BUS], ids=["chat", "findings", "bundle"])
def test_nothing_heavy_is_loaded_before_the_first_frame(
    clean_environment: dict[str, str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    environ = {**clean_environment, "GPUDIAG_STATE_DIR": str(tmp_path), "GPUDIAG_HISTORY_URL": "off"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        env=environ,
        cwd=ROOT,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert "tui.workspace" in loaded
    assert {m.partition(".")[0] for m in loaded} & HEAVY == set()
    assert {m for m in loaded if m.startswith(OURS)} == set()
