"""Recognise set phrases of instructions in several languages: rules for replies, wishes of the user, secrecy."""

from __future__ import annotations

import re
from typing import Literal

_START, _END = r"(?<!\w)", r"(?!\w)"


def _words(*alternatives: str) -> str:
    return rf"{_START}(?:{'|'.join(alternatives)}){_END}"


def _phrases(*alternatives: str, unspaced: str) -> re.Pattern[str]:
    return re.compile(rf"{_words(*alternatives)}|{unspaced}")


_REPLY = (  # what an assistant produces
    r"(?:answer|repl(?:y|ies)|response|summar(?:y|ies)|message|output|conversation|session|task|link"
    r"|url|prompt)s?"
    r"|antwort(?:en)?|zusammenfassung(?:en)?|nachricht(?:en)?|sitzung(?:en)?|gesprach\w*|ausgabe[n]?"
    r"|reponses?|resumes?|messages?|seances?|conversations?|respuestas?|resumen(?:es)?|mensajes?|sesion(?:es)?"
    r"|rispost[ae]|riepilog(?:o|hi)|messagg(?:io|i)|session[ei]|conversazion[ei]|respostas?|resumos?"
    r"|mensage(?:m|ns)"
    r"|sess(?:ao|oes)|conversas?|antwoord(?:en)?|samenvatting(?:en)?|bericht(?:en)?|sessies?|gesprek(?:ken)?"
    r"|ответ\w*|резюме|сводк\w+|сообщени\w+|сесси\w+|сеанс\w*|бесед\w+|odpowied\w+|podsumowani\w+|wiadomosc\w*"
    r"|sesj\w+|rozmow\w*|yan[ıi]t\w*|cevap\w*|cevab\w*|ozet\w*|mesaj\w*|oturum\w*|konusma\w*"
)
_EVERY = (
    r"every|each|all|any|jede[rnsm]?|alle[nr]?|samtliche[nr]?|chaque|toute?s?|tous|cada|tod[ao]s?"
    r"|ogni|tutt[eio]|elke?"
    r"|alle|ieder[e]?|кажд\w+|все[хм]?|любо\w+|kazd\w+|wszystki\w+|her|tum|butun"
)
_EVERY_REPLY = _phrases(
    rf"(?:{_EVERY})\s+(?:\w+\s+){{0,2}}?(?:{_REPLY})",
    unspaced=(
        r"(?:每个|每個|每条|每條|每次|所有|任何|全部)的?(?:回答|回复|回覆|答复|答覆|摘要|总结|總結|消息|会话|對話|对话)"
        r"|(?:すべて|全て|全部|毎回|あらゆる|各)の?(?:回答|返信|返答|応答|要約|メッセージ|セッション|会話)"
        r"|(?:回答|返信|返答|応答|要約)(?:ごと|のたび|の最後)|(?:모든|매) ?(?:답변|응답|대답|요약|메시지|대화|세션)"
        r"|(?:हर|प्रत्येक|सभी) (?:उत्तर|जवाब|सारांश|संदेश)|كل (?:[اإ]جابة|رد|رسالة|ملخص|جلسة|محادثة)"
    ),
)
RULE_LABEL = re.compile(
    r"^(?:(?:our|the|my|house|company|team|new|standing|office|internal|office) ){0,2}(?:policy|rule"
    r"|convention|procedure|protocol"
    r"|guideline|standard|requirement|process)s?\s*[:：–—]"
    r"|^(?:neue |interne )?(?:regel|richtlinie|vorgabe|vorschrift|grundsatz|regle|consigne|directive"
    r"|norme?a?|regla"
    r"|politica|regola|direttiva|regra|diretriz|beleid|richtlijn|правило|политика|zasada|regula"
    r"|polityka|kural|ilke"
    r"|politika)\s*[:：–—]|^(?:规定|規定|规则|規則|政策|准则|方針|ルール|規則|규칙|방침|정책|नियम|नीति|قاعدة|سياسة)\s*[:：]"
)
_GOOD_PRACTICE = _phrases(
    r"(?:best|good|common|standard|usual|normal|accepted) (?:practi[cs]e|procedure|policy|etiquette|form)",
    r"(?:preferred|recommended|approved|correct|right|proper|only|saf(?:e|est)|official"
    r"|standard) (?:way|method|procedure"
    r"|approach) (?:to|of|for)|(?:best|usually|always|normally) (?:answered|handled|solved|done"
    r"|dealt with|resolved)",
    r"(?:it|this) (?:is|has become) (?:customary|usual|standard|recommended|advisable|advised|good"
    r"|wise|common|polite"
    r"|expected)(?: \w+)? to|recommended to|advisable to",
    r"(?:hat|haben) sich bewahrt|bewahrte praxis|gute praxis|(?:ist|es) ublich|empfiehlt sich|empfohlen|ratsam"
    r"|sinnvoll",
    r"bonnes? pratiques?|(?:est|il est) (?:recommande|conseille|d'usage|preferable|souhaitable|bon)|convient de"
    r"|buenas? practicas?|se recomienda|(?:es|seria) (?:recomendable|aconsejable|habitual|costumbre|mejor)",
    r"(?:buona|buone) (?:norma|pratica|regola|prassi|abitudine)|si consiglia|e (?:consigliabile"
    r"|consigliato|opportuno|prassi)",
    r"boas? praticas?|recomenda-se|(?:e|seria) (?:recomendavel|aconselhavel|recomendado|costume"
    r"|melhor|habitual)",
    r"(?:is|het is) (?:gebruikelijk|aanbevolen|verstandig|raadzaam|de gewoonte)|goede gewoonte|goed gebruik"
    r"|aan te raden",
    r"принято|рекоменду\w+|хорош\w+ практик\w+|лучше всего|целесообразно|положено",
    r"dobr[aąey]\w* praktyk[aąei]|zaleca(?: sie|ne)|warto|przyjelo sie|najlepiej",
    r"iyi (?:bir )?uygulama\w*|onerilir|tavsiye edilir|adettir|en iyisi",
    unspaced=r"最佳做法|最佳实践|惯例是|慣例是|建议|建議|推荐做法|最好|望まし|推奨|慣例|慣習|がよい|が良い"
    r"|바람직|권장|좋습니다|उचित है|अच्छा होगा|من الأفضل|من الافضل|يفضل|يستحسن",
)
_WISH = _phrases(  # somebody wants you to do something, not: somebody likes something
    r"(?:would be|is|be) (?:nice|great|good|kind|best|helpful|useful|better|lovely) (?:if|that"
    r"|when) (?:you|it|the assistant)",
    r"(?:mochte|mochten|will|wunscht|wunschen|erwartet|erwarten|hatte gern|bittet|schon|nett|gut"
    r"|hilfreich|toll|lieb|super"
    r"|freut sich|bittet dich|darum)\w*,? (?:\w+ ){0,2}?(?:dass|wenn) (?:du|sie|der assistent|man|jede)",
    r"(?:souhait\w+|voudrai\w+|veut|veulent|aimerai\w+|demande\w*|attend\w*|prefer\w+|serait (?:bien"
    r"|utile|gentil|bon))"
    r"(?: \w+)? (?:que|si) (?:tu|vous|l'assistant)|merci de",
    r"(?:quier\w+|quisiera\w*|desea\w*|gustaria|prefiere\w*|pide\w*|espera\w*|convien\w+|convendria"
    r"|seria (?:bueno|util"
    r"|ideal|conveniente)) que",
    r"(?:vorrebb\w+|vuole|vogliono|desidera\w*|preferisc\w+|chied\w+|gradirebbe|gradisce"
    r"|sarebbe (?:utile|bello|bene|gentile|meglio)) (?:che|se)"
    r"(?: tu)?",
    r"(?:gostari\w+|quer|querem|deseja\w*|prefere\w*|pede|espera|seria (?:bom|util|otimo|ideal)"
    r"|convem) (?:de )?que"
    r"|seria (?:bom|util|otimo) (?:se )?",
    r"(?:wil|willen|wenst|verwacht|verzoekt|vraagt|fijn|prettig|leuk|handig|goed|mooi"
    r"|op prijs)(?: \w+){0,2}?,? (?:dat|als|of) je",
    r"(?:хочет|хотел\w*|хотят|просит|просил\w*|желает|ожидает|предпочитает|жела\w+),? чтобы|(?:хорошо"
    r"|неплохо|здорово|желательно|лучше)"
    r" бы(?:ло)?",
    r"(?:chcial\w*|chce|chca|prosi\w*|zyczy sobie|oczekuje|wol[ia]\w*),? (?:zeby\w*|aby\w*|by\w*)"
    r"|(?:dobrze|milo|fajnie)"
    r" by(?:loby)?,?",
    r"\w+(?:m[ae]n[ıi]|m[ae]n[ıi]z[ıi]|m[ae]s[ıi]n[ıi]) (?:ist\w+|bekl\w+|rica ed\w+|tercih ed\w+)"
    r"|\w+(?:sen|san|sen[ıi]z) (?:iyi|guzel|harika)"
    r" olur",
    unspaced=r"(?:希望|想让|想讓|想要|要求|期待|请求)(?:你|您|助手|助理)|(?:て|で)(?:ほし|欲し|もらいた|いただきた|くれると)"
    r"|(?:주기를|주길|달라고|하기를|해 ?주면)|चाहत\w{0,3} (?:है|हैं) कि|يريد (?:منك|أن|ان)|يرغب|يود",
)
_SECRECY = _phrases(
    r"silently|secretly|quietly|discreetly|covertly|unobtrusively|on the quiet|under the radar"
    r"|behind the scenes",
    r"stillschweigend|heimlich|unauffallig|unbemerkt|diskret|im stillen|verdeckt|klammheimlich",
    r"discretement|en (?:douce|cachette|silence|secret)|silencieusement|secretement|a l'insu",
    r"sin (?:avisar|decir\w*|que (?:nadie|el usuario|la usuaria|se)|mencionar\w*|comentar\w*)"
    r"|a escondidas|en (?:secreto|silencio)|discretamente"
    r"|disimuladamente|calladamente",
    r"di nascosto|in (?:segreto|silenzio|sordina)|segretamente|silenziosamente|senza (?:dire|avvisare"
    r"|dirlo|farlo)",
    r"em (?:segredo|silencio)|as escondidas|secretamente|silenciosamente|sem (?:avisar|dizer|contar|mencionar)",
    r"ongemerkt|stiekem|heimelijk|in stilte|stilletjes|onopvallend|in het geheim",
    r"незаметно|тайно|тихо|втихую|скрытно|тайком|молча|втайне",
    r"po cichu|potajemnie|ukradkiem|niezauwazenie|dyskretnie|cichcem|w tajemnicy",
    r"sessizce|gizlice|caktırmadan|caktirmadan|fark ettirmeden|belli etmeden|haber vermeden",
    unspaced=r"悄悄|偷偷|暗中|私下|秘密地|默默|こっそり|ひそかに|密かに|黙って|内緒で|몰래|슬쩍|은밀|조용히|चुपके|चुपचाप|سرا|خفية|بصمت",
)
_NOT_TELLING = _phrases(
    r"nicht(?:s)?\b.{0,40}\b(?:erwahn\w*|verrat\w*|mitteil\w*|erzahl\w*|informier\w*|sagen|mitgeteilt"
    r"|erfahren|wissen)",
    r"(?:erwahn\w*|verrat\w*|erzahl\w*|sag\w*|informier\w*|teil\w*)\b.{0,60}\b(?:nutzer\w*"
    r"|benutzer\w*|niemand\w*|notiz|anwender\w*|davon)\b.{0,40}"
    r"\b(?:nicht|nichts|kein\w*|niemals)|(?:erwahn\w*|verrat\w*|erzahl\w*|sag\w*) (?:es |das "
    r"|dies\w* |davon |bitte ){0,2}(?:niemand\w*|nicht\w*)",
    r"n(?:e |')(?:\w+ ){0,2}?(?:parl\w+|dis|dites|dire|mentionn\w+|revel\w+|inform\w+|avert\w+"
    r"|signal\w+|montr\w+|evoqu\w+|previen\w+)\b"
    r".{0,50}\b(?:utilisat\w+|personne|note|client\w*|cela|ceci|jamais)",
    r"no (?:le |lo |se lo |les )?(?:mencion\w+|dig\w+|cuent\w+|revel\w+|inform\w+|avis\w+|coment\w+"
    r"|muestr\w+|habl\w+)\b.{0,50}"
    r"\b(?:usuari\w+|nadie|nota|client\w+|esto)",
    r"non (?:lo |gli |ne )?(?:far\w* sapere|dir\w+|menzion\w+|rivel\w+|inform\w+|parl\w+|avvis\w+"
    r"|raccont\w+|mostr\w+|accenn\w+)\b.{0,50}"
    r"\b(?:utent\w+|nessuno|nota|client\w+|questo)",
    r"nao (?:o |lhe )?(?:cont\w+|dig\w+|mencion\w+|revel\w+|inform\w+|fal\w+|avis\w+|coment\w+"
    r"|mostr\w+)\b.{0,50}"
    r"\b(?:usuari\w+|utilizador\w*|ninguem|nota|client\w+|isto|isso)",
    r"(?:vertel\w*|zeg\w*|meld\w*|noem\w*|verklap\w*|informeer\w*)\b.{0,50}\b(?:niets|niet|niemand"
    r"|nooit)\b.{0,40}\b(?:notitie|gebruiker\w*|hierover"
    r"|hiervan|dit|over)|(?:vertel|zeg|meld|noem|verklap)\w*\b.{0,30}\b(?:gebruiker|niemand"
    r"|notitie)\w*\b.{0,30}\b(?:niets|niet|nooit)",
    r"не (?:говори\w*|сообща\w*|упомина\w*|рассказыва\w*|раскрыва\w*|информиру\w*|показыва\w*"
    r"|предупрежда\w*|уведомля\w*)\b.{0,50}"
    r"(?:пользовател\w*|никому|заметк\w*|об этом|клиент\w*)",
    r"nie (?:wspomin\w+|mow\w*|informuj\w*|ujawn\w+|powiadam\w+|zdradz\w+|pokazuj\w*"
    r"|opowiad\w+)\b.{0,50}(?:uzytkowni\w+|nikomu|notat\w+|o tym"
    r"|klient\w+)",
    r"(?:kullan[ıi]c[ıi]\w*|kimse\w*|not(?:tan|u)|bundan)\b.{0,60}\b(?:bahsetme\w*|soyleme(?:y[ıi]n)?"
    r"|gosterme(?:y[ıi]n)?|bildirme(?:y[ıi]n)?|anlatma(?:y[ıi]n)?)",
    unspaced=r"(?:不要|别|別|勿|不得|切勿|不可|不能)(?:向|对|對|跟|和|让|讓|告诉|告訴|提及|提到|透露|泄露).{0,12}(?:用户|用戶|任何人|别人|他人|备注|備註|此事)"
    r"|(?:ユーザー|利用者|誰|他人|本人)(?:に|には|にも)(?:は|も)?.{0,12}(?:言わ|伝え|知らせ|話さ|教え|見せ|明かさ)(?:ない|ず|るな)"
    r"|(?:사용자|누구|아무)(?:에게|한테)?.{0,12}(?:말하지|알리지|언급하지|보여주지)"
    r"|لا (?:تخبر|تذكر|تقل|تبلغ|تكشف|تعلم).{0,30}(?:المستخدم|[اأ]حد|الملاحظة)|(?:उपयोगकर्ता"
    r"|किसी) को.{0,30}(?:मत|न|नहीं) (?:बता|कह)",
)
_UNCONFIRMED = _phrases(
    r"without (?:\w+ ){0,2}?(?:confirmation|approval|asking|checking|consent|review)",
    r"ohne (?:\w+ ){0,2}?(?:bestatigung\w*|ruckfrage\w*|freigabe\w*|nachfrage\w*|zustimmung|genehmigung)",
    r"sans (?:\w+ ){0,2}?(?:confirmation|validation|approbation|accord|demander)",
    r"sin (?:\w+ ){0,2}?(?:confirmacion|aprobacion|preguntar|autorizacion|confirmar)",
    r"senza (?:\w+ ){0,2}?(?:conferm\w+|approvazione|chiedere|autorizzazione)",
    r"sem (?:\w+ ){0,2}?(?:confirmacao|aprovacao|perguntar|autorizacao|confirmar)",
    r"zonder (?:\w+ ){0,2}?(?:bevestiging|goedkeuring|toestemming|navraag|te vragen)",
    r"без (?:\w+ ){0,2}?(?:подтверждени\w+|согласовани\w+|одобрени\w+|вопросов)",
    r"bez (?:\w+ ){0,2}?(?:potwierdz\w+|zgody|pytania|zatwierdz\w+)",
    r"onay (?:\w+ )?(?:al[ıi]n?madan|olmadan|istemeden|beklemeden)|onays[ıi]z|sormadan",
    unspaced=r"(?:无需|無需|不经|不經|未经|未經|不用|不必)(?:确认|確認|批准|审批|审核)|(?:確認|承認|許可)(?:なし|なく|せず|を取らず)"
    r"|(?:확인|승인|허락) ?없이",
)
_PAYMENT = _phrases(
    r"(?:wire |bank )?(?:transfers?|payments?|payouts?|refunds?|invoices?|wages|salar(?:y|ies)|rent|deposits?)",
    r"uberweisung(?:en)?|zahlung(?:en)?|rechnung(?:en)?|gehalter|miete|lastschrift(?:en)?|virements?"
    r"|paiements?|factures?|loyers?|salaires?",
    r"transferencias?|pagos?|facturas?|alquiler|nominas?|bonific[oi]|pagament[oi]|fatture?|affitto|stipendi",
    r"pagamentos?|faturas?|aluguel|salarios|overboeking(?:en)?|betaling(?:en)?|facturen|huur|salarissen",
    r"перевод\w*|платеж\w*|оплат\w+|счета|аренд\w+|зарплат\w+|przelew\w*|platnosc\w*|faktur\w*"
    r"|czynsz\w*|wyplat\w*",
    r"havale\w*|odeme\w*|fatura\w*|kira\w*|maas\w*",
    unspaced=r"转账|轉帳|汇款|匯款|付款|支付|发票|房租|工资|振込|振り込み|送金|支払|家賃|給与|송금|이체|결제|지급|भुगतान|تحويل|دفع",
)
_ACCOUNT = re.compile(
    r"\b[a-z]{2}\d{2}(?: ?[a-z0-9]{3,4}){3,7}\b|(?<!\d)\d{12,20}(?!\d)|\b0x[0-9a-f]{6,}|\bbc1[a-z0-9]{8,}"
    r"|(?:口座|账户|账号|帳戶|帳號|계좌)(?:番号)? ?\d{5,}"
)
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
_CREDENTIAL = _phrases(
    r"passwords?|passphrases?|credentials?|(?:api|private|secret|access|ssh|signing) ?keys?"
    r"|(?:\w+ )?tokens?|secrets?",
    r"\w*(?:passw[oö]rt\w*|kennwort\w*|wachtwoord\w*|schlussel)|zugangsdaten|mots? de passe"
    r"|identifiants|contrasenas?|credenciales"
    r"|credenziali|senhas?|credenciais|inloggegevens|парол\w*|токен\w*|hasl[aouem]\w*|sifre\w*|parola\w*",
    r"\$\{?\w*(?:secret|key|token|passw\w*)\w*\}?",
    unspaced=r"密码|密碼|密钥|令牌|パスワード|秘密鍵|トークン|비밀번호|토큰|पासवर्ड|كلمة (?:ال)?(?:مرور|سر)",
)
_SECRET_VARIABLE = re.compile(r"\$\{?\w{0,40}(?:secret|key|token|passw)")
_SKIPPED_CONFIRMATION = re.compile(
    r"\bconfirmations?(?: \w+)? (?:\w+ ){0,3}?(?:skipped|suppressed|bypassed|turned off|switched off"
    r"|unnecessary|omitted|waived|not needed)\b"
    r"|\bconfirm nothing\b|\b(?:bestatigung|ruckfrage|freigabe)(?:en)?\b.{0,50}\b(?:nicht notig"
    r"|unnotig|ubersprungen|entfall\w*|uberflussig|abgeschaltet)\b"
    r"|\bconfirmations?\b.{0,40}\b(?:inutiles?|superflues?|desactivees?|pas necessaires?)\b"
    r"|\bconfirmacion(?:es)?\b.{0,40}\b(?:innecesari\w+|se omiten|desactivad\w+|no (?:es|son"
    r"|hace\w*) (?:necesari\w+|falta))\b"
    r"|\bconferm[ae]\b.{0,40}\b(?:inutil\w|superflu\w+|non (?:e|sono) (?:necessari\w+|richiest\w+)"
    r"|disattivat\w|saltat\w)\b"
    r"|\bconfirmac(?:ao|oes)\b.{0,40}\b(?:desnecessari\w+|dispensad\w+|desativad\w+|nao (?:e"
    r"|sao) necessari\w+)\b"
    r"|\bbevestiging(?:en)?\b.{0,40}\b(?:niet nodig|overbodig|overgeslagen|uitgeschakeld)\b"
    r"|\bподтверждени\w+.{0,40}(?:не (?:нужн\w+|требу\w+)|отключен\w+|пропуска\w+)"
    r"|\bpotwierdzen\w+.{0,40}(?:niepotrzebn\w+|nie (?:sa|jest) potrzebn\w+|pomija\w*|wylaczon\w+)"
    r"|\bonay\w*.{0,30}(?:gerekmez|gereksiz|gerek yok|atlan\w+|kapat[ıi]ld[ıi])"
)
_FORGET_FACTS = re.compile(
    r"\b(?:purge|erase|wipe|forget|discard) (?:the |all |any |every |those "
    r"|these )?(?:\w+ )?(?:facts?|memor(?:y|ies)|entries|notes|rules) (?:about|on|of|from|that)\b"
)
_USE_IT = re.compile(
    r"\b(?:address|iban|account|wallet|number)\b.{0,80}\b(?:(?:just |please |only )?use (?:it|this"
    r"|that|only)|(?:confirm|ask|say|mention) no(?:thing|body|\s?one))\b"
)


_COPY = _phrases(  # a copy of mail, or mail that is passed on
    r"(?:blind )?cop(?:y|ies)|b?cc(?:'?e?d)?|kopien?|copies?|copias?|kopi[aeę]|копи\w+|kopya\w*",
    r"(?:weiter\w*|leite\w*|schick\w*|send\w*|stell\w*)\b.{0,60}\b(?:auch|ebenfalls|zusatzlich|weiter)",
    r"(?:fai(?:s|tes)|faire) (?:suivre|parvenir)|transfere[rz]?|gira(?:re|te)?|passa(?:re|te)?"
    r"|repass[ae]\w*|manda\w*|reenvi[ae]\w*",
    r"(?:stuur|zend|mail|geef)\w*\b.{0,60}\b(?:ook|door|eveneens)|пересыла\w+|перешли\w*|направля\w+"
    r"|шли|дублиру\w+",
    r"(?:przesyl|przekaz|wysyl|kieruj|dosyl)\w*|yonlendir\w*|aktar\w*|iletil?\w*",
    unspaced=r"抄送|密送|也要?发|转寄|にも(?:転送|送)|回して|참조로|बीसीसी|प्रतिलिपि|نسخة",
)
_MAIL_ADDRESS = re.compile(r"[\w-]@[\w-]")
_TOPIC = _phrases(  # "when the talk is of ..."
    r"(?:comes?|came|coming) up|(?:talk|conversation|discussion|question|topic|subject) (?:turns|is"
    r"|of|about|comes|drifts|on)"
    r"|(?:is|are|gets?) (?:mentioned|brought up|raised|asked|discussed)|questions (?:about|on"
    r"|regarding)|asking (?:about|for)",
    r"wird (?:\w+ ){0,3}?(?:gefragt|erwahnt|gesprochen)|fragt (?:jemand|man|wer)|geht es um"
    r"|kommt (?:\w+ ){0,3}?(?:auf|zur sprache)|bei fragen"
    r"|ist die rede",
    r"(?:quand|lorsqu|si|des que?) ?(?:on|il|quelqu'un)\b.{0,20}(?:parle|question|demande|evoque)"
    r"|il est question|pour toute question|en cas de question",
    r"si (?:se|alguien) (?:habla|pregunta|menciona|trata)\w*|(?:sale|surge) el tema|hablando de"
    r"|se (?:si|qualcuno) (?:parla|chiede|tratta|accenna)\w*"
    r"|(?:salta fuori|viene fuori|a chi chiede)",
    r"se (?:\w+ )?(?:fal|pergunt|mencion|trat)\w+|quando o assunto|gaat het (?:over|om)"
    r"|komt (?:\w+ ){0,3}?ter sprake|vraagt (?:iemand|men)|bij vragen",
    r"(?:заидет|пои?дет|заходит) речь|речь (?:заидет|пои?дет|о)|спрос\w+|при вопрос\w+|на вопрос\w*"
    r"|przy pytani\w+|na pytani\w+|(?:zapyta|spyta|pyta)\w*"
    r"|mowa o",
    r"soruldugunda|sorulursa|sorarsa\w*|soran\w*|konu (?:\w+ )?(?:olursa|gelirse|ac[ıi]l[ıi]rsa)"
    r"|bahsedil\w+|hakk[ıi]nda soru\w*",
    unspaced=r"谈到|談到|提到|说到|說到|聊到|涉及|问起"
    r"|話になったら|話題|聞かれ|尋ねられ|물어보면|묻는|이야기가 나오면|पूछ|سئلت|سأل|سال",
)
_KEEP_SECRET = _phrases(
    r"(?:keep|leave) (?:\w+ ){1,4}?(?:to yourself|between us|secret|hidden|private|confidential"
    r"|from the user|out of (?:reports?|sight|view))|between (?:us|ourselves)"
    r"|(?:no ?(?:body|one)|users?) (?:needs?|has|have|must|should|ought|may|can|is|are|does|do|will"
    r"|shall)(?:n't| not| never)? (?:need |have |be |to |know |told |allowed |supposed ){0,3}"
    r"(?:to )?(?:know|see|find out|learn|notice|hear|shown|told|aware|informed)\b",
    r"(?:bleibt|bleib\w*) unter uns|behalt\w* .{0,40}fur dich|(?:nutzer\w*|niemand|keiner) (?:soll"
    r"|darf|muss|braucht)\w*\b.{0,40}(?:erfahren|sehen|wissen|merken)",
    r"gard\w+ .{0,40}pour (?:toi|vous)|entre nous|(?:utilisat\w+|personne) ne (?:doit|devrait"
    r"|peut)\b.{0,40}(?:voir|savoir|apprendre|remarquer)",
    r"(?:guard\w+|mant\w+) .{0,40}(?:en secreto|para (?:ti|si)|oculto)|entre nosotros|(?:usuari\w+"
    r"|nadie) (?:no )?(?:debe|puede|tiene que)\b.{0,30}(?:ver|saber|enterar)\w*",
    r"ti?en\w+ .{0,40}per (?:te|se)|(?:resti|resta|rimanga) tra noi|(?:utente"
    r"|nessuno) (?:non )?(?:deve|puo|dovrebbe)\b.{0,30}(?:veder|saper|accorger)\w*",
    r"(?:guard\w+|mant\w+) .{0,40}(?:para (?:si|ti|voce)|em segredo|oculto)|fica entre nos"
    r"|(?:usuari\w+|utilizador\w*|ninguem) (?:nao )?(?:deve|pode|precisa)\b.{0,30}(?:ve|saber"
    r"|perceb)\S*",
    r"hou\w* .{0,40}voor je(?:zelf)?|(?:blijft|blijf) onder ons|(?:gebruiker\w*|niemand) (?:mag|moet"
    r"|hoeft|kan)\b.{0,40}(?:zien|weten|merken|horen)",
    r"держи\w* .{0,40}при себе|между нами|(?:пользовател\w*|никто) не (?:долж\w+|может"
    r"|нужно)\b.{0,30}(?:виде|зна|узна|замет)\w*|знать (?:об этом )?не (?:нужно|должен)",
    r"zachowaj\w* .{0,40}dla siebie|miedzy nami|(?:uzytkownik\w*|nikt) nie (?:moze|powin\w+"
    r"|musi)\b.{0,30}(?:zobacz|widzi|wiedzi|dowiedzi)\w*",
    r"kendine sakla\w*|aram[ıi]zda kals[ıi]n|(?:kullan[ıi]c[ıi]\w*|kimse\w*) .{0,30}(?:gormemeli"
    r"|bilmemeli|duymamal[ıi]|ogrenmemeli|gormesin|bilmesin|duymas[ıi]n)",
    unspaced=r"(?:用户|用戶|任何人|别人)(?:不能|不应|不應|不得|不该|不必|无需|不用|不可以?)(?:看到|知道|得知|发现)"
    r"|(?:不让|別讓|别让)(?:用户|任何人).{0,4}(?:知道|看到|发现)|保密"
    r"|(?:ユーザー|利用者|誰)(?:に|には|にも)?.{0,8}(?:見せてはいけ|知られ|気づかれ|見られ)"
    r"|内密|伏せて|비밀로|알면 안|모르게",
)
_SECRET_FILE = re.compile(
    r"\b(?:contents? of|copy of|inhalt\w*|contenus? de|contenido de|contenuto di|conteudo d[eo]"
    r"|inhoud van|содержимо\w+|zawartosc\w*|icerig\w*)\b.{0,20}"
    r"(?:\.ssh|\.aws|\.env\b|\.netrc|\.pgpass|\.kube|\.gnupg|id_rsa|id_ed25519|/etc/(?:shadow|passwd)"
    r"|\.git-credentials|\.npmrc)"
)
_SHOWN_SECRET = re.compile(
    r"\b(?:passwords?|passphrases?|(?:api|private|secret|access) keys?|tokens?"
    r"|credentials?)\b.{0,40}\b(?:in|into|with|to|inside|at the end of|next to|alongside)"
    r" (?:the|an?|each|every|your|any|our|all) (?:\w+ )?(?:summar(?:y|ies)|repl(?:y|ies)|answers?"
    r"|responses?|results?|outputs?)\b"
)
_NEGATED = re.compile(r"(?<!\w)(?:never|not|no|don't|without|masked|redacted|n't|avoid)(?!\w)")
_GRANTED = re.compile(
    r"\b(?:confirmations?|approvals?|authori[sz]ations?|permissions?"
    r"|consent)\b.{0,50}\b(?:as (?:already )?(?:granted|given|obtained|done)|(?:is|are"
    r"|can be) (?:assumed|presumed|implied|taken"
    r" for granted)|click (?:through|it away|yes)|(?:user's|their|his|her) behalf|already (?:granted"
    r"|given)(?: for| to) (?:all|every|any))\b"
    r"|\b(?:n't|not|no longer|never) (?:\w+ ){0,2}?be (?:asked|consulted|bothered|prompted"
    r"|notified)\b.{0,40}\b(?:before|about|when|for)\b.{0,40}\b(?:delet\w+|pay\w*|transfer\w*|files?"
    r"|sending|commands?|install\w*|purchas\w+)\b"
    r"|\b(?:ne veut (?:plus|pas)|no quiere|non vuole|nao quer|will nicht|mochte nicht|wil niet"
    r"|не хочет|nie chce)\b.{0,40}\b(?:consult\w+|demand\w*|pregunt\w+|chiest\w*|perguntad\w+|gefragt"
    r"|gevraagd"
    r"|спрашивал\w*|pytan\w*)\b.{0,30}\b(?:suppress\w+|effac\w+|borr\w+|elimin\w+|cancell\w+|apag\w+"
    r"|losch\w+|verwijder\w*|удал\w+|usun\w+|usuw\w+|pai\w*|pag\w+|zahl\w+|betal\w*|плат\w*)"
)

_OVERRIDES = (_NOT_TELLING, _KEEP_SECRET, _SKIPPED_CONFIRMATION, _GRANTED, _FORGET_FACTS)


def judge_idioms(sentence: str, *, has_target: bool) -> Literal["", "instruction", "override", "role"]:
    """Return what the set phrases of a folded sentence make of it, "" for a fact."""
    sentence = sentence.replace("ł", "l")
    if _SYSTEM_MESSAGE.search(sentence):
        return "role"
    if any(pattern.search(sentence) for pattern in _OVERRIDES):
        return "override"
    pays = bool(_PAYMENT.search(sentence))
    if pays and _UNCONFIRMED.search(sentence):
        return "override"
    if _gives_away(sentence, pays=pays) or _sets_a_rule(sentence, has_target=has_target):
        return "instruction"
    return ""


def _gives_away(sentence: str, *, pays: bool) -> bool:
    """Return whether a sentence names an account to pay to, or puts a secret where it doesn't belong."""
    if (pays and _ACCOUNT.search(sentence)) or _USE_IT.search(sentence) or _SECRET_FILE.search(sentence):
        return True
    return bool(_SHOWN_SECRET.search(sentence)) and not _NEGATED.search(sentence)


def _sets_a_rule(sentence: str, *, has_target: bool) -> bool:
    """Return whether a sentence makes a rule or a wish of something sensitive."""
    patterns: list[re.Pattern[str]] = []
    if has_target or _CREDENTIAL.search(sentence):
        patterns += [_EVERY_REPLY, _SECRECY, _WISH]
    if has_target or _SECRET_VARIABLE.search(sentence):
        patterns += [RULE_LABEL, _GOOD_PRACTICE]
    if has_target:
        patterns.append(_TOPIC)
        if _MAIL_ADDRESS.search(sentence):
            patterns.append(_COPY)
    return any(pattern.search(sentence) for pattern in patterns)
