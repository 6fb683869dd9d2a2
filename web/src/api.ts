// The server, as the page knows it: one function per request, one error for whatever goes wrong.

import type { Memory } from "./nouns";
import { visited } from "./route.svelte";

/** What the server refused, or that it is gone. `status` 0: no answer. */
export class Refused extends Error {
  visit?: number; // where one was when asking for something to show

  constructor(
    readonly status: number,
    message: string,
    readonly hint = "",
    readonly code = "",
  ) {
    super(message);
  }

  /** In words, with what to do about it. */
  get words(): string {
    return this.hint ? `${this.message} ${this.hint}` : this.message;
  }
}

let space = "";
let csrf = "";
let session = 0; // goes up with every sign-in
let listening = false;
let unheard = false; // something was read while nothing was heard of changes
let signInNeeded: () => void = () => {};

export function useSpace(name: string): void {
  space = name;
}

/** Empty: all of them. */
export const spaceChosen = () => space;
/** The space that is written to; reads look in all of them unless one was chosen. */
export const spaceShown = () => space || "default";

export function useToken(token: string): void {
  csrf = token;
  session++;
}

export function onSignInNeeded(callback: () => void): void {
  signInNeeded = callback;
}

type Value = string | number | boolean | string[] | undefined | null;

function address(path: string, query: Record<string, Value> = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => given.append(name, one));
    else if (value !== undefined && value !== null && value !== "") given.set(name, String(value));
  }
  if (space && !("space" in query)) given.set("space", space);
  const text = given.toString();
  return text ? `${path}?${text}` : path;
}

export interface Options {
  query?: Record<string, Value>;
  body?: unknown;
  ifVersion?: number;
  signal?: AbortSignal;
}

async function request(method: string, path: string, options: Options = {}): Promise<Response> {
  const visit = visited();
  if (!listening && path.startsWith("/api/")) unheard = true;
  try {
    return await exchange(method, path, options);
  } catch (error) {
    if (error instanceof Refused && method === "GET") error.visit = visit;
    throw error;
  }
}

async function exchange(method: string, path: string, options: Options): Promise<Response> {
  const headers: Record<string, string> = { accept: "application/json", "x-client": "page" };
  if (options.ifVersion) headers["if-match"] = `"${options.ifVersion}"`;
  if (method !== "GET") {
    headers["content-type"] = "application/json"; // also without a body: a form could not send it
    headers["idempotency-key"] = crypto.randomUUID?.() ?? String(Math.random());
    if (csrf) headers["x-csrf-token"] = csrf;
  }
  const begun = session;
  let reply: Response;
  try {
    reply = await fetch(address(path, options.query), {
      method,
      headers,
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal: options.signal,
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, "The server does not answer.", "Is `scrubjay serve` still running? What you typed is kept.");
  }
  if (reply.ok) return reply;
  if (reply.status === 401 && begun === session) signInNeeded(); // not by an answer from before one signed in
  throw refusal(reply, await reply.json().catch(() => ({})));
}

export async function ask<T>(method: string, path: string, options: Options = {}): Promise<T> {
  return (await request(method, path, options)).json() as Promise<T>;
}

/** An answer of many JSON objects, one a line. */
export async function lines<T>(path: string, query?: Record<string, Value>): Promise<T[]> {
  const text = await (await request("GET", path, { query })).text();
  return text.split("\n").filter(Boolean).map((line) => JSON.parse(line) as T);
}

function refusal(reply: Response, body: { error?: { message?: string; hint?: string; code?: string } }): Refused {
  const said = body.error ?? {};
  if (reply.status === 401) return new Refused(401, "Please sign in.", "", "unauthorized");
  if (reply.status === 429) {
    const seconds = reply.headers.get("retry-after") ?? "some";
    return new Refused(429, "Too many requests.", `Wait ${seconds} seconds and try again.`, "rate_limited");
  }
  return new Refused(reply.status, said.message ?? `The server answered ${reply.status}.`, said.hint, said.code);
}

export const get = <T>(path: string, query?: Record<string, Value>, signal?: AbortSignal) =>
  ask<T>("GET", path, { query, signal });
export const post = <T>(path: string, body: unknown = {}, signal?: AbortSignal) => ask<T>("POST", path, { body, signal });
export const patch = <T>(path: string, body: unknown, ifVersion?: number) => ask<T>("PATCH", path, { body, ifVersion });
export const remove = <T>(path: string, query?: Record<string, Value>) => ask<T>("DELETE", path, { query });

const AGAIN_MS = 3_000;

/** Changes in this space as they happen; calls back with the id of what changed. Comes back by itself. */
export function follow(changed: (id: string | null) => void, state: (alive: boolean) => void): () => void {
  let source: EventSource;
  let timer: ReturnType<typeof setTimeout>;
  const open = () => {
    source = new EventSource(address("/api/v1/events"));
    source.onopen = () => {
      state(true);
      listening = true;
      if (unheard) changed(null); // whatever happened meanwhile
      unheard = false;
    };
    source.onerror = () => {
      listening = false;
      unheard = true;
      // Refused, so the browser gives up: the session may have ended, and asking says so. Else try again.
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, AGAIN_MS);
      get("/session").then(() => {}, (error) => state(error instanceof Refused && error.status !== 0));
    };
    source.onmessage = (message) => changed((JSON.parse(message.data) as { memory?: string }).memory ?? null);
  };
  open();
  return () => {
    clearTimeout(timer);
    source.close();
    listening = false;
  };
}

export const path = (memory: Memory | string) =>
  `/api/v1/memories/${encodeURIComponent(typeof memory === "string" ? memory : memory.id)}`;
