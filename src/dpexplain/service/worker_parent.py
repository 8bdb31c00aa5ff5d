"""The parent of several workers: it replaces those that end, and stops once none is left and no other can start.

The parent holds the port, so while no worker serves, callers would wait for answers that nobody gives. A service that has stopped refuses them at once,
and whatever supervises it can start it anew.
"""

from __future__ import annotations

from typing import Any

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from dpexplain.errors import DpexplainError

FAILURES = 3  # workers that ended without one that serves, for each worker that there should be, after which the parent gives up
PATIENCE = 1.0  # seconds for a worker to say whether it serves


class Workers(Multiprocess):
    """As uvicorn's, which would start workers for ever."""

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self._failures = 0

    def run(self) -> None:
        """Run until told to stop. DpexplainError once no worker can start."""
        super().run()
        if self._failures >= self._most or any(one.exitcode == STARTUP_FAILURE for one in self.processes):
            raise DpexplainError(
                f"no worker is left and none can start ({self._failures} attempts; the messages above say why). The service has stopped, so that "
                "callers are refused at once. Mend the cause and start it again"
            )

    def init_processes(self) -> None:
        super().init_processes()
        self._let_workers_end_questions()

    def keep_subprocess_alive(self) -> None:
        """Replace workers that ended, and count those that end while none serves."""
        before = list(self.processes)
        super().keep_subprocess_alive()
        self._let_workers_end_questions()
        replaced = sum(new is not old for new, old in zip(self.processes, before, strict=True))
        if not replaced:
            return
        serving = any(one.is_ready(PATIENCE) for one in self.processes)
        self._failures = 0 if serving else self._failures + replaced
        if self._failures >= self._most:
            self.should_exit.set()

    def _let_workers_end_questions(self) -> None:
        """Close this process's copies of the workers' ends: the question whether a worker is alive then ends with the worker, and not when time is up."""
        for one in self.processes:
            one.child_conn.close()

    @property
    def _most(self) -> int:
        return FAILURES * self.processes_num
