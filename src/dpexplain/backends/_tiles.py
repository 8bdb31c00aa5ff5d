"""Tiles of sums Σ_i rows[p+h, i]·rows[q+w, i], held in vector registers, written in LLVM's intermediate representation.

Without this, the compiler neither keeps a square of vector sums in registers nor adds up their lanes together, and beside a store it makes
two versions of a loop, which add in different orders. Here the order is fixed: lane l of a sum takes i = l, l + LANES, …; then the
lanes are added in pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _registers() -> tuple[int, int]:
    """(float64 in a vector register, side of the square of sums that fits all registers beside its operands)."""
    features = binding.get_host_cpu_features()
    return (8, 4) if features.get("avx512f") else (4, 3) if features.get("avx") else (2, 3)


LANES, SIDE = _registers()
SUMS = -(-SIDE * SIDE // LANES) * LANES  # numbers that a tile takes, filled up to whole registers

_build: Any = cgutils
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)
_BYTES = ir.IntType(8).as_pointer()
_INT32 = ir.IntType(32)
_ZERO = ir.Constant(_VECTOR, [0.0] * LANES)
_FUSED = ("contract",)  # a product and its sum in one instruction, where there is one
_FOR_READING, _SECOND_LEVEL, _DATA = 0, 2, 1  # arguments of `prefetch`


def _generate(context: Any, builder: Any, signature: Any, arguments: Any, half: bool) -> Any:
    rows, sums = (context.make_array(signature.args[k])(context, builder, arguments[k]).data for k in (0, 4))
    _, length, p, q, _, place, soon, stride = arguments
    kept = [(h, w) for h in range(SIDE) for w in range(SIDE) if h <= w or not half]
    total = {hw: _build.alloca_once_value(builder, _ZERO) for hw in kept}
    ahead = _build.alloca_once_value(builder, soon)
    left, right = ([_row(builder, rows, start, k, length) for k in range(SIDE)] for start in (p, q))
    with _build.for_range_slice(builder, length.type(0), length, length.type(LANES), length.type) as (i, _):
        _prefetch(builder, ahead, stride)
        x = [_load(builder, row, i, 8 * LANES) for row in left]
        for w in range(SIDE):
            y = x[w] if half else _load(builder, right[w], i, 8 * LANES)
            for h in range(SIDE):
                if (h, w) in total:
                    product = builder.fmul(x[h], y, flags=_FUSED)
                    builder.store(builder.fadd(product, builder.load(total[h, w]), flags=_FUSED), total[h, w])
    found = [builder.load(total[h, w]) if (h, w) in total else _ZERO for h in range(SIDE) for w in range(SIDE)]
    _add_lanes(builder, found + [_ZERO] * (SUMS - len(found)), sums, place)
    return context.get_dummy_value()


def _row(builder: Any, rows: Any, start: Any, k: int, length: Any) -> Any:
    return builder.gep(rows, [builder.mul(builder.add(start, start.type(k)), length)])


def _load(builder: Any, pointer: Any, i: Any, align: int) -> Any:
    return builder.load(builder.bitcast(builder.gep(pointer, [i]), _VECTOR.as_pointer()), align=align)


def _prefetch(builder: Any, address: Any, stride: Any) -> None:
    """Prefetch the cache line at `address`, and advance the address by `stride`."""
    prefetch = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
    now = builder.load(address)
    function = _build.get_or_insert_function(builder.module, prefetch, "llvm.prefetch.p0")
    builder.call(function, [builder.inttoptr(now, _BYTES), *map(_INT32, (_FOR_READING, _SECOND_LEVEL, _DATA))])
    builder.store(builder.add(now, stride), address)


def _add_lanes(builder: Any, vectors: list[Any], sums: Any, place: Any) -> None:
    """sums[place + k] += all lanes of vectors[k]."""
    for first in range(0, len(vectors), LANES):
        group, width = vectors[first : first + LANES], 1
        while len(group) > 1:
            group = [_pairwise(builder, a, b, width) for a, b in zip(group[::2], group[1::2], strict=True)]
            width *= 2
        here = builder.add(place, place.type(first))
        pointer = builder.bitcast(builder.gep(sums, [here]), _VECTOR.as_pointer())
        builder.store(builder.fadd(builder.load(pointer, align=8), group[0], flags=_FUSED), pointer, align=8)


def _pairwise(builder: Any, a: Any, b: Any, width: int) -> Any:
    """Neighbouring groups of `width` lanes added up, those of `a` and `b` in turn."""
    both = [(lane, LANES + lane) for lane in range(0, LANES, 2 * width)]
    early = [start + k for pair in both for start in pair for k in range(width)]
    late = [lane + width for lane in early]
    chosen = [builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_INT32, LANES), lanes)) for lanes in (early, late)]
    return builder.fadd(*chosen, flags=_FUSED)


def _make_intrinsic(half: bool) -> Callable[..., None]:
    def type_intrinsic(_: Any, rows: Any, length: Any, p: Any, q: Any, sums: Any, place: Any, soon: Any, stride: Any) -> Any:
        return types.void(rows, length, p, q, sums, place, soon, stride), partial(_generate, half=half)

    return cast(Callable[..., None], intrinsic(type_intrinsic))


# add_tile(rows, length, p, q, sums, place, soon, stride): add the tile of rows p … p+SIDE-1 and q … q+SIDE-1, each `length` long and aligned to
# a register, to sums[place : place + SUMS]. On the way, ask for the bytes at address `soon` and every `stride` after it: they will be needed.
add_tile = _make_intrinsic(half=False)
add_half_tile = _make_intrinsic(half=True)  # p = q: its upper half only
