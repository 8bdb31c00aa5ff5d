"""Images: a public shape, public bounds of a pixel, and a public grid of superpixels whose means are the encoded columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite, prod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpexplain.arguments import quote
from dpexplain.domain import description
from dpexplain.domain.features import to_unit
from dpexplain.domain.interface import Block, FloatArray, format_list, require_width
from dpexplain.domain.scaled import UNSCALED, require_scale
from dpexplain.errors import DataError, DomainError, QueryError

COLUMN = "image"  # the column or key of the image in a table or a JSON record
CHANNELS = {1: ("",), 3: (" red", " green", " blue"), 4: (" red", " green", " blue", " alpha")}
_PIXELS = 1 << 22  # that are read together: 32 MB as floats
_EIGHT_BITS = (0.0, 255.0)


@dataclass(frozen=True, slots=True, repr=False)
class ImageDomain(description.DomainDescription):
    """Images (h, w) or (h, w, c) → means of superpixels in [0, 1], row by row, each with its channels.

    `grid=(rows, columns)` cuts the image plane at ⌊i·h/rows⌋ and ⌊j·w/columns⌋, so that cells differ by at most one pixel a side; by
    default every pixel is a cell of its own. Column "r3c7" is the cell in row 3 and column 7, counted from 0 at the top left.

    How pixels are read is declared, never guessed from their values. Without `bounds` images are 8-bit (dtype uint8), 0 … 255. With
    `bounds=(low, high)` any type of number is read, and the bounds are scaled to [0, 1].

    Private images: numbers outside the bounds, ±inf included, are clamped, NaN becomes the middle of the bounds; nothing a pixel holds
    raises an error. In a list, anything but an array of the declared shape and type becomes an image in mid-tone. Queries: every pixel within the bounds.
    """

    shape: tuple[int, ...]
    grid: tuple[int, int] | None = None  # always a pair after construction
    bounds: tuple[float, float] | None = None
    scale: float = UNSCALED  # of every superpixel, in distances between images
    names: tuple[str, ...] = field(init=False, compare=False)
    blocks: tuple[Block, ...] = field(init=False, compare=False)

    kind: ClassVar[str] = "image"
    columns: ClassVar[tuple[str, ...]] = (COLUMN,)

    def __post_init__(self) -> None:
        shape = _whole_numbers("shape", self.shape, (2, 3))
        grid = shape[:2] if self.grid is None else _whole_numbers("grid", self.grid, (2,))
        if grid[0] > shape[0] or grid[1] > shape[1]:
            raise DomainError(f"grid={grid} has more cells than the image has pixels, {shape[:2]}. Declare a coarser grid")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "grid", grid)
        require_width(self.width)
        object.__setattr__(self, "bounds", _bounds(self.bounds))
        object.__setattr__(self, "scale", require_scale("an image domain's ", self.scale))
        object.__setattr__(self, "names", _names(grid, self.channels))
        object.__setattr__(self, "blocks", tuple(Block(i, i + 1, "numeric", self.scale) for i in range(self.width)))

    @property
    def channels(self) -> int:
        return self.shape[2] if len(self.shape) == 3 else 1

    @property
    def width(self) -> int:
        """Encoded dimension n."""
        return prod(self._grid) * self.channels

    def encode(self, rows: Any) -> FloatArray:
        """Private images → (m, n): an array (m, h, w[, c]), a list of arrays, or a table with them in its column "image"."""
        return self.encode_readable(self.read_images(rows))

    def encode_readable(self, images: NDArray[Any] | list[NDArray[Any]]) -> FloatArray:
        """The same for some of what `read_images` returned."""
        out = np.empty((len(images), self.width))
        step = max(_PIXELS // prod(self.shape), 1)
        for start in range(0, len(images), step):
            chunk = images[start : start + step]
            out[start : start + step] = self._means(chunk if isinstance(chunk, np.ndarray) else np.stack(chunk))
        return out

    @property
    def titles(self) -> tuple[str, ...]:
        """The names: words and superpixels have no other labels."""
        return self.names

    def encode_query(self, record: Any) -> FloatArray:
        """One public image → (n,): an array, nested lists, or {"image": …}."""
        image = self.picture(record)
        self._check(image)
        return self._means(image[np.newaxis]).reshape(-1)

    def encode_queries(self, records: Any) -> FloatArray:
        """Public images → (k, n), each as strictly as by `encode_query`; an error names the image, counted from 0."""
        return np.array([self._encode_numbered(i, image) for i, image in enumerate(self.separate(records))]).reshape(
            -1, self.width
        )

    def _encode_numbered(self, number: int, image: Any) -> FloatArray:
        try:
            return self.encode_query(image)
        except QueryError as error:
            raise QueryError(f"image {number}: {error}") from None

    def separate(self, records: Any) -> list[Any]:
        """The images of a batch one by one."""
        images = records.get(COLUMN) if isinstance(records, Mapping) else records
        if not isinstance(images, (list, tuple, np.ndarray)):
            raise QueryError(f"images must be an array or a list of arrays, got {type(images).__name__}. Pass [image] for one")
        return list(images)

    def picture(self, record: Any) -> NDArray[Any]:
        """The image of a query, as an array."""
        if isinstance(record, Mapping):
            if set(record) != {COLUMN}:
                raise QueryError(f"a query has the one field {COLUMN!r}, got {format_list(record)}. Pass it, or the image itself")
            record = record[COLUMN]
        try:
            return np.asarray(record)
        except (ValueError, TypeError, OverflowError):
            raise QueryError(
                f"an image must be an array of shape {self.shape}, or lists nested like one. Make all rows alike"
            ) from None

    def image(self, values: Any) -> FloatArray:
        """One number a column → the image plane (h, w[, c]): each superpixel's number on all of its pixels."""
        flat = np.asarray(values, dtype=np.float64)
        if flat.shape != (self.width,):
            raise DataError(f"there are {self.width} columns, got shape {flat.shape}. Pass one number for each")
        return np.asarray(self.on_pixels(flat[None])[0])

    def on_pixels(self, values: NDArray[Any]) -> NDArray[Any]:
        """(k, n) → (k, h, w[, c]): each superpixel's value on all of its pixels."""
        rows, columns = (np.diff(edges) for edges in self._edges)
        cells = values.reshape(len(values), *self._grid, *self.shape[2:])
        return np.repeat(np.repeat(cells, rows, axis=1), columns, axis=2)

    def flat_images(self, points: FloatArray) -> FloatArray:
        """Encoded images (k, n) → (k, h, w[, c]) within the bounds: every pixel has the mean of its superpixel."""
        low, high = self.bounds or _EIGHT_BITS
        return np.asarray(self.on_pixels(np.clip(low + points * (high - low), low, high)))

    def to_dict(self) -> dict[str, Any]:
        """The description in JSON's types."""
        description: dict[str, Any] = {"kind": self.kind, "shape": list(self.shape), "grid": list(self._grid)}
        description |= {} if self.bounds is None else {"bounds": list(self.bounds)}
        return description if self.scale == UNSCALED else description | {"scale": self.scale}

    @classmethod
    def from_dict(cls, data: Any) -> ImageDomain:
        """What `to_dict` described; `Domain.from_dict` reads every kind."""
        if not isinstance(data, Mapping) or data.get("kind") != cls.kind:
            raise DomainError("this does not describe an image domain. Pass what ImageDomain.to_dict() returned")
        description.require_known(data, {"kind", "shape", "grid", "bounds", "scale"}, "an image domain")
        return cls(data.get("shape", ()), data.get("grid"), data.get("bounds"), data.get("scale", UNSCALED))

    def __repr__(self) -> str:
        size, cells = "×".join(map(str, self.shape)), "×".join(map(str, self._grid))
        return f"<ImageDomain: {size} images in {cells} superpixels → {self.width} columns>"

    @property
    def _grid(self) -> tuple[int, int]:
        assert self.grid is not None
        return self.grid

    @property
    def _edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where cells begin and the last one ends, along each side."""
        rows, columns = (np.arange(cells + 1) * pixels // cells for cells, pixels in zip(self._grid, self.shape, strict=False))
        return rows, columns

    def _means(self, images: NDArray[Any]) -> FloatArray:
        """(k, h, w[, c]) → (k, n). Pixels are in [0, 1], partial sums of i of them in [0, i] by monotone rounding, so means are too."""
        low, high = self.bounds or _EIGHT_BITS
        with np.errstate(all="ignore"):  # a long double beyond float64's range becomes ±inf, quietly
            pixels = to_unit(images.astype(np.float64), low, high, low + (high - low) / 2)
        rows, columns = self._edges
        sums = np.add.reduceat(np.add.reduceat(pixels, rows[:-1], axis=1), columns[:-1], axis=2)
        sizes = np.outer(np.diff(rows), np.diff(columns)).reshape(1, *self._grid, *(1 for _ in self.shape[2:]))
        return np.asarray((sums / sizes).reshape(len(images), -1))

    def read_images(self, rows: Any) -> NDArray[Any] | list[NDArray[Any]]:
        """An array of images has one shape and type, which is schema. In a list, anything but an image of the domain becomes one in mid-tone;
        a list raises DataError only where no entry is an image of the domain: it is read as a whole, and never a part of it by itself."""
        images = _pictures(rows)
        if isinstance(images, np.ndarray):
            reason = self._misfit(images[0]) if len(images) else None
        else:
            reasons = [self._misfit(image) for image in images]
            reason = reasons[0] if None not in reasons and reasons else None
            low, high = self.bounds or _EIGHT_BITS
            middle = np.full(self.shape, low + (high - low) / 2)
            images = [image if fits is None else middle for image, fits in zip(images, reasons, strict=True)]
        if reason is not None:
            raise DataError(reason)
        return images

    def _misfit(self, image: Any) -> str | None:
        """The reason why this is not an image of the domain, by its shape and type alone; None where it is one."""
        if type(image) is not np.ndarray:
            return _NO_IMAGES
        if image.shape != self.shape:
            return f"images must have the declared shape {self.shape}. Resize or crop them first"
        if image.dtype.kind not in "biuf" or (self.bounds is None and image.dtype != np.uint8):
            return f"images without declared bounds are 8-bit whole numbers. {_DECLARE}"
        return None

    def _check(self, image: NDArray[Any]) -> None:
        if image.shape != self.shape:
            raise QueryError(f"an image must have shape {self.shape}, got {image.shape}. Resize or crop it first")
        if image.dtype.kind not in ("iu" if self.bounds is None else "biuf"):
            raise QueryError(f"an image without declared bounds holds whole numbers 0 … 255, got {image.dtype}. {_DECLARE}")
        low, high = self.bounds or _EIGHT_BITS
        if not ((image >= low) & (image <= high)).all():  # NaN is never within
            raise QueryError(
                f"every pixel must lie within the declared bounds, {low:g} … {high:g}. Clamp them first, if that is what you mean"
            )


_NO_IMAGES = "images must be an array (m, h, w) or (m, h, w, channels), or a list of arrays. Convert them with np.asarray"
_DECLARE = "Declare the range of pixels, for example ImageDomain(…, bounds=(0, 1))"


def _pictures(rows: Any) -> NDArray[Any] | list[Any]:
    """An array of images, or a list; anything else is refused by its type."""
    if isinstance(rows, Mapping):
        if COLUMN not in rows:
            raise DataError(f"a table of images keeps them in a column {COLUMN!r}. Rename it")
        rows = rows[COLUMN]
    if isinstance(rows, np.ma.MaskedArray):
        raise DataError("masked arrays are not read. Pass the filled array, with NaN where masked")
    if isinstance(rows, np.ndarray) and rows.dtype != object:
        return rows
    if isinstance(rows, (list, tuple, np.ndarray)):
        return list(rows)
    raise DataError(_NO_IMAGES)


def _whole_numbers(what: str, numbers: Any, lengths: tuple[int, ...]) -> tuple[int, ...]:
    declared = tuple(numbers) if isinstance(numbers, (list, tuple)) else ()
    whole = all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) and number >= 1 for number in declared)
    if len(declared) not in lengths or not whole:
        form = "(height, width) or (height, width, channels)" if what == "shape" else "(rows, columns)"
        raise DomainError(f"{what} must be {form}, whole numbers of at least 1, got {quote(numbers)}")
    return tuple(int(number) for number in declared)


def _bounds(bounds: Any) -> tuple[float, float] | None:
    if bounds is None:
        return None
    try:
        low, high = (float(bound) + 0.0 for bound in bounds)
    except (TypeError, ValueError):
        raise DomainError(f"bounds must be a pair (low, high), got {quote(bounds)}") from None
    if not low < high or not isfinite(high - low):
        raise DomainError(f"bounds: low={low:g} must be below high={high:g}, by a finite amount")
    return low, high


def _names(grid: tuple[int, ...], channels: int) -> tuple[str, ...]:
    suffixes = CHANNELS.get(channels) or tuple(f" channel{k}" for k in range(channels))
    return tuple(f"r{i}c{j}{suffix}" for i in range(grid[0]) for j in range(grid[1]) for suffix in suffixes)
