from knowledge_app.views import cache, editing, facts, keyvalues, knowledge, observations, scratch
from knowledge_app.views.history import edit_history, history, note_history
from knowledge_app.views.memory import document, document_news, documents

__all__ = [
    "cache",
    "document",
    "document_news",
    "documents",
    "edit_history",
    "editing",
    "facts",
    "history",
    "keyvalues",
    "knowledge",
    "note_history",
    "observations",
    "scratch",
]
