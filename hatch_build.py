"""Build hook: compiled data files, and what is compiled from C where there is a compiler.

The wheel carries every data file as JSON, so that no YAML is read at start: the shards are built into a temporary
folder and go into the wheel as ``knowledge/_compiled/<shard>.json``. An editable install gets none: a checkout
compiles by content when it runs.

Each C file of LIBRARIES becomes a shared library next to it, for the wheel (which then is for this platform) and for an
editable install. Without a compiler, or when it fails, the wheel is pure Python: msgspec reads the traces, and equal lines of
logs are told by `probes/_scan_fold.py`.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES: Final = {
    "probes/trace/reading/scanner.c": "probes/trace/reading/_scanner.so",
    "probes/fold.c": "probes/_fold.so",
}
FLAGS: Final = ("-std=c99", "-O3", "-fPIC", "-shared", "-fvisibility=hidden")


class CompiledData(BuildHookInterface):  # type: ignore[type-arg]  # generic over the builder's configuration, unused here
    """Compile facts, catalogues, rules, runbooks, the index of formats, and LIBRARIES."""

    PLUGIN_NAME = "custom"
    folder: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the shards and the libraries and hand them to the wheel. FaultsError stops the build with every fault."""
        root = Path(self.root)
        if version == "editable":
            built = [compiled(root / source, root / library) for source, library in LIBRARIES.items()]
            if not all(built):
                self.app.display_warning("no C compiler: traces and logs are read by Python, about ten times slower")
            return
        sys.path.insert(0, self.root)
        try:
            from assistant import find, formats, precompiled
            from assistant.find import asked
            from assistant.intent import tables
            from knowledge import compiled as shards
            from knowledge import lazy, runbook
            from rules import loader

            self.folder = Path(tempfile.mkdtemp(prefix="gpudiag-"))
            add_libraries(root, self.folder, build_data)
            extra = {
                "formats": formats.build(),
                "runbooks": runbook.build_all(),
                asked.SHARD: asked.build(),
                tables.SHARD: tables.build(),
            }
            forms = self.folder / lazy.FORMS
            forms.write_bytes(precompiled.patterns())
            split = {"rules": loader.compile_catalog(), "topics": find.build()}
            for path in (forms, *shards.write_shipped(self.folder, extra, split)):
                build_data["force_include"][str(path)] = f"knowledge/_compiled/{path.name}"
        finally:
            sys.path.remove(self.root)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - the interface's
        """Take the temporary folder away."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def add_libraries(root: Path, folder: Path, build_data: dict[str, Any]) -> None:
    """Compile LIBRARIES into `folder` for the wheel, which is then for this platform; it is as it was where no compiler can."""
    for source, target in LIBRARIES.items():
        library = folder / Path(target).name
        if compiled(root / source, library):
            build_data["force_include"][str(library)] = target
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform_tag()}"


def platform_tag() -> str:
    """The platform part of the wheel's name."""
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


def compilers() -> Iterator[list[str]]:
    """Commands that may compile C, the ones that were asked for first."""
    said = [os.environ.get("CC"), sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    for command in dict.fromkeys(c for c in said if c):
        words = shlex.split(command)
        if shutil.which(words[0]):
            yield words


def compiled(source: Path, library: Path) -> bool:
    """Compile `source` to `library`, which is replaced at once or left as it is. Whether a compiler could."""
    text = source.read_bytes()
    mark = f'-DSOURCE_HASH="{zlib.crc32(text):08x}{zlib.adler32(text):08x}-{len(text):x}"'  # as `probes.native.source_hash` tells it
    fresh = library.with_name(f"{library.name}.{os.getpid()}")
    for compiler in compilers():
        command = [*compiler, *FLAGS, mark, "-o", str(fresh), str(source), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=300)
            ctypes.CDLL(str(fresh))
        except (OSError, subprocess.SubprocessError):
            fresh.unlink(missing_ok=True)
            continue
        fresh.replace(library)
        return True
    return False
