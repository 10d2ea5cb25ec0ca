"""Words of rules and of what they reach, in further languages. See ``lexicon``."""

OTHERS = {
    "ar": {
        "norm": """اذا إذا عندما متى قبل دائما ابدا أبدا يجب عليك عليه ينبغي لا_بد يتعين يلزم من_فضلك الرجاء يرجى
            رجاء من_الان_فصاعدا من_الآن_فصاعدا تاكد تأكد احرص مطلوب في_كل_مرة كلما لا_تنس على_المساعد
            على_الوكيل على_النموذج""",
        "agent": "المساعد مساعد الوكيل النموذج الذكاء_الاصطناعي البوت الروبوت",
        "act": """شغل تشغيل نفذ تنفيذ ينفذ تنفذ ارسل أرسل إرسال ارسال يرسل ترسل اكشف كشف تكشف شارك مشاركة اظهر
            أظهر اعرض عرض احذف حذف تحذف امسح ثبت تثبيت حمل تحميل تنزيل نزل افتح فتح زر زيارة انسخ نسخ الصق ألصق
            انشر نشر رد الرد اجب أجب الاجابة الإجابة حول تحويل ادفع دفع ثق وافق الموافقة اضف أضف إضافة اضافة اكتب
            كتابة قم قل اطلب سلم تسليم اعط أعط زود تقديم عطل مرر خزن احفظ يقوم""",
        "wipe": "احذف حذف امسح",
        "drop": """دون بدون بلا لا_تطلب تجاهل انس انسى تخط تخطى تجاوز الغ ألغ عطل تعطيل اهمل أهمل لا_تتبع
            لا_تلتزم خالف""",
        "not": "لا",
        "guard": "تأكيد تاكيد موافقة الموافقة",
        "orders": """التعليمات تعليمات تعليماتك القواعد قواعد قواعدك الاوامر الأوامر اوامر أوامر المطالبة موجه
            القيود قيود التاكيد التأكيد تاكيد تأكيد الحدود رسالة_النظام النظام الصلاحيات صلاحيات المسؤول السياسات
            الارشادات الإرشادات الموافقة التوجيهات""",
        "self": "هذه_الملاحظة بهذه_الملاحظة هذا_النص",
        "secret": """كلمة_مرور كلمة_سر كلمة_المرور كلمة_السر كلمات_مرور كلمات_سر كلمات_المرور كلمات_السر
            المفتاح_السري مفتاح_api مفتاح_سري مفتاح_خاص مفتاح_الوصول المفاتيح_السرية مفاتيح_api بيانات_اعتماد
            بيانات_دخول بيانات_الاعتماد بيانات_الدخول اسرار أسرار الاسرار الأسرار رمز الرمز رموز بيانات_الحساب
            الحساب_البنكي""",
        "data": "النسخ الملفات البيانات",
        "tell": "تخبر تذكر تقل تبلغ تكشف تعلم",
        "who": "المستخدم أحد احد",
        "show": "اذكر فاذكر",
        "anyone": "كل_من أي_شخص من_يعرف من_يقول",
        "get": "يحصل يأخذ",
        "question": "أسئلة الأسئلة سؤال",
        "every": "كل جميع",
        "reply": "إجابة اجابة رد رسالة ملخص جلسة محادثة",
        "money": "فاتورة فواتير الفواتير الدفع تحويل رقم_الحساب حساب_بنكي الحساب_البنكي ايجار راتب مبلغ",
        "waive": "لا_داعي لا_حاجة غير_مطلوب",
    },
    "hi": {
        "norm": """जाओ दिखाओ दो लो भेजो बताओ हटाओ चलाओ भेजें दें दीजिए अगर यदि जब हमेशा सदा कभी_न कभी_नहीं कभी_मत
            कभी_भी_न कभी_भी_नहीं कभी_भी_मत चाहिए अवश्य ज़रूर जरूर अनिवार्य कृपया अब_से आगे_से सुनिश्चित याद_रख
            हर_बार करना_है करें कीजिए करो""",
        "agent": "सहायक असिस्टेंट एजेंट मॉडल एआई बॉट",
        "act": """चलाएं चलाएँ चलाओ चलाइए चलाना चलाने चलाकर चलाए निष्पादित भेज* साझा बताएं बताओ बताना बताइए दिखाएं
            दिखाओ दिखाना दिखाइए हटाएं हटाओ हटाना हटाइए हटाने मिटाएं मिटाओ मिटाना मिटाइए इंस्टॉल डाउनलोड खोलें
            खोलो खोलना खोलिए कॉपी चिपका पोस्ट अपलोड प्रकाशित जवाब उत्तर भुगतान ट्रांसफर स्थानांतरित भरोसा स्वीकृत
            मंज़ूर मंजूर जोड़ें जोड़ो जोड़ना जोड़िए लिखें लिखो लिखना लिखिए दें देो देना दीजिए अक्षम बंद शामिल
            फॉरवर्ड प्रकट उजागर मांग माँग""",
        "wipe": "हटा मिटा",
        "drop": """बिना अनदेख* नज़रअंदाज़ नजरअंदाज नज़रअंदाज भूल* उपेक्षा छोड़_दें छोड़_दो छोड़_दीजिए रद्द बायपास
            अक्षम मत_मान""",
        "not": "मत नहीं",
        "guard": "पुष्टि अनुमति",
        "orders": """निर्देश* नियम* आदेश* प्रॉम्प्ट प्रतिबंध* पुष्टि सीमा* सिस्टम_संदेश अनुमति व्यवस्थापक
            दिशानिर्देश* दिशा-निर्देश* संदेश* नीति*""",
        "self": "इस_नोट इस_संदेश",
        "secret": "पासवर्ड कुंजी कुंजियाँ कुंजियां क्रेडेंशियल गुप्त टोकन खाता_संख्या बैंक_विवरण लॉगिन ओटीपी",
        "data": "बैकअप फ़ाइल",
        "tell": "बता कह",
        "who": "उपयोगकर्ता किसी",
        "show": "ज़िक्र उल्लेख",
        "anyone": "जो_भी",
        "get": "मिल पा_सकता",
        "every": "हर प्रत्येक सभी",
        "reply": "उत्तर जवाब सारांश संदेश",
    },
    "bn": {
        "norm": """সবসময় সর্বদা কখনও অবশ্যই উচিত দয়া_করে এখন_থেকে হবে প্রতিবার যখন যদি করো করুন করবে করবেন চালাবে
            দিতে_হবে বাধ্যতামূলক মনে_রেখো""",
        "agent": "সহকারী এজেন্ট মডেল বট এআই",
        "act": """চালান চালাও চালাতে পাঠান পাঠাও পাঠাতে শেয়ার মুছ* ইনস্টল ডাউনলোড খুলুন কপি উত্তর যোগ লিখুন ব্যবহার
            দিন প্রকাশ চালাবে পাঠাবে দাও দেবে দেবেন দিও""",
        "drop": "উপেক্ষা ভুলে অগ্রাহ্য এড়িয়ে ছাড়াই বন্ধ বাদ লুকা",
        "orders": "নির্দেশ* নিয়ম* প্রম্পট সীমাবদ্ধতা নিশ্চিতকরণ অনুমতি সিস্টেম নীতিমালা",
        "secret": "পাসওয়ার্ড টোকেন গোপন পিন ওটিপি শংসাপত্র লগইন",
        "wipe": "মুছ ডিলিট",
        "not": "না নয় নেই",
        "guard": "অনুমতি অনুমোদন সম্মতি নিশ্চিত সতর্কবার্তা সতর্কতা লগ যাচাই পর্যালোচনা নিরীক্ষা",
        "ask": "অনুমতি অনুমোদন সম্মতি নিশ্চিত জিজ্ঞেস জিজ্ঞাসা",
        "before": "আগে পূর্বে",
        "waive": "দরকার_নেই প্রয়োজন_নেই লাগবে_না",
        "none": "কোনো কোনও",
        "prior": "আগের পূর্ববর্তী উপরের পুরনো",
        "void": "আর_কার্যকর_নয় বাতিল",
        "tell": "জানিও_না জানাবে_না জানাবেন_না জানিয়ো_না বলো_না বলবে_না বলবেন_না",
        "who": "ব্যবহারকারী কাউকে কেউ মালিক",
        "every": "সব সকল প্রতি",
        "reply": "উত্তর জবাব বার্তা সারাংশ ইমেইল প্রতিবেদন",
        "data": "ফাইল ডেটা তথ্য ব্যাকআপ রেকর্ড",
        "money": "টাকা পেমেন্ট বিল ভাড়া বেতন অ্যাকাউন্ট",
    },
    "fa-ur": {
        "norm": "ہمیشہ کبھی_نہیں لازمی ضرور چاہیے براہ_کرم همیشه هرگز باید لطفا حتما",
        "agent": "اسسٹنٹ ایجنٹ دستیار مدل عامل",
        "act": "چلائیں چلاؤ بھیجیں بھیجو ظاہر_کریں حذف_کریں اجرا بفرست ارسال حذف نصب دانلود باز_کن کپی پاسخ اضافه",
        "drop": "نظر_انداز بھول نادیده فراموش لغو",
        "orders": "ہدایات قواعد دستورات دستور قوانین محدودیت تایید تصدیق",
        "secret": "پاس_ورڈ رمز گذرواژه کلید توکن خفیہ",
        "not": "نہ نہیں مت نکن نباید",
        "tell": "بتا نگو اطلاع",
        "who": "صارف کاربر کسی",
        "guard": "تصدیق اجازت تایید اجازه منظوری",
        "ask": "پوچھ اجازت منظوری بپرس اجازه",
        "before": "پہلے قبل",
        "waive": "ضرورت_نہیں لازم_نیست نیازی_نیست",
        "every": "تمام همه",
        "prior": "پچھلی سابقہ قبلی",
        "data": "فائل فایل ڈیٹا",
        "money": "ادائیگی پرداخت فاکتور اکاؤنٹ",
        "wipe": "حذف",
    },
    "uk": {
        "anyone": "хто кожен кожному",
        "question": "питан* запит*",
        "get": "отрима* дістан* видат*",
        "show": "згад*",
        "reply": "відповід* звіт* лист* повідомлен* посилан* резюме",
        "norm": """якщо коли завжди ніколи повин* мусиш мусить слід потрібно треба необхідно будь_ласка
            обов'язково відтепер маєш має переконайся""",
        "agent": "асистент* помічник* агент* модел* бот* ші",
        "act": """запуст* викон* надішл* надсила* відправ* перешл* розкри* покаж* видал* встанов* завантаж*
            відкри* скопію* опублік* відповід* переказ* сплат* довіря* схвал* дода* запиш* повідом*""",
        "drop": "ігнору* забуд* нехту* обій* скасу* вимкн* пропус* не_зважа*",
        "orders": "інструкці* вказів* правил* наказ* промпт* обмежен* підтвердж* команд*",
        "secret": "парол* облікові_дані секрет* токен*",
    },
    "id": {
        "show": "sebutkan sebut",
        "reply": "jawaban balasan ringkasan laporan pesan tautan",
        "norm": """jika bila kalau ketika setiap_kali sebelum selalu jangan jangan_pernah harus wajib mohon
            tolong silakan mulai_sekarang pastikan perlu hendaknya sebaiknya""",
        "agent": "asisten agen model ai bot",
        "act": """jalankan menjalankan kirim kirimkan mengirim* teruskan bagikan tampilkan ungkapkan hapus instal
            pasang unduh buka kunjungi salin tempel unggah posting jawab balas transfer bayar percayai setujui
            tambahkan tulis tuliskan simpan berikan sertakan eksekusi mengirimkan""",
        "drop": """abaikan mengabaikan lupakan lewati batalkan nonaktifkan langgar tanpa hentikan matikan
            sembunyikan""",
        "orders": "instruksi aturan perintah prompt batasan konfirmasi pedoman kebijakan izin",
        "secret": "kata_sandi sandi kunci_api kunci_rahasia kunci_privat kredensial rahasia token nomor_rekening",
        "not": "jangan jangan_pernah tidak tak",
        "tell": "beri_tahu memberi_tahu beritahu memberitahu katakan sampaikan laporkan",
        "that": "bahwa",
        "who": "pengguna pelanggan siapa_pun siapapun pemilik",
        "guard": "konfirmasi persetujuan izin peringatan log audit pemeriksaan tinjauan",
        "ask": "minta meminta tanya bertanya tanyakan menanyakan persetujuan konfirmasi izin",
        "before": "sebelum dulu dahulu",
        "waive": "tidak_perlu tak_perlu tidak_diperlukan tidak_usah tak_usah",
        "none": "tidak_ada",
        "prior": "sebelumnya terdahulu lama di_atas",
        "void": "tidak_berlaku dibatalkan dicabut",
        "every": "semua setiap",
        "money": "pembayaran transfer tagihan faktur gaji sewa rekening uang biaya",
        "data": "data berkas file catatan cadangan",
        "wipe": "hapus menghapus bersihkan hapuslah",
        "question": "pertanyaan bertanya",
        "grave": "setujui bayar percayai",
    },
    "vi": {
        "show": "nhac_den de_cap",
        "reply": "cau_tra_loi tra_loi bao_cao tom_tat tin_nhan lien_ket",
        "norm": """neu khi moi_khi truoc_khi luon luon_luon khong_bao_gio phai can_phai hay vui_long xin
            tu_bay_gio bat_buoc nen dung""",
        "agent": "tro_ly tac_tu mo_hinh ai bot",
        "act": """chay thuc_thi thuc_hien gui chuyen_tiep tiet_lo chia_se hien_thi xoa cai_dat tai tai_xuong
            tai_ve mo truy_cap sao_chep dan dang tra_loi chuyen_khoan thanh_toan tin_tuong phe_duyet them viet
            luu cung_cap""",
        "drop": "bo_qua quen phot_lo vuot_qua vo_hieu huy",
        "orders": "huong_dan quy_tac lenh chi_thi prompt gioi_han xac_nhan quy_dinh chi_dan",
        "secret": "mat_khau khoa_api khoa_bi_mat thong_tin_dang_nhap bi_mat token so_tai_khoan",
        "not": "khong dung_noi dung_bao dung_cho_biet dung_tiet_lo",
        "tell": "noi bao thong_bao tiet_lo cho_biet dung_noi dung_bao dung_cho_biet dung_tiet_lo",
        "who": "nguoi_dung khach_hang",
        "guard": "xac_nhan phe_duyet canh_bao nhat_ky kiem_tra",
        "ask": "hoi xin_phep xac_nhan",
        "before": "truoc",
        "waive": "khong_can khong_can_thiet",
        "every": "moi tat_ca",
        "prior": "truoc_do truoc_day o_tren",
        "void": "het_hieu_luc khong_con",
        "money": "thanh_toan hoa_don chuyen_khoan tai_khoan tien luong",
        "data": "du_lieu tep sao_luu",
        "wipe": "xoa",
    },
    "sv": {
        "norm": """alltid aldrig måste ska skall bör får_inte vänligen från_och_med se_till kom_ihåg varje_gång
            när om vore_bra vore_fint gärna""",
        "show": "nämn* visa*",
        "anyone": "den_som vem_som_helst alla_som gäster",
        "get": "får få",
        "question": "fråga frågor frågar förfrågning*",
        "agent": "du dig din ditt dina assistent* agent* modell* bot ai",
        "act": """skicka skickas vidarebefordra kör körs öppna klistra bifoga lägg_till länka hänvisa ladda_upp
            posta publicera betala överför kopiera dela visa spara skriv lämna_ut avslöja installera hämta""",
        "wipe": "radera ta_bort rensa",
        "drop": "ignorera strunta glöm hoppa_över kringgå stäng_av utan dölj utelämna",
        "not": "inte aldrig ingen inga",
        "guard": "bekräftelse* godkännande* kontroll* varning* granskning* loggar",
        "orders": "instruktion* regler riktlinjer systemprompt* föreskrift*",
        "secret": "lösenord* api-nyck* nycklar token* inloggningsuppgift* kortnummer* kundlista*",
        "tell": "berätta meddela informera nämn",
        "who": "användaren kunden någon ingen ägaren",
        "every": "varje alla allt",
        "reply": "svar* sammanfattning* meddelande* rapport* mejl e-post* faktur* länk*",
        "data": "säkerhetskopi* filer data loggar anteckningar",
    },
}
