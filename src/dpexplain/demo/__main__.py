"""`python -m dpexplain.demo`: train a model, explain a few people privately until the budget is exhausted, and write a report."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from dpexplain.demo.story import tell_story


def main() -> None:
    parser = argparse.ArgumentParser(description="dpexplain on synthetic data: prints, plots, writes report.html")
    parser.add_argument("--output", type=Path, default=Path("out"), help="where explanation.png and report.html go")
    parser.add_argument("--people", type=int, default=200_000, help="how many made-up records")
    arguments = parser.parse_args()
    tell_story(Console(), arguments.output, arguments.people)


if __name__ == "__main__":
    main()
