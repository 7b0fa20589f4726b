"""What DynamicResources says about pods and nodes, in kube-scheduler's words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from drachma import errors
from drachma.scheduler.framework import verdict

NAME: Final = "DynamicResources"


def rejection(*reasons: str, is_resolvable: bool = False) -> verdict.Rejection:
    """Why a node, or the pod, is out of the question."""
    return verdict.Rejection(NAME, reasons, is_resolvable)


def failure(error: object) -> verdict.AbortError:
    """What people see of an error while nodes are filtered."""
    return verdict.AbortError(f'running "{NAME}" filter plugin: {error}')


@contextlib.contextmanager
def aborting() -> Iterator[None]:
    """For what is asked about devices that a pod has, or would have: where that cannot be told, scheduling ends."""
    try:
        yield
    except errors.AllocationError as error:
        raise verdict.AbortError(str(error)) from error
