"""ServiceAccount: identity of pods. A partial view of its metadata."""

from drachma.api import meta


class ServiceAccount(meta.Object, frozen=True, kw_only=True):
    """Core ServiceAccount, namespaced; a partial view."""
