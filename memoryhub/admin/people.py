"""Accounts, read-only: the page People changes them, ends sign-ins, and keeps the last hub operator."""

from __future__ import annotations

from importlib import import_module

from django.contrib import admin
from django.contrib.auth.models import Group, User

from memoryhub.admin.read_only import ReadOnlyAdmin

import_module("django.contrib.auth.admin")  # registers both, with forms that change passwords
admin.site.unregister([User, Group])


@admin.register(User)
class UserAdmin(ReadOnlyAdmin):
    list_display = ["username", "is_superuser", "is_active", "date_joined", "last_login"]
    list_filter = ["is_superuser", "is_active"]
    search_fields = ["username"]
    ordering = ["username", "id"]
    hidden = ("password", "groups", "user_permissions")
