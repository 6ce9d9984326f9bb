"""Key pairs as OpenSSH writes them, read back by others."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_ssh_private_key, load_ssh_public_key

from soperator.render.parts.openssh import private_file, public_line

COMMENTS = ["", "demo", "a-cluster-with-a-longer-name"]


@pytest.mark.parametrize("comment", COMMENTS)
def test_the_library_reads_the_same_key_back(comment: str) -> None:
    """Whatever the padding that the comment leaves, both files hold the key that they were made of."""
    key = Ed25519PrivateKey.generate()
    seed, public = key.private_bytes_raw(), key.public_key().public_bytes_raw()
    private = load_ssh_private_key(private_file(seed, public, b"abcd", comment), password=None)
    assert isinstance(private, Ed25519PrivateKey)
    assert private.private_bytes_raw() == seed
    assert load_ssh_public_key(public_line(public, comment)) == key.public_key()


def test_ssh_keygen_reads_the_private_file(tmp_path: Path) -> None:
    """OpenSSH itself derives the public line, comment and all, from the private file."""
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    public = key.public_key().public_bytes_raw()
    file = tmp_path / "key"
    file.write_bytes(private_file(bytes(range(32)), public, b"\0\1\2\3", "demo"))
    file.chmod(0o600)
    said = subprocess.run(["ssh-keygen", "-y", "-f", file], capture_output=True, check=True)
    assert said.stdout == public_line(public, "demo")
