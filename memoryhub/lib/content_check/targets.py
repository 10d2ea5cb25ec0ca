"""Recognise what an instruction may be about: URLs, addresses, sensitive paths and commands."""

from __future__ import annotations

import re

URL = re.compile(
    r"\b(?:https?|ftp|ssh|wss?|git|s3|gs|file|data|javascript|tcp|smb|ldap)\s?:\s?/{0,2}(?=\S)(?!\s)|\bhxxps?\b"
    r"|\bwww\.\w|(?<![\w@./-])(?:[a-z0-9-]+(?:\.|\[\.\]|\(\.\)| dot | \[dot\] )){1,40}(?:com|net|org|io|ru|cn|xyz"
    r"|info|biz|top|site"
    r"|app|dev|sh|me|co|ai|example|test|invalid|onion|tk|ml|cc|ws|link|click|zip|de|fr|uk|eu|br|jp|kr|in|it"
    r"|es)\b(?![\w-])"
)
_ADDRESS = re.compile(  # one character before the @ is enough: more would be tried from each of them
    r"[\w.+%-]\s?(?:@|\[at\]|\(at\)| at )\s?[\w-]+(?:\.|\[dot\]| dot )[\w.-]|\b\d{1,3}(?:\.\d{1,3}){3}\b(?!\.\d)"
    r"|\b[a-z]{2}\d{2}(?: ?[a-z0-9]{4}){3,7}\b|\b0x[0-9a-f]{6,}|\bbc1[a-z0-9]{8,}|\+\d[\d ()-]{7,}\d"
)
PATH = re.compile(
    r"(?<![\w/.:])(?:~|\$home|%\w+%|\.{1,2})?/(?:etc|tmp|var|home|root|usr|opt|bin|dev|proc|sys|mnt|srv|users"
    r"|boot|run"
    r"|\.\w+|\.ssh)(?:/[\w.-]+)*|~/\S|\b[a-z]:\\\S|\\\\[\w.-]+\\|(?<!\w)\.(?:env|ssh|bashrc|bash_profile|zshrc"
    r"|profile|netrc"
    r"|npmrc|pgpass|aws|kube|gitconfig|gnupg|git)\b|\bid_(?:rsa|ed25519)\b|authorized_keys|known_hosts|crontab\b"
    r"|\b(?:agents|claude|gemini|soul|memory|user|skill|bootstrap|identity)\.md\b|\w-*\.(?:sh|ps1|exe|bat"
    r"|cmd|vbs|dll|pem|key|jar)\b"
)
CONTENTS = re.compile(  # what a file with secrets contains
    r"(?:content|inhalt|contenu|contenido|conteudo|inhoud|содержимо|вміст|zawartosc|icerig|内容|내용|محتوي)"
    r".{0,20}(?:\.(?:env|ssh|netrc|npmrc|pgpass|aws|kube|gnupg)\b|/etc/(?:passwd|shadow)|id_(?:rsa|ed25519)|\.(?:pem|key)\b)"
)
_RISKY = (
    r"curl|wget|bash|zsh|powershell|pwsh|iex|invoke-\w+|netcat|ncat|telnet|ssh|scp|sftp|rsync|chmod|chown|sudo"
    r"|rm\s+-\w+|mkfs\S*|dd\s+if=|eval|nohup|base64\s+-\w+|base64|certutil|mshta|rundll32|regsvr32|crontab"
    r"|pip3?\s+install|pipx?\s+\w+|npm\s+(?:i|install|exec|publish)|npx|brew\s+install|apt(?:-get)?\s+install"
    r"|gem\s+install"
    r"|cargo\s+install|go\s+install|docker\s+run|git\s+(?:clone|push|remote|reset|config)|kubectl\s+(?:delete|exec)"
    r"|python3?\s+-\w|python3?\s+\S+\.py|perl\s+-\w|ruby\s+-\w|node\s+-\w|php\s+-\w|psql|mysql|drop\s+(?:table"
    r"|database)|printenv|env\b(?=\s*\|)"
    r"|cat\s+[~/.]\S*|nslookup|dig\s+\S+\.\S+|openssl|launchctl|systemctl|schtasks|reg\s+add|kill\s+-9|sh\s+-c"
    r"|nc\s+-?\S+"
)
COMMAND = re.compile(
    rf"(?<![\w./-])(?:{_RISKY})(?![\w-])|\|\s*(?:ba|z|da)?sh\b|&&|\$\(|>\s*/dev/|<\(|`[^`]*\s-{{1,2}}\w[^`]*`"
    r"|\b(?:import os|os\.system|subprocess|exec\(|__import__|require\(|fetch\(|xmlhttprequest|document\.cookie)"
    r"|\b(?:select|insert|update|delete)\s+(?:\*|into|from)\b.{0,40}\b(?:from|where|values)?"
)
_QUOTED_COMMAND = re.compile(r"`([^`\n]{2,200})`")
_LOCAL_TOOL = re.compile(  # commands that build and test a project, and change nothing outside it
    r"(?:\w+=\S+ )*(?:make|pytest|ruff|black|mypy|tox|nox|cargo (?:test|build|check|clippy|fmt|run)|go (?:test"
    r"|build|vet|run)|npm (?:test|run|ci|start)"
    r"|yarn|pnpm|manage\.py|(?:python3? )?(?:\./)?manage\.py|python3? -m (?:pytest|ruff|mypy|build)|gradle\w*"
    r"|\./gradlew|mvn|terraform (?:plan|fmt|validate|apply)"
    r"|kubectl (?:apply|get|rollout|logs|describe)|docker compose|helm|alembic|git (?:status|pull|fetch|rebase"
    r"|log|commit|diff|checkout|switch|merge)"
    r"|rails|bundle|bin/\w+|just|task|uv|poetry|jest|vitest|eslint|prettier|dbt|pg_dump|pg_restore|prek"
    r"|pre-commit|tsc|bazel|cmake|ctest|phpunit|mix)\b[^|;&<>$]*"
)
PIPE_TO_SHELL = re.compile(
    r"\b(?:curl|wget|fetch|iwr)\b[^\n]{0,200}\|\s*(?:sudo\s+)?(?:ba|z|da)?sh\b|\b(?:ba|z)?sh\s+<\(\s*curl"
    r"|\bbase64\s+(?:-d|--decode)\b[^\n]{0,60}\|\s*(?:ba)?sh|\biex\s*\(|\bdownloadstring\b"
    r"|\bpowershell(?:\.exe)?\s+-\w*e\w*\b"
    r"|\b(?:python3?|perl|ruby|node|php)\s+-[ce]\b.{0,80}\b(?:system|exec|eval|popen|spawn|import os|subprocess"
    r"|socket)\b|\bnc\s+-\w*e|/dev/tcp/|\brm\s+-(?:rf|fr)\s+[/~*]"
)


_MARK = re.compile(r"[/\\\\:~@$%_\[(]|\.\w|\d|www|hxxp")  # of a URL, an address or a path, for a fast check


def pipes_to_shell(text: str) -> bool:
    """Return whether a folded text downloads something and runs it, or destroys files."""
    return any(mark in text for mark in ("|", "(", " -", "/dev/tcp", "downloadstring")) and bool(
        PIPE_TO_SHELL.search(text)
    )


def has_target(sentence: str) -> bool:
    """Return whether a sentence has a URL, an address, a sensitive path or a command that isn't a local tool."""
    may_have_place = _MARK.search(sentence) or " dot " in sentence or "crontab" in sentence
    if may_have_place and (URL.search(sentence) or _ADDRESS.search(sentence) or PATH.search(sentence)):
        return True
    local = _QUOTED_COMMAND.sub(
        lambda match: "" if _LOCAL_TOOL.fullmatch(match.group(1)) else match.group(), sentence
    )
    return bool(COMMAND.search(local))
