"""What agents can do, one function each: REST and MCP call these and nothing beside them.

Each begins by asking whether the token is good for it, stays within the token's workspace, and writes down what was
read. They return plain values, ready to be JSON.
"""
