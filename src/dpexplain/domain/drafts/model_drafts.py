"""A draft from a model: a fitted scikit-learn estimator, an ONNX file, or the address of a model that describes itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dpexplain.domain.drafts.draft import Draft, DraftFeature
from dpexplain.errors import DomainError

SECONDS = 20.0
KSERVE: dict[str, tuple[str, dict[str, Any]]] = {
    "BOOL": ("binary", {}),
    "BYTES": ("categorical", {}),
    "FP32": ("numeric", {}),
    "FP64": ("numeric", {}),
    "FP16": ("numeric", {}),
}


def draft_of_model(model: Any) -> Draft:
    """A draft of the model's input columns, from its own metadata."""
    if isinstance(model, (str, Path)):
        return _from_address(str(model))
    if not any(hasattr(model, name) for name in ("predict", "predict_proba", "transform", "n_features_in_")):
        raise DomainError(
            f"a {type(model).__name__} does not say what it takes. Pass a fitted scikit-learn estimator, the path of an .onnx file or a "
            "KServe address, or use Domain.from_schema"
        )
    from dpexplain.domain.drafts.estimators import draft_of_estimator

    return draft_of_estimator(model)


def _from_address(where: str) -> Draft:
    if where.startswith(("http://", "https://")):
        return _from_kserve(where)
    if where.lower().endswith(".onnx"):
        from dpexplain.domain.drafts.onnx import draft_of_onnx

        return draft_of_onnx(where)
    raise DomainError(f"cannot read a domain from {where!r}. Name an .onnx file or a KServe address, or pass a fitted estimator")


def _from_kserve(url: str) -> Draft:
    """KServe V2's model metadata (`GET …/v2/models/NAME`); V1 has none."""
    from dpexplain.json_http import exchange

    address = url.removesuffix("/infer")
    try:
        inputs = exchange(address, None, SECONDS)["inputs"]
        features = tuple(_kserve_feature(one) for one in inputs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DomainError(
            f"{address} does not describe its inputs as KServe V2 does ({type(error).__name__}). Name …/v2/models/NAME, or declare the domain"
        ) from None
    return Draft(features, f"the model at {address}")


def _kserve_feature(one: dict[str, Any]) -> DraftFeature:
    if len(one["shape"]) > 1 and one["shape"][-1] != 1:
        raise ValueError("a tensor of several columns does not name them")
    kind, known = KSERVE.get(one["datatype"], ("numeric", {"integer": True}))
    return DraftFeature(str(one["name"]), kind, known)
