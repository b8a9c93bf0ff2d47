// Server-sent events out of a fetch answer, with the times at which they came.
import { createParser } from "eventsource-parser";

export interface Received {
  /** performance.now() of the read that completed the event */
  t: number;
  data: string;
  id?: string;
}

/** Hand every event of the body to `take`; returns at the end of the body, raises when the connection breaks. */
export async function readEvents(body: ReadableStream<Uint8Array>, take: (event: Received) => void): Promise<void> {
  const decoder = new TextDecoder();
  let t = 0;
  const parser = createParser({ onEvent: (event) => take({ t, data: event.data, id: event.id }) });
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    t = performance.now();
    parser.feed(decoder.decode(value, { stream: true }));
  }
}
