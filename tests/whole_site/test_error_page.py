"""The page for unexpected errors, which is rendered without the frame of the others."""

import re

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string


def test_its_files_exist():
    files = re.findall(r'(?:href|src)="/static/([^"]+)"', render_to_string("500.html"))

    assert len(files) > 3
    assert [file for file in files if finders.find(file) is None] == []
