"""Several schedulers at once: who is there, who looks after which pod, and what each of them is about to do."""
