"""slurmrestd as far as the operator speaks with it, over tables of nodes and jobs that a test changes.

What it answers and what it refuses is held against a real slurmctld and slurmrestd by the questions of tests/contract.py.
"""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import httpx2

from soperator.slurm.hostlist import compress, expand
from soperator.slurm.node import REASON_PREFIX
from soperator.slurmrest.parser import PARSERS

_HOLD = {"ALLOCATED", "MIXED", "COMPLETING"}
_BASES = {"IDLE", "ALLOCATED", "MIXED", "DOWN", "UNKNOWN", "FUTURE", "ERROR"}
_KEEP_NODES = {"RUNNING", "SUSPENDED"}


class Refused(Exception):  # noqa: N818
    """What slurmctld answers instead of obeying."""

    def __init__(self, status, error):
        super().__init__(error)
        self.status = status


@dataclass
class FakeSlurm(httpx2.AsyncBaseTransport):
    """slurmrestd's few verbs over tables of nodes and jobs; `down` makes it unreachable.

    `key` signs the tokens that it takes. Nodes clean up for `epilog` seconds after a job, and answer `silence` seconds after they were resumed.
    """

    nodes: dict[str, dict] = field(default_factory=dict)
    jobs: dict[int, dict] = field(default_factory=dict)
    down: bool = False
    reconfigured: Callable[[], None] = lambda: None
    asked: list[str] = field(default_factory=list)
    submitted: int = 0
    wall: Callable[[], float] = time.time
    key: bytes = b"key"
    signalled: list[int] = field(default_factory=list)
    epilog: float = 0.0
    silence: float = 0.0
    unchanged: int = 0
    version: str = "24.11.5"
    refuses_fields: str = ""
    _due: list[tuple[float, str, str]] = field(default_factory=list)
    _shown: str = ""
    _changed: int = 0

    async def handle_async_request(self, request):
        """Answer as slurmrestd does."""
        if self.down:
            raise httpx2.ConnectError("refused")
        parser, path = request.url.path.removeprefix("/slurm/").split("/", 1)
        if path == "ping/":
            return httpx2.Response(200 if parser == PARSERS[0] else 404, json={"errors": []})
        if (request.method, path) != ("GET", "nodes/") and (request.method, path.partition("/")[0]) != ("GET", "node"):
            self.asked.append(f"{request.method} {path}")
        self._clean_up()
        body = await request.aread()
        try:
            user = self._user(request.headers)
            return self._answer(request, path, json.loads(body) if body else {}, user)
        except Refused as refused:
            return httpx2.Response(refused.status, json={"errors": [{"error": str(refused)}]})

    def _user(self, headers):
        """Who signed the request."""
        token = headers.get("X-SLURM-USER-TOKEN", "")
        if token.count(".") != 2:
            raise Refused(401, "Authentication failure")
        signed, _, signature = token.rpartition(".")
        made = hmac.new(self.key, signed.encode(), hashlib.sha256).digest()
        if base64.urlsafe_b64encode(made).rstrip(b"=").decode() != signature:
            raise Refused(511, "Protocol authentication error")
        claims = signed.partition(".")[2]
        return json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["sun"]

    def _answer(self, request, path, body, user):
        what, _, name = path.partition("/")
        if what == "nodes" and request.method == "POST":
            return self._set_fields(body)
        if what == "nodes":
            return self._all(dict(request.url.params))
        if what == "node":
            return self._about_node(request.method, name, body, user)
        if path == "job/submit":
            return self._submit(body["job"], body["script"])
        if what == "job":
            return self._about_job(request, name, body)
        if what == "reconfigure":
            self.reconfigured()
        return httpx2.Response(200, json={"jobs": list(self.jobs.values()), "errors": []})

    def _about_node(self, method, name, body, user):
        if method == "GET":
            return self._one(name)
        if method == "DELETE":
            self.remove(name)
        else:
            self._update(self._known(name), body, user)
        return httpx2.Response(200, json={"errors": []})

    def _about_job(self, request, words, body):
        """A job alone, or all of an array; slurmrestd says that all is well where one is to end that it does not know."""
        if request.method == "DELETE":
            for number in self.meant(words):
                if "signal" in request.url.params:
                    self.signalled.append(number)
                else:
                    self._cancel(number)
            return httpx2.Response(200, json={"errors": []})
        found = self.meant(words)
        if not found:
            raise Refused(404 if request.method == "GET" else 500, "Invalid job id specified")
        self.jobs[found[0]] |= body
        return httpx2.Response(200, json={"jobs": [self.jobs[number] for number in found], "errors": []})

    def meant(self, words):
        """The numbers of the jobs that are meant by a number, or by the name of a task.

        The number of an array, which its last task has too, means all its tasks; that of the leader of a heterogeneous job means all its components.
        """
        of, _, task = words.partition("_")
        if parts := [number for number, each in self.jobs.items() if _het(each) == int(of)]:
            return parts
        tasks = {
            each["array_task_id"]["number"]: number for number, each in self.jobs.items() if _array(each) == int(of)
        }
        if task:
            return [tasks[int(task)]] if int(task) in tasks else []
        alone = [int(of)] if int(of) in self.jobs else []
        return [*alone, *(number for number in tasks.values() if number not in alone)]

    # -- nodes --------------------------------------------------------------------------------------------------------

    def _all(self, params):
        """All nodes, or 304 where none has changed since; 24.11 fails where some have, for it asks for the partitions too."""
        now, shown = int(self.wall()), json.dumps(self.nodes)
        if shown != self._shown:
            self._shown, self._changed = shown, now
        if since := int(params.get("update_time", 0)):
            if since - 1 < self._changed:
                raise Refused(500, "Unspecified error")
            self.unchanged += 1
            return httpx2.Response(304)
        meta = {"slurm": {"release": self.version}}
        answer = {"nodes": list(self.nodes.values()), "last_update": _at(now), "errors": [], "meta": meta}
        return httpx2.Response(200, json=answer)

    def _one(self, name):
        if name not in self.nodes:
            raise Refused(200, "No error")
        answer = {"nodes": [self.nodes[name]], "last_update": _at(self.wall()), "errors": []}
        return httpx2.Response(200, json=answer)

    def _known(self, name):
        if name not in self.nodes:
            raise Refused(500, "Invalid node name specified")
        return self.nodes[name]

    def _set_fields(self, body):
        """Features and weight of several nodes; the nodes before one that slurmctld does not know are updated (24.11)."""
        if self.refuses_fields:
            raise Refused(500, self.refuses_fields)
        for name in (each for names in body["name"] for each in expand(names)):
            node = self._known(name)
            active = body.get("features_act", node.get("features", []))
            if "features" in body and not set(active) <= set(body["features"]):
                raise Refused(500, "Active features not subset of available features")
            node |= {"features": body["features"]} if "features" in body else {}
            node |= {"weight": body["weight"]["number"]} if "weight" in body else {}
        return httpx2.Response(200, json={"errors": []})

    def remove(self, name):
        """Forget a node, unless a job or a reservation holds it: a job that is suspended does not."""
        if set(self._known(name)["state"]) & (_HOLD | {"RESERVED", "MAINTENANCE"}):
            raise Refused(500, "Requested nodes are busy")
        del self.nodes[name]

    def _update(self, node, body, user):
        states, was_out = body.get("state", []), "DRAIN" in node["state"]
        for state in states:
            match state:
                case "DRAIN":
                    self.change(node, add={"DRAIN"})
                case "DOWN":
                    self.end_jobs(node["name"])
                    self.change(node, add={"DOWN"}, drop=_BASES)
                case "RESUME":
                    self._resume(node)
        if "reason" in body and not (was_out and node.get("reason") == body["reason"]):
            moment = _at(self.wall())
            node |= {"reason": body["reason"], "reason_changed_at": moment, "reason_set_by_user": user}

    def _resume(self, node):
        """Lift a drain and a DOWN; the reason stays (24.11), and slurmd has to answer first."""
        self.change(node, add={"IDLE"} if "DOWN" in node["state"] else set(), drop={"DRAIN", "DOWN", "FAIL"})
        if self.silence:
            self.change(node, add={"NOT_RESPONDING"})
            self._due.append((self.wall() + self.silence, node["name"], "NOT_RESPONDING"))

    def administrator(self, name, state, reason="", by="root"):
        """`scontrol update` by root, or by a person for whom slurmrestd has no name."""
        self._update(self.nodes[name], {"state": [state]} | ({"reason": reason} if reason else {}), by)

    def change(self, node, add=frozenset(), drop=frozenset()):
        """Change the states of a node; its base comes first, its flags in the order in which they came."""
        found = [each for each in node["state"] if each not in {*add, *drop}] + sorted(add)
        node["state"] = sorted(found, key=lambda each: each not in _BASES)

    def _clean_up(self):
        """Take off what has lasted its time: the flag of an epilog, that of a slurmd that has yet to answer."""
        over = [each for each in self._due if each[0] <= self.wall()]
        self._due = [each for each in self._due if each not in over]
        for _, name, flag in over:
            if name in self.nodes:
                self.change(self.nodes[name], drop={flag})

    def set(self, name, *states, reason=""):
        """Make a node be in these states, with a reason in the operator's words that it has signed."""
        signed = {"reason_set_by_user": "slurm"} if reason.startswith(REASON_PREFIX) else {}
        fields = {key: value for key, value in self.nodes.get(name, {}).items() if key in ("features", "weight")}
        self.nodes[name] = {"name": name, "state": list(states), "reason": reason} | fields | signed

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def _submit(self, job, script):
        """Take a job, which waits until a test runs it or ends it."""
        self.submitted += 1
        number = 100 + self.submitted
        self.jobs[number] = {
            "job_id": number,
            "name": job["name"],
            "user_id": 0,
            "job_state": ["PENDING"],
            "required_nodes": compress(job["required_nodes"]),
            "partition": job["partition"],
            "comment": job["comment"],
            "submit_time": _at(self.wall()),
            "script": script,
        }
        return httpx2.Response(200, json={"job_id": number, "errors": []})

    def start(self, number):
        """Let a job that waits begin on its nodes."""
        job = self.jobs[number]
        job |= {"job_state": ["RUNNING"], "nodes": job["required_nodes"], "start_time": _at(self.wall())}
        for name in expand(job["nodes"]):
            self.change(self.nodes[name], add={"ALLOCATED"}, drop={"IDLE", "MIXED"})

    def ends(self, number, state="COMPLETED", said="soperator exit=0\n", age=0.0):
        """Let a job that runs end, with what its batch script writes into it, and say that it was so many seconds later."""
        job = self.jobs[number]
        job |= {"job_state": [state], "admin_comment": said, "end_time": _at(self.wall() + age)}
        self._free(job)

    def run(self, number, *names, requeue=False, batch=False):
        """Make a job without a time limit run on whole nodes."""
        limit = {"set": False, "infinite": True, "number": 0}
        job = {"job_id": number, "job_state": ["RUNNING"], "nodes": compress(names), "time_limit": limit}
        self.jobs[number] = job | {"requeue": requeue, "batch_flag": batch}
        for name in names:
            self.set(name, "ALLOCATED")

    def run_array(self, number, *names, **words):
        """Make an array run, one task on each of these nodes; the last task has the array's number. Returns the numbers of the tasks."""
        numbers = [*range(number + 1, number + len(names)), number]
        for task, (each, name) in enumerate(zip(numbers, names, strict=True)):
            self.run(each, name, **words)
            self.jobs[each] |= {"array_job_id": _whole(number), "array_task_id": _whole(task)}
        return numbers

    def run_het(self, number, *names, requeue=False):
        """Make a heterogeneous batch job run, one component on each of these nodes; the first is its leader. Returns their numbers."""
        numbers = [*range(number, number + len(names))]
        for offset, (each, name) in enumerate(zip(numbers, names, strict=True)):
            self.run(each, name, requeue=requeue, batch=offset == 0)
            self.jobs[each] |= {"het_job_id": _whole(number), "het_job_offset": _whole(offset)}
        return numbers

    def suspend(self, number):
        """`scontrol suspend`: the job keeps its nodes, which look idle."""
        self.jobs[number]["job_state"] = ["SUSPENDED"]
        for name in expand(self.jobs[number]["nodes"]):
            self.change(self.nodes[name], add={"IDLE"}, drop={"ALLOCATED", "MIXED"})

    def requeue(self, words):
        """`scontrol requeue`: a batch job waits for its turn again; by the number of an array all its tasks do, also those that have ended.

        A heterogeneous job does so as a whole, by its leader, which alone has a batch script.
        """
        for number in self.meant(words):
            job = self.jobs[number]
            if not (job["requeue"] and self.jobs[_het(job) or number]["batch_flag"]) or _het(job) not in (
                0,
                int(words),
            ):
                raise Refused(500, "Requested operation is presently disabled")
            self._free(job)
            job |= {"job_state": ["PENDING"], "nodes": ""}

    def _cancel(self, number):
        """End a job for good."""
        job = self.jobs.get(number, {"job_state": []})
        if _KEEP_NODES & set(job["job_state"]):
            job["job_state"] = ["CANCELLED"]
            self._free(job)
        elif "PENDING" in job["job_state"]:
            job["job_state"] = ["CANCELLED"]

    def end_jobs(self, name):
        """What becomes of the jobs of a node that goes DOWN."""
        for job in list(self.jobs.values()):
            if _KEEP_NODES & set(job["job_state"]) and name in expand(job["nodes"]):
                may = job.get("requeue") and job.get("batch_flag")
                self._free(job)
                job.update({"job_state": ["PENDING"], "nodes": ""} if may else {"job_state": ["NODE_FAIL"]})

    def _free(self, job):
        """Give back the nodes of a job, but for those that another one holds."""
        others = [each for each in self.jobs.values() if each is not job and "RUNNING" in each["job_state"]]
        held = {name for each in others for name in expand(each.get("nodes", ""))}
        for name in expand(job.get("nodes", "")):
            node = self.nodes.get(name)
            if node and name not in held and "DOWN" not in node["state"]:
                self.change(node, add={"IDLE", *(["COMPLETING"] if self.epilog else [])}, drop={"ALLOCATED", "MIXED"})
                self._due.append((self.wall() + self.epilog, name, "COMPLETING"))
                if "POWER_DOWN" in node["state"]:
                    self.change(node, add={"POWERING_DOWN"}, drop={"POWER_DOWN"})


def _at(moment):
    return {"set": True, "number": int(moment)}


def _whole(number):
    return {"set": True, "infinite": False, "number": number}


def _het(job):
    return job.get("het_job_id", {"number": 0})["number"]


def _array(job):
    return job.get("array_job_id", {"number": 0})["number"]
