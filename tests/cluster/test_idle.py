"""What an operator costs that has nothing to do."""

import json
import time
from collections import Counter

import pytest

from local.paths import DEFAULT_STATE
from tests.cluster.lab import OPERATOR, Lab

pytestmark = pytest.mark.cluster

SECONDS = 30
AUDIT = DEFAULT_STATE / "audit.log"


def test_a_settled_operator_asks_for_nothing(lab: Lab) -> None:
    """For 30 s the audit log shows of the operator only its Lease, and no list and no get."""
    if not lab.target.is_local:
        pytest.skip("the audit log of a foreign cluster is not at hand")
    lab.wait_available()
    begin = AUDIT.stat().st_size
    time.sleep(SECONDS)
    with AUDIT.open("rb") as log:
        log.seek(begin)
        raw = log.read()
    entries = [json.loads(line) for line in raw[: raw.rfind(b"\n") + 1].splitlines()]
    asked = {
        each["auditID"]: f"{each['verb']} {each['objectRef'].get('resource', '')}"
        for each in entries
        if each["user"]["username"] == f"system:serviceaccount:{OPERATOR}:soperator"
    }
    counted = Counter(word for word in asked.values() if not word.startswith("watch "))
    leases = counted.pop("patch leases", 0) + counted.pop("update leases", 0)
    assert counted == Counter()
    assert 1 <= leases <= SECONDS * 12 / 60 + 1
