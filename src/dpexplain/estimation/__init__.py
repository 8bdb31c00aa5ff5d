"""From noisy statistics to estimates and synthetic records. Pure post-processing: nothing here reads private rows or draws private noise.

denoise.py       moments from noisy sums                reference.py        public points in place of rows
answer.py        planes from moments                    local_solve.py      many constrained least-squares problems at once
calibrate.py     error bars by parametric bootstrap     regression.py       planes from past explanations
population.py    records from noisy tables              gibbs.py            potentials for all pairs of attributes
records_from_bins.py  values within bins                raking.py           weights that match released tables
response.py      how weights respond to noise           local_reference.py  planes from weighted synthetic records
label_newton.py  Newton steps for labels of public points    plane_building.py   planes of a release from its moments
"""
