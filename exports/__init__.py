"""Trained models in the formats of other libraries, each in a folder that needs nothing of this project."""
