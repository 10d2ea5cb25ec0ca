from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

MINUTE, HOUR, DAY = 60, 3600, 86400
NOTHING = "—"


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """A <time> element: how long ago in words, with the exact time as its title."""
    if moment is None:
        return NOTHING
    local = timezone.localtime(moment) if timezone.is_aware(moment) else moment
    words = _distance(
        local, timezone.localtime() if timezone.is_aware(moment) else timezone.make_naive(timezone.now())
    )
    return _time(local, words)


@register.filter
def moment(at: datetime | None) -> SafeString | str:
    """A <time> element: the reader's local time to the second, with its zone as its title."""
    if at is None:
        return NOTHING
    local = timezone.localtime(at) if timezone.is_aware(at) else at
    return _time(local, f"{local.day} {local:%b} {local.year}, {local:%H:%M:%S}")


def _time(local: datetime, words: str) -> SafeString:
    exact = f"{local.day} {local:%b} {local.year}, {local:%H:%M:%S} {local:%Z}".strip()
    return format_html('<time datetime="{}" title="{}">{}</time>', local.isoformat(), exact, words)


def _distance(moment: datetime, now: datetime) -> str:
    seconds = (now - moment).total_seconds()
    span = abs(seconds)
    if span < MINUTE:
        return "just now" if seconds >= 0 else "in a moment"
    if span < HOUR:
        words = f"{int(span // MINUTE)} min"
    elif span < DAY:
        words = f"{int(span // HOUR)} h"
    elif span < 7 * DAY:
        words = f"{int(span // DAY)} d"
    else:
        return f"{moment.day} {moment:%b}" + ("" if moment.year == now.year else f" {moment.year}")
    return f"{words} ago" if seconds >= 0 else f"in {words}"


@register.filter
def tokens(count: int | None) -> str:
    """1,234 up to 9,999, then 12.3k, 4.5M."""
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
    """Bytes in decimal units: 812 B, 3.4 kB, 1.2 MB."""
    if size is None:
        return NOTHING
    if size < 1_000:
        return f"{size} B"
    for unit, suffix in ((1_000, "kB"), (1_000_000, "MB")):
        if size < unit * 999.95:
            return f"{size / unit:.1f} {suffix}"
    return f"{size / 1_000_000_000:,.1f} GB"


@register.filter
def ratio(value: float | None) -> str:
    """3.5×; from 100 on without decimals."""
    if value is None:
        return NOTHING
    return f"{value:,.0f}×" if value >= 99.95 else f"{value:.1f}×"


@register.filter
def percent(share: float | None) -> str:
    """A share of 1 as a percentage; a small share is never shown as none, nor a large one as all."""
    if share is None:
        return NOTHING
    if 0 < share < 0.01:
        return "<1%"
    if 0.99 < share < 1:
        return ">99%"
    return f"{share * 100:.0f}%"


@register.filter
def words(choice: str) -> str:
    """A stored choice as a label: tool_result becomes "Tool result"."""
    text = str(choice).replace("_", " ").strip()
    return text[:1].upper() + text[1:]


@register.simple_block_tag
def card(content: str, title: str = "", note: str = "", anchor: str = "") -> SafeString:
    """A titled part of a page: {% card title="Problems" %}...{% endcard %}."""
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
    """A modal dialog that a button with data-dialog="name" opens: {% dialog "name" "Title" %}...{% enddialog %}."""
    return format_html(
        '<dialog class="dialog" id="{0}" aria-labelledby="{0}-title">'
        '<header class="dialog-head"><h2 id="{0}-title">{1}</h2>'
        '<button class="icon-button" type="button" data-close aria-label="Close">'
        '<svg class="icon" aria-hidden="true"><use href="#icon-close"></use></svg></button></header>'
        '<div class="dialog-body">{2}</div></dialog>',
        name,
        title,
        content,
    )


@register.simple_block_tag
def copyable(content: str, name: str) -> SafeString:
    """Lines with a button that copies them: {% copyable "name" %}...{% endcopyable %}; the name is their id."""
    return format_html(
        '<div class="copyable"><pre id="{0}" tabindex="0">{1}</pre>'
        '<button class="button compact" type="button" data-copy="{0}">'
        '<svg class="icon" aria-hidden="true"><use href="#icon-copy"></use></svg>Copy'
        '<span class="copied" aria-hidden="true"></span></button></div>',
        name,
        content.strip(),
    )
