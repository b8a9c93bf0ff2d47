// What the inspector's two columns show, made of an inspection and of what the page itself received.
import type { Received } from "../lib/sse";
import type { Departure, Exchange, Row } from "../lib/types";

export interface SentChunk {
  /** milliseconds from the request, where the page saw it arrive */
  t: number | null;
  data: string;
}

export interface ShownRow {
  t: number | null;
  line: number | null;
  raw: string;
  offset: number;
  departures: Departure[];
  /** Of these: what no row before says too. */
  fresh: Departure[];
  chunks: SentChunk[];
  /** Of a job: the exchange with its provider that this row shows. */
  exchange?: Exchange;
}

export interface Piece {
  text: string;
  departure: Departure | null;
}

/** The rows of an inspection; the chunks get the times of `received` when it is the same number of them. */
export function shownRows(rows: Row[], departures: Departure[], received: Received[] = []): ShownRow[] {
  const total = rows.reduce((sum, row) => sum + row.chunks.length, 0);
  let next = 0;
  const said = new Set<string>();
  const isFresh = ({ rule, message }: Departure) => {
    const before = said.size;
    return said.add(`${rule} ${message}`).size > before;
  };
  return rows.map((row) => ({
    t: row.t_ms,
    line: row.line,
    raw: row.raw,
    offset: row.offset,
    departures: row.departures.flatMap((index) => departures[index] ?? []),
    fresh: row.departures.flatMap((index) => departures[index] ?? []).filter(isFresh),
    chunks: row.chunks.map((data) => ({ data, t: (total === received.length ? received[next++]?.t : null) ?? null })),
  }));
}

/** Rows of what the page received alone. */
export function receivedRows(received: Received[]): ShownRow[] {
  return received.map(({ t, data }) => ({ t, line: null, raw: "", offset: 0, departures: [], fresh: [], chunks: [{ t, data }] }));
}

/** What a job's provider answered and what the page received, in one line of time. */
export function timeline(exchanges: Exchange[], received: Received[] = []): ShownRow[] {
  const sent = exchanges.map((exchange) => ({
    t: exchange.asked_ms + exchange.took_ms,
    line: null,
    raw: exchange.body ?? "",
    offset: 0,
    departures: [],
    fresh: [],
    chunks: [],
    exchange,
  }));
  return [...sent, ...receivedRows(received)].sort((a, b) => (a.t ?? 0) - (b.t ?? 0));
}

/** JSON as people read it; anything else as it is. */
export function readable(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A row's pieces without the beginning that the row before has too (and that holds no fault): what is new is seen at once. */
export function newPieces(row: ShownRow, before: ShownRow | undefined): Piece[] {
  const [first, ...rest] = pieces(row);
  if (!first || !before) return pieces(row);
  let same = 0;
  while (same < first.text.length && first.text[same] === before.raw[same]) same += 1;
  if (first.departure || same < 48) return [first, ...rest];
  return [{ text: `… ${first.text.slice(same - 12)}`, departure: null }, ...rest];
}

/** A row's text cut where departures begin and end, each piece with the smallest that is around it; offsets are bytes of the whole capture. */
export function pieces(row: ShownRow): Piece[] {
  const bytes = new TextEncoder().encode(row.raw);
  const decoder = new TextDecoder();
  const marks = row.departures
    .map((departure) => ({ departure, start: departure.offset - row.offset, end: departure.offset - row.offset + (departure.length ?? 0) }))
    .filter(({ start, end }) => start >= 0 && end > start && start < bytes.length)
    .sort((a, b) => a.end - a.start - (b.end - b.start));
  const cuts = [...new Set([0, bytes.length, ...marks.flatMap(({ start, end }) => [start, Math.min(end, bytes.length)])])].sort((a, b) => a - b);
  return cuts.slice(1).map((end, index) => {
    const start = cuts[index]!;
    const around = marks.find((mark) => mark.start <= start && end <= mark.end);
    return { text: decoder.decode(bytes.subarray(start, end)), departure: around?.departure ?? null };
  });
}

/** The one thing a chunk says, for reading at a glance. */
export function gist(data: string): { name: string; value: string } {
  if (data === "[DONE]") return { name: "[DONE]", value: "" };
  try {
    const chunk = JSON.parse(data) as {
      error?: { code?: string; message?: string };
      usage?: { prompt_tokens: number; completion_tokens: number } | null;
      choices?: { delta?: Record<string, unknown>; finish_reason?: string | null }[];
    };
    if (chunk.error) return { name: "error", value: `${chunk.error.code ?? ""} ${chunk.error.message ?? ""}` };
    const choice = chunk.choices?.[0];
    if (!choice) return chunk.usage ? { name: "usage", value: `${chunk.usage.prompt_tokens} → ${chunk.usage.completion_tokens}` } : { name: "—", value: "" };
    if (choice.finish_reason) return { name: "finish_reason", value: choice.finish_reason };
    const { role, ...delta } = choice.delta ?? {};
    const said = Object.entries(delta).find(([, value]) => value !== null && value !== "");
    if (said) return { name: said[0], value: typeof said[1] === "string" ? said[1] : JSON.stringify(said[1]) };
    return role ? { name: "role", value: String(role) } : { name: "keep-alive", value: "" };
  } catch {
    return { name: "?", value: data };
  }
}
