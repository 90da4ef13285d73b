"""The same work in PyTorch, transformers and CTranslate2, to compare with."""
