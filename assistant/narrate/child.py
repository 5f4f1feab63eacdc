"""The process that speaks to the model: the only program of gpudiag that imports litellm.

Run as ``PYTHON -ISB child.py NUMBER`` by an interpreter that may have nothing but litellm: standard library, nothing of gpudiag.
JSON lines. In: first ``{"hello": {base, host, port, model, key}}``, then ``{"id", "messages", "max_tokens", "timeout"}``, one at a
time. Out: ``{"walls": {name: bool}}``, ``{"ready": version, "price": [in, out] or null}``, then for each request ``{"id", "text",
...}`` or ``{"id", "error", "detail"}``. The key comes through the pipe: it stands in no argument list and no environment.

What it may do is held by the kernel (walls.py), from before the first line of a stranger's package, a ``.pth`` file or a
``sitecustomize`` is read. It cannot open a connection: NUMBER is the descriptor of a socket over which its parent hands it connections
to the one host and port of the settings, already made (`Door`). It ends when its input does: with the process that began it, however
that ended.
"""

from __future__ import annotations

import _socket
import contextlib
import errno
import json
import os
import queue
import site
import socket
import sys
import tempfile
import threading
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import IO, Any

CAP = 256 << 10  # characters of an answer that are handed on; more is no rewording of anything
BAD = ("1.82.7", "1.82.8", "1.107.0")  # carried malware, or are reported to
LEAST = (1, 84, 0)  # older ones have known holes
UNSET = "none"  # litellm wants a key where the server wants none


class Fenced(PermissionError):
    """Something that this process does not do."""


class Door:
    """Where connections come from: the parent makes them, to the one host and port. Other names and addresses are refused, and remembered."""

    def __init__(self, number: int, host: str, port: int) -> None:
        self.host, self.port, self.refused = host, port, ""
        self.status = 0  # of the last answer
        self._way, self._lock = socket.socket(fileno=number), threading.Lock()

    def open(self) -> None:
        """From here on a TCP socket is a connection that was handed over, for every library that uses Python's sockets."""
        door, plain_socket = self, socket.socket

        class Given(plain_socket):  # type: ignore[misc, valid-type]
            def __init__(self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None) -> None:
                internet = family in (-1, socket.AF_INET, socket.AF_INET6)
                if (
                    fileno is None and internet and type in (-1, socket.SOCK_STREAM)
                ):  # one end of a pair holds its place
                    kept, _ = _socket.socketpair()
                    super().__init__(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, kept.detach())
                else:
                    super().__init__(family, type, proto, fileno)

            def connect(self, address: Any) -> None:
                """The one place there is, or OSError."""
                if tuple(address[:2]) != (door.host, door.port):
                    door.refuse(f"{address[0]}:{address[1]}")
                made = door.connection()
                os.dup2(made, self.fileno(), inheritable=False)
                os.close(made)
                self.settimeout(self.gettimeout())  # what it was before, of the new one

            def connect_ex(self, address: Any) -> int:
                """As connect, with the number of the error."""
                try:
                    self.connect(address)
                except OSError as error:
                    return error.errno or errno.EPERM
                return 0

            def setsockopt(self, *what: Any) -> None:
                """Not all is taken before there is a connection."""
                with contextlib.suppress(OSError):
                    super().setsockopt(*what)

        def getaddrinfo(host: Any, port: Any, *_rest: Any, **_more: Any) -> Any:
            name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
            if name.strip("[]").rstrip(".").lower() != door.host or str(port) != str(door.port):
                door.refuse(f"{name}:{port}")
            return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (door.host, door.port))]

        socket.socket, socket.getaddrinfo = Given, getaddrinfo  # type: ignore[misc]

    def connection(self) -> int:
        """The descriptor of a new connection. OSError as the parent met it."""
        with self._lock:
            self._way.sendall(b"?")
            told, given, _, _ = socket.recv_fds(self._way, 16, 1)
        if given:
            return given[0]
        number = int(told or b"111")
        raise OSError(number, os.strerror(number))

    def refuse(self, what: str) -> None:
        """PermissionError that says what was tried."""
        self.refused = what
        raise Fenced(f"{what} is not the address that was set")


def walls() -> Any:
    """The module beside this one, which no path leads to: an isolated interpreter looks for none here."""
    spec = spec_from_file_location("walls", Path(__file__).with_name("walls.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
    """At once."""
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


def load(door: Door) -> tuple[Any, Any]:
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
    httpx.Client.send = plain(httpx.Client.send, door)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True  # a server that knows no response_format is asked without
    litellm.client_session = httpx.Client(follow_redirects=False, trust_env=False)
    litellm.success_callback, litellm.failure_callback, litellm.callbacks = [], [], []
    return litellm, version


def plain(send: Any, door: Door) -> Any:
    """`httpx.Client.send`, which follows no redirect (an answer, not an order) and does not tell what machine this is."""

    def sent(self: Any, request: Any, **more: Any) -> Any:
        held = {n: v for n, v in request.headers.items() if n.lower().startswith("x-stainless-")}
        for name in held:
            del request.headers[name]
        request.headers["user-agent"] = "gpudiag"
        answer = send(self, request, **(more | {"follow_redirects": False}))
        door.status = int(answer.status_code)
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


def reason(error: BaseException, door: Door) -> str:
    """The word of the protocol for what went wrong: what the server said before what litellm makes of it."""
    causes = chain(error)
    names = [type(e).__name__ for e in causes]
    if any(isinstance(e, Fenced) for e in causes) or (door.refused and not door.status):
        return "host-not-allowed"
    if "ReadTimeout" in names or "ConnectTimeout" in names:
        return "slow"
    if door.status == 200:  # the server was content, and this is no completion
        return "malformed"
    if door.status:
        return "down" if door.status >= 500 else "refused"
    if any(name in BODY_CUT for name in names):
        return "cut"
    for kind in type(error).__mro__:
        for name, word in ERRORS:
            if kind.__name__ == name:
                return word
    return "malformed"


def complete(litellm: Any, door: Door, hello: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """One request, once: no retry, no tool, no stream, no fallback."""
    door.refused, door.status = "", 0
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
        word = reason(error, door)
        detail = f"refused: {door.refused}" if word == "host-not-allowed" else told
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
    stand = walls().put_up()
    requests: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=listen, args=(given, requests), daemon=True).start()
    threading.Thread(target=watch_parent, args=(parent,), daemon=True).start()
    say(out, {"walls": stand})  # before anybody else's code could say it
    hello = json.loads(requests.get())["hello"]
    door = Door(int(sys.argv[1]), hello["host"], hello["port"])
    door.open()
    tempfile.tempdir = os.environ["TMPDIR"]  # nothing can be written: do not try where
    site.main()  # the packages, with whatever they run at every start
    litellm, told = load(door)
    if litellm is None:
        say(out, {"error": told[0], "detail": told[1][:600]})
        os._exit(0)
    say(out, {"ready": told, "price": price(litellm, hello["model"])})
    while True:
        request = json.loads(requests.get())
        say(out, {"id": request["id"]} | complete(litellm, door, hello, request))


if __name__ == "__main__":
    main()
