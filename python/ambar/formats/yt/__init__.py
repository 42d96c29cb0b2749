"""Datasets of yt: outputs of codes that ambar has no reader of."""
