// A list that is read page by page, the newest first, its first page anew while it is looked at.
import { admin, ApiError } from "./api";
import { Poll } from "./poll.svelte";
import { t } from "./prefs.svelte";
import type { Page } from "./types";

export class Pages<T extends { id: string }> extends Poll<Page<T>> {
  private older = $state.raw<T[]>([]);
  private whole = $state(false);

  /** `path`: of the first page, with its query. */
  constructor(private readonly path: () => string) {
    super(() => admin<Page<T>>("GET", path()));
  }

  /** All that was read; what moved from one page to another between two readings is told once. */
  readonly items = $derived([...new Map([...(this.data?.items ?? []), ...this.older].map((item) => [item.id, item])).values()]);
  /** After which the list goes on: the last that is still shown, since a removed one is no mark any more. */
  readonly next = $derived((this.older.length ? this.whole : !this.data?.next) ? null : (this.items.at(-1)?.id ?? null));

  /** Begin anew, for another query. */
  reset(): void {
    this.data = null;
    this.older = [];
    this.whole = false;
  }

  more = async (): Promise<void> => {
    try {
      const page = await admin<Page<T>>("GET", `${this.path()}&cursor=${encodeURIComponent(this.next ?? "")}`);
      this.older = [...this.older, ...page.items];
      this.whole = page.next === null;
      this.fault = "";
    } catch (error) {
      this.fault = error instanceof ApiError ? error.message : t("unreachable");
    }
  };

  /** Forget what is no longer there. */
  without(ids: ReadonlySet<string>): void {
    this.older = this.older.filter(({ id }) => !ids.has(id));
    if (this.data) this.data = { ...this.data, items: this.data.items.filter(({ id }) => !ids.has(id)) };
  }
}
