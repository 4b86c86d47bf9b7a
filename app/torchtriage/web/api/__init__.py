"""The API, /api/v1, and what machines ask of the service itself."""
