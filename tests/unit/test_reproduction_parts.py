"""Interrupted runs go on where they stopped, and say how long the rest takes; verdicts follow from the numbers."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from experiments.paper import (
    _models_table,
    _overview,
    _page,
    _record,
    _sizes,
    _streams,
    _text_numbers,
    _verdicts,
    figure_2,
    figure_3,
)
from experiments.paper._parts import Clock, Parts
from experiments.paper._study import Inputs, Study
from experiments.paper._verdicts import NOT, PARTLY, REPRODUCED, verdict


def test_a_finished_piece_is_not_computed_again(tmp_path):
    counted = []

    def compute():
        counted.append(1)
        return {"basic, paper": {"mu": np.arange(3.0)}, "a|b": {"cosine": np.ones((2, 2))}}

    for _ in range(2):
        found = Parts(tmp_path).get("shard-0", compute)
        assert found["basic, paper"]["mu"].tolist() == [0, 1, 2]
        assert found["a|b"]["cosine"].shape == (2, 2)
    assert len(counted) == 1
    Parts(tmp_path, again=True).get("shard-0", compute)
    assert len(counted) == 2


def test_a_piece_that_was_interrupted_leaves_nothing_behind(tmp_path):
    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Parts(tmp_path).get("shard-0", broken)
    assert list(tmp_path.iterdir()) == []


def test_time_left_follows_from_what_was_computed_not_from_what_was_stored():
    said = []
    clock = Clock(10.0, said.append)
    clock.count_part("one", 4.0, None)
    assert "stored before" in said[-1]
    clock.count_part("two", 2.0, 60.0)
    assert clock.left == pytest.approx(120.0)
    assert "about 2:00 min left" in said[-1]


def test_a_study_that_others_are_made_from_is_counted_once(tmp_path):
    said = []
    inputs = Inputs(tmp_path, tmp_path, seeds=1, clock=Clock(10.0, said.append))
    one = Study("one", "", "", (), 2, 1, lambda *_: {"rows": []}, lambda _: None, 4.0)
    inputs.result(one, 2)
    inputs.result(one, 2)  # from its file
    assert inputs.clock.done == 4.0
    assert ["40% done" in text for text in said] == [True]
    again = Inputs(tmp_path, tmp_path, seeds=1, clock=Clock(10.0, said.append))
    again.result(one, 2)
    again.result(one, 2)
    assert again.clock.done == 4.0


def streams(adaptive_exact, lost):
    rows = []
    for kind, books, exact in (("basic", 2.0, 0.02), ("adaptive", 0.2, adaptive_exact), ("enhanced", 0.1, adaptive_exact / 2)):
        rows.append(
            {
                "mechanism": f"{kind}, paper",
                "ε by the paper's bookkeeping": books,
                "total ε, exact": exact,
                "relative excess": lost,
            }
        )
        rows.append({"mechanism": f"{kind}, ours", "total ε, exact": books / 5, "relative excess": 0.03})
    return rows


@pytest.mark.parametrize(
    ("name", "rows", "outcome"),
    [
        ("figure-2", streams(0.005, 0.1), REPRODUCED),
        ("figure-2", streams(0.015, 0.1), PARTLY),  # saved in the books only
        ("figure-3", streams(0.005, 1.1), PARTLY),  # worse than no explanation
        ("figure-8", [{"model": "f", "correlation": 0.2, "from": 0.1, "to": 0.3, "reviews": 1000}], REPRODUCED),
        ("figure-8", [{"model": "f", "correlation": 0.0, "from": -0.1, "to": 0.1, "reviews": 1000}], NOT),
        ("figure-5", [{"data": "ACS", "mechanism": "adaptive, paper", "mean T'": 300.0, "mean in the paper": 121}], NOT),
    ],
)
def test_verdicts_follow_from_the_numbers(name, rows, outcome):
    found = verdict({"study": name, "rows": rows})
    assert found.outcome == outcome
    assert "It would be different" in str(found)


@pytest.mark.parametrize(("cheap", "outcome"), [(0.22, REPRODUCED), (0.4, PARTLY), (0.6, PARTLY)])
def test_a_saving_at_another_scale_counts_where_answers_are_hardly_worse(cheap, outcome):
    """At [0, 1] adaptive spends three quarters of basic; with columns in [0, 0.2] a quarter of it, but may lose more."""
    scaled = [
        {"columns in": "[0, 0.2]", "mechanism": f"{kind}, paper", "total ε, exact": spent, "relative excess": lost}
        for kind, spent, lost in (("basic", 0.02, 0.2), ("adaptive", 0.005, cheap), ("enhanced", 0.004, cheap))
    ]
    found = verdict({"study": "figure-2", "rows": [*streams(0.015, 0.1), *scaled]})
    assert found.outcome == outcome
    assert f"With columns in [0, 0.2] adaptive spends 0.25 of basic and loses {cheap:g} where basic loses 0.2" in str(found)


@pytest.mark.parametrize(
    ("weak", "seen", "outcome"), [(0.2, 0.8, REPRODUCED), (0.2, 0.01, PARTLY), (0.9, 0.8, NOT), (0.9, 0.01, NOT)]
)
def test_heat_maps_of_models_are_reproduced_where_they_differ_and_can_be_seen_at_the_printed_noise(weak, seen, outcome):
    rows = [
        {
            "model": model,
            "test accuracy": right,
            "explanation": kind,
            "cosine to its own optimum": cosine,
            "optimum like f's": like,
        }
        for model, right, like in (("f", 0.84, 1.0), ("f_0.5", 0.51, weak))
        for kind, cosine in (("paper, pixels", seen), ("ours, 12×12", 0.9))
    ]
    found = verdict({"study": "figure-6", "rows": rows})
    assert found.outcome == outcome
    assert found.otherwise.startswith("unless" if outcome == REPRODUCED else "if")


def test_table_3_says_at_which_scale_it_is_reproduced():
    def row(columns, epsilon, loss, reported):
        return {
            "data": "ACS",
            "columns in": columns,
            "ε": epsilon,
            "explanation": "paper",
            "excess loss": loss,
            "in the paper": reported,
        }

    near, far = [row("[0, 0.3]", 0.01, 8e-3, 5.7e-3), row("[0, 0.3]", 0.1, 1.9e-4, 2.6e-4)], [row("[0, 1]", 0.1, 4.1e-3, 2.6e-4)]
    good, bad = verdict({"study": "table-3", "rows": near + far}), verdict({"study": "table-3", "rows": far})
    assert good.outcome == REPRODUCED
    assert "reproduced at columns in [0, 0.3]" in good.because
    assert "cannot be reproduced at any of [0, 1]" in bad.because


def test_table_3_also_looks_at_other_numbers_of_steps():
    row = {"data": "Text", "columns in": "[0, 1]", "ε": 0.1, "in the paper": 4.3e-4}
    usual = row | {"explanation": "paper, noise of its size", "excess loss": 1.7e-3}
    longer = row | {"explanation": "paper, T = 3000", "excess loss": 5e-4}
    exact = row | {"explanation": "exact noise", "excess loss": 4.3e-4}  # not the printed formula
    assert verdict({"study": "table-3", "rows": [usual, exact]}).outcome == NOT
    assert "Text reproduced at columns in [0, 1], T = 3000" in verdict({"study": "table-3", "rows": [usual, longer]}).because


def test_table_2_is_reproduced_where_both_numbers_are_met():
    def row(name, lime, forest, mim, signed):
        return {
            "explanation": name,
            "shared with LIME": lime,
            "shared with LIME, forest": forest,
            "shared with MIM": mim,
            "shared with MIM, signed": signed,
        }

    printed, best = row("paper, noise of 8.8 M reviews", 1.5, 1.0, 0.1, 3.0), row("exact optimum", 3.2, 2.0, 0.5, 2.2)
    near = row("exact optimum, columns in [0, 0.1]", 3.0, 3.8, 0.5, 2.5)
    assert verdict({"study": "table-2", "rows": [printed, best]}).outcome == NOT
    one_only = verdict({"study": "table-2", "rows": [printed, row("exact optimum", 3.9, 2.0, 0.5, 4.0)]})
    assert one_only.outcome == NOT
    assert "does not share 2.1 to 3.1 with MIM" in one_only.because
    found = verdict({"study": "table-2", "rows": [printed, best, near]})
    assert found.outcome == PARTLY
    assert "exact optimum, columns in [0, 0.1] with LIME, forest and MIM, signed" in found.because
    noisy = near | {"explanation": "paper, noise of 8.8 M reviews, columns in [0, 0.1]"}
    assert verdict({"study": "table-2", "rows": [printed, best, noisy]}).outcome == REPRODUCED


@pytest.mark.parametrize(("shared", "narrow"), [(3.37, "23%"), (3.43, "77%"), (3.3, None), (3.5, None)])
def test_a_verdict_on_table_2_says_how_narrow_it_is(shared, narrow):
    def row(name, lime):
        return {"explanation": name, "shared with LIME": lime, "± shared with LIME": 0.04, "shared with MIM": 2.6}

    rows = [row("paper, noise of 8.8 M reviews", 1.5), row("exact optimum", shared)]
    found = verdict({"study": "table-2", "rows": rows})
    assert found.outcome == (PARTLY if shared > 3.4 else NOT)
    assert ("That is narrow" in found.because) == (narrow is not None)
    assert narrow is None or f"in {narrow} of the cases" in found.because
    assert f"{abs(shared - 3.4) / 0.04:.1f} standard errors" in found.otherwise


@pytest.mark.parametrize(
    ("distances", "excesses", "outcome"),
    [((0.9, 0.95), (2e-3, 3e-3), REPRODUCED), ((0.9, 0.95), (2e-3, 1e-3), PARTLY), ((0.9, 0.9), (2e-3, 2e-3), NOT)],
)
def test_figure_7_needs_distance_and_loss(distances, excesses, outcome):
    rows = [
        {
            **{"model": model, "mechanism": "paper, T=200", "test accuracy": 0.8},
            **{"distance from f's optimum": distance, "± distance from f's optimum": 0.01},
            **{"excess loss": excess, "± excess loss": 1e-4},
        }
        for model, distance, excess in zip(("f_10", "f_0.5"), distances, excesses, strict=True)
    ]
    worse_by_another_trainer = rows[1] | {"model": "own f_0.5", "excess loss": 1.0, "distance from f's optimum": 9.0}
    assert verdict({"study": "figure-7", "rows": [*rows, worse_by_another_trainer]}).outcome == outcome


def test_the_overview_has_every_artefact_and_follows_the_numbers():
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    lines = {line[0]: line for line in _overview.overview(kept)}
    assert all(len(line) == len(_overview.HEADER) for line in lines.values())
    assert {f"[Figure {i}](#figure-{i})" for i in range(1, 10)} < set(lines)
    rows = [row | {"mean T'": 7.0} for row in kept["figure-5"]["rows"]]
    changed = _overview.overview(kept | {"figure-5": kept["figure-5"] | {"rows": rows}})
    five = next(line for line in changed if line[0].startswith("[Figure 5]"))
    assert five[_overview.HEADER.index("its formulas here")] == "7 and 7"
    assert _overview.pick(kept, "figure-5", "mean T'", data="nobody's") == _overview.UNKNOWN


def test_the_overview_has_the_verdict_on_each_line():
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    said = {name: _overview.outcome(kept, name) for name, _, _ in _overview.LINES}
    assert said["Figure 4"] == verdict(kept["figure-4"]).outcome
    assert said["Table 3, faces"] == "not reproduced"
    assert said["Table 3, ACS"].startswith("reproduced at [0, ")
    rows = [row | {"excess loss": row["in the paper"]} for row in kept["table-3"]["rows"]]
    changed = kept | {"table-3": kept["table-3"] | {"rows": rows}}
    assert _overview.outcome(changed, "Table 3, faces").startswith("reproduced at [0, 1]")
    assert _overview.outcome({}, "Figure 4") == _overview.UNKNOWN


def test_every_number_of_the_text_has_an_outcome_that_follows_the_numbers():
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    lines = _text_numbers.text_numbers(kept)
    assert {line[-1] for line in lines} <= {"reproduced", "in part", "not reproduced"}
    said = " ".join(line[0] for line in lines)
    assert [
        number
        for number in ("94", "73", "1,850", "2,220", "91", "95", "87", "58", "90", "100", "0.3", "0.004", "85", "98")
        if not re.search(rf"\b{number}\b", said)
    ] == []
    rows = [
        row | {"at full T": {"depth 60": "240 of 1500", "depth 10": "150 of 1500"}.get(row["queries about"])}
        for row in kept["figure-9"]["rows"]
    ]
    changed = _text_numbers.count_overfitted(kept | {"figure-9": {"rows": rows}}, 87, 58)
    assert changed[-1] == "reproduced"
    few = [row | {"at full T": "80 of 4500"} for row in kept["figure-2"]["rows"]]
    assert _text_numbers.full_steps(kept | {"figure-2": {"rows": few}}, _text_numbers.ACS, 73)[-1] == "reproduced"
    copies = [
        {"columns in": f"[0, {scale}]", "computed, with T' = T": f"{count} of 4,500"}
        for scale, count in ((1, "2,925"), (0.1, 80))
    ]
    smaller = _text_numbers.full_steps(kept | {"figure-2": kept["figure-2"] | {"copies": copies}}, _text_numbers.ACS, 73)
    assert smaller[1].endswith("; 80 with columns in [0, 0.1]")
    assert smaller[-1] == "in part"


def test_claims_in_words_follow_the_numbers_too():
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))

    def with_entries(study, key, **entries):
        return kept | {study: kept[study] | {key: [row | entries for row in kept[study][key]]}}

    assert _text_numbers.enhanced_below(with_entries("figure-5", "rows", median=91.0), 90)[-1] == NOT
    assert _text_numbers.enhanced_below(with_entries("figure-5", "rows", median=89.0), 90)[-1] == REPRODUCED
    for mean, outcome in ((93.0, REPRODUCED), (300.0, NOT)):
        assert _text_numbers.spike_of_models(with_entries("figure-9", "rows", **{"mean T'": mean}), 95)[-1] == outcome
    early = with_entries("figure-2", "stops", **{"ε_spent at the end": 0.09, "ε = 0.05": "105 ± 1.2"})
    assert _text_numbers.share_of_first(early, "ACS", 100)[1::2] == ["56% on the first 105", REPRODUCED]
    late = with_entries("figure-2", "stops", **{"ε_spent at the end": 0.09, "ε = 0.05": "1,105"})
    assert _text_numbers.share_of_first(late, "ACS", 100)[-1] == NOT
    alike = with_entries("table-2", "rows", **{"± shared with LIME": 0.01, "± shared with MIM, signed": 0.01})
    assert _text_numbers.word_variance(alike, 0.3)[1::2] == ["0.10 and 0.10", REPRODUCED]
    for variance, outcome in ((1.69e-6, REPRODUCED), (1.3e-3, NOT)):
        assert (
            _text_numbers.spreads(with_entries("table-3", "rows", variance=variance), "ACS", ("1.3e-3", "1.2e-3"))[-1] == outcome
        )
    assert _text_numbers.smaller_losses(with_entries("table-3", "rows", **{"excess loss": 1.0}))[-1] == NOT
    for largest, outcome in ((0.0003, REPRODUCED), (0.003, PARTLY), (0.03, NOT)):
        assert (
            _text_numbers.losses_below(with_entries("figure-8", "rows", **{"largest excess loss": largest}), 0.004, 0.0004)[-1]
            == outcome
        )
    notes = [f"training accuracy of depth {depth}, 500 trees: {right}; answers" for depth, right in ((10, 0.84), (60, 0.97))]
    assert _text_numbers.training_accuracies(kept | {"figure-9": {"notes": notes}}, 85, 98)[-1] == REPRODUCED


def test_losses_of_kinds_of_answers_are_compared_on_both_data_sets():
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))

    def with_losses(acs, text):
        """Of adaptive, enhanced and free answers."""
        changed = {}
        for study, given in (("figure-2", acs), ("figure-3", text)):
            losses = dict(zip(("adaptive, paper", "enhanced, paper", "non-interactive by labels, paper"), given, strict=True))
            rows = [
                row | {"relative excess": losses.get(row["mechanism"], row["relative excess"])} for row in kept[study]["rows"]
            ]
            changed[study] = kept[study] | {"rows": rows}
        return kept | changed

    for given, similar, larger in (
        (((1.0, 1.2, 1.1), (0.5, 0.4, 0.6)), REPRODUCED, REPRODUCED),
        (((1.0, 1.3, 1.1), (0.5, 0.4, 0.5)), PARTLY, PARTLY),
        (((1.0, 1.3, 0.9), (0.5, 0.7, 0.5)), NOT, NOT),
    ):
        changed = with_losses(*given)
        assert _text_numbers.similar_losses(changed)[-1] == similar
        assert _text_numbers.larger_free_losses(changed)[-1] == larger
    assert _text_numbers.similar_losses(with_losses((1.0, 1.2, 1.1), (0.5, 0.4, 0.6)))[1] == "1 and 1.2; 0.5 and 0.4"


def test_models_have_standard_errors_and_what_the_accountant_was_given():
    model = {"model": "f_2", "test accuracy": 0.8, "in the paper": 0.74, "ε̂": 1.99, "a person in both sets": "(2.09, 2e-05)"}
    model |= {"noise multiplier": 1.348, "batch": 700, "steps": 1750}
    line = ["f_2", "1.99", "80.0 ± 0.7 %", "74 %", "1.348, 700, 1,750", "(2.09, 2e-05)"]
    assert _models_table.models_table({"figure-6": {"models": [model]}}, "figure-6") == [line]


def test_too_little_to_say_anything_has_no_verdict():
    assert verdict({"study": "figure-9", "rows": [{"queries about": "dense"}]}) is None
    assert set(_verdicts.RULES) == {"table-2", "table-3", *(f"figure-{i}" for i in range(1, 10)), "minorities"}


def test_the_page_has_the_tables_and_verdicts_of_the_numbers_that_were_measured():
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    for path, filled in _record.PAGES.items():
        assert filled(path.read_text(encoding="utf-8"), kept) == path.read_text(encoding="utf-8")
    page = Path("docs/reproduction.md").read_text(encoding="utf-8")
    changed = kept | {"figure-4": kept["figure-4"] | {"rows": kept["figure-4"]["rows"][:2]}}
    assert _page.fill_page(page, changed) != page


def test_a_study_says_how_many_queries_and_seeds_each_of_its_numbers_has():
    rows = [
        {"mechanism": "basic, paper", "queries": 4500, "seeds": 10},
        {"mechanism": "basic, ours", "queries": 4500, "seeds": 1},
        {"mechanism": "adaptive, ours", "queries": 4500, "seeds": 3},
        {"mechanism": "release, ε = 1 once", "queries": 300, "seeds": 2},
        {"mechanism": "the paper's plane, exact", "queries": 7, "seeds": 1},  # without noise
    ]
    found = {"study": "figure-2", "date": "2026-11-18", "queries": 1500, "rows": rows}
    said = "the printed formulas 4,500 queries, 10 seeds; ours 4,500 queries, 1 to 3 seeds; releases 300 queries, 2 seeds"
    assert _sizes.sizes_text(found) == f"`dpexplain reproduce figure-2 --data DIR`, 2026-11-18: {said}."
    same = found | {"rows": [row | {"queries": 12, "seeds": 1} for row in rows]}
    assert _sizes.sizes_text(same).endswith("2026-11-18: 12 queries, 1 seed.")
    drawn = found | {"draws": [{"explanation": "paper, ε = 0.1", "seeds": 10}, {"explanation": "ours, ε = 0.1", "seeds": 3}]}
    assert _sizes.sizes_text(drawn).endswith("the printed formulas 1,500 queries, 10 seeds; ours 1,500 queries, 3 seeds.")


def test_the_summary_has_the_seeds_that_a_study_used_not_those_that_were_asked_for():
    found = {"study": "figure-1", "queries": 1200, "seeds": 10, "rows": [{"seeds": 1}, {"seeds": 2}, {}]}
    assert _page._size(found) == "1,200, 2"
    assert _page._size(found | {"rows": [{}]}) == "1,200, 10"


def test_the_summary_has_the_queries_of_all_shards():
    found = {"study": "figure-2", "queries": 1500, "rows": [{"queries": 4500, "seeds": 10}, {"queries": 300, "seeds": 2}]}
    assert _page._size(found) == "4,500, 10"
    assert _page._size(found | {"rows": [{"reviews": 252}, {"reviews": 1000}], "seeds": 3}) == "1,000, 3"


def test_reviews_are_shown_with_their_strongest_words_as_the_paper_shows_them():
    words = {name: f"good↑ {name[-1]}↓" for name in ("MIM", *_page.EXAMPLES.values())}
    notes = [f"{name}: {said}" for label in ("+1", "-1") for name, said in ({_page.LABEL: label} | words).items()]
    header, _, first, second = _page.examples_table(notes).splitlines()
    assert header == "| label | Algorithm 1, printed noise | without noise | LIME, forest | MIM, signed |"
    assert first == "| +1 | good↑, s↓ | good↑, m↓ | good↑, t↓ | good↑, d↓ |"
    assert second.startswith("| -1 | ")


@pytest.mark.parametrize("study", [figure_2, figure_3])
def test_a_full_run_asks_as_many_free_answers_as_were_measured(study):
    """As many as paid ones: the paper's 1,500 of each shard."""
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    rows = [row for row in kept[study.STUDY.name]["rows"] if row["mechanism"].startswith("non-interactive")]
    assert {row["queries"] for row in rows} == {_streams.SHARDS * study.STUDY.full}


def test_no_number_on_the_page_is_called_unmeasured():
    """The fourth column is the paper's, which says one thing without a number."""
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    assert not [line[0] for line in _overview.overview(kept) if _overview.UNKNOWN in " ".join((*line[:3], *line[4:]))]


def test_a_page_without_the_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="put both where the table belongs"):
        _page.fill_page("# Title", {})


def test_long_verdicts_are_broken_into_short_paragraphs():
    text = _page._wrap(" ".join(["A sentence of six short words."] * 40))
    assert max(map(len, text.split("\n\n"))) <= 500
    assert max(map(len, text.splitlines())) <= 120


def opacus_models():
    """(study, a model's row) of every network that was trained by Opacus, as last measured."""
    kept = json.loads(_record.RESULTS.read_text(encoding="utf-8"))
    return [(name, row) for name, one in kept.items() for row in one.get("models", []) if row["trainer"].startswith("Opacus")]


@pytest.mark.slow
@pytest.mark.parametrize(("study", "row"), opacus_models(), ids=lambda each: each if isinstance(each, str) else each["model"])
def test_the_measured_models_spent_what_dp_accounting_finds(study, row):
    """Opacus' ε̂ from the noise, batch and steps that the model was trained with; the noise multiplier is recorded in three digits."""
    dp_accounting = pytest.importorskip("dp_accounting")
    rows = {"figure-6": 11_818, "figure-7": 35_000}[study]
    step = dp_accounting.PoissonSampledDpEvent(row["batch"] / rows, dp_accounting.GaussianDpEvent(row["noise multiplier"]))
    accountant = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)
    assert accountant.compose(step, row["steps"]).get_epsilon(1e-5) == pytest.approx(row["ε̂"], rel=0.01)
