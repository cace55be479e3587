"""What goes wrong with data, in messages of one line that say what to do."""


class DataError(ValueError):
    """Data that was read but is not what it should be."""


class DataUnavailable(OSError):
    """Data that cannot be read, written or fetched."""
