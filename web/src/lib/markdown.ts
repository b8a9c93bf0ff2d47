// Markdown of models, made safe: marked writes the HTML, DOMPurify lets through what is listed here and nothing else.
import DOMPurify from "dompurify";
import { Marked, type Tokens } from "marked";
import { here, own } from "./base";
import { t } from "./prefs.svelte";

const escape = (text: string) =>
  text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

const hostOf = (link: string) => {
  try {
    return new URL(link).host;
  } catch {
    return "";
  }
};

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    code: ({ text, lang }: Tokens.Code) =>
      `<div class="code"><div class="code-head"><span>${escape(/^\S*/.exec(lang ?? "")?.[0] ?? "")}</span>` +
      `<button type="button" data-copy>${escape(t("copy"))}</button></div><pre tabindex="0"><code>${escape(text)}\n</code></pre></div>`,
    image({ href, text }: Tokens.Image) {
      const link = here(href);
      if (own(link)) return `<img src="${escape(link)}" alt="${escape(text)}" loading="lazy">`;
      // Pictures elsewhere are not loaded: a model's text could tell their host what was said here.
      return `<a class="elsewhere" href="${escape(href)}">${escape(text || "image")} · ${escape(hostOf(href))}</a>`;
    },
    table(token: Tokens.Table) {
      const cell = (tag: string, c: Tokens.TableCell) =>
        `<${tag}${c.align ? ` align="${c.align}"` : ""}>${this.parser.parseInline(c.tokens)}</${tag}>`;
      const row = (tag: string, cells: Tokens.TableCell[]) => `<tr>${cells.map((c) => cell(tag, c)).join("")}</tr>`;
      return (
        `<div class="table" tabindex="0"><table><thead>${row("th", token.header)}</thead>` +
        `<tbody>${token.rows.map((cells) => row("td", cells)).join("")}</tbody></table></div>`
      );
    },
  },
});

const RULES = {
  ALLOWED_TAGS: [
    ..."a b blockquote br button code del div em h1 h2 h3 h4 h5 h6 hr i img input li ol p pre s span strong".split(" "),
    ..."sub sup table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["align", "alt", "checked", "class", "data-copy", "disabled", "href", "loading", "src", "start", "tabindex", "type"],
  ALLOWED_URI_REGEXP: /^(https?:|mailto:|data:image\/(png|jpeg|webp|gif);|blob:|#)/i,
  RETURN_DOM_FRAGMENT: true,
} as const;

function toFragment(source: string): DocumentFragment {
  const html = marked.parse(source, { async: false });
  const fragment = DOMPurify.sanitize(html, RULES as unknown as Parameters<typeof DOMPurify.sanitize>[1]) as unknown as DocumentFragment;
  for (const link of fragment.querySelectorAll("a")) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
  }
  return fragment;
}

/** Renders a growing text into `root`; blocks that are complete are made once, only the last one again and again. */
export class LiveMarkdown {
  private shown = "";
  private settled = 0;
  private readonly tail = document.createElement("div");

  constructor(private readonly root: HTMLElement) {
    this.tail.className = "tail";
    root.replaceChildren(this.tail);
  }

  show(text: string, final: boolean): void {
    if (text === this.shown && !final) return;
    const references = final && /^ {0,3}\[[^\]]+\]:/m.test(text);
    if (!text.startsWith(this.shown) || references) {
      this.root.replaceChildren(this.tail);
      this.settled = 0;
    }
    this.shown = text;
    const rest = text.slice(this.settled);
    const blocks = references ? [] : marked.lexer(rest).map((token) => token.raw);
    while (blocks.length && !blocks.at(-1)?.trim()) blocks.pop();
    const complete = blocks.slice(0, -1).join("");
    // marked changes tabs and carriage returns; only a faithful prefix can be settled.
    if (complete && rest.startsWith(complete)) {
      this.tail.before(toFragment(complete));
      this.settled += complete.length;
      this.tail.replaceChildren(toFragment(rest.slice(complete.length)));
    } else {
      this.tail.replaceChildren(toFragment(rest));
    }
  }
}
