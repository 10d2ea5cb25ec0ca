"""Recognise attempts to override instructions, and imitations of a conversation's roles, in English."""

from __future__ import annotations

import re

_OVERRIDES = [
    re.compile(pattern)
    for pattern in (
        r"\b(?:ignor\w+|disregard\w*|forget|pay no attention to|do not (?:heed|trust|believe|listen to)|don't"
        r" (?:heed|trust|believe|listen to)|stop (?:heeding|listening to))\b.{0,40}\b(?:anything|everything"
        r"|whatever|all|what)\b.{0,40}\b(?:above|before|earlier|said|says|wrote|written|told|previous\w*|prior"
        r"|learn\w+|know)\b",
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
        r" you)\b|\bimagine (?:you are|you were|yourself|being)\b"
        r"|\bplay the (?:part|role) of\b|\broleplay as\b|\bnew (?:instructions?|directives?|orders|rules"
        r"|persona|identity)\b|\byour"
        r" (?:new|real|true|actual|only|primary) (?:role|task|goal|instructions?|purpose|identity|objective"
        r"|mission|owner|master|name)\b",
        r"\b(?:do not|don't|never|without|avoid|no need to) (?:\w+ ){0,2}?(?:tell|telling|mention|mentioning"
        r"|inform|informing|notify|notifying|alert|alerting|reveal|revealing|disclose|disclosing|ask|asking|warn"
        r"|warning|show|showing|log|logging)\b.{0,30}\b(?:users?|anyone|anybody|them|him|her|humans?|owner"
        r"|operator|people|this|it|confirmation|permission|approval|first)\b",
        r"\b(?:accept|follow|execute|obey|trust|run|act on|process|honou?r|perform)\w*\b.{0,40}\b(?:commands?"
        r"|instructions?|orders|directives?)\b.{0,40}\b(?:embedded|hidden|contained|found|inside|within|from|in"
        r" (?:the |any )?(?:images?|comments?|web|files?|e-?mails?|pages?|documents?|messages?|tickets?|text))\b",
        r"\bdo (?:as|what(?:ever)?|everything|anything)\b.{0,60}\b(?:says?|tells?|commands?|instructs?|asks?"
        r"|wants?|orders?|demands?|requests?)\b|\b(?:even if|regardless of (?:what )?|no matter what|whatever)"
        r" the (?:user|owner|operator|developer)s? (?:objects?|says?|wants?|disagrees?|declines?|refuses?)\b",
        r"\b(?:everyone|everybody|anyone|anybody|whoever|people|callers?|visitors?)\b.{0,40}\b(?:gets?"
        r"|receives?|may (?:have|see|read|know)|can have|(?:is|are) (?:given|told|shown|sent"
        r"|entitled))\b.{0,40}\b(?:passwords?|credentials?|keys?|tokens?|secrets?)\b",
        r"\b(?:treat|consider|regard|trust|accept|believe|obey)\b.{0,60}\b(?:as (?:\w+ ){0,3}(?:safe|admin\w*"
        r"|trusted|operator|owner|root|verified|authori[sz]ed|authoritative|pre-?approved|highest|developer"
        r"|system|true|official)|unconditionally|without question|as instructions?|as commands?|as orders"
        r"|blindly|implicitly)\b",
        r"\b(?:has|have|having|with|gets?|takes?|carries) (?:the )?(?:full|complete|unrestricted|unlimited"
        r"|highest|absolute|top|root|admin\w*|elevated) (?:\w+ )?(?:access|authority|permissions?|privileges?"
        r"|control|priority|rights)\b.{0,60}\b(?:you|assistant|agent|instructions?|obey|follow|memory|model)\b"
        r"|\b(?:supersedes?|overrides?|outranks?|takes? precedence over|has priority"
        r" over)\b.{0,40}\b(?:instructions?|rules?|prompts?|guidelines?|policy|policies|everything|anything"
        r"|previous|other|all|those|users?)\b",
        r"\b(?:obey|comply with|follow|carry out|execute|act (?:up)?on)\b.{0,30}\b(?:instructions?|orders?"
        r"|commands?|directives?)\b.{0,40}\b(?:in|from|inside|contained|at|of|given|by|below|above|found"
        r"|following|hidden|sent)\b|\bthe following (?:instructions?|commands?|steps|orders|directives?)\b",
    )
]
_PRETENDS = re.compile(  # in other languages: as if somebody had agreed, or as somebody else
    r"tu so,? als\b|fais comme si\b|haz(?:lo)? como si\b|fai (?:finta|come se)\b|(?:faca de conta|finja que)\b"
    r"|doe alsof\b|с?делай вид\b|udawaj\b|请?假装|请?当作|вдавай\b|lat sas som om\b|تظاهر\b"
)
_PRETEND_ENDS = ("gibi davran", "ふりをして", "ふりをしろ", "척해")
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

_SYSTEM_MESSAGE = re.compile(
    r"^(?:tool|function|api|command|search) (?:result|response|output|message)s?\s*[:：]"
    r"|^(?:system|entwickler|administrator)(?:meldung|nachricht|hinweis|mitteilung|anweisung)\s*[:：]"
    r"|^(?:message|note|avis|consigne|alerte|notification|instruction) (?:du |de l'|de )?(?:systeme"
    r"|admin\w*|developpeur)\s*[:：]"
    r"|^(?:mensaje|aviso|nota|alerta|mensagem|instruccion) d(?:el|o|e) (?:sistema|admin\w*"
    r"|desarrollador|desenvolvedor)\s*[:：]"
    r"|^(?:messaggio|avviso|nota|notifica|istruzione) (?:di|del|dal) (?:sistema|amministratore"
    r"|sviluppatore)\s*[:：]"
    r"|^systeem(?:bericht|melding|instructie)\s*[:：]|^системн\w+ (?:сообщение|уведомление"
    r"|инструкция)\s*[:：]|^сообщение (?:системы|администратора)\s*[:：]"
    r"|^(?:komunikat|wiadomosc|powiadomienie) (?:systemow[ya]|od systemu|administratora)\s*[:：]"
    r"|^sistem (?:mesaj[ıi]|bildirimi|uyar[ıi]s[ıi])\s*[:：]"
    r"|^(?:系统|系統|开发者|管理员)(?:消息|提示|通知|指令)\s*[:：]|^(?:システム|開発者|管理者)(?:メッセージ|通知|からの?通知|指示)\s*[:：]"
    r"|^시스템 ?(?:메시지|알림)\s*[:：]|^رسالة (?:من )?(?:ال)?نظام\s*[:：]|^सिस्टम संदेश\s*[:：]"
)


def overrides_instructions(folded: str) -> bool:
    """Return whether a folded text tries to put instructions or safeguards out of force."""
    if _PRETENDS.match(folded) or any(end in folded for end in _PRETEND_ENDS):
        return True
    return any(pattern.search(folded) for pattern in _OVERRIDES)


def imitates_role(folded: str) -> bool:
    """Return whether a folded text has the markup or the heading of a system message or another role."""
    return bool(_SYSTEM_MESSAGE.search(folded)) or any(pattern.search(folded) for pattern in _ROLE)
