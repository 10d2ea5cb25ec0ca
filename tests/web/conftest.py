from importlib import import_module, reload

import pytest
from django.urls import clear_url_caches


@pytest.fixture
def admin_on(settings):
    """The admin site as MEMORYHUB_ADMIN switches it on."""
    settings.MEMORYHUB_ADMIN = True
    reload(import_module("memoryhub.urls"))
    clear_url_caches()
    yield
    settings.MEMORYHUB_ADMIN = False
    reload(import_module("memoryhub.urls"))
    clear_url_caches()
