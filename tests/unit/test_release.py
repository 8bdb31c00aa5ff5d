"""Pay once, explain forever: paying, answering, the file, and the corners of the data it must survive."""

import json
import struct
import sys
import zlib
from hashlib import sha256

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain import evaluation
from dpexplain.errors import InputError, ParameterError, QueryError, ReleaseCorrupt
from dpexplain.estimation import calibrate
from dpexplain.ledger import MemoryLedger
from dpexplain.mechanisms.moments_plan import SketchPlan
from dpexplain.noise.seeded import SeededNoise
from dpexplain.release import file as container
from release_support import dense_points

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 0, 100),
        dpx.Categorical("work", values=["a", "b", "c"]),
        dpx.Binary("married"),
        dpx.Ordinal("school", levels=["low", "middle", "high"]),
    ]
)
RECORD = {"age": 40, "work": "a", "married": True, "school": "high"}
BUDGET = dpx.Budget(1.0, 1e-6)


def people(m=20_000, seed=0, unknown=0.0):
    rng = np.random.default_rng(seed)
    work = np.where(rng.random(m) < unknown, "?", rng.choice(["a", "b", "c"], m, p=[0.6, 0.3, 0.1]))
    rows = {
        "age": 100 * rng.beta(2, 3, m),
        "work": work,
        "married": rng.random(m) < 0.4,
        "school": rng.choice(["low", "middle", "high"], m),
    }
    score = (rows["age"] - 40) / 30 + (work == "a") - 0.8 * rows["married"] + 0.5 * (rows["school"] == "high")
    return rows, np.where(score + 0.3 * rng.standard_normal(m) > 0.4, 1.0, -1.0)


def private(**keywords):
    rows, labels = people(**keywords)
    return dpx.PrivateData(rows, DOMAIN, labels=labels)


@pytest.fixture(scope="module", autouse=True)
def few_rehearsals():
    """How good error bars are is tested in statistical/test_release_coverage.py; here they only have to be there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "replicates", lambda _: 2)
        yield


@pytest.fixture(scope="module")
def data():
    return private()


@pytest.fixture(scope="module")
def release(data):
    return dpx.release(data, BUDGET, noise=SeededNoise(1), fingerprint="people, spring")


@pytest.fixture(scope="module")
def saved_file(release, tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "people.dpx"
    release.save(path)
    return path


def records(count=50, seed=3):
    rows, _ = people(count, seed)
    return [dict(zip(rows, values, strict=True)) for values in zip(*(list(column) for column in rows.values()), strict=True)]


@pytest.mark.parametrize("plane", ["fitted", "paper"])
def test_explanations_are_close_to_the_optimum(data, release, plane):
    answers = [release.explain(record, plane=plane).values for record in records(20)]
    scores = [evaluation.score(one, data, record, plane=plane) for one, record in zip(answers, records(20), strict=True)]
    assert np.mean([score.relative_excess for score in scores]) < 0.01
    assert np.mean([score.cosine for score in scores]) > 0.99


def test_an_explanation_is_free_and_carries_the_release_guarantee(release):
    explanation = release.explain(RECORD)
    assert explanation.cost.mu == explanation.cost.epsilon == 0
    assert explanation.guarantee is release.guarantee
    assert "(ε=1, δ=1e-06)-differential privacy" in str(release.guarantee)
    assert "came from a seed" in str(release.guarantee)
    assert release.guarantee.mu <= BUDGET.mu
    assert explanation.names == release.names == DOMAIN.names
    assert explanation.error.shape == explanation.values.shape
    assert (explanation.error > 0).all()
    assert explanation.details["fingerprint"] == "people, spring"
    assert explanation.plane == release.plane == "fitted"
    json.loads(explanation.to_json())


def test_secure_noise_is_the_default_and_says_nothing_of_seeds(data):
    made = dpx.release(data, BUDGET)
    assert "seed" not in made.guarantee.note
    assert (made.explain(RECORD).values != dpx.release(data, BUDGET).explain(RECORD).values).any()


def test_many_are_the_same_as_one_by_one(release):
    asked = records(150)
    many = release.explain_many(asked)
    assert len(many) == 150
    for i in (0, 63, 64, 149, -1):
        one = release.explain(asked[i])
        assert many[i].values == pytest.approx(one.values, rel=0, abs=1e-12)
        assert many[i].error == pytest.approx(one.error, rel=1e-9)
        assert (many[i].point == one.point).all()
    assert len(many[3:5]) == 2
    assert (many[3:5][0].values == many[3].values).all()
    assert len(release.explain_many([])) == 0
    assert "150 explanations" in repr(many)


@pytest.mark.parametrize(
    "record", [{**RECORD, "age": 140}, {**RECORD, "work": "?"}, {"age": 3}, {**RECORD, "x": 1}, None, [1, 2]]
)
def test_records_outside_the_domain_are_refused(release, record):
    with pytest.raises(QueryError):
        release.explain(record)


def test_a_bad_row_of_many_is_named(release):
    with pytest.raises(QueryError, match="row 1"):
        release.explain_many([RECORD, {**RECORD, "age": -1}])


def test_another_weight_changes_the_locality(data, release):
    narrow = dpx.weights.Gaussian(0.8)
    local = release.explain(RECORD, weight=narrow)
    wide = release.explain(RECORD)
    closer = evaluation.score(local.values, data, RECORD, weight=narrow).relative_excess
    assert closer < evaluation.score(wide.values, data, RECORD, weight=narrow).relative_excess
    assert local.details["weight"] == "gaussian"


def test_the_budget_is_refused_before_a_row_is_read(data, monkeypatch):
    monkeypatch.setattr(SketchPlan, "run", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(dpx.BudgetExhausted, match="Nothing was spent"):
        dpx.release(data, dpx.Budget(0.5, 1e-6), spend=BUDGET)


def test_spending_is_counted_on_the_data_and_in_the_ledger(tmp_path):
    data = private(m=500)
    ledger = f"sqlite:///{tmp_path}/people.ledger"
    half = dpx.Budget(0.5, 1e-6)
    first = dpx.release(data, BUDGET, ledger=ledger, spend=half, noise=SeededNoise(0))
    assert data.spent.mu == pytest.approx(half.mu, rel=1e-6)
    assert first.guarantee.mu == pytest.approx(half.mu, rel=1e-6)
    dpx.release(data, BUDGET, ledger=ledger, spend=half, noise=SeededNoise(1))
    assert data.spent.mu == pytest.approx(np.sqrt(2) * half.mu, rel=1e-6)
    with pytest.raises(dpx.BudgetExhausted):
        dpx.release(data, BUDGET, ledger=ledger)
    explainer = dpx.Explainer(data, BUDGET, dpx.Basic(0.1, 1e-6, steps=10), ledger=ledger)
    explainer.explain(RECORD)
    assert len(explainer.history) == 1


@pytest.mark.parametrize("anchors", [0, 2, 5])
def test_several_anchors_are_refused_with_the_reason(data, anchors):
    with pytest.raises(ParameterError, match="Leave anchors out"):
        dpx.release(data, BUDGET, anchors=anchors)


@pytest.mark.parametrize(
    "options", [{"weight": dpx.weights.Custom(lambda d: 1 / (1 + d))}, {"radius": 0}, {"radius": float("nan")}]
)
def test_what_cannot_be_released_costs_nothing(options):
    data = private(m=100)
    with pytest.raises(ParameterError):
        dpx.release(data, BUDGET, **options)
    assert data.spent.mu == 0


def test_an_explainer_falls_back_to_the_release(data, release):
    explainer = dpx.Explainer(data, dpx.Budget(0.3, 1e-6), dpx.Basic(0.3, 1e-6, steps=10), release=release)
    assert "budget" not in explainer.explain(RECORD).details
    free = explainer.explain(RECORD, request_id="r")
    assert (free.values == release.explain(RECORD).values).all()
    assert free.cost.mu == 0
    assert free.request_id == "r"
    assert "costs nothing" in free.details["budget"]
    assert free.guarantee.mu >= release.guarantee.mu
    other = dpx.PrivateData(np.random.default_rng(0).random((50, 2)), dpx.Domain.encoded(2), labels=np.ones(50))
    with pytest.raises(ParameterError, match="a different domain"):
        dpx.Explainer(other, BUDGET, release=release)


def test_the_file_gives_back_the_same_bits(release, saved_file):
    again = dpx.load(saved_file)
    ours, theirs = release.explain_many(records()), again.explain_many(records())
    assert (ours.values == theirs.values).all()
    assert (ours.error == theirs.error).all()
    assert again.payload() == release.payload()
    assert again.guarantee == release.guarantee
    assert again.domain == release.domain
    assert again.weight == release.weight
    assert (again.fingerprint, again.library, again.size) == ("people, spring", release.library, 20_000)
    assert repr(again) == repr(release)


def test_saving_again_gives_the_same_file(saved_file, tmp_path):
    dpx.load(saved_file).save(tmp_path / "again.dpx")
    assert (tmp_path / "again.dpx").read_bytes() == saved_file.read_bytes()


def test_files_of_numbers_and_of_codes_are_both_small_and_read_back():
    rng = np.random.default_rng(0)
    arrays = {"numbers": rng.integers(0, 4096, 100_000).astype("<u2"), "codes": np.repeat(np.arange(4), 25_000).astype("<u2")}
    for name, largest in (("numbers", 180_000), ("codes", 2_000)):
        content = container.write({}, {name: arrays[name]})
        assert len(content) < largest
        assert (container.read(content)[1][name] == arrays[name]).all()


def test_any_changed_or_missing_byte_is_noticed(saved_file, tmp_path):
    whole, path = saved_file.read_bytes(), tmp_path / "damaged.dpx"
    for at in [*range(60), *np.linspace(60, len(whole) - 1, 60).astype(int)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        with pytest.raises(ReleaseCorrupt, match=r"from its owner|Upgrade"):
            dpx.load(path)
        path.write_bytes(whole[:at])
        with pytest.raises(ReleaseCorrupt):
            dpx.load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ReleaseCorrupt):
        dpx.load(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 a zip", b"\x80\x04\x95 a pickle", b"DPXREL\r\n", bytes(1000)])
def test_foreign_files_are_refused(tmp_path, content):
    (tmp_path / "x.dpx").write_bytes(content)
    with pytest.raises(ReleaseCorrupt, match="not a whole dpexplain release"):
        dpx.load(tmp_path / "x.dpx")


def forge(body, version=container.VERSION, length=None):
    """A file with a right checksum around any body."""
    packed = struct.pack("<Q", len(body) if length is None else length) + zlib.compress(body)
    return container.MAGIC + struct.pack("<I", version) + sha256(packed).digest() + packed


def test_a_newer_format_is_named(tmp_path):
    (tmp_path / "x.dpx").write_bytes(forge(b"", version=2))
    with pytest.raises(ReleaseCorrupt, match=r"format version 2 .* Upgrade"):
        dpx.load(tmp_path / "x.dpx")


def test_a_bomb_is_not_inflated(tmp_path):
    for length in (1 << 20, 2 << 40):
        (tmp_path / "x.dpx").write_bytes(forge(bytes(20 << 20), length=length))
        with pytest.raises(ReleaseCorrupt):
            dpx.load(tmp_path / "x.dpx")


def body_of(header, arrays=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text + arrays


@pytest.mark.parametrize(
    "body",
    [
        b"\x01",
        body_of(b"not json"),
        body_of(b"[" * 50_000),
        body_of([1]),
        body_of({}),
        body_of({"arrays": [{"name": "mean", "dtype": "|O", "shape": [1]}]}),
        body_of({"arrays": [{"name": "mean", "dtype": "<f8", "shape": [-1]}]}),
        body_of({"arrays": [{"name": "mean", "dtype": "<f8", "shape": [1 << 60]}]}),
        body_of({"arrays": []}, b"left over"),
        body_of({"arrays": [], "format": "dpexplain.release"}),
        body_of(b'{"arrays": [], "format": NaN}'),
    ],
)
def test_a_right_checksum_around_nonsense_is_refused(tmp_path, body):
    (tmp_path / "x.dpx").write_bytes(forge(body))
    with pytest.raises(ReleaseCorrupt):
        dpx.load(tmp_path / "x.dpx")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("eigenvalues", lambda a: -a),
        ("mean", lambda a: a[:-1]),
        ("t1", lambda a: a * np.nan),
        ("codes", lambda a: a + 5000),
        ("labels", lambda a: a[:0]),
        ("inverse_weight", lambda a: 0 * a),
        ("eigenvectors", lambda a: a.ravel()),
    ],
)
def test_arrays_that_make_no_sense_are_refused(saved_file, tmp_path, name, change):
    header, arrays = container.read(saved_file.read_bytes())
    (tmp_path / "x.dpx").write_bytes(container.write(header, {**arrays, name: change(arrays[name])}))
    with pytest.raises(ReleaseCorrupt, match="do not fit together"):
        dpx.load(tmp_path / "x.dpx")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("domain", {}),
        ("weight", {"kind": "custom"}),
        ("radius", -1),
        ("guarantee", {}),
        ("noise", {"t1": -1}),
        ("format", "other"),
    ],
)
def test_headers_that_make_no_sense_are_refused(saved_file, tmp_path, name, value):
    header, arrays = container.read(saved_file.read_bytes())
    (tmp_path / "x.dpx").write_bytes(container.write({**header, name: value}, arrays))
    with pytest.raises(ReleaseCorrupt):
        dpx.load(tmp_path / "x.dpx")


def points_of(payload):
    return dense_points(payload["reference"]["points"], payload["layout"], len(payload["mean"]))


def fitted_from_payload(payload, z):
    """The fitted plane written out from docs/release.md, one query at a time, without any of the library's code."""
    mean, w, V = (np.array(payload[key]) for key in ("mean", "eigenvalues", "eigenvectors"))
    f = {key: np.array(value) if isinstance(value, list) else value for key, value in payload["fitted"].items()}
    u, inverse = points_of(payload) - mean, (V * f["inverse"]) @ V.T
    r = f["labels"] - payload["t0"] - u @ f["slopes"]
    d = np.linalg.norm(u + mean - z, axis=1)
    alpha = np.minimum(1, payload["weight"]["c"] / np.maximum(2 * d * (1 + d), 1e-300)) * payload["reference"]["inverse_weight"]
    share, N = alpha.sum() ** 2 / (len(d) * (alpha @ alpha)), len(d)
    s = alpha * f["raked"] / (alpha @ f["raked"])
    m = s @ u
    A = ((u - m) * s[:, None]).T @ (u - m) + f["ridge"] * np.eye(len(z))
    level = np.mean(f["raked"] * r)
    rest = (s * r) @ (u - m) - share * (f["raked"] * (r - level) / N) @ u
    delta, ahead = np.zeros(len(z)), inverse @ rest
    for _ in range(f["steps"]):
        size = rest @ inverse @ rest
        length = size / (ahead @ A @ ahead)
        delta, rest = delta + length * ahead, rest - length * A @ ahead
        ahead = inverse @ rest + rest @ inverse @ rest / size * ahead
    phi = f["slopes"] + delta
    answer = payload["t0"] + m @ f["slopes"] + s @ r - share * level + phi @ (z - mean - m)
    kept, rows = min(1, f["kept"] * share) ** 2, slice(None, None, 1 if share < f["broad"] else f["every"])
    seen = share * N / (share * N + f["pooled"])
    q = np.clip(N * s - share * f["raked"], -f["limit"] / share, f["limit"] / share)[rows] ** 2
    q = q * (seen * r[rows] ** 2 + (1 - seen) * np.mean(f["raked"] * r**2)) * f["doubt"] / np.sqrt(share) / len(q)
    everywhere = f["raked"] / N @ np.square(u + mean) - np.square(f["raked"] / N @ (u + mean))
    narrow = np.sqrt(np.clip(everywhere / (s @ np.square(u - m)), 1, f["narrowest"]))
    counted = kept + (1 - kept) * (1 - w * f["inverse"]) ** 2
    moved, root = (u[rows] - m) @ inverse * narrow, f["factors"][:, None] * V * f["spread"] * np.sqrt(counted)
    covariance = root @ root.T + (moved * q[:, None]).T @ moved + f["own"] * np.outer(delta, delta)
    covariance += np.diag((f["shares"] @ delta**2 * f["usual"] + (1 - share) * f["unseen"]) / share ** f["nearer"])
    starts = [block["start"] for block in payload["layout"]]
    offset = z - f["average"]
    owner = np.repeat(np.arange(len(starts)), np.diff([*starts, len(z)]))
    across = (owner[:, None] == np.arange(len(starts))) * offset[:, None]
    alone = np.diff([*starts, len(z)])[owner] == 1
    squares = np.add.reduceat(phi**2 + alone * np.diag(covariance), starts)
    variance = np.diag(across.T @ covariance @ across) + f["average_error"] ** 2 * squares
    return phi, np.sqrt(np.diag(covariance)), answer, np.add.reduceat(phi * offset, starts), np.sqrt(variance)


def explain_from_payload(payload, z, c):
    """The paper's plane, and anchored ones in a ball, written out from docs/release.md."""
    mean, w, V = (np.array(payload[key]) for key in ("mean", "eigenvalues", "eigenvectors"))
    t0, t1, k, noise = payload["t0"], np.array(payload["t1"]), 1.0, payload["noise"]
    points, h = points_of(payload), mean - z
    A = (V * w) @ V.T + np.outer(h, h)

    def ball(b):
        low, high = 0.0, np.linalg.norm(b) / k
        if np.linalg.norm(np.linalg.solve(A, b)) <= k:
            return np.linalg.solve(A, b), 0.0
        for _ in range(200):
            middle = (low + high) / 2
            outside = np.linalg.norm(np.linalg.solve(A + middle * np.eye(len(b)), b)) > k
            low, high = (middle, high) if outside else (low, middle)
        return np.linalg.solve(A + high * np.eye(len(b)), b), high

    first, _ = ball(t1 + (t0 - c) * h)
    u = points - z
    d = np.linalg.norm(u, axis=1)
    alpha = np.minimum(1, payload["weight"]["c"] / np.maximum(2 * d * (1 + d), 1e-300)) * payload["reference"]["inverse_weight"]
    g = ((alpha / alpha.mean() - 1) * (np.array(payload["reference"]["labels"]) - c - u @ first)) @ u / len(u)
    phi, multiplier = ball(t1 + (t0 - c) * h + g)
    K = np.linalg.inv(A + multiplier * np.eye(len(h)))
    if multiplier > 0:
        K = K - np.outer(K @ phi, K @ phi) / (phi @ K @ phi)
    s2 = noise["sigma_t1"] ** 2 + noise["sigma_s2"] ** 2 * phi @ phi + noise["sigma_s1"] ** 2 * (h @ phi + c) ** 2
    return phi, np.array(noise["calibration"]) * np.sqrt(np.diag(K @ K) * s2)


def test_the_payload_and_its_formulas_suffice(release):
    payload = json.loads(json.dumps(release.payload(), allow_nan=False))
    for record, anchor in zip(records(5), (None, None, 0.0, -0.7, 1.0), strict=True):
        explanation = release.explain(record, anchor=anchor, plane="paper" if anchor is None else None, radius=1.0)
        values, errors = explain_from_payload(payload, np.array(explanation.point), anchor or 0.0)
        assert explanation.values == pytest.approx(values, rel=0, abs=1e-10)
        assert explanation.error == pytest.approx(errors, rel=1e-6)
        fitted = release.explain(record)
        values, errors, answer, added, added_errors = fitted_from_payload(payload, np.array(fitted.point))
        assert fitted.values == pytest.approx(values, rel=0, abs=1e-9)
        assert fitted.error == pytest.approx(errors, rel=1e-6)
        assert fitted.intercept == pytest.approx(answer, abs=1e-9)
        contributions = fitted.contributions()
        assert contributions.values == pytest.approx(added, abs=1e-9)
        assert contributions.error == pytest.approx(added_errors, rel=1e-6)
        assert contributions.base + contributions.values.sum() == pytest.approx(contributions.answer, abs=1e-12)


def sane(release, queries):
    many = release.explain_many(queries)
    assert np.isfinite(many.values).all()
    assert np.isfinite(many.error).all()
    held = release.explain_many(queries, plane="paper")
    assert np.isfinite(held.error).all()
    assert (np.linalg.norm(held.values, axis=1) <= 1 + 1e-6).all()
    return many


@pytest.mark.parametrize(("m", "epsilon"), [(1, 1e-4), (1, 20.0), (2, 0.01), (100, 1e-4), (100, 20.0)])
def test_few_rows_and_any_budget_give_sane_answers(m, epsilon):
    for seed in range(3):
        sane(dpx.release(private(m=m), dpx.Budget(epsilon, 1e-6), noise=SeededNoise(seed)), records(20))


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 50.0])
@pytest.mark.parametrize(
    "domain",
    [
        dpx.Domain.encoded(1),
        dpx.Domain.encoded(7),
        dpx.Domain([dpx.Binary("x")]),
        dpx.Domain([dpx.Categorical("x", values=["a"])]),
        dpx.Domain([dpx.Categorical("x", values=list("abcdef"))]),
        dpx.Domain([dpx.Categorical("x", values=list("ab"), other="rest"), dpx.Binary("y")]),
        dpx.Domain([dpx.Binary(f"x{i}") for i in range(12)]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("constant", [False, True])
def test_every_kind_of_domain_works(domain, epsilon, constant):
    rng = np.random.default_rng(0)

    def column(feature, m):
        if isinstance(feature, dpx.Numeric):
            return np.full(m, 0.25) if constant else rng.random(m)
        values = ["yes", "no"] if isinstance(feature, dpx.Binary) else [*feature.values, "unknown"]
        return np.array([values[0]] * m if constant else rng.choice(values[: max(len(values) - 1, 2)], m), dtype=object)

    rows = {feature.name: column(feature, 400) for feature in domain.features}
    labels = np.ones(400) if constant else rng.uniform(-1, 1, 400)
    release = dpx.release(dpx.PrivateData(rows, domain, labels=labels), dpx.Budget(epsilon, 1e-6), noise=SeededNoise(0))
    query = {
        f.name: 0.25 if isinstance(f, dpx.Numeric) else "yes" if isinstance(f, dpx.Binary) else f.values[0]
        for f in domain.features
    }
    sane(release, [query] * 3)


def test_unknown_categories_are_not_forced_to_sum_to_one():
    data = private(unknown=0.4, m=40_000)
    release = dpx.release(data, dpx.Budget(5.0, 1e-6), noise=SeededNoise(0))
    reference = np.array(release.payload()["reference"]["points"][1])
    assert (reference == 3).mean() == pytest.approx(0.4, abs=0.08)
    scores = [evaluation.score(release.explain(record).values, data, record) for record in records(20)]
    assert np.mean([score.relative_excess for score in scores]) < 0.01


@pytest.mark.slow
def test_a_wide_release_works():
    rng = np.random.default_rng(0)
    domain = dpx.Domain([dpx.Binary(f"w{i}") for i in range(200)])
    rows = {f"w{i}": rng.random(2000) < 0.1 for i in range(200)}
    data = dpx.PrivateData(rows, domain, labels=np.where(rows["w0"] | rows["w1"], 1.0, -1.0))
    release = dpx.release(data, BUDGET, noise=SeededNoise(0))
    sane(release, [{f"w{i}": False for i in range(200)}])


def test_a_release_asked_for_again_is_the_same_and_free(tmp_path, monkeypatch):
    data, ledger = private(m=500), f"sqlite:///{tmp_path}/people.ledger"
    made = dpx.release(data, BUDGET, ledger=ledger, request_id="spring", fingerprint="people")
    spent = data.spent
    monkeypatch.setattr(SketchPlan, "run", lambda *_: pytest.fail("a row was read"))
    again = dpx.release(private(m=500), BUDGET, ledger=ledger, request_id="spring", fingerprint="people")
    assert again.payload() == made.payload()
    assert again.guarantee == made.guarantee
    assert data.spent == spent
    with pytest.raises(InputError, match="another question"):
        dpx.release(data, BUDGET, ledger=ledger, request_id="spring", fingerprint="others")


def test_a_release_too_large_to_keep_says_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["dpexplain.release.release"], "LARGEST_KEPT", 10)  # dpexplain.release is the function
    data, ledger = private(m=500), f"sqlite:///{tmp_path}/people.ledger"
    dpx.release(data, BUDGET, ledger=ledger, request_id="large")
    with pytest.raises(InputError, match="larger than a ledger keeps"):
        dpx.release(data, BUDGET, ledger=ledger, request_id="large")


def test_of_two_processes_with_one_request_the_first_to_settle_wins(data, monkeypatch):
    ledger = MemoryLedger(data.account(BUDGET))
    run = SketchPlan.run

    def overtaken(self, door, **known):
        monkeypatch.setattr(SketchPlan, "run", run)
        dpx.release(data, BUDGET, ledger=ledger, request_id="race")
        return run(self, door, **known)

    monkeypatch.setattr(SketchPlan, "run", overtaken)
    second = dpx.release(data, BUDGET, ledger=ledger, request_id="race")
    assert second.payload() == dpx.release(data, BUDGET, ledger=ledger, request_id="race").payload()


def test_files_from_before_there_were_planes_answer_by_the_fitted_plane(release, data, tmp_path):
    header, arrays = container.read(release._content())
    header = {name: value for name, value in header.items() if name not in ("plane", "planes", "scale", "arrays")} | {
        "radius": 1.0
    }
    arrays = {name: array for name, array in arrays.items() if not name.startswith("plane_")}
    (tmp_path / "old.dpx").write_bytes(container.write(header, arrays))
    old = dpx.load(tmp_path / "old.dpx")
    assert old.plane == "fitted"
    assert old.radius is None
    scores = [evaluation.score(old.explain(record).values, data, record) for record in records(20)]
    assert np.mean([score.relative_excess for score in scores]) < 0.02
    assert (old.explain(RECORD, plane="paper").values == release.explain(RECORD, plane="paper").values).all()
    assert old.explain(RECORD).contributions().error is not None


def always(value):
    return lambda table: np.full(len(table["age"]), value)


@pytest.mark.parametrize(
    "answers", [{"labels": np.ones(4_000)}, {"model": always(1.0)}, {"model": always(0.3)}], ids=["labels", "yes", "0.3"]
)
def test_a_constant_model_has_no_explanation(answers):
    value = 0.3 if "model" in answers and answers["model"]({"age": [0]})[0] < 1 else 1.0
    declared = {"output": "value", "bounds": (-1, 1)} if "model" in answers else {}
    made = dpx.release(dpx.PrivateData(people(4_000)[0], DOMAIN, **answers, **declared), BUDGET, noise=SeededNoise(3))
    for record in records(5):
        answer = made.explain(record)
        assert (np.abs(answer.values) <= 2 * answer.error + 1e-6).all()
        added = answer.contributions()
        assert (np.abs(added.values) <= 2 * added.error + 1e-6).all()
        assert added.answer == pytest.approx(value, abs=2 * added.answer_error + 1e-9)
        assert added.base == pytest.approx(value, abs=2 * added.base_error + 1e-9)


def test_a_cap_that_binds_is_named(release):
    free, held = release.explain(RECORD), release.explain(RECORD, radius=0.4)
    assert "cap" not in free.details
    assert "radius 0.4" in held.details["cap"]
    assert held.details["cap"] in held._repr_html_()
    assert np.linalg.norm(held.values) == pytest.approx(0.4)
    assert "cap" not in release.explain(RECORD, radius=50.0).details
    assert 0 < free.details["effective_rows"] <= release.size
    assert set(free.details["error_parts"]) == {"noise", "shrinkage", "bias", "sampling"}
    assert "radius 1" in release.explain(RECORD, plane="paper").details["cap"]


@pytest.mark.parametrize("asked", [{"plane": "flat"}, {"plane": "anchored"}, {"plane": "paper", "anchor": 0.2}, {"radius": -1.0}])
def test_planes_that_cannot_be_are_refused(release, asked):
    with pytest.raises(ParameterError):
        release.explain(RECORD, **asked)


def test_batches_of_contributions_are_those_of_single_answers(release):
    many = release.explain_many(records(70))
    batch = many.contributions()
    one = many[66].contributions()
    assert batch[66].values == pytest.approx(one.values, abs=1e-12)
    assert batch[66].error == pytest.approx(one.error, rel=1e-9)
    assert batch.base + batch.values.sum(axis=1) == pytest.approx(batch.answer, abs=1e-12)
    assert one.record == many[66:67].contributions()[0].record


def test_ordered_features_of_public_points_lie_on_levels():
    domain = dpx.Domain([dpx.Ordinal("degree", levels=list(range(7))), dpx.Numeric("age", 0, 1)])
    rng = np.random.default_rng(2)
    rows = {"degree": rng.integers(0, 7, 3_000), "age": rng.random(3_000)}
    asked = []

    def model(table):
        asked.append(set(np.asarray(table["degree"]).tolist()))
        return np.tanh(np.asarray(table["degree"], dtype=float) - 3 + np.asarray(table["age"], dtype=float))

    data = dpx.PrivateData(rows, domain, model=model, output="value", bounds=(-1, 1))
    made = dpx.release(data, BUDGET, noise=SeededNoise(1))
    assert asked[-1] == set(range(7))  # no value between two levels, which would be unknown
    assert np.abs(made.planes.points[:, 0] * 6 - np.rint(made.planes.points[:, 0] * 6)).max() < 1e-3
    assert (
        evaluation.score(made.explain({"degree": 4, "age": 0.5}).values, data, {"degree": 4, "age": 0.5}).relative_excess < 0.01
    )
