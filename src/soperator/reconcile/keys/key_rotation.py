"""Rotates keys: gathers the inputs of the policy, and carries out its decision.

The stage of a rotation is on the Secret, in the same write as its content. A command in each daemon's container brings the daemon to the stage and
reports it (images/slurm/keys). The answers are remembered, and a new operator asks again. The annotation on a pod is only for the kubelet, which
updates a pod's Secrets when the pod changes, and otherwise once a minute.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from soperator.kube import exec as remote
from soperator.kube import kinds
from soperator.kube.errors import Conflict, KubeError, NotFound
from soperator.kube.objects import Secret
from soperator.kube.views import ObjectMeta, Pod
from soperator.policy.cluster.key_rotation import RotationSnapshot, decide
from soperator.reconcile import external_nodes
from soperator.reconcile.cache.per_object import Slot, per_cluster
from soperator.reconcile.context import Operator
from soperator.reconcile.keys import key_files, key_versions
from soperator.reconcile.keys.key_files import DAEMONS, auth_key, rest_key
from soperator.render.cluster.keys import (
    REST_FILE,
    auth_file,
    read_held,
    read_record,
    rotation_annotations,
    version,
)
from soperator.render.parts import labels, names
from soperator.render.parts.model import Cluster
from soperator.runtime.cache.store import Key
from soperator.runtime.status import ReportedCondition
from soperator.slurm.keys import KeyContent, RotationRecord, rotated

#: How many daemons are asked in one pass, and how many at once.
_BATCH, _AT_ONCE = 96, 16
_POKE = "soperator-keys"


@dataclass(frozen=True)
class KeyPassResult:
    """The result of one pass over the keys: the last request that was carried out, and a message about the progress."""

    done: str = ""
    why: str = ""


@dataclass(frozen=True)
class RotationChange:
    """One step to write: the current record, the next one, the file that daemons read, and a message."""

    before: RotationRecord
    after: RotationRecord
    file: str
    why: str = ""


@dataclass(frozen=True)
class DaemonRequest:
    """The request to one daemon."""

    pod: str
    uid: str
    container: str
    verb: str
    files: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.uid, self.container, self.verb, *self.files))


@dataclass(frozen=True)
class RotationAnswers:
    """The daemons' answers in a rotation.

    `taken` has the time from which each answer counts, by question. `poked` has the questions for which a kubelet was notified. `entered` has the
    time when all daemons were first observed at a stage, by the record of that stage. Times are by the clock of the event loop.
    """

    taken: dict[str, float] = field(default_factory=dict)
    poked: set[str] = field(default_factory=set)
    entered: dict[RotationRecord, float] = field(default_factory=dict)

    def lasted(self, record: RotationRecord, now: float) -> float:
        """Return for how many seconds all daemons have been at a stage; call it only while they are."""
        return now - max(self.entered.setdefault(record, now), *self.taken.values(), float("-inf"))


_ANSWERS: Slot[Key, RotationAnswers] = per_cluster("answers of daemons in a rotation")


async def turn(operator: Operator, cluster: Cluster, reported: str) -> KeyPassResult:
    """Take the next step of a rotation that is requested or in progress. `reported` is the last request in the status."""
    auth = _meta(operator, cluster, names.auth_key(cluster.name))
    rest = _meta(operator, cluster, names.jwt_key(cluster.name))
    if auth is None or rest is None:
        return KeyPassResult(reported)
    record = read_record(auth.annotations)
    if not record.stage and cluster.spec.auth.rotate_request in ("", record.request):
        operator.memory(_ANSWERS).pop(cluster.key, None)
        return KeyPassResult(record.request)
    made_for = read_record(rest.annotations).request
    is_whole = record.stage not in ("Signing", "Taken") or made_for == record.request  # else REST gets its key first
    asks = _asks(operator, cluster, record, auth, rest) if record.stage and is_whole else []
    waits = await _ask_all(operator, cluster, asks) or (_unseen(operator, cluster) if asks else "")
    answers = operator.memory(_ANSWERS).setdefault(cluster.key, RotationAnswers())
    lasted = 0.0 if waits else answers.lasted(record, asyncio.get_running_loop().time())
    said = cluster.spec.auth
    strangers = external_nodes.without_key(operator, cluster.key, record) if record.stage == "Known" else ""
    step = decide(
        RotationSnapshot(said.type, said.rotate_request, record, made_for, waits, operator.wall(), lasted, strangers)
    )
    if step.make_rest:
        before = read_record(rest.annotations)
        await _write(
            operator, cluster, rest, RotationChange(before, RotationRecord(record.request), REST_FILE, step.why)
        )
    if step.note is not None:
        await _write(operator, cluster, auth, RotationChange(record, step.note, auth_file(cluster), step.why))
    finished = step.note is not None and not step.note.stage
    return KeyPassResult(record.request if finished else reported, step.why)


def condition(rotated: KeyPassResult, looked: key_files.KeyStatus) -> ReportedCondition:
    """Return the condition KeysSettled: True if every key exists and no rotation is in progress."""
    if looked.reason:
        return ReportedCondition("KeysSettled", "False", looked.reason, looked.why)
    if rotated.why:
        return ReportedCondition("KeysSettled", "False", "Rotating", rotated.why)
    return ReportedCondition("KeysSettled", "True", "Rotated" if rotated.done else "Made")


def _meta(operator: Operator, cluster: Cluster, name: str) -> ObjectMeta | None:
    found = operator.stores.children[kinds.SECRET].get(cluster.namespace, name)
    meta: ObjectMeta | None = found.metadata if found else None
    return meta


async def _write(operator: Operator, cluster: Cluster, meta: ObjectMeta, change: RotationChange) -> None:
    """Write a Secret and its copy, unless they differ from the cache: then the next pass decides again.

    The status gets the next key before the Secret does, so that an operator that starts in between knows the key.
    """
    after, file = change.after, change.file
    try:
        found, kept = [
            await operator.api.get(kinds.SECRET, Secret, meta.namespace, each)
            for each in (meta.name, names.kept(meta.name))
        ]
    except NotFound:
        return
    if found.metadata.uid != meta.uid or read_record(found.metadata.annotations) != change.before:
        return
    content = {REST_FILE: rest_key()} if file == REST_FILE else rotated(found.data, after, auth_key())
    is_brought = read_held(kept.metadata.annotations, {}).is_brought
    held = KeyContent(content, rotation_annotations(after, content[file]), is_brought)
    here = version(read_held(found.metadata.annotations, found.data))
    said = ReportedCondition("KeysSettled", "False", "Rotating", change.why or f"rotation {after.request} ends")
    await key_versions.announce(operator, cluster, meta.name, (here, version(held)), said)
    with contextlib.suppress(Conflict):
        await key_files.write(operator, cluster, meta.name, held, found, kept)


def _asks(
    operator: Operator, cluster: Cluster, record: RotationRecord, auth: ObjectMeta, rest: ObjectMeta
) -> list[DaemonRequest]:
    """Return the requests to all running daemons at this stage.

    A daemon that does not run reads the current files when it starts. slurmctld is last: when it reads its files again, all others must have read
    theirs.
    """
    verb = "look" if record.stage == "Laid" else "take"
    auth_word = f"{auth_file(cluster)}:{auth.annotations.get(labels.DIGEST, '')}"
    is_made = rest.annotations.get(labels.ROTATION) == record.request and labels.DIGEST in rest.annotations
    rest_words = [f"{REST_FILE}:{rest.annotations[labels.DIGEST]}"] if is_made else []
    first: list[DaemonRequest] = []
    last: list[DaemonRequest] = []
    for pod in operator.stores.cluster_pods(cluster.key):
        daemon = DAEMONS.get(pod.metadata.labels.get(labels.ROLE, ""))
        rests = rest_words if daemon in ("slurmctld", "slurmdbd") else []
        if daemon and cluster.spec.auth.type == "munge":
            first += _requests(pod, "munged", verb, [auth_word])
            (last if daemon == "slurmctld" else first).extend(_requests(pod, daemon, verb, rests) if rests else [])
        elif daemon:
            (last if daemon == "slurmctld" else first).extend(_requests(pod, daemon, verb, [auth_word, *rests]))
    return first + last


def _unseen(operator: Operator, cluster: Cluster) -> str:
    """Return the workers that run according to Slurm although no pod of theirs is found, as a message. Somebody may have removed the pod's labels."""
    sets = {each.metadata.name for each in operator.stores.nodesets_of(cluster.key)}
    seen = {each.spec.hostname for each in operator.stores.role_pods(cluster.key, "worker")}
    found = (operator.slurm.nodes(cluster.key) or {}).values()
    lost = [each for each in found if (each.is_up or each.is_busy) and each.name not in seen]
    lost = [each for each in lost if each.name.rpartition("-")[0] in sets]
    return (
        f"no pod is found for {external_nodes.named(lost)}: restore the pod's labels, as on the other pods of its NodeSet"
        if lost
        else ""
    )


def _requests(pod: Pod, daemon: str, verb: str, files: Sequence[str]) -> list[DaemonRequest]:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    runs = any(each.name == daemon and each.state.running for each in statuses)
    return [DaemonRequest(pod.metadata.name, pod.metadata.uid, daemon, verb, tuple(files))] if runs else []


async def _ask_all(operator: Operator, cluster: Cluster, asks: Sequence[DaemonRequest]) -> str:
    """Ask the daemons that have not confirmed yet; return a message about those that have not reached the stage, empty if all have."""
    answers = operator.memory(_ANSWERS).setdefault(cluster.key, RotationAnswers())
    left = [each for each in asks if str(each) not in answers.taken]
    batch, slots = left[:_BATCH], asyncio.Semaphore(_AT_ONCE)
    controllers = [each for each in batch if each.container == "slurmctld"]
    if len(controllers) < len(batch):
        batch = [each for each in batch if each not in controllers]

    async def one(each: DaemonRequest) -> str:
        async with slots:
            return await _answer(operator, cluster.namespace, each, answers)

    troubles = [text for text in await asyncio.gather(*map(one, batch)) if text]
    behind = [each for each in asks if str(each) not in answers.taken]
    if not behind:
        return ""
    detail = f"; {troubles[0]}" if troubles else ""
    return f"{len(asks) - len(behind)} of {len(asks)} are so far{detail}"


async def _answer(operator: Operator, namespace: str, ask: DaemonRequest, answers: RotationAnswers) -> str:
    """Ask one daemon; return why it has not reached the stage, empty if it has."""
    try:
        if str(ask) not in answers.poked:
            files = hashlib.sha256(" ".join(ask.files).encode()).hexdigest()[:16]
            meta = {"name": ask.pod, "namespace": namespace, "uid": ask.uid, "annotations": {labels.DIGEST: files}}
            await operator.api.apply(kinds.POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta}, manager=_POKE)
            answers.poked.add(str(ask))
        target = remote.Target(namespace, ask.pod, ask.container)
        done = await operator.pod_exec.keys(target, ask.verb, ask.files)
    except (Conflict, NotFound):
        return f"pod {ask.pod} was replaced meanwhile"
    except KubeError as error:
        return f"pod {ask.pod}: {error}"
    if done.code == 0:
        age = done.stdout.strip()
        answers.taken[str(ask)] = asyncio.get_running_loop().time() - (float(age) if age.isdecimal() else 0.0)
        return ""
    said = (done.stdout + done.stderr).strip() or f"exit code {done.code}"
    return f"pod {ask.pod}: {said if done.code == 3 else f'its image cannot take keys ({said}): replace the pod'}"
