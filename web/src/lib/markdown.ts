// Markdown of models, made safe: marked writes the HTML, DOMPurify lets through what is listed here and nothing else.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
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
      `<button type="button" data-copy>${escape(t("copy"))}</button></div><pre tabindex="0"><code>${escape(text && `${text.replace(/\n$/, "")}\n`)}</code></pre></div>`,
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

/** Characters of a block from which on its finished parts are drawn once. */
const LARGE = 4000;
const JOINER = "\u2060";

/** A block that is drawn in part: what comes is read after `head`, so that it is more of the same, and drawn into `into`. */
interface Growing {
  type: string;
  head: string;
  into: Element;
}

/** Where in a token's elements its parts are. */
const PARTS: Record<string, string> = { code: "code", list: "ul, ol", table: "tbody", paragraph: "p" };

/** How many characters at the beginning of a large token's source are finished, and what the rest of it is to be read after. */
function finished(token: Token): { length: number; head: string } {
  const raw = token.raw;
  // Empty lines at the end of a code are read differently from those in its middle.
  const lines = /^[^]*[^\n]\n/.exec(raw)?.[0].length ?? 0;
  if (token.type === "list") return { length: (token as Tokens.List).items.slice(0, -1).reduce((sum, item) => sum + item.raw.length, 0), head: "" };
  if (token.type === "table") return { length: lines, head: /^.*\n.*\n/.exec(raw)?.[0] ?? "" };
  if (token.type === "code") {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(raw)?.[1];
    const closed = fence && new RegExp(`\\n {0,3}${fence}[~\`]*\\s*$`).test(raw);
    return { length: fence && !closed ? lines : 0, head: /^.*\n/.exec(raw)?.[0] ?? "" };
  }
  if (token.type !== "paragraph") return { length: 0, head: "" };
  let length = 0;
  for (const inline of (token as Tokens.Paragraph).tokens) {
    const most = raw.length - LARGE / 4 - length;
    if (inline.raw.length > most) {
      // Words may be parted anywhere; marks such as **bold** may not.
      if (inline.type === "text" && most > 0) length += inline.raw.lastIndexOf(" ", most) + 1;
      break;
    }
    length += inline.raw.length;
  }
  return { length, head: JOINER };
}

/**
 * Renders a growing text into `root`. Blocks that are complete are made once, only the last one again and again;
 * of a last block that is large (code, list, table, paragraph) only its last part.
 */
export class LiveMarkdown {
  private shown = "";
  private settled = 0;
  private growing: Growing | null = null;
  private loose: ChildNode[] = [];
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
      this.growing = null;
    }
    this.shown = text;
    for (const node of this.loose.splice(0)) node.remove();
    this.tail.replaceChildren();
    const tokens = references ? [] : marked.lexer((this.growing?.head ?? "") + text.slice(this.settled));
    while (tokens.length && !tokens.at(-1)?.raw.trim()) tokens.pop();
    const last = tokens.pop();
    if (tokens.length) this.settle(tokens.map((token) => token.raw).join(""));
    if (last && last.raw.length > LARGE) this.settleWithin(last);
    this.draw((this.growing?.head ?? "") + text.slice(this.settled));
  }

  /** Draw what is complete, for good. */
  private settle(source: string): void {
    if (!this.isNext(source)) return;
    this.settled += source.length - (this.growing?.head.length ?? 0);
    const blocks = toFragment(source);
    if (this.growing) this.growing.into.append(...this.partsOf(blocks));
    this.growing = null;
    this.tail.before(blocks);
  }

  /** Draw for good what is complete within the last block. */
  private settleWithin(token: Token): void {
    const { length, head } = finished(token);
    const source = token.raw.slice(0, length);
    if (length <= (this.growing?.head.length ?? 0) || !this.isNext(source)) return;
    this.settled += length - (this.growing?.head.length ?? 0);
    const blocks = toFragment(source);
    if (this.growing) {
      this.growing.into.append(...this.partsOf(blocks));
      return;
    }
    const into = blocks.querySelector(PARTS[token.type]!);
    this.tail.before(blocks);
    if (into) this.growing = { type: token.type, head, into };
  }

  /** Draw what may still change. */
  private draw(source: string): void {
    const blocks = toFragment(source);
    if (this.growing) {
      this.loose = this.partsOf(blocks);
      this.growing.into.append(...this.loose);
    }
    this.tail.append(blocks);
  }

  /** marked changes tabs and carriage returns; only a faithful copy of what comes next can be settled. */
  private isNext(source: string): boolean {
    const head = this.growing?.head ?? "";
    return source.startsWith(head) && this.shown.startsWith(source.slice(head.length), this.settled);
  }

  /** Take the parts of the growing block out of freshly made blocks, of which it is the first. */
  private partsOf(blocks: DocumentFragment): ChildNode[] {
    const { type, head } = this.growing!;
    const holder = blocks.querySelector(PARTS[type]!);
    const parts = [...(holder?.childNodes ?? [])];
    blocks.firstElementChild?.remove();
    if (head === JOINER && parts[0] instanceof Text) parts[0].data = parts[0].data.replace(JOINER, "");
    return parts;
  }
}
