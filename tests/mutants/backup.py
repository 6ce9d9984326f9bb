"""Conditions of backups and of restorations."""

from tests.mutants.mutant import Mutant

AGENT, UNIT = "src/soperator/agents/backup", "tests/unit/agents/backup"
CLI, CLI_TEST = "src/soperator/cli/restore.py", ("tests/unit/cli/test_restore.py",)

BACKUP = [
    Mutant(
        "src/soperator/render/backup/node_access.py",
        "    if name in _LIMITS and value is None:\n",
        "    if False:\n",
        "the limits of a pod, to who has written null for them into a backup",
        ("tests/unit/render/test_node_access.py",),
    ),
    Mutant(
        f"{AGENT}/restore.py",
        "                if not stat.S_ISDIR(mode := path.lstat().st_mode) and not stat.S_ISREG(mode):\n",
        "                if False:\n",
        "the password of the repository, to who has put a link to it into a backup",
        (f"{UNIT}/test_restore.py",),
    ),
    Mutant(
        f"{AGENT}/database.py",
        "                _run([*client, *_DUMP_ONLY, database], file)\n",
        "                _run([*client, database], file)\n",
        "the pod of a restoration, to a dump with commands of the client",
        (f"{UNIT}/test_database.py",),
    ),
    Mutant(
        CLI,
        "    if fields and not is_allowed:\n",
        "    if False:\n",
        "root of the Nodes, to who has written a folder of a Node into a backup",
        CLI_TEST,
    ),
    Mutant(
        f"{AGENT}/restic.py",
        "        if not found and expected:\n",
        "        if False:\n",
        "all backups but one, to a claim that was emptied, without a word",
        (f"{UNIT}/test_restic.py",),
    ),
    Mutant(
        "src/soperator/policy/backup/schedule.py",
        '    if seen.attempt.phase == "running":\n        return BackupStep(next=upcoming)\n',
        "",
        "a backup that is being made, to the next one",
        ("tests/unit/policy/test_backup.py",),
    ),
    Mutant(
        "src/soperator/api/validation/validate.py",
        '        if what := next((what for what, used in _claims_of(name, world) if used == claim), ""):\n',
        '        if what := "":\n',
        "all backups, to a user who removes them in the jail, or together with the state",
        ("tests/world/test_backup.py",),
    ),
    Mutant(
        f"{AGENT}/state.py",
        '        if _saved_at(source) > since or (waited >= _BEGINS_WITHIN and not (source / "job_state.new").exists()):\n',
        "        if True:\n",
        "jobs that were submitted just before a backup",
        (f"{UNIT}/test_state.py",),
    ),
    Mutant(
        f"{AGENT}/state.py",
        "            if _identities(source) == before:\n",
        "            if True:\n",
        "jobs, to a copy whose files are of different saves",
        (f"{UNIT}/test_state.py",),
    ),
    Mutant(
        f"{AGENT}/take.py",
        "    state.wait_for_save(folders.state, since)\n",
        "",
        "jobs that were submitted just before a backup",
        (f"{UNIT}/test_restic.py",),
    ),
    Mutant(
        f"{AGENT}/take.py",
        "    restic.check(_SAMPLE)\n",
        "",
        "the good backups of a repository that is being damaged",
        (f"{UNIT}/test_restic.py",),
    ),
    Mutant(
        f"{AGENT}/restic.py",
        '        return f"soperator,backup={self.maker}"\n',
        '        return "soperator"\n',
        "the weekly backups, to the retention of an hourly SlurmBackup",
        (f"{UNIT}/test_restic.py",),
    ),
    Mutant(
        f"{AGENT}/restore.py",
        "    if former:\n",
        "    if False:\n",
        "the state that was on the claim before a restoration",
        (f"{UNIT}/test_restore.py",),
    ),
    Mutant(
        CLI,
        "    if len(images) > 1:\n",
        "    if False:\n",
        "all keys, to the image of a Deployment that looks like the operator's",
        CLI_TEST,
    ),
    Mutant(
        CLI,
        "        if not _goes(found.metadata, said.cluster):\n",
        "        if True:\n",
        "the restored state, which goes with the claim of the former cluster",
        CLI_TEST,
    ),
    Mutant(
        "src/soperator/render/backup/restored.py",
        '        if each.get("apiVersion") != API_VERSION or kind not in KINDS:\n',
        "        if False:\n",
        "the rights of who restores, to who has written the backup",
        ("tests/unit/render/test_restored.py",),
    ),
    Mutant(
        "src/soperator/reconcile/backup/reconciler.py",
        "        if not _is_of(meta, backup):\n",
        "        if False:\n",
        "a ConfigMap of others, which is deleted with the SlurmBackup",
        ("tests/world/test_backup.py",),
    ),
    Mutant(
        CLI,
        "    if alive:\n",
        "    if False:\n",
        "a job that runs twice, on a worker of the former cluster and on a new one",
        CLI_TEST,
    ),
    Mutant(
        CLI,
        "        elif {key: base64.b64decode(text) for key, text in data.items()} != dict(there.data):\n",
        "        elif False:\n",
        "a cluster that comes back with keys that its users do not know",
        CLI_TEST,
    ),
]
