"""How days and times are written, by language, where that is not Django's way."""
