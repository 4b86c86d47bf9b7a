"""Removes secrets from text that is shown or stored."""
