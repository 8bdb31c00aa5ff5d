"""A matplotlib figure that notebooks show by themselves. Importing this module loads matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that Jupyter displays as PNG whether or not pyplot was imported before. Otherwise it is a plain `Figure`."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        self.savefig(written, format="png", dpi=100)
        return written.getvalue()
