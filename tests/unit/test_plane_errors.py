"""Errors of whole batches of planes equal those that are computed record by record; so do the points of whole batches of records."""

from dataclasses import fields

import numpy as np
import pytest

import dpexplain as dpx
from dpexplain.core.layout import Layout
from dpexplain.domain.queries import QueryRules, read_each
from dpexplain.estimation.error_parts import no_parts
from dpexplain.estimation.local_change import NEARER, OWN
from dpexplain.estimation.moment_planes import BROAD, EVERY, KEPT, LIMIT, NARROWEST, POOLED
from dpexplain.estimation.planes import Average, FittedPlanes, Variances, assemble, directions
from dpexplain.noise.seeded import SeededNoise

DOMAIN = dpx.Domain(
    [
        dpx.Numeric("age", 17, 97, missing=40),
        dpx.Ordinal("school", levels=["none", "some", "all"]),
        dpx.Categorical("trade", values=["sales", "craft", "care", "science"], optional=True),
        dpx.Binary("married"),
        dpx.Categorical("region", values=["north", "south"], other="elsewhere"),
    ]
)


def people(rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(17, 97, rows),
        "school": rng.choice(["none", "some", "all"], rows),
        "trade": rng.choice(["sales", "craft", "care", "science"], rows, p=[0.5, 0.3, 0.15, 0.05]),
        "married": rng.random(rows) < 0.4,
        "region": rng.choice(["north", "south"], rows),
    }


@pytest.fixture(scope="module")
def release():
    rows = people(4000)
    labels = np.tanh((rows["age"] - 50) / 20 + rows["married"] - 0.5 * (rows["trade"] == "craft"))
    return dpx.release(dpx.PrivateData(rows, DOMAIN, labels=labels), dpx.Budget(1, 1e-6), noise=SeededNoise(1))


def test_contributions_have_the_errors_of_products():
    """Near the average, where the distance from it is all error, a slope that is hardly known makes a contribution that is hardly known."""
    rng, layout, draws = np.random.default_rng(0), Layout((0, 1), (1, 1), (True, True)), 200_000
    slopes, doubt, offset, shaken = np.array([0.1, 3.0]), np.array([25.0, 2.0]), np.array([1e-4, 0.2]), 0.01
    noise, added = np.square(doubt)[None], np.append(np.square(doubt * offset), [0.0, 0.0])[None]
    variances = Variances(noise * 0.3, noise * 0.7, added, no_parts(1))
    fitted = FittedPlanes(slopes[None], np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))
    found = assemble(offset[None], fitted, variances, Average(np.zeros(2), shaken), layout)
    drawn = (slopes + doubt * rng.standard_normal((draws, 2))) * (offset + shaken * rng.standard_normal((draws, 2)))
    assert found.added_errors[0] == pytest.approx(drawn.std(axis=0), rel=0.01)
    assert found.base_error[0] == pytest.approx(shaken * np.sqrt(np.square(slopes).sum() + np.square(doubt).sum()))


def variances_of_one(planes, query, local, share, turn, change):
    """(slopes from noise, slopes from points, contributions with base and answer) by the formulas of `estimation/moment_planes.py`."""
    kept, every = min(1.0, KEPT * share) ** 2, 1 if share < BROAD else EVERY
    counted = kept + (1 - kept) * np.square(1 - planes.eigenvalues * planes.inverse)
    root = planes.factors[:, None] * planes.slopes.root(planes.eigenvectors) * np.sqrt(counted)
    inverse = (planes.eigenvectors * planes.inverse) @ planes.eigenvectors.T
    centre, g = local @ planes.points - planes.mean, planes.raked / len(local)
    pull = np.clip(len(local) * local[::every] - share * planes.raked[::every], -LIMIT / share, LIMIT / share)
    seen, squares = share * len(local) / (share * len(local) + POOLED), np.square(planes.residuals)
    pull = np.square(pull) * (seen * squares[::every] + (1 - seen) * float(g @ squares)) * planes.doubt / np.sqrt(share)
    spread = [w @ np.square(planes.points - w @ planes.points) for w in (g, local)]
    narrow = np.sqrt(np.clip(spread[0] / np.maximum(spread[1], 1e-300), 1.0, NARROWEST))
    moved, away = (planes.points[::every] - planes.mean - centre) @ inverse * narrow, planes.mean + centre - query
    noise, level = np.square(root).sum(axis=1), planes.t0_error**2
    if turn is not None:
        root = root - np.outer(turn, away @ root)
        noise, level = np.square(root).sum(axis=1) + np.square(turn * planes.t0_error), 0.0
        moved = moved - np.outer(moved @ away - 1.0, turn)
    across = directions(query - planes.average.values, -away if turn is None else 0 * away, planes.layout)
    reference = moved @ across
    reference[:, -2:] += turn is None
    added = np.square(across.T @ root).sum(axis=1) + (pull[:, None] * np.square(reference)).mean(axis=0)
    added[-2:] += level
    if turn is not None:  # an error of the level turns the plane
        added += np.square(across.T @ turn * planes.t0_error)
    wrong = planes.local_change
    usual = (wrong.shares @ change**2 * wrong.usual + (1 - share) * wrong.unseen) / share**NEARER
    own, unseen = OWN * np.outer(change, change), np.diag(usual)
    if turn is not None:
        by = np.eye(len(query)) - np.outer(turn, away)
        own, unseen = by @ own @ by.T, by @ unseen @ by.T
    added += np.einsum("ij,ik,kj->j", across, own + unseen, across)
    return noise + np.diag(unseen), (pull[:, None] * np.square(moved)).mean(axis=0) + np.diag(own), added


@pytest.mark.parametrize("weight", [None, dpx.weights.Gaussian(0.7), dpx.weights.Window(0.05)])
@pytest.mark.parametrize("anchored", [False, True])
def test_variances_of_a_batch_are_those_of_each_query(release, weight, anchored):
    planes, queries = release.planes, DOMAIN.encode(people(9, seed=2))
    share, local, middle = planes._local_shares(queries, weight or release.weight)
    away = middle - queries
    along = planes._solve(local, middle, away)
    turn = along / (1 + np.vecdot(away, along))[:, None] if anchored else None
    change = np.random.default_rng(3).normal(0, 0.1, queries.shape)
    batch = planes._variances((queries, local, share, middle, change), turn)
    for i, query in enumerate(queries):
        alone = variances_of_one(planes, query, local[i], share[i], None if turn is None else turn[i], change[i])
        for found, right in zip((batch.noise[i], batch.reference[i], batch.added[i]), alone, strict=True):
            assert found == pytest.approx(right, rel=1e-9, abs=1e-10 * right.max())


def test_an_answer_does_not_depend_on_others_of_its_batch(release):
    queries, weight = DOMAIN.encode(people(60, seed=6)), dpx.weights.Gaussian(0.95)
    together = release.planes.fit(queries, weight)
    assert together.share.min() < BROAD < together.share.max()
    for i in (int(together.share.argmin()), int(together.share.argmax())):
        assert release.planes.fit(queries[i : i + 1], weight).errors[0] == pytest.approx(together.errors[i], rel=1e-9)


@pytest.mark.parametrize("weight", [None, dpx.weights.Gaussian(0.7), dpx.weights.Window(0.05)])
def test_a_plane_that_is_fitted_alone_is_that_of_its_batch(release, weight):
    queries = DOMAIN.encode(people(6, seed=7))
    together = release.planes.fit(queries, weight or release.weight)
    for i in range(6):
        alone = release.planes.fit(queries[i : i + 1], weight or release.weight)
        for one in fields(together):
            found, right = getattr(alone, one.name)[0], getattr(together, one.name)[i]
            assert found == pytest.approx(right, rel=1e-6, abs=1e-9), one.name


@pytest.mark.parametrize("anchor", [None, 0.4])
def test_an_answer_by_itself_is_that_of_its_batch(release, anchor):
    rows = people(5, seed=3)
    many = release.explain_many(rows, anchor=None if anchor is None else [anchor] * 5)
    for i in range(5):
        one = release.explain({name: column[i] for name, column in rows.items()}, anchor=anchor)
        assert one.values == pytest.approx(many[i].values, rel=1e-9, abs=1e-12)
        assert one.error == pytest.approx(many[i].error, rel=1e-9, abs=1e-12)
        assert one.contributions().error == pytest.approx(many[i].contributions().error, rel=1e-9, abs=1e-12)


def test_records_are_read_together_as_they_are_one_by_one():
    rows = people(40, seed=4)
    records = [{name: column[i] for name, column in rows.items()} for i in range(40)]
    records[3] |= {"married": 1, "age": 40}
    records[4] |= {"married": "yes", "age": 40.0}
    together = DOMAIN.read_queries(records, QueryRules())
    alone = read_each(records, lambda record: DOMAIN.read_query(record, QueryRules()), DOMAIN.width, QueryRules())
    assert np.array_equal(together.points, alone.points)
    assert together.rows == alone.rows
    assert together.notes == alone.notes


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"married": 2}, "married"), ({"age": True}, "age"), ({"trade": ["sales"]}, "trade"), ({"region": None}, None)],
)
def test_one_misfit_is_found_among_many_records(change, reason):
    records = [{name: column[0] for name, column in people(1).items()} for _ in range(3)]
    records[1] |= change
    read = DOMAIN.read_queries(records, QueryRules(on_error="skip"))
    assert [one.row for one in read.skipped] == ([] if reason is None else [1])
    assert all(reason in one.reason for one in read.skipped)
    if reason is None:
        assert "elsewhere" in read.notes[1]["region"]


def test_a_point_is_decoded_as_in_a_table():
    points = DOMAIN.encode(people(30, seed=5) | {"trade": np.array(["sales", None, "?"] * 10, dtype=object)})
    columns = [column.tolist() for column in DOMAIN.decode(points).values()]
    for _ in range(2):
        assert [DOMAIN.decode_point(point) for point in points] == list(zip(*columns, strict=True))
