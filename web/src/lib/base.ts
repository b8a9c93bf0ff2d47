// Where the gateway is, told from where this page was loaded, so that any path prefix works.

export const base = new URL(document.documentElement.dataset.root ?? "./", document.baseURI);

/** The address of a path of the gateway: `at("v1/models")`. */
export function at(path: string): string {
  return new URL(path, base).href;
}

/** A media link as this page may load it: the same link, asked of the address this page came from. */
export function here(link: string): string {
  const path = /\/v1\/media\/[^\s]*$/.exec(link)?.[0];
  return path ? at(path.slice(1)) : link;
}

/** True for a link whose bytes the page may show under its content security policy. */
export function own(link: string): boolean {
  if (/^(data:image\/(?!svg)|blob:)/i.test(link)) return true;
  try {
    return new URL(link, base).origin === base.origin;
  } catch {
    return false;
  }
}
