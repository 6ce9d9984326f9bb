"""Writes a key pair in the format of ssh-keygen (PROTOCOL.key of OpenSSH).

The library that generates the key could write it too, but its serializers of all formats cost the operator 8 MiB of memory, a tenth of its memory.
"""

import base64
import struct
import textwrap

TYPE = b"ssh-ed25519"
MAGIC = b"openssh-key-v1\0"
BLOCK = 8


def public_line(public: bytes, comment: str) -> bytes:
    """Return the line of an Ed25519 public key, given as its 32 bytes."""
    return TYPE + b" " + base64.b64encode(_public(public)) + f" {comment}\n".encode()


def private_file(seed: bytes, public: bytes, check: bytes, comment: str) -> bytes:
    """Return the unencrypted private key; `seed` and `public` have 32 bytes, `check` has 4 random bytes."""
    secret = check * 2 + _public(public) + _text(seed + public) + _text(comment.encode())
    secret += bytes(range(1, 1 + -len(secret) % BLOCK))
    whole = MAGIC + _text(b"none") * 2 + _text(b"") + struct.pack(">I", 1) + _text(_public(public)) + _text(secret)
    lines = textwrap.wrap(base64.b64encode(whole).decode(), 70)
    return "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *lines, "-----END OPENSSH PRIVATE KEY-----", ""]).encode()


def _public(public: bytes) -> bytes:
    return _text(TYPE) + _text(public)


def _text(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content
