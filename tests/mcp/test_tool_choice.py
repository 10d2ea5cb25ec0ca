"""Whether the tools' descriptions lead to the right tool, tested with the words that a request shares with each tool.

The scorer is simpler than any model: a description that it understands is clear for a model too.
"""

import math
import re
from collections import Counter

import pytest
import snowballstemmer

from tests.mcp.conftest import in_memory

STEMMER = snowballstemmer.stemmer("english")
STOP = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in is are was were be it its that this these those i you we he she they my your our me us do "
        "does did and or for from with what which who how on at by as there have has had about",
    )
)
MIN_SHARE = 0.9
REQUESTS = {
    "memory_remember": [
        "I prefer tabs over spaces",
        "Remember that our deploys happen on Thursdays",
        "Note for later: the flaky test was caused by the clock",
        "Don't forget that I am allergic to nuts",
        "We learned that the cache must be warmed first; keep this lesson",
    ],
    "memory_recall": [
        "What do you know about the label service?",
        "Before you start the task, recall what we know about deployments",
        "What are my preferences for code style?",
        "What did we decide about the database?",
    ],
    "memory_search": [
        "Search everything for the word zeppelin",
        "In which conversation did I mention Oslo?",
        "Find the message where I pasted the stack trace",
    ],
    "memory_read": ["What is the value of the key theme?", "Read the exact value stored under api_base"],
    "memory_write": [
        "Set the key theme to dark",
        "Store port 8080 under the key server_port",
        "Save this JSON object as the value of settings",
    ],
    "memory_list": ["Which keys are stored?", "List all keys that start with deploy"],
    "history_append": [
        "Log that the migration ran today",
        "Write in the history log that the release is done",
        "Add an entry to the log of what happened",
    ],
    "history_search": ["Show the latest entries of the history log", "What does the log say about the migration?"],
    "memory_document_read": [
        "Read MEMORY.md",
        "Show me the whole document SOUL.md",
        "What did USER.md say in revision 3?",
    ],
    "memory_fact_add": ["Add a fact to MEMORY.md: Ana leads Atlas", "Put this fact into the document USER.md"],
    "memory_correct": [
        "That is wrong: Ana leads Borealis, correct it",
        "Correct what you remembered, it has a mistake",
        "Fix the text of observation 12",
        "I changed my mind: I use spaces now, update what you remembered",
    ],
    "memory_withdraw": [
        "Forget what I said about tabs",
        "Delete that memory, it is no longer true",
        "Withdraw finding 7",
    ],
    "memory_why": [
        "Why do you believe that Ana leads Atlas?",
        "Where does this fact come from?",
        "Which message is the source of fact 12?",
    ],
    "memory_line_replace": [
        "Change one line of MEMORY.md",
        "Replace the line '- Ana keeps bees' in the document",
        "Remove this line from SOUL.md",
    ],
    "memory_document_propose": [
        "Rewrite the whole document and propose the new text",
        "Propose a new version of USER.md for review",
        "Create a new document notes.md",
    ],
    "memory_recent": [
        "What is new since yesterday?",
        "What changed in the last 7 days?",
        "Anything new since Monday?",
    ],
    "session_list": ["Which conversations did we have earlier?", "List the sessions of the channel cli"],
    "session_read": ["Read the last messages of the session cli:main", "Show me what was said in that conversation"],
    "session_append": [
        "Save this conversation so that the next one finds it",
        "Append these messages to the session",
    ],
    "session_clear": ["Clear the session", "Start this session afresh with an empty context"],
}


def words_of(text):
    words = [word for word in re.findall(r"[a-z]+", text.replace("_", " ").lower()) if word not in STOP]
    return Counter(STEMMER.stemWords(words))


def tool_text(tool):
    fields = tool.input_schema["properties"]
    return " ".join([tool.name, tool.description, *fields, *(one.get("description", "") for one in fields.values())])


def choose(request, tools):
    """Return the name of the tool whose words match best, weighted with BM25."""
    documents = {tool.name: words_of(tool_text(tool)) for tool in tools}
    average = sum(sum(words.values()) for words in documents.values()) / len(documents)
    scores = Counter()
    for word in words_of(request):
        holders = [name for name, words in documents.items() if word in words]
        weight = math.log(1 + (len(documents) - len(holders) + 0.5) / (len(holders) + 0.5))
        for name in holders:
            count, length = documents[name][word], sum(documents[name].values())
            scores[name] += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / average))
    return scores.most_common(1)[0][0] if scores else ""


@pytest.mark.slow
def test_descriptions_lead_to_the_right_tool():
    tools = in_memory(lambda client: client.list_tools()).tools
    expected = {request: name for name, requests in REQUESTS.items() for request in requests}

    wrong = {request: choose(request, tools) for request, name in expected.items() if choose(request, tools) != name}

    assert set(REQUESTS) == {tool.name for tool in tools}
    assert len(expected) >= 40
    assert len(wrong) <= len(expected) * (1 - MIN_SHARE), wrong
