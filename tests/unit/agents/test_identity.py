"""The jail's users, validated, kept through every failure of the jail."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soperator.agents import identity
from soperator.agents.identity import CONFIRMATIONS, Users, Writer, validate
from soperator.agents.passwd_reader import Answer, PasswdReader

ALICE = b"alice:x:2000:2000::/home/alice:/bin/bash\n"
ALICE_GROUP = b"alice:x:2000:\n"
SYSTEM = b"root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n"


def jail_with(folder: Path, passwd: bytes, group: bytes = ALICE_GROUP) -> Path:
    """Make a jail with these two files."""
    (folder / "etc").mkdir(parents=True, exist_ok=True)
    (folder / "etc/passwd").write_bytes(passwd)
    (folder / "etc/group").write_bytes(group)
    return folder


def read(jail: Path, deadline: float) -> Answer | None:
    """Ask once."""
    reader = PasswdReader(jail, deadline)
    try:
        return reader.read()
    finally:
        reader.close()


def test_users_pass_and_system_accounts_stay_out_in_silence() -> None:
    """A user made by useradd passes; root, nobody, our own accounts and comments are left out without a word."""
    ours = b"slurm:x:64030:64030::/:/usr/sbin/nologin\n"
    users = validate(SYSTEM + b"# note\n\n" + ours + ALICE, b"root:x:0:\n" + ALICE_GROUP)
    assert users == Users(ALICE.decode(), ALICE_GROUP.decode())


def test_a_password_hash_never_leaves_the_jail() -> None:
    """The second field becomes x."""
    assert validate(b"alice:$6$secret:2000:2000::/:/bin/sh\n", b"").passwd == "alice:x:2000:2000::/:/bin/sh\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"alice:x:2000:2000::/home\n", "passwd line 1 has 6 fields instead of 7."),
        (b"alice:x:zero:2000::/:/bin/sh\n", "passwd line 1 has an id that is not a number."),
        (b"a/b:x:2000:2000::/:/bin/sh\n", "passwd line 1 has an invalid user name."),
        (b"slurm:x:2000:2000::/:/bin/sh\n", "passwd line 1 uses the name or the id of a daemon (slurm, 2000)."),
        (b"mallory:x:64030:2000::/:/bin/sh\n", "passwd line 1 uses the name or the id of a daemon (mallory, 64030)."),
        (
            b"alice:x:2000:2000:\x01:/:/bin/sh\n",
            "passwd line 1 contains characters that are invalid in a user database.",
        ),
        (
            b"alice:x:70000:2000::/:/bin/sh\n",
            "passwd line 1 has the id 70000, but ids in the pods are below 65536: raise spec.security.idCount.",
        ),
        (ALICE + ALICE, "passwd line 2 names alice again."),
    ],
)
def test_an_odd_line_is_left_out_with_a_sentence(line: bytes, said: str) -> None:
    """Each kind of odd line is named with its file and number."""
    assert validate(line, b"").problems == (said,)


def test_a_file_over_the_bound_is_left_out() -> None:
    """A file that grew without bound gives no users and one sentence."""
    users = validate(b"x" * (identity.MAX_BYTES + 1), b"")
    assert users.is_empty
    assert "more than" in users.problems[0]


def test_ids_are_bounded_by_what_the_pods_map() -> None:
    """With a wider range a user of a directory passes, and nobody, by both its numbers, still does not."""
    line = b"ann:x:150000:150000::/:/bin/sh\n"
    nobody = b"nobody:x:65534:65534::/:/bin/sh\nminus:x:65535:65535::/:/bin/sh\n"
    assert validate(nobody + line, b"", 200000) == Users(line.decode(), "")


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes_give_only_wellformed_lines(passwd: bytes, group: bytes) -> None:
    """Whatever the jail holds, what comes out are lines of seven or four fields with ids in range and no name twice."""
    users = validate(passwd, group)
    for text, fields in ((users.passwd, 7), (users.group, 4)):
        parts = [line.split(":") for line in text.split("\n")[:-1]]
        assert all(len(each) == fields and identity.LOWEST <= int(each[2]) < 65534 for each in parts)
        assert len({each[0] for each in parts}) == len(parts)
        assert identity.RESERVED.isdisjoint(each[0] for each in parts)


names = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(lambda name: name not in identity.RESERVED)


@given(st.dictionaries(names, st.integers(1000, 60000), max_size=8))
def test_validating_twice_changes_nothing(users: dict[str, int]) -> None:
    """Good users all pass, and passing again gives the same text."""
    text = "".join(f"{name}:x:{uid}:{uid}::/home/{name}:/bin/bash\n" for name, uid in users.items())
    once = validate(text.encode(), b"")
    assert once == Users(text, "")
    assert validate(once.passwd.encode(), b"") == once


def test_files_are_replaced_only_upon_change(tmp_path: Path) -> None:
    """The same users again leave the file itself in place."""
    writer = Writer(tmp_path)
    assert writer.take(validate(ALICE, ALICE_GROUP)) == "1 user, 1 groups known."
    before = (tmp_path / "passwd").stat().st_ino
    assert writer.take(validate(ALICE, ALICE_GROUP)) is None
    assert (tmp_path / "passwd").stat().st_ino == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["group", "passwd"]


def test_an_empty_answer_needs_confirmation(tmp_path: Path) -> None:
    """Users vanish only after the jail said so several times in a row; one good answer starts the count anew."""
    writer = Writer(tmp_path)
    writer.take(validate(ALICE, ALICE_GROUP))
    for _ in range(CONFIRMATIONS - 1):
        writer.take(Users("", ""))
    writer.take(validate(ALICE, ALICE_GROUP))
    for _ in range(CONFIRMATIONS - 1):
        writer.take(Users("", ""))
    assert (tmp_path / "passwd").read_bytes() == ALICE
    writer.take(Users("", ""))
    assert (tmp_path / "passwd").read_bytes() == b""


def test_an_agent_that_restarts_also_asks_for_confirmation(tmp_path: Path) -> None:
    """What an earlier life of the agent wrote counts as known."""
    Writer(tmp_path).take(validate(ALICE, ALICE_GROUP))
    Writer(tmp_path).take(Users("", ""))
    assert (tmp_path / "passwd").read_bytes() == ALICE


def test_reading_gives_both_files(tmp_path: Path) -> None:
    """A jail that answers gives its two files."""
    assert read(jail_with(tmp_path, ALICE), 5.0) == (ALICE, ALICE_GROUP)


@pytest.mark.parametrize("lost", ["etc", "etc/passwd", "etc/group"])
def test_a_jail_without_its_files_is_no_answer(tmp_path: Path, lost: str) -> None:
    """A missing file is not the same as an empty one."""
    jail_with(tmp_path, ALICE)
    (tmp_path / lost).rename(tmp_path / "elsewhere")
    assert read(tmp_path, 5.0) is None


def test_a_link_out_of_the_jail_is_no_answer(tmp_path: Path) -> None:
    """A link in the place of a file or of etc is not followed."""
    jail_with(tmp_path / "jail", ALICE)
    (tmp_path / "jail/etc/passwd").unlink()
    (tmp_path / "jail/etc/passwd").symlink_to("/etc/passwd")
    assert read(tmp_path / "jail", 5.0) is None


def test_a_jail_that_hangs_is_left_at_the_deadline(tmp_path: Path) -> None:
    """A read that never returns costs the deadline and no more, and the next question finds a jail that is back."""
    jail_with(tmp_path, ALICE)
    stuck = tmp_path / "stuck.py"
    stuck.write_text(
        "import time\nfrom pathlib import Path\nfrom soperator.agents import passwd_reader\n"
        "read, passwd_reader._read_changed = passwd_reader._read_changed, lambda *_: time.sleep(600)\n"
        f"reader = passwd_reader.PasswdReader(Path({str(tmp_path)!r}), 0.3)\n"
        "print(reader.read())\n"
        "passwd_reader._read_changed = read\n"
        "print(reader.read() is not None)\n"
    )
    began = time.monotonic()
    done = subprocess.run([sys.executable, stuck], capture_output=True, text=True, check=True, env=environment())
    assert done.stdout == "None\nTrue\n"
    assert time.monotonic() - began < 5


def test_each_change_is_seen_by_the_next_question(tmp_path: Path) -> None:
    """What is written between two questions, in place or by rename, is in the second answer; what is unchanged is the same object."""
    reader = PasswdReader(jail_with(tmp_path, ALICE), 5.0)
    first = reader.read()
    assert first == (ALICE, ALICE_GROUP)
    assert reader.read() is first
    time.sleep(0.02)  # the clock of file times
    jail_with(tmp_path, ALICE * 2)
    assert reader.read() == (ALICE * 2, ALICE_GROUP)
    (tmp_path / "new").write_bytes(b"")
    (tmp_path / "new").rename(tmp_path / "etc/group")
    assert reader.read() == (ALICE * 2, b"")
    reader.close()


def test_a_child_that_was_killed_is_replaced(tmp_path: Path) -> None:
    """The question to a dead child has no answer, the next one has."""
    reader = PasswdReader(jail_with(tmp_path, ALICE), 5.0)
    assert reader.read()
    os.kill(reader._child, signal.SIGKILL)
    assert reader.read() is None
    assert reader.read() == (ALICE, ALICE_GROUP)
    reader.close()


def test_the_program_follows_a_new_user_and_survives_a_lost_jail(tmp_path: Path) -> None:
    """End to end: a user appears, another is added, the jail goes away, the users stay."""
    jail, to = jail_with(tmp_path / "jail", ALICE), tmp_path / "to"
    to.mkdir()
    command = [sys.executable, "-m", "soperator.agents.identity", "--jail", jail, "--to", to, "--interval", "0.05"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            wait_for(to / "passwd", ALICE)
            more = ALICE + ALICE.replace(b"alice", b"bob").replace(b"2000", b"2001")
            jail_with(jail, more)
            wait_for(to / "passwd", more)
            jail.rename(tmp_path / "gone")
            time.sleep(0.5)
            assert agent.poll() is None
            assert (to / "passwd").read_bytes() == more
        finally:
            agent.terminate()
    assert agent.returncode == 0


def test_a_jail_that_is_filled_later_is_known_at_once(tmp_path: Path) -> None:
    """A jail without users, however long that lasts, does not slow the look that finds the first one."""
    jail, to = tmp_path / "jail", tmp_path / "to"
    jail.mkdir()
    to.mkdir()
    command = [sys.executable, "-m", "soperator.agents.identity", "--jail", jail, "--to", to, "--interval", "0.05"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as agent:
        try:
            time.sleep(1.9)
            jail_with(jail, ALICE)
            began = time.monotonic()
            wait_for(to / "passwd", ALICE)
            assert time.monotonic() - began < 5
        finally:
            agent.terminate()


def environment() -> dict[str, str]:
    """Return the environment in which the agents are importable."""
    return os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}


def wait_for(path: Path, content: bytes) -> None:
    """Wait until a file has this content."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if path.exists() and path.read_bytes() == content:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never became {content!r}")
