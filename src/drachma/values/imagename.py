"""Names of images, read as Docker's reference library reads them: what tag one has."""

from typing import Final

import re2  # type: ignore[import-untyped]

LATEST: Final = "latest"
"""The tag that is meant where none is written."""

_COMPONENT: Final = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH: Final = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_DIGEST: Final = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
# The texts are clients', and may be long: this engine takes linear time.
_REFERENCE: Final = re2.compile(
    rf"(?P<domain>{_DOMAIN}/)?(?P<path>{_PATH}(?:/{_PATH})*)(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?P<digest>@{_DIGEST})?"
)
_IDENTIFIER: Final = re2.compile("[a-f0-9]{64}")
_LONGEST_PATH: Final = 255


def tag(image: str) -> str:
    """The tag of an image; empty where it has a digest only, or its name is none."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    match = _REFERENCE.fullmatch(_add_domain(image))
    if match is None or len(match["path"]) > _LONGEST_PATH:
        return ""
    return match["tag"] or ("" if match["digest"] else LATEST)


def _add_domain(image: str) -> str:
    """A name with the domain that is meant: the first part is one only if it looks like one."""
    first, separator, _ = image.partition("/")
    if not separator:
        return f"docker.io/library/{image}"
    is_domain = "." in first or ":" in first or first == "localhost" or first.lower() != first
    return image if is_domain else f"docker.io/{image}"
