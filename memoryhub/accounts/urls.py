from django.contrib.auth import views as auth_views
from django.urls import path, reverse_lazy

from memoryhub.accounts.login_forms import LoginForm
from memoryhub.accounts.setup import operator_exists
from memoryhub.accounts.views import accept_invitation, account, invitations, members, people, preferences, setup

urlpatterns = [
    path("setup/<str:token>/", setup.setup, name="setup"),
    path(
        "login/",
        auth_views.LoginView.as_view(
            redirect_authenticated_user=True,
            form_class=LoginForm,
            extra_context={"operator_exists": operator_exists},
        ),
        name="login",
    ),
    path(
        "logout/",
        auth_views.LogoutView.as_view(next_page=reverse_lazy("login", query={"signed-out": 1})),
        name="logout",
    ),
    path("invitation/<str:token>/", accept_invitation.invitation, name="invitation"),
    path("account/password/", account.password, name="password"),
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
