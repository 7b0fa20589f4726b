"""``autoscaling``: the bodies of ``scale`` subresources."""
