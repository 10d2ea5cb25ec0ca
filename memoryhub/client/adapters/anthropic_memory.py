"""Claude's memory tool for the Anthropic SDK, with its files in the hub.

from memoryhub.client.adapters.anthropic_memory import HubMemoryTool

client.beta.messages.run_tools(model=…, messages=…, tools=[HubMemoryTool(hub)]).until_done()
"""

from __future__ import annotations

from typing import Any

from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

from memoryhub.client.adapters.memory_directory import CommandError, MemoryDirectory
from memoryhub.client.hub import MemoryHub


class HubMemoryTool(BetaAbstractMemoryTool):
    """Keeps the files of ``/memories`` as key-values, which people can read and correct."""

    def __init__(self, hub: MemoryHub, **options: Any) -> None:
        super().__init__(**options)
        self._directory = MemoryDirectory(hub)

    def execute(self, command: Any) -> str:
        """Execute a command of the model. Raises ToolError."""
        try:
            return self._directory.run(command.model_dump(exclude_none=True))
        except CommandError as error:
            raise ToolError(str(error)) from error

    view = create = str_replace = insert = delete = rename = execute
