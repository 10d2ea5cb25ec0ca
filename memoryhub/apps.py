from importlib import import_module

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig, SimpleAdminConfig


class MemoryHubConfig(AppConfig):
    name = "memoryhub"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "MemoryHub"

    def ready(self) -> None:
        """Tell jobs how each kind of them is done, and register the checks."""
        import_module("memoryhub.job_handlers")
        import_module("memoryhub.system_checks")


class OperatorAdminConfig(AdminConfig):
    """The admin site, for operators of the hub only."""

    default_site = "memoryhub.admin_site.OperatorAdminSite"

    def ready(self) -> None:
        """Load its pages only where they are served: they take a third of a second that every command would pay."""
        if settings.MEMORYHUB_ADMIN:
            super().ready()
        else:
            SimpleAdminConfig.ready(self)
