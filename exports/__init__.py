"""Export trained models to the formats of other libraries, as folders that do not need this project."""
