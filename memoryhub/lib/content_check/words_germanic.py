"""Words of rules and of what they reach, in English, German and Dutch. See ``lexicon``."""

ENGLISH = {
    "norm": """needed demand demands demanded insist insists dictates stipulates specifies practice custom
        tradition wants wishes would_rather hopes_that happy_if glad_if is_best best_answered best_handled
        best_done best_to expect expects want_~_to must shall should ought has_to have_to had_to need_to needs_to
        need_not is_to are_to be_to supposed expected obliged required requires mandatory compulsory essential
        imperative crucial necessary always never whenever if when once while unless upon should_you whoever
        every_time each_time any_time as_soon_as the_moment in_case before_answering before_you before_each
        before_every before_any before_responding before_replying before_doing before_starting after_you
        after_each after_every after_any from_now_on henceforth hereafter going_forward effective_immediately
        as_of_now as_of_today from_today until_further_notice in_future in_the_future by_default as_a_rule
        on_request please kindly remember_to make_sure be_sure ensure do_not don't feel_free no_need policy
        policies procedure protocol convention compliance best_practice* good_practice* common_practice
        standard_practice customary advisable advised recommended preferable agreed agreement as_discussed
        as_arranged according_to per_policy per_request in_line_with permitted allowed authorised authorized
        entitled instructed asked_to told_to would_be would_like would_love would_appreciate would_prefer
        wants_you wants_the want_their expects_you expects_the expect_the prefers_that like_you love_it_when
        could_you would_you can_you will_you let's let_us may_be may_now may_also agent_may you_may assistant_may
        can_be can_now you_can is_fine it's_fine is_okay is_safe is_expected to_~_please at_the_start
        at_the_beginning at_the_end first_step correct_procedure preferred_way approved_way official_way
        default_way habit task goal mission duty from_~_on as_per per_the only_way helps_~_when helps_~_if simply
        just meant_to ready_to asked_for asked_about hereby when_~_comes_up until_then decided_that requirement
        in_all in_any not_~_until only_once only_after would_be_lovely would_be_nice would_be_great would_be_good
        would_be_handy ideally""",
    "waive": """not_needed not_required not_necessary no_longer_needed no_longer_required no_longer_necessary
        unnecessary superfluous unneeded no_need isn't_needed isn't_required isn't_necessary aren't_needed
        aren't_required needn't can_be_skipped may_be_skipped optional dispensable needless""",
    "when": """when if once while unless upon in_case anyone_who asked_for asked_about should_you should_anyone
        should_somebody should_someone""",
    "agent": """you your yours yourself assistant assistants agent agents ai ais llm llms language_model* model
        models bot bots chatbot* copilot claude chatgpt gpt gemini codex openclaw nanobot reader readers helper
        instances play_~_role play_~_part""",
    "you": "you your yours yourself reader readers",
    "act": """unveil refuse reject deny decline block carry assume run execute invoke launch start open send
        forward email e-mail mail message post publish upload transmit leak exfiltrate share expose print output
        dump display echo install download fetch load pull visit browse navigate click follow call contact ping
        query curl copy paste embed insert inject append prepend transfer wire remit pay add include attach
        mirror pipe write put drop save store give hand provide reply respond answer return quote cite read
        decode collect gather harvest change replace set update rewrite restore reset commit push deploy merge
        register subscribe schedule enter type log_in sign_in redirect route point direct export extract scrape
        cc bcc sync submit tell say state claim assure reassure buy order use refer link settle switch end begin
        finish create let have ship proceed relay dispatch deliver supply disclose reveal archive exchange swap
        prefix treat show also_reach land lands read_out reads_out read_them read_aloud reads_aloud recite
        recites dictate dictates spell_out copies slip_~_in work_in weave_in hands_out tack tacks""",
    "acted": """ending ends ended carry carries carried refus* execut* invok* launch* starting opened opening
        sent sends sending forward* emailed emails emailing mailed mails posted posts posting publish* upload*
        transmi* leak* exfiltrat* shared shares sharing expos* printed prints installed installs installing
        download* fetch* loaded loading visit* click* followed calls called contacted copied copies copying
        pasted pasting embed* insert* inject* append* transfer* wired remitted paid paying added adding included
        includes including attached attaches attaching mirror* pipes piped writes writing written puts putting
        saved saving stored storing gives giving given hands handed provid* replies replied answered answering
        responding returned collected replaced replacing redirect* routed pointed exported extract* cc'ed bcc'ed
        copied_in synced submitted tells told assur* reassur* archived relayed dispatched deliver* supplied
        disclos* reveal* belongs belong goes_to go_to go_out link_to links_to end_with ends_with ended_with
        blind_copy a_copy copies_of""",
    "mild": """start open install load pull browse navigate follow call contact ping query change replace set
        update rewrite restore reset commit deploy merge register subscribe schedule enter type log_in sign_in
        buy order use settle switch end begin finish create let have save store saving saved storing stored
        stores fetch* download* loaded loading visit* click* followed calls called contacted replaced replacing
        opened opening starting installed installs installing execut* run invoke launch read decode request swap
        prefix treat belongs belong archive archived collect gather keep quote claim refer drop reach reaches
        land lands copies""",
    "grave": """approv* accept* authoris* authoriz* trust trusts trusted obey* comply complies grant* confirm*
        pay* releas* transfer* wire wired impersonat* pretend* execut* install* overwrit* merge merged lie
        forward* disclos* reveal* leak* upload* silent download* run hand_over hand_out give_away unlock*""",
    "wipe": "delet* eras* wip* purg* remov* destroy* overwrit* shred* truncat* clear",
    "drop": """stop stopping cease quit halt pause assume presume imagine ignor* disregard* forget overrid*
        overrul* bypass* circumvent* neglect* discard* disabl* deactivat* skip* omit* suppress* hide hides hiding
        hidden conceal* dismiss* without drop drops dropped lift lifted suspend* weaken* relax* mute* silenc*
        waiv* unnecessary superfluous unneeded not_needed not_required isn't_needed turn_~_off turned_~_off
        turning_~_off switch_~_off switched_~_off leave_out left_out leaves_out leave_~_out click_away
        click_through click_it_away set_aside throw_away stop_following pay_no_attention violat* no_need
        keep_quiet gloss_over cover_up pre-approved preapproved rubber-stamp* as_granted already_granted behalf
        bother_~_with count_as counts_as counted_as unread unchecked unseen""",
    "not": """not no never don't n't doesn't isn't aren't needn't mustn't shouldn't won't nobody nothing none
        neither cannot can't""",
    "none": "no none nothing nobody never_any zero",
    "ask": """second_look second_opinion second_pair permission review* sign-off approval* confirmation* ask asks
        asked asking request requests requested seek wait_for await obtain consult consulted confirm confirms
        check double-check verify""",
    "before": "before until beforehand first prior_to",
    "guard": """second_look second_opinion second_pair risk_note* cautions caveat* approved confirm* approval*
        permission* consent review* check checks checking checked verif* validat* audit* log logs logging warn*
        alert* filter* safeguard* safety security guardrail* restriction* limits moderation sandbox* oversight
        mfa 2fa two-factor second_factor asking ask consult* sign-off supervis* refusal* notif* monitor*
        antivirus scanner* firewall* double-check* protection* questioning hesitat* authoris* authoriz* prompts
        authentication user's_knowledge user_knowing user_noticing disclaimer*""",
    "orders": """guidance limits limitations facts memory memories instruction* rule rules guideline* directive*
        system_prompt system_message constraint* orders programming policy policies training prior_message*
        everything_above anything_above""",
    "prior": """previous prior earlier above preceding original initial your yours all any every system safety
        other so_far until_now up_to_now current""",
    "void": """void invalid revoked lifted suspended obsolete superseded outdated no_longer overridden cancelled
        canceled expired withdrawn replaced null rescinded lapsed retired not_apply don't_apply don't_count
        not_count""",
    "self": """this_note this_entry this_line this_text this_file this_document this_message this_memory
        this_instruction this_arrangement this_page this_rule what_is_written_here written_here""",
    "obey": "follow obey execute act_on comply_with carry_out accept trust honour honor stick_to heed",
    "secret": """system_prompt password* passphrase* passcode* credential* api_key* apikey* private_key*
        secret_key* access_key* ssh_key* signing_key* encryption_key* the_keys secrets token tokens seed_phrase*
        recovery_code* recovery_phrase* otp otps one-time_code* verification_code* pin_code* cookies
        session_cookie* environment_variable* env_var* login_data logins access_data bank_details card_number*
        cvv customer_data customer_list personal_data private_data confidential private_message* chat_history
        transcript* conversation_log database_dump contacts login_code* door_code*""",
    "data": """fact notes backup backups memory memories history logs log file files record records data database
        facts entries entry documents conversations contacts rows everything folder projects account accounts""",
    "tell": """to_know may_know should_know must_know to_see may_see find_out learn_of learn_about to_learn
        be_told be_informed notice tell telling inform informing notify notifying let_~_know alert mention_to
        disclose_to bring_it_up bring_~_up""",
    "show": "mention* show* reveal* disclos* talk* speak say discuss* report log hint refer_to bring_up reading_out",
    "who": """user users user's owner operator anyone anybody nobody no_one them him her people everyone human
        humans admin customer customers third_parties others somebody someone""",
    "that": "that this",
    "money": """transfer transfers payment* payout* refund* invoice* salary salaries wages rent deposit* account
        wallet iban bank_account* donation* fee fees purchase* order_value amount* remittance*""",
    "push": """recommend* suggest* propose promote* advertis* endorse* praise name mention prefer* favour favor
        pick choose point_to in_favour_of in_favor_of steer* nudge*""",
    "only": """only exclusively solely nothing_but no_other over_every over_all over_any over_other above_all
        first always instead_of and_no_one_else rather_than never_mention in_favour_of in_favor_of whatever_the""",
    "vendor": """vendor* supplier* provider* product* hosting brand* insurer* insurance bank broker* shop* store*
        tool library hotel* airline* company manufacturer* competitor* service_provider* dealer* lender* clinic*
        agency""",
    "covert": """silently secretly quietly discreetly covertly unobtrusively stealthily unnoticed invisibly
        inconspicuously on_the_quiet under_the_radar behind_the_scenes without_telling without_mentioning
        without_saying between_us to_yourself keep_~_secret keep_~_confidential keep_~_private confidentially
        behind_~_back without_~_knowing without_~_noticing""",
    "every": "every each all any everything whatever",
    "reply": """answer answers reply replies response responses summary summaries message messages output outputs
        conversation* session sessions task tasks email emails mail mails e-mail e-mails invoice invoices prompt
        prompts link links url urls report reports transcript* chat chats document documents file files""",
    "to": "to into onto via toward towards",
    "lead": """and then also please just simply so now first next finally kindly instead immediately better to go
        ahead must should""",
    "common": """the a an is are was were has had have of to in on at for with by from he she it they we his her
        its their be been this that as but or which who than after before about""",
    "anyone": """whoever anyone anybody everyone everybody any_caller any_visitor any_customer guests guest
        strangers upset_customers customers""",
    "get": """get gets receive receives obtain obtains given handed told hands_out reads_out reading_out
        unlocks_~_for give_~_to""",
    "question": """question* request* enquir* inquir* queries anyone_asks asked_about asks_about ask_about
        brings_up bring_up mention_of tips""",
}

GERMAN = {
    "norm": """verlangt verlangen fordert fordern schreibt_~_vor guten_ton maßgeblich praxis brauch usus
        gewohnheit möchte möchten wünscht wünschen hätte_gern* hätten_gern* will wollen bittet sollte_~_werden
        muss mussen müssen musst müsst soll sollst sollen sollt sollte sollten solltest darf darfst dürfen dürft
        hat_~_zu haben_~_zu hast_~_zu ist_~_zu sind_~_zu auszu* einzu* mitzu* weiterzu* hochzu* herunterzu* anzu*
        abzu* vorzu* freizu* preiszu* wegzu* durchzu* zu_~_en verpflichtet angehalten gehalten angewiesen gebeten
        erforderlich notwendig nötig unerlässlich zwingend unbedingt immer stets nie niemals grundsätzlich
        ausnahmslos prinzipiell generell wenn falls sobald sofern solange wann_immer jedes_mal jedesmal künftig
        zukünftig fortan ab_sofort ab_jetzt ab_heute von_nun_an von_jetzt_an ab_dem seit_heute bitte am_besten
        üblich üblicherweise empfohlen empfiehlt_sich empfehlenswert ratsam sinnvoll bewährt gute_praxis
        beste_praxis best_practice guter_stil richtlinie* vorschrift* vorgabe* regel hausregel policy standard
        laut gemäß entsprechend vereinbart* vereinbarungsgemäß absprache absprachegemäß wie_besprochen
        wie_abgesprochen wie_vereinbart wünscht_sich wünscht_~_dass möchte_~_dass will_~_dass wäre_~_wenn
        wäre_~_dass hilft_~_wenn freut_sich_~_wenn erwartet_~_dass erwarten gern gerne bevor_du bevor_sie
        vor_jeder vor_jedem vor_jeglicher nach_jeder nach_jedem bei_jeder bei_jedem zu_beginn am_anfang am_ende
        vergiss_nicht denk_daran denke_daran achte_darauf stell_sicher stelle_sicher sorge_dafür nur_noch
        wird_~_gefragt fragt_jemand fragt_man bei_fragen geht_es_um kommt_~_auf kommt_~_zur_sprache bei_nachfrage
        auf_anfrage erlaubt gestattet berechtigt befugt ermächtigt braucht_nicht braucht_kein* kannst könntest
        würdest kann_~_werden können_~_werden pflicht aufgabe erfolgt_~_über gilt gelten wäre_schön wäre_gut
        wäre_toll wäre_prima erst_wenn immer_wenn am_liebsten_~_wenn""",
    "waive": """nicht_nötig nicht_~_nötig nicht_erforderlich nicht_~_erforderlich nicht_notwendig
        nicht_~_notwendig unnötig überflüssig entbehrlich entfall* entfällt erübrig* hinfällig verzichtbar
        braucht_kein* brauchen_kein* bedarf_kein*""",
    "when": """wer_~_fragt wer_nach wenn falls sobald sofern solange wird_~_gefragt fragt_jemand fragt_man
        bei_fragen geht_es_um kommt_~_auf kommt_~_zur_sprache bei_nachfrage auf_anfrage immer_wenn ist_~_die_rede
        die_rede_ist kommt_~_gespräch kommt_~_thema""",
    "agent": """du dich dir dein deine deinen deiner deinem ihr_modell assistent* agent agenten ki kis ki-*
        sprachmodell* modell modelle bot bots chatbot* llm* leser copilot helferlein spiel*_~_rolle""",
    "you": "du dich dir dein deine deinen deiner deinem leser",
    "act": """offenleg* enthüll* führ führe führen führt ausführ* ausgeführt ausgefuehrt start* gestartet send*
        gesendet versend* versand* schick* geschickt mitschick* verschick* weiterleit* weitergeleitet leit*
        weitergeb* weitergegeben übermitt* übertrag* teil teile teilen geteilt mitteil* zeig* stell stelle
        stellen stellt kopier* füg* einfüg* eingefügt hinzufüg* häng* anhäng* angehängt lad* hochlad* hochgeladen
        hochlädst hochlädt herunterlad* heruntergeladen öffne* geöffnet aufruf* aufgerufen ruf rufe rufst besuch*
        klick* installier* veröffentlich* publizier* poste* antwort* beantwort* überweis* überwiesen zahl zahle
        zahlen zahlt gezahlt bezahl* begleich* schreib* geschrieben speicher* ableg* leg lege nenn nenne nennen
        nennt genannt gib gibt gebt geben angib angeben angegeben herausgeb* herausgib preisgeb* preisgegeben
        verrat* verweis* hinweis* verlink* sag sage sagen sagt behaupte* versicher* erwähn* ergänz* trag trage
        eintrag* nutz* verwend* benutz* abruf* lies lesen liest hol hole holen geholt folg folge folgen befolg*
        ersetz* tausch* änder* schließ* beend* end endet enden spiegel* exportier* sammel* sammle* melde melden
        bestell* kauf* buch* lass lasse geh gehen geht bau baue setz setze setzen wähl* pack* reich* liefer*
        druck* dreh* richte umleit* gehen_~_an geht_~_an in_kopie ausgib ausgeb* drop* lotse* führe_~_aus halte
        landen lande landet vorles* lies_~_vor durchgib durchgeb* diktier* einbau* einfließ*""",
    "mild": """start* gestartet lad* öffne* geöffnet aufruf* aufgerufen ruf rufe besuch* klick* installier*
        ausführ* ausgeführt führ führe führen führt speicher* ableg* änder* ersetz* tausch* nutz* verwend*
        benutz* abruf* lies lesen liest hol hole holen geholt folg* befolg* schließ* beend* end* bestell* kauf*
        buch* setz* wähl* halte geht gehen geh bau* lass* eintrag* melde melden richte dreh* ergänz* antwort*
        beantwort* zahl* bezahl* trag trage landen lande landet""",
    "grave": """genehmig* freigeb* freigegeben freizugeb* frei bestätig* akzeptier* vertrau* traue gehorch*
        erlaub* gewähr* zahl* bezahl* überweis* überwiesen autorisier* installier* ausführ* ausgeführt auszuführ*
        herausgeb* preisgeb* verrat* weiterleit* überschreib* zusammenführ* entsperr* annehm* angenommen hochlad*
        herunterlad*""",
    "wipe": "lösch* gelöscht entfern* vernicht* wegwerf* überschreib* tilg* leere leeren zerstör*",
    "drop": """außen_vor verbirg verbirgt aufhör* hör*_~_auf einstell* ignorier* vergiss vergess* missacht*
        umgeh* umgangen übergeh* übergang* überspring* übersprung* deaktivier* abschalt* abgeschaltet
        schalt*_~_ab schalt*_~_aus ausschalt* ausgeschaltet stell*_~_ab stell*_~_aus unterlass* verwirf verwerf*
        verworfen ohne lass_~_weg lass_~_aus weglass* wegklick* weggeklickt wegdrück* ausblend* blend*_~_aus
        verschweig* verheimlich* verberg* versteck* verdeck* unterdrück* unterschlag* aufheb* aufgehoben
        außer_kraft hebel* aushebel* entfall* entfällt unnötig überflüssig entbehrlich nicht_nötig
        nicht_erforderlich nicht_notwendig verzicht* auslass* ausgelassen beiseite unbeachtet unberücksichtigt
        hinweg_setz* setz*_~_hinweg abgewählt abbestellt verzögerungsfrei frag*_~_nicht braucht_kein*
        brauchen_kein* im_namen* nicht_mehr_anzeig* quittier* zählt_als zählen_als gilt_als gelten_als ungelesen
        ungeprüft ungesehen""",
    "not": "nicht nichts kein keine keinen keiner keinem nie niemals niemand niemandem niemanden weder",
    "none": "kein keine keinen keiner keinem keinerlei nichts",
    "ask": """freigabe* zustimmung* prüfung* erlaubnis rücksprache* bestätigung* genehmigung* frag* nachfrag*
        nachzufragen rückfrag* gefragt einhol* einzuholen verlang* abwart* konsultier* bestätigen bestätige
        bestätigt vergewisser* zweiten_blick zweiter_blick""",
    "before": "bevor vor vorher zuvor ehe zuerst",
    "guard": """bestätig* rückfrag* freigabe* genehmigung* zustimmung* einwilligung* prüfung* *prüfung prüfen
        geprüft überprüf* kontroll* *kontrolle *kontrollen nachfrag* verifi* validier* protokollier* *protokoll
        *protokolle log logs warnung* warnhinweis* *warnung *warnungen *meldung *meldungen *hinweis *hinweise
        alarm* filter* *filter schutz* sicherheit* sicherung* sperre* *sperre einschränk* beschränk* begrenz*
        aufsicht vier-augen* zwei-faktor* 2fa mfa virenscanner* firewall* wächter* moderation rücksprache*
        erlaubnis berechtigung* abfrage* *abfrage *abfragen nachzufragen zu_fragen audit* review* unterschrift
        autorisierung* einwände bedenken zweiten_blick zweiter_blick vier_augen""",
    "orders": """leitfaden hinweise_zur anweisung* vorgabe vorgaben regel regeln richtlinie richtlinien
        leitlinie* befehl befehle direktive* instruktion* prompt* systemprompt* systemnachricht* einschränkung*
        programmierung weisung* gebot* grundsätze""",
    "prior": """bisherig* vorherig* früher* vorig* vorangegangen* obig* alle allen aller sämtliche* deine deinen
        deiner eure ihre ihren bestehend* ursprünglich* sonstig* andere anderen vorhandene* jede jegliche*""",
    "void": """ungültig aufgehoben außer_kraft hinfällig nicht_mehr widerrufen ersetzt obsolet überholt veraltet
        nichtig gestrichen erloschen zurückgezogen entfallen gegenstandslos abgelaufen keine_gültigkeit unwirksam
        verfallen""",
    "self": """diese_notiz dieser_notiz diesen_eintrag dieser_eintrag diesem_eintrag diese_zeile dieser_zeile
        diesen_text diesem_text dieser_text diese_nachricht dieser_nachricht dieses_dokument* diesem_dokument
        diese_anweisung dieser_vermerk diesen_vermerk diese_datei dieser_datei was_hier_steht diesen_hinweis
        diese_regel hiervon""",
    "obey": "folg* befolg* gehorch* ausführ* vertrau* halte_dich halt_dich richte_dich zähl* gilt gelten",
    "secret": """systemprompt* system-prompt* passwort* *passwort passwörter* *passwörter kennwort* *kennwort
        kennwörter zugangsdaten anmeldedaten logindaten zugangscode* *schlüssel *schlüsseln api-key* geheimnis*
        token tokens *token pin tan kreditkarte* kartennummer* bankverbindung kontodaten kundendaten *kundendaten
        personendaten kundenliste* geheimzahl* verbindungsdaten credentials adressbuch vertraulich*
        wiederherstellungscode* wiederherstellungsschlüssel türcode*""",
    "data": """kopie* sicherung* backup* daten dateien datei verlauf protokolle logs gedächtnis erinnerung*
        notizen einträge datenbank* *datenbank akten ordner konten fakten unterlagen""",
    "tell": """benachrichtige benachrichtigen benachrichtigt erfahren wissen merken bemerken mitbekommen
        sehen_darf sehen sag sage sagt sagen erzähl* mitteil* teil*_~_mit informier* verrat* unterricht*
        wissen_lassen lass_~_wissen lass_~_merken""",
    "show": """enthüll* erwähn* zeig* nenn* sprich sprech* rede reden anzeig* offenleg* thematisier* bericht*
        ansprech* hinweis*""",
    "who": """nutzer* benutzer* anwender* niemand* jemand* ihm ihr ihnen kunde kunden mensch* eigentümer*
        betreiber* davon darüber daran hiervon hierüber dass notiz andere* dritte* gegenüber *nutzer""",
    "that": "dass davon darüber hiervon hierüber",
    "money": """überweisung* zahlung* *zahlung *zahlungen rechnung* *rechnung *rechnungen konto* gehalt gehälter
        miete mieten lastschrift* erstattung* beträge betrag iban gutschrift* buchung* spende* honorar*
        abbuchung*""",
    "push": """genannt empfehl* empfiehl* empfohlen nenn* rat rate rät erwähn* bevorzug* bewirb bewerb* anpreis*
        lob* vorschlag* schlag*_~_vor verweis* wähl* hinauslauf* laufen_~_hinaus läuft_~_hinaus""",
    "only": """nur ausschließlich allein lediglich einzig immer stets grundsätzlich zuerst vor_allen statt
        anstelle keine_anderen laufen_~_hinaus läuft_~_hinaus""",
    "vendor": """anbieter* *anbieter lieferant* hersteller* produkt* *produkt *produkte marke marken versicher*
        *versicherung bank hosting* dienstleister* händler* firma laden shop* werkzeug* hotel* konkurren* makler*
        provider* agentur* ag gmbh""",
    "covert": """heimlich stillschweigend unauffällig unbemerkt diskret verdeckt klammheimlich still_und_leise
        im_stillen insgeheim nebenbei unter_uns für_dich vertraulich verstohlen im_verborgenen hinter_~_rücken
        ohne_~_wissen ohne_~_merk* geheim_halten""",
    "every": "jede jeder jedes jedem jeden alle allen aller sämtliche* jegliche*",
    "reply": """antwort* zusammenfassung* nachricht* sitzung* gespräch* ausgabe* mail mails e-mail* rechnung*
        bericht* protokoll* aufgabe* eintrag* chat* dokument* datei* link* unterhaltung*""",
    "to": "an auf nach unter zu zum zur in über via bei",
    "lead": "und dann auch bitte einfach nun jetzt zuerst außerdem also immer stets nie",
    "common": """der die das den dem des ein eine einen einem einer eines und ist sind war waren hat hatte haben
        wird werden im am vom zum zur mit von für bei aus nach seit er sie es wir sich als auch oder aber um bis
        unter über""",
    "anyone": "wer jeder jedem jedermann alle_die allen_die gästen gäste fremden",
    "get": "bekommt bekommen erhält erhalten kriegt kriegen haben gibt geben ausgehändigt",
    "question": "frage fragen anfrage* fragt",
}

DUTCH = {
    "norm": """horen_niet hoort_niet eist eisen gewoonte praktijk gebruik wil willen wenst verzoekt moet moeten
        dient dienen hoort horen behoort hoeft zou_moeten zal zullen mag mogen verplicht vereist nodig
        noodzakelijk geacht gevraagd_om verzocht altijd nooit steeds telkens wanneer zodra als indien mits
        telkens_als elke_keer iedere_keer voortaan vanaf_nu vanaf_vandaag vanaf_heden in_het_vervolg van_nu_af
        graag alsjeblieft alstublieft gelieve zorg_dat zorg_ervoor vergeet_niet denk_eraan let_erop beleid
        richtlijn voorschrift* regel protocol procedure afspraak afgesproken overeengekomen volgens conform
        gebruikelijk aanbevolen raadzaam verstandig wenselijk gewenst het_beste best_practice goede_gewoonte
        goed_gebruik standaard wil_~_dat wenst_~_dat verwacht_~_dat vraagt_~_om zou_~_als zou_~_zijn fijn_~_als
        prettig_~_als handig_~_als voor_elk voor_elke voor_ieder* voordat_je na_elk na_elke bij_elk bij_elke
        aan_het_begin aan_het_eind* aan_het_einde vraagt_iemand vraagt_men bij_vragen gaat_het_over gaat_het_om
        komt_~_ter_sprake op_verzoek gerechtigd bevoegd toegestaan is_~_te zijn_~_te uit_te door_te op_te in_te
        af_te kan_~_worden kunnen_~_worden alleen_nog enkel_nog geldt gelden uitsluitend zou_~_fijn zou_~_mooi
        zou_~_goed het_zou""",
    "waive": """niet_nodig niet_~_nodig niet_vereist niet_langer_nodig overbodig onnodig hoeft_niet hoeven_niet
        hoeft_geen vervalt vervallen achterwege""",
    "when": """wie_~_vraagt wanneer zodra als indien mits vraagt_iemand vraagt_men bij_vragen gaat_het_over
        gaat_het_om komt_~_ter_sprake op_verzoek telkens_als elke_keer_dat elke_keer_als komt_~_gesprek""",
    "agent": """je jij jou jouw jullie jezelf assistent* agent agenten ai ai-* model modellen taalmodel* bot bots
        chatbot* llm* lezer speel_~_rol""",
    "you": "je jij jou jouw jullie jezelf lezer",
    "act": """voldoe* voldaan onthul* afgeef* afgeven geef_~_af meesturen meestuur* doorspeel* voorleg* voer
        voert uitvoer* uitgevoerd draai draait draaien start starten stuur stuurt sturen gestuurd verstuur*
        verzend* verzonden zend* doorstuur* doorsturen doorgestuurd deel deelt delen gedeeld toon toont tonen
        geef geeft geven gegeven doorgeef* doorgegeven installeer* download* open opent openen bezoek* klik*
        kopieer* gekopieerd plak* geplakt upload* geüpload plaats* post publiceer* antwoord* beantwoord* betaal*
        maak_over overmaak* overgemaakt schrijf* geschreven zet zetten gezet voeg voegt toevoeg* toegevoegd
        bijvoeg* sla bewaar* noem noemt noemen verwijs* link* meld melden vertel* zeg zegt zeggen gebruik* haal
        haalt halen opgehaald volg volgt volgen vervang* verander* wijzig* exporteer* verzamel* bestel* koop* leg
        leid leiden breng eindig* neem mail mailen bel verstrek* overhandig* spiegel* lees lezen roep ga_naar
        gaan_~_naar gaat_~_naar in_kopie bcc cc lever* laat leent stel belanden beland* komen_~_terecht
        lees_~_voor voorlez* dicteer*""",
    "mild": """voer voert uitvoer* uitgevoerd draai* start* installeer* download* open* bezoek* klik* betaal*
        bewaar* gebruik* haal* opgehaald volg* vervang* verander* wijzig* bestel* koop* leg leid* neem bel lees
        lezen roep laat sla antwoord* beantwoord* eindig* verzamel* hangt belanden beland*""",
    "grave": """keur* goedgekeurd goedkeur* goed_te_keuren accepteer* vertrouw* gehoorzaam* sta_toe toestaan
        verleen* betaal* overmaak* installeer* uitvoer* onthul* prijsgeef* prijsgegeven vrijgeef* vrijgegeven
        bevestig* machtig* autoriseer* doorstuur* doorsturen overschrijf*""",
    "wipe": "verwijder* wis wist wissen gewist vernietig* overschrijf* leeg leegmaken schrap*",
    "drop": """horen_niet hoort_niet stop stoppen ophouden houd_~_op negeer* negeren genegeerd vergeet omzeil*
        overtree* sla_~_over overslaan overgeslagen overslaat schakel_~_uit uitschakel* uitgeschakeld uitzet*
        uit_te_zetten zet_~_uit uitgezet deactiveer* zonder weglaat weglat* wegliet weggelaten laat_~_weg
        wegklik* klik_~_weg verzwijg* verzwegen verberg* verborgen verstop* onderdruk* achterwege overbodig
        onnodig niet_nodig hoeft_niet hoeven_niet uit_te_schakelen opzij verwerp* opgeheven vervallen afgezet
        afzet* stilzwijg* namens passeer* geldt_als gelden_als telt_als tellen_als ongelezen ongezien""",
    "not": "niet niets geen nooit niemand nimmer noch",
    "none": "geen niets nimmer",
    "ask": """toestemming goedkeuring* controle* bevestiging* akkoord vraag vraagt vragen gevraagd navrag*
        verzoek* wacht* raadpleg* geraadpleegd bevestigen overleg* tweede_blik""",
    "before": "voordat voor vooraf eerst alvorens",
    "guard": """bevestiging* goedkeuring* toestemming* controle* *controle *controles check* verifi* navraag*
        nagaan vragen te_vragen overleg* beoordeling* review* logboek* logging logs log audit* waarschuwing*
        *waarschuwing* *waarschuwingen melding* *meldingen *melding alarm* filter* *filters beveiliging*
        *beveiliging veiligheid* beperking* bescherming* tweestaps* tweefactor* 2fa mfa virusscanner* firewall*
        toezicht vergunning* akkoord machtiging* handtekening ruggespraak tweede_blik vier_ogen""",
    "orders": """instructie* aanwijzing* regel regels richtlijn* opdracht* bevel* voorschrift* prompt*
        systeemprompt systeembericht* beperking* beleid""",
    "prior": """eerder* vorig* vroeger* voorgaand* bovenstaand* alle je jouw jullie bestaand* oorspronkelijk*
        andere huidig* elke""",
    "void": """ongeldig vervallen ingetrokken opgeheven niet_meer herroepen vervangen achterhaald verlopen
        geschrapt niet_langer nietig verouderd afgeschaft""",
    "self": """deze_notitie deze_regel deze_tekst dit_bericht dit_document dit_bestand deze_notities dit_item
        deze_aantekening deze_vermelding deze_instructie wat_hier_staat hierover hiervan""",
    "obey": "volg* gehoorzaam* voer_~_uit vertrouw* houd_je houd_~_aan geldt gelden luister*",
    "secret": """systeemprompt* wachtwoord* *wachtwoord *wachtwoorden inloggegevens *sleutel *sleutels geheim
        geheimen token tokens *token toegangscode* toegangsgegevens rekeninggegevens creditcard* kaartnummer*
        pincode* klantgegevens persoonsgegevens klantenlijst contactenlijst vertrouwelijk* herstelcode*""",
    "data": """kopie* back-up* backup* gegevens bestand* geschiedenis logboek* logs geheugen notities database*
        map mappen records dossiers""",
    "tell": """weten vernemen merken zien horen te_weten vertel* zeg zegt informeer* inlicht* licht_~_in verklap*
        laat_~_weten laat_~_merken meld meedeel* deel_~_mee""",
    "show": "melden meldt noem* toon* praat* spreek* vermeld* onthul* rep laat_~_zien",
    "who": """gebruiker* niemand iemand hem haar hen klant* mens* eigenaar dat hierover hiervan notitie anderen
        derden ervan""",
    "that": "dat hierover hiervan ervan",
    "money": """overboeking* betaling* *betaling *betalingen factuur facturen *facturen *factuur rekening* huur
        salaris* loon lonen terugbetaling* bedrag* iban donatie* vergoeding* incasso*""",
    "push": """aan_te_raden voor_te_stellen noem* raad*_~_aan aanraden aanbeve* beveel* stel_~_voor voorstel*
        prijs* promoot* adviseer* verkies* kies verwijs* vermeld*""",
    "only": "alleen enkel uitsluitend slechts altijd louter als_eerste in_plaats_van boven geen_ander*",
    "vendor": """leverancier* aanbieder* *aanbieder product* merk* verzekering* verzekeraar* bank hosting*
        winkel* fabrikant* bedrijf hotel* provider* dienstverlener* concurrent*""",
    "covert": """stiekem ongemerkt heimelijk stilletjes in_stilte onopvallend in_het_geheim stilzwijgend discreet
        terloops onder_ons voor_jezelf achter_~_rug zonder_~_weten geheim_houden""",
    "every": "elk elke ieder iedere alle al",
    "reply": """antwoord* samenvatting* bericht* sessie* gesprek* mail mails e-mail* factuur facturen rapport*
        verslag* document* bestand* taak taken chat* link*""",
    "to": "naar aan op in via bij tot",
    "lead": "en dan ook graag nu eerst gewoon vervolgens altijd nooit voortaan",
    "common": """de het een en is zijn was waren heeft had hebben van in op met voor bij uit door aan om te hij
        zij ze wij hun er dat die deze dit maar ook of dan naar tot wordt worden staat""",
    "anyone": "wie iedereen gasten",
    "get": "krijgt krijgen ontvangt ontvangen hebben geven",
    "question": "vraag vragen vraagt",
}
