"""Sends messages to people. Each chat and tracker has its own file; a notice becomes a call to that service."""
