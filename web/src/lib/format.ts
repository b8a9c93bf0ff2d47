// Numbers, money, times and sizes for people, in the chosen language.
import { prefs } from "./prefs.svelte";

const locale = () => (prefs.language === "zh" ? "zh-CN" : "en-GB");

export const number = (value: number, digits = 0) =>
  value.toLocaleString(locale(), { maximumFractionDigits: digits, minimumFractionDigits: 0 });

/** 1,234 · 12.3k · 4.5M */
export function compact(value: number): string {
  if (Math.abs(value) < 10_000) return number(value);
  return value.toLocaleString("en-GB", { notation: "compact", maximumFractionDigits: 1 });
}

/** US dollars, with as many digits as the amount needs to be seen. */
export function usd(value: number): string {
  const digits = value === 0 || Math.abs(value) >= 1 ? 2 : Math.abs(value) >= 0.01 ? 4 : 6;
  return `$${value.toLocaleString("en-US", { minimumFractionDigits: Math.min(digits, 2), maximumFractionDigits: digits })}`;
}

export const microusd = (value: number) => usd(value / 1e6);

export function bytes(value: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < units.length - 1) {
    value /= 1000;
    step += 1;
  }
  return `${number(value, value < 10 && step > 0 ? 1 : 0)} ${units[step]}`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${number(ms / 1000, ms < 10_000 ? 1 : 0)} s`;
  const minutes = Math.floor(ms / 60_000);
  const seconds = Math.floor((ms % 60_000) / 1000);
  if (minutes < 60) return `${minutes} min${seconds ? ` ${seconds} s` : ""}`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export const dateTime = (at: number) =>
  new Date(at * 1000).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "short" });

/** An instant on a time axis: the day at midnight and for whole days, else the hour and minute. */
export function tick(at: number, bucketS: number): string {
  const date = new Date(at * 1000);
  const whole = bucketS >= 86_400 || (date.getHours() === 0 && date.getMinutes() === 0);
  return date.toLocaleString(locale(), whole ? { day: "numeric", month: "short" } : { hour: "2-digit", minute: "2-digit" });
}

export function ago(at: number): string {
  const seconds = Math.round(at - Date.now() / 1000);
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: "auto", style: "short" });
  for (const [unit, size] of [["day", 86_400], ["hour", 3600], ["minute", 60]] as const)
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit);
  return format.format(seconds, "second");
}
