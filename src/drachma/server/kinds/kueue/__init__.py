"""Kinds of ``kueue.x-k8s.io``: queues, flavors, cohorts, workloads, priority classes and admission checks."""
