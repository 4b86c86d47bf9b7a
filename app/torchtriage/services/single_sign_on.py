"""What a login with an OpenID Connect provider consists of and how it fails, for who has no such provider too."""

from __future__ import annotations

from dataclasses import dataclass

from torchtriage.errors import BadInput, TriageError


class LoginRefused(BadInput):
    """The provider, or what it sent, does not let this person in."""

    status = 403
    code = "login_refused"


class ProviderUnavailable(TriageError):
    """The provider does not answer, or not as OpenID Connect says."""

    status = 503
    code = "provider_unavailable"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A login under way: secrets that only the browser that began it knows."""

    state: str
    nonce: str
    verifier: str
