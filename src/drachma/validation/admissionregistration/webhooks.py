"""Rules for webhook configurations."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib import parse

from drachma.validation import fielderror, rendering
from drachma.validation.admissionregistration import expressions, matching, resourcerules
from drachma.validation.admissionregistration.mutatingadmissionpolicy import REINVOCATION_POLICIES
from drachma.validation.admissionregistration.validatingadmissionpolicy import FAILURE_POLICIES
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import selectors
from drachma.values import names

_AT: Final = Path("webhooks")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_LONGEST_TIMEOUT: Final = 30
_URL_FORM: Final = "; desired format: https://host[/path]"

Webhooks = Sequence[Mapping[str, Any]]


def check(webhooks: Webhooks, *, stored: Webhooks | None = None) -> Errors:
    """All webhooks of a configuration, where an update is only held to rules that the stored ones kept."""
    before = () if stored is None else stored
    is_strict = all(each.get("sideEffects") in _NO_SIDE_EFFECTS for each in before)
    needs_version = all(_has_known_version(each) for each in before if each.get("admissionReviewVersions"))
    needs_unique = len({each.get("name") for each in before}) == len(before)
    skips_conditions = stored is not None and _conditions(webhooks) == _conditions(before)
    known = expressions.expressions_of(
        [condition for each in before for condition in each.get("matchConditions") or ()]
    )
    seen: set[str] = set()
    for position, webhook in enumerate(webhooks):
        at = _AT.item(position)
        yield from _check(webhook, at, side_effects=_NO_SIDE_EFFECTS if is_strict else _SIDE_EFFECTS)
        if not skips_conditions:
            conditions = webhook.get("matchConditions") or ()
            where = at.child("matchConditions")
            yield from expressions.check_conditions(conditions, where, has_params=False, stored=known)
        yield from _review_versions(
            webhook.get("admissionReviewVersions") or (), at.child("admissionReviewVersions"), needs_known=needs_version
        )
        name = webhook.get("name", "")
        if needs_unique and name and name in seen:
            yield fielderror.duplicate(at.child("name"), name)
        seen.add(name)


def _conditions(webhooks: Webhooks) -> list[list[Any]]:
    return [list(each.get("matchConditions") or ()) for each in webhooks]


def _has_known_version(webhook: Mapping[str, Any]) -> bool:
    return any(version in _REVIEW_VERSIONS for version in webhook["admissionReviewVersions"])


def _check(webhook: Mapping[str, Any], at: Path, *, side_effects: tuple[str, ...]) -> Errors:
    yield from _name(webhook.get("name", ""), at.child("name"))
    for position, rule in enumerate(webhook.get("rules") or ()):
        yield from resourcerules.check(rule, at.child("rules").item(position))
    for field, allowed in (("failurePolicy", FAILURE_POLICIES), ("matchPolicy", matching.POLICIES)):
        if webhook.get(field) is not None:
            yield from _one_of(webhook[field], at.child(field), allowed)
    effects = webhook.get("sideEffects")
    if effects is None:
        yield fielderror.required(at.child("sideEffects"), f"must specify one of {', '.join(side_effects)}")
    else:
        yield from _one_of(effects, at.child("sideEffects"), side_effects)
    timeout = webhook.get("timeoutSeconds")
    if timeout is not None and not 1 <= timeout <= _LONGEST_TIMEOUT:
        detail = f"the timeout value must be between 1 and {_LONGEST_TIMEOUT} seconds"
        yield fielderror.invalid(at.child("timeoutSeconds"), timeout, detail)
    for field in ("namespaceSelector", "objectSelector"):
        yield from selectors.check(webhook.get(field), at.child(field))
    if webhook.get("reinvocationPolicy") is not None:
        yield from _one_of(webhook["reinvocationPolicy"], at.child("reinvocationPolicy"), REINVOCATION_POLICIES)
    yield from check_client(webhook.get("clientConfig") or {}, at.child("clientConfig"))


def _one_of(value: str, at: Path, allowed: tuple[str, ...]) -> Errors:
    if value not in allowed:
        yield fielderror.not_supported(at, rendering.named(value), allowed)


def _name(name: str, at: Path) -> Errors:
    if not name:
        yield fielderror.required(at)
    elif problems := names.dns1123_subdomain(name):
        yield fielderror.invalid(at, name, ",".join(problems))
    elif name.count(".") < 2:
        yield fielderror.invalid(at, name, "should be a domain with at least three segments separated by dots")


def _review_versions(versions: Sequence[str], at: Path, *, needs_known: bool) -> Errors:
    if not versions:
        yield fielderror.required(at, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    seen: set[str] = set()
    for position, version in enumerate(versions):
        if version in seen:
            yield fielderror.invalid(at.item(position), version, "duplicate version")
            continue
        seen.add(version)
        yield from fielderror.problems(at.item(position), version, names.dns1035_label(version))
    if needs_known and not seen & set(_REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        yield fielderror.invalid(at, rendering.wire(list(versions)), detail)


def check_client(client: Mapping[str, Any], at: Path) -> Errors:
    """How a webhook is reached, also one of conversion."""
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield fielderror.required(at, "exactly one of url or service is required")
    elif url is not None:
        yield from _url(url, at.child("url"))
    else:
        assert service is not None, "exactly one is there"
        yield from _service(service, at.child("service"))


def _url(text: str, at: Path) -> Errors:
    try:
        url = parse.urlsplit(text)
        host = url.netloc.rpartition("@")[2]
        _ = url.port
    except ValueError as error:
        yield fielderror.required(at, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    if url.scheme != "https":
        yield fielderror.invalid(at, url.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    if not host:
        yield fielderror.invalid(at, host, f"host must be specified{_URL_FORM}")
    if "@" in url.netloc:
        detail = "user information is not permitted in the URL"
        yield fielderror.invalid(at, url.netloc.rpartition("@")[0], detail)
    if url.fragment:
        yield fielderror.invalid(at, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield fielderror.invalid(at, url.query, "query parameters are not permitted in the URL")


def _service(service: Mapping[str, Any], at: Path) -> Errors:
    # Upstream takes the name for the namespace and the other way round; the messages show it.
    if not service.get("namespace"):
        yield fielderror.required(at.child("name"))
    if not service.get("name"):
        yield fielderror.required(at.child("namespace"))
    port = service.get("port", 0)
    if not 1 <= port <= 65535:
        yield fielderror.invalid(at.child("port"), port, "port is not valid: must be between 1 and 65535, inclusive")
    path = service.get("path")
    if path not in (None, "", "/"):
        yield from _service_path(path, at.child("path"))


def _service_path(path: str, at: Path) -> Errors:
    if path == "//":
        yield fielderror.invalid(at, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield fielderror.invalid(at, path, "must start with a '/'")
    for position, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield fielderror.invalid(at, path, f"segment[{position}] may not be empty")
        for problem in names.dns1123_subdomain(segment) if segment else ():
            yield fielderror.invalid(at, path, f"segment[{position}]: {problem}")
