"""Translation of text, its scores by the one evaluator, and views of the attention behind it."""
