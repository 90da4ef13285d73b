"""A page that contains a trained model and runs it in the reader's browser."""
