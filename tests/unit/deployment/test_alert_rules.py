"""Alerts in Prometheus' own checker: rules are well formed, fire on the series of a fault, and are silent without."""

import pathlib
import subprocess

import pytest
import yaml

from tests import debianpackages

MONITORING = pathlib.Path(__file__).parents[3] / "deploy" / "monitoring"
ALERTS, CASES = MONITORING / "alerts.yaml", MONITORING / "alerts.test.yaml"


def _promtool(*arguments: str) -> None:
    try:
        program = debianpackages.find("promtool", "prometheus")
    except debianpackages.MissingError as missing:
        pytest.skip(str(missing))
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_accepts_the_rules() -> None:
    _promtool("check", "rules", str(ALERTS))


def test_alerts_fire_on_faults_only() -> None:
    _promtool("test", "rules", str(CASES))


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    names = {rule["alert"] for rule in rules}
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == names
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == names
