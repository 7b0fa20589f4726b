"""Options of requests, from the query or, for deletes, from the body.

The options of each verb are read once, checked by upstream's rules, and passed on as one immutable value. Unknown query
parameters are ignored, as in upstream.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from drachma import errors
from drachma.server import status
from drachma.server.surface import fieldselector, resources
from drachma.validation import fielderror, metadata, rendering
from drachma.validation.path import Path
from drachma.values import label_syntax, quotation
from drachma.values import labels as label_values

Query = Mapping[str, Sequence[str]]
"""Query parameters by name, each with its values in order."""

FieldValidation = Literal["Ignore", "Warn", "Strict"]

_COMMON_LENGTH: Final = 512
"""Characters of options that are cached."""

META_GROUP: Final = "meta.k8s.io"
NOT_OLDER_THAN: Final = "NotOlderThan"
EXACT: Final = "Exact"
BACKGROUND: Final = "Background"
FOREGROUND: Final = "Foreground"
ORPHAN: Final = "Orphan"

EVERY_LABEL: Final = label_values.Selector()
"""Selector that matches all labels."""

_DRY_RUN_ALL: Final = ("All",)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of create, update and patch. ``force`` is for apply only."""

    is_dry_run: bool = False
    field_manager: str = ""
    field_validation: FieldValidation = "Warn"
    force: bool = False


class DeleteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of delete; None means not set."""

    is_dry_run: bool = False
    grace_period_seconds: int | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class ListOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of list and watch: selectors, versions and limits."""

    labels: label_values.Selector = EVERY_LABEL
    fields: fieldselector.FieldSelector = fieldselector.EVERYTHING
    resource_version: str = ""
    resource_version_match: str = ""
    limit: int = 0
    continue_token: str = ""
    is_watch: bool = False
    allows_bookmarks: bool = False
    sends_initial_events: bool | None = None
    timeout_seconds: int | None = None

    @property
    def is_selective(self) -> bool:
        """True if the selectors may leave out objects of the collection."""
        return bool(self.fields) or bool(self.labels.requirements)


_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation", "force")
_PLAIN_WRITE: Final = WriteOptions()
_PLAIN_DELETE: Final = DeleteOptions()


def read_write_options(query: Query, kind: str, *, patch_type: str = "") -> WriteOptions:
    """Read the options of a create, update or patch; ``kind`` is the name of the options in messages."""
    is_apply = patch_type.startswith("application/apply-patch")
    if not query and not is_apply:
        return _PLAIN_WRITE
    parameters = tuple([(name, *query[name]) for name in _WRITE_PARAMETERS if name in query])
    is_common = len("".join([text for texts in parameters for text in texts])) <= _COMMON_LENGTH
    return (_common_options if is_common else _write_options)(parameters, kind, is_apply=is_apply)


def _write_options(parameters: tuple[tuple[str, ...], ...], kind: str, *, is_apply: bool) -> WriteOptions:
    """Read write options; only valid ones are cached."""
    query = {name: values for name, *values in parameters}
    dry_run = query.get("dryRun", ())
    manager = _first(query, "fieldManager")
    validation = _first(query, "fieldValidation")
    problems: list[fielderror.FieldError] = []
    if is_apply and not manager:
        problems.append(fielderror.required(Path("fieldManager"), "is required for apply patch"))
    if kind == "PatchOptions" and not is_apply and "force" in query:
        problems.append(fielderror.forbidden(Path("force"), "may not be specified for non-apply patch"))
    problems.extend(metadata.field_manager(manager, Path("fieldManager")))
    problems.extend(_dry_run_problems(dry_run))
    if validation not in ("", "Ignore", "Warn", "Strict"):
        supported = ("", "Ignore", "Strict", "Warn")
        problems.append(fielderror.not_supported(Path("fieldValidation"), validation, supported))
    _refuse(problems, kind)
    return WriteOptions(
        is_dry_run=bool(dry_run),
        field_manager=manager,
        field_validation=validation or "Warn",  # type: ignore[arg-type]
        force=_boolean(query, "force") or False,
    )


_common_options: Final = functools.lru_cache(maxsize=1024)(_write_options)


def read_list_options(query: Query, resource: resources.Resource, *, version: str) -> ListOptions:
    """Read the options of a list, a watch or the deletion of a collection."""
    if not query:
        return ListOptions()
    try:
        labels = _labels(_first(query, "labelSelector"))
        options = ListOptions(
            labels=labels,
            fields=fieldselector.parse(_first(query, "fieldSelector"), resource, version=version),
            resource_version=_first(query, "resourceVersion"),
            resource_version_match=_first(query, "resourceVersionMatch"),
            limit=_integer(query, "limit") or 0,
            continue_token=_first(query, "continue"),
            is_watch=_boolean(query, "watch") or False,
            allows_bookmarks=_boolean(query, "allowWatchBookmarks") or False,
            sends_initial_events=_boolean(query, "sendInitialEvents"),
            timeout_seconds=_integer(query, "timeoutSeconds"),
        )
    except errors.InvalidValueError as error:
        raise status.bad_request(str(error)) from None
    options = _set_list_defaults(options)
    _refuse(_watch_problems(options) if options.is_watch else _list_problems(options), "ListOptions")
    return options


def read_delete_options(query: Query, body: Mapping[str, Any] | None) -> DeleteOptions:
    """Read the options of a delete from the body if there is one, otherwise from the query."""
    if body is None:
        return _delete_from_query(query) if query else _PLAIN_DELETE
    return _delete_from_body(body)


def boolean(query: Query, name: str) -> bool:
    """Read a query parameter as upstream reads booleans: all values but "0" and "false" are true."""
    return _boolean(query, name) or False


def integer(query: Query, name: str) -> int | None:
    """Read a query parameter as a number; None if it is absent, InvalidValueError if it is no number."""
    return _integer(query, name)


# Deletes


def _delete_from_query(query: Query) -> DeleteOptions:
    try:
        grace = _integer(query, "gracePeriodSeconds")
    except errors.InvalidValueError as error:
        raise status.bad_request(str(error)) from None
    return _check_delete_options(
        query.get("dryRun", ()),
        DeleteOptions(
            grace_period_seconds=grace,
            orphan_dependents=_boolean(query, "orphanDependents"),
            propagation_policy=_first(query, "propagationPolicy") if "propagationPolicy" in query else None,
            uid=_first(query, "uid") or None,
            resource_version=_first(query, "resourceVersion") or None,
        ),
    )


def _delete_from_body(body: Mapping[str, Any]) -> DeleteOptions:
    preconditions = body.get("preconditions")
    return _check_delete_options(
        body.get("dryRun") or (),
        DeleteOptions(
            grace_period_seconds=body.get("gracePeriodSeconds"),
            orphan_dependents=body.get("orphanDependents"),
            propagation_policy=body.get("propagationPolicy"),
            uid=preconditions.get("uid") if preconditions else None,
            resource_version=preconditions.get("resourceVersion") if preconditions else None,
        ),
    )


def _check_delete_options(dry_run: Sequence[str], options: DeleteOptions) -> DeleteOptions:
    problems: list[fielderror.FieldError] = []
    at, policy = Path("propagationPolicy"), options.propagation_policy
    if options.orphan_dependents is not None and policy is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        problems.append(fielderror.invalid(at, rendering.named(policy), detail))
    if policy is not None and policy not in (FOREGROUND, BACKGROUND, ORPHAN):
        supported = (FOREGROUND, BACKGROUND, ORPHAN, "nil")
        problems.append(fielderror.not_supported(at, rendering.named(policy), supported))
    if dry_run:
        problems.extend(_dry_run_problems(dry_run))
    if problems:
        _refuse(problems, "DeleteOptions")
    return msgspec.structs.replace(options, is_dry_run=True) if dry_run else options


# Lists and watches


def _set_list_defaults(options: ListOptions) -> ListOptions:
    """Let a watch without a version start with the existing objects, as clients without watch lists expect."""
    is_unset = options.sends_initial_events is None and not options.resource_version_match
    if options.is_watch and is_unset and options.resource_version in ("", "0"):
        return msgspec.structs.replace(options, sends_initial_events=True, resource_version_match=NOT_OLDER_THAN)
    return options


def _list_problems(options: ListOptions) -> list[fielderror.FieldError]:
    problems: list[fielderror.FieldError] = []
    at, match = Path("resourceVersionMatch"), options.resource_version_match
    if match:
        if not options.resource_version:
            detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            problems.append(fielderror.forbidden(at, detail))
        if options.continue_token:
            problems.append(fielderror.forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            problems.append(fielderror.not_supported(at, rendering.named(match), (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and options.resource_version == "0":
            detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            problems.append(fielderror.forbidden(at, detail))
    if options.sends_initial_events is not None:
        problems.append(fielderror.forbidden(Path("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
    return problems


def _watch_problems(options: ListOptions) -> list[fielderror.FieldError]:
    problems: list[fielderror.FieldError] = []
    at, match = Path("resourceVersionMatch"), options.resource_version_match
    if options.sends_initial_events is not None and match != NOT_OLDER_THAN:
        detail = f"sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER_THAN}"
        problems.append(fielderror.forbidden(at, detail))
    if match:
        if options.sends_initial_events is None:
            detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            problems.append(fielderror.forbidden(at, detail))
        if match != NOT_OLDER_THAN:
            problems.append(fielderror.not_supported(at, rendering.named(match), (NOT_OLDER_THAN,)))
        if options.continue_token:
            problems.append(fielderror.forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
    return problems


# Values


def _dry_run_problems(values: Sequence[str]) -> list[fielderror.FieldError]:
    if all(value in _DRY_RUN_ALL for value in values):
        return []
    return [fielderror.not_supported(Path("dryRun"), tuple(values), _DRY_RUN_ALL)]


def _refuse(problems: list[fielderror.FieldError], kind: str) -> None:
    if problems:
        raise status.invalid(kind, "", group=META_GROUP, causes=problems)


def _labels(text: str) -> label_values.Selector:
    return label_syntax.parse(text) if text else EVERY_LABEL


def _first(query: Query, name: str) -> str:
    values = query.get(name)
    return values[0] if values else ""


def _boolean(query: Query, name: str) -> bool | None:
    values = query.get(name)
    return None if not values else values[0] != "0" and values[0].lower() != "false"


def _integer(query: Query, name: str) -> int | None:
    values = query.get(name)
    if not values:
        return None
    text = values[0]
    if not _INTEGER.fullmatch(text) or not text.isascii():
        raise errors.InvalidValueError(f"strconv.ParseInt: parsing {quotation.quote(text)}: invalid syntax")
    number = int(text[:40])
    if not -(2**63) <= number < 2**63:
        raise errors.InvalidValueError(f"strconv.ParseInt: parsing {quotation.quote(text)}: value out of range")
    return number
