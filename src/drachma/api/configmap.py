"""ConfigMap: configuration by key. A partial view."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP


class ConfigMap(meta.Object, frozen=True, kw_only=True):
    """Core ConfigMap, namespaced; a partial view."""

    data: Mapping[str, str] = ABSENT_MAP
