"""Words of rules and of what they reach, in French, Spanish, Italian and Portuguese. See ``lexicon``."""

FRENCH = {
    "norm": """n'ont_pas_leur_place n'a_pas_sa_place exige* impose* réclame* pratique usage coutume souhaite*
        voudrait aimerait veut désire apprécierait dois doit doivent devez devons devra devront devrait devraient
        devrais devriez il_faut il_faudra il_faudrait est_tenu* sont_tenu* est_prié* sont_prié* prière est_à
        sont_à est_censé* sont_censé* obligatoire* nécessaire* impératif requis* toujours jamais systématiquement
        chaque_fois quand lorsque lorsqu'* dès_que dès_qu'* si s'il s'ils si_l'on sitôt en_cas_de tant_que
        avant_de avant_chaque avant_toute avant_tout après_chaque après_toute à_chaque désormais dorénavant
        à_partir_de à_compter_de à_l'avenir au_début en_début à_la_fin en_fin veuillez merci_de svp s'il_te_plaît
        s'il_vous_plaît n'oublie* pense_à pensez_à veille_à veillez_à assure-toi assurez-vous charte politique
        procédure protocole convention selon conformément d'après comme_convenu convenu accord d'accord
        bonne_pratique bonnes_pratiques d'usage recommandé* conseillé* préférable souhaitable opportun
        convient_de règle souhaite_que souhaite_qu'* voudrait_que voudrait_qu'* aimerait_que aimerait_qu'*
        veut_que demande_que demande_de attend_que préfère_que préfère_qu'* serait_bien serait_bon serait_utile
        serait_gentil serait_~_de serait_~_que serait_~_si apprécie_~_que autorisé* habilité* permis* peux
        peut_être peuvent_être par_défaut en_règle_générale sans_exception tu_peux vous_pouvez on_demande
        on_parle il_est_question exclusivement uniquement n'est_plus_nécessaire va_~_à serait_sympa""",
    "waive": """inutile* superflu* pas_besoin plus_besoin n'est_pas_nécessaire n'est_plus_nécessaire
        ne_sont_pas_nécessaires ne_sont_plus_nécessaires pas_nécessaire* plus_nécessaire* dispens* facultati*
        n'a_plus_lieu""",
    "when": """à_qui qui_demande quand lorsque lorsqu'* dès_que dès_qu'* si s'il s'ils si_l'on sitôt en_cas_de
        tant_que on_demande on_parle il_est_question dès_qu chaque_fois_que""",
    "agent": """tu te toi ton ta tes vous votre vos assistant assistante assistants l'assistant* agent agents
        l'agent* d'agent* ia l'ia ias modèle modèles bot bots chatbot* llm* lecteur lecteurs robot copilote d'ia
        joue_~_rôle jouez_~_rôle""",
    "you": "tu te toi ton ta tes vous votre vos lecteur lecteurs",
    "act": """lire lis lit lisez lu lue paie* paye* payé* payo* payant dévoil* révél* sold* relai* relay* exécut*
        lanc* démarr* envoi* envoy* transmet* transmis* transfér* transfèr* expédi* achemin* fais_suivre
        faites_suivre faire_suivre faire_parvenir partag* montr* affich* install* télécharg* ouvr* ouvert* visit*
        cliqu* copi* recopi* coll* publi* poste postez dépos* répond* répons* vire virer virez vers* règl* écri*
        enregistr* joign* join* ajout* insér* inclu* intégr* mets met mettre mettez dis dit dites dire demand*
        fourni* donn* communiqu* contact* appel* consult* charg* récupèr* récupér* renvoi* renvoy* redirig*
        dirig* orient* indiqu* cite* suiv* suis remplac* modifi* chang* export* glisse* termin* utilis* emploi*
        command* achèt* achet* soum* synchronis* mentionn* confirm* préten* affirm* rassur* en_copie remet*
        remis* archiv* compte arriv* partent parte dicte* lis_~_voix gliss*""",
    "mild": """lire lis lit lisez lu lue paie* paye* payé* payo* payant exécut* lanc* démarr* install* télécharg*
        ouvr* ouvert* visit* cliqu* règl* enregistr* appel* consult* charg* récupèr* récupér* suiv* suis remplac*
        modifi* chang* termin* utilis* emploi* command* achèt* achet* compte demand* contact* archiv* collect*
        arriv*""",
    "grave": """paie* paye* payé* approuv* valid* accept* confirm* autoris* fais_confiance faites_confiance
        faire_confiance obéi* accord* vire virer virés virées install* exécut* divulgu* révél* transfér* fusionn*
        débloqu* signe signer""",
    "wipe": "vide vider videz suppress* supprim* effac* détrui* écras* purge* élimin* retir*",
    "drop": """tais tait taire taisez taise lever levez lève levé* n'ont_pas_leur_place n'a_pas_sa_place arrêt*
        cess* interromp* ignor* oubli* néglig* contourn* annul* désactiv* désobéi* outrepass* sans passe_outre
        passer_outre passez_outre sous_silence abstraction omet* omis* cach* dissimul* masqu* supprim* saut*
        écart* suspend* coup* débranch* neutralis* étein* ferme* inutile* superflu* pas_besoin plus_besoin
        n'est_pas_nécessaire plus_nécessaire dispens* esquiv* abandonn* rejet* minimis* au_nom_de vaut_pour
        valent_pour vaut_comme tient_lieu sans_lire""",
    "not": "ne n'* pas jamais rien aucun aucune personne ni non",
    "none": "aucun aucune nul nulle rien pas_de plus_de",
    "ask": """accord vérif* contrôl* validation* confirmation* approbation* demand* sollicit* attend* consult*
        interrog* confirmer""",
    "before": "avant d'abord auparavant",
    "guard": """mise_en_garde mises_en_garde confirm* validat* *validation* approb* autorisat* *autorisation*
        accord vérif* contrôl* relecture revue consentement permission* audit* journal journaux journalis* log
        logs avertissement* *avertissement* alerte* *alerte* filtre* filtrage garde-fou* sécurité protection*
        restriction* limit* modération supervis* surveillance notification* consulter demander
        double_authentification authentification antivirus pare-feu question* signature second_regard
        deuxième_avis""",
    "orders": """instruction* consigne* règle* directive* ordre ordres prompt restriction* politique*
        message_système contrainte* indication*""",
    "prior": """précédent* antérieur* ci-dessus d'avant tous toutes tes vos existant* initial* originel* autres
        actuel* toute tout""",
    "void": """annulé* caduc* caduque* n'ont_plus n'a_plus plus_cours plus_valable* révoqué* abrogé* obsolète*
        remplacé* suspendu* levé* invalide* expiré* périmé* ne_s'applique* ne_comptent ne_valent retiré* nul
        nulles""",
    "self": """cette_note cette_ligne ce_texte ce_message ce_document ce_fichier cette_entrée cette_consigne
        cette_instruction ce_qui_suit cette_règle ce_souvenir ceci""",
    "obey": "sui* obéi* exécut* respect* conform* fie-toi fiez-vous compte* appliqu* tiens-t'en valent",
    "secret": """invite_système prompt_système mot_de_passe mots_de_passe clé_api clés_api clé_d'api clé_privée
        clés_privées clé_ssh clé_secrète clé_d'accès clés_d'accès identifiant* d'identifiant* l'identifiant*
        secret secrets jeton* token tokens coordonnées_bancaires code_de_vérification codes_d'accès code_pin
        numéro_de_carte données_client* données_personnelles fichier_client* données_des_clients
        liste_des_clients carnet_d'adresses confidentiel* code_secret codes_de_récupération code_de_récupération""",
    "data": """copie* sauvegarde* fichier* données historique* journal journaux mémoire dossier* base bases
        archives contacts notes entrées""",
    "tell": """avise aviser avisez signale signaler signalez savoir voir remarquer dis dites dire inform* averti*
        préven* prévien* laisse_~_savoir fais_savoir faire_savoir apprend*""",
    "show": "dévoil* parl* mentionn* révél* montr* évoqu* indiqu* divulgu* affich*",
    "who": """utilisat* l'utilisat* personne quelqu'un client* lui leur propriétaire cela ceci note que qu'*
        d'autres autres humain* à_qui en""",
    "that": "que qu'* cela ceci en",
    "money": """virement* paiement* facture* loyer* salaire* compte iban remboursement* somme* montant* don dons
        prélèvement* dépôt* honoraire* règlement*""",
    "push": """recommand* propos* suggèr* suggér* conseill* cite* nomm* mentionn* vant* privilégi* préfér*
        préfèr* oriente* indiqu* choisi* promouv*""",
    "only": """uniquement seulement exclusivement seul seule que rien_que toujours d'abord avant_tout plutôt_que
        au_lieu_de aucun_autre""",
    "vendor": """fournisseur* hébergeur* produit* marque* assureur* assurance* banque* prestataire* magasin*
        boutique* outil* hôtel* fabricant* concurrent* entreprise* agence* courtier* d'hébergeur*""",
    "covert": """discrètement en_douce en_cachette en_silence en_secret silencieusement secrètement à_l'insu
        entre_nous pour_toi pour_vous au_passage sans_le_dire subrepticement mine_de_rien confidentiel
        sans_prévenir""",
    "every": "chaque tout toute tous toutes n'importe_quel*",
    "reply": """réponse* résumé* message* séance* session* conversation* courriel* mail mails e-mail* facture*
        rapport* document* fichier* lien* tâche*""",
    "to": "à au aux vers sur dans chez",
    "lead": "et puis ensuite aussi alors donc simplement maintenant d'abord toujours",
    "common": """le la les l' un une des de du d' et est sont était a ont au aux en dans sur par pour avec ce
        cette ces son sa ses leur il elle ils on se qui que mais ou plus à été""",
    "anyone": "quiconque celui_qui ceux_qui toute_personne invités",
    "get": "obtenir obtient reçoit recevoir avoir donne donner donné*",
    "question": "question* demande demandes",
}

SPANISH = {
    "norm": """exige* impone* práctica hábito quiere quisiera desea gustaría agradece prefiere debe deben debes
        debéis debemos deberá deberán deberás debería deberían deberías tiene_que tienen_que tienes_que
        tendrá_que hay_que ha_de han_de has_de es_preciso obligatori* necesari* imprescindible obligad* requiere
        siempre nunca jamás cuando cada_vez siempre_que si en_cuanto tan_pronto nada_más en_caso_de al_empezar
        al_comenzar al_iniciar al_principio al_inicio al_final al_terminar antes_de antes_del después_de_cada
        a_partir_de de_ahora_en_adelante en_adelante en_lo_sucesivo desde_ahora desde_hoy por_favor asegúrate
        asegúrese recuerda recuerde acuérdate no_olvides política normativa norma procedimiento protocolo
        convenio según conforme acordad* acuerdo como_se_acordó lo_acordado buena_práctica buenas_prácticas
        se_recomienda recomendable recomendado aconsejable habitual costumbre conviene convendría conveniente
        preferible mejor oportuno deseable sería_bueno sería_~_que quiere_que quisiera_que desea_que prefiere_que
        pide_que espera_que agradecería le_gustaría_que le_gusta_que se_espera se_ruega se_pide se_solicita
        autorizad* facultad* permitid* puede_ser pueden_ser puedes por_defecto como_norma sin_excepción
        solo_queda queda_~_o regla es_tarea corresponde_a se_debe se_deben salvo_que preguntan pregunten se_habla
        sale_el_tema únicamente exclusivamente ahora estaría_bien sería_ideal estaría_genial""",
    "waive": """no_tiene_por_qué no_tienen_por_qué no_tienes_por_qué innecesari* sobra sobran no_hace_falta
        no_hacen_falta no_es_necesari* no_son_necesari* ya_no_hace_falta no_necesita* no_se_requiere* se_omite*
        se_prescinde opcional""",
    "when": """a_quien quien cuando si en_cuanto tan_pronto nada_más en_caso_de preguntan pregunten se_habla
        sale_el_tema salvo_que cada_vez_que siempre_que si_sale si_surge""",
    "agent": """tú tu tus te ti usted asistente* agente agentes ia ias modelo modelos modelo_de_lenguaje bot bots
        chatbot* robot llm* lector lectores copiloto haz_~_papel actúa_como""",
    "you": "tú tu tus te ti usted lector lectores",
    "act": """abre abra abrir abran abrid sube suba subir suban subid súbel* pasa pasar pase pasen pásal* paga*
        pago pagu* págu* liquid* abon* revel* desvel* ejecut* corre correr corran lanz* arranc* env* mand*
        reenvi* remit* transmit* compart* muestr* mostr* instal* descarg* abiert* visit* pulsa* copi* cópi* peg*
        pég* public* coloc* respond* contest* transfier* transfer* escrib* escrít* guard* inclu* añad* agreg*
        adjunt* inser* introd* di dile diles decir diga digan da dale dar den entreg* entrég* haz hacer haga
        llam* consult* redirig* dirig* deriv* indic* cita* sigue seguir siga sigan lee leer lea carg* recog*
        reemplaz* sustituy* cambi* modific* export* recopil* termin* usa usar use utiliz* orden* compr* pon poner
        ponga ponlo pide pedir facilit* suministr* comunic* vuelc* volc* en_copia gir* sincroniz* menciona*
        aprovech* asegur* afirm* archiv* lleg* queden quedaran cuela* cuele* colar dict* lee_~_voz coloca* mete
        meter""",
    "mild": """abre abra abrir abran abrid paga* pago pagu* págu* ejecut* corre correr corran lanz* arranc*
        instal* descarg* abiert* visit* pulsa* guard* llam* consult* sigue seguir siga sigan lee leer lea carg*
        recog* reemplaz* sustituy* cambi* modific* termin* usa usar use utiliz* orden* compr* pide pedir haz
        hacer haga introd* archiv* aprovech* lleg* queden quedaran""",
    "grave": """paga* pago pagu* págu* confíe fíate aprueb* aprob* acept* confirm* autoriz* confía confiar
        obedec* conced* transfer* transfier* instal* ejecut* revel* divulg* valid* fusion* desbloque* firm*""",
    "wipe": "borr* elimin* suprim* destru* sobrescrib* vaci* purg* quita*",
    "drop": """cesa cesar cese deja_de dejar_de deje_de dejen_de desatend* ignor* olvid* omit* descart* salt*
        sált* anul* desobede* desactiv* evad* elud* sin pas*_~_por_alto caso_omiso hacer_caso_omiso call*
        silenci* ocult* escond* suprim* apag* deshabilit* levant* suspend* innecesari* sobra* no_hace_falta
        no_es_necesario no_son_necesarias no_hacen_falta no_necesita* prescind* desestim* desatiend* relaj*
        en_nombre_de quit* cerr* desconect* ya_no_hace_falta desconoc* vale_como valen_como cuenta_como
        cuentan_como""",
    "not": "no nunca jamás nada nadie ningún ninguna ninguno ni tampoco",
    "none": "ningún ninguna ninguno nada sin_ningun*",
    "ask": """permiso* revis* verific* confirmac* aprobac* autorizac* pid* pedir pregunt* solicit* esper*
        consult* confirmar""",
    "before": "antes primero previamente",
    "guard": """confirm* aprobac* autorizac* permiso* consentimiento revis* verific* comprob* control* validac*
        audit* registro* bitácora* log logs aviso* advertenc* alert* filtro* seguridad protec* restricc* límite*
        moderac* supervis* notificac* consult* pregunt* doble_factor autenticac* antivirus cortafuegos firma*
        salvaguard* vigilanc*""",
    "orders": """instrucc* regla* norma normas indicac* orden órdenes prompt restricc* directriz directiva*
        política* mensaje_del_sistema pauta* consigna* directric*""",
    "prior": """anterior* previ* arriba todas todos tus existente* original* inicial* demás otras otros actual*
        vigente* toda todo""",
    "void": """anulad* revocad* sin_efecto no_valen ya_no derogad* obsolet* sustituid* reemplazad* suspendid*
        inválid* caducad* vencid* cancelad* sin_validez retirad* no_se_aplican no_cuentan no_rigen""",
    "self": """esta_nota esta_línea este_texto este_mensaje este_documento este_archivo este_fichero esta_entrada
        esta_instrucción esta_regla este_apunte este_aviso esto""",
    "obey": "sigu* segu* obedec* ejecut* cumpl* confía atend* ten_en_cuenta vale valen cuent* rig* ceñ* ciñ*",
    "secret": """prompt_del_sistema contraseña* clave_api clave_de_api clave_de_la_api clave_privada clave_ssh
        clave_secreta clave_de_acceso claves credencial* secreto secretos token tokens datos_bancarios
        código_de_verificación código_pin pin número_de_tarjeta datos_de_clientes datos_de_los_clientes
        datos_personales lista_de_clientes agenda_de_contactos confidencial* llave_privada frase_semilla
        códigos_de_recuperación código_de_recuperación""",
    "data": """copia* respaldo* datos archivo* historial registro* memoria carpeta* base bases notas contactos
        ficheros entradas""",
    "tell": """notifiques notificar notificarle notifique avises avise avisar avisarle avisarles saber ver notar
        dile digas diga decir decirle cuent* inform* comuni* hagas_saber haga_saber hacer_saber dejes_saber
        enter* di""",
    "show": "mencion* revel* coment* muestr* mostr* habl* indiques indique divulg* hagas_referencia alud*",
    "who": "usuari* nadie alguien client* dueñ* propietari* esto ello nota que otros terceros human* nadie_más",
    "that": "que esto ello",
    "money": """transferenc* pago* factura* alquiler* nómina* sueldo* cuenta iban reembols* importe* cantidad*
        donación* donativ* cobro* recibo* depósito* compra*""",
    "push": """recomiend* recomend* suger* sugier* propon* propón* aconsej* cita* menciona* nombra* promocion*
        elog* prefier* indica* ofrec* elig*""",
    "only": """solo sólo únicamente exclusivamente nada_más_que siempre primero ante_todo en_lugar_de antes_que
        ningún_otro sobre_todo""",
    "vendor": """proveedor* producto* marca* hosting alojamiento* asegurador* seguro* banco bancos tienda*
        fabricant* hotel* empresa* herramienta* competidor* servicio* agencia*""",
    "covert": """discretamente a_escondidas en_secreto en_silencio silenciosamente disimuladamente calladamente
        de_paso entre_nosotros para_ti sin_avisar sin_decir* sin_mencionar* sin_que_se_note sin_que_nadie
        sin_que_el_usuario a_espaldas secretamente confidencial""",
    "every": "cada todo toda todos todas cualquier",
    "reply": """respuesta* resumen* resúmenes mensaje* sesión sesiones conversación conversaciones correo correos
        mail mails factura* informe* documento* archivo* enlace* tarea* chat*""",
    "to": "a al en hacia para",
    "lead": "y e luego después también además entonces simplemente ahora primero por_favor siempre nunca",
    "common": """el la los las un una unos unas de del y es son era está están fue ha han en con por para al se
        su sus lo que como más pero o muy desde hasta este esta cada""",
    "anyone": "quien quienes cualquiera todo_el_que invitados",
    "get": "recibir recibe obtener obtiene tener dan dar da_~_las",
    "question": "pregunta* consulta*",
}

ITALIAN = {
    "norm": """esige esigono pretende impone pratica abitudine consuetudine vorrebbe vuole desidera piacerebbe
        preferisce deve devi devono dovete dobbiamo dovrà dovrai dovranno dovrebbe dovrebbero dovresti va vanno
        bisogna occorre è_tenut* è_obbligat* tenut* sono_tenut* obbligatori* necessari* indispensabile richiest*
        sempre mai quando ogni_volta ogniqualvolta se qualora appena non_appena nel_caso in_caso finché prima_di
        prima_d'* dopo_ogni d'ora_in_poi da_ora_in_poi da_oggi da_adesso in_futuro d'ora_in_avanti all'inizio
        all'avvio alla_fine al_termine per_favore per_cortesia cortesemente si_prega si_richiede assicurati
        ricorda ricordati non_dimenticare policy politica normativa norma procedura protocollo convenzione
        secondo in_base_a come_da come_concordato concordat* accord* d'accordo buona_norma buona_pratica
        buona_prassi buona_regola prassi si_consiglia consigliabile consigliat* raccomandat* opportuno
        preferibile conveniente meglio è_bene sarebbe_bene sarebbe_~_che sarebbe_~_se auspicabile vorrebbe_che
        vuole_che desidera_che preferisce_che chiede_che gradirebbe gradisce è_consuetudine di_solito autorizzat*
        abilitat* puoi può_essere possono_essere permess* consentit* di_norma di_regola regola senza_eccezioni
        spetta_a si_deve si_devono già_che_ci_sei chiedono chiede si_parla soltanto esclusivamente ora
        sarebbe_bello sarebbe_utile""",
    "waive": """superflu* inutil* non_serv* non_è_necessari* non_sono_necessari* non_occorr* non_c'è_bisogno
        non_è_richiest* non_sono_richiest* facoltativ*""",
    "when": """a_chi chi_chiede quando se qualora appena non_appena nel_caso in_caso finché chiedono chiede
        si_parla ogni_volta_che quando_si_parla""",
    "agent": """tu te ti tuo tua tuoi tue voi assistente assistenti l'assistente agente agenti l'agente ia
        modello modelli modello_linguistico modelli_linguistici bot chatbot* llm* lettore lettori copilota
        recita_~_parte recita_~_ruolo fai_la_parte""",
    "you": "tu te ti tuo tua tuoi tue voi lettore lettori",
    "act": """paga* pago pagh* sald* rivel* svel* dicendo esegu* lanci* avvi* invi* mand* inoltr* gira girare
        girate spedi* trasmett* condivid* mostr* install* scaric* apri aprire aprite visit* clicc* copi* incoll*
        caric* pubblic* post* rispond* trasfer* bonific* vers* scriv* salv* alleg* aggiun* inser* inclu* metti
        mettere mettete dire dite dai dare date dagli forni* comunic* consult* contatt* chiam* rimand*
        reindirizz* indirizz* riport* cita* segui* legg* raccogl* sostitu* cambi* modific* esport* termin* chiud*
        usa usare utilizz* ordin* compra* chied* consegn* passa passare riversa* sincronizz* menzion* indic*
        in_copia rigir* assicur* afferm* archivi* arriv* compaiano comparissero detta* dettare infila* infilare""",
    "mild": """paga* pago pagh* esegu* lanci* avvi* install* scaric* apri aprire aprite visit* clicc* salv*
        chiam* consult* contatt* segui* legg* raccogl* sostitu* cambi* modific* termin* chiud* usa usare utilizz*
        ordin* compra* chied* archivi* arriv*""",
    "grave": """paga* pagh* approv* accett* conferm* autorizz* fidat* fidarsi obbedi* ubbidi* conced* trasfer*
        install* esegu* rivel* divulg* valid* sblocc* firm*""",
    "wipe": "cancell* elimin* rimuov* distrugg* sovrascriv* svuot* togli*",
    "drop": """smett* cess* interromp* ignor* dimentic* trascur* aggir* annull* disobbed* disattiv* disabilit*
        salt* scart* senza elud* tralasci* omett* omess* nascond* nascost* tac* sopprim* spegn* sospend* revoc*
        superflu* inutil* non_serv* non_è_necessari* non_sono_necessari* non_occorr* allent* stacc* toglier*
        bypass* occult* a_nome_dell* a_nome_di metti_da_parte vale_come valgono_come""",
    "not": "non mai nulla niente nessuno nessun nessuna né",
    "none": "nessun nessuna nessuno niente nulla",
    "ask": """permess* verific* controll* conferm* approvazion* chied* chiest* richied* attend* aspett* consult*
        domand*""",
    "before": "prima",
    "guard": """conferm* approvazion* autorizzazion* permess* consens* revision* verific* controll* validazion*
        audit* registr* log avvis* avvert* allert* allarm* filtr* sicurezza protezion* restrizion* limit*
        moderazion* supervision* notific* chiedere domand* doppio_fattore due_fattori autenticazion* antivirus
        firewall salvaguard* consult* firma""",
    "orders": """istruzion* regol* direttiv* ordin* prompt restrizion* norm* indicazion* linee_guida
        messaggio_di_sistema politich* disposizion* consegn*""",
    "prior": """precedent* anterior* di_prima sopra tutte tutti tue tuoi esistent* original* inizial* altre altri
        attual* finora ogni""",
    "void": """annullat* revocat* non_valgono non_vale non_più sospes* abrogat* obsolet* sostituit* scadut*
        decadut* nulle nulli invalid* ritirat* superat* non_si_applicano non_contano""",
    "self": """questa_nota questa_riga questo_testo questo_messaggio questo_documento questo_file questa_voce
        questa_istruzione questa_regola questo_appunto quanto_scritto_qui""",
    "obey": "segu* obbed* ubbid* esegu* fidat* rispett* conta contano vale valgono attien* attener*",
    "secret": """prompt_di_sistema password parola_d'ordine parole_d'ordine chiave_api chiavi_api chiave_privata
        chiave_ssh chiave_segreta chiavi_di_accesso credenzial* segreti segreto token dati_bancari
        codice_di_verifica codice_pin numero_di_carta dati_dei_clienti dati_personali elenco_clienti
        lista_clienti rubrica riservat* confidenzial* codici_di_recupero codice_di_recupero""",
    "data": "backup copie dati file cronologia registri memoria cartell* database archivi note contatti voci",
    "tell": """notificare notificarlo notifichi avvisare avvisarlo avvisarla avvisarli avvisi avvertire sapere
        accorgersi vedere vederla vederlo scoprire dire dirgli dirle far_sapere fai_sapere fate_sapere
        facc*_~_sapere inform* raccont* comunic* svel*""",
    "show": "cita citare citate menzion* rivel* mostr* accenn* parl* indic* nomin* divulg*",
    "who": "utent* nessuno qualcuno client* proprietari* questo ciò nota che altri terzi uman*",
    "that": "che questo ciò",
    "money": """bonific* pagament* fattur* affitt* stipend* conto iban rimbors* import* somm* donazion* addebit*
        canon*""",
    "push": """cita citare citate consigli* raccomand* sugger* propon* proporre nomin* menzion* promuov* elog*
        preferisc* indic* scegl*""",
    "only": "solo soltanto solamente unicamente esclusivamente sempre prima_di_tutto anziché invece_di nessun_altro",
    "vendor": """fornitor* prodott* marc* hosting assicurat* assicuraz* banca banche negozi* produttor* albergo
        hotel aziend* strument* concorrent* serviz* agenzi*""",
    "covert": """di_nascosto in_segreto in_silenzio segretamente silenziosamente senza_dir* senza_avvisar*
        senza_farlo tra_noi per_te discretamente alla_chetichella all'insaputa sottobanco en_passant in_sordina""",
    "every": "ogni tutto tutta tutti tutte qualsiasi qualunque",
    "reply": """rispost* riepilog* riassunt* messagg* session* conversazion* mail email e-mail fattur* rapport*
        document* file link compit* chat""",
    "to": "a al alla ad verso su sul in per",
    "lead": "e poi anche inoltre quindi semplicemente adesso prima sempre",
    "common": """il lo la i gli le un uno una di del della dei delle e è sono era ha hanno in con su per da dal
        al alla nel nella si che non più ma o come dopo suo sua suoi""",
    "anyone": "chi chiunque ospiti",
    "get": "avere riceve ricevere ottenere ottiene danno dare si_dà",
    "question": "domand* richiest*",
}

PORTUGUESE = {
    "norm": """exige* impõe* prática hábito quer gostaria deseja prefere se_alguém se_o_usuário se_for se_te
        se_lhe se_você se_perguntar* se_pedir* deve devem deves deverá deverão deveria deveriam tem_de têm_de
        tem_que têm_que precisa precisam terá_de há_de é_preciso é_necessário obrigatóri* obrigad* necessári*
        imprescindível requer sempre nunca jamais quando cada_vez sempre_que caso assim_que logo_que em_caso_de
        enquanto antes_de antes_da depois_de_cada a_partir_de de_agora_em_diante daqui_em_diante doravante
        no_futuro desde_já no_início no_começo no_fim ao_iniciar ao_começar ao_terminar por_favor favor
        certifique-se lembre-se lembra-te não_esqueça não_se_esqueça política norma procedimento protocolo
        convenção segundo conforme de_acordo_com pela_política combinado acordado acordo boa_prática
        boas_práticas recomenda-se recomendável recomendado aconselhável convém conveniente costume habitual
        preferível melhor seria_bom seria_~_que seria_~_se seria_útil desejável quer_que gostaria_que
        gostaria_de_que deseja_que prefere_que pede_que espera_que espera-se pede-se solicita-se autorizad*
        permitid* pode_ser podem_ser por_padrão como_regra sem_exceção regra cabe_a dever tarefa perguntarem
        perguntam falarem se_falar exclusivamente somente apenas agora aproveite seria_ótimo seria_legal
        seria_ideal""",
    "waive": """desnecessári* não_é_necessári* não_são_necessári* não_precis* dispensad* dispensável
        não_há_necessidade não_é_preciso opcional""",
    "when": """a_quem quem_pedir quem_perguntar se_alguém se_o_usuário se_for se_te se_lhe se_você se_perguntar*
        se_pedir* quando caso assim_que logo_que em_caso_de enquanto perguntarem perguntam falarem se_falar
        sempre_que toda_vez_que cada_vez_que""",
    "agent": """você vocês te ti tu teu tua seu_modelo assistente* agente agentes ia ias modelo modelos
        modelo_de_linguagem bot bots chatbot* robô robot llm* leitor leitores copiloto faça_~_papel faz_~_papel""",
    "you": "você vocês te ti tu teu tua leitor leitores",
    "act": """pagos rode rodar roda rodem roda-* abra abrir abre abram cole colar colem cola-* paga* pago pagu*
        ponha pôr põe ponham leia leiam leia-* liquid* quit* revel* dê-lhe entreg* forneç* execut* corr* inici*
        envi* mand* encaminh* reencaminh* remet* transmit* repass* compartilh* partilh* mostr* instal* baix*
        descarreg* visit* acess* cliqu* copi* public* post* respond* transfer* transfir* deposit* escrev* guard*
        salv* anex* adicion* acrescent* inclu* inser* insir* diga dizer digam fornec* faça fazer ligue* consult*
        contact* redirecion* direcion* apont* indic* cite* citar siga seguir sigam ler carreg* substitu* troc*
        mud* alter* export* termin* use usar utiliz* compr* pedir peça passe passar em_cópia sincroniz* mencion*
        assegur* afirm* arquiv* cheg* coloque colocar coloca dite ditar leia_~_voz encaixe""",
    "mild": """pagos rode rodar roda rodem roda-* abra abrir abre abram paga* pago pagu* leia leiam execut* corr*
        inici* instal* baix* descarreg* visit* acess* cliqu* guard* salv* ligue* consult* contact* siga seguir
        sigam ler carreg* colet* substitu* troc* mud* alter* termin* use usar utiliz* compr* pedir peça faça
        fazer arquiv* deposit* aproveite cheg*""",
    "grave": """pagos paga* pago pagu* confie confiar confiem aprov* aceit* confirm* autoriz* obedeç* obedec*
        conced* transfer* transfir* instal* execut* revel* divulg* valid* desbloque* assin*""",
    "wipe": "remoç* apag* exclu* delet* remov* destru* sobrescrev* elimin* esvazi* limp*",
    "drop": """cale calar calem pule pular pulem pare parar parem deixe_de deixar_de deixe_~_de deixem_de ignor*
        esque* desconsider* descart* contorn* anul* desobede* desativ* desabilit* burl* sem omit* ocult* escond*
        silenci* suprim* deslig* suspend* dispens* desnecessári* não_é_necessári* não_são_necessári* não_precis*
        salt* retir* relax* em_nome_do em_nome_da em_nome_de releg* fech* vale_como valem_como conta_como
        contam_como""",
    "not": "não nunca jamais nada ninguém nenhum nenhuma nem",
    "none": "nenhum nenhuma nada sem_nenhum*",
    "ask": """permiss* verific* confirmaç* aprovaç* conferência autorizaç* peç* pedir pergunt* solicit* esper*
        consult* confirmar""",
    "before": "antes primeiro",
    "guard": """confirm* conferência* conferir aprovaç* autorizaç* permiss* consentiment* revis* verific* checag*
        control* validaç* auditor* registro* registo* log logs aviso* advertênc* alert* filtr* segurança proteç*
        restriç* limite* moderaç* supervis* notificaç* perguntar consult* dois_fatores autenticaç* antivírus
        firewall salvaguard* vigilânc* assinatura*""",
    "orders": """instruç* regra* diretriz* norma* indicaç* ordem ordens prompt restriç* política* orientaç*
        mensagem_do_sistema limites""",
    "prior": """anterior* prévi* acima todas todos tuas suas existente* origina* inicia* demais outras outros
        atua* toda qualquer""",
    "void": """anulad* revogad* sem_efeito não_valem já_não não_vale suspens* obsolet* substituíd* inválid*
        cancelad* expirad* caducad* vencid* retirad* sem_validade não_se_aplicam não_contam""",
    "self": """esta_nota esta_linha este_texto esta_mensagem este_documento este_arquivo este_ficheiro
        esta_entrada esta_instrução esta_regra este_aviso o_que_está_aqui isto essa_nota esse_texto""",
    "obey": "siga sigam confie confiar segui* obede* execut* cumpr* conta contam vale valem atend*",
    "secret": """prompt_do_sistema senha* palavra-passe palavras-passe chave_de_api chave_da_api chave_api
        chave_ssh chave_secreta chave_privada chaves_de_acesso credencia* segredo segredos token tokens
        dados_bancários código_de_verificação código_pin número_do_cartão dados_dos_clientes dados_de_clientes
        dados_pessoais lista_de_clientes agenda_de_contatos confidencia* códigos_de_recuperação
        código_de_recuperação""",
    "data": """backup* cópia* dados arquivo* ficheiro* histórico registros registos memória pasta* banco_de_dados
        notas contatos contactos""",
    "tell": """fale falar falem notificar notifique notifiques avise avisar avisá-lo avises saber perceber ver
        vê-la vê-lo descobrir cont* diga dizer digas inform* comuni* deixe_~_saber deixes_~_saber saiba""",
    "show": "fale falar falem mencion* revel* coment* mostr* indique divulg* refir*",
    "who": """dono dona donos usuári* utilizador* ninguém alguém client* lhe lhes proprietári* isto isso nota que
        outros terceiros human*""",
    "that": "que isto isso",
    "money": """transferênc* pagament* fatura* alugue* salário* conta iban pix reembols* valor* quantia* doaç*
        boleto* depósito* compra* despesa*""",
    "push": """recomend* sugir* suger* propon* aconselh* indique indic* cite* mencion* nomei* promov* elogi*
        prefir* ofereç* escolh*""",
    "only": """só somente apenas unicamente exclusivamente sempre primeiro acima_de em_vez_de nenhum_outro
        antes_de_tudo""",
    "vendor": """fornecedor* produto* marca* hospedag* alojament* segurador* seguro* banco bancos loja*
        fabricant* hotel* empresa* ferramenta* concorrent* serviço* agênc*""",
    "covert": """discretamente às_escondidas em_segredo em_silêncio silenciosamente secretamente entre_nós
        para_si de_passagem sem_avisar sem_dizer sem_contar sem_mencionar sem_que_ninguém sem_que_o_usuário
        pelas_costas na_surdina confidencial""",
    "every": "cada todo toda todos todas qualquer",
    "reply": """resposta* resumo* mensage* sessão sessões conversa* e-mail* email* correio* fatura* nota_fiscal
        notas_fiscais relatório* documento* arquivo* link* tarefa* chat*""",
    "to": "a ao à para em no na",
    "lead": "e depois também então além_disso simplesmente agora primeiro sempre",
    "common": """o a os as um uma uns de do da dos das e é são era está estão foi tem em no na nos nas com por
        para ao à se seu sua que mais mas ou como pelo pela cada fica""",
    "anyone": "quem qualquer_um convidados",
    "get": "receber recebe obter obtém ter dar dão",
    "question": "pergunta* dúvida*",
}
