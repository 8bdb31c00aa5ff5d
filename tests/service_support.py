"""What tests of the command line and the service share: an owner's folder with data, a domain and a record to ask about."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpexplain.demo.people import DOMAIN, people

RECORD = dict(age=46, hours=52, education="school", work="self-employed", trade="craft", region="north", married=True, city=False)
OTHER = RECORD | {"age": 22, "education": "degree"}
JSON = json.dumps(RECORD)


def write_owner_files(folder: Path, count: int = 3000) -> Path:
    """people.parquet with labels `y` (0/1), `score` in [-1, 1] and `owner`, and domain.toml."""
    rows, rich = people(count, seed=7)
    extra = {
        "y": rich.astype(np.int8),
        "score": 2 * rich - 1,
        "text": np.where(rich > 0, "rich", "poor"),
        "owner": np.arange(count) // 2,
    }
    pq.write_table(pa.table({**rows, **extra}), folder / "people.parquet")
    DOMAIN.save(folder / "domain.toml")
    return folder
