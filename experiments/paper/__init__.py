"""Each table and figure of the paper: one file, run by the paper's own formulas and by our defaults. docs/reproduction.md has what came out."""
