"""Rehearsals: the quality of a release, measured on the owner's own rows before anything is published. Offline only."""
