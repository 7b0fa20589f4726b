"""Targets of kinds, of any resource, and of views that are no kinds."""

from drachma.api import meta, pod, resourceclaim, service, v1beta1
from drachma.client import target

SERVICES = target.metadata_of("", "v1", plural="services", kind="Service", namespaced=True)


def test_a_kind_knows_the_shape_of_each_version() -> None:
    claims = target.of(resourceclaim.ResourceClaim)
    assert claims.shape("v1") is resourceclaim.ResourceClaim
    assert claims.shape("v1beta1") is v1beta1.ResourceClaim
    assert target.of(pod.Pod).shape("v1") is pod.Pod


def test_any_resource_can_be_read_as_metadata_or_as_a_view() -> None:
    assert SERVICES.shape("v1") is meta.Object
    viewed = target.view_of(SERVICES, service.Service)
    assert viewed.shape("v1") is service.Service
    assert not viewed.is_reshaped("v1")
    assert viewed.path("v1", "n") == SERVICES.path("v1", "n") == "/api/v1/namespaces/n/services"
