"""Reads the files of a run: which launches they hold, and what each of them printed."""
