"""Text to text through the model's search, and the scores of the result: the one evaluator."""
