"""Streams share the one thread that also writes."""

import contextlib

from drachma.server.wire import streaming


def test_streams_that_send_leave_each_other_time() -> None:
    pace = streaming.Pace()
    assert pace.spacing == 0.0
    with pace.sender():
        assert pace.spacing == streaming.SPACING_SECONDS
        with pace.sender():
            assert pace.spacing == 2 * streaming.SPACING_SECONDS
    assert pace.spacing == 0.0
    with contextlib.ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(pace.sender())
        assert pace.spacing == streaming.LONGEST_SPACING_SECONDS
