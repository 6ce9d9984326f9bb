"""slurmctld's state is copied whole while slurmctld writes it."""

import os
import struct
import threading
import time

import pytest

from soperator.agents.backup import state
from soperator.agents.backup.errors import BackupError
from soperator.agents.backup.state import copy_state, next_job_id, wait_for_save


def header(number, version=b"PROTOCOL_VERSION\0", saved_at=1_700_000_000):
    return struct.pack(f">I{len(version)}sHQI", len(version), version, 10752, saved_at, number)


def save(folder, files):
    """What save_buf_to_state does with each file."""
    for name, content in files.items():
        new, old, reg = (folder / f"{name}{end}" for end in (".new", ".old", ""))
        new.write_bytes(content)
        old.unlink(missing_ok=True)
        if reg.exists():
            os.link(reg, old)
            reg.unlink()
        os.link(new, reg)
        new.unlink()


def script(folder, job):
    place = folder / f"hash.{job % 10}" / f"job.{job}"
    place.mkdir(parents=True)
    (place / "script").write_text(f"#!/bin/sh\n# {job}\n")
    (place / "environment").write_bytes(b"A=1\0")


def test_a_quiet_state_is_copied_in_one_attempt(tmp_path):
    """Files, former files and scripts are in the copy; unfinished files, heartbeats and links are not."""
    source, to = tmp_path / "state", tmp_path / "copy"
    source.mkdir()
    save(source, {"job_state": header(7), "clustername": b"demo"})
    save(source, {"job_state": header(8)})
    script(source, 7)
    (source / "node_state.new").write_bytes(b"half")
    (source / "heartbeat").write_bytes(b"1")
    (source / "link").symlink_to("/etc/passwd")
    assert copy_state(source, to) == 1
    assert (to / "job_state").read_bytes() == header(8)
    assert (to / "job_state.old").read_bytes() == header(7)
    assert (to / "hash.7/job.7/script").read_text() == "#!/bin/sh\n# 7\n"
    assert sorted(each.name for each in to.iterdir()) == ["clustername", "hash.7", "job_state", "job_state.old"]


def test_jobs_that_slurmctld_has_not_saved_yet_are_waited_for(tmp_path, monkeypatch):
    """A save that began before the backup does not have them; the first one that began after it does."""
    monkeypatch.setattr(state, "_PAUSE", 0.01)
    since = time.time()
    save(tmp_path, {"job_state": header(7, saved_at=int(since))})
    saving = threading.Timer(0.3, save, (tmp_path, {"job_state": header(8, saved_at=int(since) + 1)}))
    saving.start()
    wait_for_save(tmp_path, since)
    assert next_job_id((tmp_path / "job_state").read_bytes()) == 8
    saving.join()


@pytest.mark.parametrize("content", [b"", header(7)])
def test_a_slurmctld_with_nothing_to_save_is_waited_for_once(tmp_path, monkeypatch, content):
    """After the time in which it would have begun to save; a save in progress may take longer, and ends."""
    monkeypatch.setattr(state, "_BEGINS_WITHIN", 0.2)
    monkeypatch.setattr(state, "_PAUSE", 0.01)
    (tmp_path / "job_state").write_bytes(content)
    unfinished = tmp_path / "job_state.new"
    unfinished.touch()
    saving = threading.Timer(0.5, unfinished.unlink)
    since = time.time()
    saving.start()
    wait_for_save(tmp_path, since)
    assert 0.5 <= time.time() - since < 5
    saving.join()


def test_the_copy_is_of_one_save(tmp_path):
    """While two files are saved over and over, both of the copy have the same number."""
    source, stop = tmp_path / "state", threading.Event()
    source.mkdir()
    save(source, {"clustername": b"demo", "job_state": b"0", "node_state": b"0"})

    def slurmctld():
        number = 0
        while not stop.wait(0.03):
            number += 1
            save(source, {"job_state": b"%d" % number, "node_state": b"%d" % number})

    writer = threading.Thread(target=slurmctld)
    writer.start()
    try:
        for number in range(15):
            to = tmp_path / f"copy-{number}"
            copy_state(source, to, attempts=200, pause=0.005)
            assert (to / "job_state").read_bytes() == (to / "node_state").read_bytes()
    finally:
        stop.set()
        writer.join()


def test_a_state_that_never_rests_is_no_backup(tmp_path):
    """After the last attempt the copy fails, and says so."""
    source = tmp_path / "state"
    source.mkdir()
    save(source, {"clustername": b"demo"})

    class Busy(type(source)):
        def __truediv__(self, name):
            save(source, {"clustername": b"demo"})
            return super().__truediv__(name)

    with pytest.raises(BackupError, match="changed during each of 3 copies"):
        copy_state(Busy(source), tmp_path / "copy", attempts=3, pause=0)


def test_an_empty_folder_is_no_state(tmp_path):
    """A slurmctld that has never saved has nothing to back up."""
    (tmp_path / "state").mkdir()
    with pytest.raises(BackupError, match="has not written it yet"):
        copy_state(tmp_path / "state", tmp_path / "copy", attempts=2, pause=0)


def test_the_next_job_id_is_in_the_header():
    """It is the fourth field of job_state."""
    assert next_job_id(header(4711) + b"jobs") == 4711


@pytest.mark.parametrize("content", [b"", b"\0" * 40, header(1, b"PROTOCOL_VERSIOM\0"), header(1)[:20]])
def test_a_foreign_header_is_refused(content):
    """A file that is no job_state gives no number."""
    with pytest.raises(BackupError):
        next_job_id(content)
