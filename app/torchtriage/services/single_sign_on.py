"""The data and errors of a login with an OpenID Connect provider. Needs no extra."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.errors import BadInput, TriageError


class LoginRefused(BadInput):
    """The provider or its response does not allow this login."""

    status = 403
    code = "login_refused"


class ProviderUnavailable(TriageError):
    """The provider does not answer, or its answer is not valid OpenID Connect."""

    status = 503
    code = "provider_unavailable"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login in progress: secrets that only the browser that began it knows."""

    state: str
    nonce: str
    verifier: str
