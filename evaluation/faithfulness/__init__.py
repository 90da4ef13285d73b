"""What heat maps of attention mean: what they say of a model, against what it does without a word or a head."""
