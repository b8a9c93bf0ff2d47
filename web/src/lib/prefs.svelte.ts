// Theme and language: the system's unless chosen; kept in localStorage.
import { en, type Words } from "./words.en";
import { zh } from "./words.zh";

export type Theme = "system" | "light" | "dark";
export type Language = "en" | "zh";

const words: Record<Language, Words> = { en, zh };

function stored<T extends string>(name: string, allowed: readonly T[], otherwise: T): T {
  const value = localStorage.getItem(`trunkline.${name}`) as T | null;
  return value && allowed.includes(value) ? value : otherwise;
}

class Prefs {
  theme = $state<Theme>(stored("theme", ["system", "light", "dark"], "system"));
  language = $state<Language>(
    stored("language", ["en", "zh"], navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en"),
  );

  setTheme(theme: Theme) {
    this.theme = theme;
    localStorage.setItem("trunkline.theme", theme);
    this.show();
  }

  setLanguage(language: Language) {
    this.language = language;
    localStorage.setItem("trunkline.language", language);
    this.show();
  }

  /** Put both on the document; colours follow by CSS. */
  show() {
    const root = document.documentElement;
    root.lang = this.language === "zh" ? "zh-Hans" : "en";
    if (this.theme === "system") delete root.dataset.theme;
    else root.dataset.theme = this.theme;
  }
}

export const prefs = new Prefs();

/** The text of `name` in the chosen language; `{x}` is replaced by `values.x`, `{x|one|more}` by what fits its number. */
export function t(name: keyof Words, values: Record<string, string | number> = {}): string {
  return words[prefs.language][name].replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (whole, key: string, one?: string, more?: string) => {
    const value = values[key];
    if (value === undefined) return whole;
    return one === undefined ? String(value) : String(value) === "1" ? one : (more ?? "");
  });
}
