"""Checks of options, tokens, policy and the permissions of files with secrets."""

import contextlib
import stat
import time
from collections.abc import Iterable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from oslo_config import cfg

from roost.cli.configuration import options_without_effect
from roost.cli.doctor.check import ANSWER_SECONDS, Deployment, DoctorCheck, DoctorVerdict, NotKnown
from roost.model.errors import OperatorError
from roost.placement.access import open_authenticator, open_policy
from roost.placement.options import proxy_warnings, read_options

_TOKENS = "keystone_authtoken"

MOST_SKEW_SECONDS = 5.0
"""Seconds by which two clocks may differ. Beyond it the ages of tokens and commits are misjudged."""


def check_options(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the files can be read and all values are valid."""
    options = read_options(deployment.source)
    files = ", ".join(deployment.source.files) or "the environment alone"
    yield DoctorVerdict("ok", f"options are read from {files}")
    for warning in proxy_warnings(options):
        yield DoctorVerdict(
            "warn", warning.removeprefix("warning: "), "set [oslo_middleware] trusted_proxies"
        )


def check_effect(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that no option is misspelt or unsupported."""
    lines = options_without_effect(
        deployment.source, deployment.options.auth_strategy, schedules=deployment.schedules
    )
    for line in lines:
        yield DoctorVerdict("warn", line, "remove the option")
    if not lines:
        yield DoctorVerdict("ok", "every option has an effect")


def check_policy(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that the policy files can be read and parsed."""
    try:
        open_policy(deployment.options)
    except OperatorError as error:
        yield DoctorVerdict("fail", str(error), "correct the policy file")
    else:
        yield DoctorVerdict("ok", "the policy is valid")


def check_tokens(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that Keystone answers, accepts the service's credentials, and agrees with this clock."""
    if deployment.options.auth_strategy == "tokens":
        open_authenticator(deployment.options)
        yield DoctorVerdict("ok", f"service tokens are in {deployment.options.tokens_file}")
        return
    if deployment.options.auth_strategy != "keystone":
        yield DoctorVerdict(
            "warn",
            "tokens are not checked: every token is believed",
            "set auth_strategy = keystone or tokens in [api], unless this is for development",
        )
        return
    # Imported only here: this import takes as long as all others together.
    from roost.web.auth.token_check import TokenCheck

    try:
        TokenCheck(deployment.source)
    except OperatorError as error:
        yield DoctorVerdict("fail", str(error), f"correct [{_TOKENS}]")
        return
    yield from _get_token(deployment)


def _get_token(deployment: Deployment) -> Iterator[DoctorVerdict]:
    from keystoneauth1 import exceptions, loading
    from keystoneauth1.session import Session

    from roost.web.auth.token_check import known_options

    conf = deployment.source.open()
    deployment.source.register(conf, known_options(conf, deployment.source))
    section = conf[_TOKENS]
    try:
        plugin: Any = loading.load_auth_from_conf_options(conf, _TOKENS)
        verify = False if section.insecure else section.cafile or True
        cert = (section.certfile, section.keyfile) if section.certfile else None
        session = Session(auth=plugin, timeout=ANSWER_SECONDS, verify=verify, cert=cert)
        plugin.get_token(session)
        answer = session.get(plugin.auth_url, authenticated=False, raise_exc=False)
    except exceptions.Unauthorized as error:
        yield DoctorVerdict(
            "fail", f"Keystone refuses the credentials: {error}", f"correct them in [{_TOKENS}]"
        )
        return
    except (exceptions.ClientException, cfg.Error, OSError) as error:
        yield DoctorVerdict("fail", f"no token: {error}", f"correct [{_TOKENS}] auth_url, or start Keystone")
        return
    yield DoctorVerdict("ok", f"Keystone at {plugin.auth_url} accepts the credentials")
    if (date := answer.headers.get("date")) is not None:
        yield judge_clock("Keystone", parsedate_to_datetime(date).timestamp() - time.time())


def judge_clock(whose: str, seconds: float) -> DoctorVerdict:
    """Return the verdict on a clock that is ``seconds`` ahead of this machine's."""
    if abs(seconds) <= MOST_SKEW_SECONDS:
        return DoctorVerdict("ok", f"the clocks of {whose} and of this machine agree")
    ahead = "ahead" if seconds > 0 else "behind"
    return DoctorVerdict(
        "warn", f"the clock of {whose} is {abs(seconds):.0f} s {ahead}", "let NTP set the clocks of both"
    )


def check_permissions(deployment: Deployment) -> Iterator[DoctorVerdict]:
    """Check that other users may not read files with secrets."""
    files = [Path(each) for each in deployment.source.files]
    with contextlib.suppress(NotKnown):
        files += [deployment.sqlite_file or Path()]
    with contextlib.suppress(NotKnown):
        options = deployment.options
        if options.auth_strategy == "tokens" and options.tokens_file is not None:
            files.append(Path(options.tokens_file))
    if deployment.listening.tls is not None:
        files.append(deployment.listening.tls.key)
    yield from judge_files(files)


def judge_files(files: Iterable[Path]) -> Iterator[DoctorVerdict]:
    """Judge whether other users of the machine may read files with secrets; missing files are skipped."""
    for file in files:
        if not file.is_file():
            continue
        mode = file.stat().st_mode
        if mode & (stat.S_IROTH | stat.S_IWOTH):
            may = "write" if mode & stat.S_IWOTH else "read"
            says = f"{file} has mode {stat.S_IMODE(mode):o}: every user of this machine may {may} it"
            yield DoctorVerdict("warn", says, f"chmod o-rwx {file}")
        else:
            yield DoctorVerdict("ok", f"{file} is closed to other users")


CHECKS = (
    DoctorCheck("configuration", check_options),
    DoctorCheck("options without effect", check_effect),
    DoctorCheck("policy", check_policy),
    DoctorCheck("tokens", check_tokens),
)
