"""Files of a rehearsal: readable by their owner alone, and never written over a release or a ledger."""

from __future__ import annotations

import json
import os
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from dpexplain.arguments import file_errors
from dpexplain.errors import ParameterError
from dpexplain.evaluation.rehearsal.rehearsal_page import draw, page_of
from dpexplain.release.file import MAGIC

if TYPE_CHECKING:
    from dpexplain.evaluation.rehearsal.rehearsal_result import Rehearsal

NAMES = ("rehearsal.json", "rehearsal.png", "rehearsal.html")
_PUBLIC = {MAGIC: "a release", b"SQLite format 3\0": "a ledger"}
_SUFFIXES = {".dpx": "a release", ".ledger": "a ledger"}


def require_folder(folder: Path, *, force: bool) -> None:
    """Raise ParameterError unless a rehearsal may be written into this folder; what it would replace is refused without `force`."""
    for path in (folder, *(folder / name for name in NAMES)):
        if (kind := _kind(path)) is not None:
            raise ParameterError(f"{path} is {kind}, which others may see: a rehearsal is not private. Name another folder")
    if folder.exists() and not folder.is_dir():
        raise ParameterError(f"{folder} is a file. Name a folder for the rehearsal")
    if not folder.absolute().parent.is_dir():
        raise ParameterError(f"there is no folder {folder.parent} to make {folder.name} in. Make it first")
    if (found := [name for name in NAMES if (folder / name).exists()]) and not force:
        raise ParameterError(
            f"{folder / found[0]} exists already. Name another folder, or pass --force (force=True) to replace it"
        )


def _kind(path: Path) -> str | None:
    """Whether this is, or is named as, something that is published or accounted with."""
    if path.is_file():
        with file_errors(path, "read"), path.open("rb") as opened:
            start = opened.read(16)
        return next((kind for magic, kind in _PUBLIC.items() if start.startswith(magic)), _SUFFIXES.get(path.suffix))
    return _SUFFIXES.get(path.suffix)


def save(rehearsal: Rehearsal, folder: Path, *, force: bool) -> list[Path]:
    """Write the three files of a rehearsal."""
    require_folder(folder, force=force)
    picture = BytesIO()
    draw(rehearsal).savefig(picture, format="png", dpi=130)
    numbers = json.dumps(rehearsal.to_dict(), indent=2, ensure_ascii=False).encode()
    page = page_of(rehearsal, picture.getvalue()).encode()
    with file_errors(folder, "write"):
        folder.mkdir(mode=0o700, exist_ok=True)
    return [_write(folder / name, content) for name, content in zip(NAMES, (numbers, picture.getvalue(), page), strict=True)]


def _write(path: Path, content: bytes) -> Path:
    """A new file with rights for its owner only; one that is there is replaced, so that its wider rights are gone too."""
    with file_errors(path, "write"):
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(content)
    return path
