"""Helpers that several folders share and that do not depend on stores."""
