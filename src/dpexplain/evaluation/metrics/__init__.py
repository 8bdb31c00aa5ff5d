"""How good an explanation is: distance from the exact optimum, faithfulness, stability, agreement. Offline only: reads private rows."""
