"""Packages that only baselines need."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def import_extra(module: str) -> Any:
    """Import a module of the extra `[baselines]`, or raise an error with the command that installs it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what these packages import: a caller cannot change that
            return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != package:
            raise
        raise ImportError(f"this baseline needs {package}. Run: pip install 'dpexplain[baselines]'", name=package) from None
