"""The documentation's tables can be made again by one command."""

from pathlib import Path

import pytest
from benchmarks import _page, _plot
from benchmarks.__main__ import tables

PAGE = Path("docs/performance.md")


def test_every_marked_table_is_a_benchmark_and_holds_numbers():
    marked = _page.marked(PAGE.read_text(encoding="utf-8"))
    assert {"query", "roofline", "explainers", "growth", "memory", "machine"} <= set(marked)
    assert set(marked) <= {*tables(), "machine"}


def test_a_run_replaces_its_own_tables_and_no_other_word():
    page = "before\n<!-- benchmark: a -->\nold\n<!-- end -->\nbetween\n<!-- benchmark: b -->\nkept\n<!-- end -->\nafter"
    written = _page.rewritten(page, {"a": [{"what": "x", "s": 0.12345}, {"what": "y", "n": 1234.5}]})
    assert "| what | s | n |\n| --- | --- | --- |\n| x | 0.123 |  |\n| y |  | 1,234 |\n" in written
    assert "old" not in written
    assert "kept" in written
    assert _page.rewritten(written, {}) == written
    again = _page.rewritten(written, {"a": [{"what": "x", "s": 0.12345}, {"what": "y", "n": 1234.5}]})
    assert again == written


def test_the_figure_draws_what_was_measured(tmp_path):
    results = {
        "explainers": [{"explanation": "dpexplain, fresh", "seconds": 0.05, "lime takes times": 6.0}, {"explanation": "once"}],
        "roofline": [
            {
                "table": "1 x 1",
                "query, ms": 2.0,
                "bandwidth limit, ms": 1.0,
                "float64 limit, ms": 0.5,
                "share of the limit": 0.5,
            },
            {"table": "float32"},
        ],
        "growth": [{"what": f"query, {m:,} x {n}", "ms": 1.0} for m, n in ((100_000, 50), (200_000, 50), (200_000, 100))],
    }
    assert _plot.draw(results, tmp_path / "all.png")
    assert (tmp_path / "all.png").stat().st_size > 10_000
    assert not _plot.draw({"growth": [{"not measured": "why"}]}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


@pytest.mark.parametrize(
    "value", [(0.00012345, "0.000123"), (12.345, "12.3"), (12345.6, "12,346"), ("text", "text"), (1500, "1,500")]
)
def test_numbers_have_the_digits_that_a_benchmark_can_tell(value):
    number, shown = value
    assert _page.text(number) == shown
