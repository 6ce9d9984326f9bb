"""The login pod: what it asks of its Node."""

import pytest

from soperator.api.common import Resources
from soperator.render.cluster.login import with_cpu


@pytest.mark.parametrize(
    ("said", "requests"),
    [
        ({}, {"cpu": "100m"}),
        ({"limits": {"memory": "4Gi"}}, {"cpu": "100m"}),
        ({"requests": {"memory": "1Gi"}}, {"cpu": "100m", "memory": "1Gi"}),
        ({"requests": {"cpu": "2"}}, {"cpu": "2"}),
        ({"limits": {"cpu": "50m"}}, {}),
    ],
)
def test_a_login_pod_requests_some_cpu(said, requests):
    """Unless the spec says CPU: a limit below the request would make no pod at all."""
    assert with_cpu(Resources.model_validate(said)).requests == requests
