"""The service for agents and editors: tools over the Model Context Protocol, at /mcp and over standard input."""
