"""Discovery documents: what clients read before anything else."""

from drachma.server.kinds import builtin
from drachma.server.kinds.kueue import queuekinds
from drachma.server.surface import discovery, resources
from tests.unit.server import served

CATALOG = served.CATALOG


def test_groups_come_in_the_order_of_preference() -> None:
    listed = discovery.group_list(CATALOG)["groups"]
    some = ("apps", "batch", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io", "resource.k8s.io")
    assert [each["name"] for each in listed if each["name"] in some] == list(some)


def test_workloads_without_a_group_are_kueues_where_kueue_is() -> None:
    catalog = resources.Catalog((*builtin.KINDS, *queuekinds.kinds()))
    listed = [each["name"] for each in discovery.group_list(catalog)["groups"]]
    assert listed.index("kueue.x-k8s.io") < listed.index("scheduling.k8s.io")


def test_a_group_names_its_preferred_version_first() -> None:
    result = discovery.group(CATALOG, "resource.k8s.io")
    assert result is not None
    assert result["preferredVersion"] == {"groupVersion": "resource.k8s.io/v1", "version": "v1"}
    assert [each["version"] for each in result["versions"]] == ["v1", "v1beta2", "v1beta1", "v1alpha3"]


def test_what_is_not_served_is_none() -> None:
    assert discovery.group(CATALOG, "nope.example.com") is None
    assert discovery.group(CATALOG, "") is None
    assert discovery.resource_list(CATALOG, "resource.k8s.io", version="v7") is None


def test_resources_with_their_subresources() -> None:
    result = discovery.resource_list(CATALOG, "resource.k8s.io", version="v1alpha3") or {}
    taint_rules = [each for each in result["resources"] if each["name"].startswith("devicetaintrules")]
    assert {**result, "resources": taint_rules} == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "resource.k8s.io/v1alpha3",
        "resources": [
            {
                "name": "devicetaintrules",
                "singularName": "devicetaintrule",
                "namespaced": False,
                "kind": "DeviceTaintRule",
                "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
                "storageVersionHash": "i+85+TcIKpA=",
            },
            {
                "name": "devicetaintrules/status",
                "singularName": "",
                "namespaced": False,
                "kind": "DeviceTaintRule",
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_the_core_list_has_no_version_of_its_own() -> None:
    result = discovery.resource_list(CATALOG, "", version="v1")
    assert result is not None
    assert "apiVersion" not in result
    eviction = next(each for each in result["resources"] if each["name"] == "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")


def test_aggregated_discovery_has_everything_in_one_document() -> None:
    result = discovery.aggregated(CATALOG)
    assert (result["kind"], result["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    apps = result["items"][0]
    assert apps["metadata"] == {"name": "apps"}
    deployments = next(each for each in apps["versions"][0]["resources"] if each["resource"] == "deployments")
    assert deployments["scope"] == "Namespaced"
    assert deployments["shortNames"] == ["deploy"]
    assert deployments["subresources"][0] == {
        "subresource": "scale",
        "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "verbs": ["get", "patch", "update"],
    }


def test_aggregated_core_group_has_no_name() -> None:
    (core,) = discovery.aggregated_core(CATALOG)["items"]
    assert core["metadata"] == {}
    assert [each["version"] for each in core["versions"]] == ["v1"]


def test_api_versions_say_where_the_server_is() -> None:
    result = discovery.api_versions(server_address="192.0.2.1:6443")
    assert result["serverAddressByClientCIDRs"] == [{"clientCIDR": "0.0.0.0/0", "serverAddress": "192.0.2.1:6443"}]
