"""Claims of pods on a node: preparing and unpreparing them, and the records of that."""
