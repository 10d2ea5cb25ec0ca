"""An MCP server for the memory, over HTTP in the hub and over stdio by a command."""
