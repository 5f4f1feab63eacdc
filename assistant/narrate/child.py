"""The process that speaks to the model: the only program of gpudiag that imports litellm.

Run as ``PYTHON -I -B child.py`` by an interpreter that may have nothing but litellm: standard library, nothing of gpudiag.
JSON lines. In: first ``{"hello": {base, host, port, model, key}}``, then ``{"id", "messages", "max_tokens", "timeout"}``, one at a
time. Out: ``{"ready": version, "price": [in, out] or null}``, then for each request ``{"id", "text", ...}`` or ``{"id", "error",
"detail"}``. The key comes through the pipe: it stands in no argument list and no environment.

What it may do is little: connect to the one host and port that it was told (an audit hook of the interpreter refuses every
other connection and name, so that no redirect, telemetry or price list leaves), use no capability of root's, start no program, write no file above 1 MiB. It ends
when its input does: with the process that began it, however that ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import queue
import resource
import socket
import struct
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

CAP = 256 << 10  # characters of an answer that are handed on; more is no rewording of anything
MEMORY = 2 << 30  # bytes of address space: litellm and its libraries map 0.5 GB of it
OPEN_FILES = 256
FILES = 1 << 20  # bytes of a file that it may write: the standard library tries whether its folder can be written
BAD = ("1.82.7", "1.82.8", "1.107.0")  # carried malware, or are reported to
LEAST = (1, 84, 0)  # older ones have known holes
FORBIDDEN = (
    "subprocess.Popen",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.forkpty",
    "pty.spawn",
)
NO_NEW_PRIVS, CAPABILITY_VERSION = 38, 0x20080522  # <linux/prctl.h>, <linux/capability.h>
UNSET = "none"  # litellm wants a key where the server wants none


class Fenced(PermissionError):
    """Something that this process does not do."""


class Network:
    """One host and port; every other name and address is refused, and remembered."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port, self.refused = host, port, ""
        self.status = 0  # of the last answer
        self._known: set[Any] = set()  # addresses that the name stands for, as the resolver said

    def fence(self) -> None:
        """From here on. A hook cannot be taken away again."""
        resolve = socket.getaddrinfo

        def getaddrinfo(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
            found = resolve(host, port, *rest, **more)
            self._known.update(entry[4][0] for entry in found)
            return found

        socket.getaddrinfo = getaddrinfo
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: Any) -> None:
        if event == "socket.getaddrinfo" and not self._ours(args[0], args[1]):
            self._refuse(f"{args[0]}:{args[1]}")
        elif event == "socket.connect" and not self._reached(args[1]):
            self._refuse(str(args[1]))
        elif event in (
            "socket.gethostbyname",
            "socket.gethostbyaddr",
            "socket.bind",
            "socket.sendto",
            "socket.sendmsg",
        ):
            self._refuse(event)
        elif event in FORBIDDEN:
            raise Fenced(f"{event} is not for this process")

    def _ours(self, host: Any, port: Any) -> bool:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        return name.rstrip(".").lower() == self.host and str(port) == str(self.port)

    def _reached(self, address: Any) -> bool:
        if not isinstance(address, tuple) or len(address) < 2 or address[1] != self.port:
            return False
        if self.host == "localhost" and not (address[0] == "::1" or address[0].startswith("127.")):
            return False
        return address[0] == self.host or address[0] in self._known

    def _refuse(self, what: str) -> None:
        self.refused = what
        raise Fenced(f"{what} is not the address that was set")


def limits() -> None:
    """No core files, no large files, bounded memory."""
    wanted = (
        (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILES), (resource.RLIMIT_NOFILE, OPEN_FILES), (resource.RLIMIT_AS, MEMORY)
    )  # fmt: skip
    for which, most in wanted:
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(which, (most, most))


def powerless() -> None:
    """No capability, and no program that gives one: started by root it may not look at the machine as root's probes do."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
    header, nothing = (
        struct.pack("=Ii", CAPABILITY_VERSION, 0),
        bytes(24),
    )  # two sets of effective, permitted, inheritable
    if libc.capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def wire() -> tuple[IO[bytes], int]:
    """The descriptors of the protocol, moved away: what a library prints goes nowhere."""
    given, taken = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    return os.fdopen(given, "rb"), taken


def listen(stream: IO[bytes], requests: queue.Queue[bytes]) -> None:
    """Lines into the queue. At their end the process ends at once, whatever it does: nobody is there to be answered."""
    for line in stream:
        requests.put(line)
    leave()


def leave() -> None:
    """At once, and the empty folder goes as well: who made it may be gone."""
    with contextlib.suppress(OSError):
        Path(os.environ.get("HOME", "")).rmdir()
    os._exit(0)


def watch_parent(parent: int) -> None:
    """A pipe that a forked relative still holds open has no end: the parent's number tells as well."""
    while os.getppid() == parent:
        time.sleep(1.0)
    leave()


def say(out: int, message: dict[str, Any]) -> None:
    """One line; all of it."""
    data = memoryview(json.dumps(message).encode() + b"\n")
    while data:
        data = data[os.write(out, data) :]


def version_of(text: str) -> tuple[int, ...]:
    """``1.106.2`` as numbers; what follows them does not count."""
    numbers = []
    for part in text.split(".")[:3]:
        digits = "".join(c for c in part if c.isdigit())
        numbers.append(int(digits or 0))
    return tuple(numbers)


def load(network: Network) -> tuple[Any, Any]:
    """litellm, quiet and offline. (module, version), or (None, the error's name and a detail)."""
    from importlib import import_module, metadata

    try:
        version = metadata.version("litellm")
    except metadata.PackageNotFoundError:
        return None, ("not-installed", sys.executable)
    if version in BAD or version_of(version) < LEAST:  # looked at before a line of it runs
        return None, ("unsafe-version", f"litellm {version}")
    try:
        httpx: Any = import_module("httpx")
        litellm: Any = import_module("litellm")
    except Exception as error:  # whatever a stranger's package raises while it is loaded  # noqa: BLE001
        return None, ("not-installed", f"{type(error).__name__}: {error}")
    httpx.Client.send = plain(httpx.Client.send, network)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True  # a server that knows no response_format is asked without
    litellm.client_session = httpx.Client(follow_redirects=False, trust_env=False)
    litellm.success_callback, litellm.failure_callback, litellm.callbacks = [], [], []
    return litellm, version


def plain(send: Any, network: Network) -> Any:
    """`httpx.Client.send`, which follows no redirect (an answer, not an order) and does not tell what machine this is."""

    def sent(self: Any, request: Any, **more: Any) -> Any:
        held = {n: v for n, v in request.headers.items() if n.lower().startswith("x-stainless-")}
        for name in held:
            del request.headers[name]
        request.headers["user-agent"] = "gpudiag"
        answer = send(self, request, **(more | {"follow_redirects": False}))
        network.status = int(answer.status_code)
        request.headers.update(held)  # the client looks there for how it should read the answer
        return answer

    return sent


def price(litellm: Any, model: str) -> list[float] | None:
    """US dollars a token in and out, where litellm knows."""
    try:
        known = litellm.get_model_info(model)
        return [float(known["input_cost_per_token"]), float(known["output_cost_per_token"])]
    except Exception:  # it raises bare Exception for a model that it does not know  # noqa: BLE001
        return None


# Names of litellm's exceptions -> our reason, where no server answered.
ERRORS = (
    ("Timeout", "slow"),
    ("APIConnectionError", "down"),
    ("InternalServerError", "down"),
    ("ServiceUnavailableError", "down"),
)
BODY_CUT = ("RemoteProtocolError", "ReadError", "IncompleteRead")  # the connection broke before the answer was whole


def chain(error: BaseException | None) -> list[BaseException]:
    """An error and what it came from."""
    seen: list[BaseException] = []
    while error is not None and error not in seen and len(seen) < 20:
        seen.append(error)
        error = error.__cause__ or error.__context__
    return seen


def reason(error: BaseException, network: Network) -> str:
    """The word of the protocol for what went wrong: what the server said before what litellm makes of it."""
    causes = chain(error)
    names = [type(e).__name__ for e in causes]
    if any(isinstance(e, Fenced) for e in causes) or (network.refused and not network.status):
        return "host-not-allowed"
    if "ReadTimeout" in names or "ConnectTimeout" in names:
        return "slow"
    if network.status == 200:  # the server was content, and this is no completion
        return "malformed"
    if network.status:
        return "down" if network.status >= 500 else "refused"
    if any(name in BODY_CUT for name in names):
        return "cut"
    for kind in type(error).__mro__:
        for name, word in ERRORS:
            if kind.__name__ == name:
                return word
    return "malformed"


def complete(litellm: Any, network: Network, hello: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """One request, once: no retry, no tool, no stream, no fallback."""
    network.refused, network.status = "", 0
    try:
        answer = litellm.completion(
            model=hello["model"], messages=request["messages"], api_base=hello["base"], api_key=hello["key"] or UNSET,
            max_tokens=request["max_tokens"], timeout=request["timeout"], max_retries=0, stream=False, temperature=0,
            response_format={"type": "json_object"},
        )  # fmt: skip
        return read(litellm, answer)
    except MemoryError:
        return {"error": "huge", "detail": "more than the memory of the process"}
    except Exception as error:  # litellm raises what it likes  # noqa: BLE001
        told = f"{type(error).__name__}: {error}"
        word = reason(error, network)
        detail = f"refused: {network.refused}" if word == "host-not-allowed" else told
        return {"error": word, "detail": masked(detail, hello["key"])[:600]}


def read(litellm: Any, answer: Any) -> dict[str, Any]:
    """What of an answer is handed on."""
    choice = answer.choices[0]
    text, usage = choice.message.content, getattr(answer, "usage", None)
    if not isinstance(text, str):
        return {"error": "malformed", "detail": "no text in the answer"}
    if len(text) > CAP:
        return {"error": "huge", "detail": f"{len(text)} characters"}
    try:
        cost = litellm.completion_cost(answer)
    except Exception:  # a model without a price  # noqa: BLE001
        cost = None
    return {
        "text": text, "finish": str(choice.finish_reason), "model": str(answer.model), "cost": cost,
        "in": int(getattr(usage, "prompt_tokens", 0) or 0), "out": int(getattr(usage, "completion_tokens", 0) or 0),
    }  # fmt: skip


def masked(text: str, key: str) -> str:
    """A server may repeat the key that it refused."""
    return text.replace(key, "***") if key else text


def main() -> None:
    """Listen, load, answer."""
    parent = os.getppid()
    given, out = wire()
    requests: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=listen, args=(given, requests), daemon=True).start()
    threading.Thread(target=watch_parent, args=(parent,), daemon=True).start()
    hello = json.loads(requests.get())["hello"]
    limits()
    if sys.platform == "linux":
        powerless()
    network = Network(hello["host"], hello["port"])
    network.fence()
    litellm, told = load(network)
    if litellm is None:
        say(out, {"error": told[0], "detail": told[1][:600]})
        os._exit(0)
    say(out, {"ready": told, "price": price(litellm, hello["model"])})
    while True:
        request = json.loads(requests.get())
        say(out, {"id": request["id"]} | complete(litellm, network, hello, request))


if __name__ == "__main__":
    main()
