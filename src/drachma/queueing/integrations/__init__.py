"""Kinds of jobs that Kueue integrates, each as a GenericJob, and the table of them."""
