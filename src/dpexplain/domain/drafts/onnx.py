"""The inputs of an ONNX graph: names and types, categories of one-hot encoders, means and scales of scalers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dpexplain.arguments import stat_file
from dpexplain.domain.drafts.draft import Draft, DraftFeature, round_out
from dpexplain.domain.drafts.estimators import SPREAD, Facts
from dpexplain.errors import DomainError

STRING, WHOLE, TRUTH = 8, (2, 3, 4, 5, 6, 7, 12, 13), 9  # numbers of ONNX's element types
SELECTS = ("Gather", "ArrayFeatureExtractor")
KEEPS = ("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Imputer", "Scaler")


def draft_of_onnx(path: str | Path) -> Draft:
    """One draft feature for each named input of one column; a single wide input has no names, so it is refused."""
    graph = _load(path).graph
    constants = {one.name for one in graph.initializer}
    inputs = [one for one in graph.input if one.name not in constants]
    facts: Facts = {one.name: {} for one in inputs}
    _walk(graph, facts)
    features = tuple(_feature(one, facts[one.name]) for one in inputs)
    if len(inputs) == 1 and _columns(inputs[0]) != 1:
        raise DomainError(
            f"{Path(path).name} takes one tensor of {_columns(inputs[0]) or 'unknown'} columns without names. Export it with one named "
            "input a column, or declare the domain yourself"
        )
    return Draft(features, f"the model ({Path(path).name})")


def _load(path: str | Path) -> Any:
    try:
        import onnx
    except ImportError:
        raise DomainError("reading an ONNX graph needs the package onnx. Run: pip install onnx") from None
    try:
        stat_file(Path(path))
        return onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's own, or the file's
        raise DomainError(
            f"cannot read {path} as an ONNX model ({type(error).__name__}). Check the path, or export it again"
        ) from None


def _columns(one: Any) -> int:
    dimensions = one.type.tensor_type.shape.dim
    return int(dimensions[1].dim_value) if len(dimensions) > 1 else 1


def _walk(graph: Any, facts: Facts) -> None:
    """Follow the inputs through nodes that keep columns, and note the facts that each node holds about its inputs."""
    behind: dict[str, list[str]] = {name: [name] for name in facts}
    waiting = list(graph.node)
    for _ in range(len(waiting)):  # nodes need not be in order
        for node in list(waiting):
            if node.op_type == "Concat" and all(name in behind for name in node.input):
                behind[node.output[0]] = [column for name in node.input for column in behind[name]]
            elif node.input and node.input[0] in behind:
                _note(node, behind[node.input[0]], facts)
                if node.op_type in KEEPS:
                    behind[node.output[0]] = behind[node.input[0]]
                if node.op_type in SELECTS and (places := _places(graph, node.input[1])) is not None:
                    behind[node.output[0]] = [behind[node.input[0]][place] for place in places]
            else:
                continue
            waiting.remove(node)


def _places(graph: Any, name: str) -> list[int] | None:
    """The constant column numbers that a node selects."""
    from onnx import numpy_helper

    found = next((one for one in graph.initializer if one.name == name), None)
    return None if found is None else [int(place) for place in numpy_helper.to_array(found).ravel()]


def _note(node: Any, columns: list[str], facts: Facts) -> None:
    found = {one.name: one for one in node.attribute}
    if node.op_type == "OneHotEncoder" and len(columns) == 1:
        texts = [value.decode() for value in found["cats_strings"].strings] if "cats_strings" in found else []
        facts[columns[0]]["categories"] = texts or list(found["cats_int64s"].ints)
    if node.op_type == "Scaler" and len(found["offset"].floats) == len(columns):
        for name, mean, scale in zip(columns, found["offset"].floats, found["scale"].floats, strict=True):
            spread = SPREAD / abs(scale) if scale else 0.0
            facts[name]["bounds"] = round_out(mean - spread, mean + spread)
    if node.op_type == "Imputer" and "imputed_value_floats" in found:
        values = np.broadcast_to(np.array(found["imputed_value_floats"].floats), (len(columns),))
        for name, value in zip(columns, values.tolist(), strict=True):
            facts[name]["missing"] = value


def _feature(one: Any, found: dict[str, Any]) -> DraftFeature:
    element = one.type.tensor_type.elem_type
    if "categories" in found or element == STRING:
        values = {"values": found["categories"]} if "categories" in found else {}
        return DraftFeature(one.name, "categorical", values, source="the model's encoder")
    if element == TRUTH:
        return DraftFeature(one.name, "binary")
    suggested = dict(found.get("bounds", {}))
    if "missing" in found and (not suggested or suggested["low"] <= found["missing"] <= suggested["high"]):
        suggested["missing"] = found["missing"]
    known = {"integer": True} if element in WHOLE else {}
    return DraftFeature(one.name, "numeric", known, suggested, "the model's scaler")
