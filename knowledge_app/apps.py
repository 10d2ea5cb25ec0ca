from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class KnowledgeConfig(AppConfig):
    name = "knowledge_app"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = _("Knowledge")
