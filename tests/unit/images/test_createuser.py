"""createuser: what it refuses before it changes anything, and what it writes into a home. The account itself is tests/cluster's."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PROGRAM = Path(__file__).parents[3] / "images/login/createuser.py"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILsWgbGHOYY6a7o6AJr4CLVs56IvsBNTqqvre9b6N4UN ann@laptop"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAICvvSeHEzT5NxZ1wDuKj9vj5YPpBPUR+xoVCkWd35xTG bob"


@pytest.fixture(scope="module")
def createuser() -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("createuser", PROGRAM)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def refusal(createuser: ModuleType, call: object, *arguments: object) -> str:
    """The sentence with which something is refused."""
    with pytest.raises(createuser.Refusal) as caught:
        call(*arguments)  # type: ignore[operator]
    return str(caught.value)


@pytest.mark.parametrize("line", [KEY, OTHER, f'from="10.0.0.0/8",no-pty {KEY}', KEY.rsplit(" ", 1)[0]])
def test_a_whole_key_is_one_with_or_without_options(createuser: ModuleType, line: str) -> None:
    """Options before it and a comment behind it make no difference."""
    assert createuser.is_key(line)
    assert createuser.keys_of([line]) == [line]


@pytest.mark.parametrize(
    "line", [KEY[:40], KEY.replace("ed25519 ", "rsa ", 1), "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5", "hello world", ""]
)
def test_what_is_cut_or_of_another_type_is_no_key(createuser: ModuleType, line: str) -> None:
    """A key that was pasted in part is not taken."""
    assert not createuser.is_key(line)


def test_keys_come_from_files_too_and_a_private_one_is_refused(createuser: ModuleType, tmp_path: Path) -> None:
    """A file may hold several, with comments; a private key, an empty file and a line of prose are told by name."""
    good, empty, private, prose = (tmp_path / name for name in ("good.pub", "empty", "id", "prose"))
    good.write_text(f"# laptop\n{KEY}\n\n{OTHER}\n")
    empty.write_text("# nothing\n")
    private.write_text("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn\n")
    prose.write_text("please let me in\n")
    assert createuser.keys_of([str(good)]) == [KEY, OTHER]
    assert refusal(createuser, createuser.keys_of, [str(empty)]) == f"{empty} holds no public key."
    assert "is a private key" in refusal(createuser, createuser.keys_of, [str(private)])
    assert "no public key, or one that is cut" in refusal(createuser, createuser.keys_of, [str(prose)])
    assert "neither a public key nor a file" in refusal(createuser, createuser.keys_of, ["/nowhere"])


@given(text=st.text(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_a_key_or_not_and_never_a_traceback(createuser: ModuleType, text: str) -> None:
    """Whatever is pasted is judged."""
    assert createuser.is_key(text) in (True, False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gets as far as these checks")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["Bob"], "'Bob' is no user name"),
        (["bob", "--uid", "12"], "--uid 12 is not for a user: take one from 1000."),
        (["bob", "--uid", "65534"], "--uid 65534 is not for a user"),
        (["bob", "--group", "users", "--gid", "2000"], "give one of the two"),
        (["bob", "--groups", "nope-group"], "there is no group nope-group: make it with groupadd nope-group."),
        (["bob", "--shell", "/bin/nope"], "/bin/nope is no program of the jail"),
        (["bob", "--comment", "a:b"], "--comment contains a colon"),
        (["bob", "--home", "relative"], "--home relative is no absolute path."),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_changed(words: list[str], sentence: str) -> None:
    """The command ends with 1 and one sentence."""
    done = subprocess.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.startswith("createuser: ")
    assert done.stderr.count("\n") == 1


def test_an_id_is_in_a_user_namespace_or_not(createuser: ModuleType) -> None:
    """The ranges of uid_map bound what a user can be."""
    of_a_pod, of_a_node = "         0 2847801344      65536\n", "0 0 4294967295\n"
    assert createuser.is_mapped(65535, of_a_pod)
    assert not createuser.is_mapped(65536, of_a_pod)
    assert createuser.is_mapped(200000, of_a_node)


def test_keys_are_added_once_and_what_was_there_stays(createuser: ModuleType, tmp_path: Path) -> None:
    """The pair is made once, its public half and the given keys are allowed once, and a line of the user's own stays in front."""
    (tmp_path / ".ssh").mkdir(mode=0o755)
    (tmp_path / ".ssh/authorized_keys").write_text(OTHER)
    assert createuser.write_keys(tmp_path, "ann", [KEY], True) == 2
    first = (tmp_path / ".ssh/authorized_keys").read_text()
    assert createuser.write_keys(tmp_path, "ann", [KEY, KEY], True) == 2
    assert (tmp_path / ".ssh/authorized_keys").read_text() == first
    pair = (tmp_path / ".ssh/id_ed25519.pub").read_text().strip()
    assert first.splitlines() == [OTHER, pair, KEY]
    modes = {each.name: each.stat().st_mode & 0o777 for each in (tmp_path / ".ssh").iterdir()}
    assert modes == {"authorized_keys": 0o600, "id_ed25519": 0o600, "id_ed25519.pub": 0o600}
    assert (tmp_path / ".ssh").stat().st_mode & 0o777 == 0o700


def test_without_a_key_of_a_person_nobody_can_log_in_yet(createuser: ModuleType, tmp_path: Path) -> None:
    """The key pair between nodes does not count, and none is made where none is wanted."""
    assert createuser.write_keys(tmp_path, "ann", [], True) == 0
    (tmp_path / "other").mkdir()
    assert createuser.write_keys(tmp_path / "other", "ann", [], False) == 0
    assert list((tmp_path / "other/.ssh").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_home_that_has_become_a_link_is_given_to_nobody(createuser: ModuleType, tmp_path: Path) -> None:
    """What the link leads to keeps its owner."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "etc")
    user = createuser.pwd.struct_passwd(("ann", "x", 4711, 4711, "", str(tmp_path / "home"), "/bin/sh"))
    with pytest.raises(OSError):
        createuser.give(tmp_path / "home", user)
    assert (tmp_path / "etc").stat().st_uid == 0
