"""The whole story on embedded data: `python -m dpexplain.demo`."""
