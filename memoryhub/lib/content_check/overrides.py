"""Recognise attempts to override instructions, and imitations of a conversation's roles, in English."""

from __future__ import annotations

import re

from memoryhub.lib.content_check.english import CREDENTIAL

_OVERRIDES = [
    re.compile(pattern)
    for pattern in (
        r"\b(?:ignor\w+|disregard\w*|forget|forgetting|overrid\w+|overrul\w+|bypass\w*|circumvent\w*|discard\w*"
        r"|dismiss\w*|neglect\w*|set aside|throw away|drop|cancel|suspend|void|supersede\w*|replace\w*|stop"
        r" following|no longer (?:follow|apply|obey)|do not (?:follow|obey|apply)|don't (?:follow|obey|apply)"
        r"|pay no attention to|nullif\w+)\b"
        r".{0,50}\b(?:previous|prior|earlier|above|preceding|foregoing|all|any|every|your|these|those|other"
        r"|existing|original|initial|system|safety|current|former|past|everything|whatever|the)\b.{0,40}"
        r"\b(?:instruct\w*|rules?|prompts?|messages?|facts?|memor\w+|guidelines?|limit(?! switch)\w*|directives?"
        r"|orders?|policy|policies|constraints?|restrictions?|context|training|told|said|safeguards?|warnings?"
        r"|confirmations?|commands?|programming)\b",
        r"\b(?:previous|prior|earlier|above|preceding|all|existing|original|your|system|safety|old) (?:\w+"
        r" ){0,2}(?:instructions?|rules?|prompts?|guidelines?|directives?|restrictions?|safeguards?"
        r"|orders)\b.{0,40}\b(?:void|invalid|cancel+ed|suspended|obsolete|superseded|no longer|ignored"
        r"|disregarded|overridden|lifted|revoked|null|not apply|don't apply|outdated|disabled|forgotten|bypassed"
        r"|replaced)\b",
        r"\b(?:ignor\w+|disregard\w*|forget|pay no attention to|do not (?:heed|trust|believe|listen to)|don't"
        r" (?:heed|trust|believe|listen to)|stop (?:heeding|listening to))\b.{0,40}\b(?:anything|everything"
        r"|whatever|all|what)\b.{0,40}\b(?:above|before|earlier|said|says|wrote|written|told|previous\w*|prior"
        r"|learn\w+|know)\b",
        r"\b(?:all|every|any|each|existing|other|earlier|previous) (?:\w+ ){0,2}(?:facts?|memor\w+|lines?"
        r"|entr\w+|records?|backups?|logs?|documents?|conversations?|instructions?|rules)\b.{0,30}\b(?:must"
        r"|should|ha(?:s|ve) to|needs? to|(?:is|are) to|shall|can|may|will)\b.{0,20}\b(?:erased|deleted|removed"
        r"|wiped|dropped|purged|overwritten|ignored|discarded|forgotten|replaced|cleared|disregarded)\b",
        r"\b(?:note|message|memo|attention|instructions?|reminder|hint|advice) (?:to|for) (?:the |any |all "
        r"|every |whichever |whatever )?(?:(?:\w+ )?(?:ai|llm|assistant|agent|model|bot|chatbot|copilot|claude"
        r"|chatgpt|gpt|gemini|reader|system)|machine)s?\b|\bas an ai\b|\b(?:any|every|all|whichever|whatever)"
        r" (?:ai|llm|assistant|agent|model|bot)s? (?:reading|that reads|who reads|processing|seeing)\b|\bif you"
        r" are an? (?:ai|llm|assistant|agent|model|bot)\b",
        r"\b(?:system|developer|hidden|initial|original) (?:prompt|instructions?)\b|\bprompt injection\b|\bjail"
        r" ?break\w*|\b(?:developer|debug|god|admin|maintenance|root|unrestricted|dan|sudo) mode\b|\bdo anything"
        r" now\b",
        r"\byou are (?:now|no longer|actually|henceforth|hereby)\b|\b(?:act|behave|respond|operate) as (?:if"
        r"|though|an? (?:unrestricted|different|new|evil|admin|root)|dan|root|admin)|\bpretend (?:to be|you|that"
        r" you)\b|\broleplay as\b|\bnew (?:instructions?|directives?|orders|rules|persona|identity)\b|\byour"
        r" (?:new|real|true|actual|only|primary) (?:role|task|goal|instructions?|purpose|identity|objective"
        r"|mission|owner|master|name)\b",
        r"\b(?:do not|don't|never|without|avoid|no need to) (?:\w+ ){0,2}?(?:tell|telling|mention|mentioning"
        r"|inform|informing|notify|notifying|alert|alerting|reveal|revealing|disclose|disclosing|ask|asking|warn"
        r"|warning|show|showing|log|logging)\b.{0,30}\b(?:users?|anyone|anybody|them|him|her|humans?|owner"
        r"|operator|people|this|it|confirmation|permission|approval|first)\b",
        r"\bwithout (?:\w+ ){0,2}?(?:confirm\w*|approv\w*|permission|consent|review\w*|asking|verif\w+|the"
        r" user(?:'s)? (?:knowledge|knowing|noticing|consent|approval|permission)|oversight|question\w*"
        r"|hesitat\w+|checking|warning|validation)\b.{0,60}?(?:\b(?:send|run|execut\w+|delet\w+|approv\w+|pay"
        r"|transfer|install|accept|always)\b)|\b(?:send|run|execute|delete|approve|pay|transfer|install|accept"
        r"|perform|proceed|comply|deploy|push|merge|act|obey)\b.{0,60}\bwithout (?:\w+ ){0,2}?(?:confirm\w*"
        r"|approv\w*|permission|consent|review\w*|asking|verif\w+|oversight|question\w*|hesitat\w+|checking"
        r"|warning|the user)",
        r"\b(?:secretly|covertly|silently|surreptitiously|discreetly|stealthily|quietly|behind the"
        r" scenes)\b.{0,60}\b(?:send|run|execut\w+|forward|upload|post|copy|include|add|delet\w+|insert|append"
        r"|cc|bcc|email|install|change|transfer|share|call|fetch|visit|load|log|record)\w*",
        r"\b(?:disable|deactivate|turn off|switch off|bypass|evade|remove|skip|circumvent|lift|suspend|weaken"
        r"|relax)\w*\b.{0,30}\b(?:safety|guardrails?|content (?:filter|check)s?|filters?|moderation|safeguards?"
        r"|restrictions?|confirmations?|approval steps?|review (?:step|inbox|queue)|sandbox\w*|human review"
        r"|security checks?|the guard)\b",
        r"\b(?:delete|remove|drop|erase|overwrite|clear|wipe|purge|destroy)\b.{0,30}\b(?:all|every|other"
        r"|existing|entire|whole|any|your)\b.{0,30}\b(?:facts?|memor\w+|lines?|entr\w+|files?|records?|backups?"
        r"|history|data|logs?|rows?|documents?|conversations?|messages?)\b",
        r"\bwhen (?:consolidating|summari[sz]ing|compacting|compressing|updating (?:the )?memory)\b|\b(?:in|into"
        r"|to) (?:every|each|all) (?:future )?(?:summar\w+|consolidations?|repl\w+|responses?|answers?|outputs?"
        r"|conversations?|sessions?)\b.{0,60}(?:\bhttps?:|\bwww\.|`|@|\b(?:include|insert|add|append|repeat"
        r"|mention|recommend|promote|say|write)\b)|\b(?:include|insert|add|append|repeat|mention|recommend"
        r"|promote|say|write)\b.{0,60}\b(?:in|to|into) (?:every|each|all|any) (?:future )?(?:summar\w+"
        r"|consolidations?|repl\w+|responses?|answers?|outputs?|conversations?|sessions?)\b",
        r"\b(?:reveal|leak|exfiltrate|disclose|dump|hand over|give away)\b.{0,50}\b(?:passwords?|credentials?"
        r"|secrets?|api keys?|tokens?|private|confidential|prompt|memory|instructions?|keys)\b",
        r"\b(?:accept|follow|execute|obey|trust|run|act on|process|honou?r|perform)\w*\b.{0,40}\b(?:commands?"
        r"|instructions?|orders|directives?)\b.{0,40}\b(?:embedded|hidden|contained|found|inside|within|from|in"
        r" (?:the |any )?(?:images?|comments?|web|files?|e-?mails?|pages?|documents?|messages?|tickets?|text))\b",
        r"\bdo (?:as|what(?:ever)?|everything|anything)\b.{0,60}\b(?:says?|tells?|commands?|instructs?|asks?"
        r"|wants?|orders?|demands?|requests?)\b|\b(?:even if|regardless of (?:what )?|no matter what|whatever)"
        r" the (?:user|owner|operator|developer)s? (?:objects?|says?|wants?|disagrees?|declines?|refuses?)\b",
        rf"\b(?:everyone|everybody|anyone|anybody|whoever|people|callers?|visitors?)\b.{{0,40}}\b(?:gets?"
        rf"|receives?|may (?:have|see|read|know)|can have|(?:is|are) (?:given|told|shown|sent"
        rf"|entitled))\b.{{0,40}}\b(?:{CREDENTIAL})\b",
        r"\b(?:treat|consider|regard|trust|accept|believe|obey)\b.{0,60}\b(?:as (?:an? |the )?(?:safe|admin\w*"
        r"|trusted|operator|owner|root|verified|authori[sz]ed|authoritative|pre-?approved|highest|developer"
        r"|system|true|official)|unconditionally|without question|as instructions?|as commands?|as orders"
        r"|blindly|implicitly)\b",
        r"\b(?:has|have|having|with|gets?|takes?|carries) (?:the )?(?:full|complete|unrestricted|unlimited"
        r"|highest|absolute|top|root|admin\w*|elevated) (?:\w+ )?(?:access|authority|permissions?|privileges?"
        r"|control|priority|rights)\b.{0,60}\b(?:you|assistant|agent|instructions?|obey|follow|memory|model)\b"
        r"|\b(?:supersedes?|overrides?|outranks?|takes? precedence over|has priority"
        r" over)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|policy|policies|everything|anything"
        r"|previous|other|all)\b",
        r"\b(?:pre-?approved|pre-?authori[sz]ed)\b.{0,60}\b(?:actions?|commands?|requests?|transfers?|payments?"
        r"|deletions?|you|agent|assistant|tools?)\b|\bno (?:confirmation|approval|permission|verification"
        r"|authori[sz]ation) (?:\w+ ){0,3}(?:needed|required|necessary)\b.{0,80}|\b(?:confirmation|approval"
        r"|verification|permission)s? (?:is|are) (?:not|never|no longer) (?:needed|required|necessary)\b",
        r"\b(?:obey|comply with|follow|carry out|execute|act (?:up)?on)\b.{0,30}\b(?:instructions?|orders?"
        r"|commands?|directives?)\b.{0,40}\b(?:in|from|inside|contained|at|of|given|by|below|above|found"
        r"|following|hidden|sent)\b|\bthe following (?:instructions?|commands?|steps|orders|directives?)\b",
    )
]
_ROLE = [
    re.compile(pattern)
    for pattern in (
        r"<\s*/?\s*(?:system|assistant|user|human|developer|tool|tool_?(?:call|result|response|use)s?"
        r"|function\w*|instructions?|prompt|admin|context|memory|memories|rules?|important|secret|hidden"
        r"|override|sys|inst|data|knowledge|summary|task|command)\b[^>\n]{0,80}>",
        r"\[\s*/?\s*(?:inst|system|sys|assistant|admin|developer|instruction|instructions|override|system"
        r" (?:message|prompt|note|override))\s*\](?!\()|<\|[\w ]{2,30}\|?>|<<\s*/?\s*\w+\s*>>"
        r"|\{\{\s*#?\s*(?:system|user|assistant)\b|<(?:start|end)_of_turn>|</?s>",
        r"(?:^|[#>*=\-\s])(?:system|developer|admin(?:istrator)?|root|security|platform"
        r"|operator)[\s_-]*(?:message|prompt|override|notice|note|instructions?|update|alert|command|directive"
        r"|notification|announcement|policy update)\s*(?:\(.{0,40}\))?\s*[:\]\-—=]",
        r"[\"']role[\"']\s*:\s*[\"'](?:system|developer|assistant|tool|user)[\"']|(?:^|\n)\s*(?:role"
        r"|from)\s*[:=]\s*(?:system|developer)\b",
        r"(?:[-=#*_~]{3}|\b)\s*(?:begin|start|end|stop)(?:ning)? (?:of )?(?:the )?(?:new )?(?:system"
        r"|instructions?|prompt|memory|conversation|context|data|untrusted|user input|input|admin|hidden"
        r"|override|secret)\b[\w ]{0,30}(?:[-=#*_~\]>:]{1,}|$)",
        r"^(?:system|developer)\s*(?:\||>|::|=>|->)|\bend of (?:context|prompt|document|memory|conversation|user"
        r" input|data)\b",
    )
]


def overrides_instructions(folded: str) -> bool:
    """Return whether a folded text tries to put instructions or safeguards out of force."""
    return any(pattern.search(folded) for pattern in _OVERRIDES)


def imitates_role(folded: str) -> bool:
    """Return whether a folded text has the markup or the heading of a system message or another role."""
    return any(pattern.search(folded) for pattern in _ROLE)
