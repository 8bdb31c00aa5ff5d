"""Pictures of results. Functions take names and numbers, never data, and return a matplotlib Figure (or HTML where their documentation states it)."""

from dpexplain.plots import slopes as slopes
from dpexplain.plots import steps as steps
from dpexplain.plots.bars import bars as bars
from dpexplain.plots.beeswarm import beeswarm as beeswarm
from dpexplain.plots.beeswarm import importance as importance
from dpexplain.plots.comparing import comparison as comparison
from dpexplain.plots.curves import budget as budget
from dpexplain.plots.curves import convergence as convergence
from dpexplain.plots.curves import histogram as histogram
from dpexplain.plots.dependence import dependence as dependence
from dpexplain.plots.dependence import scatter as scatter
from dpexplain.plots.highlighted_text import highlighted as highlighted
from dpexplain.plots.highlighted_text import highlighted_html as highlighted_html
from dpexplain.plots.images import overlay as overlay
from dpexplain.plots.waterfall import waterfall as waterfall
