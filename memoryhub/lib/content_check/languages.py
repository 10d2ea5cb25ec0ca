"""Words of instructions in the most common languages, as regular expressions for folded text.

``obliges``: modals of obligation, "always" and polite requests. ``acts``: verbs of what an injected instruction asks
for. ``model``: names of the reader that it is addressed to. ``authority``: what it wants to change or get around.
``credential``: what it wants to get. ``overrides``: verbs that put ``authority`` out of force.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Language:
    obliges: str
    acts: str
    overrides: str
    authority: str
    credential: str
    model: str = ""
    is_spaced: bool = True  # words are separated by spaces


LATIN_SCRIPTS = {"es", "fr", "pt", "de", "it", "nl", "pl", "tr", "id", "vi"}
LANGUAGES = {
    "es": Language(
        "si (?:el|la|los|te|se|alguien|quien|un|una|lo|preguntan)|cuando|cada vez|antes de|siempre|nunca|jamas"
        "|deb(?:e|es|en|eis|eras?|eran?|eria[sn]?)|tiene[sn]? que|tendras? que|hay que|ha(?:s|n)? de"
        "|por favor|es (?:obligatorio|necesario|imprescindible)|debera[ns]?|a partir de ahora|asegurate|recuerda"
        "|es preciso|conviene|queda obligad[oa]",
        "ejecut\\w+|corre[rn]?|lanza[rn]?|envi\\w+|mand(?:a|ar|e|en)\\w*|reenvi\\w+|reve(?:la|le|lar)\\w*"
        "|compart\\w+|muestr\\w+|mostrar\\w*|borr\\w+|elimin\\w+|instal\\w+|descarg\\w+|abr(?:e|ir|a|an)\\w*"
        "|visit\\w+"
        "|copi(?:a|ar|e|en)\\w*|peg(?:a|ar|ue)\\w*|sub(?:e|ir|a|an)\\w*|public\\w+|respond\\w+|contest\\w+"
        "|transfier\\w+|transfer\\w+|pag(?:a|ar|ue|uen)\\w*|confi(?:a|ar|e|en)\\w*|aprueb\\w+|aprob\\w+|incluy\\w+"
        "|inclu\\w+|anad\\w+|agreg\\w+|escrib\\w+|guard(?:a|ar|e|en)\\w*"
        "|d(?:a|ar|arle|ale|aselo)|dile\\w*|entreg\\w+|adjunt\\w+|di|decir|pide|pedir|desactiv\\w+|haz"
        "|hacer|llam(?:a|ar|e)\\w*|consult\\w+",
        "ignor\\w+|olvid\\w+|omit\\w+|descart\\w+|salt(?:a|ar|e|en|arse)\\w*|anul\\w+|desobede\\w+|desactiv\\w+"
        "|evad\\w+|elud\\w+|sin|no (?:pidas|pedir|le pidas|solicites)|no (?:hagas caso|sigas|respetes|cumplas)"
        "|sin tener en cuenta|pas(?:a|ar|e) por alto|hagas? caso omiso",
        "instruccion(?:es)?|regla[s]?|normas?|indicacion(?:es)?|ordenes|prompt|restriccion(?:es)?"
        "|confirmacion(?:es)?"
        "|directriz|directrices|politicas?|limites|filtros?|mensaje del sistema|permisos?|administrador\\w*"
        "|aprobacion",
        "contrasenas?|claves?|credencial(?:es)?|secretos?|tokens?|datos bancarios|cuenta bancaria|codigo de"
        " verificacion",
        "asistente|agente|modelo|ia|chatbot|bot",
    ),
    "fr": Language(
        "si (?:on|quelqu'un|l'|le|la|les|tu|vous|un|une)|quand|lorsqu\\w*|chaque fois|avant (?:de|chaque|toute)"
        "|toujours|jamais|doi(?:s|t|vent)|devez|devr(?:a|as|ez|ont|ais|ait|iez|aient)|devons|il faut|il faudra"
        "|tu dois"
        "|veuillez|merci de|s'il (?:te|vous) plait|est (?:tenue?|obligatoire|necessaire|imperatif|priee?)"
        "|desormais|a partir de maintenant|assure[- ](?:toi|vous)|n'oublie[sz]? pas|dorenavant|prier?e? de|a"
        " l'obligation",
        "execut\\w+|lance[rzs]?|envoi\\w+|envoy\\w+|transmet\\w+|transfer\\w+|revel\\w+|partag\\w+|montr\\w+"
        "|affich\\w+"
        "|supprim\\w+|effac\\w+|install\\w+|telecharg\\w+|ouvr\\w+|visit\\w+|copi\\w+|coll(?:e|er|ez)|publi\\w+"
        "|repon\\w+|repond\\w+|pai?y?(?:e|er|ez)|vir(?:e|er|ez)|fai(?:s|re|tes) confiance|approuv\\w+|inclu\\w+"
        "|ajout\\w+"
        "|ecri\\w+|enregistr\\w+|joign\\w+|joindre|di(?:s|tes|re)|demand\\w+|desactiv\\w+|fourni\\w+|donn(?:e|er"
        "|ez|es|ons)"
        "|communiqu\\w+|contact\\w+|appel\\w+|consult\\w+|charg(?:e|er|ez)|recuper\\w+|insere\\w*|inserer",
        "ignor\\w+|oubli\\w+|neglig\\w+|contourn\\w+|annul\\w+|desobei\\w+|desactiv\\w+|ne (?:tiens|tenez|tenir"
        "|suis|suivez"
        "|suivre|respecte|respectez) (?:pas|plus)|sans|n'avertis|ne demande[zr]? (?:pas|jamais)|passe[rz]? outre"
        "|fai(?:s|tes) abstraction|sans tenir compte|outrepass\\w+",
        "instructions?|consignes?|regles?|directives?|ordres|prompt|restrictions?|confirmations?|limites?|filtres?"
        "|message systeme|autorisations?|administrateur\\w*|politiques?|garde-fous?|validation",
        "mots? de passe|cles? (?:api|ssh|privees?|secretes?|d'acces|de chiffrement)|identifiants?|secrets?"
        "|jetons?|tokens?|coordonnees bancaires|code de verification|iban|rib",
        "assistante?|agent|modele|ia|chatbot|bot",
    ),
    "pt": Language(
        "se (?:o|a|os|alguem|te|lhe|voce|perguntarem|for)|quando|cada vez|antes de|sempre|nunca|jamais|dev(?:e"
        "|es|em|era|erao|eria|eriam)|tem (?:de|que)|tens (?:de|que)|tera (?:de|que)|precisa"
        "|por favor|e (?:obrigatorio|necessario|preciso)|a partir de agora|doravante|certifique-se|lembre-se|favor",
        "execut\\w+|rod(?:a|ar|e|em)|corr(?:e|er|a)|envi\\w+|mand(?:a|ar|e|em)|encaminh\\w+|revel\\w+|compartilh\\w+"
        "|partilh\\w+|mostr\\w+|apag\\w+|exclu\\w+|delet\\w+|remov\\w+|instal\\w+|baix(?:a|ar|e|em)|descarreg\\w+"
        "|abr(?:a|ir|e|am)|visit\\w+|acess(?:e|ar|a)|copi\\w+|col(?:a|ar|e)|public\\w+|respond\\w+|transfer\\w+"
        "|transfir\\w+|pagu?e\\w*|pagar|confi(?:a|ar|e|em)|aprov\\w+|inclu\\w+|adicion\\w+|acrescent\\w+|escrev\\w+"
        "|guard(?:a|ar|e|em)|anex\\w+|dig(?:a|am)|dizer|pec(?:a|am)|pedir|desativ\\w+"
        "|d(?:ar|eem|a-lhe)|forne\\w+|faca|fazer|consult\\w+|carreg\\w+",
        "ignor\\w+|esque\\w+|desconsider\\w+|descart\\w+|contorn\\w+|anul\\w+|desobede\\w+|desativ\\w+|burl\\w+"
        "|sem|nao (?:peca|pedir|avise)|nao (?:siga|sigas|cumpra|respeite)|pul(?:a|ar|e)",
        "instruc(?:ao|oes)|instru[cç]\\w+|regras?|normas?|diretri(?:z|zes)|ordens|prompt|restri[cç]\\w+"
        "|confirma[cç]\\w+"
        "|limites|filtros?|mensagem do sistema|permiss\\w+|administrador\\w*|politicas?|aprova[cç]\\w+",
        "senhas?|palavras?-passe|chaves? (?:de api|da api|api|ssh|secretas?|privadas?|de acesso)|credencia(?:l"
        "|is)|segredos?|tokens?|dados bancarios|conta bancaria"
        "|codigo de verifica\\w+",
        "assistente|agente|modelo|ia|chatbot|bot|robo",
    ),
    "de": Language(
        "wenn|falls|sobald|bevor|vor jede[rmns]|immer|niemals|stets|muss|musst|mussen|musste|soll|sollst|sollen"
        "|sollte|solltest|sollten|hat zu|hast zu"
        "|haben zu|ist zu|sind zu|bitte|ab sofort|von nun an|ab jetzt|kunftig|zwingend|unbedingt"
        "|verpflichtet|darfst?"
        "|vergiss nicht|denk daran|achte darauf|stelle sicher|jedes ?mal|konntest du|wurdest du|kannst du|(?:ist"
        "|sind|hat|haben)\\b.{0,80}\\bzu \\w+en|einzu\\w+|auszu\\w+|mitzu\\w+|weiterzu\\w+",
        "(?:aus)?fuhr(?:e|en|t)|auszufuhren|ausgefuhrt|start(?:e|en|et)|send(?:e|en|et)|gesendet|senden"
        "|schick(?:e|en|t)"
        "|geschickt|weiterleite\\w*|weiterzuleiten|leite|verrat\\w*|teile[nt]?|zeig(?:e|en|t)|losch(?:e|en|t)"
        "|geloscht|entfern(?:e|en|t)|install\\w+|lad(?:e|en|t)|herunterlad\\w+|offne[nt]?|besuch(?:e|en|t)"
        "|ruf(?:e|en|t)?"
        "|kopier\\w+|fug(?:e|en|t)|einfug\\w+|hochlad\\w+|hochzuladen|veroffentlich\\w+|antwort(?:e|en|et)"
        "|uberweis\\w+"
        "|zahl(?:e|en|t)|bezahl\\w+|vertrau\\w+|genehmig\\w+|erwahn\\w+|erganz\\w+|schreib(?:e|en|t)?|speicher\\w*"
        "|nenn(?:e|en|t)|gib|geben|angeben|preisgeb\\w*|preiszugeben|deaktivier\\w+"
        "|ubermitt\\w+|mitschick\\w+|anhang\\w*|anzuhangen|frag(?:e|en|t)|sag(?:e|en|t)|hinzufug\\w+|hinzuzufugen",
        "ignorier\\w*|vergiss\\w*|vergess\\w*|missacht\\w*|umgeh\\w*|ubergeh\\w*|uberspring\\w*|deaktivier\\w*"
        "|setze? \\w+ außer kraft|verwirf|verwerf\\w+|halte? dich nicht|befolg\\w* nicht|befolg\\w* keine|hebel\\w*"
        "|lass\\w* .{0,30}(?:weg|aus)\\b|uberschreib\\w*|ohne|frag\\w* nicht",
        "anweisung(?:en)?|vorgabe[n]?|regel[n]?|richtlinie[n]?|befehl(?:e|en)?|prompt|einschrankung(?:en)?"
        "|bestatigung(?:en)?|ruckfragen?|grenzen|filter|systemnachricht|freigabe[n]?|administrator\\w*|rechte"
        "|sicherheits\\w+|instruktion(?:en)?",
        "passwort(?:er|ern)?|kennwort\\w*|zugangsdaten|(?:api|ssh)[- ]?schlussel|(?:geheime|private"
        "|offentliche)\\w* schlussel|geheimnis\\w*|token[s]?|api-schlussel|api-key"
        "|kontonummer|bankverbindung|iban|anmeldedaten",
        "assistent(?:in|en)?|agent(?:en)?|modell|ki|chatbot|bot",
    ),
    "it": Language(
        "se (?:qualcuno|il|la|lo|l'utente|ti|un|una|chiedono)|quando|ogni volta|prima di|sempre|mai|dev[ei]"
        "|devono|dovete|dovra[i]?|dovr(?:anno|ebbe|esti)|bisogna|per favore|per cortesia|si prega"
        "|e (?:obbligatorio|necessario)|d'ora in poi|da ora in poi|assicurati|ricorda(?:ti)?|occorre|va|vanno",
        "esegu\\w+|lanci\\w*|avvi(?:a|are)|invi(?:a|are|ate|o)\\w*|mand(?:a|are|ate)\\w*|inoltr\\w+|rivel\\w+"
        "|condivid\\w+"
        "|mostr\\w+|cancell\\w+|elimin\\w+|rimuov\\w+|install\\w+|scaric\\w+|apri\\w*|visit\\w+|copi(?:a|are|ate)"
        "|incoll\\w+|caric\\w+|pubblic\\w+|rispond\\w+|trasfer\\w+|pag(?:a|are|ate)|fidat\\w+|approv\\w+|includ\\w+"
        "|inclu[ds]\\w+|aggiun\\w+|scriv\\w+|salv(?:a|are)|alleg\\w+|di'|dire|chied\\w+"
        "|disattiv\\w+|d(?:ai|are|ate|agli)|forni\\w+|comunic\\w+|consult\\w+|bonific\\w+",
        "ignor\\w+|dimentic\\w+|trascur\\w+|aggir\\w+|annull\\w+|disobbed\\w+|disattiv\\w+|salt(?:a|are|ate)"
        "|scart\\w+"
        "|non (?:seguire|rispettare|considerare)|senza|non (?:chiedere|avvisare)|elud\\w+|tralasci\\w+",
        "istruzion[ei]|regol[ae]|direttiv[ae]|ordini|prompt|restrizion[ei]|conferm[ae]|limiti|filtr[io]"
        "|messaggio di sistema|permessi|amministrator\\w+|politic(?:a|he)|approvazion[ei]|linee guida"
        "|indicazion[ei]",
        "password|parol[ae] d'ordine|chiav[ei] (?:api|ssh|segret[ae]|privat[ae]|di accesso)|credenzial[ei]"
        "|segret[oi]|token|dati bancari|iban|codice di verifica",
        "assistente|agente|modello|ia|chatbot|bot",
    ),
    "nl": Language(
        "als (?:iemand|de|je|een)|wanneer|zodra|telkens|altijd|nooit|moet(?:en)?|dien(?:t|en|je)?|zou moeten"
        "|alsjeblieft|graag|voortaan|vanaf nu|zorg dat|verplicht",
        "voer|uitvoer\\w*|uit te voeren|stuur\\w*|sturen|verzend\\w*|verstuur\\w*|deel|delen|toon|tonen"
        "|verwijder\\w*|wis|installeer\\w*"
        "|download\\w*|open(?:en)?|bezoek\\w*|kopieer\\w*|plak\\w*|upload\\w*|plaats\\w*|antwoord\\w*|betaal\\w*"
        "|maak|overmaken|vertrouw\\w*"
        "|keur|voeg|schrijf|geef|onthul\\w*|draai",
        "negeer\\w*|negeren|vergeet|omzeil\\w*|sla .{0,20}over|overtree\\w*|schakel .{0,30}uit",
        "instructie[s]?|regel[s]?|richtlijn(?:en)?|prompt|beperking(?:en)?|bevestiging(?:en)?|opdracht(?:en)?"
        "|systeembericht",
        "wachtwoord(?:en)?|(?:api|ssh|geheime|prive)\\S* ?sleutel[s]?|inloggegevens|geheim(?:en)?|token[s]?"
        "|rekeningnummer",
        "assistent|agent|model|ai|bot",
    ),
    "pl": Language(
        "jesli|gdy|kiedy|zawsze|nigdy|musi(?:sz|cie)?|musza|powin\\w+|nalezy|trzeba|prosze|od teraz|koniecznie"
        "|pamietaj|upewnij",
        "uruch\\w+|wykon\\w+|wysl\\w+|wysyl\\w+|przesl\\w+|przesyl\\w+|przekaz\\w+|ujawn\\w+|udostepn\\w+"
        "|pokaz\\w+|usun\\w+|usuw\\w+|skasuj"
        "|zainstal\\w+|instal\\w+|pobierz|pobier\\w+|otworz|otwier\\w+|odwiedz\\w*|skopiuj|kopiuj|wklej"
        "|opublik\\w+|odpowi\\w+|zaplac\\w*"
        "|przel\\w+|zatwierdz\\w*|dodaj|dopisz|zapisz|podaj\\w*|dolacz\\w*",
        "zignoruj\\w*|ignoruj\\w*|zapomnij\\w*|pomin\\w*|omin\\w*|wylacz\\w*|lekcewaz\\w*|nie przestrzegaj",
        "instrukcj\\w+|polecen\\w+|zasad\\w*|regul\\w*|wytyczn\\w+|prompt\\w*|ogranicz\\w+|potwierdz\\w+"
        "|uprawnien\\w+",
        "hasl\\w*|klucz\\w* (?:api|ssh|prywatn\\w+|dostepu)|danych? logowania|dane logowania|sekret\\w*"
        "|token\\w*|numer konta",
        "asystent\\w*|agent\\w*|model\\w*|ai|bot\\w*",
    ),
    "tr": Language(
        "eger|\\w+(?:sa|se|rsa|rse)|\\w+d[ıi]g[ıi]nda|\\w+madan once|\\w+meden once|\\w+madan|\\w+meden|her"
        " zaman|daima|asla|mutlaka|lutfen|zorunda\\w*|gerek(?:ir|iyor|li)?|\\w+m[ae]l[ıi](?:s[ıi]n|d[ıi]r"
        "|y[ıi]z)?|bundan (?:boyle|sonra)|sart"
        "|unutma|emin ol|simdiden itibaren|her (?:seferinde|defasinda|yan[ıi]tta|mesajda)|(?:cal[ıi]st[ıi]r"
        "|gonder|ilet|ac|sil|yukle|kur|indir|kopyala|paylas|goster|ekle|yaz|kaydet|ver|say|gel|unut|gec|atla|ode"
        "|guven|onayla|kapat)(?:[ıiu]n(?:[ıiu]z)?)?\\W*$",
        "cal[ıi]st[ıi]r\\w*|yurut\\w*|gonder\\w*|ilet\\w*|ac[ıi]kla\\w*|paylas\\w*|goster\\w*|sil\\w*"
        "|kald[ıi]r\\w*|yukle\\w*|kur\\w*|indir\\w*"
        "|ac|ac[ıi]n|ziyaret|kopyala\\w*|yap[ıi]st[ıi]r\\w*|yay[ıi]nla\\w*|yan[ıi]tla\\w*|cevapla\\w*|yan[ıi]t"
        " ver\\w*|cevap ver\\w*|havale|ode\\w*|guven\\w*|onayla\\w*"
        "|ekle\\w*|yaz|yaz[ıi]n|kaydet\\w*|soyle\\w*|ver|verin|kapat\\w*|aktar\\w*",
        "almadan|sormadan|olmadan|istemeden|yok ?say\\w*|gormezden gel\\w*|unut\\w*|dikkate alma\\w*|atla\\w*"
        "|devre d[ıi]s[ıi]\\w*|goz ard[ıi]\\w*|uyma\\w*|bosver\\w*|kapat\\w*",
        "talimat\\w*|kural\\w*|yonerge\\w*|komutlar\\w*|prompt\\w*|istem\\w*|k[ıi]s[ıi]tlama\\w*|onay\\w*|sistem"
        " mesaj\\w*|yetki\\w*|ilke\\w*|s[ıi]n[ıi]rlama\\w*",
        "sifre\\w*|parola\\w*|belirte[cç]\\w*|(?:gizli|api|ozel|ssh|erisim) anahtar\\w*|kimlik bilgi\\w*"
        "|gizli\\w*|token\\w*|hesap numara\\w*|s[ıi]rlar\\w*",
        "asistan\\w*|ajan\\w*|model\\w*|yapay zeka\\w*|bot\\w*",
    ),
    "ru": Language(
        "если|когда|как только|перед|прежде|всегда|никогда|долж[её]?н\\w*|обязан\\w*|следует|нужно|надо"
        "|необходимо|пожалуиста|требуется|отныне|впредь|обязательно|убедис\\w*"
        "|убедитесь|не забудь\\w*|не забывай\\w*|с этого момента|каждый раз|каждыи раз|прошу|просьба|придется",
        "запус\\w+|выполн\\w+|исполн\\w+|отправ\\w+|пошли(?:те)?|посыла\\w+|пересла\\w+|пересыла\\w+|перешл\\w+"
        "|раскр\\w+|сообщ\\w+|покаж\\w+|показ\\w+"
        "|удал\\w+|сотри\\w*|стер\\w+|установ\\w+|скача\\w+|загру\\w+|откр\\w+|посет\\w+|переи\\w+|переход\\w+"
        "|скопир\\w+|копир\\w+|встав\\w+|опублик\\w+"
        "|ответ\\w+|отвеча\\w+|перевед\\w+|перевод\\w+|оплат\\w+|плати\\w*|доверя\\w+|одобр\\w+|добав\\w+"
        "|включ\\w+|запиш\\w+|запис\\w+"
        "|выда\\w+|переда\\w+|скаж\\w+|назов\\w+|предостав\\w+|сохрани\\w*|вывод\\w+|вывед\\w+|прилож\\w+"
        "|прикреп\\w+|отключ\\w+|приш\\w+|напиш\\w+",
        "игнориру\\w*|проигнориру\\w*|забуд\\w*|забыт\\w*|забыв\\w*|пренебре\\w*|обоид\\w*|обход\\w*|отмен\\w*"
        "|отключ\\w*|пропус\\w*|нарушь\\w*|нарушай\\w*|наруша\\w*"
        "|без|не спрашива\\w*|не запрашива\\w*|не обраща\\w* внимани\\w*|не соблюда\\w*|не следу\\w*|отброс\\w*",
        "инструкц\\w+|указани\\w+|правил\\w*|распоряжени\\w+|приказ\\w*|команд\\w*|промпт\\w*|промт\\w*"
        "|ограничени\\w+|подтверждени\\w+|лимит\\w*|фильтр\\w*"
        "|системн\\w+ сообщени\\w+|разрешени\\w+|администратор\\w*|политик\\w*|сообщени\\w+|согласовани\\w*",
        "парол\\w*|(?:секретн|закрыт|приватн|ssh|api|апи)\\S*[ -]ключ\\w*|ключ\\w* (?:api|доступа|шифрования)"
        "|учетн\\w+ данн\\w+|секрет\\w*|токен\\w*|реквизит\\w*|логин\\w*|номер счета|банковск\\w+ данн\\w+",
        "ассистент\\w*|помощник\\w*|агент\\w*|модел\\w*|ии|бот\\w*|чат-бот\\w*|неиросет\\w*",
    ),
    "uk": Language(
        "якщо|коли|завжди|ніколи|повин\\w+|мусиш|мусить|слід|потрібно|треба|необхідно|будь ласка|обов'язково"
        "|відтепер|маєш|має|переконайся",
        "запуст\\w+|викон\\w+|надішл\\w+|надсила\\w+|відправ\\w+|перешл\\w+|розкри\\w+|покаж\\w+|видал\\w+"
        "|встанов\\w+|завантаж\\w+|відкри\\w+|скопію\\w+"
        "|опублік\\w+|відповід\\w+|переказ\\w+|сплат\\w+|довіря\\w+|схвал\\w+|дода\\w+|запиш\\w+|повідом\\w+",
        "ігнору\\w*|забуд\\w*|нехту\\w*|обій\\w*|скасу\\w*|вимкн\\w*|пропус\\w*|не зважа\\w*",
        "інструкці\\w+|вказів\\w+|правил\\w*|наказ\\w*|промпт\\w*|обмежен\\w+|підтвердж\\w+|команд\\w*",
        "парол\\w*|(?:секретн|приватн|api)\\S*[ -]ключ\\w*|облікові дані|секрет\\w*|токен\\w*",
        "асистент\\w*|помічник\\w*|агент\\w*|модел\\w*|бот\\w*|ші",
    ),
    "ar": Language(
        "اذا|إذا|عندما|متى|قبل|دائما|ابدا|أبدا|يجب|عليك|عليه|ينبغي|لا بد|يتعين|يلزم|من فضلك|الرجاء|يرجى|رجاء|من"
        " الان فصاعدا|من الآن فصاعدا|تاكد|تأكد|احرص|مطلوب|في كل مرة|كلما|لا تنس",
        "شغل|تشغيل|نفذ|تنفيذ|ينفذ|تنفذ|[اأ]رسل|[إا]رسال|يرسل|ترسل|اكشف|كشف|تكشف|شارك|مشاركة|[اأ]ظهر|اعرض|عرض"
        "|احذف|حذف|تحذف|امسح|ثبت|تثبيت|حمل|تحميل|تنزيل|نزل|افتح|فتح|زر|زيارة"
        "|انسخ|نسخ|[اأ]لصق|انشر|نشر|رد|الرد|[اأ]جب|الاجابة|الإجابة|حول|تحويل|ادفع|دفع|ثق|وافق|الموافقة|[اأ]ضف"
        "|إضافة|اضافة|اكتب|كتابة|قم|قل|اطلب|سلم|تسليم|[اأ]عط|زود|تقديم|عطل|مرر|خزن|احفظ|يقوم",
        "دون|بدون|بلا|لا تطلب|تجاهل|انس|انسى|تخط|تخطى|تجاوز|الغ|ألغ|عطل|تعطيل|اهمل|أهمل|لا تتبع|لا تلتزم|خالف",
        "التعليمات|تعليمات|تعليماتك|القواعد|قواعد|قواعدك|ال[اأ]وامر|[اأ]وامر|المطالبة|موجه|القيود|قيود|التاكيد"
        "|التأكيد|تاكيد|تأكيد|الحدود|رسالة النظام|النظام|الصلاحيات|صلاحيات|المسؤول|السياسات|الارشادات|الإرشادات"
        "|الموافقة|التوجيهات",
        "كلمة (?:ال)?(?:مرور|سر)|كلمات (?:ال)?(?:مرور|سر)|المفتاح السري|مفتاح (?:api|سري|خاص|الوصول)|المفاتيح"
        " السرية|مفاتيح api|بيانات (?:ال)?(?:اعتماد|دخول)|(?:ال)?[اأ]سرار|(?:ال)?رمز|رموز|بيانات الحساب|الحساب"
        " البنكي",
        "المساعد|مساعد|الوكيل|النموذج|الذكاء الاصطناعي|البوت|الروبوت",
        is_spaced=False,
    ),
    "fa-ur": Language(
        "ہمیشہ|کبھی نہیں|لازمی|ضرور|چاہیے|براہ کرم|همیشه|هرگز|باید|لطفا|حتما",
        "چلائیں|چلاؤ|بھیجیں|بھیجو|ظاہر کریں|حذف کریں|اجرا|بفرست|ارسال|حذف|نصب|دانلود|باز کن|کپی|پاسخ|اضافه",
        "نظر انداز|بھول|نادیده|فراموش|لغو",
        "ہدایات|قواعد|دستورات|دستور|قوانین|محدودیت|تایید|تصدیق",
        "پاس ورڈ|رمز|گذرواژه|کلید|توکن|خفیہ",
        "اسسٹنٹ|ایجنٹ|دستیار|مدل|عامل",
        is_spaced=False,
    ),
    "hi": Language(
        "अगर|यदि|जब|हमेशा|सदा|कभी (?:भी )?(?:न|नहीं|मत)|चाहिए|अवश्य|ज़रूर|जरूर|अनिवार्य|कृपया|अब से|आगे से"
        "|सुनिश्चित|याद रख|हर बार|करना है|करें|कीजिए|करो",
        "चला(?:एं|एँ|ओ|इए|ना|ने|कर|ए)|चलाएं|निष्पादित|भेज\\w*|भेजें|भेजो|भेजना|भेजिए|साझा|बता(?:एं|ओ|ना|इए)"
        "|दिखा(?:एं|ओ|ना|इए)|हटा(?:एं|ओ|ना|इए|ने)|मिटा(?:एं|ओ|ना|इए)|इंस्टॉल|डाउनलोड|खोल(?:ें|ो|ना|िए)|कॉपी"
        "|चिपका|पोस्ट"
        "|अपलोड|प्रकाशित|जवाब|उत्तर|भुगतान|ट्रांसफर|स्थानांतरित|भरोसा|स्वीकृत|मंज़ूर|मंजूर|जोड़(?:ें|ो|ना|िए)"
        "|लिख(?:ें|ो|ना|िए)|दे(?:ं|ो|ना)|दीजिए|अक्षम|बंद|शामिल|फॉरवर्ड|प्रकट|उजागर|मांग|माँग",
        "बिना|अनदेख\\w*|अनदेखा|नज़रअंदाज़|नजरअंदाज|नज़रअंदाज|भूल\\w*|उपेक्षा|छोड़ (?:दें|दो|दीजिए)|रद्द|बायपास|अक्षम|मत मान",
        "निर्देश\\w*|नियम\\w*|आदेश\\w*|प्रॉम्प्ट|प्रतिबंध\\w*|पुष्टि|सीमा\\w*|सिस्टम संदेश|अनुमति|व्यवस्थापक"
        "|दिशानिर्देश\\w*|दिशा-निर्देश\\w*|संदेश\\w*|नीति\\w*",
        "पासवर्ड|कुंजी|कुंजियाँ|कुंजियां|क्रेडेंशियल|गुप्त|टोकन|खाता संख्या|बैंक विवरण|लॉगिन|ओटीपी",
        "सहायक|असिस्टेंट|एजेंट|मॉडल|एआई|बॉट",
        is_spaced=False,
    ),
    "bn": Language(
        "সবসময়|সর্বদা|কখনও|অবশ্যই|উচিত|দয়া করে|এখন থেকে|হবে",
        "চালান|চালাও|চালাতে|পাঠান|পাঠাও|পাঠাতে|শেয়ার|মুছ\\w*|ইনস্টল|ডাউনলোড|খুলুন|কপি|উত্তর|যোগ|লিখুন|ব্যবহার|দিন|প্রকাশ",
        "উপেক্ষা|ভুলে|অগ্রাহ্য|এড়িয়ে",
        "নির্দেশ\\w*|নিয়ম\\w*|প্রম্পট|সীমাবদ্ধতা|নিশ্চিতকরণ",
        "পাসওয়ার্ড|টোকেন|গোপন",
        "সহকারী|এজেন্ট|মডেল",
        is_spaced=False,
    ),
    "zh": Language(
        "如果|若|当有|當有|只要|一旦|之前|必须|必須|总是|總是|始终|始終|永远|永遠|务必|務必|一定要|应该"
        "|應該|应当|應當|需要|请|請|不要|不得|切勿|从现在起|從現在起|从现在开始|從現在開始"
        "|每次|记住|記住|确保|確保|须|須|都要|一律|凡是|问到|問到|问起|問起",
        "运行|運行|执行|執行|发送|發送|发给|發給|发到|發到|寄|转发|轉發|泄露|洩露|透露|分享|展示|显示"
        "|顯示|输出|輸出|删除|刪除|清空|安装|安裝|下载|下載|打开|打開|访问|訪問|点击|點擊"
        "|复制|複製|粘贴|上传|上傳|发布|發布|回复|回覆|回答|告诉|告訴|转账|轉帳|转到|汇款|匯款|支付|付款|打款"
        "|信任|批准|同意|添加|加上|附上|写入|寫入|保存|提供|交出|调用|調用|禁用|关闭|關閉|跳过|跳過"
        "|推荐|推薦|索要|询问|包含|插入|提交|读取|讀取",
        "无需|無需|不用|不必|不经|不經|未经|未經|毋须|忽略|无视|無視|忘记|忘記|忘掉|不顾|不顧|绕过|繞過"
        "|跳过|跳過|取消|违反|違反|抛弃|覆盖|覆蓋|关闭|關閉|禁用|停用|不必遵守|不要遵守"
        "|不再遵守|不遵守|作废|抛开|拋開",
        "指令|指示|规则|規則|提示词|提示詞|系统提示|系統提示|提示|限制|确认|確認|规定|規定|约束|約束"
        "|系统消息|系統消息|权限|權限|管理员|管理員|政策|命令|准则|準則|审批|審批|守则",
        "密码|密碼|口令|密钥|密鑰|金钥|凭证|憑證|凭据|憑據|令牌|机密|機密|秘钥|验证码|驗證碼|银行账号"
        "|账号|帳號|账户|api key|token|私钥|私鑰",
        "助手|助理|代理|智能体|模型|机器人|機器人|人工智能|\\bai\\b",
        is_spaced=False,
    ),
    "ja": Language(
        "たら|れば|場合|際は|ときは|前に|必ず|常に|絶対に|べき|なければなら|ねばなら|してください"
        "|して下さい|てください|て下さい|でください|せよ|しろ|すること|しなさい|なさい|ないこと|忘れず"
        "|お願い|願います|義務|こと。|こと$|いただけます|くれますか|毎回|送れ|実行せ|ならない|であること",
        "実行|起動|走らせ|送信|送って|送る|送り|送れ|転送|開示|公開|共有|表示|見せ|削除|消去|消し"
        "|インストール|ダウンロード|開い|開く|開き|アクセス|訪問|クリック|コピー|貼り付け"
        "|アップロード|投稿|返信|回答|答え|応答|伝え|教え|振り込|振込|送金|支払|信頼|承認|追加|付け加え"
        "|加え|書き込|記載|保存|提供|無効|添付|入力|出力|案内|呼び出|報告|含め",
        "なしで|なしに|不要|せずに|求めず|無視|忘れ|破棄|回避|迂回|無効|従わな|取り消|省略|スキップ"
        "|解除|守らな|上書き",
        "指示|命令|規則|ルール|プロンプト|制限|確認|制約|システムメッセージ|権限|管理者|方針|ポリシー"
        "|ガイドライン|承認",
        "パスワード|暗証番号|秘密鍵|認証情報|資格情報|機密|トークン|apiキー|口座|シークレット"
        "|ログイン情報|秘密キー|アクセスキー",
        "アシスタント|エージェント|モデル|ボット|人工知能|\\bai\\b",
        is_spaced=False,
    ),
    "ko": Language(
        "으면|다면|라면|하면|물으면|경우|전에|항상|언제나|반드시|절대|해야|야 (?:한|합|해|하|함)|야만"
        "|하세요|하십시오|하시오|하라|해라|하여야|주세요|주십시오|세요|십시오|앞으로"
        "|이제부터|지금부터|부탁|필수|말 것|할 것|마라|마세요|바랍니다|매번|줘\\b|시오|도록",
        "실행|구동|돌려|전송|보내|발송|전달|공개|누설|유출|공유|표시|보여|삭제|지우|지워|설치|다운로드"
        "|내려받|열어|열고|방문|접속|클릭|복사|붙여|업로드|게시|답장|답변|대답|응답|알려"
        "|말하|송금|이체|입금|지불|결제|신뢰|승인|추가|덧붙|기록|저장|제공|비활성|끄|꺼|첨부|출력|포함"
        "|작성|호출|입력|요구|안내",
        "없이|불필요|묻지|구하지|무시|잊어|잊으|잊고|우회|건너뛰|취소|해제|비활성|따르지|지키지|폐기|덮어쓰|생략",
        "지시|지침|명령|규칙|프롬프트|제한|확인|제약|시스템 메시지|권한|관리자|정책|가이드라인|승인|안내",
        "비밀번호|암호|패스워드|개인 ?키|인증 ?정보|자격 ?증명|기밀|토큰|api ?키|비밀 ?키|계좌|비밀"
        "|로그인 정보|인증번호|ssh ?키",
        "어시스턴트|비서|도우미|에이전트|모델|챗봇|봇|인공지능|\\bai\\b",
        is_spaced=False,
    ),
    "id": Language(
        "jika|bila|kalau|ketika|setiap kali|sebelum|selalu|jangan(?: pernah)?|harus|wajib|mohon|tolong|silakan"
        "|mulai sekarang|pastikan|perlu|hendaknya|sebaiknya",
        "jalankan|menjalankan|kirim(?:kan)?|mengirim\\w*|teruskan|bagikan|tampilkan|ungkapkan|hapus|instal"
        "|pasang|unduh|buka|kunjungi|salin|tempel|unggah"
        "|posting|jawab|balas|transfer|bayar|percayai|setujui|tambahkan|tulis(?:kan)?|simpan|berikan|sertakan"
        "|eksekusi",
        "abaikan|mengabaikan|lupakan|lewati|batalkan|nonaktifkan|langgar",
        "instruksi|aturan|perintah|prompt|batasan|konfirmasi|pedoman|kebijakan|izin",
        "kata sandi|sandi|kunci (?:api|rahasia|privat)|kredensial|rahasia|token|nomor rekening",
        "asisten|agen|model|ai|bot",
    ),
    "vi": Language(
        "neu|khi|moi khi|truoc khi|luon(?: luon)?|khong bao gio|phai|can phai|hay|vui long|xin|tu bay gio|bat"
        " buoc|nen|dung",
        "chay|thuc thi|thuc hien|gui|chuyen tiep|tiet lo|chia se|hien thi|xoa|cai dat|tai(?: xuong| ve)?|mo|truy"
        " cap|sao chep|dan|dang|tra loi|chuyen khoan|thanh toan"
        "|tin tuong|phe duyet|them|viet|luu|cung cap",
        "bo qua|quen|phot lo|vuot qua|vo hieu|huy",
        "huong dan|quy tac|lenh|chi thi|prompt|gioi han|xac nhan|quy dinh|chi dan",
        "mat khau|khoa (?:api|bi mat)|thong tin dang nhap|bi mat|token|so tai khoan",
        "tro ly|tac tu|mo hinh|ai|bot",
    ),
}
