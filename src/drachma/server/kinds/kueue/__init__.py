"""The kinds of ``kueue.x-k8s.io``: queues, flavors, cohorts, workloads, their priorities and checks."""
