"""The forms that declared rules demand of texts.

They are those of :mod:`drachma.validation.formats` in other words: upstream worded its declared rules anew.
"""

from collections.abc import Sequence
from typing import Final

from drachma.validation import fielderror, limits
from drachma.validation.declared import Values, max_length, text_format
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names


def _short_name_problems(text: str) -> Sequence[str]:
    return names.dns1123_label(text, unit="bytes")


def _long_name_problems(text: str) -> Sequence[str]:
    return names.dns1123_subdomain(text, unit="bytes")


short_name: Final = text_format(_short_name_problems, origin="k8s-short-name")
long_name: Final = text_format(_long_name_problems, origin="k8s-long-name")
caseless_name: Final = text_format(names.dns1123_subdomain_caseless, origin="k8s-long-name-caseless")
label_key: Final = text_format(names.label_key, origin="k8s-label-key")
uuid: Final = text_format(names.uuid, origin="k8s-uuid")
extended_resource: Final = text_format(names.extended_resource_name, origin="k8s-extended-resource-name")
driver_length: Final = max_length(limits.DRIVER_NAME, unit="character", origin="maxLength")


def pool_name(values: Values, at: Path) -> Errors:
    """DNS subdomains with slashes between them."""
    origin = "format=k8s-resource-pool-name"
    if names.byte_length(values.new) > limits.POOL_NAME:
        yield fielderror.too_long(at, limits.POOL_NAME, origin=origin)
    for position, segment in enumerate(values.new.split("/")):
        if not segment:
            yield fielderror.invalid(at, values.new, f"segment {position}: must not be empty", origin=origin)
            continue
        for problem in _long_name_problems(segment):
            yield fielderror.invalid(at, segment, f"segment {position}: {problem}", origin=origin)


def fully_qualified_name(values: Values, at: Path) -> Errors:
    """``domain/identifier``; more than one slash passes unchecked, as upstream lets it."""
    origin = "format=k8s-resource-fully-qualified-name"
    text = values.new
    match text.split("/"):
        case [identifier]:
            yield from _identifier(identifier, at, origin=origin)
        case [domain, identifier]:
            if domain:
                if names.byte_length(domain) > limits.ATTRIBUTE_DOMAIN:
                    yield fielderror.too_long(at, limits.ATTRIBUTE_DOMAIN, origin=origin)
                for problem in _long_name_problems(domain):
                    yield fielderror.invalid(at, domain, f"prefix: {problem}", origin=origin)
            else:
                yield fielderror.invalid(at, "", "prefix must not be empty", origin=origin)
            if identifier:
                yield from _identifier(identifier, at, origin=origin)
            else:
                yield fielderror.invalid(at, "", "name must not be empty", origin=origin)
    if "/" not in text:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield fielderror.invalid(at, text, detail, origin=origin)


def _identifier(text: str, at: Path, *, origin: str) -> Errors:
    if names.byte_length(text) > limits.ATTRIBUTE_ID:
        yield fielderror.too_long(at, limits.ATTRIBUTE_ID, origin=origin)
    for problem in names.c_identifier(text):
        yield fielderror.invalid(at, text, problem, origin=origin)
