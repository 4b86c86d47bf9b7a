"""Tools for agents and editors over the Model Context Protocol (MCP), at /mcp and over standard input."""
