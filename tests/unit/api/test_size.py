"""A field or an object that is too large is refused by name, before it takes the operator's memory."""

import msgspec
import pytest

from soperator.api.base import OPAQUE_MOST
from soperator.kube.views import Custom, ObjectMeta
from soperator.reconcile.cache.decode import SPEC_MOST, read_cluster, read_nodeset
from soperator.render.parts.model import Cluster, NodeSet

REF = {"clusterRef": {"name": "demo"}}


def obj(spec):
    return Custom(ObjectMeta(name="x", namespace="n", uid="u"), msgspec.Raw(msgspec.json.encode(spec)))


def template(size):
    return {"metadata": {"annotations": {"a": "x" * size}}}


@pytest.mark.parametrize(
    ("read", "spec", "field"),
    [
        (read_nodeset, REF | {"podTemplate": template(OPAQUE_MOST)}, "spec.podTemplate"),
        (read_nodeset, REF | {"volumes": [template(OPAQUE_MOST)]}, "spec.volumes.0"),
        (read_nodeset, REF | {"scheduling": {"affinity": template(OPAQUE_MOST)}}, "spec.scheduling.affinity"),
        (read_cluster, {"login": {"podTemplate": template(OPAQUE_MOST)}}, "spec.login.podTemplate"),
        (read_nodeset, REF | {"podTemplate": {str(number): 1 for number in range(65)}}, "spec.podTemplate"),
    ],
)
def test_a_field_that_is_handed_through_is_bounded(read, spec, field):
    """Its content has no schema, so nothing else bounds it; the message names the field."""
    problems = read(obj(spec))
    assert [each.field for each in problems] == [field]
    assert len(str(problems[0])) < 400


def test_a_field_of_a_usual_size_is_taken():
    """A hundred variables of a container."""
    env = [{"name": f"NAME_{number}", "value": "x" * 64} for number in range(100)]
    spec = {"podTemplate": {"spec": {"containers": [{"name": "slurmd", "env": env}]}}}
    assert isinstance(read_nodeset(obj(REF | spec)), NodeSet)


def test_a_spec_that_is_too_large_is_not_decoded():
    """Many fields within their bounds are too much together; the message has the size and the way out."""
    scripts = {f"{number:02}.sh": {"content": "#" * 65000} for number in range(20)}
    problems = read_cluster(obj({"config": {"files": scripts}}))
    assert not isinstance(problems, Cluster)
    assert [each.field for each in problems] == ["spec"]
    assert f"may have {SPEC_MOST} bytes" in str(problems[0])
