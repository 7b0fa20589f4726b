"""What the controllers of workloads share: whose pods are whose, which count, how they are made, hashes and history."""
