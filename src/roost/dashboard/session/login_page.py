"""The page of login."""

import htpy as h

from roost.dashboard.addresses import LOGIN
from roost.dashboard.html.shell import Viewing, page_head, shell
from roost.dashboard.session.login_methods import LoginMethods


def login_page(methods: LoginMethods, following: str, *, refused: bool = False, spent: bool = False) -> str:
    """Return the page. ``following``: the address after the login. ``refused``: the last try was refused.
    ``spent``: the printed address was used before."""
    if methods.once is not None:
        content = _printed(methods, spent)
    else:
        notice = _notice("fails", "These credentials are not valid.")
        content = [notice if refused else None, _form(methods, following)]
    return shell(Viewing.of_nobody(), "Log in", [page_head("Log in to Roost"), content])


def _printed(methods: LoginMethods, spent: bool) -> h.Node:
    once = methods.once
    assert once is not None
    return [
        spent
        and h.p(".notice.state-look", role="alert")["This address was used before: each is for one session."],
        h.p["This service runs without authentication. A session begins with the address that it prints."],
        once.path is not None and h.p["The address of the next session is in ", h.code[f"{once.path}"], "."],
    ]


def _form(methods: LoginMethods, following: str) -> h.Node:
    return h.form(".filter-form.login", method="post", action=LOGIN)[
        h.input(type="hidden", name="next", value=following),
        methods.password is not None
        and [
            _field("user", "User", autocomplete="username"),
            _field("password", "Password", type="password", autocomplete="current-password"),
            _field("user_domain", "Domain of the user", value="Default"),
            _field("project", "Project"),
            _field("project_domain", "Domain of the project", value="Default"),
            h.p(".muted")["or"],
        ],
        _field("token", "Token", type="password", autocomplete="off"),
        h.button(type="submit")["Log in"],
    ]


def _field(name: str, label: str, *, type: str = "text", value: str = "", autocomplete: str = "on") -> h.Node:
    return h.label[
        h.span[label],
        h.input(name=name, type=type, value=value, autocomplete=autocomplete, spellcheck="false"),
    ]


def _notice(state: str, text: str) -> h.Node:
    return h.p(class_=f"notice state-{state}", role="alert")[text]
