"""Decides whether a failed job is started again, from a verdict, earlier attempts and a policy."""
