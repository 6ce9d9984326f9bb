"""The requests to the API server that the start of a cluster needs, with the administrator's credentials."""

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.plan import API_PORT, HOST
from local.progress import Failure

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@dataclass(frozen=True)
class Api:
    """A client with the administrator's certificate; each request opens its own connection."""

    pki: Path

    def request(self, method: str, path: str, body: object = None, accept: str = "*/*") -> tuple[int, str]:
        """Return the status and the text of one response; raises ``OSError`` if the server does not answer."""
        context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        context.load_cert_chain(self.pki / "client-certificate.pem", self.pki / "client-key.pem")
        connection = http.client.HTTPSConnection(str(HOST), API_PORT, timeout=10, context=context)
        headers = {"User-Agent": "soperator-local", "Content-Type": "application/json", "Accept": accept}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        finally:
            connection.close()

    def is_ready(self) -> bool:
        """Return whether the API server reports that it is ready."""
        try:
            return self.request("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def get(self, path: str, table: bool = False) -> dict[str, Any] | None:
        """Return an object or a list, or the table that kubectl prints of it; None if it does not exist."""
        status, text = self.request("GET", path, accept=TABLE if table else "*/*")
        if status == 404:
            return None
        if status != 200:
            raise Failure(f"GET {path}: {status} {text[:500]}")
        found: dict[str, Any] = json.loads(text)
        return found

    def ensure(self, path: str, body: dict[str, Any]) -> None:
        """Create an object unless it exists; an existing object is not changed."""
        if self.get(f"{path}/{body['metadata']['name']}") is not None:
            return
        status, text = self.request("POST", path, body)
        if status not in {200, 201, 202, 409}:
            raise Failure(f"POST {path} {body['metadata']['name']}: {status} {text[:500]}")


def is_true(found: dict[str, Any], condition: str) -> bool:
    """Return whether a condition of an object is True."""
    conditions = found.get("status", {}).get("conditions", [])
    return any(entry["type"] == condition and entry["status"] == "True" for entry in conditions)
