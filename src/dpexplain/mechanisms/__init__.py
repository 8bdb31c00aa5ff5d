"""What is released from private rows, and what it costs. `ports.py` has the interfaces on one page; `door.py` is the only place where noise is drawn.

Mechanisms:      basic.py, adaptive.py, enhanced.py, influence.py, shapley.py: one file each; registry.py lists them by name
By moments:      moments_plan.py (noisy sums of all rows), moments_answer.py (an answer from them), shared_sums.py and shared_answer.py (sums that
                 several answers use), released_centres.py (where sums are centred)
By descent:      gradient.py (the bounded query), descent.py (the loop and its steps), start.py, model_start.py and warm.py (where it starts),
                 plane_choice.py (which plane), idle.py (directions that rows do not determine), measured.py (the paper's rule made private)
Of releases:     release_plan.py, histogram_counts.py (how columns are distributed), marginals_plan.py (counts for reference records),
                 label_moments_plan.py (labels of another model)
Before a domain: discovery_counts.py, misfit_counts.py
The past:        history.py (what was released), history_prediction.py (free answers from it)
Noise:           gaussian.py (how much, and on which grid), setting.py (the public facts it depends on)
The model:       quiet.py (its warnings about private rows are not shown)
Reproduction:    paper_algorithms.py (not private)
"""
