"""A demonstration on made-up data: `python -m dpexplain.demo`."""
