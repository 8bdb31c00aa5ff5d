"""What deploy/ holds, checked as far as it can be without an engine or a cluster."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

import dpexplain as dpx
from dpexplain.cli import app
from dpexplain.privacy.relation import Neighbours
from dpexplain.service.backend import SpendingSummary
from dpexplain.service.prometheus_metrics import Metrics

yaml = pytest.importorskip("yaml", reason="PyYAML is missing, the deployment's files are NOT checked")
DEPLOY = Path(__file__).parents[2] / "deploy"


def read(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def metrics():
    """Every name that the service's metrics have."""
    spent = dpx.Guarantee(0.1, 1e-6, Neighbours())
    text = Metrics().text(SpendingSummary(spent, spent, dpx.Budget(1, 1e-6), 3))
    return {line.split("{")[0].split()[0] for line in text.splitlines() if not line.startswith("#")}


def test_alerts_and_the_board_name_metrics_that_exist(metrics):
    rules = [rule for group in yaml.safe_load(read("prometheus-alerts.yml"))["groups"] for rule in group["rules"]]
    board = json.loads(read("grafana-dashboard.json"))
    asked = [rule["expr"] for rule in rules] + [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = set(re.findall(r"dpexplain_\w+", " ".join(asked)))
    assert named <= metrics
    assert {"dpexplain_spent_epsilon", "dpexplain_refusals_total", "dpexplain_explain_seconds_bucket"} <= named
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] in ("warning", "critical") for rule in rules)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    if (promtool := shutil.which("promtool")) is not None:
        subprocess.run([promtool, "check", "rules", DEPLOY / "prometheus-alerts.yml"], check=True, capture_output=True)


def test_the_documented_line_counts_the_answers_of_each_key(tmp_path):
    """The first line that a service writes is no JSON."""
    if shutil.which("jq") is None:
        pytest.skip("jq is missing, the documentation's line is NOT tested")
    text = (DEPLOY.parent / "docs/operations.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^jq '?(?:.|\n)*?serve\.log$", text, re.MULTILINE)
    facts = [{"key": "a", "epsilon": 0.1}, {"key": "b", "epsilon": 0.1}, {"key": "a", "epsilon": 0.1}, {"path": "/readyz"}]
    log = ["Serving income at http://127.0.0.1:8000 with 1 worker(s).", *map(json.dumps, facts)]
    (tmp_path / "serve.log").write_text("\n".join(log), encoding="utf-8")
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path, timeout=30, check=True)
    assert done.stdout.splitlines() == ["a 2 answers, each at ε=0.1", "b 1 answers, each at ε=0.1"]


def test_the_image_is_pinned_unprivileged_and_starts_what_there_is():
    lines = [line for line in read("Dockerfile").replace("\\\n", " ").splitlines() if line and not line.startswith("#")]
    words = [line.split(None, 1) for line in lines]
    bases = [rest for word, rest in words if word == "ARG" and rest.startswith("BASE=")]
    assert bases
    assert all(re.search(r":[\w.-]*\d", base) and "latest" not in base for base in bases)
    assert [rest for word, rest in words if word == "USER"] == ["10001"]
    assert not any(word == "ADD" or "sudo" in rest or "chmod 777" in rest for word, rest in words)
    (entry,) = [json.loads(rest) for word, rest in words if word == "ENTRYPOINT"]
    (command,) = [json.loads(rest) for word, rest in words if word == "CMD"]
    assert entry == ["dpexplain"]
    for copied in [rest for word, rest in words if word == "COPY" and not rest.startswith("--from")]:
        assert all((DEPLOY.parent / name).exists() for name in copied.split()[:-1]), copied
    accepts(command)


def accepts(words):
    """The command line knows these words: without its file it complains about the file and about nothing else."""
    from typer.testing import CliRunner

    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "there is no file" in result.stderr, result.stderr


def test_compose_names_what_it_uses():
    compose = yaml.safe_load(read("compose.yaml"))
    assert set(compose) == {"services", "secrets", "volumes"}
    for name, service in compose["services"].items():
        known = {"build", "image", "depends_on", "environment", "secrets", "volumes", "ports", "read_only", "tmpfs", "cap_drop"}
        assert set(service) <= known | {"security_opt", "stop_grace_period", "restart", "healthcheck"}, name
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        assert set(service.get("depends_on", {})) <= set(compose["services"])
        assert ("build" in service) != ("image" in service)
        assert not any(str(port).startswith(("0.0.0.0", "80:")) for port in service.get("ports", ()))


def test_the_unit_is_one_that_systemd_reads(tmp_path):
    unit = read("dpexplain.service")
    (start,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    accepts(shlex.split(start)[1:])
    if (analyze := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is missing, the unit is NOT verified")
    (tmp_path / "dpexplain.service").write_text(
        unit.replace(shlex.split(start)[0], "/bin/true").replace("User=dpexplain", "User=root")
    )
    found = subprocess.run([analyze, "verify", tmp_path / "dpexplain.service"], capture_output=True, text=True, check=False)
    assert not [line for line in found.stderr.splitlines() if "dpexplain.service" in line], found.stderr


def test_the_explainer_slot_asks_for_addresses_that_exist():
    slot = yaml.safe_load(read("kserve-inferenceservice.yaml"))
    assert (slot["apiVersion"], slot["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    (container,) = slot["spec"]["explainer"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/v2/health/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/v2/health/live"
    assert container["securityContext"]["runAsUser"] == 10001
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in slot["spec"]["explainer"]["volumes"]}
    accepts([*container["args"][:1], "missing.toml", *container["args"][2:]])


def test_the_cluster_of_rows_is_one_head_without_rows_and_workers_behind_a_policy():
    rows, policy = yaml.safe_load_all(read("kuberay-raycluster.yaml"))
    assert (rows["apiVersion"], rows["kind"]) == ("ray.io/v1", "RayCluster")
    spec, pins = rows["spec"], (DEPLOY.parent / "constraints.txt").read_text(encoding="utf-8")
    assert f"ray=={spec['rayVersion']}\n" in pins
    assert set(spec) == {"rayVersion", "enableInTreeAutoscaling", "headGroupSpec", "workerGroupSpecs"}
    assert set(spec["headGroupSpec"]) == {"serviceType", "rayStartParams", "template"}
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    (group,) = spec["workerGroupSpecs"]
    assert set(group) == {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
    assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for name, part in (("ray-head", spec["headGroupSpec"]), ("ray-worker", group)):
        assert all(isinstance(value, str) for value in part["rayStartParams"].values())  # KubeRay takes nothing else
        pod = part["template"]["spec"]
        (container,) = pod["containers"]
        assert container["name"] == name
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["resources"]["requests"] == container["resources"]["limits"]  # no worker is evicted with its rows
        environment = {one["name"]: one for one in container["env"]}
        assert environment["RAY_AUTH_MODE"]["value"] == "token"
        assert set(environment["RAY_AUTH_TOKEN"]["valueFrom"]) == {"secretKeyRef"}
        assert re.search(r":\d", container["image"])
    assert int(group["rayStartParams"]["num-cpus"]) == int(
        group["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"]
    )
    assert (policy["apiVersion"], policy["kind"]) == ("networking.k8s.io/v1", "NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"] == {"ray.io/cluster": rows["metadata"]["name"]}
    assert policy["spec"]["policyTypes"] == ["Ingress"]


def test_promtool_reads_the_metrics():
    if (promtool := shutil.which("promtool")) is None:
        pytest.skip("promtool (Debian's prometheus) is missing, /metrics is NOT checked by it")
    spent = dpx.Guarantee(0.1, 1e-6, Neighbours())
    metrics = Metrics()
    metrics.count_answer(0.02), metrics.count_refusal("budget"), metrics.count_response(200)
    text = metrics.text(SpendingSummary(spent, spent, dpx.Budget(1, 1e-6), 3))
    found = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")  # neither errors nor advice
