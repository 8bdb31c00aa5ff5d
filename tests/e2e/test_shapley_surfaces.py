"""SHAP over reference records from the command line and over HTTP: a release in a file, and a model beside it."""

import json

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.demo.people import DOMAIN, people
from dpexplain.errors import ParameterError
from dpexplain.service.app import Service, create_app
from dpexplain.service.backend import open_backend
from dpexplain.service.config import Settings, load_config
from service_support import JSON, OTHER, RECORD, InProcess, release_only, run, write_config

BOX = """
import numpy as np

def answer(table):
    age = np.asarray(table["age"], dtype=float)
    return np.tanh((age - 40) / 20 + np.asarray(table["married"]).astype(float) - 0.5)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("owner")
    (place / "shapley_box.py").write_text(BOX)
    return place


@pytest.fixture(scope="module", autouse=True)
def saved_release(folder):
    rows, _ = people(1500, seed=7)
    space = {}
    exec(BOX, space)
    data = dpx.PrivateData(rows, DOMAIN, model=space["answer"])
    release = dpx.release(data, dpx.Budget(1.0, 1e-6), reference=1024)
    release.save(folder / "people.dpx")
    return release


@pytest.fixture(autouse=True)
def importable(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)


def test_one_record_from_the_command_line(folder, saved_release):
    result = run(
        "explain", folder / "people.dpx", "--record", JSON, "--method", "shapley", "--model", "shapley_box:answer", "--json"
    )
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["base"] + sum(found["values"]) == pytest.approx(found["answer"])
    np.testing.assert_allclose(found["values"], saved_release.shapley(RECORD).values, atol=1e-9)
    shown = run("explain", folder / "people.dpx", "--record", JSON, "--method", "shapley", "--model", "shapley_box:answer")
    assert "age" in shown.stdout


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json"])
def test_many_records_go_to_a_file(folder, tmp_path, ending):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(one) for one in (RECORD, OTHER)))
    out = tmp_path / f"out{ending}"
    result = run(
        "explain", folder / "people.dpx", "--rows", rows, "--method", "shapley", "--model", "shapley_box:answer", "-o", out
    )
    assert result.exit_code == 0, result.stderr
    assert "2 explanations" in result.stdout
    assert out.stat().st_size > 100


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--method", "shapley"], "--model"),
        (["--model", "shapley_box:answer"], "--method shapley"),
        (["--method", "lime"], "plane, shapley or surrogate"),
        (["--method", "shapley", "--model", "shapley_box:nothing"], "nothing"),
    ],
)
def test_mistakes_are_told_with_the_remedy(folder, words, says):
    result = run("explain", folder / "people.dpx", "--record", JSON, *words)
    assert result.exit_code == 2
    assert says in result.stderr


def test_a_stand_in_answers_from_the_command_line(folder, saved_release, tmp_path):
    words = ("explain", folder / "people.dpx", "--method", "surrogate")
    alone = json.loads(run(*words, "--record", JSON, "--json").stdout)
    expected = saved_release.surrogate()
    np.testing.assert_allclose(alone["values"], expected.shapley(RECORD).values, atol=1e-9)
    assert alone["base"] + sum(alone["values"]) == pytest.approx(alone["answer"])
    measured = json.loads(run(*words, "--record", JSON, "--model", "shapley_box:answer", "--json").stdout)
    np.testing.assert_allclose(measured["error"], expected.shapley(RECORD).error, atol=1e-9)
    assert alone["error"] != measured["error"]  # without the model, errors are what the stand-in does not explain
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(one) for one in (RECORD, OTHER)))
    done = run(*words, "--rows", rows, "-o", tmp_path / "out.csv")
    assert "2 explanations" in done.stdout


def test_a_page_with_a_stand_in_from_the_command_line(folder, saved_release, tmp_path):
    path = tmp_path / "page.html"
    assert run("publish", folder / "people.dpx", "-o", path).exit_code == 0
    assert '"surrogate"' not in path.read_text()
    words = ("publish", folder / "people.dpx", "-o", path, "--force", "--surrogate", "--model", "shapley_box:answer")
    assert run(*words).exit_code == 0
    data = json.loads(path.read_text().split('id="data">')[1].split("</script>")[0])
    assert data["surrogate"] == json.loads(json.dumps(saved_release.surrogate().payload()))
    refused = run("publish", folder / "people.dpx", "-o", path, "--force", "--model", "shapley_box:answer")
    assert refused.exit_code == 2
    assert "--surrogate" in refused.stderr


def test_a_service_with_the_model_answers_with_shap_values(folder, saved_release):
    config = load_config(
        write_config(folder, **release_only(), model={"path": "shapley_box:answer"}, service={"keys": None, "open": True})
    )
    backend = open_backend(config)
    client = InProcess(create_app(Service(backend, Settings(name="income", open=True, requests_per_minute=0), None)))
    answer = client.post("/v1/explain", json={"record": RECORD}).json()
    assert answer["contributions"]["details"]["quantity"] == "shapley"
    np.testing.assert_allclose(answer["contributions"]["values"], saved_release.shapley(RECORD).values, atol=1e-9)
    assert answer["cost"]["epsilon"] == 0
    many = client.post("/v1/models/income:explain", json={"instances": [RECORD, OTHER]}).json()["explanations"]
    assert many[0]["quantity"] == "contributions"
    assert many[0]["base_value"] + sum(many[0]["attributions"].values()) == pytest.approx(many[0]["answer"])
    assert backend.about["mechanism"] == "shapley"


def test_a_service_whose_release_has_no_reference_says_so_at_start(folder, tmp_path):
    rows, rich = people(300, seed=7)
    dpx.release(dpx.PrivateData(rows, DOMAIN, labels=2.0 * rich - 1), dpx.Budget(1.0, 1e-6)).save(tmp_path / "people.dpx")
    path = write_config(tmp_path, **release_only(), model={"path": "shapley_box:answer"}, service={"keys": None, "open": True})
    with pytest.raises(ParameterError, match="--reference"):
        open_backend(load_config(path))
