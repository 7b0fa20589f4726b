"""For all tests: nothing depends on how fast the machine is, nor on what is drawn by chance."""

import hypothesis

# The same examples in every run: who changes something is not told of what somebody else's examples happen to find.
# New ones, and more of them, are looked for by ``make soak``.
hypothesis.settings.register_profile(
    "patient",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "exploring", hypothesis.settings.get_profile("patient"), derandomize=False, max_examples=200
)
hypothesis.settings.load_profile("patient")
