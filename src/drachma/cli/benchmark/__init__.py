"""The benchmark behind ``drachma bench scheduler``: upstream's workloads, how they are run, and what is measured."""
