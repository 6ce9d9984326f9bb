"""Running commands, against a kubelet made of ASGI."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import httpx2
import pytest
from httpx2.websockets import ASGIWebSocketTransport

from soperator.kube import exec as kube_exec
from soperator.kube.api import Api
from soperator.kube.errors import KubeError, NotFound, Unreachable
from soperator.kube.exec import ExecFailed, Result, Target

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
TARGET = Target("ns", "pod", "main")
SUCCESS = {"status": "Success"}


def failure(reason: str, message: str, *causes: dict[str, str]) -> dict[str, Any]:
    """Return the Status that ends a failed command."""
    return {"status": "Failure", "reason": reason, "message": message, "details": {"causes": list(causes)}}


class Kubelet:
    """Accepts one websocket, echoes stdin to stdout, and ends as told."""

    def __init__(self, status: dict[str, Any] | None, stderr: str = "") -> None:
        self.status = status
        self.stderr = stderr
        self.query = ""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve the websocket."""
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b'{"reason": "NotFound", "message": "no such pod"}'})
            return
        self.query = scope["query_string"].decode()
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "v5.channel.k8s.io"})
        if "stdin=true" in self.query:
            while (data := (await receive())["bytes"]) != b"\xff\x00":
                await send({"type": "websocket.send", "bytes": b"\x01" + data[1:]})
        if self.stderr:
            await send({"type": "websocket.send", "bytes": b"\x02" + self.stderr.encode()})
        if self.status is None:
            await send({"type": "websocket.close", "code": 1006, "reason": ""})
            return
        await send({"type": "websocket.send", "bytes": b"\x03" + json.dumps(self.status).encode()})
        await receive()


async def run(kubelet: Kubelet, stdin: str | None = None, seconds: float = 5.0) -> Result:
    """Run a command; errors are carried out of the transport's own task group as they are."""
    async with ASGIWebSocketTransport(kubelet) as transport:
        api = Api(httpx2.AsyncClient(transport=transport, base_url="http://fake"))
        try:
            got: Result | KubeError = await kube_exec.exec(
                api, TARGET, ["scontrol", "show", "node=a b"], stdin, seconds
            )
        except KubeError as error:
            got = error
    if isinstance(got, KubeError):
        raise got
    return got


async def test_output_and_exit_code_come_back() -> None:
    """Input goes in whole, the two outputs come out apart, and success is 0."""
    kubelet = Kubelet(SUCCESS, stderr="warning")
    text = "x" * 300_000 + "é"
    assert await run(kubelet, stdin=text) == Result(0, text, "warning")
    assert "command=scontrol&command=show&command=node%3Da+b" in kubelet.query.replace("%20", "+")


async def test_a_failing_command_is_a_result() -> None:
    """An exit code other than 0 is returned, not raised."""
    status = failure("NonZeroExitCode", "exit 3", {"reason": "ExitCode", "message": "3"})
    assert (await run(Kubelet(status, stderr="no such node"))).code == 3


async def test_a_command_that_cannot_start_is_an_error() -> None:
    """What the kubelet says of it is in the message, with the container's name."""
    with pytest.raises(ExecFailed, match=r"ns/pod\[main\]: executable not found"):
        await run(Kubelet(failure("InternalError", "executable not found")))


async def test_a_connection_that_breaks_is_never_success() -> None:
    """Without a final Status nothing is known of the command."""
    with pytest.raises(Unreachable):
        await run(Kubelet(None))


async def test_a_command_may_not_hang() -> None:
    """After the given seconds the command counts as failed."""

    class Hanging(Kubelet):
        async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "websocket.accept", "subprotocol": "v5.channel.k8s.io"})
            await receive()

    with pytest.raises(ExecFailed, match="scontrol has not ended after 0 s"):
        await run(Hanging(None), seconds=0.3)


async def test_a_missing_pod_is_not_found() -> None:
    """A refused upgrade is the API server's error."""
    transport = httpx2.MockTransport(lambda _: httpx2.Response(404, json={"reason": "NotFound", "message": "no pod"}))
    api = Api(httpx2.AsyncClient(transport=transport, base_url="http://fake"))
    with pytest.raises(NotFound, match="no pod"):
        await kube_exec.exec(api, TARGET, ["true"])


async def test_a_command_that_writes_for_ever_is_given_up() -> None:
    """The container is its cluster's owner's; the operator serves other clusters with the same memory."""
    written = 0

    class Talking(Kubelet):
        async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
            nonlocal written
            await receive()
            await send({"type": "websocket.accept", "subprotocol": "v5.channel.k8s.io"})
            while True:
                await send({"type": "websocket.send", "bytes": bytes([1 + written % 2]) + b"x" * 65535})
                written += 65535
                await asyncio.sleep(0)

    with pytest.raises(ExecFailed, match="scontrol has written more than 16 MiB"):
        await run(Talking(None), seconds=30.0)
    assert written < 2 * kube_exec.MOST + 512 * 65536


async def test_an_empty_message_says_nothing() -> None:
    """It has not even a channel."""

    class Empty(Kubelet):
        async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
            async def also(message: Message) -> None:
                if message["type"] == "websocket.send":
                    await send({"type": "websocket.send", "bytes": b""})
                await send(message)

            await super().__call__(scope, receive, also)

    assert (await run(Empty(SUCCESS))).code == 0
