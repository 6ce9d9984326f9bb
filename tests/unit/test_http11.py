"""The operator's own transport, against a server that sends whatever a test says."""

import asyncio
import socket
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from soperator.http11 import Http11

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class Server:
    """Answers each request of a connection with the next of `answers`, each of which is a list of pieces; then it ends, or stays silent."""

    def __init__(self, *answers, stays=True):
        self.answers, self.stays = [*answers], stays
        self.connections = 0
        self.heads = []
        self.ended = asyncio.Event()

    async def serve(self, reader, writer):
        """One connection."""
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                if b"content-length: 4" in head.lower():
                    assert await reader.readexactly(4) == b"body"
                for piece in self.answers.pop(0):
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if not self.answers and not self.stays:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, IndexError):
            pass
        finally:
            self.ended.set()
            writer.close()


@asynccontextmanager
async def asking(server):
    """A client of a server on the loopback."""
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    async with httpx2.AsyncClient(transport=Http11(), base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        yield client
    listening.close()


async def test_a_connection_is_used_again_after_a_whole_answer():
    """Three requests, with and without a body, need one connection; the request has its path, its query and its headers."""
    server = Server([OK], [CHUNKED, b"2\r\no", b"k\r\n", b"0\r\n", b"Trailer: 1\r\n\r\n"], [OK])
    async with asking(server) as client:
        for _ in range(3):
            assert (await client.request("PATCH", "/a b?c=d", content=b"body", headers={"X": "y"})).text == "ok"
    assert server.connections == 1
    assert server.heads[0].startswith(b"PATCH /a%20b?c=d HTTP/1.1\r\n")
    assert b"\r\nx: y\r\n" in server.heads[0].lower()


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        CHUNKED + b"2\r\nok\r\n0\r\n\r\nmore",
    ],
)
async def test_a_connection_is_not_used_again_if_more_follows_or_a_side_closes(answer):
    """The next request goes to a new connection, and gets its own answer."""
    server = Server([answer], [OK])
    async with asking(server) as client:
        assert (await client.get("/")).text == "ok"
        await asyncio.sleep(0.01)
        assert (await client.get("/")).text == "ok"
    assert server.connections == 2


async def test_an_idle_connection_that_the_server_has_closed_is_not_used():
    """The next request goes to a new one, and no request is sent twice."""
    server = Server([OK], stays=False)
    async with asking(server) as client:
        await client.get("/")
        await server.ended.wait()
        await asyncio.sleep(0.02)
        server.answers = [[OK]]
        assert (await client.get("/")).text == "ok"
    assert len(server.heads) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok",
        CHUNKED + b"2\r\nok\r\n",
        CHUNKED + b"3\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"-2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"fffffffff\r\nok",
        CHUNKED + b"0\r\n" + b"A: b\r\n" * 65 + b"\r\n",
        CHUNKED + b"1" * 9000,
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n: nameless\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nName : x\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000,
    ],
)
async def test_half_an_answer_or_an_ambiguous_one_is_none(answer):
    """What ends too early, has two lengths, or is no HTTP at all is an error of the transport, and its connection is closed."""
    server = Server([answer], stays=False)
    async with asking(server) as client:
        with pytest.raises(httpx2.TransportError):
            await client.get("/")
    assert server.connections == 1


async def test_a_body_without_a_length_lasts_until_the_end():
    """It may be that of an old server; 204 has none, whatever its headers say, and an interim answer is skipped."""
    server = Server([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nall ", b"of it"], stays=False)
    async with asking(server) as client:
        assert (await client.get("/")).text == "all of it"
    server = Server([b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"], [OK])
    async with asking(server) as client:
        assert (await client.get("/")).content == b""
        assert (await client.get("/")).text == "ok"
    assert server.connections == 1


async def test_a_stream_hands_on_what_arrives_and_a_slow_reader_slows_the_server():
    """A watch gets each event when it comes; of an answer of 64 MB in one chunk memory holds a few at a time."""
    size = 64 << 20
    server = Server([CHUNKED + b"%x\r\n" % size, *[b"x" * (1 << 20)] * 64, b"\r\n0\r\n\r\n"])
    async with asking(server) as client, client.stream("GET", "/") as response:
        pieces = [len(each) async for each in response.aiter_raw()]
    assert sum(pieces) == size
    assert max(pieces) < 4 << 20


async def test_a_stream_that_is_left_early_closes_its_connection():
    """So that the rest of a watch is not the beginning of the next answer."""
    server = Server([CHUNKED + b"2\r\nok\r\n"], [OK])
    async with asking(server) as client:
        async with client.stream("GET", "/") as response:
            assert await anext(response.aiter_raw()) == b"ok"
        await asyncio.wait_for(server.ended.wait(), 5)
        assert (await client.get("/")).text == "ok"
    assert server.connections == 2


async def test_who_is_late_is_given_up():
    """A server that says nothing, or half, in time; the connection is closed, and so it is where the request is cancelled."""
    for begin in ([], [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"]):
        server = Server(begin)
        async with asking(server) as client:
            with pytest.raises(httpx2.ReadTimeout):
                await client.get("/", timeout=0.05)
            await asyncio.wait_for(server.ended.wait(), 5)
    server = Server([])
    async with asking(server) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.get("/"), 0.05)
        await asyncio.wait_for(server.ended.wait(), 5)


async def test_nobody_listens_and_other_requests_that_it_does_not_send():
    """A refused connection, https without certificates, and a header that would be two."""
    async with httpx2.AsyncClient(transport=Http11(), trust_env=False) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.get("http://127.0.0.1:1/")
        with pytest.raises(httpx2.UnsupportedProtocol):
            await client.get("https://127.0.0.1:1/")
        with pytest.raises(httpx2.LocalProtocolError):
            await client.get("http://127.0.0.1:1/", headers={"A": "b\r\nC: d"})


async def test_what_becomes_a_websocket_goes_another_way():
    """And closing this transport closes the other."""

    class Others(httpx2.AsyncBaseTransport):
        closed = False

        async def handle_async_request(self, request):
            return httpx2.Response(101, request=request)

        async def aclose(self):
            self.closed = True

    others = Others()
    async with httpx2.AsyncClient(transport=Http11(None, others), trust_env=False) as client:
        found = await client.get("http://127.0.0.1:1/", headers={"Connection": "Upgrade", "Upgrade": "websocket"})
    assert (found.status_code, others.closed) == (101, True)


def certificate(tmp_path, name):
    """A key and a certificate of its own for this host name, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(subject, subject, key.public_key(), 1, now, now + timedelta(hours=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False).sign(key, SHA256())
    path = tmp_path / f"{name}.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(made.public_bytes(Encoding.PEM) + private)
    return path


@asynccontextmanager
async def asking_tls(server, certificate, trusted):
    """A client of a server with a certificate; it trusts another one or the same."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    mine = ssl.create_default_context(cafile=trusted)
    url = f"https://localhost:{listening.sockets[0].getsockname()[1]}"
    async with httpx2.AsyncClient(transport=Http11(mine), base_url=url, trust_env=False) as client:
        yield client
    listening.close()


async def test_an_answer_over_tls_is_whole(tmp_path):
    """Bodies with a length, in chunks, and of several records arrive, on one connection."""
    mine = certificate(tmp_path, "localhost")
    size = 3 << 20
    server = Server([OK], [CHUNKED + b"%x\r\n" % size, b"x" * size, b"\r\n0\r\n\r\n"], [OK])
    async with asking_tls(server, mine, mine) as client:
        assert (await client.post("/", content=b"body")).text == "ok"
        assert len((await client.get("/")).content) == size
        assert (await client.get("/")).text == "ok"
    assert server.connections == 1


async def test_a_server_that_is_not_who_it_should_be_gets_no_request(tmp_path):
    """A certificate of somebody else, and one for another host name."""
    mine, other = certificate(tmp_path, "localhost"), certificate(tmp_path, "elsewhere")
    for has, trusted in ((other, mine), (other, other)):
        server = Server([OK])
        async with asking_tls(server, has, trusted) as client:
            with pytest.raises(httpx2.ConnectError, match="certificate verify failed"):
                await client.get("/")
        assert server.heads == []


async def test_an_answer_over_tls_that_is_cut_off_is_none(tmp_path):
    """A body that lasts until the end of the connection is whole only if the server says that this is the end."""
    mine = certificate(tmp_path, "localhost")

    class Cut(Server):
        async def serve(self, reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
            await writer.drain()
            raw = writer.get_extra_info("socket")
            await asyncio.sleep(0.05)
            raw.shutdown(socket.SHUT_WR)
            await asyncio.sleep(0.05)
            writer.transport.abort()

    async with asking_tls(Cut(), mine, mine) as client:
        with pytest.raises(httpx2.TransportError):
            await client.get("/")


@given(st.lists(st.binary(max_size=40), max_size=5), st.lists(st.integers(1, 30), min_size=1, max_size=40))
def test_however_the_bytes_arrive_the_answer_is_the_same(parts, cuts):
    """A body in chunks of any content, cut at any place, is what was sent."""
    body = b"".join(b"%X;x=1\r\n%s\r\n" % (len(part), part) for part in parts if part) + b"0\r\n\r\n"
    text, pieces = CHUNKED + body, []
    for cut in cuts:
        pieces.append(text[:cut])
        text = text[cut:]

    async def read():
        async with asking(Server([*pieces, text], [OK])) as client:
            return (await client.get("/")).content, (await client.get("/")).content

    assert asyncio.run(read()) == (b"".join(parts), b"ok")
