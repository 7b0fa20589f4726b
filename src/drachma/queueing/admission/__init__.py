"""Admission: the quota tree, flavors, preemption, queues of pending workloads, and the cycles that decide."""
