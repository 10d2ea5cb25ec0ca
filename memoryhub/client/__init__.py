"""The Python client of MemoryHub. It needs only httpx2, nothing of the server.

from memoryhub.client import MemoryHub

with MemoryHub("http://127.0.0.1:8765", token) as hub:
    hub.append("cli:main", "Which region do we deploy to?")
    messages = hub.context("cli:main")["messages"]
"""

from memoryhub.client.async_hub import AsyncMemoryHub
from memoryhub.client.errors import (
    BadRequest,
    Conflict,
    HubUnavailable,
    MemoryHubError,
    NotAuthenticated,
    NotFound,
    Refused,
    TooManyCalls,
)
from memoryhub.client.hub import MemoryHub

__all__ = [
    "AsyncMemoryHub",
    "BadRequest",
    "Conflict",
    "HubUnavailable",
    "MemoryHub",
    "MemoryHubError",
    "NotAuthenticated",
    "NotFound",
    "Refused",
    "TooManyCalls",
]
