"""Verifies minisign signatures.

The format is documented at https://jedisct1.github.io/minisign. The signature is Ed25519 over the file (`Ed`) or over
its BLAKE2b hash (`ED`). A second one covers the first and the trusted comment.
"""

from __future__ import annotations

import base64
import hashlib

from torchtriage.errors import BadInput
from torchtriage.extras import require

_TRUSTED = "trusted comment: "


def verify(content: bytes, signature: str, key: str) -> None:
    """Verifies the signature of `content`. `key` is the public key, or the text of a minisign key file. Raises BadInput
    if the signature is not valid for this content and key, and MissingExtra."""
    require("minisign", "a signature")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    lines = signature.splitlines()
    if len(lines) < 4 or not lines[2].startswith(_TRUSTED):
        raise BadInput("the signature file is not in the format of minisign")
    public = _decoded((key.strip().splitlines() or [""])[-1], 42, "the public key")
    signed, whole = _decoded(lines[1], 74, "the signature"), _decoded(lines[3], 64, "the signature")
    kind, number, own = signed[:2], signed[2:10], signed[10:]
    if public[:2] != b"Ed" or kind not in (b"Ed", b"ED"):
        raise BadInput("this kind of minisign signature is not supported")
    if number != public[2:10]:
        raise BadInput("the pack is signed with another key")
    checked = Ed25519PublicKey.from_public_bytes(public[10:])
    try:
        checked.verify(own, content if kind == b"Ed" else hashlib.blake2b(content).digest())
        checked.verify(whole, own + lines[2].removeprefix(_TRUSTED).encode())
    except InvalidSignature:
        raise BadInput("the signature is wrong: the pack or its signature was changed") from None


def _decoded(text: str, size: int, what: str) -> bytes:
    try:
        found = base64.b64decode(text.strip(), validate=True)
    except ValueError:
        found = b""
    if len(found) != size:
        raise BadInput(f"{what} is not in the format of minisign")
    return found
