"""The extractors. Each reads one form of failure text and turns its lines into events. They never import one
another."""
