import pytest

from memoryhub.lib.text.markdown import MAX_RENDERED_CHARS, render_linked_markdown, render_markdown


@pytest.mark.parametrize(
    "text",
    [
        '<p onclick="window.__xss=1">p</p><script>window.__xss=3</script>',
        '<div hx-get="/logout" hx-trigger="load">x</div>',
        '<iframe src="//example.org"></iframe>',
        '<https://e.org/" onclick=x>',
    ],
)
def test_html_is_escaped(text):
    html = render_markdown(text)

    assert "<script" not in html
    assert "<iframe" not in html
    assert "<div" not in html
    assert "<p on" not in html


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:x",
        "data:text/html,x",
        "vbscript:x",
        "/logout",
        "//e.org",
        "&#106;avascript:x",
    ],
)
def test_only_web_and_mail_links_are_rendered(address):
    assert "href" not in render_markdown(f"[x]({address})")


def test_a_web_link_sends_no_referrer():
    assert 'rel="noopener noreferrer nofollow"' in render_markdown("[x](https://example.org/)")


def test_an_image_becomes_a_link():
    html = render_markdown("![plan](https://example.org/p.png)")

    assert "<img" not in html
    assert '<a href="https://example.org/p.png"' in html
    assert "plan</a>" in html


def test_a_huge_text_is_preformatted():
    assert render_markdown("<b>" + "x" * MAX_RENDERED_CHARS).startswith("<pre>&lt;b&gt;")


def test_front_matter_is_code_and_headings_are_below_the_pages():
    html = render_markdown("---\nname: tea\ntype: `project`\n---\n# Tea\n\n###### Cups\n")

    assert html == "<pre><code>name: tea\ntype: `project`\n</code></pre>\n<h2>Tea</h2>\n<h6>Cups</h6>\n"
    assert "<hr" in render_markdown("---\n\ntea\n\n---\n")


def test_lines_are_linked_to_pages_of_the_hub():
    text = "# Team\n\n- **tea.**\n- [milk](https://example.org/)\n\n1. rum"

    html = render_linked_markdown(text, {3: "/w/atlas/?a=1&b=2", 4: "/4/"}, "About <it>")

    name = 'aria-label="About &lt;it&gt;"></a>'
    assert f'<strong>tea.</strong>&nbsp;<a class="line-link" href="/w/atlas/?a=1&amp;b=2" {name}' in html
    assert f'milk</a>&nbsp;<a class="line-link" href="/4/" {name}' in html
    assert html.count("line-link") == 2


def test_no_text_can_make_a_link_of_the_hub():
    text = "- \U000f5eed\U000f5eed1\U000f5eee1\U000f5eee tea\n- x"

    assert render_linked_markdown(text, {2: "/2/"}, "x").count("line-link") == 1
    assert "\U000f5eed" not in render_linked_markdown(text, {2: "/2/"}, "x")
