"""Pictures of results. Functions take names and numbers, never data, and return a matplotlib Figure."""

from dpexplain.plots.bars import bars as bars
