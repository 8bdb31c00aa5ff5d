"""Pay once, explain forever: one private release answers unlimited queries from one portable file.

plan.py            what a release asks of private rows      release.py   the release, and the function that makes one
reference_data.py  synthetic records, labelled by the model  batch.py     many explanations at once
file.py            the file format                           page.py      the published page
"""
