from knowledge_app.services.documents.blame import blame


def test_each_line_has_the_state_it_came_with():
    assert blame(["a\nb", "a\nx\nb", "a\nx\nc"]) == [0, 1, 2]


def test_a_line_that_came_back_counts_from_its_return():
    assert blame(["a\nb", "a", "a\nb"]) == [0, 2]


def test_no_text_has_no_lines():
    assert blame([]) == []
