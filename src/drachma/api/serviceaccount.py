"""ServiceAccount: who a pod is. A partial view, of which its metadata is enough."""

from drachma.api import meta


class ServiceAccount(meta.Object, frozen=True, kw_only=True):
    """Core ServiceAccount, namespaced; a partial view."""
