"""A ledger's stored answers as a history, each read once."""

from __future__ import annotations

from typing import Any

from dpexplain.answers.stored import quantity_and_plane, released_answer
from dpexplain.ledger import Ledger
from dpexplain.mechanisms.history import History


class PastAnswers:
    """Reads into `history` what a ledger has stored by now: noisy sums, and answers of one kind where they are asked for.

    What was answered under another declaration, such as another target, is about other labels and is passed over.
    Answers by moments rest on sums alone. A service gives many thousands of them, which it must neither keep in memory nor parse.
    """

    def __init__(self, ledger: Ledger, history: History, kind: tuple[str | None, str | None], declared: dict[str, Any]) -> None:
        self._ledger, self._history, self._kind, self._declared = ledger, history, kind, declared
        self._sums_read = self._answers_read = 0  # positions up to which they are in the history

    def read(self, *, answers: bool) -> History:
        """The history with all sums that any process has stored so far. Its answers are brought up to date only if `answers` is true."""
        if answers:
            for done in self._ledger.settled(after=self._answers_read):
                if done.position > self._sums_read:
                    self._take_sums(done.answer)
                if "stopped" in done.answer:
                    self._history.stopped = done.answer["details"]["paper"]
                elif self._is_of_this_kind(done.answer):
                    self._history.append(released_answer(done.answer))
                self._answers_read, self._sums_read = done.position, max(done.position, self._sums_read)
        else:
            found, end = self._ledger.settled_with("sums", after=self._sums_read)
            for done in found:
                self._take_sums(done.answer)
                self._sums_read = done.position
            self._sums_read = end
        return self._history

    def _take_sums(self, answer: dict[str, Any]) -> None:
        if "sums" in answer and self._is_about_these(answer):
            self._history.append_sums(answer["sums"])

    def _is_of_this_kind(self, answer: dict[str, Any]) -> bool:
        """Whether a stored answer belongs to this history. Releases and other mechanisms' answers on the same ledger do not."""
        domain = self._history.domain
        same_domain = domain is not None and len(answer.get("point", ())) == domain.width
        return same_domain and quantity_and_plane(answer) == self._kind and self._is_about_these(answer)

    def _is_about_these(self, answer: dict[str, Any]) -> bool:
        return bool(answer.get("declared", {}) == self._declared)
