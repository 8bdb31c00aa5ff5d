"""How inner loops are compiled: kept between processes where possible, and as wide as the machine's registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def compile_kernel(kernel: Kernel, fastmath: set[str] | bool = False) -> Kernel:
    """Compile at first use and keep the result; where no file can be written, compile again in each process."""
    # 1/0 is inf, as in NumPy: a check would keep loops out of vector registers.
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    try:
        return cast(Kernel, njit(cache=True, **options)(kernel))
    except RuntimeError:  # numba found no folder for its cache
        return cast(Kernel, njit(**options)(kernel))


def _ask_for_width(_: Any) -> Any:  # pragma: no cover
    def generate(context: Any, builder: Any, *_: Any) -> Any:
        set.add(builder.function.attributes, '"prefer-vector-width"="512"')  # llvmlite's own `add` has older names only
        return context.get_dummy_value()

    return types.void(), generate


# Called in a kernel, lets its loops fill the widest vector registers there are: LLVM would use only half of AVX-512.
widest_registers = cast(Callable[[], None], intrinsic(_ask_for_width))
