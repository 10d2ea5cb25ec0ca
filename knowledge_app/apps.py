from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    name = "knowledge_app"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Knowledge"
