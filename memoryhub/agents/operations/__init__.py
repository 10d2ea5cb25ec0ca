"""The operations that REST and MCP share, one function each.

Each checks the token's scope, stays within the token's workspace, and logs what was read. They return plain values
that can be serialised as JSON.
"""
