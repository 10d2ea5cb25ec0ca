"""Search over everything in a workspace: one query, one index per kind of row, one ranked list."""

from memoryhub.search.filters import Scope
from memoryhub.search.kinds import KINDS
from memoryhub.search.ranking import Hit, RankOptions, SearchResults, find

__all__ = ["KINDS", "Hit", "RankOptions", "Scope", "SearchResults", "find"]
