import pytest

from drachma import errors
from drachma.server.surface import fieldselector, resources
from tests.unit.server import served

SLICES = served.CATALOG.find("resource.k8s.io", "v1", plural="resourceslices")
PODS = served.CATALOG.find("", "v1", plural="pods")
CLAIMS = served.CATALOG.find("resource.k8s.io", "v1", plural="resourceclaims")
JOBS = served.CATALOG.find("batch", "v1", plural="jobs")

POD = {
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {"nodeName": "n1", "hostNetwork": True, "schedulerName": "default-scheduler"},
    "status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]},
}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param("", True, id="nothing-selects-everything"),
        pytest.param("spec.nodeName=n1", True, id="equal"),
        pytest.param("spec.nodeName==n1", True, id="double-equal"),
        pytest.param("spec.nodeName!=n1", False, id="not-equal"),
        pytest.param("spec.nodeName=n1,status.phase!=Failed", True, id="all-terms-hold"),
        pytest.param("spec.nodeName=n1,status.phase=Failed", False, id="one-term-fails"),
        pytest.param("spec.hostNetwork=true", True, id="boolean-is-text"),
        pytest.param("status.podIPs=10.0.0.1", True, id="first-address"),
        pytest.param("status.nominatedNodeName=", True, id="absent-is-empty"),
        pytest.param("spec.host=n1", True, id="old-name-of-a-field"),
        pytest.param("metadata.namespace=ns,metadata.name=p", True, id="identity"),
    ],
)
def test_matches(text: str, want: bool) -> None:
    assert PODS is not None
    assert fieldselector.parse(text, PODS, version="v1").matches(POD) is want


@pytest.mark.parametrize(
    ("resource", "text", "want"),
    [
        pytest.param(
            SLICES,
            "spec.bogus=1",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.bogus",
            id="unknown-field-of-a-slice",
        ),
        pytest.param(PODS, "spec.bogus=1", "field label not supported: spec.bogus", id="unknown-field-of-a-pod"),
        pytest.param(
            CLAIMS,
            "spec.x=1",
            '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="kind-without-fields-of-its-own",
        ),
        pytest.param(JOBS, "x=1", 'field label "x" not supported for Job', id="job"),
        pytest.param(PODS, "x", "invalid selector: 'x'; can't understand 'x'", id="no-operator"),
        pytest.param(
            PODS, "spec.nodeName=a=b", "invalid field selector: unescaped character in value: 61", id="bare-equals"
        ),
        pytest.param(
            PODS, r"spec.nodeName=\x", r"invalid field selector: invalid escape sequence: \x", id="unknown-escape"
        ),
        pytest.param(PODS, "spec.nodeName=\\", "invalid field selector: invalid escape sequence: \\", id="lone-slash"),
    ],
)
def test_refused(resource: resources.Resource, text: str, want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        fieldselector.parse(text, resource, version="v1")
    assert str(caught.value) == want


def test_escaped_comma_is_part_of_the_value() -> None:
    assert SLICES is not None
    selector = fieldselector.parse(r"spec.driver=a\,b\=c\\d", SLICES, version="v1")
    assert selector.required("spec.driver") == "a,b=c\\d"
    assert selector.required("spec.nodeName") is None
