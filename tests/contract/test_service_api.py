"""The HTTP interface, request by request, in one process: shapes, roles, refusals, and that nothing wrong ever spends."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import dpexplain as dpx
from dpexplain.errors import LedgerUnavailable
from dpexplain.ledger import open_ledger
from dpexplain.service.app import Service, create_app
from dpexplain.service.backend import LedgerBackend, ReleaseBackend, open_backend
from dpexplain.service.config import Settings, load_config
from dpexplain.service.keys import KeyFile
from service_support import OTHER, RECORD, InProcess, write_config, write_owner_files

SPEC_HEADERS = ("content-security-policy", "x-content-type-options", "x-frame-options", "referrer-policy", "cache-control")


@pytest.fixture(scope="module")
def owner(tmp_path_factory):
    return write_owner_files(tmp_path_factory.mktemp("owner"), 2000)


@pytest.fixture(scope="module")
def data(owner):
    return open_backend(load_config(write_config(owner))).data


class Api:
    """A service over fresh rows and a fresh ledger, and callers with each role."""

    def __init__(self, backend, folder, **settings):
        self.backend, self.keys = backend, KeyFile(folder / "keys.json")
        self.settings = Settings(**{"name": "income", "keys": "keys.json", "requests_per_minute": 0} | settings)
        self.service = Service(backend, self.settings, None if self.settings.open else self.keys)
        self.client = InProcess(create_app(self.service))
        self.analyst, self.owner = ({"Authorization": f"Bearer {self.keys.add(role)}"} for role in ("analyst", "owner"))

    def ask(self, record=RECORD, request_id=None, headers=None):
        body = {"record": record} | ({"request_id": request_id} if request_id else {})
        return self.client.post("/v1/explain", json=body, headers=self.analyst if headers is None else headers)

    def get(self, path, headers=None):
        return self.client.get(path, headers=self.analyst if headers is None else headers)

    @property
    def spent(self):
        return self.backend.spending().spent.epsilon


@pytest.fixture
def make(data, tmp_path):
    def build(epsilon=1.0, mechanism=None, **settings):
        account = data.account(dpx.Budget(epsilon, 1e-6))
        ledger = open_ledger(f"sqlite:///{tmp_path}/x.ledger", account)
        return Api(LedgerBackend(data, mechanism or dpx.Basic(0.3, 1e-6), ledger), tmp_path, **settings)

    return build


@pytest.fixture
def api(make):
    return make()


@pytest.fixture
def release_api(data, tmp_path):
    return Api(ReleaseBackend(dpx.release(data, dpx.Budget(1, 1e-6))), tmp_path)


def test_answers_are_compared_with_a_declared_baseline(data, tmp_path):
    ledger = open_ledger(f"sqlite:///{tmp_path}/x.ledger", data.account(dpx.Budget(1.0, 1e-6)))
    api = Api(LedgerBackend(data, dpx.Basic(0.3, 1e-6), ledger, baseline=OTHER), tmp_path)
    added = api.ask(request_id="one").json()["contributions"]
    assert added["base"] + sum(added["values"]) == pytest.approx(added["answer"])
    assert (added["average"], added["scale"]["kind"]) == ("the baseline", "class")
    same = [value for name, value in zip(added["names"], added["values"], strict=True) if RECORD[name] == OTHER[name]]
    assert same == [0.0] * 6  # where the records agree there is nothing to add
    assert [error > 0 for error in added["error"]] == [value != 0 for value in added["values"]]
    body = {"instances": [RECORD], "id": "one"}
    told = api.client.post("/v1/models/income:explain", json=body, headers=api.analyst).json()["explanations"][0]
    assert (told["quantity"], set(told["attributions"])) == ("contributions", set(RECORD))
    assert told["base_value"] + sum(told["attributions"].values()) == pytest.approx(told["answer"])


def test_answers_by_moments_have_contributions_and_bars_without_a_baseline(api):
    answer = api.ask(request_id="two").json()
    added = answer["contributions"]
    assert (added["average"], min(answer["error"]) > 0, min(added["error"]) > 0) == ("the average", True, True)
    body = {"instances": [RECORD], "id": "two"}
    told = api.client.post("/v1/models/income:explain", json=body, headers=api.analyst).json()["explanations"][0]
    assert (told["quantity"], set(told["attributions"]), set(told["error"])) == ("contributions", set(RECORD), set(RECORD))
    assert told["base_value"] + sum(told["attributions"].values()) == pytest.approx(told["answer"])


def test_without_a_baseline_contributions_of_a_descent_are_compared_with_the_middle_of_the_domain(make):
    api = make(mechanism=dpx.Basic(0.3, 1e-6, by="descent"))
    added = api.ask(request_id="two").json()["contributions"]
    assert (added["average"], added["error"]) == ("the middle of all ranges", None)
    body = {"instances": [RECORD], "id": "two"}
    told = api.client.post("/v1/models/income:explain", json=body, headers=api.analyst).json()["explanations"][0]
    assert (told["quantity"], told["average"], told["error"]) == ("contributions", added["average"], None)
    assert told["base_value"] + sum(told["attributions"].values()) == pytest.approx(told["answer"])


def test_attributions_of_the_papers_plane_are_slopes_and_say_so(make):
    api = make(mechanism=dpx.Basic(0.3, 1e-6, plane="paper", by="descent"))
    assert api.ask(request_id="two").json()["contributions"] is None
    body = {"instances": [RECORD]}
    told = api.client.post("/v1/models/income:explain", json=body, headers=api.analyst).json()["explanations"][0]
    assert (told["quantity"], told["base_value"], told["answer"]) == ("slopes", None, None)


def problem(response, status, kind):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert (body["status"], body["type"]) == (status, f"urn:dpexplain:problem:{kind}")
    assert body["title"]
    return body


def test_an_answer_is_an_explanation_and_is_paid_for(api):
    response = api.ask(request_id="one")
    assert response.status_code == 200
    answer = dpx.Explanation.from_dict(response.json())
    assert answer.names == api.backend.domain.names
    assert answer.cost.epsilon == pytest.approx(0.3)
    # these rows' total: other tests spend on them, too
    assert answer.guarantee.epsilon == pytest.approx(api.backend.data.spent.epsilon)
    assert api.spent == pytest.approx(0.3)


def test_the_same_request_id_is_free_and_equal(api):
    first, again = api.ask(request_id="one").json(), api.ask(request_id="one").json()
    assert first == again
    assert api.spent == pytest.approx(0.3)
    problem(api.ask(OTHER, request_id="one"), 409, "request-id-in-use")
    assert api.ask(request_id="two").json()["values"] != first["values"]


def test_a_spent_budget_refuses_with_what_is_left(api):
    while (response := api.ask()).status_code == 200:
        pass
    body = problem(response, 403, "budget-exhausted")
    assert body["remaining"]["epsilon"] < body["requested"]["epsilon"] or body["remaining"]["mu"] < body["requested"]["mu"]
    assert api.spent <= 1.0
    assert 'dpexplain_refusals_total{reason="budget"} 1' in api.get("/metrics").text
    assert api.get("/readyz").status_code == 200


def test_facts(api):
    api.ask()
    card, standing = api.get("/v1/domain").json(), api.get("/v1/guarantee").json()
    assert dpx.Domain.from_dict(card["domain"]) == api.backend.domain
    assert (card["name"], card["role"], card["about"]["rows"]) == ("income", "analyst", 2000)
    assert standing["spent"]["epsilon"] == pytest.approx(0.3)
    assert standing["budget"] == {"epsilon": 1.0, "delta": 1e-6}
    assert standing["curve"] == [[1, pytest.approx(0.3)]]
    assert "stops answering" in standing["promise"]
    assert standing["people"] is None  # no model card was declared


def test_a_models_card_says_what_holds_for_those_who_trained_it(tmp_path):
    folder = write_owner_files(tmp_path, 300)
    dpx.ModelCard(2.0, 1e-5, trainer="Opacus 1.6.0").save(folder / "card.json")
    backend = open_backend(load_config(write_config(folder, data={"model_card": "card.json"})))
    released = ReleaseBackend(dpx.release(backend.data, dpx.Budget(0.5, 1e-6)))
    for carded, spent in ((backend, 0.8), (released, 0.5)):
        api = Api(carded, folder)
        api.ask()
        standing = api.get("/v1/guarantee").json()
        assert (standing["people"]["training"]["epsilon"], standing["people"]["training"]["delta"]) == (2.0, 1e-5)
        assert 2.0 < standing["people"]["both"]["epsilon"] <= 2.0 + spent + 1e-6
        assert standing["promise"].endswith("as its model card says.")


def test_a_long_history_is_drawn_with_few_points(make):
    api = make(epsilon=8.0, mechanism=dpx.Basic(0.05, 1e-6))
    for number in range(65):
        assert api.ask(request_id=f"q{number}").status_code == 200
    curve = api.get("/v1/guarantee").json()["curve"]
    assert len(curve) <= 61
    assert curve[-1] == [65, pytest.approx(api.spent)]
    assert curve == sorted(curve)
    assert len(api.get("/v1/history?limit=500&after=40", api.owner).json()["answers"]) == 25


def test_kserve_v1(api):
    response = api.client.post(
        "/v1/models/income:explain", json={"instances": [RECORD, OTHER], "id": "batch"}, headers=api.analyst
    )
    first, second = response.json()["explanations"]
    assert set(first["attributions"]) == set(RECORD)
    assert set(first["slopes"]) == set(api.backend.domain.names)
    assert second["privacy"]["guarantee"]["epsilon"] > first["privacy"]["guarantee"]["epsilon"]
    again = api.client.post("/v1/models/income:explain", json={"instances": [RECORD, OTHER], "id": "batch"}, headers=api.analyst)
    assert [one["attributions"] for one in again.json()["explanations"]] == [first["attributions"], second["attributions"]]
    assert [api.get(path, {}).status_code for path in ("/v2/health/live", "/v2/health/ready", "/healthz", "/readyz")] == [200] * 4
    problem(api.client.post("/v1/models/other:explain", json={"instances": [RECORD]}, headers=api.analyst), 404, "not-found")


@pytest.mark.parametrize("change", [{"age": 1e9}, {"zz": 1}])
def test_no_remedy_is_an_argument_of_pythons(api, change):
    detail = api.ask(RECORD | change).json()["detail"]
    assert "clip" not in detail
    assert "extra=" not in detail
    assert detail.endswith(("within them", "Remove it"))


def test_a_batch_is_checked_before_it_is_paid_and_paid_answers_are_not_withheld(api):
    bad = api.client.post("/v1/models/income:explain", json={"instances": [RECORD, RECORD | {"age": 999}]}, headers=api.analyst)
    problem(bad, 422, "record-not-in-domain")
    assert api.spent == 0
    many = api.client.post("/v1/models/income:explain", json={"instances": [RECORD] * 12}, headers=api.analyst)
    assert len(problem(many, 403, "budget-exhausted")["explanations"]) == 9
    problem(
        api.client.post("/v1/models/income:explain", json={"instances": [RECORD] * 65}, headers=api.analyst), 413, "too-large"
    )


def test_the_instances_of_a_call_share_a_read_of_the_rows_and_are_counted_each(make, monkeypatch):
    api = make(mechanism=dpx.Basic(0.3, 1e-6, by="descent"))
    reads, rows = [], api.backend.data._rows
    monkeypatch.setattr(rows, "local_many", lambda queries: reads.append(len(queries)) or type(rows).local_many(rows, queries))
    call = {"json": {"instances": [RECORD, OTHER, RECORD], "id": "batch"}, "headers": api.analyst}
    first = api.client.post("/v1/models/income:explain", **call).json()["explanations"]
    spent = api.spent
    assert reads == [3]
    assert [one["privacy"]["request_id"] for one in first] == ["batch/0", "batch/1", "batch/2"]
    again = api.client.post("/v1/models/income:explain", **call).json()["explanations"]
    assert [one["attributions"] for one in again] == [one["attributions"] for one in first]
    alone = api.ask(OTHER, request_id="batch/1").json()
    half = (alone["scale"]["high"] - alone["scale"]["low"]) / 2  # attributions are in the answer's own units
    assert list(first[1]["slopes"].values()) == pytest.approx([half * value for value in alone["values"]])
    assert (reads, api.spent) == ([3], spent)
    problem(
        api.client.post("/v1/models/income:explain", json={"instances": [OTHER], "id": "batch"}, headers=api.analyst),
        409,
        "request-id-in-use",
    )
    text = api.get("/metrics").text
    assert "dpexplain_explain_seconds_count 7" in text
    assert "dpexplain_answers 3" in text


def test_who_may_do_what(api):
    for path in ("/v1/domain", "/v1/guarantee", "/v1/history", "/v1/ledger", "/metrics"):
        problem(api.get(path, {}), 401, "unauthorised")
    for path in ("/v1/history", "/v1/ledger"):
        problem(api.get(path), 403, "forbidden")
        assert api.get(path, api.owner).status_code == 200
    for wrong in ({}, {"Authorization": "Bearer dpx_x"}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}):
        problem(api.ask(headers=wrong), 401, "unauthorised")
    assert api.spent == 0


def test_owners_see_the_archive_and_the_ledger(api):
    answer = api.ask(request_id="one").json()
    (kept,) = api.get("/v1/history", api.owner).json()["answers"]
    assert (kept["request_id"], kept["answer"]["values"]) == ("one", answer["values"])
    assert [line["kind"] for line in api.get("/v1/ledger", api.owner).json()["entries"]] == ["open", "reserve", "settle"]
    assert api.get("/v1/ledger?after=2", api.owner).json()["entries"][0]["running_epsilon"] == pytest.approx(0.3)


def test_an_open_service_needs_no_key_and_knows_no_owners(make):
    api = make(keys=None, open=True)
    assert api.ask(headers={}).status_code == 200
    problem(api.get("/v1/history", {}), 403, "forbidden")
    assert make(open_metrics=True).get("/metrics", {}).status_code == 200


def test_wrong_keys_and_many_requests_are_slowed_down(make):
    api = make(requests_per_minute=12)
    statuses = [api.get("/v1/domain").status_code for _ in range(4)]
    assert statuses == [200, 200, 429, 429]
    statuses = [api.get("/v1/domain", {"Authorization": f"Bearer dpx_{i}"}).status_code for i in range(12)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert "retry-after" in api.get("/v1/domain").headers


BAD_BODIES = {
    "empty": b"",
    "not json": b"{",
    "deep": b"[" * 60_000,
    "deep objects": b'{"record":' * 5_000 + b"1" + b"}" * 5_000,
    "list": b"[]",
    "no record": b"{}",
    "null": b'{"record": null}',
    "text record": b'{"record": "age"}',
    "list record": b'{"record": [1, 2]}',
    "extra": b'{"record": {}, "seed": 1}',
    "huge number": b'{"record": {"age": ' + b"9" * 5_000 + b"}}",
    "infinite": b'{"record": {"age": 1e999}}',
    "nan": json.dumps({"record": RECORD}).replace("46", "NaN").encode(),
    "surrogate": json.dumps({"record": RECORD | {"work": "\ud800"}}).encode(),
    "surrogate key": json.dumps({"record": RECORD | {"\ud800": 1}}).encode(),
    "surrogate id": json.dumps({"record": RECORD, "request_id": "\ud800"}).encode(),
    "nul id": json.dumps({"record": RECORD, "request_id": "a\x00b"}).encode(),
    "long id": json.dumps({"record": RECORD, "request_id": "a" * 201}).encode(),
    "number id": json.dumps({"record": RECORD, "request_id": 7}).encode(),
    "bad utf-8": b'{"record": {"age": "\xff\xfe"}}',
    "utf-16": json.dumps({"record": {"age": 1}}).encode("utf-16"),
    "unicode bomb": json.dumps(
        {"record": RECORD | {"work": "a" + "\u0300" * 9_000 + "\u202e" + "\U0001f468\u200d" * 200}}, ensure_ascii=False
    ).encode(),
    "script": json.dumps({"record": RECORD | {"work": "<script>alert(1)</script>"}}).encode(),
    "wrong type": json.dumps({"record": RECORD | {"age": {"$gt": 0}}}).encode(),
    "boolean age": json.dumps({"record": RECORD | {"age": True}}).encode(),
    "list value": json.dumps({"record": RECORD | {"work": ["private"]}}).encode(),
    "missing": json.dumps({"record": {"age": 40}}).encode(),
    "outside": json.dumps({"record": RECORD | {"age": 98}}).encode(),
    "oversized": b'{"record": {"a": "' + b"x" * 70_000 + b'"}}',
}


@pytest.mark.parametrize("body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_bad_requests_get_4xx_and_spend_nothing(api, body):
    for path in ("/v1/explain", "/v1/models/income:explain"):
        response = api.client.post(path, content=body, headers=api.analyst | {"Content-Type": "application/json"})
        assert 400 <= response.status_code < 500, response.text
        assert response.headers["content-type"] == "application/problem+json"
        assert len(response.content) < 5_000
        assert "Traceback" not in response.text
    assert api.spent == 0
    assert api.backend.spending().answers == 0


def test_a_body_without_a_length_is_limited_too(api):
    async def endless():
        for _ in range(100):
            yield b" " * 1_000

    response = api.client.post("/v1/explain", content=endless(), headers=api.analyst | {"Content-Type": "application/json"})
    problem(response, 413, "too-large")


@pytest.mark.parametrize("length", ["-1", "1e3", "99999999999999999999"])
def test_strange_lengths_are_refused(api, length):
    response = api.client.post("/v1/explain", content=b"{}", headers=api.analyst | {"Content-Length": length})
    assert response.status_code in (400, 413)


def test_other_methods_and_addresses_are_problems_too(api):
    problem(api.client.delete("/v1/explain", headers=api.analyst), 405, "method-not-allowed")
    problem(api.get("/v1/nothing"), 404, "not-found")
    problem(api.get("/v1/history?limit=0", api.owner), 422, "invalid-request")
    problem(api.get("/docs"), 404, "not-found")


def test_of_a_name_that_is_there_twice_the_last_counts(api):
    text = json.dumps({"record": RECORD, "request_id": "twice"})
    twice = text.replace('"age": 46', '"age": 22, "age": 46').replace('{"record"', '{"request_id": "other", "record"')
    headers = api.analyst | {"Content-Type": "application/json"}
    answers = [api.client.post("/v1/explain", content=one.encode(), headers=headers).json() for one in (text, twice)]
    assert answers[0]["values"] == answers[1]["values"]


def test_an_address_with_a_slash_too_many_is_not_redirected(api):
    """The address of a redirection would have no TLS where a proxy adds it, and the key would be sent to it."""
    problem(
        api.client.post("/v1/explain/", json={"record": RECORD}, headers=api.analyst, follow_redirects=False), 404, "not-found"
    )


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz", "/v1/models", "/v1/domain", "/metrics"])
def test_head_is_answered_as_get_without_a_body(api, path):
    full, bare = (api.client.request(method, path, headers=api.analyst) for method in ("GET", "HEAD"))
    assert (bare.status_code, bare.content) == (200, b"")
    assert bare.headers["content-type"] == full.headers["content-type"]
    problem(api.client.delete(path, headers=api.analyst), 405, "method-not-allowed")
    assert api.client.request("HEAD", "/v1/explain", headers=api.analyst).status_code == 405


def test_headers_and_no_cross_origin(api):
    for path in ("/", "/v1/domain", "/healthz", "/v1/nothing"):
        response = api.client.get(path, headers=api.analyst | {"Origin": "https://elsewhere.example"})
        assert all(name in response.headers for name in SPEC_HEADERS), path
        assert not any(name.startswith("access-control") for name in response.headers)
    policy = api.client.get("/", headers={"Accept": "text/html"}).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (
        api.client.options("/v1/explain", headers={"Origin": "https://x", "Access-Control-Request-Method": "POST"}).status_code
        == 405
    )


def test_the_log_has_no_records_unless_asked(make, caplog):
    for allowed in (False, True):
        caplog.clear()
        with caplog.at_level("INFO", "dpexplain.service"):
            make(log_records=allowed).ask(RECORD | {"trade": "science"})
        line = json.loads(caplog.messages[-1])
        assert (line["path"], line["status"], line["epsilon"]) == ("/v1/explain", 200, pytest.approx(0.3))
        assert ("science" in caplog.messages[-1]) is allowed
        assert "Bearer" not in caplog.text


def test_a_lost_ledger_is_a_503_that_says_no_path_and_releases_nothing(api, monkeypatch, caplog):
    def raise_unavailable(*_):
        raise LedgerUnavailable("the ledger /secret/place cannot be opened")

    monkeypatch.setattr(type(api.backend.ledger), "reserve_many", raise_unavailable)
    monkeypatch.setattr(type(api.backend.ledger), "head", raise_unavailable)
    with caplog.at_level("INFO", "dpexplain.service"):
        assert "secret" not in api.ask().text
    assert json.loads(caplog.messages[-1])["why"] == "the ledger /secret/place cannot be opened"  # in the owner's log
    problem(api.ask(), 503, "ledger-unavailable")
    problem(api.get("/readyz"), 503, "ledger-unavailable")
    assert api.get("/healthz").status_code == 200


def test_rows_in_files_are_served_until_the_files_change(owner, tmp_path):
    (tmp_path / "rows").mkdir()
    rows = pq.read_table(owner / "people.parquet")
    for part in range(2):
        pq.write_table(rows.slice(1000 * part, 1000), tmp_path / "rows" / f"{part}.parquet")
    (tmp_path / "domain.toml").write_bytes((owner / "domain.toml").read_bytes())
    config = load_config(write_config(tmp_path, data={"file": "rows/*.parquet", "stream": True}))
    assert config.streams
    api = Api(open_backend(config), tmp_path)
    assert api.ask().status_code == 200
    assert api.get("/readyz").status_code == 200
    spent = api.spent
    (tmp_path / "rows" / "1.parquet").unlink()
    assert "rows/" not in problem(api.ask(), 503, "rows-unavailable")["detail"]
    problem(api.get("/readyz"), 503, "rows-unavailable")
    assert api.spent == spent


def test_an_unexpected_error_is_a_500_that_says_nothing(api, monkeypatch, caplog):
    def fails(*_, **__):
        raise RuntimeError("row 17: Alice, 43")

    monkeypatch.setattr(type(api.backend.explainer), "explain_each", fails)
    with caplog.at_level("INFO", "dpexplain.service"):
        body = problem(api.ask(), 500, "internal-error")
    assert "Alice" not in json.dumps(body) + caplog.text
    assert "RuntimeError at" in caplog.messages[-1]


def test_a_release_answers_for_nothing(release_api):
    first, again = release_api.ask(request_id="a").json(), release_api.ask(request_id="a").json()
    assert first == again
    assert first["cost"]["epsilon"] == 0
    assert np.allclose(first["values"], release_api.backend.release.explain(RECORD).values)
    standing = release_api.get("/v1/guarantee").json()
    assert standing["remaining"] is None
    assert "paid for once" in standing["promise"]
    assert release_api.get("/v1/history", release_api.owner).json() == {"answers": []}
    assert release_api.get("/v1/ledger", release_api.owner).json() == {"entries": []}
    assert "dpexplain_spent_epsilon" in release_api.get("/metrics").text


def test_adaptive_serves_from_history(make):
    api = make(mechanism=dpx.Adaptive(0.1, 1e-7))
    answers = [api.ask(RECORD | {"age": 30 + i}).json() for i in range(3)]
    costs = [one["cost"]["epsilon"] for one in answers]
    assert 0 < costs[0] <= 0.1
    assert costs[1:] == [0, 0]  # the first answer's sums serve all others
    assert all(min(one["error"]) > 0 and min(one["contributions"]["error"]) > 0 for one in answers)
    assert "sums" not in answers[0]
    assert api.ask(RECORD | {"age": 30}).json()["values"] == pytest.approx(answers[0]["values"], rel=1e-6, abs=1e-9)
    body = {"instances": [RECORD | {"age": 31}, OTHER]}
    told = api.client.post("/v1/models/income:explain", json=body, headers=api.analyst).json()["explanations"]
    assert [one["quantity"] for one in told] == ["contributions"] * 2
    assert api.spent < 0.1


def test_adaptive_descents_serve_from_history(make):
    api = make(mechanism=dpx.Adaptive(0.1, 1e-7, by="descent"))
    costs = [api.ask(RECORD | {"age": 30 + i}).json()["cost"]["epsilon"] for i in range(3)]
    assert all(0 < cost <= 0.11 for cost in costs)
    assert api.ask(RECORD | {"age": 30}).json()["cost"]["epsilon"] == 0  # the same point again is the same answer


def test_free_answers_are_served_when_the_budget_is_gone(make):
    api = make(epsilon=0.3, mechanism=dpx.Adaptive(0.3, 1e-6))
    assert [api.ask(RECORD | {"age": 30 + i}).status_code for i in range(3)] == [200] * 3
    assert api.get("/v1/guarantee").json()["remaining"]["epsilon"] < 1e-3


# the second is KServe's V1; its V2 has no explain
ID_SHAPES = [
    ("/v1/explain", {"record": RECORD}, "request_id", lambda body: body["values"]),
    ("/v1/models/income:explain", {"instances": [RECORD, OTHER]}, "id", lambda body: [o["slopes"] for o in body["explanations"]]),
]


@pytest.mark.parametrize(("path", "question", "field", "values"), ID_SHAPES, ids=["own", "KServe V1"])
def test_the_longest_id_is_as_good_as_any(make, path, question, field, values):
    api = make(mechanism=dpx.Basic(0.1, 1e-6))

    def post(length):
        return api.client.post(path, json=question | {field: "i" * length}, headers=api.analyst)

    for length in (199, 200):
        first = post(length)
        assert first.status_code == 200, first.text
        spent = api.spent
        assert values(post(length).json()) == values(first.json())
        assert api.spent == spent
    problem(post(201), 422, "invalid-request")
    assert api.spent == spent


def test_kserves_other_addresses_need_no_key(api):
    assert api.get("/v1/models", {}).json() == {"models": ["income"]}
    for path in ("/v1/models/income", "/v2/models/income/ready"):
        assert api.get(path, {}).json() == {"name": "income", "ready": True}
    for path in ("/v1/models/other", "/v2/models/other/ready"):
        problem(api.get(path, {}), 404, "not-found")
    assert api.get("/v2", {}).json()["name"] == "dpexplain"


def test_the_front_door_answers_browsers_with_a_page_and_others_with_json(api):
    page = api.get("/", {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    other = api.get("/", {"Accept": "*/*"})
    assert other.json() == {"status": "alive"}
    assert page.headers["vary"] == other.headers["vary"] == "Accept"


def test_the_description_names_problems_as_they_are_sent_and_records_as_they_are(api, release_api):
    described = api.get("/openapi.json", {}).json()
    for path in described["paths"].values():
        for operation in path.values():
            for status, response in operation["responses"].items():
                assert status[0] == "2" or set(response["content"]) == {"application/problem+json"}
    record = described["components"]["schemas"]["Record"]
    assert record["type"] == "object"
    assert set(record["properties"]) == set(RECORD)
    assert described["components"]["schemas"]["ExplainRequest"]["properties"]["record"] == {"$ref": "#/components/schemas/Record"}
    problem(api.ask("a text"), 422, "record-not-in-domain")


def test_a_text_is_described_as_a_text():
    from dpexplain.service.openapi import record_schema

    assert record_schema(dpx.TextDomain(["good", "bad"]))["type"] == "string"


@pytest.mark.parametrize("path", ["/v1/explain", "/v1/models/income:explain"])
def test_a_body_is_not_read_before_the_key(api, path):
    """Whoever has no key cannot make the service parse anything, nor find out what it would accept."""
    response = api.client.post(path, content=b"[" * 60_000, headers={"Content-Type": "application/json"})
    problem(response, 401, "unauthorised")


@pytest.mark.parametrize("damage", ["gone", "half", "writable by everybody"])
def test_keys_that_cannot_be_read_admit_nobody_and_health_says_so(api, caplog, damage):
    path, whole = api.keys.path, api.keys.path.read_text()
    if damage == "gone":
        path.unlink()
    elif damage == "half":
        path.write_text(whole[: len(whole) // 2])
    else:
        path.chmod(0o666)
    with caplog.at_level("INFO", "dpexplain.service"):
        problem(api.ask(), 401, "unauthorised")
        problem(api.get("/readyz"), 503, "keys-unreadable")
    assert all("keys.json" in json.loads(line)["why"] for line in caplog.messages)
    assert api.get("/healthz").status_code == 200
    path.write_text(whole)
    path.chmod(0o600)
    assert api.get("/readyz").status_code == 200
    assert api.ask().status_code == 200


def test_a_scrape_reads_the_end_of_the_ledger_alone(api, monkeypatch):
    """However many answers there are: Prometheus asks every few seconds."""
    for number in range(3):
        assert api.ask(request_id=f"q{number}").status_code == 200
    monkeypatch.setattr(type(api.backend.ledger), "settled", None)
    monkeypatch.setattr(type(api.backend.ledger), "totals", None)
    assert "dpexplain_answers 3" in api.get("/metrics").text


def test_metrics_are_what_promtool_accepts(api, tmp_path):
    """Every family has help, type and samples under its own name; `promtool check metrics` agrees where it is installed."""
    import shutil
    import subprocess

    api.ask()
    text = api.get("/metrics").text
    families = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    helped = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]
    assert families == helped
    assert len(set(families)) == len(families)
    for line in text.splitlines():
        name, value = line.split("{")[0].split()[0], line.split()[-1]
        assert line.startswith("#") or any(name.startswith(family) for family in families)
        assert line.startswith("#") or float(value) >= 0
    for family in families:
        assert ("counter" in text.split(f"# TYPE {family} ")[1].split()[0]) == family.endswith("_total")
    if (promtool := shutil.which("promtool")) is not None:
        checked = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        assert checked.returncode == 0, checked.stderr
