"""JSON web tokens for slurmrestd, signed with the cluster's key for each client, so that no token is stored.

HS256 over `sun` (the user), `iat` and `exp`, as Slurm's auth/jwt reads them. The time is an argument, which keeps the functions pure.
"""

import base64
import hashlib
import hmac
import json


def sign(key: bytes, user: str, now: int, lifetime: int) -> str:
    """Return a token for `user` that is valid from `now` for `lifetime` seconds.

    The claims have the order and the form of Slurm's own tokens, by which nginx counts the requests of a user (images/proxy/nginx.conf).
    """
    header = _encode(json.dumps({"alg": "HS256", "typ": "JWT"}).encode())
    claims = _encode(json.dumps({"exp": now + lifetime, "iat": now, "sun": user}, separators=(",", ":")).encode())
    signature = hmac.new(key, f"{header}.{claims}".encode(), hashlib.sha256).digest()
    return f"{header}.{claims}.{_encode(signature)}"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
