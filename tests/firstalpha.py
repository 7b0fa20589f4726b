"""Feature gates of a server that serves the first alpha, which is off by default."""

from drachma.api import gates

GATES = gates.ALL.switched({gates.Gate.FIRST_ALPHA: True})
