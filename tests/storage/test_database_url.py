"""URLs of databases show no secret, however they are misspelt, and what no waiting mends is told apart."""

import asyncio
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from roost.model.secrets import safe_message
from roost.server.workers.database_wait import is_away
from roost.storage import Database, DatabaseMisconfigured, DatabaseUnavailable, DatabaseUrl

SECRET = "hunter2Zq"

SHAPES = (
    "postgresql+psycopg://roost:{}@db.example/roost",
    "postgresql+psycopg://roost:{}@db.example:5432/roost?sslmode=require",
    "postgresql+psycopg://roost:pa@ss{}@db.example/roost",
    "postgresql+psycopg://roost:pa/ss{}@db.example/roost",
    "postgresql+psycopg://roost:pa?ss{}@db.example/roost",
    "postgresql+psycopg://roost:pa#ss{}@db.example/roost",
    "postgresql+psycopg://roost:{}:5432/roost",
    "postgresql+psycopg://roost:{}",
    "postgresql+psycopg://db.example/roost?password={}",
    "postgresql+psycopg://db.example/roost?pasword={}",
    "postgresql+psycopg://db.example/roost?user=roost&password={}&sslmode=require",
    "postgresql+psycopg://db.example/roost?password={}@x",
    "postgresql+psycopg://db.example/roost?{}",
    "postgresql+psycopg://db.example/roost?sslpassword={}&passfile=/x/{}",
    "postgres://roost:{}@db.example/roost",
    "postgresql+pycopg://roost:{}@db.example/roost?password={}",
    "postgresql:/roost:{}@db.example/roost",
    "postgresql:/db.example/roost?password={}",
    "postgresql//roost:{}@db.example/roost",
    "roost:{}@db.example/roost",
    "mysql+pymysql://roost:{}@db.example:port/roost",
    "mysql+pymysql://roost:{}@db.example:99999/roost",
    "mysql+pymysql://db.example/roost?passwd={}",
    "sqlite://roost:{}@db.example/roost",
    "://roost:{}@db.example",
    "postgresql+psycopg://roost:{}@[::1/roost",
)


def values(url: DatabaseUrl) -> list[str]:
    """The values in the query of a URL."""
    return [str(each) for name, each in url.parsed.query.items() if "pass" in name or "pasw" in name]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_url_shows_no_secret(shape: str) -> None:
    text = shape.format(SECRET, SECRET)
    try:
        url = DatabaseUrl(text)
    except DatabaseMisconfigured as error:
        told = [str(error), repr(error.__cause__)]
    else:
        assert url.reveal() == text
        told = [str(url), repr(url), url.upgrade()]
        told += [url.hide(f"cannot use {each}: no") for each in (url.parsed.password, *values(url)) if each]
    told += [safe_message(f"cannot open {text!r}: no such thing"), safe_message(text)]
    assert not [each for each in told if SECRET in each]


@given(st.text("abcXYZ019:/?#&=@;%+ '\"", min_size=4, max_size=20), st.sampled_from(SHAPES))
def test_no_password_makes_the_text_of_a_url_fail(password: str, shape: str) -> None:
    try:
        url = DatabaseUrl(shape.format(password, password))
    except DatabaseMisconfigured:
        return
    assert url == pickle.loads(pickle.dumps(url))
    assert url.parsed == make_url(url.reveal())
    if url.parsed.password is not None and len(url.parsed.password) > 3:
        assert url.parsed.password not in str(url).replace("***", "")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqlite:///roost-data/a@b.db", "sqlite:///roost-data/a@b.db"),
        ("sqlite:////var/lib/roost/api.db", "sqlite:////var/lib/roost/api.db"),
        ("postgresql+psycopg://db.example/roost", "postgresql+psycopg://db.example/roost"),
        (
            "postgresql+psycopg://u:p@db.example:5432/roost?sslmode=require&sslcert=/c",
            "postgresql+psycopg://***@db.example:5432/roost?sslmode=require&sslcert=/c",
        ),
    ],
)
def test_what_is_no_secret_is_shown(text: str, shown: str) -> None:
    assert str(DatabaseUrl(text)) == shown


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresq+psycopg://u@h/d", "did you mean postgresql+psycopg?"),
        ("postgresql+psycop://u@h/d", "did you mean postgresql+psycopg?"),
        ("oracle+nothing://u@h/d", "use one of sqlite, postgresql+psycopg"),
        ("roost.db", "write DIALECT+DRIVER://USER:PASSWORD@HOST:PORT/NAME, or sqlite:///FILE"),
        ("", "write DIALECT+DRIVER://USER:PASSWORD@HOST:PORT/NAME, or sqlite:///FILE"),
        ("postgresql+psycopg://h:none/d", "what follows the colon is no port"),
        ("postgresql+psycopg://h:70000/d", "its port is not between 1 and 65535"),
        ("sqlite://tmp/roost.db", "a SQLite file has no host: write sqlite:///FILE"),
        ("mysql+mysqldb://u@h/d", "its driver cannot be loaded"),
        ("postgresql+asyncpg://u@h/d", "its driver cannot be loaded"),
        ("postgresql+psycopg://127.0.0.1:1/d?pasword=x", 'invalid connection option "pasword"'),
        ("mysql+pymysql://127.0.0.1:1/d?pasword=x", "unexpected keyword argument 'pasword'"),
        ("postgresql+psycopg://127.0.0.1:1/d?sslmode=always", "sslmode"),
    ],
)
def test_what_no_waiting_mends_is_told_apart(url: str, says: str) -> None:
    with pytest.raises(DatabaseMisconfigured) as refused:
        Database(url, answer_seconds=2.0)
    assert says in safe_message(str(refused.value)), "commands print messages so"
    assert not is_away(refused.value)


def test_a_server_that_does_not_answer_may_do_so_later() -> None:
    with pytest.raises(DatabaseUnavailable) as away:
        Database("postgresql+psycopg://u:p@127.0.0.1:1/d", answer_seconds=2.0)
    assert is_away(away.value)


def test_a_database_or_a_user_that_the_server_does_not_have_is_no_outage(database_url: str) -> None:
    url = make_url(database_url)
    if url.get_backend_name() == "sqlite":
        return
    asyncio.run(Database(database_url).close())
    for wrong in (url.set(database="roost_nowhere"), url.set(username="roost_nobody", password=SECRET)):
        with pytest.raises(DatabaseMisconfigured) as refused:
            Database(wrong.render_as_string(hide_password=False))
        assert SECRET not in str(refused.value)


def test_the_advice_works_when_it_is_pasted() -> None:
    secret = f"postgresql+psycopg://roost:{SECRET}@db/roost"
    assert DatabaseUrl("sqlite:///a b.db").upgrade() == "'roost db upgrade --database 'sqlite:///a b.db''"
    assert DatabaseUrl(secret, "--config-file /etc/roost.conf").upgrade() == (
        "'roost db upgrade --config-file /etc/roost.conf'"
    )
    assert DatabaseUrl(secret, "").upgrade() == "'roost db upgrade'"
