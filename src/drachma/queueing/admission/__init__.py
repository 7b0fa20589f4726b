"""Who is admitted: quota as a tree, flavors, preemption, queues of those who wait, and cycles on all of them."""
