"""Rules for webhook configurations."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib import parse

from drachma.validation import collection, fielderror, rendering, rulenotation
from drachma.validation.admissionregistration import expressions
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.values import names

_AT: Final = Path("webhooks")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_URL_FORM: Final = "; desired format: https://host[/path]"

Webhooks = Sequence[Mapping[str, Any]]


def check(webhooks: Webhooks, *, old: Webhooks | None = None) -> Errors:
    """Yield the errors of the webhooks of a configuration; an update only keeps rules that the stored ones keep."""
    before = () if old is None else old
    is_strict = all(each.get("sideEffects") in _NO_SIDE_EFFECTS for each in before)
    needs_version = all(_has_known_version(each) for each in before if each.get("admissionReviewVersions"))
    needs_unique = len({each.get("name") for each in before}) == len(before)
    skips_conditions = old is not None and _conditions(webhooks) == _conditions(before)
    old_expressions = expressions.expressions_of(
        [condition for each in before for condition in each.get("matchConditions") or ()]
    )
    for at, webhook, name, is_repeated in collection.walk_items(webhooks, _AT):
        yield from _TYPES["Webhook"](webhook, at, _NO_SIDE_EFFECTS if is_strict else _SIDE_EFFECTS)
        if not skips_conditions:
            conditions = webhook.get("matchConditions") or ()
            where = at.child("matchConditions")
            yield from expressions.check_conditions(
                conditions, where, has_params=False, stored_expressions=old_expressions
            )
        place = at.child("admissionReviewVersions")
        if webhook.get("admissionReviewVersions"):
            yield from check_review_versions(webhook["admissionReviewVersions"], place, needs_known=needs_version)
        else:
            yield fielderror.required(place, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        if needs_unique and name and is_repeated:
            yield fielderror.duplicate(at.child("name"), name)


def _conditions(webhooks: Webhooks) -> list[list[Any]]:
    return [list(each.get("matchConditions") or ()) for each in webhooks]


def _has_known_version(webhook: Mapping[str, Any]) -> bool:
    return any(version in _REVIEW_VERSIONS for version in webhook["admissionReviewVersions"])


def _webhook_name(name: str, at: Path) -> Errors:
    if problems := names.dns1123_subdomain(name):
        yield fielderror.invalid(at, name, ",".join(problems))
    elif name.count(".") < 2:
        yield fielderror.invalid(at, name, "should be a domain with at least three segments separated by dots")


def _check_side_effects(webhook: Mapping[str, Any], at: Path, supported: tuple[str, ...]) -> Errors:
    effects, place = webhook.get("sideEffects"), at.child("sideEffects")
    if effects is None:
        yield fielderror.required(place, f"must specify one of {', '.join(supported)}")
    elif effects not in supported:
        yield fielderror.not_supported(place, rendering.named(effects), supported)


def check_review_versions(versions: Sequence[str], at: Path, *, needs_known: bool = True) -> Errors:
    """Yield the errors of versions of reviews, of which drachma must know one."""
    for position, version in enumerate(versions):
        if version in versions[:position]:
            yield fielderror.invalid(at.item(position), version, "duplicate version")
        else:
            yield from fielderror.problems(at.item(position), version, names.dns1035_label(version))
    if needs_known and not set(versions) & set(_REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        yield fielderror.invalid(at, rendering.wire(list(versions)), detail)


def check_client(client: Mapping[str, Any], at: Path) -> Found:
    """Return the errors of the client configuration of a webhook, of admission or conversion."""
    return _TYPES["WebhookClientConfig"](client, at)


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


_TYPES: Final = rulenotation.load("admissionregistration/webhooks", globals())
