from sessions_app.views.listing import session_list
from sessions_app.views.reading import detail, entry
from sessions_app.views.statistics import statistics

__all__ = ["detail", "entry", "session_list", "statistics"]
