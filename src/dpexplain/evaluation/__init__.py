"""How good is a private explanation? Everything here reads private rows for free: offline only, never behind a service."""

from dpexplain.evaluation.fidelity import Score as Score
from dpexplain.evaluation.fidelity import compare as compare
from dpexplain.evaluation.fidelity import local_moments as local_moments
from dpexplain.evaluation.fidelity import optimum as optimum
from dpexplain.evaluation.fidelity import score as score
from dpexplain.evaluation.memory import remember as remember
