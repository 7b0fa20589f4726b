"""For all tests: nothing depends on how fast the machine is."""

import hypothesis

# Machines may be busy: nothing here depends on how fast examples are made or tried.
hypothesis.settings.register_profile("patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("patient")
