"""The mathematics of one private question: no rows are stored here, and no noise is drawn. Each bound has a proof in `proofs/`.

Statistics and bounds:  sensitivity.py (how far one record moves each statistic: the source of every noise scale), moments.py, release_moments.py,
                        label_moments.py, marginals.py, baseline_shapley.py (what is summed over rows), expected_labels.py (labels compared with a plane)
Planes:                 plane.py (which plane explains), weights.py (which rows count as near), ball.py (where slopes may be), free_plane.py,
                        plane_bounds.py, reach.py and shape.py (how much noise a gradient needs)
Encoded columns:        layout.py (which columns belong together), cells.py and value_bins.py (values as finitely many cells), answer_scale.py (units)
Public randomness:      row_hash.py (a row's own hash), uniforms.py (numbers that protect nothing), text_prior.py (a probability for every text)
Tools:                  arrays.py (type aliases), compiling.py (how inner loops are compiled)
"""
