"""Empirical privacy: distinguishing attacks on the real code, and membership inference. Offline only: reads private rows."""
