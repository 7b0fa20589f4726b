"""Stateful sets: their pods are judged as they will be made."""

from typing import Any

from drachma.validation import apps
from tests.unit.validation.podspec import specs


def _set(*, claims: tuple[str, ...], **pod: Any) -> dict[str, Any]:
    container = specs.container(name="c", image="x", volumeMounts=[{"name": "data", "mountPath": "/data"}])
    template = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "containers": [container], **pod}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec = {
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": template},
        "volumeClaimTemplates": [{"metadata": {"name": name}, "spec": claim} for name in claims],
    }
    return {"spec": spec}


def test_volumes_of_claims_can_be_mounted() -> None:
    assert not list(apps.KINDS["StatefulSet"].always(_set(claims=("data",))))


def test_what_no_claim_is_for_cannot() -> None:
    (error,) = apps.KINDS["StatefulSet"].always(_set(claims=("other",)))
    assert str(error) == 'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'


def test_names_that_the_set_gives_are_not_looked_at() -> None:
    assert not list(
        apps.KINDS["StatefulSet"].always(_set(claims=("data",), hostname="Not A Name", subdomain="Neither!"))
    )
