"""Django as WSGI. `manage.py serve` uses memoryhub.asgi."""

import os
from contextlib import suppress

from django.core.wsgi import get_wsgi_application
from django.db import DatabaseError, connection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memoryhub.settings")
application = get_wsgi_application()

# isort: split
from sessions_app.services.secret_key import require_known_key  # noqa: E402

with suppress(DatabaseError):  # if the database is unavailable, requests say so
    require_known_key()
connection.close()
