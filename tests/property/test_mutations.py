"""Recorded inputs with random changes get answers or refusals; ``python -m bench mutations`` tries many more."""

import pytest

from tests.property import mutations


@pytest.mark.parametrize("name", mutations.ATTEMPTS)
async def test_mutated_inputs_get_an_answer_or_a_refusal(name: str) -> None:
    for case in mutations.cases(name, seed=1, count=40):
        await mutations.attempt(name, case)
