"""The verbs of the Kubernetes API, by the names that discovery, metrics and authorisation use."""

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
"""In the order in which discovery lists them."""

STATUS: Final = (GET, PATCH, UPDATE)
"""What a status or scale subresource answers."""
