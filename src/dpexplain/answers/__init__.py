"""What is answered: explanations, contributions, and batches of both. They hold results, never rows."""
