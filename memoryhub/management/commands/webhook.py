from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.utils import timezone

from memoryhub.find_by_name import find_workspace
from memoryhub.lib.errors import NotFound
from memoryhub.management.json_command import JsonCommand
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.services.audit import EVENTS, Actor, By
from sessions_app.services.webhooks import add_webhook, remove_webhook, secret_of, standard_secret_of

COMMAND = Actor("command", "webhook")


class Command(JsonCommand):
    help = "List, add and remove a workspace's webhooks."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("action", choices=("list", "add", "remove"), help="what to do")
        parser.add_argument("workspace", help="slug or name of the workspace")
        parser.add_argument("url", nargs="?", default="", help="for add and remove: the address")
        parser.add_argument(
            "--event", action="append", default=[], choices=list(EVENTS), help="only this event; repeatable"
        )

    def run(self, *, action: str, workspace: str, url: str, event: list[str], **_options: Any) -> dict[str, Any]:
        found = find_workspace(workspace)
        now = timezone.now()
        if action == "add":
            allowed = settings.MEMORYHUB_PRIVATE_HOSTS
            hook = add_webhook(found, url, event, allowed=allowed, by=By(COMMAND, now))
            secrets = {"secret": secret_of(hook), "standard_secret": standard_secret_of(hook)}
            return {"webhooks": [_document(hook) | secrets]}
        if action == "remove":
            known = Webhook.objects.select_related("workspace").filter(workspace=found, url=url).first()
            if known is None:
                raise NotFound(f"{found.slug} has no webhook {url!r}.")
            remove_webhook(known, by=By(COMMAND, now))
        return {"webhooks": [_document(hook) for hook in Webhook.objects.filter(workspace=found).order_by("id")]}

    def show(self, result: dict[str, Any]) -> None:
        for hook in result["webhooks"]:
            self.line(f"{hook['url']}: {', '.join(hook['events']) or 'all events'}")
            if "secret" in hook:
                self.line(f"  signed with {hook['secret']}")
                self.line(f"  as a Standard Webhooks secret: {hook['standard_secret']}")


def _document(hook: Webhook) -> dict[str, Any]:
    deliveries = WebhookDelivery.objects.filter(webhook=hook)
    states = {"waiting": "", "sent": WebhookDelivery.Status.SENT, "failed": WebhookDelivery.Status.FAILED}
    counts = {name: deliveries.filter(status=status).count() for name, status in states.items()}
    return {"url": hook.url, "events": hook.actions, "enabled": hook.is_enabled, "deliveries": counts}
