#!/usr/bin/env python3
"""Creates a small container image, and serves it as a registry.

`oci.py make FOLDER --root / PROGRAM...` writes an OCI layout with the programs of a root and the libraries that they load, in two layers:
the second one changes one file of the first and deletes another. `oci.py serve FOLDER PORT [--login USER:WORD]` serves any layout over
plain HTTP or TLS under every repository name, so that clients look up tags and digests as in a real registry. It uses the standard library
only, because it also runs in a jail.
"""

import argparse
import base64
import gzip
import hashlib
import io
import json
import ssl
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = {
    "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "FROM_IMAGE=image", "SHARED=image"],
    "WorkingDir": "/work/here",
    "Entrypoint": ["/entrypoint"],
    "Cmd": ["sh"],
}
ENTRYPOINT = '#!/bin/sh\necho the entry point runs\nexport BY_ENTRYPOINT=yes\nexec "$@"\n'

#: An image for PyTorch without a working folder, as most are. Its entry point leaves a process behind and touches what belongs to a task.
PLAIN = {
    "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "FROM_IMAGE=image", "DROPPED=image", "PYTORCH_VERSION=2.5"],
    "Entrypoint": ["/entrypoint-plain"],
    "Cmd": ["sh"],
}
ENTRYPOINT_PLAIN = """#!/bin/sh
sleep 600 &
export FROM_IMAGE=changed GIVEN="$OTHER/$NAMED/$SLURM_PROCID/$SLURM_JOB_ID" SLURM_LOCALID=77 CUDA_VISIBLE_DEVICES=77
unset DROPPED
case $NAMED in *fail*) exit 3 ;; esac
exec "$@"
"""


def libraries(root: Path, program: str) -> list[str]:
    """Return the files that a program of a root loads."""
    where = [] if str(root) == "/" else ["chroot", str(root)]
    shown = subprocess.run([*where, "ldd", program], capture_output=True, text=True, check=False).stdout
    return [word for line in shown.splitlines() for word in line.split() if word.startswith("/")]


def gathered(root: Path, programs: Sequence[str]) -> dict[str, bytes]:
    """Return the programs and their libraries by their paths below usr/."""
    found: dict[str, bytes] = {}
    for program in programs:
        for path in (program, *libraries(root, program)):
            inside = path if path.startswith("/usr/") else f"/usr{path}"
            source = root / path.lstrip("/")
            while source.is_symlink():
                target = source.readlink()
                source = root / str(target).lstrip("/") if target.is_absolute() else source.parent / target
            found[inside.lstrip("/")] = source.read_bytes()
    return found


def layer(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    """Return a gzipped layer; files below bin folders, and scripts, are executable."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, target in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname, link.mode = tarfile.SYMTYPE, target, 0o777
            tar.addfile(link)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755 if content[:4] == b"\x7fELF" or content[:2] == b"#!" else 0o644
            entry.uid = entry.gid = 33 if name.startswith("owned") else 0
            tar.addfile(entry, io.BytesIO(content))
        shadow = tarfile.TarInfo("etc/closed")
        shadow.mode, shadow.size = 0, 7
        tar.addfile(shadow, io.BytesIO(b"closed\n"))
    return gzip.compress(packed.getvalue(), 1, mtime=0)


def put(folder: Path, content: bytes, kind: str) -> dict[str, Any]:
    """Write a blob and return its descriptor."""
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    (folder / "blobs/sha256" / digest).write_bytes(content)
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}


def make(folder: Path, root: Path, programs: Sequence[str], has_plain: bool = False) -> str:
    """Write a layout with the image `one`, and `plain` if requested, and return the digest of `one`."""
    first = {
        **gathered(root, programs),
        "etc/word": b"first\n",
        "etc/gone": b"gone\n",
        "entrypoint": ENTRYPOINT.encode(),
    }
    second = {
        "etc/word": b"second\n",
        "etc/.wh.gone": b"",
        "entrypoint-plain": ENTRYPOINT_PLAIN.encode(),
        "owned-by-33": b"33\n",
        "home/README": b"\n",
        "tmp/README": b"\n",
    }
    layers = [layer(first, LINKS), layer(second)]
    configs = {"one": CONFIG, **({"plain": PLAIN} if has_plain else {})}
    entries = [entry_of(folder, layers, tag, config) for tag, config in configs.items()]
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))
    return str(entries[0]["digest"])


def entry_of(folder: Path, layers: Sequence[bytes], tag: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Write an image with these layers and return its entry of the index."""
    plain = [f"sha256:{hashlib.sha256(gzip.decompress(each)).hexdigest()}" for each in layers]
    whole = {"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": plain}}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": put(folder, json.dumps(whole).encode(), "application/vnd.oci.image.config.v1+json"),
        "layers": [put(folder, each, "application/vnd.oci.image.layer.v1.tar+gzip") for each in layers],
    }
    entry = put(folder, json.dumps(manifest).encode(), MANIFEST)
    entry["annotations"] = {"org.opencontainers.image.ref.name": tag}
    return entry


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of the distribution API."""

    folder: Path
    login: str
    slow: bool

    def do_HEAD(self) -> None:
        """Answer HEAD without the body."""
        self.answer(False)

    def do_GET(self) -> None:
        """Answer GET with the body."""
        self.answer(True)

    def answer(self, has_body: bool) -> None:
        """Find the blob or the manifest."""
        said = self.headers.get("Authorization", "")
        if self.login and said != "Basic " + base64.b64encode(self.login.encode()).decode():
            self.reply(401, b'{"errors":[{"code":"UNAUTHORIZED","message":"log in"}]}', "application/json", has_body)
            return
        parts = self.path.split("?")[0].strip("/").split("/")
        kind, name = (parts[-2], parts[-1]) if len(parts) > 3 else ("", "")
        digest = name
        if kind == "manifests" and not name.startswith("sha256:"):
            index = json.loads((self.folder / "index.json").read_text())
            tags = {
                each["annotations"]["org.opencontainers.image.ref.name"]: each["digest"] for each in index["manifests"]
            }
            digest = tags.get(name, "")
        if self.slow and kind == "blobs":
            time.sleep(60)
        path = self.folder / "blobs/sha256" / digest.removeprefix("sha256:")
        if self.path.strip("/") == "v2":
            self.reply(200, b"{}", "application/json", has_body)
        elif digest and path.is_file():
            self.reply(
                200,
                path.read_bytes(),
                MANIFEST if kind == "manifests" else "application/octet-stream",
                has_body,
                digest,
            )
        else:
            self.reply(
                404,
                b'{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}',
                "application/json",
                has_body,
            )

    def reply(self, code: int, body: bytes, kind: str, has_body: bool, digest: str = "") -> None:
        """Send one response."""
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if code == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="tests"')
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if has_body:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Write one line for each request, in a file whose lines the test counts."""
        print(self.command, getattr(self, "path", format), flush=True)


def serve(said: argparse.Namespace) -> None:
    """Serve until a signal ends the process."""
    kind = type("Served", (Handler,), {"folder": said.folder, "login": said.login, "slow": said.slow})
    server = ThreadingHTTPServer(("", said.port), kind)
    if said.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(said.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def main() -> None:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    making = verbs.add_parser("make")
    making.add_argument("folder", type=Path)
    making.add_argument("--root", type=Path, default=Path("/"))
    making.add_argument("--plain", action="store_true", help="a second image, tagged `plain`, without a working folder")
    making.add_argument("programs", nargs="+")
    serving = verbs.add_parser("serve")
    serving.add_argument("folder", type=Path)
    serving.add_argument("port", type=int)
    serving.add_argument("--login", default="")
    serving.add_argument("--slow", action="store_true")
    serving.add_argument("--certificate", default="", help="a file with key and certificate: TLS instead of plain HTTP")
    said = parser.parse_args()
    if said.verb == "make":
        print(make(said.folder, said.root, said.programs, said.plain))
    else:
        serve(said)


if __name__ == "__main__":
    main()
