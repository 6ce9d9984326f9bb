"""The token beside the exporter: made of the key as it is now, and put in place whole."""

import base64
import json

from soperator.agents.tokens import PERIOD, write

MINUTE = 60


def test_a_token_is_replaced_long_before_it_ends(tmp_path):
    """Five writes may fail, and the one that is there is still good."""
    key, to = tmp_path / "key", tmp_path / "token"
    key.write_bytes(b"secret")
    write(key, "slurmrest", to, 1000.0)
    assert claims(to)["exp"] > 1000 + 5 * PERIOD


def claims(file):
    part = file.read_text().strip().split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def test_a_token_is_for_its_user_and_for_minutes(tmp_path):
    """It can be read by the other container, and does not last."""
    key, to = tmp_path / "key", tmp_path / "token"
    key.write_bytes(b"secret")
    write(key, "slurmrest", to, 1000.0)
    said = claims(to)
    assert said["sun"] == "slurmrest"
    assert said["iat"] <= 1000 < said["exp"] <= 1000 + 15 * MINUTE
    assert to.stat().st_mode & 0o777 == 0o444
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_after_a_rotation_the_next_token_is_signed_with_the_new_key(tmp_path):
    """Nobody has to be told."""
    key, to = tmp_path / "key", tmp_path / "token"
    key.write_bytes(b"old")
    write(key, "slurmrest", to, 1000.0)
    before = to.read_text()
    key.write_bytes(b"new")
    write(key, "slurmrest", to, 1000.0)
    assert to.read_text() != before
