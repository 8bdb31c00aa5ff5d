"""Made-up records of a domain: public, the same ones each time, and in the kind of table that private rows are in.

They are for trying a model before a private row is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpexplain.core.uniforms import Uniforms
from dpexplain.domain import Domain, DomainLike, ImageDomain, TextDomain
from dpexplain.registration.presentation import same_kind, same_kind_of_texts

RECORDS = 64
_WORDS = 12  # of a made-up text, at most


def made_up_like(rows: Any, domain: DomainLike) -> Any:
    """Made-up records in the kind of table that `rows` are. Of the rows themselves, only the kind is looked at."""
    if isinstance(domain, Domain):
        return same_kind(rows)(made_up_columns(domain))
    if isinstance(domain, ImageDomain):
        images = made_up_images(domain)
        listed = images if isinstance(rows, np.ndarray) and rows.dtype != object else list(images)
        return {"image": listed} if isinstance(rows, Mapping) else listed
    if isinstance(domain, TextDomain):
        return same_kind_of_texts(rows, domain)({"text": made_up_texts(domain)})
    raise NotImplementedError("records can be made up for dpexplain's own domains only")


def made_up_columns(domain: Domain) -> dict[str, Any]:
    """Columns of made-up records. Each feature is drawn independently and uniformly over its declared values."""
    uniforms, points = Uniforms(), np.zeros((RECORDS, domain.width))
    for block, levels in zip(domain.blocks, domain.levels, strict=True):
        u, width = uniforms.take(RECORDS), block.stop - block.start
        if block.kind == "one-hot":
            points[np.arange(RECORDS), block.start + (u * width).astype(int)] = 1.0
        elif block.kind == "binary":
            points[:, block.start] = u > 0.5
        else:
            points[:, block.start] = np.rint(u * (levels - 1)) / (levels - 1) if levels > 1 else u
    return domain.decode(points)


def made_up_images(domain: ImageDomain) -> np.ndarray[Any, Any]:
    """Images of one random tone each, with noise, so that some are bright and some are dark."""
    uniforms, shape = Uniforms(), (RECORDS, *domain.shape)
    tone = uniforms.take(RECORDS).reshape(-1, *(1 for _ in domain.shape))
    pixels = (tone + uniforms.take(int(np.prod(shape))).reshape(shape)) / 2
    if domain.bounds is None:
        return (pixels * 255).astype(np.uint8)
    low, high = domain.bounds
    return np.asarray(low + pixels * (high - low))


def made_up_texts(domain: TextDomain) -> list[str]:
    """Texts that consist of a few words of the vocabulary each."""
    uniforms, words = Uniforms(), domain.vocabulary
    lengths = 1 + (uniforms.take(RECORDS) * min(_WORDS, len(words))).astype(int)
    return [" ".join(words[int(u * len(words))] for u in uniforms.take(int(length))) for length in lengths]
