"""The floor of load.py: a Django view that inserts one row, on the hub's web server and database settings."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["DJANGO_SETTINGS_MODULE"] = "memoryhub.settings"

import django
from django.conf import settings

settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
settings.ROOT_URLCONF = __name__
django.setup()

import uvicorn  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection, models  # noqa: E402
from django.http import HttpRequest, HttpResponse, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402

from memoryhub.lib.database.db_retry import retried  # noqa: E402
from memoryhub.lib.http.threaded_wsgi import ThreadedWSGI  # noqa: E402
from memoryhub.management.http_server import server_config  # noqa: E402


class Row(models.Model):
    text = models.TextField()

    class Meta:
        app_label = "floor"
        db_table = "load_floor"

    def __str__(self) -> str:
        return self.text


@csrf_exempt
def insert(request: HttpRequest) -> HttpResponse:
    retried(Row(text=json.loads(request.body)["entries"][0]["content"]).save)()
    return JsonResponse({"added": 1})


urlpatterns = [path("api/v1/entries", insert)]

if __name__ == "__main__":
    if Row._meta.db_table not in connection.introspection.table_names():
        with connection.schema_editor() as editor:
            editor.create_model(Row)
    connection.close()
    application = ThreadedWSGI(get_wsgi_application(), threads=10)
    uvicorn.Server(server_config(application, lifespan="off", port=int(sys.argv[1]))).run()
