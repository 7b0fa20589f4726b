"""Webhook configurations: servers that validate or mutate objects on admission."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import documents, objectmeta
from drachma.server.kinds.admissionregistration import policies
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation.admissionregistration import webhooks as rules
from drachma.validation.fielderror import Errors

_HTTPS_PORT: Final = 443


class ValidatingWebhookConfigurationStrategy(DocumentStrategy):
    counts_generations = True
    defaults: Mapping[str, Any] = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    }

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        if content.get("webhooks"):
            content["webhooks"] = [_defaulted(each, type(self).defaults) for each in content["webhooks"]]

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content.get("webhooks") or ())

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check(content.get("webhooks") or (), old=old.get("webhooks") or ())

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def _is_changed(self, content: Document, old: Mapping[str, Any]) -> bool:
        return not documents.same(content.get("webhooks"), old.get("webhooks"))


class MutatingWebhookConfigurationStrategy(ValidatingWebhookConfigurationStrategy):
    defaults: Mapping[str, Any] = {**ValidatingWebhookConfigurationStrategy.defaults, "reinvocationPolicy": "Never"}


def _defaulted(webhook: Document, defaults: Mapping[str, Any]) -> Document:
    webhook = {**webhook, **{field: value for field, value in defaults.items() if webhook.get(field) is None}}
    if webhook.get("rules"):
        webhook["rules"] = [policies.default_rule(rule) for rule in webhook["rules"]]
    client = webhook.get("clientConfig") or {}
    service = client.get("service")
    if service is not None and service.get("port") is None:
        webhook["clientConfig"] = {**client, "service": {**service, "port": _HTTPS_PORT}}
    return webhook


def _cells(configuration: Document, now: datetime) -> layout.Cells:
    webhooks = len(configuration.get("webhooks") or ())
    return [cells.name(configuration), webhooks, cells.since_creation(configuration, now)]


_LAYOUT: Final = layout.Layout((layout.NAME, layout.integer("Webhooks", "The number of webhooks."), layout.AGE), _cells)

VALIDATING: Final = Kind(
    group=policies.GROUP,
    versions=("v1",),
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
    categories=("api-extensions",),
    layout=_LAYOUT,
    strategy=ValidatingWebhookConfigurationStrategy,
)
MUTATING: Final = Kind(
    group=policies.GROUP,
    versions=("v1",),
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
    categories=("api-extensions",),
    layout=_LAYOUT,
    strategy=MutatingWebhookConfigurationStrategy,
)
