"""What Kubernetes' own signers sign."""

import pytest

from drachma.api import certificatesigningrequest as csr
from drachma.controllers.certificates import signers
from drachma.values import certificaterequests
from tests import certificaterequests as builders

CLIENT = ("digital signature", "key encipherment", "client auth")
SERVING = ("digital signature", "key encipherment", "server auth")
NODE = ("system:node:n", "system:nodes")


@pytest.mark.parametrize(
    ("signer", "pem", "usages", "want"),
    [
        pytest.param(csr.KUBELET_CLIENT, builders.pem(*NODE), CLIENT, None, id="client"),
        pytest.param(csr.KUBELET_CLIENT, builders.pem(*NODE), CLIENT[::2], None, id="client-without-encipherment"),
        pytest.param(
            csr.KUBELET_CLIENT,
            builders.pem(*NODE),
            SERVING,
            "usages did not match [client auth digital signature key encipherment]",
            id="client-for-another-use",
        ),
        pytest.param(
            csr.KUBELET_CLIENT,
            builders.pem("system:node:n", "system:nodes", "more"),
            CLIENT,
            "subject organization is not system:nodes",
            id="client-in-two-groups",
        ),
        pytest.param(
            csr.KUBELET_CLIENT,
            builders.pem("n", "system:nodes"),
            CLIENT,
            "subject common name does not begin with system:node:",
            id="client-that-is-no-node",
        ),
        pytest.param(
            csr.KUBELET_CLIENT,
            builders.pem(*NODE, addresses=["10.0.0.1"]),
            CLIENT,
            "IP subjectAltNames are not allowed",
            id="client-with-address",
        ),
        pytest.param(csr.KUBELET_SERVING, builders.pem(*NODE, hosts=["n"]), SERVING, None, id="serving"),
        pytest.param(
            csr.KUBELET_SERVING,
            builders.pem(*NODE),
            SERVING,
            "DNS or IP subjectAltName is required",
            id="serving-under-no-name",
        ),
        pytest.param(
            csr.KUBELET_SERVING,
            builders.pem("n", "system:nodes", hosts=["n"]),
            SERVING,
            "subject common name does not begin with system:node:",
            id="serving-that-is-no-node",
        ),
        pytest.param(csr.API_CLIENT, builders.pem("ann", "dev"), ("client auth",), None, id="anybody"),
        pytest.param(
            csr.API_CLIENT,
            builders.pem("ann"),
            ("digital signature",),
            "missing required usage for client certificate: client auth",
            id="anybody-for-nothing",
        ),
        pytest.param(
            csr.API_CLIENT,
            builders.pem("ann"),
            ("server auth",),
            "invalid usage for client certificate: server auth",
            id="anybody-as-server",
        ),
        pytest.param(csr.LEGACY_UNKNOWN, builders.pem("ann"), ("any",), None, id="old"),
    ],
)
def test_rules(signer: str, pem: bytes, usages: tuple[str, ...], want: str | None) -> None:
    assert signers.RULES[signer](certificaterequests.read(pem), usages) == want
