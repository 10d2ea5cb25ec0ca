from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class MemoryHubConfig(AppConfig):
    name = "memoryhub"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "MemoryHub"


class OperatorAdminConfig(AdminConfig):
    """The admin site, for operators of the hub only."""

    default_site = "memoryhub.admin_site.OperatorAdminSite"
