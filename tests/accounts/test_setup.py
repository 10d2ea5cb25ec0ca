from datetime import timedelta

import pytest
from django.contrib.auth.models import User

from memoryhub.accounts.setup import create_first_operator, is_valid, issue_setup_token
from tests.hub import NOW, raises_code

pytestmark = pytest.mark.django_db
PASSWORD = "a calm sea 42"


def create(token: str, *, username: str = "olga", now=NOW) -> User:
    return create_first_operator(token=token, username=username, password=PASSWORD, now=now)


def test_no_link_makes_a_second_operator():
    token = issue_setup_token(NOW)
    User.objects.create_superuser("olga")

    assert not is_valid(token, NOW)
    with raises_code("setup_link_invalid"):
        create(token, username="mallory")
    assert not User.objects.filter(username="mallory").exists()


def test_a_link_makes_one_operator_though_that_one_is_deactivated_later():
    token = issue_setup_token(NOW)
    create(token)
    User.objects.update(is_active=False)

    assert not is_valid(token, NOW)
    with raises_code("setup_link_invalid"):
        create(token, username="mallory")
    assert is_valid(issue_setup_token(NOW), NOW)


def test_a_link_is_good_for_the_minutes_that_the_settings_say(settings):
    settings.MEMORYHUB_SETUP_MINUTES = 5
    token = issue_setup_token(NOW)

    assert is_valid(token, NOW + timedelta(minutes=5, seconds=-1))
    with raises_code("setup_link_invalid"):
        create(token, now=NOW + timedelta(minutes=5))
    assert not is_valid("another", NOW)
