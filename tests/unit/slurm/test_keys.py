"""slurm.jwks at each stage of a rotation."""

import base64
import json

from soperator.slurm.keys import RotationRecord, known, rotated


def test_a_key_without_an_id_goes_on_signing_while_the_new_one_is_made_known():
    """Daemons that have slurm.key alone send no id, and are read by the default key: it has to be the same."""
    now = rotated({"slurm.key": b"old" * 9}, RotationRecord("a", "Known"), b"new" * 9)
    found = json.loads(now["slurm.jwks"])["keys"]
    assert [(each["kid"], each.get("use")) for each in found] == [(":first", "default"), ("a", None)]
    assert {(each["alg"], each["kty"]) for each in found} == {("HS256", "oct")}
    assert base64.b64decode(found[1]["k"]) == b"new" * 9
    assert now["slurm.key"] == b"old" * 9


def test_then_the_new_key_signs_and_at_last_is_alone():
    """slurm.key is always the key that signs; the material that comes with later stages is not looked at."""
    now = rotated({"slurm.key": b"old" * 9}, RotationRecord("a", "Known"), b"new" * 9)
    signing = rotated(now, RotationRecord("a", "Signing"), b"other" * 9)
    assert known(signing) == [("a", b"new" * 9), (":first", b"old" * 9)]
    assert rotated(signing, RotationRecord("a", "Settling"), b"") == signing
    assert rotated(signing, RotationRecord("a", "Signing"), b"") == signing
    alone = rotated(signing, RotationRecord("a", "Alone"), b"")
    assert (known(alone), alone["slurm.key"]) == ([("a", b"new" * 9)], b"new" * 9)
    assert known(rotated(alone, RotationRecord("b", "Known"), b"newer" * 9)) == [("a", b"new" * 9), ("b", b"newer" * 9)]


def test_a_file_that_a_person_wrote_is_read_as_slurm_reads_it():
    """The default need not be the first, and base64 may be that of URLs, without padding."""
    keys = [{"kid": "x", "k": "-_-_AAAA"}, {"kid": "y", "k": "AAAAAA", "use": "default"}]
    content = {"slurm.jwks": json.dumps({"keys": keys}).encode()}
    assert known(content) == [("y", bytes(4)), ("x", b"\xfb\xff\xbf\0\0\0")]


def test_munge_has_one_key():
    """The new one lies ready, and is then taken as it is."""
    laid = rotated({"munge.key": b"old"}, RotationRecord("a", "Laid"), b"new")
    assert laid == {"munge.key": b"new"}
    assert rotated(laid, RotationRecord("a", "Taken"), b"other") == laid
