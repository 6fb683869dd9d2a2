"""Bearer tokens from another issuer: JSON Web Tokens of the one issuer that the settings name.

They must be signed with a key from the issuer's set (a file, or an https address), be for our audience and not be
expired. What the subject may do is set by a credential that an owner created for it: a valid signature alone is not
enough.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrubjay.engine.callers import REFUSED
from scrubjay.errors import InvalidInput, Unauthenticated
from scrubjay.lazy import jwt
from scrubjay.machine.paths import expand_home

if TYPE_CHECKING:
    from jwt import PyJWK, PyJWKClient, PyJWKSet

# Never HMAC: with it, anyone who knows the public key could sign.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
LEEWAY_SECONDS = 30
FETCH_SECONDS = 5


class Tokens:
    def __init__(self, *, issuer: str, audience: str, keys: str) -> None:
        """:raises InvalidInput: if the settings do not name all three, or the file cannot be read"""
        if not (issuer and audience and keys):
            raise InvalidInput("Bearer tokens need token_issuer, token_audience and token_keys.", field="token_issuer")
        self._issuer = issuer
        self._audience = audience
        self._client: PyJWKClient | None = None
        self._set: PyJWKSet | None = None
        if keys.startswith("https://"):
            self._client = jwt.PyJWKClient(keys, timeout=FETCH_SECONDS)
        else:
            self._set = read_keys(expand_home(keys, field="token_keys"))

    def subject(self, token: str) -> str:
        """Who a token is for.

        :raises Unauthenticated: unless signature, issuer, audience and time are all valid
        """
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(token),
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (jwt.PyJWTError, ValueError):
            raise Unauthenticated(REFUSED) from None
        return str(claims["sub"])

    def _key(self, token: str) -> PyJWK:
        if self._client is not None:
            return self._client.get_signing_key_from_jwt(token)
        assert self._set is not None
        name = jwt.get_unverified_header(token).get("kid")
        usable = [key for key in self._set.keys if name in (None, key.key_id)]
        if len(usable) != 1:
            raise jwt.InvalidTokenError
        return usable[0]


def read_keys(path: Path) -> PyJWKSet:
    try:
        return jwt.PyJWKSet.from_json(path.read_text("utf-8"))
    except (OSError, ValueError, jwt.PyJWTError):
        raise InvalidInput(
            "token_keys is neither an https address nor a file with a JSON Web Key Set.", field="token_keys"
        ) from None
