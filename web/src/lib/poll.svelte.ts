// Something asked for again and again while it is looked at.
import { ApiError } from "./api";
import { t } from "./prefs.svelte";

export class Poll<T> {
  data = $state.raw<T | null>(null);
  fault = $state("");
  private asked = 0;

  constructor(private readonly read: () => Promise<T>) {}

  refresh = async (): Promise<void> => {
    const turn = ++this.asked;
    try {
      const data = await this.read();
      if (turn !== this.asked) return;
      this.data = data;
      this.fault = "";
    } catch (error) {
      if (turn !== this.asked) return;
      this.fault = error instanceof ApiError ? error.message : t("unreachable");
    }
  };

  /** For an effect: ask now and every `everyMs`, not while the page is hidden; gives the end of it. */
  watch(everyMs: number): () => void {
    void this.refresh();
    const timer = setInterval(() => document.hidden || void this.refresh(), everyMs);
    return () => clearInterval(timer);
  }
}
