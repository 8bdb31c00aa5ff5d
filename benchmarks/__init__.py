"""Measured ratios. `make bench` runs every module here that has a `run()`; each compares with its alternatives in the same run."""
