"""`scontrol` in slurmctld's container, over the fake Slurm's table: what is said of nodes that sleep."""

from dataclasses import dataclass, field

from soperator.kube.exec import Result
from soperator.slurm.hostlist import expand
from tests.world.fake_slurm import FakeSlurm, Refused


@dataclass
class Scontrol:
    """create, delete and update of nodes; `said` is every command. A node that is told to wake, or to sleep, begins to do so at once."""

    slurm: FakeSlurm
    said: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)
    refused_partitions: int = 0

    async def __call__(self, _api, _target, command):
        """Do what the command says, and say nothing, as scontrol does."""
        words = command[4:]
        self.said.append(" ".join(words))
        try:
            if words[0] == "requeue":
                self.slurm.requeue(words[1])
                return Result(0, "", "")
            found = dict(word.split("=", 1) for word in words[1:])
            if "PartitionName" in found:
                return self.update_partition(found["PartitionName"])
            if "is awake by now" in command[2]:
                self.guard(expand(found["NodeName"]))
            for name in expand(found["NodeName"]):
                self.do(words[0], name, found)
        except Refused as refused:
            return Result(1, "", f"slurm_update error: {refused}\n")
        return Result(0, "", "")

    def update_partition(self, name):
        """What slurmctld does to a partition that it knows."""
        self.partitions.append(name)
        if self.refused_partitions:
            self.refused_partitions -= 1
            return Result(1, "", "slurm_update error: Socket timed out on send/recv operation\n")
        return Result(0, "", "")

    def guard(self, names):
        """What the command that gives nodes up asks right before."""
        for name in names:
            if not {"POWERED_DOWN", "POWERING_DOWN", "POWERING_UP", "POWER_UP"} & set(self.slurm.nodes[name]["state"]):
                raise Refused(500, f"{name} is awake by now")

    def do(self, verb, name, found):
        """One node."""
        if verb == "create" and name in self.slurm.nodes:
            raise Refused(500, "Slurm has a record of one of them already")
        if verb == "create":
            size = {"cpus": int(found["CPUs"]), "real_memory": int(found["RealMemory"])}
            self.slurm.set(name, "IDLE", "CLOUD", "DYNAMIC_NORM", "POWERED_DOWN")
            fields = {"features": found["Feature"].split(","), "weight": int(found.get("Weight", 1))}
            self.slurm.nodes[name] |= size | fields | {"gres": found.get("Gres", "")}
        elif verb == "delete":
            self.slurm.remove(name)
        else:
            self.update(self.slurm.nodes[name], found)

    def update(self, node, found):
        """One state that is asked for."""
        states = set(node["state"])
        match found["State"]:
            case "DOWN":
                self.slurm.end_jobs(node["name"])
                states = set(node["state"]) - {"IDLE", "ALLOCATED"} | {"DOWN"}
                moment = {"set": True, "number": int(self.slurm.wall())}
                node |= {"reason": found["Reason"], "reason_set_by_user": "slurm", "reason_changed_at": moment}
            case "IDLE":
                states = states - {"DOWN"} | {"IDLE"}
            case "RESUME":
                states = states - {"DOWN"} | {"IDLE", "NOT_RESPONDING"}
            case "POWER_DOWN" if "ALLOCATED" in states:  # it sleeps when its jobs have ended
                states = states | {"POWER_DOWN"}
            case "POWER_DOWN":
                states = states - {"POWERING_UP", "POWERED_DOWN", "NOT_RESPONDING"} | {"POWERING_DOWN"}
            case "POWER_UP":
                states = states - {"POWERED_DOWN"} | {"POWERING_UP"}
        node["state"] = sorted(states)

    def wake(self, *names):
        """What a job that needs them makes of nodes."""
        for name in names:
            states = set(self.slurm.nodes[name]["state"]) - {"IDLE", "POWERED_DOWN"}
            self.slurm.nodes[name]["state"] = sorted(states | {"ALLOCATED", "POWERING_UP"})

    def register(self, *names, state="ALLOCATED"):
        """What slurmd of a node that wakes does."""
        for name in names:
            self.slurm.nodes[name]["state"] = [state, "CLOUD", "DYNAMIC_NORM"]
            self.slurm.nodes[name]["last_busy"] = {"set": True, "number": int(self.slurm.wall())}

    def doze_off(self):
        """What SuspendTimeout does."""
        for node in self.slurm.nodes.values():
            if "POWERING_DOWN" in node["state"]:
                node["state"] = sorted(set(node["state"]) - {"POWERING_DOWN"} | {"POWERED_DOWN"})
