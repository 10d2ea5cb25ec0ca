from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from memoryhub.accounts.setup import create_first_operator, is_valid, issue_setup_token
from tests.hub import NOW, raises_code

pytestmark = pytest.mark.django_db
PASSWORD = "a calm sea 42"


def create(token: str, *, username: str = "olga", now=NOW) -> User:
    return create_first_operator(token=token, username=username, password=PASSWORD, now=now)


def test_a_setup_link_cannot_create_a_second_operator():
    token = issue_setup_token(NOW)
    User.objects.create_superuser("olga")

    assert not is_valid(token, NOW)
    with raises_code("setup_link_invalid"):
        create(token, username="mallory")
    assert not User.objects.filter(username="mallory").exists()


def test_a_used_setup_link_stays_used_after_deactivating_the_operator():
    token = issue_setup_token(NOW)
    create(token)
    User.objects.update(is_active=False)

    assert not is_valid(token, NOW)
    with raises_code("setup_link_invalid"):
        create(token, username="mallory")
    assert is_valid(issue_setup_token(NOW), NOW)


def test_a_setup_link_expires(settings):
    settings.MEMORYHUB_SETUP_MINUTES = 5
    token = issue_setup_token(NOW)

    assert is_valid(token, NOW + timedelta(minutes=5, seconds=-1))
    with raises_code("setup_link_invalid"):
        create(token, now=NOW + timedelta(minutes=5))
    assert not is_valid("another", NOW)


def test_a_new_setup_link_replaces_earlier_ones():
    first, second = issue_setup_token(NOW), issue_setup_token(NOW)

    assert not is_valid(first, NOW)
    assert is_valid(second, NOW)
