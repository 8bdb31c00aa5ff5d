"""API keys: 256 random bits each, shown once, kept as salted hashes, compared in constant time.

A key is `dpx_<id>_<secret>`. The secret has full entropy, so one HMAC-SHA-256 with a salt of its own is as good as a slow hash: there is no
dictionary to try. The file is read again when it changes, so that a revoked key stops working without a restart; while it cannot be read,
every request is refused.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

from dpexplain.arguments import require_regular_file
from dpexplain.errors import IntegrityError, ParameterError

ROLES = ("analyst", "owner")
_KEY = re.compile(r"dpx_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = "0" * 64


@dataclass(frozen=True, slots=True)
class Key:
    """A stored key: the salted hash, from which the key cannot be computed."""

    id: str
    name: str
    role: str
    created: str
    salt: str
    hash: str

    def accepts(self, secret: str) -> bool:
        return hmac.compare_digest(self.hash, _hash(self.salt, secret))


_NONE = Key("", "", "", "", _NOBODY, _NOBODY)


def _hash(salt: str, secret: str) -> str:
    return hmac.new(bytes.fromhex(salt), secret.encode(), sha256).hexdigest()


class KeyFile:
    """Keys in a JSON file that only its owner may read."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._seen: tuple[int, ...] | None = None
        self._keys: dict[str, Key] = {}
        self._trouble = ""

    def add(self, role: str, name: str = "") -> str:
        """Make a key and return it. It cannot be shown again."""
        if role not in ROLES:
            raise ParameterError(f"role must be one of {', '.join(ROLES)}, got {role!r}")
        identity, secret, salt = secrets.token_hex(6), secrets.token_urlsafe(32), secrets.token_hex(16)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        with self._change() as keys:
            keys.append(Key(identity, name, role, created, salt, _hash(salt, secret)))
        return f"dpx_{identity}_{secret}"

    def revoke(self, identity: str) -> None:
        with self._change() as keys:
            kept = [key for key in keys if key.id != identity]
            if len(kept) == len(keys):
                raise ParameterError(f"there is no key {identity!r} in {self.path}. See `dpexplain serve keys list`")
            keys[:] = kept

    def list_keys(self) -> list[Key]:
        return _read(self.path) if self.path.exists() else []

    def find(self, token: str) -> Key | None:
        """The key this token is, or None. Unknown ids do the same work as wrong secrets."""
        match = _KEY.fullmatch(token)
        identity, secret = match.groups() if match else ("", "")
        key = self._read_if_changed().get(identity, _NONE)
        return key if key.accepts(secret) and key is not _NONE else None

    def find_trouble(self) -> str:
        """Why the keys cannot be read now, so that everybody is refused; empty where they can."""
        self._read_if_changed()
        return self._trouble

    def _read_if_changed(self) -> dict[str, Key]:
        with self._lock:
            try:
                found = self.path.stat()
                stamp = (found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode)
                if stamp != self._seen:
                    self._keys, self._seen, self._trouble = {key.id: key for key in _read(self.path)}, stamp, ""
            except (OSError, IntegrityError) as error:
                self._keys, self._seen, self._trouble = {}, None, str(error)
            return self._keys

    @contextmanager
    def _change(self) -> Iterator[list[Key]]:
        """Read the file, change the keys and replace the file atomically, one process at a time."""
        lock = self.path.with_name(f".{self.path.name}.lock")
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            keys = self.list_keys()
            yield keys
            draft = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.new")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
                json.dump({"format": "dpexplain.keys", "version": 1, "keys": [asdict(key) for key in keys]}, out, indent=1)
            draft.replace(self.path)


def _read(path: Path) -> list[Key]:
    try:
        require_regular_file(path)
        if path.stat().st_mode & stat.S_IWOTH:
            raise IntegrityError(
                f"everybody may write to {path}, so anybody could have added a key. Check it, and run: chmod 600 {path}"
            )
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != "dpexplain.keys" or data["version"] != 1:
            raise ValueError("format")
        return [Key(**{name: str(value) for name, value in key.items()}) for key in data["keys"]]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        raise IntegrityError(
            f"{path} is not a file of dpexplain keys. Restore it from a backup, or delete it and make new keys"
        ) from None
