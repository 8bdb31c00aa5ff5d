"""Rehearsals: measured on the owner's rows, marked as not private everywhere, written for the owner alone, and free."""

import json
import stat
from contextlib import contextmanager
from io import StringIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.cli import app
from dpexplain.errors import DpexplainError, ParameterError
from dpexplain.evaluation.baselines import lime as lime_module
from dpexplain.evaluation.rehearsal import rehearse as rehearsing
from dpexplain.evaluation.rehearsal.owner_files import NAMES
from dpexplain.evaluation.rehearsal.questions import square_weight
from dpexplain.evaluation.rehearsal.rehearsal_result import WARNING
from dpexplain.evaluation.rehearsal.sections import sections_of
from service_support import write_owner_files

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97),
        dpx.Numeric("hours", 1, 99),
        dpx.Categorical("work", values=["private", "public", "self"]),
        dpx.Binary("married"),
    ]
)


def table(rows=1500, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(17, 97, rows),
        "hours": rng.uniform(1, 99, rows),
        "work": rng.choice(["private", "public", "self"], rows, p=[0.6, 0.3, 0.1]),
        "married": rng.random(rows) < 0.5,
    }


def model(rows):
    encoded = DOMAIN.encode(rows)
    return 1 / (1 + np.exp(4 - 5 * encoded[:, 0] - 4 * encoded[:, 1] * encoded[:, 2]))


@pytest.fixture(scope="module")
def data():
    return dpx.PrivateData(table(), DOMAIN, model=model, output="probability")


@pytest.fixture(scope="module")
def rehearsal(data):
    return evaluation.rehearse(data, [1.0], ways=["release", "basic"], draws=1, queries=4)


def printed_text(rehearsal):
    console = Console(width=200, file=StringIO())
    console.print(rehearsal)
    return console.file.getvalue()


@pytest.mark.slow
def test_more_budget_is_nearer_to_the_exact_answer(data):
    rehearsal = evaluation.rehearse(data, [0.1, 3.0], ways=["release", "basic"], draws=2, queries=12)
    found = {(one.way, one.epsilon): one for one in rehearsal.qualities}
    assert list(found) == [("release", 0.1), ("release", 3.0), ("basic", 0.1), ("basic", 3.0)]
    for way in ("release", "basic"):
        assert 0 <= found[way, 3.0].relative_excess < found[way, 0.1].relative_excess
        assert found[way, 3.0].cosine > 0.9
    assert found["release", 3.0].top_5_stability > 0.8
    assert found["release", 0.1].coverage > 0.8
    assert found["release", 0.1].coverage_of_contributions > 0.8
    assert found["release", 0.1].lowest_coverage <= found["release", 0.1].coverage
    assert found["basic", 3.0].coverage > 0.8
    assert found["basic", 3.0].coverage_of_contributions > 0.8


def test_nothing_is_spent_and_nothing_is_remembered(data, rehearsal):
    assert data.spent.mu == 0
    assert data.spent.note == ""
    assert data.ledgers == ()


def test_exact_answers_and_rows_that_count_are_those_of_the_rows(data):
    asked = [{"age": 40, "hours": 40, "work": "self", "married": True}]
    weight = dpx.weights.Gaussian(0.5)
    found = evaluation.rehearse(data, [1.0], draws=1, records=asked, weight=weight)
    encoded = DOMAIN.encode(table()).astype(np.float32)
    alpha = weight(np.linalg.norm(encoded - DOMAIN.encode_query(asked[0]), axis=1))
    assert found.near.median == pytest.approx(alpha.sum() ** 2 / (alpha**2).sum(), rel=1e-5)
    assert found.records == 1
    assert found.qualities[0].expected is None  # plan knows nothing about other weights


@pytest.mark.parametrize(
    "weight", [dpx.weights.Stable(), dpx.weights.Window(0.7), dpx.weights.Gaussian(0.4), dpx.weights.Inverse()]
)
def test_the_square_of_a_weight_is_its_square(weight):
    d = np.linspace(0.01, 3, 50)
    assert square_weight(weight)(d) == pytest.approx(weight(d) ** 2)


def test_faithfulness_stands_beside_lime_and_shap(rehearsal):
    methods = [one.method for one in rehearsal.faithfulness]
    assert methods[0] == "exact answer"
    assert "LIME" in methods
    assert methods[-1] == "SHAP, 100 rows"
    assert rehearsal.faithfulness[-1].cosine_to_shap == pytest.approx(1)


def test_a_missing_lime_is_said(data, monkeypatch):
    def raise_missing(*_, **__):
        raise ImportError("lime")

    monkeypatch.setattr(lime_module, "import_extra", raise_missing)
    found = evaluation.rehearse(data, [1.0], draws=1, queries=2)
    assert "LIME" not in [one.method for one in found.faithfulness]
    assert "LIME is not installed" in printed_text(found)


@pytest.fixture(scope="module")
def labelled_data():
    """Labels alone, no model, and a cap far below what is rehearsed."""
    return dpx.PrivateData(table(), DOMAIN, labels=2 * model(table()) - 1, cap=dpx.Budget(0.01, 1e-6))


@pytest.mark.slow
def test_labels_alone_have_groups_and_no_faithfulness(labelled_data):
    found = evaluation.rehearse(labelled_data, [1.0], draws=1, queries=30, groups=["work", "married"])
    assert found.faithfulness == ()
    assert "needs the model" in printed_text(found)
    groups = {one.name: one for one in found.qualities[0].groups}
    assert {"work=private", "married: 1", "married: 0"} <= set(groups)
    assert not any(name.startswith("age") for name in groups)
    assert groups["married: 1"].excess == pytest.approx(groups["married: 0"].others)
    worst = [one.excess - one.others for one in found.qualities[0].groups]
    assert worst == sorted(worst, reverse=True)


@pytest.mark.slow
def test_every_section_says_that_it_is_not_private(rehearsal, tmp_path):
    sections = len(list(sections_of(rehearsal)))
    assert printed_text(rehearsal).count(WARNING) == sections
    numbers, _, page = (path.read_bytes() for path in rehearsal.save(tmp_path / "mine"))
    assert page.decode().count("<section>") == page.decode().count(WARNING) == sections + 1
    found = json.loads(numbers)
    parts = [found, *found["qualities"], *found["faithfulness"], found["rows_nearby"]]
    assert all(part["not_private"] == WARNING for part in parts)


@pytest.mark.slow
def test_the_page_needs_no_network_and_escapes_names(rehearsal, tmp_path):
    page = rehearsal.save(tmp_path / "mine")[2].read_text()
    assert "http" not in page
    assert "<script" not in page


@pytest.mark.slow
def test_files_are_for_their_owner_alone(rehearsal, tmp_path):
    folder = tmp_path / "mine"
    for path in rehearsal.save(folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / NAMES[0]).chmod(0o644)
    with pytest.raises(ParameterError, match="exists already"):
        rehearsal.save(folder)
    rehearsal.save(folder, force=True)
    assert stat.S_IMODE((folder / NAMES[0]).stat().st_mode) == 0o600


@pytest.mark.slow
def test_a_link_is_replaced_and_not_followed(rehearsal, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("public")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / NAMES[0]).symlink_to(elsewhere)
    rehearsal.save(tmp_path / "mine", force=True)
    assert elsewhere.read_text() == "public"


@pytest.mark.parametrize("force", [False, True])
def test_releases_and_ledgers_are_never_written_to(rehearsal, tmp_path, force):
    release, ledger, plain = tmp_path / "mine", tmp_path / "book", tmp_path / "file.txt"
    release.write_bytes(b"DPXREL\r\n" + bytes(40))
    ledger.write_bytes(b"SQLite format 3\0" + bytes(40))
    plain.write_text("x")
    for path, words in ((release, "is a release"), (ledger, "is a ledger"), (tmp_path / "new.dpx", "is a release")):
        with pytest.raises(ParameterError, match=words):
            rehearsal.save(path, force=force)
    with pytest.raises(ParameterError, match="Name a folder"):
        rehearsal.save(plain, force=force)
    with pytest.raises(ParameterError, match="Make it first"):
        rehearsal.save(tmp_path / "no" / "folder", force=force)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": [0.0]}, "epsilons"),
        ({"epsilons": [float("nan")]}, "epsilons"),
        ({"epsilons": "0.1"}, "epsilons"),
        ({"delta": 2.0}, "δ|delta"),
        ({"ways": ["magic"]}, "ways"),
        ({"ways": "release"}, "ways"),
        ({"queries": 0}, "queries"),
        ({"draws": 1.5}, "draws"),
        ({"plane": "flat"}, "plane"),
        ({"weight": 0.8}, "weight"),
        ({"groups": ["wages"]}, "wages"),
        ({"records": []}, "records is empty"),
        ({"records": [{"age": 40}]}, "hours"),
    ],
)
def test_bad_input_is_a_typed_error(data, options, words):
    with pytest.raises(DpexplainError, match=words):
        evaluation.rehearse(data, **({"epsilons": [1.0], "draws": 1, "queries": 6} | options))
    assert data.ledgers == ()


def test_what_cannot_be_rehearsed_names_the_remedy(labelled_data, tmp_path):
    labels = 2 * model(table(300)) - 1
    with pytest.raises(ParameterError, match="registered with model="):
        evaluation.rehearse(labelled_data, ways=["reference"])
    with pytest.raises(ParameterError, match="Register the data with model="):
        evaluation.rehearse(labelled_data, plane="anchored")
    with pytest.raises(ParameterError, match="Register the rows first"):
        evaluation.rehearse(table(300))
    pq.write_table(pa.table({**table(300), "y": labels}), tmp_path / "rows.parquet")
    streamed = dpx.PrivateData.scan(tmp_path / "rows.parquet", DOMAIN, label="y", progress=False)
    with pytest.raises(ParameterError, match="Pass records="):
        evaluation.rehearse(streamed)


def test_the_bar_moves_with_every_step(data, monkeypatch):
    steps = []

    @contextmanager
    def bar(work, count):
        steps.append(count)
        yield steps.append

    monkeypatch.setattr(rehearsing, "progress_steps", bar)
    evaluation.rehearse(data, [1.0], draws=1, queries=2)
    assert steps[0] == len(steps) - 1 == 2 + 1 + 2


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return write_owner_files(tmp_path_factory.mktemp("owner"), 1500)


def command(owner, *more):
    words = [
        "rehearse",
        owner / "people.parquet",
        "--domain",
        owner / "domain.toml",
        "--label",
        "y",
        "--draws",
        1,
        "--queries",
        12,
    ]
    return run(*words, "--epsilon", 1, *more)


@pytest.mark.slow
def test_the_command_prints_and_writes(owner, tmp_path):
    done = command(owner, "-o", tmp_path / "mine", "--group", "married")
    assert done.exit_code == 0, done.stderr
    assert "Distance to the exact answer" in done.stdout
    assert "Nothing was spent" in done.stdout
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == sorted(NAMES)


def test_the_command_prints_json(owner):
    found = json.loads(command(owner, "--json", "--weight", "gaussian:1.2").stdout)
    assert found["weight"] == "gaussian"
    assert found["not_private"] == WARNING


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("-o", "income.dpx"), "is a release"),
        (("--weight", "round"), "cannot be read"),
        (("--weight", "gaussian:-1"), "positive"),
        (("--way", "magic"), "ways must be"),
        (("--epsilon", "-1"), "positive"),
        (("--plane", "flat"), "plane"),
        (("--group", "wages"), "wages"),
    ],
)
def test_the_command_refuses_with_the_remedy(owner, more, words):
    done = command(owner, *more)
    assert done.exit_code == 2
    assert words in done.stderr
