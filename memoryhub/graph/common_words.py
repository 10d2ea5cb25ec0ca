"""Words that say nothing about a memory, and capitalised words that aren't names."""

from __future__ import annotations

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
NO_NAMES = frozenset(_CAPITALISED.split()) | STOP_WORDS
