"""A release as an artefact of an MLflow run: its file, its page, and what it costs. MLflow is imported only here."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpexplain.arguments import require_kind
from dpexplain.errors import ParameterError
from dpexplain.privacy.budget import round_up
from dpexplain.release.release import Release


def log_release(release: Release, artifact_path: str = "dpexplain", *, page: bool = True) -> None:
    """Log `release.dpx`, its page and its guarantee to the active MLflow run (or to a new one, as MLflow does).

    Everything that is logged is public already: a release holds no rows. Another `artifact_path` stores a second release in the same run.
    """
    require_kind("release", release, Release, "Pass what dpx.release or dpx.load returns")
    mlflow = _mlflow()
    guarantee = release.guarantee
    facts = {"epsilon": round_up(guarantee.epsilon, 6), "delta": guarantee.delta, "columns": len(release.names)}
    mlflow.log_params({f"{artifact_path}.{name}": value for name, value in facts.items()})
    mlflow.set_tag(f"{artifact_path}.guarantee", str(guarantee))
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "release.dpx")
        if page:
            release.publish(Path(folder) / "release.html")
        mlflow.log_artifacts(folder, artifact_path)


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise ParameterError("logging a release needs MLflow, which is not installed. Run: pip install mlflow") from None
    return mlflow
