"""Runs commands inside pods, for what neither Kubernetes nor slurmrestd 24.11 can do or report.

- scontrol beside slurmctld requeues a job: the flag of the REST API is for federations and cancels the job, and a node set DOWN requeues the job but
  leaves its processes behind.
- Which configuration slurmctld runs with, and which one sackd serves to the commands of its pod.
- scontrol creates, puts to sleep and wakes nodes with power saving, and sets them DOWN: many in one command, while the REST API takes one node per
  request.
- A SIGHUP makes slurmd register, because a slurmctld that has lost the node's record cannot contact it.
- sacctmgr reads and writes accounts and QOS (`reconcile/associations/sacctmgr_client`).
- slurmdbd's last message about its database, while it does not answer.
- Whether the jail of a worker can be entered, while its port does not answer.
- images/slurm/keys gives a daemon new keys.

A failed exec has no result, and counts as not done.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from soperator.kube import exec as remote
from soperator.kube.api import Api
from soperator.kube.errors import KubeError
from soperator.policy.cluster.slurm_config import ConfigProgress
from soperator.policy.workers.types import Verb
from soperator.reconcile.io.jail_watch_client import reason
from soperator.render.parts import names
from soperator.render.parts.model import Cluster
from soperator.render.parts.paths import BUNDLE, PLAN_PATH
from soperator.slurmrest.client import SlurmError

#: Runs a command in a container, as `kube.exec.exec` does.
Run = Callable[[Api, remote.Target, Sequence[str]], Awaitable[remote.Result]]

_SCONTROL = "/opt/soperator/bin/scontrol"
#: A command that is executed in a container has the container's environment, and not that of the entry script.
_KEYS = "SLURM_SACK_KEY=/run/soperator/keys/slurm.key SLURM_SACK_JWKS=/run/soperator/keys/slurm.jwks"
_WITH_KEYS = f'[ "$SOPERATOR_AUTH" != slurm ] || export {_KEYS}\n'

_MARK = r"^SlurmctldParameters *=.*generation=\([0-9a-f]*\).*"
#: Prints one line for the pod's files, and one for slurmctld: each the generation in SlurmctldParameters.
_CONTROLLER = rf"""{_WITH_KEYS}
sed -n 's/{_MARK}/mounted \1/p' /etc/slurm/slurm.conf | tail -n 1
timeout 5 "$0" show config 2>/dev/null | sed -n 's/{_MARK}/running \1/p'
"""
_LOGIN = rf"sed -n 's/{_MARK}/\1/p' /run/slurm/conf/slurm.conf | tail -n 1"
#: The reason of a node that was just created; the policy resumes it if it is DOWN.
NEW = "soperator: it is new"
#: getent exits with 2 for an unknown name.
_UID = 'line=$(getent passwd -- "$1") || { [ $? = 2 ] && exit 0; exit 1; }; echo "$line" | cut -d: -f3'
#: Checks for existing records right before, including FUTURE ones, which slurmrestd does not list; without an answer it creates none
#: (docs/decisions/0101).
_CREATE = rf"""found=$(timeout 10 {_SCONTROL} --future -o show node "${{2#NodeName=}}" 2>&1) || [ $? != 124 ] || found='error: no answer'
case $found in
*NodeName=*) echo "Slurm has a record of one of them already; scontrol --future show node shows it" >&2; exit 1 ;;
*error:*) echo "whether Slurm has records of them is not known: $found" >&2; exit 1 ;;
esac
{_SCONTROL} "$@" || exit
made=$(timeout 10 {_SCONTROL} -o show node "${{2#NodeName=}}") || exit
free=$(echo "$made" | sed -En '/ State=[^ ]*(ALLOCATED|MIXED)/!s/^NodeName=([^ ]*) .*/\1/p' | tr '\n' ,)
[ -n "$free" ] || exit 0
{_SCONTROL} update "NodeName=${{free%,}}" State=DOWN "Reason={NEW}" || exit
exec {_SCONTROL} update "NodeName=${{free%,}}" State={Verb.ALLOW}
"""
#: A node that neither sleeps nor wakes has registered since the decision, and may have a job, which DOWN would end.
_DENY = rf"""found=$(timeout 10 {_SCONTROL} -o show node "${{2#NodeName=}}" 2>&1) || {{ echo "$found" >&2; exit 1; }}
awake=$(echo "$found" | sed -En '/ State=[^ ]*POWER(ED_DOWN|ING_DOWN|ING_UP|_UP)/!s/^NodeName=([^ ]*) .*/\1/p' | tr '\n' ' ')
[ -z "$awake" ] || {{ echo "${{awake% }} is awake by now" >&2; exit 1; }}
exec {_SCONTROL} "$@"
"""
#: A command that runs late, or twice, may find the job on other nodes: there the job stays. A heterogeneous job has a line for each component.
_REQUEUE = rf"""job=$(timeout 10 {_SCONTROL} -o show job "$2") || exit
nodes=$(echo "$job" | sed -En 's/.* NodeList=([^ (]+) .*/\1/p' | tr '\n' ,)
[ -n "$nodes" ] && {_SCONTROL} show hostnames "${{nodes%,}}" | grep -Fxq "$3" || exit 0
exec {_SCONTROL} "$1" "$2"
"""
_KEYS_SCRIPT = "/usr/lib/soperator/keys"

_LONGEST = 600
_PATIENCE = 20.0
_SOON = 10.0


@dataclass(frozen=True)
class PodExec:
    """Runs commands in the containers of our pods; `run` executes them."""

    api: Api
    run: Run = remote.exec

    async def controller(self, namespace: str, pod: str) -> ConfigProgress | None:
        """Return the generation in the files of a slurmctld pod, and the generation that slurmctld reports; None if the exec failed. Never raises."""
        target = remote.Target(namespace, pod, "slurmctld")
        try:
            done = await self._within(_SOON, target, ["sh", "-c", _CONTROLLER, _SCONTROL])
        except KubeError:
            return None
        said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        return ConfigProgress(said.get("mounted", ""), said.get("running", ""))

    async def login(self, namespace: str, pod: str) -> str:
        """Return the generation that the commands of a login pod get from its sackd; empty if it is unknown. Never raises."""
        try:
            done = await self._within(_SOON, remote.Target(namespace, pod, "sackd"), ["sh", "-c", _LOGIN])
        except KubeError:
            return ""
        return done.stdout.strip()

    async def slurmdbd(self, namespace: str, pod: str) -> str:
        """Return the last message of an unready slurmdbd about its database; empty if there is none. Never raises."""
        try:
            done = await self._within(_SOON, remote.Target(namespace, pod, "slurmdbd"), ["cat", "/tmp/said"])
        except KubeError:
            return ""
        return "" if done.code else done.stdout.strip()[:_LONGEST]

    async def jail(self, namespace: str, pod: str) -> str | None:
        """Return the result of a check of a worker's jail, as a reason for Slurm: empty if the jail can be entered, None if the exec failed.

        Never raises.
        """
        target = remote.Target(namespace, pod, "jail")
        try:
            done = await self._within(_SOON, target, [f"{BUNDLE}/libexec/jail-watch", "--plan", PLAN_PATH, "--once"])
        except KubeError:
            return None
        if done.code not in (0, 1):
            return None
        return "" if done.code == 0 else reason(done.stderr.replace("soperator: ", "", 1))

    async def keys(self, target: remote.Target, verb: str, files: Sequence[str]) -> remote.Result:
        """Make a daemon `look` for new keys or `take` them; each file is given as `name:hash`. Raises KubeError."""
        return await self._within(_SOON, target, [_KEYS_SCRIPT, verb, target.container, *files])

    async def requeue(self, cluster: Cluster, job: str, node: str) -> None:
        """Requeue a batch job, with the arguments `words`, if it is on this node; raises SlurmError."""
        await self.beside_slurmctld(cluster, f"scontrol requeue {job}", _REQUEUE, ("requeue", job, node))

    async def scontrol(self, cluster: Cluster, *words: str) -> str:
        """Run scontrol in the pods of slurmctld until it succeeds in one, and return its output; raises SlurmError."""
        return await self.beside_slurmctld(cluster, f"scontrol {' '.join(words)}", f'exec {_SCONTROL} "$@"', words)

    async def uid(self, cluster: Cluster, user: str) -> int | None:
        """Return the uid of a user in slurmctld's name service; None for an unknown user. Raises SlurmError."""
        line = (await self.beside_slurmctld(cluster, f"getent passwd {user}", _UID, (user,))).strip()
        return int(line) if line.isdecimal() else None

    async def beside_slurmctld(self, cluster: Cluster, what: str, script: str, words: Sequence[str]) -> str:
        """Run a script in the pods of slurmctld until it succeeds in one, and return its output; `what` names it in the error. Raises SlurmError."""
        refusals: list[SlurmError] = []
        for number in range(cluster.spec.controller.replicas):
            target = remote.Target(cluster.namespace, names.controller_host(cluster.name, number), "slurmctld")
            command = ["sh", "-c", f"{_WITH_KEYS}{script}", "sh", *words]
            try:
                return await self._done(what, target, command)
            except SlurmError as error:
                refusals.append(error)
        raise refusals[0]

    async def record(self, cluster: Cluster, words: Sequence[str]) -> None:
        """Create records of sleeping nodes; raises SlurmError, also if Slurm already has a record of one of them.

        If the name exists, slurmctld 24.11 removes that record when it gets a create, and its memory is then inconsistent (docs/decisions/0101). A
        node that takes the place of a deleted one gets no job until it was DOWN once: 24.11 keeps in memory that the deleted node could not be shared
        (node_mgr.c, share_node_bitmap). So one command creates the nodes and sets them DOWN; it skips nodes that already have a job, because DOWN
        would end it.
        """
        create = ("create", *words)
        await self.beside_slurmctld(cluster, f"scontrol {' '.join(create)}", _CREATE, create)

    async def deny(self, cluster: Cluster, nodes: str, why: str) -> None:
        """Set the state DOWN for nodes that did not wake or still sleep; raises SlurmError, also if one of them is awake now."""
        words = ("update", f"NodeName={nodes}", "State=DOWN", f"Reason={why}")
        await self.beside_slurmctld(cluster, f"scontrol {' '.join(words)}", _DENY, words)

    async def register(self, namespace: str, pod: str) -> None:
        """Make the slurmd of a worker's pod read its configuration and register again; running jobs continue. Raises SlurmError."""
        target = remote.Target(namespace, pod, "slurmd")
        await self._done("SIGHUP to slurmd", target, ["sh", "-c", "kill -HUP 1"])

    async def _done(self, what: str, target: remote.Target, command: list[str]) -> str:
        try:
            done = await self._within(_PATIENCE, target, command)
        except KubeError as error:
            raise SlurmError(f"{what}: {error}") from error
        if done.code:
            raise SlurmError(f"{what}: {(done.stderr or done.stdout).strip() or f'exit code {done.code}'}")
        return done.stdout

    async def _within(self, seconds: float, target: remote.Target, command: list[str]) -> remote.Result:
        try:
            async with asyncio.timeout(seconds):
                return await self.run(self.api, target, command)
        except TimeoutError:
            raise remote.ExecFailed(f"{target} did not answer within {seconds:.0f} s") from None
