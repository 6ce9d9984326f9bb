"""A TCP relay between a client and the API server that can be made to misbehave."""

import asyncio
from dataclasses import dataclass, field

from tests.runtime.server import free_port


@dataclass
class Relay:
    """Forwards connections to `target`; `freeze` keeps them open and silent, `cut` closes them, `open` is normal."""

    target: int
    port: int = field(default_factory=free_port)
    connections: int = 0
    _server: asyncio.Server | None = None
    _frozen: asyncio.Event = field(default_factory=asyncio.Event)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _refuses: bool = False

    async def __aenter__(self) -> "Relay":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._close_all()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def freeze(self) -> None:
        """Forward nothing more on the connections that there are; new ones work."""
        self._frozen.set()
        self._frozen = asyncio.Event()
        self._writers.clear()

    def refuse(self) -> None:
        """Close every connection, and every new one at once."""
        self._refuses = True
        self._close_all()

    def open(self) -> None:
        """Accept connections again."""
        self._refuses = False

    def _close_all(self) -> None:
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        if self._refuses:
            writer.close()
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers |= {writer, there_writer}
        frozen = self._frozen
        try:
            await asyncio.gather(_pipe(reader, there_writer, frozen), _pipe(there_reader, writer, frozen))
        except asyncio.CancelledError:
            return
        finally:
            writer.close()
            there_writer.close()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frozen: asyncio.Event) -> None:
    try:
        while data := await reader.read(65536):
            if frozen.is_set():
                await asyncio.sleep(3600)
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
