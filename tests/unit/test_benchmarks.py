"""The documentation's tables can be made again by one command."""

import json
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks import _history, _page, _plot
from benchmarks.__main__ import tables

PAGES = sorted(Path("docs").rglob("*.md"))


def test_every_marked_table_is_a_benchmark():
    marked = [name for page in PAGES for name in _page.marked_names(page.read_text(encoding="utf-8"))]
    assert {"query", "roofline", "explainers", "growth", "memory", "machine", "service", "ledger", "wide"} <= set(marked)
    assert set(marked) <= {*tables(), "machine", "runs"}
    assert len(marked) == len(set(marked))


def test_a_run_replaces_its_own_tables_and_no_other_word():
    page = "before\n<!-- benchmark: a -->\nold\n<!-- end -->\nbetween\n<!-- benchmark: b -->\nkept\n<!-- end -->\nafter"
    written = _page.rewritten(page, {"a": [{"what": "x", "s": 0.12345}, {"what": "y", "n": 1234.5}]})
    assert "| what | s | n |\n| --- | --- | --- |\n| x | 0.123 |  |\n| y |  | 1,234 |\n" in written
    assert "old" not in written
    assert "kept" in written
    assert _page.rewritten(written, {}) == written
    again = _page.rewritten(written, {"a": [{"what": "x", "s": 0.12345}, {"what": "y", "n": 1234.5}]})
    assert again == written


@pytest.mark.slow
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


RESULTS = {
    "machine": [{"machine": "processor", "value": "2 cores"}, {"machine": "load at the start", "value": "0.5 of 2 cores"}],
    **{table: [] for table, _, _ in _history.RATIOS.values()},
}


def test_a_whole_run_adds_one_line_to_the_history_and_a_partial_one_none(tmp_path):
    assert _history.line(RESULTS) is None
    results = {name: list(rows) for name, rows in RESULTS.items()}
    for table, label, column in _history.RATIOS.values():
        results[table].append({"what": label, column: 2.0})
    one = _history.line(results)
    _history.append(one | dict.fromkeys(_history.RATIOS, 3.0), tmp_path / "other.csv")
    assert not _history.has(one, tmp_path / "other.csv")
    for _ in range(2):
        _history.append(one, tmp_path / "history.csv")
    assert _history.has(one, tmp_path / "history.csv")
    lines = _history.read(tmp_path / "history.csv")
    assert [float(line["fresh answer, lime takes times"]) for line in lines] == [2.0, 2.0]
    page = tmp_path / "page.md"
    page.write_text("<!-- benchmark: runs -->\n<!-- end -->", encoding="utf-8")
    _history.show(tmp_path / "history.csv", page, tmp_path / "history.png")
    assert "| run | 2 | 1 |" in page.read_text(encoding="utf-8")
    assert (tmp_path / "history.png").stat().st_size > 5_000


@pytest.mark.slow
def test_a_stored_run_is_written_down_without_measuring(tmp_path, monkeypatch):
    stored = {name: list(rows) for name, rows in RESULTS.items()} | {"noise": [{"what": "secure normals", "millions": 12.0}]}
    (tmp_path / "bench.json").write_text(json.dumps(stored | {"noise": [{"what": "disturbed"}]}), encoding="utf-8")
    (tmp_path / "again.json").write_text(json.dumps({"machine": [], "noise": stored["noise"]}), encoding="utf-8")
    (tmp_path / "docs" / "images").mkdir(parents=True)
    (tmp_path / "docs/performance.md").write_text("<!-- benchmark: noise -->\nold\n<!-- end -->", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["benchmarks", "--stored", "bench.json", "again.json", "--write-docs"])
    monkeypatch.setattr(command, "run_benchmark", lambda name: pytest.fail("nothing is to be measured"))
    assert command.main() == 0
    assert "| secure normals | 12 |" in (tmp_path / "docs/performance.md").read_text(encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["benchmarks", "noise", "--stored", "bench.json"])
    with pytest.raises(SystemExit):
        command.main()


def test_the_page_shows_the_history_that_is_stored():
    page = _history.PAGE.read_text(encoding="utf-8")
    for run in _history.read():
        assert all(value in page for key, value in run.items() if key in _history.RATIOS)


def test_small_sizes_are_those_of_the_benchmarks():
    from benchmarks import _sizes

    for name, sizes in _sizes.SMALL.items():
        assert name in tables()
        assert set(sizes) <= vars(import_module(f"benchmarks.{name}")).keys()
