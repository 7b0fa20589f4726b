"""Secret: confidential data. A partial view."""

from collections.abc import Mapping

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT


class Secret(meta.Object, frozen=True, kw_only=True):
    """Core Secret, namespaced; a partial view. ``data`` is in base64, as on the wire."""

    type: str = ABSENT_TEXT
    data: Mapping[str, str] = ABSENT_MAP
