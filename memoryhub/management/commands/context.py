from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from memoryhub.conversations.context import build_context, context_text
from memoryhub.find_by_name import find_session, find_workspace
from memoryhub.management.json_command import JsonCommand
from sessions_app.services.context_window import DEFAULT_MAX_MESSAGES


class Command(JsonCommand):
    help = "Show exactly what the model would receive for a session."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("session_key", help="the session's key")
        parser.add_argument(
            "--max-messages", type=int, default=DEFAULT_MAX_MESSAGES, help="maximum number of entries; 0: no limit"
        )
        parser.add_argument(
            "--max-tokens", type=int, help="maximum number of tokens; 0: no limit (default: the workspace's limit)"
        )
        parser.add_argument("--text", action="store_true", help="print one text in AgTerm's format")

    def run(
        self,
        *,
        workspace: str,
        session_key: str,
        max_messages: int,
        max_tokens: int | None,
        text: bool,
        **_options: Any,
    ) -> dict[str, Any]:
        session = find_session(find_workspace(workspace), session_key)
        context = build_context(session, max_messages=max_messages, max_tokens=max_tokens)
        return {
            "messages": context.messages,
            "tokens": context.tokens,
            "budget": context.budget,
            **({"text": context_text(context)} if text else {}),
            "dropped": [{"position": drop.position, "why": drop.why} for drop in context.dropped],
        }

    def show(self, result: dict[str, Any]) -> None:
        for line in result.get("text", "").splitlines():
            self.line(line)
        for message in [] if "text" in result else result["messages"]:
            self.line(f"{message['role']}: {message['content']}")
            for call in message.get("tool_calls", []):
                self.line(f"  calls {call['function']['name']} {call['function']['arguments']}")
        self.line(f"≈ {result['tokens']:,} tokens, {len(result['dropped'])} entries left out")
