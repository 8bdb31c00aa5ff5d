"""The library's version: here only. `pyproject.toml` reads it, files and pages carry it."""

__version__ = "0.2.0"
