"""Runs a command in a container.

One websocket carries the kubelet's streams, and each message's first byte names its channel (0 stdin, 1 stdout, 2 stderr, 3 the final Status, 255 the
close of a channel; KEP-4006). Only the Status reports how the command ended: a connection that closes without one is an error, never exit code 0. The
websocket library is imported when the first command runs.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from soperator.kube.api import Api
from soperator.kube.errors import ApiError, KubeError, Unreachable, error_of
from soperator.kube.kinds import POD

CHUNK = 32 * 1024
LARGEST = 1024 * 1024
#: The most bytes read of both outputs together, because a tenant's container may write for ever.
MOST = 16 * LARGEST
CLOSE_STDIN = b"\xff\x00"


class ExecFailed(KubeError):  # noqa: N818
    """The command did not run to its end; whether it had any effect is unknown."""


@dataclass(frozen=True, slots=True)
class Target:
    """The container in which a command runs."""

    namespace: str
    pod: str
    container: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}[{self.container}]"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a command: its exit code and its output."""

    code: int
    stdout: str
    stderr: str


class _ExecCause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _ExecDetails(msgspec.Struct):
    causes: list[_ExecCause] | None = None


class _ExecStatus(msgspec.Struct):
    status: str = ""
    reason: str = ""
    message: str = ""
    details: _ExecDetails | None = None


async def exec(  # noqa: A001
    api: Api, target: Target, command: Sequence[str], stdin: str | None = None, seconds: float = 30.0
) -> Result:
    """Run a command and return its exit code and output, decoded as UTF-8 with replacement.

    Raises NotFound or another ApiError if the container cannot be reached, Unreachable if the connection fails, and ExecFailed if the command has not
    ended after `seconds`, has written more than `MOST` bytes, or could not be started.
    """
    import httpx2
    from httpx2.websockets import HTTPXWSException, WebSocketUpgradeError

    try:
        async with asyncio.timeout(seconds):
            return await _run(api, target, command, stdin)
    except TimeoutError:
        raise ExecFailed(f"{target}: {command[0]} has not ended after {seconds:.0f} s") from None
    except BaseExceptionGroup as group:
        raise _failure(group, target) from group
    except WebSocketUpgradeError as error:
        raise await _refused(error) from error
    except (HTTPXWSException, httpx2.TransportError) as error:
        raise Unreachable(f"{target}: {type(error).__name__}: {error}") from error


def _failure(group: BaseExceptionGroup[BaseException], target: Target) -> KubeError:
    for error in group.exceptions:
        if isinstance(error, KubeError):
            return error
    return Unreachable(f"{target}: {group.exceptions[0]!r}")


async def _refused(error: Any) -> ApiError:
    body = b""
    try:
        body = await error.response.aread()
    except Exception:
        body = b""
    return error_of(error.response.status_code, body)


async def _run(api: Api, target: Target, command: Sequence[str], stdin: str | None) -> Result:
    params: dict[str, Any] = {
        "container": target.container,
        "command": list(command),
        "stdout": "true",
        "stderr": "true",
        "stdin": "true" if stdin is not None else "false",
    }
    path = POD.path(target.namespace, target.pod, "exec")
    async with api.transport.client.websocket(
        path, subprotocols=["v5.channel.k8s.io"], params=params, max_message_size_bytes=LARGEST
    ) as socket:
        if stdin is not None:
            data = stdin.encode()
            for start in range(0, len(data), CHUNK):
                await socket.send_bytes(b"\x00" + data[start : start + CHUNK])
            await socket.send_bytes(CLOSE_STDIN)
        output = {1: bytearray(), 2: bytearray()}
        while True:
            message = await socket.receive_bytes()
            if not message:
                continue
            channel, payload = message[0], message[1:]
            if channel == 3:
                code = _exit_code(payload, target)
                return Result(code, output[1].decode(errors="replace"), output[2].decode(errors="replace"))
            if channel in output:
                output[channel] += payload
            if sum(map(len, output.values())) > MOST:
                raise ExecFailed(f"{target}: {command[0]} has written more than {MOST >> 20} MiB")


def _exit_code(payload: bytes, target: Target) -> int:
    status = msgspec.json.decode(payload, type=_ExecStatus)
    if status.status == "Success":
        return 0
    causes = (status.details.causes if status.details else None) or []
    for cause in causes:
        if status.reason == "NonZeroExitCode" and cause.reason == "ExitCode":
            return int(cause.message)
    raise ExecFailed(f"{target}: {status.message or status.reason}")
