"""Cost of validation on the write path: microseconds for the rules of a new object that has no errors."""

import datetime as dt
from typing import Any

from bench import timing
from drachma.api import codec, defaults
from drachma.validation import context, writes
from drachma.validation.path import SPEC
from drachma.validation.podspec import spec as pod_spec

_NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {"name": f"gpu-{index}", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}
                for index in range(2)
            ],
            "constraints": [{"requests": ["gpu-0"], "matchAttribute": "gpu.example.com/numa"}],
        }
    },
}
_SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node-1",
        "devices": [
            {
                "name": f"gpu-{index}",
                "attributes": {"model": {"string": "A"}, "index": {"int": index}, "driver": {"version": "1.2.3"}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
            for index in range(16)
        ],
    },
}
_POD: dict[str, Any] = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "terminationGracePeriodSeconds": 30,
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
    "volumes": [{"name": "data", "emptyDir": {}}],
    "containers": [
        {
            "name": f"c{index}",
            "image": "example.com/image:1",
            "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File",
            "env": [{"name": "A", "value": "b"}],
            "ports": [{"containerPort": 80 + index, "protocol": "TCP"}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"memory": "1Gi"},
                "claims": [{"name": "gpu"}],
            },
            "livenessProbe": {
                "httpGet": {"path": "/", "port": 80, "scheme": "HTTP"},
                "periodSeconds": 10,
                "successThreshold": 1,
            },
        }
        for index in range(2)
    ],
}


def main() -> None:
    """Print one line a kind."""
    now = context.Context(now=_NOW)
    claim, slice_ = (defaults.apply(codec.decode(each), now=_NOW) for each in (_CLAIM, _SLICE))
    for made in (claim, slice_):
        assert not writes.create(made, now).errors, "the object is valid"
    assert not list(pod_spec.check(_POD, SPEC, is_pod=True)), "the pod is valid"
    rows = [
        ("claim, 2 requests", timing.per_call(lambda: writes.create(claim, now), repeat=500)),
        ("slice, 16 devices", timing.per_call(lambda: writes.create(slice_, now), repeat=100)),
        ("pod, 2 containers", timing.per_call(lambda: pod_spec.check(_POD, SPEC, is_pod=True), repeat=500)),
    ]
    timing.table("validation of a new object", ("object", "us"), [(name, f"{cost * 1e6:.1f}") for name, cost in rows])


if __name__ == "__main__":
    main()
