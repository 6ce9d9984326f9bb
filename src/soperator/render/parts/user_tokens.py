"""Secrets with a user's token, which the operator renews. The token is an argument, so that the functions stay pure."""

import base64
import json
from collections.abc import Mapping

from soperator.render.parts import labels, pod
from soperator.render.parts.model import Cluster, Object
from soperator.slurm.user_tokens import TokenNote

ROLE = "token"


def render_token(cluster: Cluster, name: str, token: str, note: TokenNote) -> Object:
    """Return the Secret with a token and its record."""
    meta = pod.metadata(cluster, name, ROLE)
    said = {"user": note.user, "ends": round(note.ends), "lifetime": round(note.lifetime), "key": note.key}
    meta["annotations"] = {labels.TOKEN: json.dumps(said)}
    content = {"token": token, "user": note.user}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "data": data}


def read_note(annotations: Mapping[str, str]) -> TokenNote | None:
    """Return the record of the token on a Secret; None if it is missing or invalid."""
    try:
        said = json.loads(annotations[labels.TOKEN])
        return TokenNote(str(said["user"]), float(said["ends"]), float(said["lifetime"]), str(said["key"]))
    except (KeyError, TypeError, ValueError):
        return None
