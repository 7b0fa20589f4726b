from typing import Any

import pytest

from drachma.server import status
from drachma.server.calls import options
from tests.unit.server import served

CLAIMS = served.CATALOG.find("resource.k8s.io", "v1", plural="resourceclaims")
assert CLAIMS is not None


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        pytest.param(
            {"dryRun": ["Some"]},
            "CreateOptions",
            'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All"',
            id="unknown-dry-run",
        ),
        pytest.param(
            {"fieldValidation": ["Maybe"]},
            "UpdateOptions",
            'UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Maybe": supported values: '
            '"", "Ignore", "Strict", "Warn"',
            id="unknown-field-validation",
        ),
        pytest.param(
            {"force": ["true"]},
            "PatchOptions",
            'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
            id="force-without-apply",
        ),
    ],
)
def test_write_options_refused(query: options.Query, kind: str, message: str) -> None:
    with pytest.raises(status.StatusError) as caught:
        options.read_write_options(query, kind, patch_type="application/merge-patch+json")
    assert (caught.value.code, str(caught.value)) == (422, message)


def test_apply_needs_a_manager() -> None:
    with pytest.raises(status.StatusError, match="fieldManager: Required value: is required for apply patch"):
        options.read_write_options({}, "PatchOptions", patch_type="application/apply-patch+yaml")


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param({}, options.ListOptions(), id="plain"),
        pytest.param({"limit": ["5"]}, options.ListOptions(limit=5), id="limit"),
        pytest.param(
            {"watch": ["1"], "resourceVersion": ["0"]},
            options.ListOptions(
                is_watch=True, resource_version="0", sends_initial_events=True, resource_version_match="NotOlderThan"
            ),
            id="watch-from-nowhere-begins-with-what-exists",
        ),
        pytest.param(
            {"watch": ["true"], "resourceVersion": ["7"], "allowWatchBookmarks": ["true"]},
            options.ListOptions(is_watch=True, resource_version="7", allows_bookmarks=True),
            id="watch-from-a-version",
        ),
        pytest.param({"watch": ["false"]}, options.ListOptions(), id="false-is-false"),
        pytest.param(
            {"watch": [""], "resourceVersion": ["7"]},
            options.ListOptions(is_watch=True, resource_version="7"),
            id="bare-is-true",
        ),
    ],
)
def test_list_options(query: options.Query, want: options.ListOptions) -> None:
    assert CLAIMS is not None
    assert options.read_list_options(query, CLAIMS, version="v1") == want


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param({"limit": ["x"]}, 400, 'strconv.ParseInt: parsing "x": invalid syntax', id="limit-no-number"),
        pytest.param(
            {"limit": ["99999999999999999999"]},
            400,
            'strconv.ParseInt: parsing "99999999999999999999": value out of range',
            id="limit-too-large",
        ),
        pytest.param(
            {"resourceVersionMatch": ["Exact"]},
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            "resourceVersionMatch is forbidden unless resourceVersion is provided",
            id="match-without-version",
        ),
        pytest.param(
            {"resourceVersion": ["0"], "resourceVersionMatch": ["Exact"]},
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            id="exactly-zero",
        ),
        pytest.param(
            {"watch": ["1"], "resourceVersion": ["5"], "sendInitialEvents": ["true"]},
            422,
            'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            id="initial-events-without-match",
        ),
        pytest.param(
            {"sendInitialEvents": ["true"]},
            422,
            'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: '
            "sendInitialEvents is forbidden for list",
            id="initial-events-of-a-list",
        ),
    ],
)
def test_list_options_refused(query: options.Query, code: int, message: str) -> None:
    assert CLAIMS is not None
    with pytest.raises(status.StatusError) as caught:
        options.read_list_options(query, CLAIMS, version="v1")
    assert (caught.value.code, str(caught.value)) == (code, message)


@pytest.mark.parametrize(
    ("query", "body", "want"),
    [
        pytest.param({}, None, options.DeleteOptions(), id="plain"),
        pytest.param(
            {"gracePeriodSeconds": ["0"], "propagationPolicy": ["Orphan"], "dryRun": ["All"]},
            None,
            options.DeleteOptions(grace_period_seconds=0, propagation_policy="Orphan", is_dry_run=True),
            id="from-the-query",
        ),
        pytest.param(
            {"gracePeriodSeconds": ["7"]},
            {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "u", "resourceVersion": "3"}},
            options.DeleteOptions(uid="u", resource_version="3"),
            id="a-body-replaces-the-query",
        ),
        pytest.param({}, {"orphanDependents": False}, options.DeleteOptions(orphan_dependents=False), id="old-way"),
    ],
)
def test_delete_options(query: options.Query, body: Any, want: options.DeleteOptions) -> None:
    assert options.read_delete_options(query, body) == want


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param({"propagationPolicy": "Sideways"}, 422, id="unknown-policy"),
        pytest.param({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, id="both-ways"),
    ],
)
def test_delete_options_refused(body: Any, code: int) -> None:
    with pytest.raises(status.StatusError) as caught:
        options.read_delete_options({}, body)
    assert caught.value.code == code
