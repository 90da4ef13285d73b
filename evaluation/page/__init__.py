"""A page that holds a trained model and runs it in the reader's browser."""
