"""Records as they are written on a command line."""

from __future__ import annotations

import json
from typing import Any

from dpexplain.errors import QueryError


def parse_record(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise QueryError("the record is not JSON. Write --record '{\"age\": 40, …}', in single quotes for the shell") from None
