"""Encoded rows put into the set that a domain declares, entry by entry. `proofs/registration.md`.

Sensitivities are proven for rows that obey the domain's blocks. The domains of this package encode into them. Another domain's encoding is
clamped, because nothing else guarantees it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy

from dpexplain.domain.image import ImageDomain
from dpexplain.domain.interface import DomainLike, FloatArray
from dpexplain.domain.tabular import Domain
from dpexplain.domain.text import TextDomain
from dpexplain.errors import DataError

_OWN = (Domain, TextDomain, ImageDomain)


def encode_within(domain: DomainLike, rows: Any) -> Any:
    """`domain.encode(rows)`, clamped to the domain's blocks unless the domain is one of the library's own, whose encoding lies in them."""
    encoded = domain.encode(rows)
    return encoded if type(domain) in _OWN else clamp(encoded, domain)


def clamp(encoded: Any, domain: DomainLike) -> Any:
    """Numbers cut to [0, 1], NaN being 1/2; binary entries 1 above 1/2, else 0; the largest entry of a one-hot block if it is above 1/2.

    Each row by itself, and rows that obey the blocks stay as they are.
    """
    sparse = scipy.sparse.issparse(encoded)
    rows: FloatArray = np.array(encoded.toarray() if sparse else encoded, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != domain.width:
        raise DataError(f"the domain encodes rows of shape {rows.shape}, not (rows, {domain.width}). Correct its encode or width")
    for block in domain.blocks:
        part = rows[:, block.start : block.stop]
        if block.kind == "numeric":
            part[...] = np.clip(np.where(np.isnan(part), 0.5, part), 0.0, 1.0)
        elif block.kind == "binary":
            part[...] = part > 0.5  # NaN is not
        else:
            part[...] = (np.arange(block.stop - block.start) == np.nan_to_num(part, nan=-np.inf).argmax(axis=1)[:, None]) & (
                part > 0.5
            )
    return scipy.sparse.csr_array(rows) if sparse else rows
