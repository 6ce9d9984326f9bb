"""What is wrong with a certificate is said before a client says it."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from soperator.policy.cluster.certificate import fault, read

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86400


@pytest.fixture(scope="module")
def content():
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "rest")])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, BEGIN, BEGIN + timedelta(days=100))
    return {
        "tls.crt": made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM),
        "tls.key": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    }


@pytest.mark.parametrize(
    ("day", "words"),
    [
        (-1, "is not valid before 2026-01-01"),
        (50, ""),
        (91, "expires at 2026-04-11 00:00 UTC and was not renewed"),
        (100, "expired at"),
    ],
)
def test_it_is_told_by_its_time(content, day, words):
    """Too early, in its last tenth, and over; in between there is nothing to say."""
    reported = fault("tls", read(content), BEGIN.timestamp() + day * DAY)
    assert words in reported
    assert bool(reported) is bool(words)


def test_what_cannot_be_used_is_named(content):
    """A missing entry, a text that is none, and the key of another."""
    other = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for wrong, words in (
        ({"tls.crt": content["tls.crt"]}, "it lacks tls.key"),
        (content | {"tls.crt": b"none"}, "it cannot be read"),
        (content | {"tls.key": b"none"}, "it cannot be read"),
        (content | {"tls.key": other}, "tls.key is not the key of tls.crt"),
    ):
        assert fault("tls", read(wrong), BEGIN.timestamp() + DAY).startswith(f"the certificate in Secret tls: {words}")
