"""`python -m dpexplain.demo.owner FOLDER`: an owner's files, made up, for `make serve` and the tutorial."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dpexplain.demo.people import DOMAIN, people

SERVICE = """\
[service]
name = "income"
title = "Why does the model expect this income?"
description = "Ask about any record. Every answer protects everyone in the data and is paid from one budget. All data here are made up."
outcome = "an income above the threshold"
keys = "keys.json"

[data]                        # private: stays on this machine
file = "people.parquet"
domain = "domain.toml"        # what is public about the columns
label = "above"               # the model's answer for each row
name = "people"

# [baseline]                # a public record that answers are compared with, instead of the average
# age = 43                  # … one value for every feature

[mechanism]
kind = "basic"                # pays for each answer; "adaptive", the default: the first pays, all others are free
epsilon = 0.2                 # for each answer
delta = 1e-6

[budget]                      # for everything ever answered
epsilon = 1.0
delta = 1e-6

[ledger]
url = "sqlite:///people.ledger"
"""


def write(folder: Path, count: int = 50_000) -> None:
    """Write people.parquet, domain.toml and service.toml. Existing files are not changed."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "people.parquet").exists():
        rows, rich = people(count, seed=2)
        pq.write_table(pa.table({**rows, "above": rich > 0}), folder / "people.parquet")
    DOMAIN.save(folder / "domain.toml")
    if not (folder / "service.toml").exists():
        (folder / "service.toml").write_text(SERVICE, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="an owner's files, made up: people.parquet, domain.toml, service.toml")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--people", type=int, default=50_000, help="how many made-up records")
    arguments = parser.parse_args()
    write(arguments.folder, arguments.people)
    print("Wrote", ", ".join(str(arguments.folder / name) for name in ("people.parquet", "domain.toml", "service.toml")))


if __name__ == "__main__":
    main()
