"""Verbs of the Kubernetes API, as discovery, metrics and authorisation name them."""

from typing import Final

CREATE: Final = "create"
DELETE: Final = "delete"
DELETE_COLLECTION: Final = "deletecollection"
GET: Final = "get"
LIST: Final = "list"
PATCH: Final = "patch"
UPDATE: Final = "update"
WATCH: Final = "watch"

ALL: Final = (CREATE, DELETE, DELETE_COLLECTION, GET, LIST, PATCH, UPDATE, WATCH)
"""All verbs, in the order of discovery."""

STATUS: Final = (GET, PATCH, UPDATE)
"""Verbs of status and scale subresources."""
