// What the page asks of the server, in the page's words: one function per thing one can do.

import { Refused, ask, get, path, post, patch, remove } from "./api";
import type { Hit, Link, Memory, Version } from "./nouns";

// --- finding ---------------------------------------------------------------------------------------------------------

/** What the filters say; empty means any. */
export interface Wanted {
  category?: string;
  tag?: string;
  status?: string;
  time?: string;
  client?: string;
  flag?: string;
}

export interface Answer {
  hits: Hit[];
  total?: number;
  cursor?: string;
  degraded?: string;
}

const DAYS: Record<string, number> = { day: 1, week: 7, month: 30, year: 365 };

function filters(wanted: Wanted): Record<string, unknown> {
  const days = DAYS[wanted.time ?? ""];
  return Object.fromEntries(
    Object.entries({
      categories: wanted.category ? [wanted.category] : undefined,
      tags: wanted.tag ? [wanted.tag.trim()] : undefined,
      states: wanted.status ? [wanted.status] : undefined,
      created_since: days ? new Date(Date.now() - days * 86_400_000).toISOString() : undefined,
      client: wanted.client?.trim() || undefined,
      flag: wanted.flag || undefined,
    }).filter(([, value]) => value !== undefined),
  );
}

export async function search(
  query: string,
  wanted: Wanted,
  page: { limit: number; offset: number },
  signal?: AbortSignal,
): Promise<Answer> {
  return post<Answer>("/api/v1/search", { query, ...page, ...filters(wanted) }, signal);
}

export async function listed(
  wanted: Wanted,
  page: { limit: number; cursor?: string },
  signal?: AbortSignal,
): Promise<Answer> {
  const found = await get<{ memories: Memory[]; total?: number; cursor?: string }>(
    "/api/v1/memories",
    { ...(filters(wanted) as Record<string, string>), ...page },
    signal,
  );
  return { ...found, hits: found.memories.map((memory) => ({ memory, score: 0 })) };
}

// --- one memory ------------------------------------------------------------------------------------------------------

export interface Whole {
  memory: Memory;
  versions: Version[];
  links: Link[];
  titles: Record<string, string>;
}

export async function memory(id: string): Promise<Whole> {
  const { memory } = await get<{ memory: Memory }>(path(id), { deleted: true });
  const [{ versions }, around] = await Promise.all([
    get<{ versions: Version[] }>(`${path(memory)}/versions`).catch(() => ({ versions: [] })), // none of forgotten ones
    neighbourhood(memory.id, 1).catch(() => ({ memories: [], links: [], centre: memory.id })),
  ]);
  const titles = Object.fromEntries(around.memories.map((one) => [one.id, one.topic ?? one.title]));
  const links = around.links.filter((link) => link.source === memory.id || link.target === memory.id);
  return { memory, versions, links, titles };
}

export async function store(content: string, tags: string[]): Promise<Memory> {
  return (await post<{ memory: Memory }>("/api/v1/memories", { content, tags, source: "explicit" })).memory;
}

export const revise = (memory: Memory, fields: Record<string, unknown>) => patch(path(memory), fields, memory.version);
export const forget = (id: string) => remove(path(id));
export const recover = (id: string) => post(`${path(id)}/recover`);
export const restoreVersion = (id: string, version: number) => post(`${path(id)}/versions/${version}/restore`);
export const archive = (id: string) => post("/api/system/archive_memory", { memory_id: id });
export const restoreArchived = (id: string) => post("/api/system/restore_memory", { memory_id: id });

// --- several at once -------------------------------------------------------------------------------------------------

/** Forget them together; the answer takes it back. */
export async function bulkForget(ids: string[]): Promise<() => Promise<unknown>> {
  const done = await post<{ deed: string }>("/api/v1/bulk/forget", { ids });
  return () => post("/api/v1/bulk/undo", { deed: done.deed });
}

/** A file of lines of JSON, made in the browser from what is already here. */
export function exported(memories: Memory[]): void {
  const lines = memories.map((memory) => JSON.stringify({ type: "memory", ...memory })).join("\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([`${lines}\n`], { type: "application/jsonl" }));
  link.download = "memories.jsonl";
  link.click();
  URL.revokeObjectURL(link.href);
}

// --- conflicts -------------------------------------------------------------------------------------------------------

export interface Pair {
  old: Memory;
  new: Memory;
  score: number;
}

export const conflicts = async () => (await get<{ conflicts: Pair[] }>("/api/v1/conflicts")).conflicts;
export const supersede = (old: string, newer: string) => post(`${path(old)}/supersede`, { new: newer });
export const keepBoth = (pair: Pair) => post("/api/v1/conflicts/keep", { old: pair.old.id, new: pair.new.id });
export const merge = (ids: string[]) =>
  post("/api/system/consolidate_memories", { memory_ids: ids, consolidation_strategy: "merge_all" });

export interface SyncConflict {
  id: string;
  endpoint: string;
  here: string;
  there: string;
}

/** None where the server does not sync, or this caller may not see it. */
export async function syncConflicts(): Promise<SyncConflict[]> {
  try {
    return (await get<{ conflicts: SyncConflict[] }>("/api/v1/sync/conflicts")).conflicts;
  } catch (error) {
    if (error instanceof Refused && [403, 404].includes(error.status)) return [];
    throw error;
  }
}

export const settleSync = (id: string, side: "local" | "remote") => post("/api/v1/sync/conflicts/settle", { id, side });

// --- graph and decisions ---------------------------------------------------------------------------------------------

export interface Neighbourhood {
  centre: string;
  memories: Memory[];
  links: Link[];
}

export async function neighbourhood(id: string, steps: number): Promise<Neighbourhood> {
  const found = await get<Omit<Neighbourhood, "centre">>(`${path(id)}/graph`, { steps });
  return { ...found, centre: id };
}

export interface Topic {
  name: string;
  decisions: number;
  latest_at: string;
}

export const topics = async () => (await get<{ topics: Topic[] }>("/api/v1/decisions")).topics;
export const chain = async (topic: string) =>
  (await get<{ decisions: Memory[] }>(`/api/v1/decisions/${encodeURIComponent(topic)}`)).decisions;

// --- health ----------------------------------------------------------------------------------------------------------

export interface Statistics {
  count: { total: number; active: number; archived: number; deleted: number; expired: number };
  storage_size: { total_bytes: number; average_memory_bytes: number; embeddings_bytes: number };
  category_distribution: Record<string, number>;
  importance_distribution: Record<string, number>;
  access_patterns: { total_recalls: number; most_accessed_memory_id?: string; most_accessed_count: number };
  growth_rate: { memories_per_day: number; trend: string; percent_change: number };
  recall_frequency: { daily_average: number; peak_hour?: number; peak_day?: string };
  health_score: { overall: number; factors: Record<string, number> };
  memory_count: { at: string; value: number }[];
}

export const statistics = async () =>
  (await get<{ statistics: Statistics }>("/api/v1/statistics", { trends: "day" })).statistics;

export interface Job {
  id: string;
  kind: string;
  status: string;
  done: number;
  total?: number;
  note?: string;
  created_at: string;
}

export const jobs = async () => (await get<{ jobs: Job[] }>("/api/v1/jobs")).jobs;
export const cancelJob = (id: string) => post(`/api/v1/jobs/${encodeURIComponent(id)}/cancel`);

// --- who comes in ----------------------------------------------------------------------------------------------------

export interface Key {
  id: string;
  user: string;
  role: string;
  spaces?: string[];
  created_at: string;
  expires_at?: string;
  revoked_at?: string;
}

export interface Act {
  at: string;
  user: string;
  client: string;
  action: string;
  memory?: string;
}

export const me = () => get<{ user: string; role: string; csrf_token?: string }>("/session");
export const signIn = (given: { key: string } | { user: string; password: string }) => post("/sign-in", given);
export const signOut = () => post("/sign-out");
export const keys = async () => (await get<{ keys: Key[] }>("/api/v1/keys")).keys;
export const createKey = async (user: string, role: string) =>
  (await post<{ secret: string }>("/api/v1/keys", { user, role })).secret;
export const revokeKey = (id: string) => ask("DELETE", `/api/v1/keys/${encodeURIComponent(id)}`);
export const acts = async () => (await get<{ acts: Act[] }>("/api/v1/audit", { limit: 100 })).acts;
