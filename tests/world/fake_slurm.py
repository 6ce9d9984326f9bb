"""slurmrestd as far as the operator speaks with it, over tables of nodes and jobs that a test changes."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from soperator.slurm.hostlist import compress, expand


@dataclass
class FakeSlurm(httpx2.AsyncBaseTransport):
    """slurmrestd's few verbs over tables of nodes and jobs; `down` makes it unreachable."""

    nodes: dict[str, dict] = field(default_factory=dict)
    jobs: dict[int, dict] = field(default_factory=dict)
    down: bool = False
    reconfigured: Callable[[], None] = lambda: None
    asked: list[str] = field(default_factory=list)
    submitted: int = 0
    wall: Callable[[], float] = time.time

    async def handle_async_request(self, request):
        """Answer as slurmrestd does."""
        if self.down:
            raise httpx2.ConnectError("refused")
        path = request.url.path.split("v0.0.42/")[1]
        if path != "nodes/" and (request.method, path.partition("/")[0]) != ("GET", "node"):
            self.asked.append(f"{request.method} {path}")
        if path == "reconfigure/":
            self.reconfigured()
        if path == "job/submit":
            return self._submit(json.loads(await request.aread()))
        if request.method == "GET" and path.startswith("job/"):
            found = self.jobs.get(int(path.removeprefix("job/")))
            errors = [] if found else [{"error": "Invalid job id specified"}]
            return httpx2.Response(200 if found else 500, json={"jobs": [found] if found else [], "errors": errors})
        if request.method == "POST" and path.startswith("job/"):
            self.jobs[int(path.removeprefix("job/"))] |= json.loads(await request.aread())
            return httpx2.Response(200, json={"errors": []})
        name = path.removeprefix("node/")
        if path.startswith("node/") and name not in self.nodes:
            return httpx2.Response(500, json={"errors": [{"error": "Invalid node name specified"}]})
        if request.method == "POST":
            self._update(self.nodes[name], json.loads(await request.aread()))
        if request.method == "DELETE" and path.startswith("node/"):
            del self.nodes[name]
        if request.method == "DELETE" and path.startswith("job/"):
            self._end(int(path.removeprefix("job/")), dict(request.url.params))
        told = [self.nodes[name]] if request.method == "GET" and path.startswith("node/") else list(self.nodes.values())
        answer = {"nodes": told, "jobs": list(self.jobs.values()), "errors": []}
        return httpx2.Response(200, json=answer)

    def _submit(self, body):
        """Take a job, which waits until a test runs it or ends it."""
        self.submitted += 1
        number, job = 100 + self.submitted, body["job"]
        self.jobs[number] = {
            "job_id": number,
            "name": job["name"],
            "job_state": ["PENDING"],
            "required_nodes": compress(job["required_nodes"]),
            "partition": job["partition"],
            "comment": job["comment"],
            "submit_time": {"set": True, "number": int(self.wall())},
            "script": body["script"],
        }
        return httpx2.Response(200, json={"job_id": number, "errors": []})

    def start(self, number):
        """Let a job that waits begin on its node."""
        job = self.jobs[number]
        job |= {"job_state": ["RUNNING"], "nodes": job["required_nodes"], "start_time": _at(self.wall())}
        for node in map(self.nodes.__getitem__, expand(job["nodes"])):
            node["state"] = ["ALLOCATED", *(each for each in node["state"] if each != "IDLE")]

    def ends(self, number, state="COMPLETED", said="soperator exit=0\n", age=0.0):
        """Let a job that runs end, with what its batch script writes into it, and say that it was so many seconds later."""
        job = self.jobs[number]
        job |= {"job_state": [state], "admin_comment": said, "end_time": _at(self.wall() + age)}
        for node in map(self.nodes.__getitem__, expand(job["nodes"])):
            node["state"] = ["IDLE", *(each for each in node["state"] if each != "ALLOCATED")]

    def _end(self, number, how):
        if "signal" not in how and "PENDING" in self.jobs[number]["job_state"]:
            self.jobs[number] |= {"job_state": ["CANCELLED"]}
        elif "signal" not in how:
            for node in map(self.nodes.__getitem__, expand(self.jobs.pop(number)["nodes"])):
                node["state"] = ["IDLE", *(each for each in node["state"] if each != "ALLOCATED")]

    def _update(self, node, body):
        states = body.get("state", [])
        if "DRAIN" in states:
            node["state"] = [*node["state"], "DRAIN"]
            node |= {"reason": body["reason"], "reason_changed_at": {"set": True, "number": int(self.wall())}}
        if "RESUME" in states:
            node["state"] = [each for each in node["state"] if each != "DRAIN"]  # 24.11 keeps the reason

    def run(self, number, name):
        """Make a job without a time limit run on a node."""
        limit = {"set": False, "infinite": True, "number": 0}
        self.jobs[number] = {"job_id": number, "job_state": ["RUNNING"], "nodes": name, "time_limit": limit}
        self.set(name, "ALLOCATED")

    def set(self, name, *states, reason=""):
        """Make a node be in these states."""
        self.nodes[name] = {"name": name, "state": list(states), "reason": reason}


def _at(moment):
    return {"set": True, "number": int(moment)}
