"""What a write goes through because of what the cluster is like: named steps that complete it or refuse it."""
