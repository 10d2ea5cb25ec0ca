"""A software authenticator, which answers as a browser and a device do, or cheats."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from fido2.cose import ES256
from fido2.utils import sha256, websafe_decode, websafe_encode
from fido2.webauthn import AttestationObject, AttestedCredentialData, AuthenticatorData, CollectedClientData

FLAG = AuthenticatorData.FLAG
VERIFIED = FLAG.UP | FLAG.UV


@dataclass
class Authenticator:
    """``count``: of signatures; 0 stays 0, as with passkeys that are copied to other devices."""

    origin: str = "http://localhost"
    host: str = "localhost"
    flags: AuthenticatorData.FLAG = VERIFIED
    count: int = 0
    is_in_frame: bool = False
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    handle: str = ""

    def create(self, options: dict[str, Any]) -> str:
        """Return the JSON answer to the options of a registration."""
        self.handle = options["user"]["id"]
        public_key = ES256.from_cryptography_key(self.key.public_key())
        made = AttestedCredentialData.create(bytes(16), self.credential_id, public_key)
        client = self._client_data(CollectedClientData.TYPE.CREATE, options["challenge"])
        data = AuthenticatorData.create(sha256(self.host.encode()), self.flags | FLAG.AT, self.count, made)
        answer = {"attestationObject": websafe_encode(AttestationObject.create("none", data, {}))}
        return self._answer(client, answer | {"transports": ["internal"], "publicKeyAlgorithm": -7})

    def sign(self, options: dict[str, Any], **changed: str) -> str:
        """Return the JSON answer to the options of a sign-in; ``changed``: parts of it."""
        self.count += bool(self.count)
        client = self._client_data(CollectedClientData.TYPE.GET, options["challenge"])
        data = AuthenticatorData.create(sha256(self.host.encode()), self.flags, self.count)
        signature = self.key.sign(data + client.hash, ec.ECDSA(SHA256()))
        answer = {"authenticatorData": websafe_encode(data), "signature": websafe_encode(signature)}
        return self._answer(client, answer | {"userHandle": self.handle} | changed)

    def _client_data(self, kind: str, challenge: str) -> CollectedClientData:
        return CollectedClientData.create(kind, websafe_decode(challenge), self.origin, self.is_in_frame)

    def _answer(self, client: CollectedClientData, response: dict[str, Any]) -> str:
        name = websafe_encode(self.credential_id)
        given = {"id": name, "rawId": name, "type": "public-key", "clientExtensionResults": {}}
        return json.dumps(given | {"response": {"clientDataJSON": client.b64, **response}})
