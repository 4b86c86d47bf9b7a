"""Optional libraries: the name of an extra in, an error that says how to install it out where a library is missing.

`pip install torchtriage` brings the engine and the command line; each extra brings what one more purpose needs. Modules
import an optional library as usual; anyone who is about to import such a module asks `require` first.
"""

from __future__ import annotations

from importlib.util import find_spec

from torchtriage.errors import MissingExtra

_SERVER = (
    "alembic", "fastapi", "httpcore2", "httptools", "httpx2", "jinja2", "limits", "markdown_it",
    "prometheus_client", "python_multipart", "sqlalchemy", "structlog", "uvicorn",
)  # fmt: skip
# The import names of what each extra installs; tests hold them against pyproject.toml.
LIBRARIES = {
    "server": _SERVER,
    "postgres": ("procrastinate", "psycopg"),
    "s3": ("obstore",),
    "oidc": ("authlib",),
    "slack": ("slack_sdk",),
    "otlp": ("opentelemetry.proto",),
    "minisign": ("cryptography",),
    "apprise": ("apprise",),
    "dask": ("distributed",),
    "kubernetes": ("kubernetes", "prometheus_client", "structlog"),
    "mcp": (*_SERVER, "mcp"),
}


def require(extra: str, subject: str) -> None:
    """`subject` is what needs the extra, as it is in the message. Raises MissingExtra."""
    if not is_installed(extra):
        raise MissingExtra(f"{subject} needs the extra `{extra}`: pip install 'torchtriage[{extra}]'")


def is_installed(extra: str) -> bool:
    """-> whether every library of the extra can be imported. Imports none."""
    return all(map(_is_there, LIBRARIES[extra]))


def _is_there(name: str) -> bool:
    package = name.partition(".")[0]  # without it, `find_spec` raises
    return find_spec(package) is not None and find_spec(name) is not None
