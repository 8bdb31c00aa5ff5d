"""From noisy statistics to estimates and synthetic records. Pure post-processing: nothing here reads private rows or draws private noise.

Moments:         denoise.py (estimates from noisy sums), relabelled_moments.py (of another model), label_expectation.py (what labels are compared with)
Public points:   reference.py (points in place of rows), margins.py (how their numbers are distributed), sobol.py, label_newton.py (labels of points),
                 public_points.py (those that a model is asked about)
Planes:          global_slopes.py (through all rows), moment_planes.py (near a record), reference_planes.py (from reference records), mixed_planes.py
                 (from both), independent_planes.py (as LIME's), plane_building.py, planes.py, compiled_planes.py, related.py (features that go together)
The paper's:     answer.py (planes through 0), local_solve.py (many constrained least-squares problems at once), regression.py (from past explanations)
Errors:          calibrate.py (parametric bootstrap), plane_errors.py, error_parts.py (noise, shrinkage, bias, sampling), local_change.py,
                 margin_doubt.py, response.py (of weights to noise), hidden_codes.py (values that noise may hide), noisy_directions.py (of which
                 noise may have made all variance), idle_numbers.py and counted_variances.py (numbers that use hardly any of their ranges)
Records:         known_covariances.py (tables that follow moments too), population.py (from noisy tables), records_from_bins.py, gibbs.py (to match
                 all tables), raking.py (weights that do), label_raking.py (to match labels in tables), local_reference.py (to match moments),
                 raked_records.py, coded_rows.py, nearest.py (how many are near a record)
Shapley values:  background.py (records to compare with), coalitions.py (any model), tree_shapley.py, boosted_shapley.py, word_shapley.py, surrogate.py
"""
