from typing import Any

import pytest

from drachma.api import types
from drachma.server.schema import decodeerrors
from tests.unit.server import served

CLAIM = served.schema("resource.k8s.io/v1", "ResourceClaim")
SLICE = served.schema("resource.k8s.io/v1", "ResourceSlice")
POD = served.schema("v1", "Pod")
LEASE = served.schema("coordination.k8s.io/v1", "Lease")
DEPLOYMENT = served.schema("apps/v1", "Deployment")
SECRET = served.schema("v1", "Secret")


@pytest.mark.parametrize(
    ("kind", "document", "want"),
    [
        pytest.param(
            CLAIM,
            {"spec": {"devices": {"requests": "nope"}}},
            "json: cannot unmarshal string into Go struct field DeviceClaim.spec.devices.requests "
            "of type []v1.DeviceRequest",
            id="text-for-a-list",
        ),
        pytest.param(
            CLAIM,
            {"spec": {"devices": {"requests": [{"exactly": {"count": 1.5}}]}}},
            "json: cannot unmarshal number 1.5 into Go struct field "
            "ExactDeviceRequest.spec.devices.requests.exactly.count of type int64",
            id="fraction-for-an-integer",
        ),
        pytest.param(
            CLAIM,
            {"spec": {"devices": {"requests": [{"exactly": {"allocationMode": 3}}]}}},
            "json: cannot unmarshal number into Go struct field "
            "ExactDeviceRequest.spec.devices.requests.exactly.allocationMode of type v1.DeviceAllocationMode",
            id="named-string-type",
        ),
        pytest.param(
            SLICE,
            {"spec": {"allNodes": "x", "devices": [{"capacity": {"a": {"value": "1 Gi"}}}]}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a-type-that-reads-itself-ends-it-all",
        ),
        pytest.param(
            CLAIM,
            {"spec": {"devices": {"config": [{"opaque": []}]}}},
            "json: cannot unmarshal array into Go struct field "
            "DeviceClaimConfiguration.spec.devices.config.DeviceConfiguration.opaque "
            "of type v1.OpaqueDeviceConfiguration",
            id="embedded-struct",
        ),
        pytest.param(
            SLICE,
            {"spec": {"skipNodeOperations": "x"}},
            "json: cannot unmarshal string into Go struct field ResourceSliceSpec.spec.skipNodeOperations "
            "of type []v1.SkipNodeOperation",
            id="list-of-a-named-string-type",
        ),
        pytest.param(
            CLAIM,
            {"metadata": {"labels": {"a": True}}},
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            id="boolean-label",
        ),
        pytest.param(
            CLAIM,
            {"spec": []},
            "json: cannot unmarshal array into Go struct field ResourceClaim.spec of type v1.ResourceClaimSpec",
            id="list-for-an-object",
        ),
        pytest.param(
            SLICE,
            {"spec": {"devices": [{"attributes": 1}]}},
            "json: cannot unmarshal number into Go struct field Device.spec.devices.attributes "
            "of type map[v1.QualifiedName]v1.DeviceAttribute",
            id="number-for-a-map",
        ),
        pytest.param(
            SLICE,
            {"spec": {"partitionTypeAttribute": {}}},
            "json: cannot unmarshal object into Go struct field ResourceSliceSpec.spec.partitionTypeAttribute "
            "of type v1.FullyQualifiedName",
            id="object-for-a-named-string-type",
        ),
        pytest.param(
            SLICE,
            {"spec": {"devices": [{"nodeAllocatableResources": 1}]}},
            "json: cannot unmarshal number into Go struct field Device.spec.devices.nodeAllocatableResources "
            "of type map[v1.ResourceName]v1.NodeAllocatableResource",
            id="map-with-keys-of-another-package",
        ),
        pytest.param(
            CLAIM,
            {"metadata": {"creationTimestamp": "2026-11-15T18:07:58"}},
            'parsing time "2026-11-15T18:07:58" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
            id="time-without-a-zone",
        ),
        pytest.param(
            CLAIM,
            {"metadata": {"creationTimestamp": "yesterday"}},
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
            id="no-time",
        ),
        pytest.param(
            CLAIM,
            {"metadata": {"labels": 5, "creationTimestamp": 5}},
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            id="number-for-a-time",
        ),
        pytest.param(
            SLICE,
            {"spec": {"devices": [{"taints": [{"effect": 5, "timeAdded": {}}]}]}},
            "json: cannot unmarshal object into Go struct field DeviceTaint.spec.devices.taints.timeAdded "
            "of type string",
            id="object-for-a-time-in-a-list",
        ),
        pytest.param(
            LEASE,
            {"spec": {"renewTime": True}},
            "json: cannot unmarshal bool into Go struct field LeaseSpec.spec.renewTime of type string",
            id="boolean-for-a-micro-time",
        ),
        pytest.param(
            DEPLOYMENT,
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": 1.5}}}},
            "json: cannot unmarshal number 1.5 into Go struct field "
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
            id="fraction-for-a-count-or-share",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"resources": {"requests": {"cpu": "1x"}}}]}},
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="no-quantity",
        ),
        pytest.param(
            POD,
            {"spec": {"containers": [{"resources": {"requests": []}}]}},
            "json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources.requests "
            "of type v1.ResourceList",
            id="list-for-a-named-map",
        ),
        pytest.param(
            POD,
            {"spec": {"priority": 2**31}},
            "json: cannot unmarshal number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
            id="too-large-for-32-bits",
        ),
        pytest.param(SECRET, {"data": {"k": "$"}}, "illegal base64 data at input byte 0", id="no-base64"),
        pytest.param(CLAIM, {"spec": None, "metadata": {"labels": None}}, "", id="null-is-absent"),
        pytest.param(CLAIM, {"unknown": 1, "spec": {"more": []}}, "", id="unknown-fields-have-no-type"),
    ],
)
def test_explain(kind: types.Object, document: Any, want: str) -> None:
    assert decodeerrors.explain(document, kind) == want


@pytest.mark.parametrize(
    ("volume", "want"),
    [
        pytest.param(
            {"emptyDir": 80},
            "json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir "
            "of type v1.EmptyDirVolumeSource",
            id="embedded-struct",
        ),
        pytest.param(
            {"configMap": {"name": 1}},
            "json: cannot unmarshal number into Go struct field "
            "ConfigMapVolumeSource.spec.volumes.VolumeSource.configMap.LocalObjectReference.name of type string",
            id="embedded-struct-in-another",
        ),
    ],
)
def test_paths_name_embedded_structs(volume: dict[str, object], want: str) -> None:
    pod = {"spec": {"volumes": [{"name": "v", **volume}]}}
    assert decodeerrors.explain(pod, types.get("core/v1.Pod")) == want
