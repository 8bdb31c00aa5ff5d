"""Results: explanations, contributions, and batches of both. They never hold rows."""
