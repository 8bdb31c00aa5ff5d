"""Rehearsals: what a release would be worth, measured on the owner's own rows before anything is published. Offline only."""
