from memoryhub.conversations.views.listing import session_list
from memoryhub.conversations.views.reading import arrivals, detail, entry
from memoryhub.conversations.views.statistics import session_statistics, statistics

__all__ = ["arrivals", "detail", "entry", "session_list", "session_statistics", "statistics"]
