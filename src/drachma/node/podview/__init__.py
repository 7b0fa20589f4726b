"""The view of a Pod that only its node reads: containers, volumes, security contexts and container statuses."""
