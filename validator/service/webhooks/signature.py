"""Does a webhook come from GitHub? Its signature covers the raw body, and not the delivery ID."""

from __future__ import annotations

import hashlib
import hmac

_SCHEME = "sha256="


def sign(secret: str, body: bytes) -> str:
    """The value of X-Hub-Signature-256 for ``body``."""
    return _SCHEME + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(secret: str, body: bytes, signature: str | None) -> bool:
    """Whether ``signature`` is that of ``body``; compared in constant time. Nothing is signed with an empty secret."""
    if not secret or signature is None:
        return False
    return hmac.compare_digest(sign(secret, body).encode(), signature.encode(errors="replace"))
