"""Validates SSH public keys as people paste them.

sshd silently skips a line that it cannot read, and then asks the user for a password that does not exist. So the spec refuses such a line. Source:
sshd(8), AUTHORIZED_KEYS FILE FORMAT.
"""

import base64
import binascii
import re

_TYPES = re.compile(
    r"(?:^|\s)((?:sk-)?(?:ssh-(?:ed25519|rsa|dss)|ecdsa-sha2-nistp(?:256|384|521))"
    r"(?:@openssh\.com)?(?:-cert-v01@openssh\.com)?)\s+(\S+)"
)


def fault_of(key: str) -> str | None:
    """Return the fault of one line of authorized_keys as a message, which never contains the key; None if sshd would accept the line."""
    if "PRIVATE KEY" in key:
        return "is a private key: replace it with the public key (the file that ends in .pub), and create a new pair"
    if "\n" in key.strip() or "\r" in key.strip():
        return "contains a line break: write one key per entry"
    match = _TYPES.search(_without_quotes(key.strip()))
    if match is None:
        return "is not an SSH public key: write one line such as ssh-ed25519 AAAA… name@host"
    try:
        blob = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError):
        return f"has a {match[1]} key that is truncated or damaged: paste the whole key again"
    return (
        None
        if _name_in(blob) == match[1]
        else f"has a key that does not match its type {match[1]}: paste the whole key again"
    )


def _without_quotes(line: str) -> str:
    """Return the line without the quoted texts of options; an unterminated text ends at the end of the line, so that each character is read once."""
    return re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*("|\\?$)', lambda found: "" if found[1] == '"' else found[0], line)


def _name_in(blob: bytes) -> str:
    """Return the type inside the key: a length of four bytes and the name."""
    length = int.from_bytes(blob[:4], "big")
    name = blob[4 : 4 + length]
    whole = len(blob) > 4 + length and len(name) == length
    return name.decode("ascii", "replace") if whole else ""
