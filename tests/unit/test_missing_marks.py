"""How a missing entry of a yes/no feature is shown in pandas: as the model accepts it in made-up records."""

import numpy as np
import pandas as pd
import pytest

import dpexplain as dpx
from dpexplain.registration.missing_marks import MARKS, find_mark

DOMAIN = dpx.Domain([dpx.Numeric("age", 0, 100), dpx.Binary("owner")])
ROWS = pd.DataFrame({"age": [20.0, 40.0, 60.0, 80.0], "owner": [True, False, None, True]})


def refuse_objects(frame):
    """As LightGBM does."""
    if any(dtype.kind == "O" for dtype in frame.dtypes):
        raise ValueError("object")
    return np.where(frame["owner"].isna(), 0.9, 0.1)


def require_none(frame):
    """As an encoder that was fitted with None does, and refuses what it does not know."""
    if any(entry is not None and not isinstance(entry, (bool, np.bool_)) for entry in frame["owner"]):
        raise ValueError("unknown")
    return [0.9 if entry is None else 0.1 for entry in frame["owner"]]


def require_nan_among_objects(frame):
    if (
        any(not isinstance(entry, (bool, np.bool_)) and entry == entry for entry in frame["owner"])
        or frame["owner"].dtype == float
    ):
        raise ValueError("unknown")
    return np.where(frame["owner"].isna(), 0.9, 0.1)


@pytest.mark.parametrize(
    ("model", "mark"), [(require_nan_among_objects, MARKS[0]), (require_none, MARKS[1]), (refuse_objects, MARKS[2])]
)
def test_a_missing_yes_or_no_is_shown_as_the_model_accepts_it(model, mark):
    assert find_mark(model, ROWS, DOMAIN) == mark
    data = dpx.PrivateData(ROWS, DOMAIN, model=model, output="probability")
    labels = np.concatenate([piece[:, -1] for piece in data._rows.labelled_pieces()])
    assert sorted(labels) == pytest.approx([-0.8, -0.8, -0.8, 0.8], abs=1e-6)


def test_a_model_that_refuses_every_missing_entry_gets_the_first_mark():
    def refuse_all(frame):
        if frame["owner"].isna().any():
            raise ValueError("missing")
        return np.full(len(frame), 0.25)

    assert find_mark(refuse_all, ROWS, DOMAIN) == MARKS[0]
    data = dpx.PrivateData(ROWS, DOMAIN, model=refuse_all, output="probability")
    labels = np.concatenate([piece[:, -1] for piece in data._rows.labelled_pieces()])
    assert sorted(labels) == [-0.5, -0.5, -0.5, 0.0]
