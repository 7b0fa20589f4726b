"""The claim for extended resources: its requests, and the containers that use them."""

from typing import Any

import pytest

from drachma.accounting import extendedresources
from drachma.scheduler.plugins.dynamicresources import extendedclaim
from drachma.testing import device_class
from drachma.testing import pod as a_pod

GPU = "example.com/gpu"
NIC = "example.com/nic"


def names() -> extendedresources.ExtendedResources:
    made = extendedresources.ExtendedResources()
    made.put(device_class("gpu").extended_resource(GPU).build())
    made.put(device_class("nic").extended_resource(NIC).build())
    return made


@pytest.mark.parametrize(
    ("built", "want_requests", "want_mappings"),
    [
        pytest.param(
            a_pod("p").container("a", requests={GPU: "2"}).container("b", requests={GPU: "1", "cpu": "1"}),
            [("container-0-request-0", "gpu", 2), ("container-1-request-1", "gpu", 1)],
            [("a", GPU, "container-0-request-0"), ("b", GPU, "container-1-request-1")],
            id="containers-have-their-own",
        ),
        pytest.param(
            a_pod("p").init_container("i", requests={GPU: "1"}).container("a", requests={GPU: "2"}),
            [("container-1-request-0", "gpu", 2)],
            [("a", GPU, "container-1-request-0"), ("i", GPU, "container-1-request-0")],
            id="init-containers-use-what-comes-later",
        ),
        pytest.param(
            a_pod("p")
            .init_container("i", requests={GPU: "2"})
            .init_container("j", requests={GPU: "4"})
            .container("a", requests={GPU: "1"}),
            [("container-1-request-0", "gpu", 3), ("container-2-request-0", "gpu", 1)],
            [
                ("a", GPU, "container-2-request-0"),
                ("i", GPU, "container-2-request-0"),
                ("i", GPU, "container-1-request-0"),
                ("j", GPU, "container-2-request-0"),
                ("j", GPU, "container-1-request-0"),
            ],
            id="init-containers-share-the-largest-extra",
        ),
        pytest.param(
            a_pod("p")
            .init_container("s", requests={GPU: "1"}, restart_policy="Always")
            .container("a", requests={GPU: "1"}),
            [("container-0-request-0", "gpu", 1), ("container-1-request-0", "gpu", 1)],
            [("s", GPU, "container-0-request-0"), ("a", GPU, "container-1-request-0")],
            id="sidecars-have-their-own",
        ),
        pytest.param(
            a_pod("p").container("a", requests={GPU: "1", NIC: "1"}),
            [("container-0-request-0", "gpu", 1), ("container-0-request-1", "nic", 1)],
            [("a", GPU, "container-0-request-0"), ("a", NIC, "container-0-request-1")],
            id="several-resources",
        ),
        pytest.param(a_pod("p").container("a", requests={GPU: "0"}), [], [], id="nothing-wanted"),
    ],
)
def test_requests(built: Any, want_requests: Any, want_mappings: Any) -> None:
    found = extendedclaim.build_requests(built.build(), (NIC, GPU), names())
    requests = [
        (each.name, each.exactly.device_class_name, each.exactly.count) for each in found.requests if each.exactly
    ]
    assert requests == want_requests
    assert [(each.container_name, each.resource_name, each.request_name) for each in found.mappings] == want_mappings


def test_the_draft_belongs_to_the_pod() -> None:
    waiting = a_pod("p").uid("u").build()
    draft = extendedclaim.draft(waiting, uid="temporary")
    assert draft.metadata.generate_name == "p-extended-resources-"
    assert (draft.metadata.owner_references[0].uid, draft.metadata.owner_references[0].controller) == ("u", True)
