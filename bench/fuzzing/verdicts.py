"""Judgement of answers: which of them no request may get."""

from __future__ import annotations

import re
from typing import Final

import msgspec
import yaml

NO_HTTP: Final = b"Invalid HTTP request received."
"""Answer to bytes that are no HTTP. They are no request, so the audit log does not have them."""

_ALLOWED: Final = frozenset({501, 503, 504})
"""Not implemented, overloaded or draining, and timed out: each says so in a Status."""

_PROXY: Final = re.compile(r"/(proxy|exec|attach|portforward|log)([/?]|$)")
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.[01] (\d\d\d)")


def find_problem(method: str, target: str, code: int, body: bytes) -> str:
    """Return why an answer is bad, or an empty text."""
    if code >= 500 and not _is_allowed(target, code, body):
        return f"server error {code}"
    if code >= 400 and method != "HEAD" and body[:1] == b"{":
        try:
            status = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return "a refusal that is not JSON"
        if isinstance(status, dict) and status.get("kind") == "Status" and status.get("code") != code:
            return f"a Status with code {status.get('code')} in an answer with code {code}"
    return ""


def find_raw_problem(received: bytes) -> str:
    """Return what is wrong with the answers to odd bytes, or an empty text."""
    if received and not received.startswith(b"HTTP/1."):
        return "an answer that is not HTTP"
    codes = [int(code) for code in _STATUS_LINE.findall(received)]
    bad = [code for code in codes if code >= 500 and code not in (501, 505)]
    return f"server error {bad[0]}" if bad else ""


def _is_allowed(target: str, code: int, body: bytes) -> bool:
    if code in _ALLOWED or (code in (500, 502) and _PROXY.search(target)):
        # A node that is not there answers for the server.
        return code != 500 or _is_unclassified(body)
    return code == 500 and _is_unclassified(body)


def _is_unclassified(body: bytes) -> bool:
    """Return True for mistakes of clients that upstream answers with a 500 without a reason."""
    if not body.startswith((b"{", b"apiVersion:")):
        return False
    try:
        status = yaml.safe_load(body) if body[:1] != b"{" else msgspec.json.decode(body)
    except (yaml.YAMLError, msgspec.DecodeError):
        return False
    return isinstance(status, dict) and status.get("kind") == "Status" and not status.get("reason")
