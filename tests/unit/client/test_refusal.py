"""Every Status has its error."""

import pytest

from drachma import errors
from drachma.client import refusal


@pytest.mark.parametrize(
    ("reason", "code", "want"),
    [
        pytest.param("BadRequest", 400, errors.BadRequestError, id="bad-request"),
        pytest.param("Unauthorized", 401, errors.UnauthorizedError, id="unauthorized"),
        pytest.param("Forbidden", 403, errors.ForbiddenError, id="forbidden"),
        pytest.param("NotFound", 404, errors.ObjectNotFoundError, id="not-found"),
        pytest.param("AlreadyExists", 409, errors.ObjectExistsError, id="already-exists"),
        pytest.param("Conflict", 409, errors.ObjectConflictError, id="conflict"),
        pytest.param("Gone", 410, errors.HistoryGoneError, id="gone"),
        pytest.param("Expired", 410, errors.HistoryGoneError, id="expired"),
        pytest.param("Invalid", 422, errors.InvalidObjectError, id="invalid"),
        pytest.param("TooManyRequests", 429, errors.ThrottledError, id="throttled"),
        pytest.param("InternalError", 500, errors.ServerFaultError, id="internal"),
        pytest.param("ServiceUnavailable", 503, errors.ServerFaultError, id="unavailable"),
        pytest.param("Timeout", 504, errors.ServerFaultError, id="timeout"),
        pytest.param("", 404, errors.ObjectNotFoundError, id="no-reason"),
        pytest.param("Unheard", 410, errors.HistoryGoneError, id="unknown-reason"),
        pytest.param("MethodNotAllowed", 405, errors.RefusedError, id="reason-nobody-tells-apart"),
    ],
)
def test_the_reason_decides_then_the_code(reason: str, code: int, want: type[errors.RefusedError]) -> None:
    error = refusal.error({"status": "Failure", "message": "no", "reason": reason, "code": code})
    assert type(error) is want
    assert (str(error), error.reason, error.code) == ("no", reason, code)


@pytest.mark.parametrize(
    ("field", "message", "want"),
    [
        pytest.param(
            "metadata.uid", 'Invalid value: "u": field is immutable', errors.ObjectConflictError, id="another-uid"
        ),
        pytest.param("metadata.uid", "Required value", errors.InvalidObjectError, id="no-uid"),
        pytest.param("spec", "Invalid value: field is immutable", errors.InvalidObjectError, id="another-field"),
    ],
)
def test_a_patch_that_means_another_object(field: str, message: str, want: type[errors.RefusedError]) -> None:
    causes = [{"reason": "FieldValueInvalid", "field": field, "message": message}]
    error = refusal.error({"message": "no", "reason": "Invalid", "code": 422, "details": {"causes": causes}})
    assert type(error) is want


def test_details_and_when_to_come_back() -> None:
    error = refusal.error({"message": "later", "code": 429, "details": {"name": "p", "retryAfterSeconds": 10}})
    assert (error.details["name"], error.retry_after) == ("p", 10.0)


def test_an_answer_that_is_no_status() -> None:
    error = refusal.plain_error(502, "<html>\n  Bad Gateway")
    assert isinstance(error, errors.ServerFaultError)
    assert str(error) == "the server answered with code 502: <html> Bad Gateway"
