"""The HTTP service: the API and the pages."""
