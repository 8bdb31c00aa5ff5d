"""How good is a private explanation? Everything here reads private rows for free: offline only, never behind a service."""

from dpexplain.core.baseline_shapley import largest_norm
from dpexplain.core.moments import Moments as Moments
from dpexplain.evaluation.audit.audit import Audit as Audit
from dpexplain.evaluation.audit.audit import audit as audit
from dpexplain.evaluation.audit.membership import Membership as Membership
from dpexplain.evaluation.audit.membership import membership as membership
from dpexplain.evaluation.audit.targets import Refining as Refining
from dpexplain.evaluation.audit.targets import Releasing as Releasing
from dpexplain.evaluation.baselines.comparison import Comparison as Comparison
from dpexplain.evaluation.baselines.comparison import baselines as baselines
from dpexplain.evaluation.baselines.inputs import ColumnSpread as ColumnSpread
from dpexplain.evaluation.baselines.inputs import column_spread as column_spread
from dpexplain.evaluation.baselines.inputs import labelled_rows as labelled_rows
from dpexplain.evaluation.baselines.lime import lime as lime
from dpexplain.evaluation.baselines.mim import mim as mim
from dpexplain.evaluation.baselines.shap import row_shapley as row_shapley
from dpexplain.evaluation.baselines.shap import shap_values as shap_values
from dpexplain.evaluation.metrics.agreement import Agreement as Agreement
from dpexplain.evaluation.metrics.agreement import agreement as agreement
from dpexplain.evaluation.metrics.faithfulness import Curve as Curve
from dpexplain.evaluation.metrics.faithfulness import at_points as at_points
from dpexplain.evaluation.metrics.faithfulness import deletion as deletion
from dpexplain.evaluation.metrics.faithfulness import infidelity as infidelity
from dpexplain.evaluation.metrics.faithfulness import insertion as insertion
from dpexplain.evaluation.metrics.faithfulness import lipschitz as lipschitz
from dpexplain.evaluation.metrics.faithfulness import max_sensitivity as max_sensitivity
from dpexplain.evaluation.metrics.faithfulness import pgi as pgi
from dpexplain.evaluation.metrics.faithfulness import pgu as pgu
from dpexplain.evaluation.metrics.fidelity import Score as Score
from dpexplain.evaluation.metrics.fidelity import compare as compare
from dpexplain.evaluation.metrics.fidelity import local_moments as local_moments
from dpexplain.evaluation.metrics.fidelity import local_moments_of as local_moments_of
from dpexplain.evaluation.metrics.fidelity import minimise as minimise
from dpexplain.evaluation.metrics.fidelity import optimum as optimum
from dpexplain.evaluation.metrics.fidelity import score as score
from dpexplain.evaluation.metrics.nearby import Nearby as Nearby
from dpexplain.evaluation.metrics.stored_moments import remember as remember
from dpexplain.evaluation.rehearsal.rehearsal_result import Rehearsal as Rehearsal
from dpexplain.evaluation.rehearsal.rehearse import rehearse as rehearse
from dpexplain.mechanisms.door import Door as Door
from dpexplain.mechanisms.door import listening as listening
from dpexplain.mechanisms.history import History as History
from dpexplain.mechanisms.history import ReleasedAnswer as ReleasedAnswer

largest_shapley_norm = largest_norm
"""No Shapley vector of one background row is longer, for labels in [-1, 1]; a function of the number of features (`proofs/shapley.md`)."""
