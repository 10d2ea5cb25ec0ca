"""Models of the memory: documents, facts, history, knowledge, observations, key-values, terms and the cache."""

from knowledge_app.models.curation import Concern, EditedRow, Forgotten, HygieneScore
from knowledge_app.models.documents import Fact, FactSource, HeldChange, MemoryDocument, MemoryRevision
from knowledge_app.models.graph import GraphLayout, RowVector, SemanticGraph, Term, TermRelation
from knowledge_app.models.held_rows import HeldRow
from knowledge_app.models.history import HistoryEntry
from knowledge_app.models.knowledge import CachedResponse, Confirmation, KeyValue, KnowledgeEntry, Observation

__all__ = [
    "CachedResponse",
    "Concern",
    "Confirmation",
    "EditedRow",
    "Fact",
    "FactSource",
    "Forgotten",
    "GraphLayout",
    "HeldChange",
    "HeldRow",
    "HistoryEntry",
    "HygieneScore",
    "KeyValue",
    "KnowledgeEntry",
    "MemoryDocument",
    "MemoryRevision",
    "Observation",
    "RowVector",
    "SemanticGraph",
    "Term",
    "TermRelation",
]
