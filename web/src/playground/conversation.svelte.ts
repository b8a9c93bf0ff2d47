// Conversations: what was said, with what options, and where it is kept.
import * as store from "../lib/store";
import type { Kind, Model } from "../lib/types";
import { Answer, type AnswerRecord } from "./answer.svelte";

export interface UserTurn {
  role: "user";
  id: string;
  text: string;
  images: { name: string; url: string }[];
}

export interface ToolTurn {
  role: "tool";
  id: string;
  callId: string;
  text: string;
}

export type Turn = UserTurn | ToolTurn | Answer;

/** What the person set; blank means: not sent. */
export interface Options {
  system: string;
  temperature: string;
  maxTokens: string;
  tools: string;
}

/** Body keys of image and video models, by name. */
export type MediaParams = Record<string, string | number>;

export const newId = () => crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

interface ConversationRecord {
  id: string;
  title: string;
  model: string;
  options: Options;
  changedAt: number;
  turns: (UserTurn | ToolTurn | AnswerRecord)[];
}

const noOptions: Options = { system: "", temperature: "", maxTokens: "", tools: "" };

export class Conversation {
  readonly id: string;
  title = $state("");
  model = $state("");
  options = $state<Options>({ ...noOptions });
  turns = $state.raw<Turn[]>([]);
  changedAt = $state(Date.now());
  private saving: ReturnType<typeof setTimeout> | undefined;

  constructor(record?: ConversationRecord) {
    this.id = record?.id ?? newId();
    if (!record) return;
    this.title = record.title;
    this.model = record.model;
    this.options = { ...noOptions, ...record.options };
    this.changedAt = record.changedAt;
    this.turns = record.turns.map((turn) => (turn.role === "assistant" ? new Answer(turn, (now) => this.save(now)) : turn));
  }

  get live(): Answer | null {
    const last = this.turns.at(-1);
    return last?.role === "assistant" && last.live ? last : null;
  }

  say(text: string, images: UserTurn["images"], model: Model, params: MediaParams): void {
    this.turns = [...this.turns, { role: "user", id: newId(), text, images }];
    this.title ||= text.trim().slice(0, 80) || images[0]?.name || "";
    this.answer(model, params);
  }

  /** Give the results of the last answer's tool calls, and let the model go on. */
  giveResults(results: { callId: string; text: string }[], model: Model): void {
    this.turns = [...this.turns, ...results.map((result) => ({ role: "tool" as const, id: newId(), ...result }))];
    this.answer(model, {});
  }

  /** Throw the last answer away and ask again, with the same body. */
  retry(answer: Answer, model: Model, params: MediaParams): void {
    const index = this.turns.indexOf(answer);
    this.turns = this.turns.slice(0, index);
    this.answer(model, params);
  }

  private answer(model: Model, params: MediaParams): void {
    const kind: Kind = model.trunkline?.kind ?? "text";
    const request = this.body(model.id, kind, params);
    const answer = new Answer({ id: newId(), model: model.id, kind, request }, (now) => this.save(now));
    this.model = model.id;
    this.turns = [...this.turns, answer];
    this.write(); // before it is asked for: a page that is loaded again finds its job
    void answer.run();
  }

  private body(model: string, kind: Kind, params: MediaParams): Record<string, unknown> {
    const { system, temperature, maxTokens, tools } = this.options;
    const body: Record<string, unknown> = { model, messages: this.messages(kind === "text" ? system : "") };
    body.stream = true;
    body.stream_options = { include_usage: true, include_cost: true };
    if (kind !== "text") return { ...body, ...params };
    if (temperature.trim()) body.temperature = Number(temperature);
    if (maxTokens.trim()) body.max_tokens = Number(maxTokens);
    if (tools.trim()) body.tools = JSON.parse(tools) as unknown;
    return body;
  }

  private messages(system: string): unknown[] {
    const said: unknown[] = system.trim() ? [{ role: "system", content: system }] : [];
    for (const turn of this.turns) {
      if (turn.role === "tool") said.push({ role: "tool", tool_call_id: turn.callId, content: turn.text });
      else if (turn.role === "user") {
        const parts = turn.images.map(({ url }) => ({ type: "image_url", image_url: { url } }));
        said.push({ role: "user", content: parts.length ? [{ type: "text", text: turn.text }, ...parts] : turn.text });
      } else if (turn.tools.length)
        said.push({
          role: "assistant",
          content: turn.text || null,
          tool_calls: turn.tools.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } })),
        });
      else if (turn.text) said.push({ role: "assistant", content: turn.text });
    }
    return said;
  }

  /** Keep it, at most twice a second while an answer comes in. */
  save(now = false): void {
    if (!this.turns.length) return;
    this.changedAt = Date.now();
    if (this.live && !now) this.saving ??= setTimeout(() => this.write(), 500);
    else this.write();
  }

  private write(): void {
    clearTimeout(this.saving);
    this.saving = undefined;
    const record: ConversationRecord = {
      id: this.id,
      title: this.title,
      model: this.model,
      options: { ...this.options },
      changedAt: this.changedAt,
      turns: this.turns.map((turn) => (turn.role === "assistant" ? turn.record() : turn)),
    };
    void store.put(record).catch((error: unknown) => console.warn("the conversation is not kept:", error));
  }
}

/** All conversations kept here, last used first. */
export async function readConversations(): Promise<Conversation[]> {
  const records = await store.all<ConversationRecord>();
  return records.sort((a, b) => b.changedAt - a.changedAt).map((record) => new Conversation(record));
}
