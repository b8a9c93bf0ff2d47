// Requests to the gateway: /v1 with a virtual key, /admin/api with the session's cookie.
import { at } from "./base";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly param: string | null = null,
    readonly retryAfter: number | null = null,
    readonly requestId: string | null = null,
  ) {
    super(message);
  }
}

/** What an error says, as the sentence that it is on a page. */
export const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** The error that an answer's body tells; a body that tells none is quoted by its status. */
export async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  const wait = Number(response.headers.get("retry-after")) || null;
  const id = response.headers.get("x-request-id");
  try {
    const { error } = JSON.parse(text) as { error: { message: string; code: string | null; param: string | null } };
    return new ApiError(response.status, error.code ?? "error", sentence(error.message), error.param, wait, id);
  } catch {
    return new ApiError(response.status, "error", `HTTP ${response.status} ${response.statusText}`.trim(), null, wait, id);
  }
}

const KEY = "trunkline.key";

export const apiKey = {
  get: () => localStorage.getItem(KEY) ?? "",
  set: (key: string) => (key ? localStorage.setItem(KEY, key) : localStorage.removeItem(KEY)),
};

/** Whether calls need a key. */
export async function needsKey(): Promise<boolean> {
  return (await fetch(at("v1/videos?limit=1")).catch(() => null))?.status === 401;
}

/** Ask /v1; raises ApiError unless the status is 2xx. */
export async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey.get()) headers.set("authorization", `Bearer ${apiKey.get()}`);
  const response = await fetch(at(path), { ...init, headers });
  if (!response.ok) throw await errorOf(response);
  return response;
}

export interface Session {
  authenticated: boolean;
  open: boolean;
  admin_key_set: boolean;
  csrf: string | null;
  expires_at: number | null;
  version: string;
}

let session: Session | null = null;

/** Told to the window when the session turns out to be over. */
export const SESSION_ENDED = "session-ended";

export async function readSession(): Promise<Session> {
  const response = await fetch(at("admin/api/session"));
  if (!response.ok) throw await errorOf(response);
  session = (await response.json()) as Session;
  return session;
}

export async function login(adminKey: string): Promise<Session> {
  const response = await fetch(at("admin/api/session"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ admin_key: adminKey }),
  });
  if (!response.ok) throw await errorOf(response);
  session = (await response.json()) as Session;
  return session;
}

/** Ask /admin/api; a body that is not bytes goes as JSON. Raises ApiError. */
export async function admin<T>(method: string, path: string, body?: unknown): Promise<T> {
  if (!session) await readSession();
  const headers = new Headers();
  if (method !== "GET" && session?.csrf) headers.set("x-trunkline-csrf", session.csrf);
  const raw = body instanceof Uint8Array;
  if (body !== undefined) headers.set("content-type", raw ? "application/octet-stream" : "application/json");
  const response = await fetch(at(`admin/api/${path}`), {
    method,
    headers,
    body: body === undefined ? undefined : raw ? (body as BodyInit) : JSON.stringify(body),
  });
  if (response.status === 401) {
    session = null;
    dispatchEvent(new Event(SESSION_ENDED));
  }
  if (!response.ok) throw await errorOf(response);
  return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
}
