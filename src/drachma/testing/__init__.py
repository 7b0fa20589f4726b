"""Builders for every kind, for tests of drachma and of what is built on it. Never imported by the product.

A builder is immutable: each method gives a new one, ``build()`` gives the object.

>>> claim("c").request("gpu", device_class="gpu.example.com", count=2).build().spec.devices.requests[0].exactly.count
2
"""

from drachma.driver.devices import DeviceBuilder, device
from drachma.testing.claims import ClaimBuilder, ClaimTemplateBuilder, claim, claim_template, subrequest
from drachma.testing.clusterobjects import event, lease, namespace, node, resource_quota
from drachma.testing.policy import DeviceClassBuilder, device_class, taint_rule
from drachma.testing.slices import SliceBuilder, resource_slice
from drachma.testing.workloads import PodBuilder, job, pod

__all__ = [
    "ClaimBuilder",
    "ClaimTemplateBuilder",
    "DeviceBuilder",
    "DeviceClassBuilder",
    "PodBuilder",
    "SliceBuilder",
    "claim",
    "claim_template",
    "device",
    "device_class",
    "event",
    "job",
    "lease",
    "namespace",
    "node",
    "pod",
    "resource_quota",
    "resource_slice",
    "subrequest",
    "taint_rule",
]
