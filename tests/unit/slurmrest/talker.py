"""A server on the loopback that answers as a test says: what a container of a cluster's owner may do to whoever asks it."""

import asyncio
import contextlib

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"


@contextlib.asynccontextmanager
async def talker(talk):
    """Its address; `talk` is given the writer of each connection after the request's head came."""
    tasks = set()

    async def serve(reader, writer):
        tasks.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            await talk(writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def for_ever(head, piece, pause=0.0):
    """Say this head, and then this piece again and again."""

    async def talk(writer):
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    return talk


async def never(_writer):
    """Say nothing."""
    await asyncio.sleep(3600)


def drips(text):
    """Say this, a byte at a time."""

    async def talk(writer):
        for each in text:
            writer.write(bytes([each]))
            await writer.drain()
            await asyncio.sleep(0.05)
        await asyncio.sleep(3600)

    return talk
