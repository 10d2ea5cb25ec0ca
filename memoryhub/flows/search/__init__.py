"""Search over everything an agent kept: one box, each kind of row with an index of its own, one list of results."""

from memoryhub.flows.search.finding import Found, Hit, Wishes, find
from memoryhub.flows.search.fitting import Scope
from memoryhub.flows.search.kinds import KINDS

__all__ = ["KINDS", "Found", "Hit", "Scope", "Wishes", "find"]
