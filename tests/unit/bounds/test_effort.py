"""Allowances of effort."""

import threading

import pytest

from drachma.bounds import effort


def test_nothing_is_limited_without_an_allowance() -> None:
    effort.spend(10**12)


def test_an_allowance_that_is_used_up_ends_the_work() -> None:
    with effort.limit(effort.Allowance(10)):
        effort.spend(10)
        with pytest.raises(effort.OverrunError):
            effort.spend(1)
    effort.spend(1)


def test_it_is_no_failure_that_others_handle() -> None:
    assert not issubclass(effort.OverrunError, Exception)


def test_an_inner_allowance_ends_with_its_block() -> None:
    with effort.limit(effort.Allowance(5)):
        with effort.limit(effort.Allowance(100)):
            effort.spend(50)
        effort.spend(5)
        with pytest.raises(effort.OverrunError):
            effort.spend(1)


def test_other_threads_are_not_limited() -> None:
    with effort.limit(effort.Allowance(0)):
        thread = threading.Thread(target=effort.spend, args=(10,))
        thread.start()
        thread.join()


def test_work_of_another_thread_is_cancelled() -> None:
    allowance = effort.Allowance(effort.NO_LIMIT)
    began, ended = threading.Event(), threading.Event()

    def work() -> None:
        try:
            with effort.limit(allowance):
                while True:
                    effort.spend(1)
                    began.set()
        except effort.OverrunError:
            ended.set()

    threading.Thread(target=work, daemon=True).start()
    assert began.wait(10)
    allowance.cancel()
    assert ended.wait(10)
