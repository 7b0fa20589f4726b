"""Jobs, JobSets, pods and groups of pods: their workloads, and how they start, stop and end."""
