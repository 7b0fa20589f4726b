"""Kueue's recorded judgement of configurations."""

from drachma.queueing.configuration import configrules, configuration, mappingrules
from drachma.validation.path import Path
from tests.conformance import kueueforms, vectors


@vectors.each("kueue-config-mappings")
def test_kueue_config_mappings(case: vectors.Line) -> None:
    resources = _configuration(case).resources or configuration.Resources()
    at = Path("resources").child("deviceClassMappings")

    errors = tuple(mappingrules.check(resources.device_class_mappings, at, gates=kueueforms.switched(case)))

    assert kueueforms.errors(errors) == kueueforms.recorded_errors(case["answer"].get("errors"))


@vectors.each("kueue-config-validate")
def test_kueue_config_validate(case: vectors.Line) -> None:
    errors = configrules.check(_configuration(case), gates=kueueforms.switched(case))

    assert kueueforms.errors(errors) == kueueforms.recorded_errors(case["answer"].get("errors"))
    assert [str(error) for error in errors] == [error["message"] for error in case["answer"].get("errors", [])]


def _configuration(case: vectors.Line) -> configuration.Configuration:
    return configuration.decode(case["input"]["configuration"])
