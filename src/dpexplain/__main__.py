"""`python -m dpexplain`: the command line."""

from dpexplain.cli import app

app()
