"""Words of rules and of what they reach, in Russian, Polish and Turkish. See ``lexicon``."""

RUSSIAN = {
    "norm": """требует требуют практика обычай хотел* хочет желает должен должна должно должны обязан* следует
        нужно надо необходимо требуется придется полагается положено принято рекоменду* желательно целесообразно
        лучше_всего всегда никогда неизменно если когда как_только каждый_раз всякий_раз едва при_появлении
        в_случае перед_ответом перед_каждым перед_каждой перед_тем прежде_чем после_каждого после_каждой отныне
        впредь с_этого_момента с_сегодняшнего в_дальнейшем теперь в_начале в_конце пожалуйста прошу просьба
        обязательно убедись убедитесь не_забудь не_забывай не_забудьте помни политика политике политикой
        регламент* правило правила правилам процедур* протокол* согласно в_соответствии по_договоренности
        договорил* как_договаривались соглашени* хорошая_практика хорошей_практикой хорошо_бы было_бы_~_если_бы
        неплохо_бы хотел*_~_чтобы хочет_~_чтобы просит_~_чтобы хочет_чтобы просит предпочитает_чтобы ожидается
        разрешен* разрешается может_быть можно уполномочен* по_умолчанию как_правило без_исключений только_на
        зайдет_речь спросят спросит при_вопрос* по_запросу можешь исключительно чтобы_ты было_бы_хорошо
        было_бы_здорово""",
    "waive": """незачем ни_к_чему лишн* излишн* не_нужн* не_нужно не_требу* не_требуется больше_не_нужн* ненужн*
        необязательн* без_надобности не_надо""",
    "when": """кто_спросит кто_спрашивает если когда как_только едва при_появлении в_случае зайдет_речь спросят
        спросит при_вопрос* по_запросу каждый_раз_когда всякий_раз если_~_зайдет если_~_зайдёт""",
    "agent": """ты тебе тебя твой твои твоих вы вас ваш ассистент* помощник* агент* ии модел* языков*_модел* бот
        бота боту боты чат-бот* чатбот* нейросет* читател* копилот* сыграй_~_роль играй_~_роль""",
    "you": "ты тебе тебя твой твои твоих вы вас ваш читател*",
    "act": """раскры* раскро* погас* погаша* прикладыва* вклад* вложи* подел* делис* запуска* запуст* выполн*
        исполн* отправ* отсыла* пошли пошлите посыла* пересыла* пересла* перешл* переда* направ* шли шлите
        дублиру* сообщ* покаж* показ* установ* устанавл* скача* скачив* загру* выгруж* откр* посет* посещ*
        перейд* переход* нажм* копиру* скопир* встав* публику* опублик* размещ* размест* ответ* отвеча* перевод*
        перевед* плати* оплат* оплач* впиш* вписыва* запис* запиши* пиши* напиш* сохран* добав* прилож* прилага*
        прикреп* включ* укаж* указыва* скажи* говори* назов* называ* дай дайте давай* выда* предостав* вывод*
        вывед* ссыла* сошл* читай* прочт* прочита* след* использу* замен* меня* измен* экспорт* собер* собира*
        закаж* купи* закончи* заканчив* упомина* в_копию ставь поставь звони* позвони* обращ* обрат* приш*
        заверя* утвержд* вноси* внес* отгруж* попада* попал* продикту* зачита*""",
    "mild": """запуска* запуст* выполн* исполн* установ* устанавл* скача* скачив* загру* откр* посет* посещ*
        перейд* переход* нажм* плати* оплат* оплач* сохран* читай* прочт* прочита* след* использу* замен* меня*
        измен* собер* собира* закаж* купи* закончи* заканчив* звони* позвони* обращ* обрат* включ* ставь попада*
        попал*""",
    "grave": """одобр* утвержд* утверд* приним* прими* подтвержд* подтверд* довер* слуша* повинуй* подчин*
        разреша* разреши* предоставля* плати* оплат* оплач* перевод* перевед* установ* выполн* раскр* выдава*
        разглаша* пересыла* объедин* соглаша*""",
    "wipe": "удал* сотри* стирай* стер* уничтож* очист* очища* перезапис* убер* убира*",
    "drop": """прекрат* прекращ* перестан* перестав* не_пиши игнориру* проигнориру* забуд* забыт* пренебре*
        обойд* обход* отмен* отключ* выключ* пропус* наруш* без отброс* скрыва* скрой* скрыл* скрыт* спрячь*
        прячь* утаи* умалчива* умолчи* замалчива* замолчи* подавля* подави* приостанов* снима* сними* лишн*
        излишн* ненужн* не_нужно не_нужны не_требу* не_надо закрыва* опуска* опусти* ослаб* отвяза* от_имени
        не_показыва* не_обраща* минуя в_обход считается_~_разрешени* считается_~_согласи*""",
    "not": "не ни нет никогда ничего никому никто нельзя никаких",
    "none": "никаких никакого никакой ничего ни_одного",
    "ask": """согласован* разрешен* проверк* подтвержден* одобрен* спрашива* спросить переспрашива* запрашива*
        проси* жди* дожида* советова* уточня* подтвердить проверить""",
    "before": "перед прежде сначала до",
    "guard": """подтвержден* одобрен* согласован* согласи* разрешен* провер* ревизи* контрол* аудит* журнал* лог
        логи логов логирован* предупрежден* уведомлен* оповещен* тревог* фильтр* защит* безопасност* ограничен*
        лимит* модерац* надзор* вопрос* спрашива* переспрашива* запрос* двухфактор* аутентификац* антивирус*
        брандмауэр* подпис* верификац*""",
    "orders": """инструкц* указан* правил* распоряжен* приказ* команд* промпт* промт* директив* предписан*
        установк* установок рекомендаци* ограничен* системн*""",
    "prior": """предыдущ* прежн* ранее ранн* выше вышеуказанн* все всех твои твоих существующ* исходн*
        первоначальн* другие других остальн* любые текущ*""",
    "void": """отменен* утратил* недействительн* больше_не не_действу* аннулирован* устарел* заменен*
        приостановлен* снят* отозван* упразднен* истекл* не_имеют_силы потерял*""",
    "self": """эту_заметку этой_заметке эта_заметка этот_текст этому_тексту этим_текстом этого_текста эту_запись
        этой_записи эта_запись эту_строку этой_строке эта_строка это_сообщение этому_сообщению этот_документ
        этого_документа этот_файл это_правило написанное_здесь об_этом""",
    "obey": "следу* слуша* повинуй* выполн* доверя* руководств* придержива* соблюда* действует",
    "secret": """системн*_промпт* парол* секрет* токен* ключ_api ключи_api api-ключ* ключ*_доступа закрыт*_ключ*
        приватн*_ключ* ssh-ключ* учетн*_данн* логин* реквизит* код*_подтверждения пин-код* номер*_карт*
        данные_клиентов клиентск*_баз* персональн*_данн* личн*_данн* конфиденциальн* базу_клиентов""",
    "data": "копи* бэкап* данные данных файл* истори* журнал* память базу базы записи заметки архив* папк* контакт*",
    "tell": """знать узнать видеть увидеть замечать заметить говори* сообща* сообщи* рассказыва* расскажи*
        извеща* информиру* предупрежда* уведомля* давай_~_знать ставь_~_в_известность""",
    "show": "упомина* показыва* раскрыва* называ* обсужда* намека* разглаша* упомян* упомин*",
    "who": """пользовател* никому никто кому-либо кому-нибудь клиент* ему ей им владел* человек* людям что
        заметк* этом других третьим посторонн*""",
    "that": "что этом",
    "money": """перевод* платеж* платёж* оплат* счет счета счёт счетов аренд* зарплат* возврат* сумм*
        пожертвован* взнос* донат* расчетн*""",
    "push": """рекоменд* совет* предлага* предлож* называй* назови* упомина* хвали* продвига* рекламиру*
        предпочита* выбира*""",
    "only": "только лишь исключительно единственн* всегда прежде_всего вместо в_первую_очередь никаких_других",
    "vendor": """поставщик* провайдер* продукт* товар* бренд* марк* страхов* банк* хостинг* магазин*
        производител* гостиниц* отел* компани* сервис* конкурент* агентств*""",
    "covert": """незаметно тайно тихо втихую скрытно тайком молча втайне украдкой исподтишка между_нами при_себе
        попутно без_ведома за_спиной негласно конфиденциально""",
    "every": "каждый каждая каждое каждого каждой каждую все всех всю весь любой любое любую всякий",
    "reply": """ответ* резюме сводк* сообщен* сесси* сеанс* бесед* письм* счет* счёт* отчет* отчёт* документ*
        файл* ссылк* задач* диалог*""",
    "to": "на в к по через",
    "lead": "и затем потом также еще просто теперь сначала заодно всегда никогда пожалуйста",
    "common": """и в на с по за из к у о от для при до не что как это его ее их он она они мы был была были есть
        под над или но уже также""",
    "anyone": "кто тому_кто любой любому всем гостям",
    "get": "получ* выда* дать дают",
    "question": "вопрос* запрос*",
}

POLISH = {
    "norm": """wymaga żąda nakazuje praktyka praktyką zwyczaj zwyczajem chciał* chce życzy woli prosi nie_może
        nie_mogą nie_wolno musi musisz muszą musicie powinien powinna powinno powinni powinny powinieneś należy
        trzeba ma_~_ć mają_~_ć zobowiązan* wymagan* konieczn* niezbędn* obowiązkow* zawsze nigdy ilekroć gdy
        gdy_tylko kiedy jeśli jeżeli skoro za_każdym_razem w_razie w_przypadku przed_każdą przed_każdym zanim
        po_każdej po_każdym od_teraz odtąd od_dziś od_dzisiaj w_przyszłości na_przyszłość na_początku na_końcu
        proszę prosimy pamiętaj upewnij nie_zapomnij polityka polityką polityce regulamin* procedur* zasada
        zasadą zasady reguła protokół zgodnie według uzgodnion* ustalen* ustalon* umówi* jak_uzgodniono
        dobra_praktyka dobrą_praktyką dobrym_zwyczajem przyjęte przyjęło_się zaleca_się zalecan* wskazane warto
        najlepiej lepiej pożądane byłoby_~_gdyby byłoby_dobrze dobrze_by miło_by chciałby_~_żeby chciałby_żeby
        chce_żeby chce_aby chciałby_aby prosi_aby prosi_o oczekuje_się oczekuje_że woli_żeby upoważnion*
        uprawnion* dozwolon* wolno można może_być mogą_być możesz domyślnie z_reguły bez_wyjątku teraz wyłącznie
        zapyta zapytany przy_pytaniach na_pytania mowa_o byłoby_miło dobrze_by_było""",
    "waive": """nie_musi nie_muszą nie_musisz nie_jest_~_wymagan* zbędn* niepotrzebn* nie_potrzeb* nie_trzeba
        nie_są_potrzebn* nie_jest_potrzebn* nie_są_wymagane nie_jest_wymagane nie_wymaga* zbyteczn* opcjonaln*""",
    "when": """kto_zapyta kto_pyta gdy gdy_tylko kiedy jeśli jeżeli skoro w_razie w_przypadku zapyta zapytany
        przy_pytaniach na_pytania mowa_o ilekroć za_każdym_razem kiedykolwiek""",
    "agent": """asystenc* ty ciebie tobie ci twój twoje twoja twoich asystent* agent agenta agentowi agenci ai
        model modele modelu modelom boty bot bota chatbot* czytelnik* llm* sztuczn*_inteligenc* wciel_się
        zagraj_~_rolę odgrywaj_~_rolę""",
    "you": "ty ciebie tobie ci twój twoje twoja twoich czytelnik*",
    "act": """uregul* spłac* wyda* wysła* przesła* pobra* odesła* zapłaci* wklei* umieści* otworzy* zamieści*
        wpisa* zapisa* dopisa* poda* doda* kupi* użyć wstawi* ujawni* skierowa* wskaza* odda* uruch* wykon*
        odpal* wyśl* wysył* prześl* przesył* przekaz* kieruj* skieruj* przekieruj* udostępn* pokaż* pokaz*
        zainstal* instal* pobier* ściągn* otwórz* otwier* odwiedz* kliknij* skopiuj* kopiuj* wklej* opublik*
        publikuj* zamieść* zamieszcz* wgraj* wrzu* odpowi* zapłać* płać* płac* opłac* przel* wpisz* wpisuj*
        zapisz* zapisuj* napisz* dopisz* dopisuj* dołącz* załącz* umieść* umieszcz* daj* powiedz* mów* poinform*
        odeśl* odsył* wskaż* wskazuj* czytaj* przeczyt* zastąp* zmie* eksport* zbier* zamów* kup kupuj użyj*
        używaj* zakończ* kończ* wymie* korzystaj* stosuj* przedstaw* w_kopii zadzwo* zapew* twierdź* zostaw*
        dostarcz* trafia* trafi* podyktuj* odczytaj* wplat* wpleć""",
    "mild": """uruch* wykon* odpal* zainstal* instal* pobier* ściągn* otwórz* otwier* odwiedz* kliknij* zapłać*
        płać* płac* opłac* zapisz* zapisuj* czytaj* przeczyt* zastąp* zmie* zbier* zamów* kup kupuj użyj* używaj*
        zakończ* kończ* korzystaj* stosuj* zadzwo* trafia* trafi*""",
    "grave": """zatwierdz* akceptuj* zaakceptuj* przyjm* potwierdz* ufaj* zaufaj* słuchaj* zezwal* zezwól*
        udziel* zapłać* płać* opłac* przelew* zainstal* wykon* ujawn* wydaj* wyjaw* scal* autoryzuj* podpis*""",
    "wipe": "kasow* skasow* usuw* usuń* usun* skasuj* kasuj* wymaż* zniszcz* nadpisz* wyczyść* opróżnij*",
    "drop": """przesta* zaprzesta* wstrzym* ignoruj* zignoruj* zapomn* pomiń* pomij* pominąć omiń* omij* obejdź*
        obchodź* wyłącz* lekceważ* bez zlekceważ* odrzuć* odrzuca* anuluj* ukryj* ukrywa* zataj* przemilcz* tłum*
        stłum* zawieś* zawiesz* zbędn* niepotrzebn* nie_potrzeb* nie_trzeba nie_są_potrzebn* nie_jest_potrzebn*
        nie_wymaga* zamykaj* zamknij* odłącz* dezaktyw* przeskocz* w_imieniu nie_pokazuj* nie_pokazywa* zdejm*""",
    "not": "nie nigdy nic nikt nikomu nikogo żaden żadnych żadnej ani",
    "none": "żaden żadna żadne żadnej żadnego żadnych nic",
    "ask": "zgod* sprawdz* kontrol* potwierdz* zatwierdzen* pyta* spyta* zapyta* proś* czekaj* konsultuj*",
    "before": "przed zanim najpierw",
    "guard": """przegląd przeglądu przeglądów potwierdzen* potwierdzan* zatwierdzen* zatwierdzan* zgod*
        sprawdzen* sprawdza* weryfik* kontrol* audyt* dziennik* log logi logów logowan* ostrzeżen* ostrzeg*
        alert* alarm* powiadomien* filtr* zabezpieczen* bezpieczeńst* ochron* ogranicz* limit* moderac* nadzor*
        pytan* pytać zapytan* dwuskładnik* uwierzytelni* antywirus* zapor* podpisu recenzj* konsult*""",
    "orders": """instrukcj* polecen* zasad* reguł* wytyczn* prompt* ogranicz* dyrektyw* rozkaz* nakaz* wskazów*
        zalecen*""",
    "prior": """poprzedni* wcześniejsz* powyższ* wszystkie wszystkich twoje twoich istniejąc* pierwotn* inne
        innych dotychczasow* obecn* każd*""",
    "void": """odwołan* unieważnion* nieważn* straciły już_nie nie_obowiązuj* anulowan* przestarzał* zastąpion*
        zawieszon* wygasł* uchylon* cofnięt* nieaktualn* przestały""",
    "self": """ta_notatka tej_notatce tę_notatkę tej_notatki ten_tekst tego_tekstu temu_tekstowi ten_wpis
        tego_wpisu tym_wpisie ta_linia tę_linię tę_linijkę ta_wiadomość tej_wiadomości ten_dokument
        tego_dokumentu ten_plik tej_zasady co_tu_napisano o_tym""",
    "obey": "słuchaj* wykon* stosuj* przestrzeg* ufaj* kieruj* trzymaj* liczy_się obowiązuje",
    "secret": """hasło hasła haseł hasłem hasłami hasłu sekret* token* klucz*_api klucz*_prywatn* klucz*_dostępu
        klucz*_ssh dane_logowania danych_logowania dane_dostępowe poświadcz* kod_weryfikacyjny kody_weryfikacyjne
        pin numer*_kart* dane_klientów danych_klientów dane_osobowe danych_osobowych lista_klientów
        listę_klientów poufn* tajn*""",
    "data": "kopi* danych dane plik* histori* dziennik* pamięć baz* wpisy notatki archiw* folder* kontakty",
    "tell": """powiadamiaj* powiadomić powiadamiać powiadom wiedzieć dowiedzie* zobaczyć widzieć zauważyć mów
        powiedz* informuj* poinform* zdradz* opowiad* daj_~_znać uprzedz* wyjaw* mówić""",
    "show": "wspomin* ujawn* pokazuj* pokaż* wymieni* omawia* napomyk* porusz* wspomn* napomkn*",
    "who": "użytkowni* nikomu nikt komuś klient* jemu jej im mu właścic* człowiek* ludzi* że notat* tym innym osobom",
    "that": "że tym",
    "money": """przelew* płatnoś* faktur* czynsz* wypłat* pensj* konto konta rachunek zwrot* kwot* iban darowizn*
        wpłat* opłat* zakup*""",
    "push": """polec* rekomend* zaproponuj* proponuj* sugeruj* doradz* wymieni* wymień* wspomin* zachwal* promuj*
        wskazuj* wybier*""",
    "only": "tylko wyłącznie jedynie zawsze przede_wszystkim zamiast najpierw żadn*_inn*",
    "vendor": """dostawc* produkt* mark* ubezpiecz* bank banku hosting* sklep* producent* hotel* firm* narzędzi*
        usług* konkurenc* agencj* operator*""",
    "covert": """po_cichu potajemnie ukradkiem niezauważenie dyskretnie cichcem w_tajemnicy dla_siebie
        między_nami przy_okazji bez_wiedzy za_plecami skrycie poufnie milcząco""",
    "every": "każdy każda każde każdą każdego każdej wszystkie wszystko wszystkich",
    "reply": """odpowied* podsumowan* streszczen* wiadomoś* sesj* rozmow* mail* e-mail* faktur* raport* dokument*
        plik* link* zadan* czat*""",
    "to": "na do pod w poprzez",
    "lead": "i oraz potem następnie także też teraz najpierw po_prostu zawsze nigdy proszę",
    "common": """i w z na do o od po za dla przy przed pod się jest są był była było nie to ten ta te jego jej
        ich on ona oni my ale lub albo jak co już oraz ma mają ze we""",
    "anyone": "kto każdy każdemu wszyscy gościom",
    "get": "dosta* otrzym*",
    "question": "pytani* zapytani*",
}

TURKISH = {
    "norm": """şart_koş* adet* gelenek* teamül* ister isterdi *malı *meli *malıdır *melidir *malısın *melisin
        *malıyız *meliyiz gerek gerekir gerekiyor gereklidir gerekli lazım şart zorunlu* zorunda* mecbur*
        her_zaman daima asla hiçbir_zaman mutlaka eğer *sa *se *rsa *rse *ınca *ince *dığında *diğinde *duğunda
        *düğünde *tığında *tiğinde *dığı_anda *diği_anda *ır_*maz her_seferinde her_defasında *madan_önce
        *meden_önce *mazdan_önce yanıttan_önce yanıtlamadan cevaptan_önce başında sonunda bundan_böyle
        bundan_sonra artık şimdiden_itibaren bugünden_itibaren lütfen unutma emin_ol dikkat_et politika*
        politikaya_göre kural* kurala_göre ilke* yönetmelik* prosedür* uyarınca gereğince anlaşıldığı
        kararlaştırıl* anlaşma* iyi_uygulama* iyi_bir_uygulama* en_iyisi önerilir tavsiye_edilir uygun_olur
        iyi_olur güzel_olur harika_olur istiyor isteniyor rica_ed* bekleniyor tercih_ed* yetkili* izinli*
        izni_var *abilir *ebilir varsayılan istisnasız sorulursa sorulduğunda sorarsa yalnızca_~_na gönder ilet
        yolla aktar çalıştır aç sil yükle kur indir kopyala paylaş göster ekle yaz kaydet ver söyle onayla kapat
        öde öner yapıştır sakla gizle uygula yönlendir ara *ın_ız *iniz *ınız *unuz *ünüz""",
    "waive": """gereksiz* gerekmez gerekmiyor gerek_yok gerekmemekte* gerek_kalmadı şart_değil zorunlu_değil
        lüzum* isteğe_bağlı""",
    "when": """soranlara sorana eğer *sa *se *rsa *rse *ınca *ince *dığında *diğinde *duğunda *düğünde *tığında
        *tiğinde sorulursa sorulduğunda sorarsa *tuğunda *tüğünde her_seferinde *ılırsa *ilirse *ulursa *ülürse""",
    "agent": """sen sana seni senin siz size asistan* ajan* model modeli modelin modeller* bot botu botlar*
        chatbot* yapay_zekâ* yapay_zeka* dil_model* okuyucu* llm* rolünü_oyna""",
    "you": "sen sana seni senin siz size okuyucu*",
    "act": """göm gömün gömül* vermeli vermek vermeni vermesi vermesini verme verilmeli çalıştır* başlat* yürüt*
        gönder* ilet* yolla* aktar* yönlendir* paylaş* göster* yükle* kur kurun kurulur kurma* indir* aç açın
        açılır ziyaret* tıkla* kopyala* yapıştır* yayınla* yayımla* yanıtla* yanıt_ver* cevapla* cevap_ver* öde*
        havale* yaz yazın yazılır kaydet* ekle* iliştir* koy* söyle* bildir* ver verin verilir oku okuyun kullan*
        değiştir* dışa_aktar* sipariş* satın_al* bitir* biter belirt* teslim* sun sunun uy uyun takip_et* bağlan*
        arayın sat sıkıştır* yerleştir* dikte*""",
    "mild": """çalıştır* başlat* yürüt* yükle* kur kurun indir* aç açın ziyaret* tıkla* öde* kaydet* oku okuyun
        kullan* değiştir* sipariş* satın_al* bitir* biter uy uyun takip_et* bağlan* arayın kurulur kurma* açılır""",
    "grave": """onayla* kabul_et* kabul_edil* güven güvenin itaat* izin_ver* yetki_ver* öde* çalıştır* yükle*
        ifşa* açıkla* birleştir* havale*""",
    "wipe": "sil silin* siler* silme* silip kaldır* yok_et* temizle* üzerine_yaz* imha*",
    "drop": """yer_verilme* yer_verme* yer_alma* bırak* durdur* kes kesin yok_say* görmezden_gel* unut unutun
        dikkate_alma* atla atlayın atlan* atlat* devre_dışı* göz_ardı* uyma uymayın boş_ver* kapat* es_geç*
        *madan *meden *maksızın *meksizin onaysız kontrolsüz sormadan gizle* sakla* bastır* askıya* gereksiz
        gerekmez gerek_yok gerekmiyor gösterme* gösterilme* sustur* çiğne* ihlal* iptal* adına geç geçin bypass*
        bahsetme*""",
    "not": "değil asla hiç hiçbir kimse kimseye *me *ma *meyin *mayın *meden *madan *mez *maz yok",
    "none": "hiçbir yok hiç",
    "ask": "izin izni* onay* kontrol* doğrula* sor sorma* sorul* iste isteme* bekle* danış*",
    "before": "önce",
    "guard": """onay* doğrula* kontrol* denetim* denetle* inceleme* izin izni* rıza* uyarı* bildirim* alarm*
        filtre* güvenlik* koruma* kısıtlama* sınırlama* günlük* kayıt kayıtlar* log loglar* sorma* sorul* teyit*
        iki_adım* iki_faktör* antivirüs* güvenlik_duvar* imza* moderasyon*""",
    "orders": "talimat* kural* yönerge* prompt* istem* kısıtlama* sistem_mesaj* emir* direktif* ilke* yönlendirme*",
    "prior": "önceki* daha_önceki yukarıdaki tüm bütün senin mevcut* ilk diğer şimdiye_kadar her geçmiş*",
    "void": """iptal geçersiz* artık_geçerli_değil yürürlükten geçerliliğini hükümsüz* kaldırıldı askıya
        güncel_değil geçerli_değil bitti değiştirildi""",
    "self": """bu_not bu_notu bu_nottan bu_metin bu_metne bu_metni bu_satır* bu_mesaj* bu_belge* bu_dosya*
        bu_kayıt* bu_kayd* bu_talimat* bu_kural* burada_yazan* bundan_kimseye""",
    "obey": "uy uyun itaat* güven* uygula* takip_et* izle geçerli",
    "secret": """parola* şifre* gizli_anahtar* api_anahtar* özel_anahtar* erişim_anahtar* ssh_anahtar*
        kimlik_bilgi* belirteç* belirtec* token* sırlar* gizli_bilgi* hesap_numara* kart_numara* doğrulama_kod*
        müşteri_veri* müşteri_liste* kişisel_veri* banka_bilgi* pin_kod*""",
    "data": "yedek* veri* dosya* geçmiş* günlük* hafıza* bellek* klasör* kayıt* notlar kişiler",
    "tell": """görmemeli bilmemeli görmesin bilmesin duymamalı duymasın öğrenmesin öğrenmemeli söyleme söylemeyin
        bahsetme bahsetmeyin bildirme bildirmeyin haber_verme haber_vermeyin anlatma anlatmayın duyurma sezdirme
        söylenme*""",
    "show": "gösterme göstermeyin açıklama açıklamayın ifşa_etme değinme değinmeyin belirtme",
    "who": "kullanıcı* kimse* *'a *'e *'ya *'ye müşteri* ona onlara sahib* bunu bundan not* hiç_kimse insan* başka*",
    "that": "*ını *ini *unu *ünü *ığını *iğini *uğunu *üğünü",
    "money": "havale* ödeme* fatura* kira* maaş* hesab* hesap* iade* iban tutar* bağış* ücret* eft",
    "push": "öner* tavsiye* bahset* adını_ver* öv tanıt* tercih_et* söyle göster seç* yönlendir*",
    "only": "yalnızca sadece yalnız tek her_zaman önce başka_hiçbir yerine her_şeyden_önce",
    "vendor": """tedarikçi* sağlayıcı* ürün* marka* sigorta* banka* barındırma* mağaza* üretici* otel* firma*
        şirket* hizmet* rakip* acente*""",
    "covert": """sessizce gizlice çaktırmadan fark_ettirmeden belli_etmeden haber_vermeden kendine aramızda
        bu_arada el_altından sezdirmeden gizli_tut*""",
    "every": "her tüm bütün herhangi",
    "reply": """yanıt* cevap* cevab* özet* mesaj* oturum* konuşma* posta* e-posta* fatura* rapor* belge* dosya*
        bağlantı* görev* sohbet*""",
    "to": "adresine hesabına formuna sayfasına sitesine sunucusuna",
    "lead": "ve sonra ayrıca şimdi önce da de her_zaman hemen",
    "common": """bir ve bu için ile de da o her çok en gibi daha kadar olan olarak var yok ama veya sonra önce
        göre *nın *nin *nun *nün *dır *dir *ler *lar *daki *deki *yor *dı *di""",
    "anyone": "herkes herkese misafirlere",
    "get": "alabilir alır edinebilir",
    "question": "soru*",
}
