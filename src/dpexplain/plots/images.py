"""An explanation of an image as a heat map over it: as in the paper's figures, blue supports the explained class and red opposes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpexplain.core.arrays import Matrix, Vector
from dpexplain.errors import ParameterError
from dpexplain.plots.style import MUTED, PaletteName, caption_below, heading, new_axes, palette_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STRONGEST = 0.85  # opacity of the strongest effect: the image still shows


def overlay(
    values: Any,
    image: Any = None,
    error: Any = None,
    *,
    limit: float | None = None,
    title: str = "",
    caption: str = "",
    palette: PaletteName = "blue-red",
    scale: bool = True,
    ax: Axes | None = None,
) -> Figure:
    """`values` on the image plane, (h, w) or (h, w, channels), over the grey `image` where one is given.

    `ImageDomain.image` puts an explanation on the plane. Channels are added, which gives the effect of brightening all of them. Effects within ±2
    errors of zero are left out, where errors are given. `limit` is the effect in full colour, by default the largest there is; pass the
    same one to pictures that are compared. `scale=False` leaves the colour scale out.
    """
    effects = _certain(np.asarray(values, dtype=np.float64), error)
    most = limit or float(np.abs(effects).max()) or 1.0
    height, width = effects.shape
    figure, ax = new_axes(ax, 3.6 if scale else 3.0, 3.0 * min(height / width, 2.0) + 0.5)
    colours = palette_of(palette).map()
    if image is not None:
        ax.imshow(_grey(image), cmap="gray", vmin=0, vmax=1, extent=(0, width, height, 0), interpolation="nearest")
    opacity = 1.0 if image is None else _STRONGEST * np.sqrt(np.minimum(np.abs(effects) / most, 1.0))
    shown = ax.imshow(
        effects, cmap=colours, vmin=-most, vmax=most, alpha=opacity, extent=(0, width, height, 0), interpolation="nearest"
    )
    ax.set_xticks([])
    ax.set_yticks([])
    heading(ax, title, 10)
    if scale:
        bar = figure.colorbar(shown, ax=ax, shrink=0.8)
        bar.ax.tick_params(labelsize=8, colors=MUTED)
        bar.solids.set_alpha(1.0)  # type: ignore[union-attr]
    caption_below(figure, caption)
    return figure


def _certain(values: Matrix, error: Any) -> Matrix:
    """Effects of superpixels, channels added up; 0 where the sign is in doubt."""
    if values.ndim not in (2, 3):
        raise ParameterError(f"values must lie on the image plane, (h, w) or (h, w, channels), got shape {values.shape}")
    doubt = None if error is None else np.asarray(error, dtype=np.float64)
    if values.ndim == 3:
        values = values.sum(axis=2)
        doubt = None if doubt is None else np.sqrt(np.square(doubt).sum(axis=2))
    return values if doubt is None else np.where(np.abs(values) > 2 * doubt, values, 0.0)


def _grey(image: Any) -> Vector:
    """Any image in black and white, stretched to [0, 1] by its own range. The image is a public query, so its values may be used."""
    plane = np.asarray(image, dtype=np.float64)
    if plane.ndim == 3:
        plane = plane[:, :, :3].mean(axis=2)
    low, high = float(plane.min()), float(plane.max())
    return np.asarray((plane - low) / (high - low)) if high > low else np.full_like(plane, 0.5)
