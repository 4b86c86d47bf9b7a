"""Reads the messages that libraries can print out of their released packages, and keeps them as an index of facts."""
