"""How good is a private explanation? Everything here reads private rows for free: offline only, never behind a service."""

from dpexplain.evaluation.fidelity import Score as Score
from dpexplain.evaluation.fidelity import optimum as optimum
from dpexplain.evaluation.fidelity import score as score
