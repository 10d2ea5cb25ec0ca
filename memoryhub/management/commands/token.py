from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.db.models import Q
from django.utils import timezone

from memoryhub.agents.api_tokens import DEFAULT_SCOPES, PER_MINUTE, SCOPES, issue_token, revoke_token, valid_tokens
from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from memoryhub.models import ApiToken
from sessions_app.models import Workspace
from sessions_app.services.audit import Actor, By

COMMAND = Actor("command", "token")


class Command(JsonCommand):
    help = "Create, list and revoke agents' tokens. A token is printed only once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=("make", "list", "revoke"), help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument(
            "name",
            nargs="?",
            default="",
            help="the agent's name; for revoke: the name, or the beginning of the token",
        )
        parser.add_argument(
            "--scopes", default=",".join(DEFAULT_SCOPES), help=f"comma-separated list of {', '.join(SCOPES)}"
        )
        parser.add_argument("--days", type=int, help="how many days it is valid (default: until it is revoked)")
        parser.add_argument(
            "--reads", default="", help="comma-separated slugs of other workspaces that it may read, but not write to"
        )
        parser.add_argument("--per-minute", type=int, default=PER_MINUTE, help="calls per minute")

    def run(self, *, action: str, workspace: str, name: str, **options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        now = timezone.now()
        if action == "make":
            days = options["days"]
            token, text = issue_token(
                found,
                name,
                [scope.strip() for scope in options["scopes"].split(",") if scope.strip()],
                by=By(COMMAND, now),
                expires_at=now + timedelta(days=days) if days is not None else None,
                per_minute=options["per_minute"],
                reads=[find_workspace(slug.strip()) for slug in options["reads"].split(",") if slug.strip()],
            )
            return {"tokens": [_document(token)], "token": text}
        if action == "revoke":
            token = _find(found, name)
            revoke_token(token, by=By(COMMAND, now))
            token.refresh_from_db()
            return {"tokens": [_document(token)]}
        tokens = ApiToken.objects.filter(valid_tokens(now), workspace=found).order_by("-id")
        return {"tokens": [_document(token) for token in tokens]}

    def show(self, result: dict[str, Any]) -> None:
        for token in result["tokens"]:
            until = f"{token['expires_at']:%Y-%m-%d %H:%M}" if token["expires_at"] else "it is revoked"
            ends = "revoked" if token["revoked_at"] else f"until {until}"
            reads = f", also reads {', '.join(token['reads'])}" if token["reads"] else ""
            self.line(f"{token['name']} ({token['prefix']}…): {', '.join(token['scopes'])}{reads}, {ends}")
        if "token" in result:
            self.line(f"  {result['token']}")
            self.line("  The token is shown only once.")
        if not result["tokens"]:
            self.line("No valid tokens.")


def _find(workspace: Workspace, name: str) -> ApiToken:
    tokens = ApiToken.objects.select_related("workspace").filter(workspace=workspace, revoked_at=None)
    token = tokens.filter(Q(name=name) | Q(prefix=name.removesuffix("…"))).first()
    if token is None:
        raise NotFound(f"{workspace.slug} has no valid token {name!r}.")
    return token


def _document(token: ApiToken) -> dict[str, Any]:
    return {
        "name": token.name,
        "prefix": token.prefix,
        "scopes": token.scopes,
        "reads": sorted(token.read_grants.filter(ended_at=None).values_list("workspace__slug", flat=True)),
        "per_minute": token.per_minute,
        "created_by": token.created_by,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }
