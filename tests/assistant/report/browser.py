"""A page in headless Chromium, driven over its debugging pipe: no port, no network, no library."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe --force-color-profile=srgb"
)


class Page:
    """One page. Everything that it asked of the network, said in its console, or threw is kept."""

    def __init__(self, chromium: str, profile: Path, width: int = 1300, height: int = 1000) -> None:
        down, self._out = os.pipe()
        self._in, up = os.pipe()
        command = f'exec "$0" "$@" 3<&{down} 4>&{up}'
        argv = ["bash", "-c", command, chromium, *FLAGS.split(), f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            argv, pass_fds=(down, up), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(down)
        os.close(up)
        self._buffer, self._last, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._out)
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)

    def call(self, method: str, **params: Any) -> Any:
        """A command of the DevTools protocol and its result. AssertionError when it fails."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._event(answer)

    def _next(self, patience: float = 120) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], patience)
            assert ready, "the browser said nothing"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser ended"
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\0", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def _event(self, event: Mapping[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(params["exceptionDetails"])[:800])
            case "Log.entryAdded":
                self.errors.append(f"{params['entry']['level']}: {params['entry']['text']}")
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(json.dumps(params["args"])[:800])

    def open(self, file: Path) -> None:
        """Load the report and wait until it has drawn itself."""
        self.call("Page.navigate", url=file.as_uri())
        self.wait("document.documentElement?.dataset.ready !== undefined")

    def wait(self, condition: str, seconds: float = 90) -> None:
        """Until an expression is true."""
        until = time.monotonic() + seconds
        while not self.ask(condition):
            assert time.monotonic() < until, f"never true: {condition}; {self.errors}"
            time.sleep(0.05)

    def ask(self, expression: str) -> Any:
        """The value of an expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def key(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {
            "Enter": 13,
            "Escape": 27,
            "ArrowLeft": 37,
            "ArrowUp": 38,
            "ArrowRight": 39,
            "ArrowDown": 40,
            "Tab": 9,
        }.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """``mouseMoved``, ``mousePressed``, ``mouseReleased``, ``mouseWheel``."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, file: Path, whole: bool = True) -> None:
        """A PNG of the page."""
        shot = self.call(
            "Page.captureScreenshot", captureBeyondViewport=whole, **({"clip": self._clip()} if whole else {})
        )
        file.write_bytes(base64.b64decode(shot["data"]))

    def _clip(self) -> dict[str, Any]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
