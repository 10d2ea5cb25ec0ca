from django.contrib.auth import views as auth_views
from django.urls import path, reverse_lazy

from memoryhub.accounts.views import (
    accept_invitation,
    account,
    invitations,
    members,
    people,
    preferences,
    second_factor,
    setup,
)

urlpatterns = [
    path("setup/<str:token>/", setup.setup, name="setup"),
    path("login/", second_factor.SignInView.as_view(), name="login"),
    path("login/code/", second_factor.code, name="login-code"),
    path(
        "logout/",
        auth_views.LogoutView.as_view(next_page=reverse_lazy("login", query={"signed-out": 1})),
        name="logout",
    ),
    path("invitation/<str:token>/", accept_invitation.invitation, name="invitation"),
    path("account/password/", account.password, name="password"),
    path("account/second-factor/", second_factor.second_factor, name="second-factor"),
    path("account/second-factor/codes/", second_factor.recovery_codes, name="recovery-codes"),
    path("account/second-factor/off/", second_factor.turn_off, name="turn-off-second-factor"),
    path("account/sign-ins/", account.sign_ins, name="sign-ins"),
    path("account/sign-ins/end-others/", account.end_others, name="end-other-sign-ins"),
    path("account/sign-ins/<int:pk>/end/", account.end, name="end-sign-in"),
    path("people/", people.people, name="people"),
    path("people/roles/", people.matrix, name="people-roles"),
    path("people/invite/", invitations.invite, name="invite"),
    path("people/invitations/<int:pk>/revoke/", invitations.revoke, name="revoke-invitation"),
    path("people/<int:pk>/", people.person_page, name="person"),
    path("people/<int:pk>/deactivate/", people.deactivate, name="deactivate-person"),
    path("people/<int:pk>/activate/", people.activate, name="activate-person"),
    path("people/<int:pk>/make-operator/", people.make_operator, name="make-operator"),
    path("people/<int:pk>/remove-operator/", people.remove_operator, name="remove-operator"),
    path("people/<int:pk>/reset-link/", people.reset_link, name="reset-link"),
    path("people/<int:pk>/reset-second-factor/", people.reset_second_factor, name="reset-second-factor"),
    path("account/", preferences.preferences, name="preferences"),
    path("account/theme/", preferences.set_theme, name="set-theme"),
    path("w/<slug:slug>/people/", members.members, name="workspace-people"),
    path("w/<slug:slug>/people/invite/", invitations.invite, name="workspace-invite"),
    path(
        "w/<slug:slug>/people/invitations/<int:pk>/revoke/",
        invitations.revoke,
        name="workspace-revoke-invitation",
    ),
]
