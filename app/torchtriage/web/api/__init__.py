"""The API under /api/v1, and endpoints for other programs, such as health checks."""
