from memoryhub.lib.layouts.problem_counts import MAX_PLACES, ProblemCounts
from memoryhub.lib.problem_groups import kind_of


def counted(*places, what="not JSON"):
    counts = ProblemCounts("a.jsonl")
    for counts.at in places:
        counts.add(what, "skipped", "rejected")
    return [(problem.line, problem.what) for problem in counts.problems()]


def test_a_problem_names_its_lines_or_records():
    assert counted("") == [(None, "not JSON")]
    assert counted(12) == [(12, "not JSON")]
    assert counted("msg_1") == [(None, "not JSON (record msg_1)")]
    assert counted(3, 1_200) == [(None, "not JSON (2 times, lines 3, 1,200)")]
    assert counted(3, 3) == [(3, "not JSON (2 times)")]
    assert counted(*range(1, 31))[0][1].endswith("lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)")
    assert MAX_PLACES == 10


def test_records_of_unknown_types_name_their_lines():
    counts = ProblemCounts("a.jsonl")
    for counts.at, name in ((4, "a"), (7, "b"), (9, "a")):
        counts.add_unknown(name)

    assert [one.what for one in counts.problems()] == ["has records of unknown types: a (2), b (1) (lines 4, 7, 9)"]


def test_problems_in_different_places_are_of_one_kind():
    whats = [what for places in ([""], [1], ["x"], [1, 2], ["x", "y"], [3, 3]) for _, what in counted(*places)]

    assert {kind_of(what, "skipped", "rejected") for what in whats} == {("not JSON", "skipped", "rejected")}
