"""The framework of job integrations: a job and its workload, and how jobs start, stop and end."""
