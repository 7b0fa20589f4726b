"""Secrets and config maps."""

from typing import Any

import pytest

from drachma.validation import configuration
from drachma.validation.path import ROOT


@pytest.mark.parametrize(
    ("content", "want"),
    [
        pytest.param(
            {"type": "kubernetes.io/service-account-token"},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
            id="metadata-annotations-kubernetes-io-service-account-name-required-value",
        ),
        pytest.param(
            {"type": "kubernetes.io/dockercfg"},
            ["data[.dockercfg]: Required value"],
            id="data-dockercfg-required-value",
        ),
        pytest.param(
            {"type": "kubernetes.io/basic-auth"},
            ["data[username]: Required value", "data[password]: Required value"],
            id="data-username-required-value",
        ),
        pytest.param(
            {"type": "kubernetes.io/ssh-auth"},
            ["data[ssh-privatekey]: Required value"],
            id="data-ssh-privatekey-required-value",
        ),
        pytest.param(
            {"type": "kubernetes.io/tls"},
            ["data[tls.crt]: Required value", "data[tls.key]: Required value"],
            id="data-tls-crt-required-value",
        ),
    ],
)
def test_refused(content: dict[str, Any], want: list[str]) -> None:
    found = [str(error) for error in configuration.KINDS["Secret"].always(content, ROOT, {})]
    assert found == want
