"""Turns a root cause into a verdict: where the failure happened, what the knowledge base says about it, and what to
do."""
