"""The formats that declared rules demand of texts.

They are those of :mod:`drachma.validation.formats` in other words: upstream worded its declared rules anew.
"""

from collections.abc import Sequence
from typing import Final

from drachma.validation import fielderror, limits
from drachma.validation.declared import Values, max_length, text_format
from drachma.validation.fielderror import Errors, FieldError, Found
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


def pool_name(values: Values, at: Path) -> Found:
    """DNS subdomains with slashes between them."""
    origin = "format=k8s-resource-pool-name"
    found: list[FieldError] = []
    if names.is_longer(values.new, limits.POOL_NAME):
        found.append(fielderror.too_long(at, limits.POOL_NAME, origin=origin))
    for position, segment in enumerate(values.new.split("/")):
        shown, problems = (segment, _long_name_problems(segment)) if segment else (values.new, ("must not be empty",))
        if problems:
            details = [f"segment {position}: {problem}" for problem in problems]
            found += fielderror.problems(at, shown, details, origin=origin)
    return found


def fully_qualified_name(values: Values, at: Path) -> Found:
    """``domain/identifier``; more than one slash passes unchecked, as upstream lets it."""
    return list(_fully_qualified_name(values.new, at))


def _fully_qualified_name(text: str, at: Path) -> Errors:
    origin = "format=k8s-resource-fully-qualified-name"
    match text.split("/"):
        case [identifier]:
            yield from _identifier(identifier, at, origin=origin)
        case [domain, identifier]:
            if domain:
                if names.is_longer(domain, limits.ATTRIBUTE_DOMAIN):
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
    if names.is_longer(text, limits.ATTRIBUTE_ID):
        yield fielderror.too_long(at, limits.ATTRIBUTE_ID, origin=origin)
    for problem in names.c_identifier(text):
        yield fielderror.invalid(at, text, problem, origin=origin)
