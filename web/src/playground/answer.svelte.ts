// One answer of a model: read chunk by chunk, shown frame by frame.
import { ApiError, ask, errorOf, sentence } from "../lib/api";
import { perFrame } from "../lib/frame";
import { readEvents, type Received } from "../lib/sse";
import type { Kind, MediaItem, ToolCall, Usage } from "../lib/types";

export type Status = "waiting" | "streaming" | "done" | "stopped" | "failed" | "cut";

export interface Fault {
  code: string;
  message: string;
  status?: number;
}

/** Milliseconds from the sending of the request. */
export interface Timing {
  head: number | null;
  first: number | null;
  last: number | null;
}

export interface AnswerRecord {
  role: "assistant";
  id: string;
  model: string;
  kind: Kind;
  status: Status;
  fault: Fault | null;
  text: string;
  reasoning: string;
  refusal: string;
  tools: ToolCall[];
  media: MediaItem[];
  finish: string | null;
  usage: Usage | null;
  timing: Timing;
  answered: Record<string, string>;
  streamId: string | null;
  lastEventId: string | null;
  startedAt: number;
  request: Record<string, unknown>;
}

interface Chunk {
  error?: { message?: string; code?: string | null };
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      refusal?: string | null;
      tool_calls?: { index: number; id?: string; function?: { name?: string; arguments?: string } }[];
    };
    finish_reason?: string | null;
  }[];
  usage?: Usage | null;
  media?: { items?: MediaItem[] };
}

const KEPT = 5000;
const RETRIES = 6;
const blank: Timing = { head: null, first: null, last: null };

export class Answer {
  readonly role = "assistant";
  readonly id: string;
  readonly model: string;
  readonly kind: Kind;
  readonly request: Record<string, unknown>;
  readonly startedAt: number;
  status = $state<Status>("waiting");
  fault = $state.raw<Fault | null>(null);
  text = $state("");
  reasoning = $state("");
  refusal = $state("");
  tools = $state.raw<ToolCall[]>([]);
  media = $state.raw<MediaItem[]>([]);
  finish = $state<string | null>(null);
  usage = $state.raw<Usage | null>(null);
  timing = $state.raw<Timing>(blank);
  /** Where the answer came from: what the response headers say. */
  answered = $state.raw<Record<string, string>>({});
  /** What the client got, for the inspector; not kept over a reload. */
  received: Received[] = [];
  streamId: string | null = null;
  lastEventId: string | null = null;

  private now: Pick<AnswerRecord, "text" | "reasoning" | "refusal" | "tools" | "timing">;
  private sent = 0;
  private abort = new AbortController();
  private finished = false;
  private readonly render = perFrame(() => this.flush());

  constructor(
    record: Partial<AnswerRecord> & Pick<AnswerRecord, "id" | "model" | "kind" | "request">,
    /** `now`: it must be kept at once. */
    private readonly changed: (now?: boolean) => void,
  ) {
    this.id = record.id;
    this.model = record.model;
    this.kind = record.kind;
    this.request = record.request;
    this.startedAt = record.startedAt ?? Date.now();
    this.status = record.status ?? "waiting";
    this.fault = record.fault ?? null;
    this.media = record.media ?? [];
    this.finish = record.finish ?? null;
    this.usage = record.usage ?? null;
    this.answered = record.answered ?? {};
    this.streamId = record.streamId ?? null;
    this.lastEventId = record.lastEventId ?? null;
    this.now = {
      text: record.text ?? "",
      reasoning: record.reasoning ?? "",
      refusal: record.refusal ?? "",
      tools: record.tools ?? [],
      timing: record.timing ?? blank,
    };
    this.flush();
  }

  get live(): boolean {
    return this.status === "waiting" || this.status === "streaming";
  }

  record(): AnswerRecord {
    const { role, id, model, kind, status, fault, media, finish, usage, answered, streamId, lastEventId, startedAt, request } = this;
    return { role, id, model, kind, status, fault, media, finish, usage, answered, streamId, lastEventId, startedAt, request, ...this.now };
  }

  /** Ask, and read to the end. Never raises: what goes wrong is the answer's `fault`. */
  async run(): Promise<void> {
    await this.guard(() =>
      ask("v1/chat/completions", {
        method: "POST",
        signal: this.abort.signal,
        headers: {
          "content-type": "application/json",
          "x-trunkline-trace": "true",
          // The same job is joined, never a second one bought, when the page is loaded again before the answer's head was here.
          ...(this.kind === "text" ? {} : { "idempotency-key": this.id }),
        },
        body: JSON.stringify(this.request),
      }),
    );
  }

  /** After a reload: take the stream up where the page left it. A text call ended with the page that made it. */
  async resume(): Promise<void> {
    if (this.streamId) await this.guard(() => this.again());
    else if (this.kind !== "text") await this.run();
    else this.end("cut", { code: "page_reloaded", message: "" });
  }

  /** A stream that lasts was lost sight of for too long: it is asked for again, the work is not. */
  get canTakeUp(): boolean {
    return this.status === "cut" && this.streamId !== null;
  }

  async takeUp(): Promise<void> {
    if (!this.canTakeUp) return;
    this.status = "streaming";
    this.fault = null;
    this.finished = false;
    await this.guard(() => this.again());
  }

  /** Stop the work, here and at the provider. */
  stop(): void {
    if (!this.live) return;
    this.end("stopped");
    this.abort.abort();
    if (this.streamId) void ask(`v1/streams/${this.streamId}`, { method: "DELETE" }).catch(() => undefined);
  }

  private again(): Promise<Response> {
    const headers = new Headers();
    if (this.lastEventId) headers.set("last-event-id", this.lastEventId);
    else this.now = { text: "", reasoning: "", refusal: "", tools: [], timing: this.now.timing };
    return ask(`v1/streams/${this.streamId}`, { headers, signal: this.abort.signal });
  }

  private async guard(first: () => Promise<Response>): Promise<void> {
    this.sent = performance.now() - (Date.now() - this.startedAt);
    let open = first;
    for (let left = RETRIES; ; left -= 1) {
      try {
        const progress = this.lastEventId;
        await this.read(await open());
        if (!this.live) return;
        if (!this.streamId) return this.end("cut", { code: "stream_cut", message: "" });
        if (this.lastEventId !== progress) left = RETRIES;
      } catch (error) {
        if (!this.live) return;
        if (error instanceof ApiError && error.requestId) this.answered = { "x-request-id": error.requestId, ...this.answered };
        if (error instanceof ApiError) return this.end("failed", { code: error.code, message: error.message, status: error.status });
        if (!this.streamId) return this.end(this.timing.head === null ? "failed" : "cut", { code: "connection_lost", message: "" });
      }
      if (left <= 0) return this.end("cut", { code: "connection_lost", message: "" });
      open = () => this.again();
      await new Promise((resolve) => setTimeout(resolve, 500 * (RETRIES - left + 1)));
      if (!this.live) return;
    }
  }

  private async read(response: Response): Promise<void> {
    const type = response.headers.get("content-type") ?? "";
    if (!response.body || !type.includes("text/event-stream")) throw await errorOf(response);
    this.streamId = response.headers.get("x-trunkline-stream-id") ?? this.streamId;
    const answered: Record<string, string> = { ...this.answered };
    for (const [name, value] of response.headers)
      if (name === "x-request-id" || name.startsWith("x-trunkline-")) answered[name] ??= value;
    this.answered = answered;
    if (this.now.timing.head === null) this.now.timing = { ...this.now.timing, head: performance.now() - this.sent };
    this.changed(true);
    await readEvents(response.body, (event) => this.take(event));
  }

  private take(event: Received): void {
    if (!this.live) return;
    const t = event.t - this.sent;
    if (this.received.length < KEPT) this.received.push({ ...event, t });
    if (event.id) this.lastEventId = event.id;
    if (event.data === "[DONE]") return this.end("done");
    let chunk: Chunk;
    try {
      chunk = JSON.parse(event.data) as Chunk;
    } catch {
      return this.end("failed", { code: "not_json", message: event.data.slice(0, 200) });
    }
    if (chunk.error) return this.end("failed", { code: chunk.error.code ?? "error", message: sentence(chunk.error.message ?? "") });
    this.add(chunk, t);
    this.render();
  }

  private add(chunk: Chunk, t: number): void {
    if (chunk.usage) this.usage = chunk.usage;
    if (chunk.media?.items) this.media = chunk.media.items;
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const { content, reasoning_content, refusal, tool_calls } = choice.delta ?? {};
    const now = this.now;
    if (content || reasoning_content || refusal || tool_calls) {
      now.timing = { ...now.timing, first: now.timing.first ?? t, last: t };
      now.text += content ?? "";
      now.reasoning += reasoning_content ?? "";
      now.refusal += refusal ?? "";
    }
    for (const part of tool_calls ?? []) {
      const tools = [...now.tools];
      const call = tools[part.index] ?? { id: "", name: "", arguments: "" };
      tools[part.index] = {
        id: part.id ?? call.id,
        name: call.name + (part.function?.name ?? ""),
        arguments: call.arguments + (part.function?.arguments ?? ""),
      };
      now.tools = tools;
    }
    this.finish = choice.finish_reason ?? this.finish;
  }

  private flush(): void {
    const { text, reasoning, refusal, tools, timing } = this.now;
    this.text = text;
    this.reasoning = reasoning;
    this.refusal = refusal;
    this.tools = tools;
    this.timing = timing;
    if (this.status === "waiting" && timing.first !== null) this.status = "streaming";
    if (!this.finished) this.changed();
  }

  private end(status: Status, fault: Fault | null = null): void {
    this.flush();
    this.status = status;
    this.fault = fault;
    this.finished = true;
    this.changed();
  }
}
