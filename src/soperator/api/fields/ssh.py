"""SSH public keys as people paste them.

sshd silently skips a line that it cannot read, and then asks the user for a password that does not exist. So keys are validated here first. Source:
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
    """Return what is wrong with one line of authorized_keys; None when sshd would accept it. The message never contains the key."""
    if "PRIVATE KEY" in key:
        return "is a private key: replace it by the public one (the file that ends in .pub), and make a new pair"
    if "\n" in key.strip() or "\r" in key.strip():
        return "holds a line break: give one key per entry"
    match = _TYPES.search(_without_quotes(key.strip()))
    if match is None:
        return "is not an SSH public key: give one line such as ssh-ed25519 AAAA… name@host"
    try:
        blob = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError):
        return f"has a {match[1]} key that is cut or damaged: paste it again, whole"
    return (
        None if _name_in(blob) == match[1] else f"has a key that is not of its type {match[1]}: paste it again, whole"
    )


def _without_quotes(line: str) -> str:
    """Return the line without the quoted texts of options; an unterminated one reaches to the end of the line, so that each character is read
    once.
    """
    return re.sub(r'"[^"\\]*(?:\\.[^"\\]*)*("|\\?$)', lambda found: "" if found[1] == '"' else found[0], line)


def _name_in(blob: bytes) -> str:
    """Return the type inside the key: a length of four bytes and the name."""
    length = int.from_bytes(blob[:4], "big")
    name = blob[4 : 4 + length]
    whole = len(blob) > 4 + length and len(name) == length
    return name.decode("ascii", "replace") if whole else ""
