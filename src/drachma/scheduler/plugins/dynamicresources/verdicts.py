"""Verdicts of DynamicResources about pods and nodes, in kube-scheduler's words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from drachma import errors
from drachma.scheduler.framework import hints, verdict

NAME: Final = hints.DYNAMIC_RESOURCES


def rejection(*reasons: str, is_resolvable: bool = False) -> verdict.Rejection:
    """Return a rejection of a node, or of the pod."""
    return verdict.Rejection(NAME, reasons, is_resolvable)


def failure(error: object) -> verdict.AbortError:
    """Return the error that users see when filtering fails."""
    return verdict.AbortError(f'running "{NAME}" filter plugin: {error}')


@contextlib.contextmanager
def abort_on_allocation_error() -> Iterator[None]:
    """Turn errors about a pod's devices into an AbortError."""
    try:
        yield
    except errors.AllocationError as error:
        raise verdict.AbortError(str(error)) from error
