from knowledge_app.views import cache, editing, graph, keyvalues, knowledge, observations, scratch
from knowledge_app.views.history import history, note_history
from knowledge_app.views.memory import document, documents

__all__ = [
    "cache",
    "document",
    "documents",
    "editing",
    "graph",
    "history",
    "keyvalues",
    "knowledge",
    "note_history",
    "observations",
    "scratch",
]
