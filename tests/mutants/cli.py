"""Conditions of the command line that protect an administrator's word, or keep what is secret."""

from tests.mutants.mutant import Mutant

C, T = "src/soperator/cli", "tests/unit/cli"

CLI = [
    Mutant(
        f"{C}/cluster/drain.py",
        "if reason.lower().startswith(REASON_PREFIX.strip()):",
        "if False:",
        "an administrator's drain, which the operator takes for its own and lifts",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/cluster/drain.py",
        "if reason and each.is_out and each.reason:",
        "if False:",
        "the reason for which somebody else has drained a node",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/cluster/drain.py",
        "if not reason and each.reason.startswith(REASON_PREFIX) and",
        "if not reason and not",
        "jobs on a node that a check has drained",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/support/find_pods.py",
        "        if is_ready(pod):\n            return Target",
        "        if True:\n            return Target",
        "a drain, for which a pod is asked that is not ready",
        (f"{T}/test_drain.py",),
    ),
    Mutant(
        f"{C}/support/slurm_queries.py",
        "mark = secrets.token_hex(8)",
        'mark = "\\n"',
        "the list of jobs, in which a user's name of a job makes lines of its own",
        (f"{T}/test_queue.py",),
    ),
    Mutant(
        f"{C}/cluster/bundle.py",
        "if not unsearched:",
        "if False:",
        "a secret in a log, which goes to others in an archive that was never searched",
        (f"{T}/test_bundle.py",),
    ),
    Mutant(
        f"{C}/cluster/bundle.py",
        "if left := [path for path, content in found.items() if redaction.finds(content)]:",
        "if left := []:",
        "a secret that its removal has missed",
        (f"{T}/test_bundle.py",),
    ),
    Mutant(
        f"{C}/archive/redaction.py",
        'if value.get("kind") == "Secret":',
        "if False:",
        "all keys of the cluster, which the archive lists",
        (f"{T}/test_bundle.py",),
    ),
    Mutant(
        f"{C}/archive/redaction.py",
        'if key == "env" and isinstance(value, list):',
        "if False:",
        "a password that somebody has typed into podTemplate",
        (f"{T}/test_bundle.py",),
    ),
    Mutant(
        f"{C}/archive/redaction.py",
        "if name not in _DROPPED",
        "if True",
        "a Secret that kubectl apply has copied to its annotation",
        (f"{T}/test_bundle.py",),
    ),
]
