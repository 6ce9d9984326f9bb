"""SSH public keys are read before sshd would skip them in silence."""

import time

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from soperator.api.fields.ssh import fault_of

ED25519 = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = ED25519.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


@pytest.mark.parametrize(
    "key",
    [
        PUBLIC,
        f"{PUBLIC} ada@example.org",
        f'from="10.0.0.0/8",command="echo ssh-rsa x" {PUBLIC} ada',
        generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode(),
    ],
)
def test_good_keys_have_no_fault(key: str) -> None:
    """Options and comments are part of the line."""
    assert fault_of(key) is None


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("", "is not an SSH public key"),
        ("ada@example.org", "is not an SSH public key"),
        (PUBLIC[:-6], "truncated"),
        (PUBLIC.replace("AAAA", "AAA!"), "truncated or damaged"),
        (PUBLIC.replace("ssh-ed25519 ", "ssh-rsa "), "does not match its type ssh-rsa"),
        (f"{PUBLIC}\n{PUBLIC}", "one key per entry"),
    ],
)
def test_bad_keys_are_told_apart(key: str, words: str) -> None:
    """Each fault has its own remedy."""
    assert words in (fault_of(key) or "")


def test_a_private_key_is_recognised_and_never_repeated() -> None:
    """The sentence holds nothing of the key."""
    private = ED25519.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    fault = fault_of(private) or ""
    assert "is a private key" in fault
    assert private[40:60] not in fault


@pytest.mark.parametrize("line", ['"' + '\\"' * 8191, '"' * 16384, "ssh-rsa" + " " * 16000 + '""', 'a="' * 5461])
def test_a_line_that_nobody_can_read_is_read_once(line: str) -> None:
    """A hundred of the longest, which one spec has room for, cost milliseconds: the operator serves others meanwhile."""
    began = time.process_time()
    assert all(fault_of(line) for _ in range(20))
    assert time.process_time() - began < 1.0
