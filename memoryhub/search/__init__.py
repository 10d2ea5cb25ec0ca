"""Search over everything an agent kept: one box, each kind of row with an index of its own, one list of results."""

from memoryhub.search.filters import Scope
from memoryhub.search.kinds import KINDS
from memoryhub.search.ranking import Found, Hit, RankOptions, find

__all__ = ["KINDS", "Found", "Hit", "RankOptions", "Scope", "find"]
