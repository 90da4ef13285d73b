"""Translate text, score translations with a single evaluator, and show the attention behind them."""
