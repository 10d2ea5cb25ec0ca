"""A person who uses the hub's pages over HTTP, without a browser."""

from __future__ import annotations

import re
from http.cookiejar import CookieJar
from urllib.parse import quote, urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener


class Person:
    """Somebody who signs in when a page asks for it."""

    def __init__(self, address: str, name: str, password: str) -> None:
        self.address, self.opener = address, build_opener(HTTPCookieProcessor(CookieJar()))
        self.account = {"username": name, "password": password}

    def get(self, place: str) -> bytes:
        page = self._read(Request(self.address + place))
        if b'name="password"' in page:
            page = self.submit(page.decode(), f"/login/?next={quote(place)}", **self.account)
        return page

    def post(self, place: str, form_at: str = "", **values: object) -> bytes:
        """Open the page of a form, and submit it."""
        return self.submit(self.get(form_at or place).decode(), place, **values)

    def submit(self, page: str, place: str, **values: object) -> bytes:
        """Submit a form of a page that is open; files go into it as Django's uploaded files."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
        values["csrfmiddlewaretoken"] = token[1] if token else ""
        request = Request(self.address + place, urlencode(values).encode())
        if any(hasattr(value, "read") for value in values.values()):
            from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

            request = Request(
                self.address + place, encode_multipart(BOUNDARY, values), {"Content-Type": MULTIPART_CONTENT}
            )
        return self._read(request)

    def _read(self, request: Request) -> bytes:
        with self.opener.open(request, timeout=60) as response:
            return bytes(response.read())
