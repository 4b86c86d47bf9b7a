"""Makes real hangs of several ranks; see README.md."""
