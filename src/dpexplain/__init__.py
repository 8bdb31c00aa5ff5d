"""dpexplain: explain black-box models to anyone without exposing anyone in the data."""
