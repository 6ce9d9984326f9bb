"""Programs are stopped and started while others look whether all of them are alive."""

import threading
from pathlib import Path

from local.components import Fleet, dead, halt
from local.paths import State
from local.process import Process, Records, identify, spawn


def test_a_program_that_is_stopped_after_its_record_was_read_has_not_died(tmp_path: Path) -> None:
    """What was read a moment ago does not say yet that it is being stopped."""

    class Slow(Records):
        def all(self) -> list[Process]:
            found = super().all()
            if found and not found[0].is_leaving:
                halt(Fleet(State(tmp_path), Records(tmp_path), tmp_path), found[0].name)
            return found

    log = tmp_path / "log"
    Records(tmp_path).write(identify("node-1/program", spawn(["sleep", "60"], log), log))
    assert dead(Slow(tmp_path)) == []


def test_a_program_that_is_stopped_on_purpose_has_not_died(tmp_path: Path) -> None:
    """Who looks in the moment between its end and the end of its record must not take it for an accident."""
    fleet, over, died = Fleet(State(tmp_path), Records(tmp_path), tmp_path), threading.Event(), []

    def look() -> None:
        while not over.is_set():
            died.extend(dead(fleet.records))

    looks = threading.Thread(target=look)
    looks.start()
    for number in range(20):
        log = tmp_path / "log"
        name = f"node-1/program-{number}"
        fleet.records.write(identify(name, spawn(["sleep", "60"], log), log))
        assert halt(fleet, name)
    over.set()
    looks.join()
    assert died == []
    assert fleet.records.all() == []
