"""service.toml: the backend, the access rules and the budget of a service. Unknown keys are refused, so that a misspelt limit is not a missing one."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dpexplain.arguments import file_errors, require_regular_file
from dpexplain.core import weights
from dpexplain.core.plane import Plane, require_plane
from dpexplain.domain import Domain
from dpexplain.domain.interface import format_list, hint
from dpexplain.errors import InputError, NotPrivateError, ParameterError
from dpexplain.mechanisms.adaptive import DEFAULT_PRICE, Adaptive
from dpexplain.mechanisms.ports import Mechanism
from dpexplain.mechanisms.registry import MECHANISMS
from dpexplain.privacy.budget import Budget
from dpexplain.registration.model_sources import ModelSource
from dpexplain.registration.options import RegistrationOptions
from dpexplain.registration.sources import DataSource

LIMITS = {  # the valid range of each number under [service]
    "port": (1, 65_535),
    "workers": (1, 256),
    "requests_per_minute": (0, 1_000_000),
    "max_body": (1, 1 << 26),
    "max_instances": (1, 10_000),
}
TYPES = {  # of the keys that are not fields of a class
    "[release]": {"file": "str"},
    "[data]": {
        "file": "str",
        "domain": "str",
        "label": "str",
        "name": "str",
        "unit": "str",
        "max_rows_per_unit": "int",
        "relation": "str",
        "size": "int",
        "stream": "bool",
        "target": "str, int or float",
        "model_card": "str",
    },
    "[model]": {
        "path": "str",
        "target": "str, int or float",
        "output": "str",
        "input": "str",
        "cache": "str",
        "trusted": "bool",
        "bounds": "list",
    },
    "[ledger]": {"url": "str", "heads": "str"},
}
ACCEPTED: dict[str, Any] = {
    "int": int,
    "bool": bool,
    "str": str,
    "float": (int, float),
    "str, int or float": (str, int, float, bool),
    "list": list,
    "str | None": str,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is served. `open` lets anyone ask who can reach it; `log_records` writes questions to the log."""

    name: str = "model"
    title: str = "Why does the model answer as it does?"
    outcome: str = "the explained answer"
    description: str = ""
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    keys: str | None = None
    open: bool = False
    open_metrics: bool = False
    requests_per_minute: int = 600
    max_body: int = 65_536
    max_instances: int = 64
    log_records: bool = False
    tls_certificate: str | None = None
    tls_key: str | None = None

    def __post_init__(self) -> None:
        if (self.keys is None) != self.open:
            raise ParameterError(
                'a service needs to know who may ask. Set keys = "keys.json" under [service] and run `dpexplain serve keys add`, '
                "or open = true to let anyone ask who can reach it"
            )
        if not self.host.strip():  # a server would listen at every address of the machine
            raise ParameterError('[service] host is empty. Name an address: "127.0.0.1" for this machine, "0.0.0.0" for everyone')
        if not self.name.isascii() or not self.name.replace("-", "").replace("_", "").isalnum():
            raise ParameterError(f"[service] name must be letters, digits, - and _, got {self.name!r}. It is part of an address")
        for what, (least, most) in LIMITS.items():
            value = getattr(self, what)
            if not least <= value <= most:
                raise ParameterError(f"[service] {what} must be at least {least} and at most {most}, got {value}. Correct it")
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ParameterError("TLS needs both tls_certificate and tls_key under [service]. Name both, or neither")


@dataclass(frozen=True, slots=True)
class AskedModel:
    """A model that can be asked while the service answers, and what its answers are."""

    source: ModelSource
    terms: RegistrationOptions


@dataclass(frozen=True, slots=True)
class FromRows:
    """Private rows, the mechanism that answers from them, and the budget every answer is paid from."""

    source: DataSource
    mechanism: Mechanism
    budget: Budget
    ledger: str
    heads: Path  # the file that stores the ledger's head
    baseline: dict[str, Any] | None = None  # a public record that contributions are compared with


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    path: Path
    settings: Settings
    release: Path | None = None
    rows: FromRows | None = None
    model: AskedModel | None = None  # beside a release: answers are then SHAP values
    plane: Plane | None = None  # of a release's answers; None: the release's own

    @property
    def streams(self) -> bool:
        """Whether rows stay in their files."""
        return self.rows is not None and self.rows.source.stream is True

    @property
    def keys(self) -> Path | None:
        return None if self.settings.keys is None else self.path.parent / self.settings.keys


def load_config(path: str | Path) -> ServiceConfig:
    """Read and check; paths in the file are relative to the file."""
    path = Path(path).absolute()
    if not os.path.exists(path):  # also false for what cannot be a name
        raise ParameterError(f"there is no file {path}. docs/service.md shows what goes into it")
    require_regular_file(path)
    with file_errors(path, "read"):
        content = path.read_bytes()
    try:
        data = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ParameterError(f"{path.name} is not valid TOML ({error}). Correct it") from None
    _require_plain_text(data, path.name)
    _require_keys(data, {"service", "release", "data", "model", "mechanism", "budget", "ledger", "baseline"}, path.name)
    settings = _build(Settings, _table(data, "service"), "[service]")
    if ("release" in data) == ("data" in data):
        raise ParameterError(
            f"{path.name} must name what it answers from. Write either [release] with a file, or [data] and [budget]"
        )
    if "release" in data:
        _require_keys(data, {"service", "release", "model"}, f"{path.name} with a [release], which needs no data and no budget,")
        release = _table(data, "release")
        _require_keys(release, {"file", "plane"}, "[release]")
        file = path.parent / _require_entry(release, "file", "[release]")
        plane = _release_plane(release.get("plane"))
        return ServiceConfig(path, settings, release=file, model=_read_asked_model(data, path.parent), plane=plane)
    return ServiceConfig(path, settings, rows=_rows(data, path))


def _release_plane(given: Any) -> Plane | None:
    """A release does not hold the model's answer at a record, so its planes cannot go through it."""
    if given is None:
        return None
    if require_plane(given) == "anchored":
        raise ParameterError("[release] plane = 'anchored' needs the model's answer at each record. Write 'fitted' or 'paper'")
    return require_plane(given)


def _rows(data: Mapping[str, Any], path: Path) -> FromRows:
    folder, budget, ledger = path.parent, _table(data, "budget"), _table(data, "ledger")
    _require_keys(budget, {"epsilon", "delta"}, "[budget]")
    _require_keys(ledger, {"url", "heads"}, "[ledger]")
    total = Budget(*(_number(_require_entry(budget, key, "[budget]"), f"[budget] {key}") for key in ("epsilon", "delta")))
    heads = folder / str(ledger.get("heads", f"{path.stem}.heads.json"))
    baseline = dict(_table(data, "baseline")) or None
    mechanism = mechanism_of(_table(data, "mechanism"))
    _require_payable(mechanism, total)
    return FromRows(_source(data, folder), mechanism, total, _ledger_url(ledger, folder), heads, baseline)


def _read_asked_model(data: Mapping[str, Any], folder: Path) -> AskedModel | None:
    """The model that a release's answers are computed with, where one is named."""
    if not (model := dict(_table(data, "model"))):
        return None
    _require_keys(model, {"path", "trusted", "input", "target", "output", "bounds"}, "[model] beside a [release]")
    options = {key: model[key] for key in ("target", "output", "bounds") if key in model}
    source = ModelSource(_model_path(model, folder), model.get("trusted") is True, model.get("input"))
    return AskedModel(source, RegistrationOptions(**options))


def _source(data: Mapping[str, Any], folder: Path) -> DataSource:
    given, model = dict(_table(data, "data")), dict(_table(data, "model"))
    options = {field.name for field in fields(RegistrationOptions)} - {"cap"}  # [budget] is the cap of a service
    _require_keys(given, {"file", "domain", "label", "stream"} | options, "[data]")
    _require_keys(model, {"path", "trusted", "input", "target", "output", "bounds", "cache"}, "[model]")
    terms = {key: table[key] for table in (given, model) for key in table if key in options}
    if "model_card" in terms:
        terms["model_card"] = folder / terms["model_card"]
    given = {key: value for key, value in given.items() if key not in options}
    given["file"] = _place(str(_require_entry(given, "file", "[data]")), folder)
    given["domain"] = Domain.load(folder / _require_entry(given, "domain", "[data]"))
    if model:
        given["model"] = ModelSource(_model_path(model, folder), model.get("trusted") is True, model.get("input"))
        given["cache"] = folder / model["cache"] if "cache" in model else None
    return DataSource(**given, terms=RegistrationOptions(**terms))


def _place(where: str, folder: Path) -> str | Path:
    """A file, a folder or a pattern beside service.toml, or an address such as s3://… as it is."""
    return where if "://" in where else folder / where


def _model_path(model: Mapping[str, Any], folder: Path) -> str:
    where = str(_require_entry(model, "path", "[model]"))
    return str(folder / where) if (folder / where).is_file() else where


def _ledger_url(ledger: Mapping[str, Any], folder: Path) -> str:
    """Relative SQLite files lie beside service.toml, wherever the service is started."""
    url = str(_require_entry(ledger, "url", "[ledger]"))
    relative = url.startswith("sqlite:///") and not url.startswith("sqlite:////")
    return f"sqlite:///{folder / url.removeprefix('sqlite:///')}" if relative else url


def _require_payable(mechanism: Mechanism, total: Budget) -> None:
    """Raise ParameterError where the whole budget does not pay for one answer."""
    asked = Budget(getattr(mechanism, "epsilon", total.epsilon), getattr(mechanism, "delta", total.delta))
    if asked.quanta > total.quanta:
        raise ParameterError(
            f"an answer at [mechanism] epsilon = {asked.epsilon:g}, delta = {asked.delta:g} costs more than the whole [budget] "
            f"(epsilon = {total.epsilon:g}, delta = {total.delta:g}), so nothing could be answered. Lower epsilon under [mechanism]"
        )


def mechanism_of(given: Mapping[str, Any]) -> Mechanism:
    """A mechanism from its public parameters; what is not private is refused here, before anything is loaded."""
    options = dict(given) if "kind" in given else DEFAULT_PRICE | dict(given)
    kind = options.pop("kind", Adaptive.name)
    _require_type(kind, "str", "[mechanism] kind")
    if kind not in MECHANISMS:
        raise ParameterError(
            f"[mechanism] kind must be one of {format_list(MECHANISMS)}, got {kind!r}{hint(kind, MECHANISMS)}. Correct it"
        )
    if {"noise", "seed"} & options.keys():
        raise NotPrivateError("a service draws its noise from the operating system only. Remove noise and seed from [mechanism]")
    if "weight" in options:
        options["weight"] = _weight(options["weight"])
    mechanism: Mechanism = _build(MECHANISMS[kind], options, "[mechanism]")
    require_servable(mechanism)
    return mechanism


def _weight(given: Any) -> weights.Weight:
    try:
        return weights.from_dict(given)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise ParameterError(
            f'[mechanism] weight cannot be read, got {given!r:.80}. Write weight = {{ kind = "gaussian", width = 0.8 }}'
        ) from None


def require_servable(mechanism: Mechanism) -> None:
    if not mechanism.private or mechanism.to_dict().get("calibration") == "paper":
        raise NotPrivateError('calibration = "paper" is for offline reproduction and is never served. Remove it from [mechanism]')


def _build(kind: Any, given: Mapping[str, Any], where: str) -> Any:
    _require_keys(given, {field.name for field in fields(kind)}, where)
    for field in fields(kind):
        if field.name in given and field.type in ACCEPTED:
            _require_type(given[field.name], str(field.type), f"{where} {field.name}")
    return kind(**given)


def _require_type(value: Any, kind: str, where: str) -> None:
    if not isinstance(value, ACCEPTED[kind]) or (isinstance(value, bool) and kind in ("int", "float")):
        raise ParameterError(f"{where} must be {kind}, got {value!r}. Correct it")


def _number(value: Any, where: str) -> float:
    _require_type(value, "float", where)
    return float(value)


def _table(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, Mapping):
        raise ParameterError(f"{name} must be a table. Write [{name}] and its keys below")
    for key, kind in TYPES.get(f"[{name}]", {}).items():
        if key in table:
            _require_type(table[key], kind, f"[{name}] {key}")
    return table


def _require_plain_text(value: Any, where: str) -> None:
    """No NUL in any text: paths and addresses cannot hold one."""
    if isinstance(value, str) and "\0" in value:
        raise ParameterError(f"{where} holds a NUL character. Remove it")
    if isinstance(value, Mapping):
        for key, one in value.items():
            _require_plain_text(one, f"{where} {key}")
    elif isinstance(value, list):
        for one in value:
            _require_plain_text(one, where)


def _require_entry(table: Mapping[str, Any], key: str, where: str) -> Any:
    if key not in table:
        raise InputError(f"{where} lacks {key}. docs/service.md shows a whole file")
    return table[key]


def _require_keys(data: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in data:
        if key not in known:
            raise ParameterError(f"{where} does not know {key!r}{hint(key, known)}. Use only {format_list(sorted(known))}")
