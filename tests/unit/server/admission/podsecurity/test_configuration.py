"""Configuration of Pod Security admission."""

from typing import Any

import pytest

from drachma import errors
from drachma.server.admission.podsecurity import configuration
from drachma.server.admission.podsecurity.policies import LATEST, Level, LevelVersion, Policy


def document(**fields: Any) -> dict[str, Any]:
    api_version = fields.pop("apiVersion", "pod-security.admission.config.k8s.io/v1")
    return {"apiVersion": api_version, "kind": "PodSecurityConfiguration", **fields}


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_an_empty_configuration_is_the_standard_one(version: str) -> None:
    api_version = f"pod-security.admission.config.k8s.io/{version}"
    assert configuration.read(document(apiVersion=api_version)) == configuration.STANDARD


def test_defaults_and_exemptions() -> None:
    read = configuration.read(
        document(
            defaults={"enforce": "baseline", "enforce-version": "v1.30", "audit-version": "v1.2", "warn": "restricted"},
            exemptions={"usernames": ["admin"], "namespaces": ["kube-system"], "runtimeClasses": ["sandbox"]},
        )
    )
    assert read.defaults == Policy(
        enforce=LevelVersion(Level.BASELINE, 30),
        audit=LevelVersion(Level.PRIVILEGED, 2),
        warn=LevelVersion(Level.RESTRICTED, LATEST),
    )
    assert read.exemptions == configuration.Exemptions(
        usernames=frozenset({"admin"}), namespaces=frozenset({"kube-system"}), runtime_classes=frozenset({"sandbox"})
    )


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        pytest.param(
            {"defaults": {"enforce": "super", "warn-version": "1.2"}},
            'defaults.enforce: Invalid value: "super": must be one of privileged, baseline, restricted; '
            'defaults.warn-version: Invalid value: "1.2": must be "latest" or "v1.x"',
            id="defaults",
        ),
        pytest.param(
            {"exemptions": {"usernames": ["a", "", "a"]}},
            'exemptions.usernames[1]: Invalid value: "": username must not be empty; '
            'exemptions.usernames[2]: Duplicate value: "a"',
            id="usernames",
        ),
        pytest.param(
            {"exemptions": {"namespaces": ["A"]}}, 'exemptions.namespaces[0]: Invalid value: "A"', id="namespace"
        ),
        pytest.param(
            {"exemptions": {"runtimeClasses": ["a_b"]}},
            'exemptions.runtimeClasses[0]: Invalid value: "a_b"',
            id="class",
        ),
    ],
)
def test_bad_values(fields: dict[str, Any], want: str) -> None:
    with pytest.raises(errors.InvalidValueError) as caught:
        configuration.read(document(**fields))
    assert str(caught.value).startswith(f"PodSecurityConfiguration: {want}")


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(document(default={}), id="unknown-field"),
        pytest.param(document(defaults={"enforced": "baseline"}), id="unknown-default"),
        pytest.param(document(apiVersion="pod-security.admission.config.k8s.io/v2"), id="version"),
        pytest.param(document(apiVersion="v1"), id="group"),
        pytest.param({**document(), "kind": "Pod"}, id="kind"),
        pytest.param([], id="list"),
    ],
)
def test_other_documents(bad: Any) -> None:
    with pytest.raises(errors.DecodeError, match="PodSecurityConfiguration: "):
        configuration.read(bad)
