"""Admission checks that queueing performs itself: requests for nodes."""
