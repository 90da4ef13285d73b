"""What attention heat maps mean: compare what they suggest with what the model does without a word or a head."""
