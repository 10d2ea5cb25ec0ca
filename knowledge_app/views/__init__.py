from knowledge_app.views import cache, editing, keyvalues, knowledge, observations, scratch
from knowledge_app.views.graph import term, terms
from knowledge_app.views.history import history, note_history
from knowledge_app.views.memory import document, documents

__all__ = [
    "cache",
    "document",
    "documents",
    "editing",
    "history",
    "keyvalues",
    "knowledge",
    "note_history",
    "observations",
    "scratch",
    "term",
    "terms",
]
