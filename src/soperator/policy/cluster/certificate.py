"""Validates the certificate in a Secret, because nginx reports a fault only in its log."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

#: The last part of a certificate's life, in which it should have been renewed.
_LATE = 0.1


@dataclass(frozen=True)
class Certificate:
    """The validity of a certificate in seconds since 1970, or the fault that prevents its use."""

    begins: float = 0.0
    ends: float = 0.0
    fault: str = ""


def read(content: Mapping[str, bytes]) -> Certificate:
    """Return the validity of the certificate in a Secret of type kubernetes.io/tls, or its fault; never raises."""
    from cryptography import x509  # 7 MiB, which a cluster without TLS does not need
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

    try:
        leaf = x509.load_pem_x509_certificates(content["tls.crt"])[0]
        key = load_pem_private_key(content["tls.key"], None)
    except KeyError as error:
        return Certificate(fault=f"it lacks {error.args[0]}")
    except (ValueError, TypeError) as error:
        return Certificate(fault=f"it cannot be read: {str(error).splitlines()[0]}")
    form = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    if leaf.public_key().public_bytes(*form) != key.public_key().public_bytes(*form):
        return Certificate(fault="tls.key is not the key of tls.crt")
    return Certificate(leaf.not_valid_before_utc.timestamp(), leaf.not_valid_after_utc.timestamp())


def fault(name: str, certificate: Certificate, now: float) -> str:
    """Return a message about the certificate's fault at this time; empty if it is valid."""
    if certificate.fault:
        return f"the certificate in Secret {name}: {certificate.fault}"
    ends = datetime.fromtimestamp(certificate.ends, UTC)
    if now >= certificate.ends:
        return f"the certificate in Secret {name} expired at {ends:%Y-%m-%d %H:%M} UTC: renew it"
    if now < certificate.begins:
        return (
            f"the certificate in Secret {name} is not valid before "
            f"{datetime.fromtimestamp(certificate.begins, UTC):%Y-%m-%d %H:%M} UTC: replace it, or wait"
        )
    if now > certificate.ends - (certificate.ends - certificate.begins) * _LATE:
        return f"the certificate in Secret {name} expires at {ends:%Y-%m-%d %H:%M} UTC and was not renewed: check its issuer"
    return ""
