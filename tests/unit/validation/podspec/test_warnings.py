"""What clients are warned of."""

from typing import Any

import pytest

from drachma.validation.path import METADATA, SPEC, Path
from drachma.validation.podspec import warnings


def _with(**container: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **container}]}


PORT = {"containerPort": 80, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(_with(), [], id="nothing"),
        pytest.param(
            _with(resources={"requests": {"memory": "1500m", "cpu": "1500m"}}),
            [
                (
                    "spec.containers[0].resources.requests[memory]: "
                    'fractional byte value "1500m" is invalid, must be an integer'
                )
            ],
            id="half-a-byte",
        ),
        pytest.param(
            _with(ports=[PORT, PORT]),
            ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
            id="a-port-twice",
        ),
        pytest.param(
            _with(ports=[{**PORT, "hostIP": "1.2.3.4"}]),
            [
                (
                    "spec.containers[0].ports[0]: hostIP set without hostPort: "
                    "{Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.2.3.4}"
                )
            ],
            id="an-address-without-a-port",
        ),
        pytest.param(
            _with(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            [
                'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
            ],
            id="a-hidden-variable",
        ),
        pytest.param(
            _with(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A):2"}]), [], id="an-extended-variable"
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"topologyKey": "z"}]},
            ["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"],
            id="spread-over-no-pods",
        ),
        pytest.param(
            {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
            [
                'spec.imagePullSecrets[1].name: duplicate name "a"',
                'spec.imagePullSecrets[2].name: invalid empty name ""',
            ],
            id="secrets",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "gitRepo": {"repository": "x"}}]},
            ["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
            id="an-old-volume",
        ),
    ],
)
def test_warnings(spec: dict[str, Any], want: list[str]) -> None:
    assert list(warnings.find(spec, SPEC, annotations={}, notes=METADATA.child("annotations"))) == want


@pytest.mark.parametrize(
    ("at", "notes", "want"),
    [
        pytest.param(SPEC, METADATA.child("annotations"), [], id="pod"),
        pytest.param(
            SPEC.child("template", "spec"),
            SPEC.child("template", "metadata", "annotations"),
            [
                (
                    "spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: "
                    'deprecated since v1.30; use the "appArmorProfile" field instead'
                )
            ],
            id="template",
        ),
    ],
)
def test_annotations_in_the_place_of_fields(at: Path, notes: Path, want: list[str]) -> None:
    """Pods get a field for the annotation of AppArmor, and are warned of it then."""
    annotations = {
        "seccomp.security.alpha.kubernetes.io/pod": "x",
        "container.seccomp.security.alpha.kubernetes.io/c": "x",
        "container.apparmor.security.beta.kubernetes.io/c": "unconfined",
    }
    replaced = 'non-functional in v1.27+; use the "seccompProfile" field instead'
    seccomp = [f"{notes.key(key)}: {replaced}" for key in list(annotations)[:2]]
    assert list(warnings.find(_with(), at, annotations=annotations, notes=notes)) == [*seccomp, *want]
    profiles = {"securityContext": {"seccompProfile": {"type": "Localhost"}, "appArmorProfile": {"type": "Unconfined"}}}
    silent = {**_with(**profiles), **profiles}
    assert list(warnings.find(silent, at, annotations=annotations, notes=notes)) == []
