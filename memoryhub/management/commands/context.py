from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.flows.context import build_context
from memoryhub.flows.lookup import find_session, find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.windows import DEFAULT_MAX_MESSAGES


class Command(JsonCommand):
    help = "Show exactly what the model would get for a session."

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("workspace")
        parser.add_argument("session_key")
        parser.add_argument(
            "--max-messages", type=int, default=DEFAULT_MAX_MESSAGES, help="entries at most; 0: no limit"
        )

    def run(self, *, workspace: str, session_key: str, max_messages: int, **_options: Any) -> dict[str, Any]:
        session = find_session(find_workspace(workspace), session_key)
        context = build_context(session, max_messages=max_messages)
        return {
            "messages": context.messages,
            "tokens": context.tokens,
            "dropped": [{"position": drop.position, "why": drop.why} for drop in context.dropped],
        }

    def show(self, result: dict[str, Any]) -> None:
        for message in result["messages"]:
            self.line(f"{message['role']}: {message['content']}")
            for call in message.get("tool_calls", []):
                self.line(f"  calls {call['function']['name']} {call['function']['arguments']}")
        self.line(f"≈ {result['tokens']:,} tokens, {len(result['dropped'])} entries left out")
