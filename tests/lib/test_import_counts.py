from collections import Counter

from memoryhub.lib.import_counts import ImportCounts, import_sentence


def test_an_import_is_described_in_the_words_of_its_page():
    many = ImportCounts(added=Counter(entries=1_200, sessions=2, history=1, summaries=1), updated=Counter(sessions=1))

    text = "added 1,200 messages, 2 conversations, 1 history entry, 1 summary; updated 1 conversation"
    assert import_sentence(many) == f"Imported: {text}"
    assert import_sentence(ImportCounts()) == "Imported: nothing new"
