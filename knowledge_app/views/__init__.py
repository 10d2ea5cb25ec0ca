from knowledge_app.views import editing, knowledge, observations
from knowledge_app.views.cache import cached_response, cached_responses
from knowledge_app.views.graph import term, terms
from knowledge_app.views.history import history, note_history
from knowledge_app.views.keyvalues import key_value, key_values, reveal_key_value
from knowledge_app.views.memory import document, documents

__all__ = [
    "cached_response",
    "cached_responses",
    "document",
    "documents",
    "editing",
    "history",
    "key_value",
    "key_values",
    "knowledge",
    "note_history",
    "observations",
    "reveal_key_value",
    "term",
    "terms",
]
