"""Black boxes from files and addresses, none of which may run code of their own unless the owner sets `trusted`.

.onnx                    onnxruntime
.skops                   skops: scikit-learn without pickle; types it does not know are refused
http://…, https://…      an endpoint that speaks KServe V1 (…:predict) or V2 (…/infer)
module:function          your own code, imported
.pkl .pickle .joblib     only with trusted = true: loading them runs whatever they contain
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from dpexplain.domain import DomainLike
from dpexplain.domain.values import floats
from dpexplain.errors import DataError, NotPrivateError
from dpexplain.registration.kserve import Endpoint
from dpexplain.registration.model_columns import column_selection

Input = Literal["rows", "encoded"]
Model = Any  # anything `labels.ask_model` accepts: predict_proba, predict, or a callable


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where a model is, and what it is asked with: `input` is "rows" (raw columns) or "encoded" (the domain's matrix).

    None lets the model decide: by its named columns or its width.
    """

    where: str
    trusted: bool = False
    input: Input | None = None

    def open(self, domain: DomainLike) -> Model:
        """The model as something that takes a pyarrow table of raw rows."""
        return _opener(self.where)(self, domain)


def _opener(where: str) -> Callable[[ModelSource, DomainLike], Model]:
    if where.startswith(("http://", "https://")):
        return _open_endpoint
    suffix = Path(where).suffix.lower()
    if suffix in _FILES:
        return _FILES[suffix]
    if ":" in where:
        return _open_import
    raise DataError(
        f"the kind of model {where!r} is unknown. Name a {', '.join(sorted(_FILES))} file, a KServe address, or module:function"
    )


def _open_onnx(source: ModelSource, domain: DomainLike) -> Model:
    ort = _require_module("onnxruntime")
    _require_file(source.where)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(source.where, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises many types of its own
        raise DataError(
            f"{source.where} is not a model that onnxruntime can run ({type(error).__name__}). Export it again"
        ) from None
    inputs = session.get_inputs()
    names = list(domain.columns)
    by_column = {one.name for one in inputs} == set(names)
    if source.input == "rows" or (source.input is None and by_column and (len(inputs) > 1 or domain.width != 1)):
        return _Onnx(session, lambda table: {one.name: _onnx_column(table, one) for one in inputs})
    dtype = np.float64 if "double" in inputs[0].type else np.float32
    return _Onnx(session, lambda table: {inputs[0].name: domain.encode(table).astype(dtype)})


class _Onnx:
    """Probabilities (m, classes) where the graph has them, else its first output."""

    def __init__(self, session: Any, feed: Callable[[pa.Table], Mapping[str, Any]]) -> None:
        self._session, self._feed = session, feed
        outputs = session.get_outputs()
        wide = [one.name for one in outputs if "tensor(float)" in one.type or "tensor(double)" in one.type]
        maps = [one.name for one in outputs if "map" in one.type]
        self._output = (wide or maps or [outputs[0].name])[-1]

    def __call__(self, table: pa.Table) -> Any:
        (answers,) = self._session.run([self._output], self._feed(table))
        if isinstance(answers, list):  # skl2onnx's ZipMap: one {class: probability} a row
            return np.array([list(row.values()) for row in answers])
        return answers[:, 0] if answers.ndim == 2 and answers.shape[1] == 1 else answers


def _onnx_column(table: pa.Table, wanted: Any) -> Any:
    """By the type that the model declares, entry by entry: a missing number is NaN, a missing integer 0, a missing text empty."""
    column = table.column(wanted.name)
    if wanted.type == "tensor(string)":
        return np.array([_text(entry) for entry in column.to_pylist()], dtype=object).reshape(-1, 1)
    kinds = {"tensor(double)": np.float64, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    kind = kinds.get(wanted.type, np.float32)
    numbers = floats(np.fromiter(column.to_pylist(), dtype=object, count=len(column)))
    return (numbers if np.dtype(kind).kind == "f" else np.nan_to_num(numbers)).astype(kind).reshape(-1, 1)


def _text(entry: Any) -> str:
    if isinstance(entry, float) and entry.is_integer():
        return str(int(entry))  # an integer whose column has missing entries
    return "" if entry is None else str(entry)


def load_estimator(where: str, trusted: bool) -> Any:
    """The estimator in a .skops file, or in a pickle that the owner marked as trusted."""
    return _load_skops(where, trusted) if Path(where).suffix.lower() == ".skops" else _load_pickle(where, trusted)


def _open_skops(source: ModelSource, domain: DomainLike) -> Model:
    return _estimator(_load_skops(source.where, source.trusted), source.input, domain)


def _load_skops(where: str, trusted: bool) -> Any:
    skops = _require_module("skops.io", "skops")
    _require_file(where)
    try:
        unknown = skops.get_untrusted_types(file=where)
    except Exception as error:
        raise DataError(f"{where} is not a skops file ({type(error).__name__}). Save the model with skops.io.dump") from None
    if unknown and not trusted:
        raise NotPrivateError(
            f"{where} contains types that skops does not know: {', '.join(unknown[:5])}. Read what they are, then set trusted = true"
        )
    try:
        return skops.load(where, trusted=unknown)
    except Exception as error:  # whatever the types in the file do with what they are given
        raise _unreadable(where, error, "skops.io.dump") from None


def _open_pickle(source: ModelSource, domain: DomainLike) -> Model:
    return _estimator(_load_pickle(source.where, source.trusted), source.input, domain)


def _load_pickle(where: str, trusted: bool) -> Any:
    if not trusted:
        raise NotPrivateError(
            f"{where} is a pickle, and loading one runs whatever code it contains. "
            "Save the model as ONNX or with skops, or set trusted = true if you made the file yourself"
        )
    _require_file(where)
    joblib = _require_module("joblib")
    try:
        return joblib.load(where)
    except Exception as error:  # whatever the code in the file does
        raise _unreadable(where, error, "joblib.dump") from None


def _unreadable(where: str, error: Exception, writer: str) -> DataError:
    return DataError(
        f"{where} is not a whole model, or needs packages that are missing ({type(error).__name__}). Save it again with {writer}"
    )


def _estimator(model: Any, given: Input | None, domain: DomainLike) -> Model:
    """A scikit-learn estimator asked with a data frame of raw columns, or with the encoded matrix."""
    raw = hasattr(model, "feature_names_in_") if given is None else given == "rows"
    select = column_selection(model)
    if not raw or select is None:
        return Estimator(model, _frame if raw else domain.encode)
    return Estimator(model, lambda table: select(_frame(table)))


class Estimator:
    """A fitted estimator from a file, asked about Arrow tables; `prepare` converts them to what it takes."""

    def __init__(self, model: Any, prepare: Callable[[pa.Table], Any]) -> None:
        self.fitted, self.prepare = model, prepare
        self.classes_ = getattr(model, "classes_", None)
        if self.classes_ is None:
            del self.classes_  # regressors have none, and `ask_model` looks
        if hasattr(model, "predict_proba"):
            self.predict_proba = lambda table: model.predict_proba(prepare(table))

    def predict(self, table: pa.Table) -> Any:
        return self.fitted.predict(self.prepare(table))


def _frame(table: pa.Table) -> Any:
    _require_module("pandas")
    return table.to_pandas(ignore_metadata=True)  # the index and the nullable types that pandas notes down are left out


def _open_endpoint(source: ModelSource, domain: DomainLike) -> Model:
    return Endpoint(source.where, domain, source.input, plain_text=source.trusted)


def _open_import(source: ModelSource, domain: DomainLike) -> Model:
    module, _, name = source.where.partition(":")
    if (here := os.getcwd()) not in sys.path:
        sys.path.append(here)  # last, so that a file here cannot stand in for an installed package
    try:
        model = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise DataError(
            f"cannot import {source.where} ({error}). Write module:function, importable from where you start"
        ) from None
    except (Exception, SystemExit) as error:  # the module's own code failed, or ends the program
        raise DataError(f"importing {source.where} failed ({type(error).__name__}: {error}). Correct the module") from None
    if source.input == "encoded":
        return lambda table: model(domain.encode(table))
    return model


def _require_module(module: str, package: str | None = None) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        name = package or module
        raise DataError(f"this model needs {name}, which is not installed. Run: pip install {name}") from None


def _require_file(where: str) -> None:
    if not os.path.isfile(where):  # also false for what cannot be a name
        raise DataError(f"there is no model file {where}. Check the name")


_FILES: dict[str, Callable[[ModelSource, DomainLike], Model]] = {
    ".onnx": _open_onnx,
    ".skops": _open_skops,
    ".pkl": _open_pickle,
    ".pickle": _open_pickle,
    ".joblib": _open_pickle,
}
