"""The programs that ``bench/programs/programs.py`` runs, with their settings and commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Program:
    """``home``: below the user's home. The functions return arguments; None: it can't do that without a terminal.

    ``latest``: returns the id of the newest session in the home. ``terminal``: the arguments with which it goes on
    with the newest session in a terminal, and what is typed there to compact it. ``node``: the npm package of its
    Node.js.
    """

    name: str
    package: str
    command: str
    home: str
    env: Callable[[str], dict[str, str]]
    turn: Callable[[str], list[str]]
    resume: Callable[[str], list[str]]
    latest: Callable[[Path], str] = lambda _home: ""
    fork: Callable[[str, str], list[str]] | None = None
    compact: Callable[[str], list[str]] | None = None
    config: Callable[[Path, str], None] = lambda _home, _url: None
    terminal: tuple[list[str], str] | None = None
    node: str = ""
    is_python: bool = False

    def binary(self, tools: Path) -> Path:
        folder = f"{self.name}/bin" if self.is_python else "node_modules/.bin"
        return tools / folder / self.command


def newest_file(pattern: str, length: int = 36) -> Callable[[Path], str]:
    def find(home: Path) -> str:
        return max(home.glob(pattern), key=lambda path: path.stat().st_mtime_ns).stem[-length:]

    return find


def configure_codex(home: Path, url: str) -> None:
    provider = f'[model_providers.local]\nname = "local"\nbase_url = "{url}/v1"\nenv_key = "MODEL_KEY"\n'
    home.mkdir(parents=True)
    (home / "config.toml").write_text(
        f'model = "scripted"\nmodel_provider = "local"\n{provider}wire_api = "responses"\n'
    )


def configure_opencode(home: Path, url: str) -> None:
    options = {"options": {"baseURL": f"{url}/v1", "apiKey": "none"}, "models": {"scripted": {"name": "scripted"}}}
    settings = {"provider": {"anthropic": options}, "model": "anthropic/scripted", "autoupdate": False}
    settings |= {"small_model": "anthropic/scripted", "permission": "allow"}
    folder = home.parents[2] / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings))


def configure_gemini(home: Path, _url: str) -> None:
    home.mkdir(parents=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    (home / "settings.json").write_text(json.dumps(settings))


def configure_openclaw(home: Path, url: str) -> None:
    home.mkdir(parents=True)
    model = {"id": "scripted", "name": "scripted", "input": ["text"], "contextWindow": 200_000, "maxTokens": 8192}
    provider = {"baseUrl": f"{url}/v1", "apiKey": "none", "api": "openai-responses", "models": [model]}
    settings = {
        "agents": {"defaults": {"model": {"primary": "local/scripted"}}},
        "memory": {"search": {"enabled": False}},
    }
    settings |= {"models": {"providers": {"local": provider}}, "tools": {"toolSearch": False}}
    (home / "openclaw.json").write_text(json.dumps(settings))


def configure_hermes(home: Path, url: str) -> None:
    home.mkdir(parents=True)
    (home / "config.yaml").write_text(
        f"model:\n  default: scripted\n  provider: custom\n  base_url: {url}/v1\n  api_key: none\n"
    )


def opencode_session(home: Path) -> str:
    import sqlite3

    with sqlite3.connect(f"file:{home / 'opencode.db'}?mode=ro", uri=True) as store:
        return str(store.execute("SELECT id FROM session ORDER BY time_updated DESC").fetchone()[0])


CLAUDE = ["-p", "--allowedTools", "Bash", "--dangerously-skip-permissions"]
OPENCLAW = ["agent", "--local", "--agent", "main", "--message"]
HERMES = ["chat", "--quiet", "--yolo"]
CODEX = ["exec", "--skip-git-repo-check", "-s", "danger-full-access"]
PROGRAMS = [
    Program(
        "claude-code",
        "@anthropic-ai/claude-code",
        "claude",
        ".claude",
        env=lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        },
        turn=lambda prompt: [*CLAUDE, prompt],
        resume=lambda prompt: [*CLAUDE, "--continue", prompt],
        latest=newest_file("projects/*/*.jsonl"),
        fork=lambda name, prompt: [*CLAUDE, "--resume", name, "--fork-session", prompt],
        compact=lambda name: ["-p", "--resume", name, "/compact"],
    ),
    Program(
        "codex",
        "@openai/codex",
        "codex",
        ".codex",
        env=lambda _url: {"MODEL_KEY": "none"},
        turn=lambda prompt: [*CODEX, prompt],
        resume=lambda prompt: [*CODEX, "resume", "--last", prompt],
        latest=newest_file("sessions/*/*/*/rollout-*.jsonl"),
        fork=lambda name, prompt: [*CODEX, "fork", name, prompt],
        compact=lambda _name: [*CODEX, "-c", "model_auto_compact_token_limit=50", "resume", "--last", "turn-compact"],
        config=configure_codex,
    ),
    Program(
        "opencode",
        "opencode-ai",
        "opencode",
        ".local/share/opencode",
        env=lambda _url: {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        turn=lambda prompt: ["run", prompt],
        resume=lambda prompt: ["run", "--continue", prompt],
        latest=opencode_session,
        fork=lambda name, prompt: ["run", "--session", name, "--fork", prompt],
        config=configure_opencode,
        terminal=(["--continue"], "/compact"),
    ),
    Program(
        "gemini-cli",
        "@google/gemini-cli",
        "gemini",
        ".gemini",
        env=lambda url: {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        turn=lambda prompt: ["--yolo", "-p", prompt],
        resume=lambda prompt: ["--yolo", "--resume", "latest", "-p", prompt],
        config=configure_gemini,
        terminal=(["--yolo", "--resume", "latest"], "/compress"),
    ),
    Program(
        "openclaw",
        "openclaw",
        "openclaw",
        ".openclaw",
        env=lambda _url: {},
        turn=lambda prompt: [*OPENCLAW, prompt],
        resume=lambda prompt: [*OPENCLAW, prompt],
        config=configure_openclaw,
        node="node@24",
    ),
    Program(
        "hermes",
        "hermes-agent",
        "hermes",
        ".hermes",
        env=lambda _url: {},
        turn=lambda prompt: [*HERMES, "-q", prompt],
        resume=lambda prompt: [*HERMES, "--continue", "-q", prompt],
        config=configure_hermes,
        terminal=(["chat", "--cli", "--continue"], "/compress"),
        is_python=True,
    ),
]
