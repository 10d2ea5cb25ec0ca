from sessions_app.views.listing import session_list
from sessions_app.views.reading import arrivals, detail, entry
from sessions_app.views.statistics import session_statistics, statistics

__all__ = ["arrivals", "detail", "entry", "session_list", "session_statistics", "statistics"]
