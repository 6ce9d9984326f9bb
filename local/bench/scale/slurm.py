"""A fake slurmctld behind slurmrestd: a table of nodes without jobs, and responses of data parser v0.0.42 about them.

Each node's record is complete (`node.json` is a record of Slurm 24.11.5), because parsing it is most of the cost of a poll. A request with
`update_time` gets the answer of 24.11: 304 if nothing has changed since the second before it, and otherwise an error, because 24.11
requests the partitions with the same time, and those have not changed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soperator.slurm.hostlist import expand

Json = dict[str, Any]

_RECORD: Json = json.loads(Path(__file__).with_name("node.json").read_text())
_UNCHANGED_PARTITIONS = {"errors": [{"error": "Unspecified error", "description": "Unable to query partitions"}]}


@dataclass
class Node:
    """One node's record: its states, and its reason with author and time; `text` is the whole record as JSON."""

    name: str
    states: list[str] = field(default_factory=lambda: ["IDLE", "DYNAMIC_NORM"])
    reason: str = ""
    reason_at: int = 0
    started: int = 0
    features: list[str] = field(default_factory=list)
    weight: int = 1
    text: bytes = b""

    def __post_init__(self) -> None:
        self.write()

    def write(self) -> None:
        """Render the text again."""
        at = {"set": True, "infinite": False, "number": self.reason_at}
        started = {"set": True, "infinite": False, "number": self.started}
        features = self.features or [self.name.rpartition("-")[0]]
        fields = {"features": features, "active_features": features, "weight": self.weight}
        names = fields | {"name": self.name, "hostname": self.name, "address": self.name, "slurmd_start_time": started}
        record = {"state": self.states, "reason": self.reason, "reason_changed_at": at, "reason_set_by_user": "slurm"}
        self.text = json.dumps(_RECORD | names | (record if self.reason else {"state": self.states}), indent=2).encode()


@dataclass
class Slurm:
    """One cluster's nodes by name; `changed` is slurmctld's last_node_update, in seconds since 1970."""

    nodes: dict[str, Node] = field(default_factory=dict)
    changed: int = 0

    def register(self, name: str, now: float) -> None:
        """Add a record when a slurmd registers, unless there is one, as slurmctld does."""
        if name not in self.nodes:
            self.nodes[name] = Node(name, started=int(now))
            self.changed = int(now)

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: Json, now: float) -> tuple[int, bytes]:
        """Answer a request with the HTTP status and the body; `path` is the part after the parser's version."""
        kind, _, name = path.strip("/").partition("/")
        if kind == "nodes" and verb == "POST":
            return self._set_fields(body, int(now))
        if kind == "nodes":
            return self._list(int(query.get("update_time", 0)), int(now))
        if kind == "node" and name not in self.nodes:
            return 500, _encode({"errors": [{"error": "Invalid node name specified"}]})
        if kind == "node" and verb == "GET":
            return 200, b'{"nodes":[' + self.nodes[name].text + b'],"errors":[]}'
        if kind == "node" and verb == "DELETE":
            del self.nodes[name]
            self.changed = int(now)
        elif kind == "node":
            self._update(self.nodes[name], body, int(now))
        return 200, _encode({"jobs": [], "errors": []})

    def _list(self, since: int, now: int) -> tuple[int, bytes]:
        if since:
            return (304, b"") if since - 1 >= self.changed else (500, _encode(_UNCHANGED_PARTITIONS))
        last = b'"last_update":{"set":true,"infinite":false,"number":%d}' % now
        return 200, b'{"nodes":[' + b",".join(
            node.text for node in self.nodes.values()
        ) + b'],"errors":[],' + last + b"}"

    def _set_fields(self, body: Json, now: int) -> tuple[int, bytes]:
        for name in (each for names in body["name"] for each in expand(names)):
            node = self.nodes[name]
            node.features, node.weight = body.get("features", node.features), body["weight"]["number"]
            node.write()
        self.changed = now
        return 200, _encode({"errors": []})

    def _update(self, node: Node, body: Json, now: int) -> None:
        wanted = body.get("state", [])
        if "DRAIN" in wanted and "DRAIN" not in node.states:
            node.states = [*node.states, "DRAIN"]
        if "RESUME" in wanted:
            node.states = [each for each in node.states if each != "DRAIN"]
        if "reason" in body:
            node.reason, node.reason_at = body["reason"], now
        node.write()
        self.changed = now


def _encode(answer: Json) -> bytes:
    return json.dumps(answer).encode()
