"""The client that runs beside a job: one file, which imports nothing of this package."""
