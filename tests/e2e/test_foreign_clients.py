"""Clients and linters that nobody here wrote: KServe's own client, one generated from the OpenAPI description, curl, hadolint, schemas of deploy/."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from dpexplain.service.keys import KeyFile
from service_support import RECORD, Running, write_config, write_owner_files

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("DPEXPLAIN_CLIENTS_PYTHON", ROOT / ".venv-clients/bin/python"))


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    owner = write_owner_files(tmp_path_factory.mktemp("owner"), 500)
    config = write_config(owner, mechanism={"epsilon": 0.01}, service={"requests_per_minute": 0})
    key = KeyFile(owner / "keys.json").add("analyst")
    running = Running(config)
    running.key = key
    yield running
    running.stop()


@pytest.fixture(scope="module")
def python():
    """An environment of their own: KServe pins packages that dpexplain's tests have in other versions."""
    if not PYTHON.exists():
        pytest.skip("KServe's client and a generated one are NOT tested: make clients, or name DPEXPLAIN_CLIENTS_PYTHON")
    return str(PYTHON)


def test_kserves_own_client_finds_everything_it_looks_for(service, python):
    words = [python, ROOT / "tests/clients/kserve_client.py", service.url, "income", service.key, json.dumps(RECORD)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    answer = found.pop("v1 explain")
    assert answer == found.pop("v1 explain again")
    assert answer["explanations"][0]["attributions"]
    assert found == {
        "v1 live": True,
        "v1 model ready": True,
        "v1 explain without a key": 401,
        "v1 explain another model": 404,
        "v1 predict": 405,
        "v2 live": True,
        "v2 ready": True,
        "v2 model ready": True,
        "v2 other model ready": False,
    }


def find_mistakes(python, manifest):
    words = [python, ROOT / "tests/clients/kserve_manifest.py", manifest]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_explainer_slot_is_as_the_types_of_kserve_and_kubernetes_have_it(python, tmp_path):
    text = (ROOT / "deploy/kserve-inferenceservice.yaml").read_text(encoding="utf-8")
    assert find_mistakes(python, ROOT / "deploy/kserve-inferenceservice.yaml") == []
    wrong = text.replace("minReplicas:", "minReplica:").replace("maxReplicas: 1", "maxReplicas: many")
    wrong = wrong.replace("readinessProbe:", "readynessProbe:").replace("claimName: income-owner", "claim: income-owner")
    (tmp_path / "wrong.yaml").write_text(wrong, encoding="utf-8")
    found = find_mistakes(python, tmp_path / "wrong.yaml")
    for part in ("minReplica: there is no such field", "maxReplicas: 'many' is no int", "readynessProbe", "claimName"):
        assert any(part in one for one in found), (part, found)


def run_linter(python, name, *words):
    """(exit code, output) of a linter of the clients' environment."""
    if not (tool := Path(python).with_name(name)).exists():
        pytest.skip(f"deploy/ is NOT checked by {name}: make clients")
    done = subprocess.run([tool, *words], capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout + done.stderr


def test_hadolint_finds_nothing_in_the_image(python, tmp_path):
    assert run_linter(python, "hadolint", ROOT / "deploy/Dockerfile") == (0, "")
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    (tmp_path / "Dockerfile").write_text(text.replace("WORKDIR /data", "WORKDIR data"), encoding="utf-8")
    code, found = run_linter(python, "hadolint", tmp_path / "Dockerfile")
    assert code
    assert "absolute WORKDIR" in found


def test_compose_is_as_its_specification_has_it(python, tmp_path):
    words = ("--builtin-schema", "vendor.compose-spec")
    assert run_linter(python, "check-jsonschema", *words, ROOT / "deploy/compose.yaml")[0] == 0
    text = (ROOT / "deploy/compose.yaml").read_text(encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text(text.replace("cap_drop:", "cap_dropped:"), encoding="utf-8")
    code, found = run_linter(python, "check-jsonschema", *words, tmp_path / "wrong.yaml")
    assert code
    assert "cap_dropped" in found


def test_pods_and_policies_are_as_kubernetes_has_them(python, tmp_path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing, the cluster's pods are NOT checked")
    cluster, policy = yaml.safe_load_all((ROOT / "deploy/kuberay-raycluster.yaml").read_text(encoding="utf-8"))
    groups = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, **group["template"]} for group in groups]
    (tmp_path / "right.yaml").write_text(yaml.safe_dump_all([*pods, policy]), encoding="utf-8")
    code, found = run_linter(python, "kubernetes-validate", "--strict", tmp_path / "right.yaml")
    assert code == 0, found
    pods[0]["spec"]["securityContext"]["runAsNoRoot"] = True
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump_all(pods), encoding="utf-8")
    code, found = run_linter(python, "kubernetes-validate", "--strict", tmp_path / "wrong.yaml")
    assert code
    assert "runAsNoRoot" in found


CALL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from income_client import AuthenticatedClient
from income_client.api.default import explain_v1_explain_post as explain, guarantee_v1_guarantee_get as guarantee
from income_client.models import ExplainRequest, Record
client = AuthenticatedClient(base_url=sys.argv[2], token=sys.argv[3])
answer = explain.sync(client=client, body=ExplainRequest(record=Record.from_dict(json.loads(sys.argv[4])), request_id="generated"))
refused = explain.sync_detailed(client=client, body=ExplainRequest(record=Record.from_dict({"age": 400})))
print(json.dumps({"values": answer.values, "answers": guarantee.sync(client=client).answers, "refused": int(refused.status_code)}))
"""


def test_a_client_generated_from_the_description_works(service, python, tmp_path):
    maker = Path(python).with_name("openapi-python-client")
    if not maker.exists():
        pytest.skip("a generated client is NOT tested: make clients")
    settings = tmp_path / "settings.yml"
    settings.write_text("project_name_override: income-client\npackage_name_override: income_client\npost_hooks: []\n")
    words = [maker, "generate", "--url", f"{service.url}/openapi.json", "--meta", "none", "--config", settings, "--output-path"]
    made = subprocess.run([*words, tmp_path / "income_client"], capture_output=True, text=True, timeout=120, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    assert "WARNING" not in made.stdout + made.stderr, made.stdout + made.stderr
    called = [python, "-c", CALL, tmp_path, service.url, service.key, json.dumps(RECORD)]
    done = subprocess.run(called, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["values"]) == 20
    assert found["answers"] >= 1
    assert found["refused"] == 422


def test_curl_as_the_documentation_has_it(service, tmp_path):
    """Every curl command of docs/service.md is run, with this service's address and key in place of the documented ones."""
    if shutil.which("curl") is None:
        pytest.skip("curl is missing, the documentation's calls are NOT tested")
    text = (ROOT / "docs/service.md").read_text(encoding="utf-8")
    lines = re.findall(r"^curl (?:[^'\n\\]|\\\n|'[^']*')*", text, re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        environment = os.environ | {"KEY": service.key, "URL": service.url}
        done = subprocess.run(
            ["bash", "-c", line], capture_output=True, text=True, env=environment, timeout=60, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        assert "urn:dpexplain:problem" not in done.stdout, (line, done.stdout)
        assert done.stdout
