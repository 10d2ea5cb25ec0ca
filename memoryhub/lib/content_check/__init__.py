"""Check a text that is about to be stored as memory for hidden or embedded instructions.

``check_text`` is the only check of content; every write path calls it. It looks at what a text asks for (``shape``)
and at what it hides or loads (``hidden_content``), after normalising it (``normalising``). ``rules`` judges the
concepts that ``lexicon`` finds with the tables of words. Where a fact comes from is checked by ``provenance``.
docs/content-check.md describes what the check can and can't stop.
"""
