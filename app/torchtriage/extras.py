"""Checks for optional libraries, and raises an error that says how to install them.

`pip install torchtriage` installs the engine and the command line. Each extra installs what one more purpose needs. A
module imports an optional library as usual. Code that imports a module of this kind calls `require` first.
"""

from __future__ import annotations

from importlib.util import find_spec

from torchtriage.errors import MissingExtra

_SERVER = (
    "alembic", "fastapi", "httpcore2", "httptools", "httpx2", "jinja2", "limits", "markdown_it",
    "prometheus_client", "python_multipart", "sqlalchemy", "structlog", "uvicorn",
)  # fmt: skip
# The import names of what each extra installs. Tests compare them with pyproject.toml.
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
    """Raises MissingExtra if a library of the extra is missing. `subject` is the feature that needs it, as the message
    names it."""
    if not is_installed(extra):
        raise MissingExtra(f"{subject} needs the extra `{extra}`: pip install 'torchtriage[{extra}]'")


def is_installed(extra: str) -> bool:
    """Returns whether every library of the extra can be imported. It imports none of them."""
    return all(map(_is_there, LIBRARIES[extra]))


def _is_there(name: str) -> bool:
    package = name.partition(".")[0]  # `find_spec` raises an error for a submodule of a missing package
    return find_spec(package) is not None and find_spec(name) is not None
