"""Rules for the names that a pod has or uses in its network, and for its account."""

import re
from collections.abc import Mapping
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices
from drachma.values import names, quotation

_MOST_NAMESERVERS: Final = 3
_MOST_SEARCHES: Final = 32
_LONGEST_SEARCHES: Final = 2048
_LONGEST_HOSTNAME: Final = 64
_SEARCH_LABEL: Final = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH: Final = rf"{_SEARCH_LABEL}(\.{_SEARCH_LABEL})*"
_is_search: Final = re.compile(_SEARCH).fullmatch


def check(spec: Mapping[str, Any], at: Path) -> Errors:
    """The name of a pod that it gives itself, and that of its account."""
    override = spec.get("hostnameOverride")
    if override is not None:
        path = at.child("hostnameOverride")
        if spec.get("setHostnameAsFQDN"):
            yield fielderror.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
        if spec.get("hostNetwork"):
            yield fielderror.forbidden(path, "may not be specified when hostNetwork is true")
        if names.byte_length(override) > _LONGEST_HOSTNAME:
            yield fielderror.too_long(path, _LONGEST_HOSTNAME)
        yield from formats.long_name(override, path)
    account = spec.get("serviceAccountName", "")
    if account:
        yield from formats.node_name(account, at.child("serviceAccountName"))
    if spec.get("serviceAccount", "") != account:
        detail = f"must be the same as serviceAccountName: {quotation.quote(account)}"
        yield fielderror.invalid(at.child("deprecatedServiceAccount"), spec.get("serviceAccount", ""), detail)


def check_host(spec: Mapping[str, Any], at: Path) -> Errors:
    """The parts of a pod's DNS name."""
    for field in ("hostname", "subdomain"):
        if spec.get(field):
            yield from formats.short_name(spec[field], at.child(field))


def check_dns(spec: Mapping[str, Any], at: Path) -> Errors:
    """How a pod resolves names."""
    config, path = spec.get("dnsConfig"), at.child("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield fielderror.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
            yield fielderror.required(path.child("nameservers"), detail)
            return
    if config is None:
        return
    servers, searches = config.get("nameservers") or (), config.get("searches") or ()
    if len(servers) > _MOST_NAMESERVERS:
        detail = f"must not have more than {_MOST_NAMESERVERS} nameservers"
        yield fielderror.invalid(path.child("nameservers"), rendering.wire(servers), detail)
    for position, server in enumerate(servers):
        yield from choices.address(server, path.child("nameservers").item(position))
    if len(searches) > _MOST_SEARCHES:
        detail = f"must not have more than {_MOST_SEARCHES} search paths"
        yield fielderror.invalid(path.child("searches"), rendering.wire(searches), detail)
    if names.byte_length(" ".join(searches)) > _LONGEST_SEARCHES:
        detail = f"must not have more than {_LONGEST_SEARCHES} characters (including spaces) in the search list"
        yield fielderror.invalid(path.child("searches"), rendering.wire(searches), detail)
    for position, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            problems = _search_problems(domain)
            yield from fielderror.problems(path.child("searches").item(position), domain, problems)
    for position, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield fielderror.required(path.child("options").item(position), "must not be empty")


def _search_problems(domain: str) -> list[str]:
    problems = []
    if len(domain) > names.SUBDOMAIN_LENGTH:
        problems.append(f"must be no more than {names.SUBDOMAIN_LENGTH} characters")
    if not _is_search(domain):
        problems.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
            f"must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{_SEARCH}')"
        )
    return problems
