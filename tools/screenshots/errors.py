"""Why there are no screenshots."""


class NoScreenshots(Exception):
    """The screenshots cannot be made; the text says why, and what to do."""
