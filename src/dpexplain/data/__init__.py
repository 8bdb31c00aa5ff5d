"""Private rows, which answer paid queries only: reserve, run, settle.

private_data.py  rows that answer paid questions only, and what was spent on them
facts.py         what is public about them
spending.py      pays for plans, runs them, and stores the results
"""

from __future__ import annotations

from dpexplain.data.private_data import PrivateData

__all__ = ["PrivateData"]
