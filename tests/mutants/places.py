"""Conditions of what runs beside users' files, and of the jail (agents, spank)."""

from tests.mutants.mutant import Mutant

A, T, S = "src/soperator/agents", "tests/unit/agents", "spank"

AGENTS = [
    Mutant(
        f"{A}/identity.py",
        "if parts[0] in RESERVED or int(parts[2]) in OWN.values():",
        "if parts[0] in RESERVED:",
        "Slurm: a user of the jail has SlurmUser's uid",
        (f"{T}/test_identity.py",),
    ),
    Mutant(
        f"{A}/identity.py",
        'lines.append(":".join([parts[0], "x", *parts[2:]]))',
        'lines.append(":".join(parts))',
        "password hashes, which leave the jail",
        (f"{T}/test_identity.py",),
    ),
    Mutant(
        f"{A}/refill.py",
        "_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW",
        "_FOLDER = os.O_RDONLY | os.O_DIRECTORY",
        "files of the pod at the end of a user's link",
        (f"{T}/test_refill.py",),
    ),
    Mutant(
        f"{A}/refill.py",
        "descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=etc)",
        "descriptor = os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=etc)",
        "a file of the pod, which is read into the new jail's list of users",
        (f"{T}/test_refill.py",),
    ),
    Mutant(
        f"{A}/populate.py",
        "        if not root.exists() or not any(root.iterdir()):",
        "        if not wanted.request or not root.exists() or not any(root.iterdir()):",
        "the sentence that says what stands in the way",
        (f"{T}/test_populate.py",),
    ),
    Mutant(
        f"{A}/populate.py",
        "        if size != entry.size:",
        "        if size < entry.size:",
        "a jail like its image",
        (f"{T}/test_populate.py",),
    ),
    Mutant(
        f"{A}/mountpoints.py",
        "_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW",
        "_FOLDER = os.O_RDONLY | os.O_DIRECTORY",
        "folders of the pod at the end of a user's link",
        (f"{T}/test_mountpoints.py",),
    ),
    Mutant(
        f"{A}/tokens.py",
        "LIFETIME, PERIOD = 600, 20.0",
        "LIFETIME, PERIOD = 604800, 20.0",
        "a token that was stolen is good for a week",
        (f"{T}/test_tokens.py",),
    ),
    Mutant(
        f"{A}/driver.py",
        "    if not real.is_relative_to(root.resolve()):",
        "    if False:",
        "any file of the Node, by a link in the folder of a driver",
        (f"{T}/test_driver.py",),
    ),
    Mutant(
        f"{A}/passwd_reader.py",
        "opened.append(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=etc))",
        "opened.append(os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=etc))",
        "any file of the pod, by a link at the jail's passwd",
        (f"{T}/test_identity.py",),
    ),
]

JAIL = [
    Mutant(
        f"{S}/mounts.c",
        "	if (!has_flags(entry, options.f_flag))\n",
        "	if (false && !has_flags(entry, options.f_flag))\n",
        "a mount that is read-only or without setuid by its plan alone",
        (f"{S}/tests/test_enter.py::test_a_mount_that_a_later_one_hides_has_to_have_its_options",),
    ),
    Mutant(
        f"{S}/target.c",
        "RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS",
        "RESOLVE_IN_ROOT",
        "a mount that lies where a user's link leads",
        (f"{S}/tests/test_enter.py::test_a_failed_step_is_one_sentence",),
    ),
    Mutant(
        f"{S}/keys.c",
        "|| (status.st_mode & 022) != 0)",
        ")",
        "the login of a user whose list of keys others may write",
        (f"{S}/tests/test_keys.py",),
    ),
    Mutant(
        f"{S}/scratch.c",
        "	else if (status.st_uid != geteuid())\n",
        "	else if (false && status.st_uid != geteuid())\n",
        "jobs' files in a folder that is a user's",
        (f"{S}/tests/test_jobs.py::test_a_folder_that_is_not_roots_is_refused",),
    ),
    Mutant(
        f"{S}/scratch.c",
        "	else if ((status.st_mode & 07777) != 0700 && fchmod(fd, 0700) < 0)\n",
        "	else if (false)\n",
        "jobs' files in a folder that all may enter",
        (f"{S}/tests/test_jobs.py::test_two_jobs_share_nothing_of_this",),
    ),
    Mutant(
        f"{S}/jobs.c",
        "	else if (job.uid != wish->uid)\n",
        "	else if (false && job.uid != wish->uid)\n",
        "the namespaces of a job, which another user's step joins",
        (f"{S}/tests/test_jobs.py::test_another_users_job_is_not_joined",),
    ),
    Mutant(
        f"{S}/holder.c",
        "return id->pid > 0 && id->start != 0 && holder_start_of(id->pid) == id->start;",
        "return id->pid > 0 && id->start != 0;",
        "steps of a job whose holder is dead, and whose number another process has",
        (f"{S}/tests/test_jobs.py::test_a_killed_holder_is_replaced",),
    ),
    Mutant(
        f"{S}/spank_jail.c",
        "else if (libraries_bind(&trouble) == 0)",
        "else",
        "Slurm's key, to a library of the jail that slurmstepd loads",
        (f"{S}/tests/test_libraries.py",),
    ),
    Mutant(
        f"{S}/pam_jail.c",
        "if (job.uid == 0 && libraries_bind(&report) < 0)",
        "if (0)",
        "the host key of workers, to a library of the jail that sshd loads",
        (f"{S}/tests/test_ssh.py",),
    ),
    Mutant(
        f"{S}/pam_jail.c",
        "if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) {",
        "if (0) {",
        "the host key of workers, in memory that root of the jail can read",
        (f"{S}/tests/test_ssh.py",),
    ),
    Mutant(
        f"{S}/follow.c",
        "if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)",
        "if (target == NULL)",
        "the memory and the open files of slurmstepd, to root of a job with a task prolog",
        (f"{S}/tests/test_libraries.py::test_a_task_that_is_still_slurmstepd_is_closed",),
    ),
]
