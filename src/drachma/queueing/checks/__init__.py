"""Admission checks that queueing performs itself: requests for nodes, and dispatching to other clusters."""
