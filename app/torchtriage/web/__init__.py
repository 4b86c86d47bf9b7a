"""HTTP: the API and the pages."""
