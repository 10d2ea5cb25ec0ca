from datetime import datetime
from html import unescape

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop

from memoryhub.lib.content_check.hidden_content import show_invisible
from memoryhub.lib.content_check.stand_ins import is_flagged
from memoryhub.lib.http.request_ids import current_request_id
from memoryhub.lib.masked_text import masked

register = template.Library()

MINUTE, HOUR, DAY = 60, 3600, 86400
EXACT = "j M Y, H:i:s"
CHOICES = (  # labels for `words` that have no other translatable string
    *(gettext_noop("Assistant"), gettext_noop("System"), gettext_noop("Tool"), gettext_noop("User")),
    *(gettext_noop("Message"), gettext_noop("Tool call"), gettext_noop("Tool result"), gettext_noop("Context")),
    *(gettext_noop("User preference"), gettext_noop("Project decision"), gettext_noop("Error pattern")),
    *(gettext_noop("System behavior"), gettext_noop("Learned fact")),
)
NAMES = {  # of tables and kinds that pages call otherwise
    "entries": gettext_noop("Messages"),
    "earlier_entries": gettext_noop("Earlier messages"),
    "folded_entries": gettext_noop("Summarised messages"),
    "hidden_entries": gettext_noop("Hidden messages"),
    "typed_entries": gettext_noop("Typed messages"),
}
NOTHING = "—"


@register.simple_tag
def request_id() -> str:
    """Return the id of the current request, for error pages."""
    return current_request_id()


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Return a <time> element with the elapsed time; its title is the exact time."""
    if moment is None:
        return NOTHING
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    words = _distance(
        local, timezone.localtime() if timezone.is_aware(moment) else timezone.make_naive(timezone.now())
    )
    return _time(local, words)


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """Return a <time> element with the reader's local time to the second; its title is the time zone."""
    if at is None:
        return NOTHING
    local = timezone.localtime(at) if timezone.is_aware(at) else at
    return _time(local, date_format(local, EXACT))


def _time(local: datetime, words: str) -> SafeString:
    exact = f"{date_format(local, EXACT)} {local:%Z}".strip()
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, words)


def _distance(moment: datetime, now: datetime) -> str:
    seconds = (now - moment).total_seconds()
    span, is_past = abs(seconds), seconds >= 0
    if span < MINUTE:
        return gettext("just now") if is_past else gettext("in a moment")
    if span < HOUR:
        return (gettext("%(n)d min ago") if is_past else gettext("in %(n)d min")) % {"n": span // MINUTE}
    if span < DAY:
        return (gettext("%(n)d h ago") if is_past else gettext("in %(n)d h")) % {"n": span // HOUR}
    if span < 7 * DAY:
        return (gettext("%(n)d d ago") if is_past else gettext("in %(n)d d")) % {"n": span // DAY}
    return date_format(moment, "j M" if moment.year == now.year else "j M Y")


@register.filter
def tokens(count: int | None) -> str:
    """Return a count as 1,234 up to 9,999, then 12.3k, 4.5M."""
    if count is None:
        return NOTHING
    if abs(count) < 10_000:
        return f"{count:,}"
    for size, suffix in ((1_000, "k"), (1_000_000, "M")):
        if abs(count) < size * 999.95:
            return f"{count / size:.1f}{suffix}"
    return f"{count / 1_000_000_000:,.1f}B"


@register.filter
def filesize(size: int | None) -> str:
    """Return bytes in decimal units: 812 B, 3.4 kB, 1.2 MB."""
    if size is None:
        return NOTHING
    if size < 1_000:
        return gettext("%(size)s B") % {"size": size}
    if size < 999_950:
        return gettext("%(size)s kB") % {"size": f"{size / 1_000:.1f}"}
    if size < 999_950_000:
        return gettext("%(size)s MB") % {"size": f"{size / 1_000_000:.1f}"}
    return gettext("%(size)s GB") % {"size": f"{size / 1_000_000_000:,.1f}"}


@register.filter
def ratio(value: float | None) -> str:
    """Return 3.5×; without decimals from 100."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}×" if value >= 99.95 else f"{value:.1f}×"


@register.filter
def percent(share: float | None) -> str:
    """Return a share of 1 as a percentage; never 0 % for a small share, nor 100 % for less than all."""
    if share is None:
        return NOTHING
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{share * 100:.0f}%"


@register.filter
def words(choice: str) -> str:
    """Return a stored choice as a label: tool_result becomes "Tool result", key_values "Key-values"."""
    label = titled(NAMES.get(choice, choice))
    return gettext(label.replace("Key value", "Key-value").replace("key value", "key-value"))


@register.filter(name="masked")
def masked_filter(text: object, is_revealed: object = "") -> str:
    """Return stored text with invisible characters shown, and with secrets masked unless they are revealed."""
    return show_invisible(str(text)) if is_revealed else masked(str(text))


@register.filter(name="is_flagged")
def is_flagged_filter(text: str) -> bool:
    """Tell whether agents get a stand-in instead of a name, title or reason."""
    return is_flagged(text)


@register.filter
def titled(name: str) -> str:
    """Return a name by an agent as a label, untranslated: late_courier becomes "Late courier"."""
    text = str(name).replace("_", " ").strip()
    return text[:1].upper() + text[1:]


@register.simple_block_tag
def card(content: str, title: str = "", note: str = "", anchor: str = "") -> SafeString:
    """Render a titled section: {% card title="Problems" %}...{% endcard %}."""
    head = (
        format_html(
            '<header class="section-head"><h2>{}</h2>{}</header>',
            title,
            format_html("<p>{}</p>", note) if note else "",
        )
        if title
        else ""
    )
    return format_html(
        '<section class="card"{}>{}{}</section>',
        format_html(' id="{}"', anchor) if anchor else "",
        head,
        content,
    )


@register.simple_block_tag
def dialog(content: str, name: str, title: str) -> SafeString:
    """Render a dialog that a button with data-dialog="name" opens: {% dialog "name" "Title" %}...{% enddialog %}."""
    return format_html(
        '<dialog class="dialog" id="{0}" aria-labelledby="{0}-title">'
        '<header class="dialog-head"><h2 id="{0}-title">{1}</h2>'
        '<button class="icon-button" type="button" data-close aria-label="{3}">'
        '<svg class="icon" aria-hidden="true"><use href="#icon-close"></use></svg></button></header>'
        '<div class="dialog-body">{2}</div></dialog>',
        name,
        title,
        content,
        gettext("Close"),
    )


@register.simple_block_tag
def copyable(content: str, name: str) -> SafeString:
    """Render lines with a copy button: {% copyable "name" %}...{% endcopyable %}; the name is their id."""
    return format_html(
        '<div class="copyable"><pre id="{0}" tabindex="0">{1}</pre>'
        '<button class="button compact" type="button" data-copy="{0}">'
        '<svg class="icon" aria-hidden="true"><use href="#icon-copy"></use></svg>{2}'
        '<span class="copied" aria-hidden="true"></span></button></div>',
        name,
        unescape(content.strip()),  # variables in the content are escaped already
        gettext("Copy"),
    )
