"""Objects of Kueue's webhooks on a cluster: their configurations, and the certificate that cert-manager makes.

``drachma manifests`` and the chart have the same objects; a test compares them.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.process import webhookendpoint, webhookplace
from drachma.queueing.component import ActiveConfiguration

Document = dict[str, Any]

SECRET: Final = "drachma-queueing-webhooks"
_NAME: Final = "drachma-queueing"
_CERT_MANAGER: Final = "cert-manager.io/v1"


def service(namespace: str) -> webhookplace.Service:
    """Return the Service by which API servers reach the webhooks."""
    return webhookplace.Service(namespace, _NAME)


def documents(namespace: str, authority: bytes = b"") -> tuple[Document, ...]:
    """Return the webhook configurations, with the authority of an own certificate or else with one of cert-manager."""
    place = service(namespace)
    frameworks = ActiveConfiguration().jobs.management.frameworks
    configurations = webhookendpoint.manifests(place, authority, frameworks)
    if authority:
        return tuple(configurations)
    for configuration in configurations:
        configuration["metadata"]["annotations"] = {"cert-manager.io/inject-ca-from": f"{namespace}/{_NAME}"}
        for webhook in configuration["webhooks"]:
            del webhook["clientConfig"]["caBundle"]
    own = {"name": _NAME, "namespace": namespace}
    issuer = {"apiVersion": _CERT_MANAGER, "kind": "Issuer", "metadata": own, "spec": {"selfSigned": {}}}
    certificate = {
        "apiVersion": _CERT_MANAGER,
        "kind": "Certificate",
        "metadata": own,
        "spec": {"secretName": SECRET, "dnsNames": [place.host], "issuerRef": {"kind": "Issuer", "name": _NAME}},
    }
    return (issuer, certificate, *configurations)
