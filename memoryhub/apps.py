import os
from importlib import import_module

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig


class MemoryHubConfig(AppConfig):
    name = "memoryhub"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "MemoryHub"

    def ready(self) -> None:
        """Register system checks, and make new files readable only by their owner."""
        os.umask(0o077)
        import_module("memoryhub.system_checks")


class OperatorAdminConfig(SimpleAdminConfig):
    """The administration. ``memoryhub.urls`` loads its modules, which takes a third of a second."""

    default_site = "memoryhub.admin_site.OperatorAdminSite"
