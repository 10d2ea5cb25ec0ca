"""Words that say nothing about a memory, and capitalised words that aren't names."""

from memoryhub.graph.keywords import STOP_WORDS

_FOREIGN = """
aber alle als also auch auf aus bei bin bis bitte das dass dem den der des die dir doch ein eine einem einen
einer es etwas für habe haben hat ich ihr immer ist ja jetzt kann kein keine mal man mehr mein mich mir mit nach
nicht nichts noch nur oder ohne schon sehr sein seine sich sie sind soll über und uns unter vom von vor war was
wenn wer werden wie wieder wir wird zum zur avec aux bien ces cette comme dans deux dont elle est été être fait
faut ils les leur mais mes mon même nos notre nous pas plus pour quand que qui sans ses son sont sur tous tout
très une vos votre vous con como cuando del desde donde ella ellos entre era esta este esto hay las los más mis
muy nada para pero por porque puede ser sin sobre sus también tiene todo una uno anche che chi come cosa dei
della delle di dopo dove gli hanno non per più quando quello questa questo sono sua sul tra aan dat een het niet
ook voor zijn não mas muito
adesso agora ahora ainda algo algum alguna algunos algún alleen allem allen aller alles allora allí alors altijd
altro ancora antes après aquí assim até aucun aunque aussi autre avant avoir bem bene bij boa bom bon bonjour bonne
buena bueno buona buono cada casi cela cet chez ciò claro così cuál cuándo cómo daar dabei dafür daher dal dalla
damit dan danach danke dann daran darauf davon dazu denn depois depuis deshalb deze diese diesem diesen dieser
dieses dit doen donc dort dos durch dus déjà dónde eben ecco eens eher eigentlich einfach einmal ela ele eles elles
encore ensuite então erst eso esos essa esse estas estos estoy está están estão etwa euch euer fatto fazer foi forse
gaan ganz gar geen gegen genau genug gerade gern gerne gibt già gleich goed gracias grazie gut gute guten guter
gutes haar hace hacer hai hasta heb hebben heeft hem heute hier hij hin hinter ihm ihn ihnen ihre ihrem ihren ihrer
irgendwie isso isto jamais jede jedem jeden jeder jedes jemand jene jij jullie kan keinen keiner kunnen können
könnte könnten lassen lei leider lhe luego lui maar machen macht manche meer meglio meine meinem meinen meiner merci
mesmo met meu mia mij mijn minha mio mismo moet moi moins molto mucho muchos muss möchte möchten müssen müssten naar
nas nee nein nel nella nem neu neue neuen nie niemand nog noi nosotros num numa nun nunca nós obrigado oft oggi ogni
omdat onde onder ons ora otra otro otros oui over par parce pela pelo però peu peut poco pode poi pois porqué prima
pues qua qual qualche quali quanto quel quella quelle quelles quelli quels quem quiere quién quoi qué richtig rien
sagen sagt schön según sehen seid seinem seinen seiner seit seja selbst sem senza seu seulement sicher siempre
soit sollen sollte sollten sonst sowie stato stimmt suis sólo tal também tan tanto tem ter tes todos toi ton tot
toujours toute toutes trop tudo tun tus tutti tutto uit uma unos usted vai veel vers vez viel viele vielen
vielleicht você voi voici voilà vont völlig waar wann warum wat weil weiter wel welche welchen welcher welches wem
wen wenig weniger werd wessen wieso wij wil will wirklich wissen wollen wollte worden wordt wurde wurden würde
würden zal zeigen zich zij zou zuerst zwar zwischen
"""
_OF_CONVERSATIONS = """
add added ago another anything around ask away back begin better big bit change changed check come comes day
days done end everything far find first fix give given gives goes going gone good great hello help hour hours
keep kept know last later least less line lines list little long look looking lot main maybe mean minute minutes
month months morning name need needs new next night nothing number okay old open part past people place please
point possible put question quite read ready reply right run said say says second see seen set short show shows
side something start still stop sure take taken takes tell thank thanks thing things think three time times
today together told tomorrow try turn two understood user wait want wants way week weeks well work works write
wrong yes yesterday noted assistant project team
"""
_CAPITALISED = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar
märz mai juni juli oktober dezember lundi mardi mercredi jeudi vendredi lunes martes english german french
spanish italian japanese chinese arabic russian portuguese korean dutch polish turkish hebrew deutsch yes okay
sure done good great please thanks hello today tomorrow yesterday note noted never always user agent assistant
memory session project team decision decisions error warning nothing everybody somebody people
"""
COMMON = frozenset(_FOREIGN.split()) | frozenset(_OF_CONVERSATIONS.split()) | STOP_WORDS
_ALSO_NAMES = frozenset(("ella", "elle", "mia"))
NO_NAMES = frozenset(_CAPITALISED.split()) | (frozenset(_FOREIGN.split()) - _ALSO_NAMES) | STOP_WORDS
