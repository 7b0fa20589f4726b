"""Names of the forms in which bodies and answers are written, as HTTP headers and OpenAPI documents spell them."""

from typing import Final

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
TEXT_TYPES: Final = (JSON, YAML)
BODY_TYPES: Final = (JSON, YAML, PROTOBUF)
STREAM_TYPES: Final = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
"""Both lists, like that of what is read, as upstream names them in its refusals."""

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
PATCH_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
