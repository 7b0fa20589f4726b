"""Objects of v1alpha2 in v1, and notes on what v1 cannot express."""

from typing import Any

import pytest

from drachma.claims import podsources
from drachma.offline import migrationdocuments

DRIVER = "cards.dra.example.com"
GROUP = "resource.k8s.io"
CAPACITY = f'device.capacity["{DRIVER}"]'
ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def alpha(kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1alpha2", "kind": kind, "metadata": {"name": name}, **content}


SLICE = alpha(
    "NodeResourceSlice",
    "s",
    spec={
        "nodeName": "worker-1",
        "driverName": DRIVER,
        "namedResourcesWithAttributes": [
            {
                "name": "gpu-1",
                "attributes": [
                    {"name": "memory", "quantity": "32Gi"},
                    {"name": "runtimeVersion", "version": "12.1.0"},
                    {"name": "model", "string": "A4"},
                ],
            }
        ],
    },
)
CLASS_PARAMETERS = alpha(
    "ResourceClassParameters",
    "of-class",
    vendorParameters={"kind": "CardClassParameters"},
    filters=[{"driverName": DRIVER, "namedResourcesWithAttributes": {"selector": 'attributes["memory"] <= "64Gi"'}}],
)
CLASS = alpha(
    "ResourceClass",
    "cards",
    driverName=DRIVER,
    structuredParameters=True,
    parametersRef={"apiGroup": GROUP, "kind": "ResourceClassParameters", "name": "of-class"},
)
PARAMETERS = alpha(
    "ResourceClaimParameters",
    "p",
    shareable=True,
    vendorParameters={"kind": "CardParameters"},
    requests=[
        {
            "driverName": DRIVER,
            "namedResourcesWithAttributes": {
                "required": [
                    {"selector": 'attributes["runtimeVersion"] >= "v12.0.0" && attributes["memory"] >= "32Gi"'},
                    {"selector": "true"},
                ]
            },
        }
    ],
)
REFERENCE = {"apiGroup": GROUP, "kind": "ResourceClaimParameters", "name": "p"}
CLAIM = alpha("ResourceClaim", "c", spec={"resourceClassName": "cards", "parametersRef": REFERENCE})


def migrated(*documents: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    done = migrationdocuments.migrate(list(documents))
    return {each["kind"]: each for each in done.documents}, done.migration.notes


def test_parameters_are_folded_into_classes_and_claims() -> None:
    objects, notes = migrated(SLICE, CLASS_PARAMETERS, CLASS, PARAMETERS, CLAIM)
    assert notes == ()
    assert set(objects) == {"DeviceClass", "ResourceClaim", "ResourceSlice"}
    own = f'device.driver == "{DRIVER}"'
    assert objects["DeviceClass"]["spec"] == {
        "selectors": [{"cel": {"expression": f'{own} && {CAPACITY}.memory.compareTo(quantity("64Gi")) <= 0'}}],
        "config": [{"opaque": {"driver": DRIVER, "parameters": {"kind": "CardClassParameters"}}}],
    }
    devices = objects["ResourceClaim"]["spec"]["devices"]
    wish = (
        f'{ATTRIBUTES}.runtimeVersion.compareTo(semver("12.0.0")) >= 0 && '
        f'{CAPACITY}.memory.compareTo(quantity("32Gi")) >= 0'
    )
    one = {"deviceClassName": "cards", "allocationMode": "ExactCount", "count": 1}
    assert devices["requests"] == [
        {"name": "request-0", "exactly": {**one, "selectors": [{"cel": {"expression": wish}}]}},
        {"name": "request-1", "exactly": one},
    ]
    parameters = {"driver": DRIVER, "parameters": {"kind": "CardParameters"}}
    assert devices["config"] == [{"requests": ["request-0", "request-1"], "opaque": parameters}]
    assert objects["ResourceSlice"]["spec"]["pool"]["name"] == "worker-1"


NIC = "nics.example.com"


def of_two_drivers(*others: Any) -> list[Any]:
    """Return the result for a claim with resources of two drivers."""
    nic = {"driverName": NIC, "namedResourcesWithAttributes": {"selector": 'attributes.bool["rdma"]'}}
    both = {**PARAMETERS, "requests": [*PARAMETERS["requests"], nic]}
    done = migrationdocuments.migrate([*others, both, CLAIM])
    return [each for each in done.documents if each["kind"] in ("DeviceClass", "ResourceClaim")]


def test_a_class_of_several_drivers() -> None:
    unfiltered = {key: value for key, value in CLASS.items() if key != "parametersRef"}
    class_, claim = of_two_drivers(unfiltered)
    [selector] = class_["spec"]["selectors"]
    assert selector["cel"]["expression"] == f'(device.driver == "{DRIVER}") || (device.driver == "{NIC}")'
    wishes = [each["exactly"] for each in claim["spec"]["devices"]["requests"]]
    assert {each["deviceClassName"] for each in wishes} == {"cards"}
    beginnings = [each["selectors"][0]["cel"]["expression"].partition(" && ")[0] for each in wishes]
    assert beginnings == [f'device.driver == "{each}"' for each in (DRIVER, DRIVER, NIC)]


def test_a_filter_is_not_asked_of_resources_of_another_driver() -> None:
    own, other, claim = of_two_drivers(CLASS_PARAMETERS, CLASS)
    assert own["spec"]["selectors"][0]["cel"]["expression"].startswith(f'device.driver == "{DRIVER}" && ')
    assert other["metadata"]["name"] == "cards.nics.example.com"
    assert other["spec"]["selectors"] == [{"cel": {"expression": f'device.driver == "{NIC}"'}}]
    names = [each["exactly"]["deviceClassName"] for each in claim["spec"]["devices"]["requests"]]
    assert names == ["cards", "cards", "cards.nics.example.com"]


def test_types_that_are_not_known_are_asked_for() -> None:
    objects, _ = migrated(CLASS_PARAMETERS, CLASS, PARAMETERS, CLAIM)
    expression = objects["DeviceClass"]["spec"]["selectors"][0]["cel"]["expression"]
    assert f'"memory" in {CAPACITY} ?' in expression


@pytest.mark.parametrize(
    ("documents", "want"),
    [
        pytest.param(
            [CLASS_PARAMETERS, {**CLASS, "suitableNodes": {"nodeSelectorTerms": []}}],
            "ResourceClass cards: suitableNodes: device classes have none; give pods node affinity instead",
            id="suitable-nodes",
        ),
        pytest.param(
            [CLASS_PARAMETERS, {**CLASS, "structuredParameters": False}],
            f"ResourceClass cards: driver {DRIVER} allocates its claims itself, for which v1 has nothing",
            id="another-controller",
        ),
        pytest.param(
            [CLASS],
            "ResourceClass cards: class parameters of-class not found: its filters are not known",
            id="class-without-parameters",
        ),
        pytest.param(
            [CLASS_PARAMETERS, CLASS, CLAIM],
            "ResourceClaim default/c: is not migrated: claim parameters default/p not found",
            id="claim-without-parameters",
        ),
        pytest.param(
            [CLASS_PARAMETERS, CLASS, {**PARAMETERS, "shareable": False}, CLAIM],
            "ResourceClaim default/c: is not shareable: claims of v1 can be used by several pods at a time",
            id="exclusive",
        ),
        pytest.param(
            [CLASS_PARAMETERS, CLASS, PARAMETERS, {**CLAIM, "spec": {**CLAIM["spec"], "allocationMode": "Immediate"}}],
            "ResourceClaim default/c: allocationMode Immediate: "
            "claims of v1 do not stay allocated when no pod uses them",
            id="immediate",
        ),
        pytest.param(
            [CLASS_PARAMETERS, CLASS, PARAMETERS, {**CLAIM, "status": {"driverName": "d", "allocation": {}}}],
            "ResourceClaim default/c: is allocated; what it was given is not carried over: have its pods end first",
            id="allocated",
        ),
        pytest.param(
            [
                {
                    **SLICE,
                    "spec": {
                        **SLICE["spec"],
                        "namedResourcesWithAttributes": [
                            {"name": "a", "attributes": [{"name": "x", "string": "y" * 65}]}
                        ],
                    },
                }
            ],
            f"node worker-1, driver {DRIVER}: resource a, attribute x: texts of devices have at most 64 bytes",
            id="long-text",
        ),
    ],
)
def test_what_cannot_be_expressed_is_reported(documents: list[dict[str, Any]], want: str) -> None:
    assert migrated(*documents)[1] == (want,)


def test_v1alpha3_and_others() -> None:
    old = {
        "apiVersion": f"{GROUP}/v1alpha3",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu.example.com"}]}}},
    }
    rule = {"apiVersion": f"{GROUP}/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    objects, notes = migrated(old, rule)
    assert notes == ()
    assert objects["ResourceClaimTemplate"]["apiVersion"] == f"{GROUP}/v1"
    [request] = objects["ResourceClaimTemplate"]["spec"]["spec"]["devices"]["requests"]
    assert request == {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    assert objects["DeviceTaintRule"] is rule


def test_sources_of_pods_are_lifted() -> None:
    claims = [
        {"name": "a", "source": {"resourceClaimName": "x"}},
        {"name": "b", "source": {"resourceClaimTemplateName": "y"}},
        {"name": "c", "resourceClaimName": "z"},
    ]
    job = {"kind": "Job", "spec": {"template": {"spec": {"resourceClaims": claims, "containers": []}}}}
    assert podsources.lift_sources(job)["spec"]["template"]["spec"]["resourceClaims"] == [
        {"name": "a", "resourceClaimName": "x"},
        {"name": "b", "resourceClaimTemplateName": "y"},
        {"name": "c", "resourceClaimName": "z"},
    ]
    plain = {"kind": "Pod", "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "z"}], "source": "kept"}}
    assert podsources.lift_sources(plain) is plain
