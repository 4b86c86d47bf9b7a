"""Reads the messages that libraries can print from their released packages, and stores them in an index."""
