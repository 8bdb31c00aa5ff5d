"""A release as an artefact of an MLflow run: its file, its page, and what it costs. MLflow is imported only here."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dpexplain.errors import ParameterError
from dpexplain.release.release import Release


def log_release(release: Release, artifact_path: str = "dpexplain", *, page: bool = True) -> None:
    """Log `release.dpx`, its page and its guarantee to the active MLflow run (or to a new one, as MLflow does).

    Everything that is logged is public already: a release holds no rows.
    """
    mlflow = _mlflow()
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "release.dpx")
        if page:
            release.publish(Path(folder) / "release.html")
        mlflow.log_artifacts(folder, artifact_path)
    guarantee = release.guarantee
    mlflow.log_params(
        {"dpexplain.epsilon": guarantee.epsilon, "dpexplain.delta": guarantee.delta, "dpexplain.columns": len(release.names)}
    )
    mlflow.set_tag("dpexplain.guarantee", str(guarantee))


def _mlflow() -> Any:
    try:
        import mlflow
    except ImportError:
        raise ParameterError("logging a release needs MLflow, which is not installed. Run: pip install mlflow") from None
    return mlflow
