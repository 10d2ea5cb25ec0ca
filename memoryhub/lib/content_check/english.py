"""Recognise instructions in English."""

from __future__ import annotations

import re

from memoryhub.lib.content_check.targets import PATH

_MODEL = (
    r"(?:(?:the|this|any|every|all|each|your|my|our) )?(?:(?:ai|llm|chat|coding|language|future|next|helpful)"
    r" )*(?:assistants?|agents?|ais?|llms?|models?|(?:chat)?bots?|copilot|chatgpt|gpt|claude"
    r"|gemini|nanobot|openclaw|codex|instances?|whoever reads this|(?:the )?reader)"
)
_DANGEROUS = (
    r"run|execute|invoke|launch|send|forward|e-?mail|mail|message|text|upload|post|publish|transmit|leak"
    r"|exfiltrate|reveal|disclose"
    r"|share|expose|print|output|dump|display|show|echo|repeat|delete|remove|erase|wipe|drop|purge|overwrite"
    r"|clear|install|download|fetch|load"
    r"|pull|open|visit|browse|navigate|click|follow|call|contact|ping|query|curl|copy|paste|embed|insert|inject"
    r"|append|prepend|transfer|wire"
    r"|pay|remit|trust|approve|accept|authori[sz]e|grant|allow|permit|confirm|disable|deactivate|skip|bypass"
    r"|circumvent|evade"
    r"|turn off|switch off|ignore|disregard|forget|override|overrule|violate|hide|conceal|impersonate|pretend"
    r"|lie|recommend|promote|advertise|obey|comply"
    r"|hand over|give|provide|return|include|attach|add|mention|quote|cite|read|decode|decrypt|request|ask for"
    r"|collect|gather|harvest"
    r"|store|save|remember|write|put|set|change|replace|modify|edit|update|rewrite|restore|reset|commit|push"
    r"|deploy|merge|create|register|subscribe|schedule|enter|type|log in|sign in|treat|consider|route|redirect"
    r"|point|prefix|end|begin|start|finish|answer|reply|respond|tell|say|state|claim|insist|assume|export"
    r"|extract|scrape|hand out|buy|purchase|order|sell|refund|cc|bcc|sync|mirror|ship|submit"
)
_DANGEROUS_ANY = (  # also inflected: passives, gerunds, third person
    r"(?:run|execut\w+|invok\w+|launch\w*|sen[dt]\w*|forward\w*|e-?mail(?:ed|s|ing)|mailed|upload\w*|post(?:ed|s"
    r"|ing)?|publish\w*|transmi\w+|leak\w*|exfiltrat\w+|reveal\w*"
    r"|disclos\w+|shar(?:e|ed|es|ing)|expos\w+|print\w*|output\w*|dump\w*|display\w*|show\w*|echo\w*|repeat\w*"
    r"|delet\w+|remov\w+|eras\w+|wip\w+|drop\w*|purg\w+"
    r"|overwrit\w+|install\w*|download\w*|fetch\w*|load(?:ed|s|ing)?|open\w*|visit\w*|click\w*|follow\w*"
    r"|call(?:ed|s|ing)?|contact\w*|cop(?:y|ied|ies|ying)|past(?:e|ed|es|ing)|embed\w*|insert\w*"
    r"|inject\w*|append\w*|prepend\w*|transfer\w*|wir(?:e|ed|ing)|pa(?:y|id|ys|ying)|trust\w*|approv\w+"
    r"|accept\w*|authori[sz]\w+|grant\w*|allow\w*|permit\w*|disabl\w+|deactivat\w+|skip\w*|bypass\w*|circumvent\w*"
    r"|ignor\w+|disregard\w*|forg[eo]t\w*|overrid\w+|hid(?:e|den|ing)|conceal\w*|recommend\w*|promot\w+"
    r"|hand(?:ed|ing)? over|giv(?:e|en|ing)|provid\w+|return\w*|includ\w+|attach\w*|add(?:ed|s|ing)?|appended"
    r"|decod\w+|collect\w*|redirect\w*|rout(?:e|ed|ing)|prefix\w*|cc'?ed|bcc'?ed|treat\w*|mention\w*|obey\w*"
    r"|follow\w*|written|put|sync\w*|mirror\w*|submit\w*)"
)
_AUTHORITY = (
    r"instructions?|directives?|rules?|(?:system |developer |original |initial |hidden )?prompts?|guidelines?"
    r"|guardrails?|restrictions?|constraints?|limitations?|safeguards?|safety"
    r"|polic(?:y|ies)|confirmations?|approvals?|permissions?|authori[sz]ation|moderation|filters?"
    r"|sandbox(?:ing)?|admin(?:istrator)?s?|root|superuser"
    r"|previous (?:messages?|conversations?|facts?|memor\w+)|(?:earlier|prior|existing) (?:facts?|messages?"
    r"|memor\w+)|(?:memor(?:y|ies)|system) (?:file|document|message)|warnings?|refusals?|review(?:s|ers?)?"
)
CREDENTIAL = (
    r"passwords?|passphrases?|passcodes?|credentials?|api[ -]?keys?|(?:private|secret|access|ssh|signing"
    r"|encryption) keys?|secrets?|(?:access |auth |bearer |session |refresh )?tokens?"
    r"|seed phrases?|recovery (?:codes?|phrases?)|2fa codes?|otps?|one-time codes?|verification codes?|cookies?"
    r"|env(?:ironment)? (?:vars?|variables?)|bank (?:details|accounts?)|account numbers?|card numbers?|cvv|iban"
    r"|ssn|social security|logins?|wallet|pins?"
    r"|(?:chat |conversation |message |full )(?:history|log|transcript)s?|memory (?:contents?|file)"
    r"|(?:users?'?s?|their|customers?'?|private|personal|confidential|sensitive) (?:data|files?|e-?mails?"
    r"|messages?|information|details)"
)
_STRONG_OBLIGATION = (
    r"(?:always|never|please|kindly|do not|don't|do n't|make sure|be sure|ensure|remember to|be certain|from now"
    r" on|henceforth|going forward|hereafter|effective immediately|as of now"
    r"|it is (?:mandatory|required|essential|imperative|crucial|important|critical|vital|necessary)|you(?:'re|"
    r" are)? (?:must|shall|should|need|have|ought|required|expected|supposed|obliged|to|will|can|may|now"
    r"|instructed|asked|told|authori[sz]ed)\b"
    r"|(?:could|would|can|will) you|i(?:'d| would) (?:appreciate|like|love|want|be grateful)|i (?:want|need"
    r"|expect|order|command) you|it would be (?:great|nice|helpful|good|appreciated|lovely|wonderful)|feel free"
    r" to|let's|be so kind|would you mind"
    r"|whenever|every time|each time|any ?time|before (?:answering|responding|replying|each|every|any|you"
    r"|anything|starting|doing)|after (?:answering|responding|replying|each|every)|at the (?:start|beginning"
    r"|end) of (?:each|every|all|any|your)|first,|step \d|if (?:you|asked|anyone|anybody|somebody|someone|the"
    r" user)|when (?:you|asked|anyone|anybody|somebody|someone|the user|consolidating|summari[sz]ing|updating)"
    r"|upon|important|urgent|attention|warning|critical|mandatory|note to|reminder|instruction|in (?:all|every"
    r"|each|your) (?:answers?|repl\w+|responses?))"
)
_WEAK_OBLIGATION = (
    r"(?:must|shall|should|ought to|ha(?:s|ve) to|needs? to|(?:is|are|be) (?:to|required|supposed|expected"
    r"|obliged|obligated|instructed|mandated|directed|permitted|allowed|authori[sz]ed|entitled|free)(?: to)?"
    r"|requires?|required|will (?:be|always|now|need|henceforth)|henceforth|expected to|supposed to|always|never"
    r"|(?:wants?|prefers?|expects?|likes?|asks?|asked|requests?|requested|requires?|would like|authori[sz]ed"
    r"|instructed|told|agreed|consented|decided)(?: (?:that|for|all|every|the|any|you|your|us|to))+|(?:policy"
    r"|procedure|rule|protocol|practice|convention|workflow|requirement|plan|trick|way|step|task|job|duty"
    r"|mission|goal)(?: \w+){0,3} (?:is|says|requires|states|dictates)|is fine|is okay"
    r"|(?<!\bin )(?<!\bsince )(?<!\buntil )(?<!\bof )(?<!\blast )may)"
)


_OBLIGED_STRONGLY = re.compile(rf"(?<!\w){_STRONG_OBLIGATION}(?!\w)")
_OBLIGED = re.compile(rf"(?<!\w){_WEAK_OBLIGATION}(?!\w)")
_NAMES_MODEL = re.compile(rf"(?<!\w)(?:{_MODEL}|you(?:r|rself)?)(?!\w)")
_IMPERATIVE = re.compile(
    r"(?:^|[:—–]\s*|[,;]\s*|\s-\s|[\"'“]|(?<!\w)(?:and|then|to|also|instead|immediately|simply|just|quietly"
    r"|silently|secretly|first|next|finally|now|so|please|kindly|always|never|not|don't)\s+)"
    rf"(?:{_DANGEROUS})(?![\w'-])(?!\s+(?:is|are|was|were|has|failed|took|time|rate|log|list)\b)"
)
_CLAUSE_IMPERATIVE = re.compile(
    rf"(?:[:;,—–]\s*|(?<!\w)(?:so|then|please|kindly|simply|just)\s+)(?:{_DANGEROUS})(?![\w'-])(?!\s+(?:is|are"
    rf"|was|were|has|failed|took|time|rate|log|list)\b)"
)
_LEADING_IMPERATIVE = re.compile(
    rf"^(?:(?:and|then|also|now|please|just|ok|so|hey|note|todo|fyi|tip|hint|task|action|reminder|important"
    rf"|urgent|attention|warning|fact|ai|assistant|agent|you|dear \w+|next|first|finally)[,:!]*\s+"
    rf"|(?:before|after|when(?:ever)?|once|while|if|unless|until|upon|on|during|at|in|for|to|as|since|because"
    rf"|given|every|each|from)\b[^.]{{0,90}}?,\s*(?:(?:please|always|never|immediately|just|simply|then"
    rf"|you)\s+)*)*(?:{_DANGEROUS}|let|have|export|extract|scrape|use|keep|do|be|act|make|never|always|don't|do"
    rf" not)(?![\w'-])(?!\s+(?:is|are|was|were|has|failed|took|time|rate|log|list)\b)"
)
_ACTS = re.compile(rf"(?<![\w-]){_DANGEROUS_ANY}(?![\w-])")
_SENSITIVE = re.compile(rf"(?<!\w)(?:{_AUTHORITY}|{CREDENTIAL})(?!\w)")
_SECRET = re.compile(rf"(?<!\w)(?:{CREDENTIAL})(?!\w)")
_HARMFUL = re.compile(  # what no fact needs to say of a model
    r"(?<!\w)(?:delet\w+|eras\w+|wip(?:e|ing)|purg\w+|overwrit\w+|ignor\w+|disregard\w*|bypass\w*|disabl\w+"
    r"|skip\w*|leak\w*|exfiltrat\w+|reveal\w*|disclos\w+|hid(?:e|ing)|conceal\w*|lie|pretend\w*|impersonat\w+"
    r"|obey\w*|execut\w+|install\w*|download\w*|forward\w*|upload\w*|transfer\w*|approv\w+|trust\w*|grant\w*"
    r"|recommend\w*|promot\w+|run|send|comply|forget)(?!\w)"
)
_ROLE_LABEL = re.compile(r"^(?:system|developer|admin|assistant|operator|ai|instructions?|sudo|root)\s*[:：>]\s*")
_IS_SYSTEM = re.compile(r"(?:system|developer|sudo|root|admin)\s*[:：>]")
_BLANKET = re.compile(  # objects that make an order boundless
    r"(?<!\w)(?:all|any|every|each|whatever|everything|anything|entire|whole)\b(?:.{0,30}\b(?:commands?"
    r"|requests?|changes?|messages?|actions?|payments?|orders?|links?|attachments?|files?|e-?mails?"
    r"|conversations?|backups?|entr(?:y|ies)|contacts?|customers?|documents?|data|tools?|users?|code|scripts?"
    r"|people|calls?|transactions?|invoices?|chats?|logs?)\b)?"
)
_LEAKS = re.compile(
    r"(?<!\w)(?:sen[dt]|forward\w*|shar(?:e|ed|ing)|reveal\w*|disclos\w+|print\w*|post(?:ed)?|upload\w*"
    r"|e-?mail(?:ed)?|leak\w*|handed over|given (?:to|out)|includ\w+|append\w*|pasted?|copied|transmitted"
    r"|published|told)(?!\w)"
)
_PROTECTS = re.compile(
    r"^(?:never|don't|do not|avoid) (?:\w+ ){0,2}?(?:commit|store|share|log|print|send|post|put|paste|hard-?code"
    r"|reuse|expose|write|push|include|reveal|use|disable|skip|bypass|deploy|merge|run|email)\b"
    r"|^(?:always )?(?:ask|wait|get|obtain|request|require|double-check|check|confirm|verify|review|rotate"
    r"|follow|respect|read|update|add|set|keep|create|store|write|start|end|merge|deploy|commit|push|register"
    r"|order|enter) "
)


def is_english_instruction(sentence: str, *, has_target: bool) -> bool:
    """Return whether a folded sentence tells a model, or its user, to do something sensitive."""
    label = _ROLE_LABEL.match(sentence)
    rest = sentence[label.end() :] if label else sentence
    leads = bool(_LEADING_IMPERATIVE.search(rest))
    strongly = bool(_OBLIGED_STRONGLY.search(rest))
    imperative = leads or (strongly and bool(_IMPERATIVE.search(rest)))
    obliged = strongly or bool(_OBLIGED.search(rest))
    if label and (imperative or has_target or (_IS_SYSTEM.match(sentence) and (obliged or _SENSITIVE.search(rest)))):
        return True
    if has_target and (
        leads
        or _CLAUSE_IMPERATIVE.search(rest)
        or (obliged and (imperative or _ACTS.search(rest) or not PATH.search(rest)))
    ):
        return True
    if leads and _HARMFUL.search(rest) and _BLANKET.search(rest) and _is_more_than_a_rule(rest):
        return True
    sensitive = bool(_SENSITIVE.search(rest))
    if sensitive and (imperative or (strongly and _ACTS.search(rest))):
        return _is_more_than_a_rule(rest)
    model = bool(_NAMES_MODEL.search(rest))
    if model and obliged and _ACTS.search(rest) and (has_target or sensitive or _HARMFUL.search(rest)):
        return True
    return bool(_SECRET.search(rest) and obliged and _LEAKS.search(rest))


def _is_more_than_a_rule(sentence: str) -> bool:
    """Return whether a sentence with an imperative and a sensitive noun is more than a rule of good practice.

    "Never commit secrets" and "Ask for confirmation before deploys" protect; nothing is gained by holding them.
    """
    return not _PROTECTS.search(sentence)
