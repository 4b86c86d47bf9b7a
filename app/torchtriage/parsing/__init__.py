"""Extractors, one a format, that never import one another: lines in, events out."""
