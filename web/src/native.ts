// What the page asks of the server, in the page's words: one function per thing one can do.

import { Refused, ask, get, lines, path, post, patch, remove, useToken } from "./api";
import type { FormerPhrases, Hit, Link, Memory, Recall, Space, Verdict, Version } from "./nouns";
import { headline, textOf } from "./words";

// --- finding ---------------------------------------------------------------------------------------------------------

/** What the filters say; empty means any. */
export const ANY = { kind: "", category: "", time: "", status: "", flag: "", tag: "", client: "" };
export type Wanted = typeof ANY;

export interface Answer {
  hits: Hit[];
  verdict?: Verdict;
  worth?: string[]; // which of them are worth reading
  doubts: Record<string, string>; // by the id of a memory, the newer one that very likely outdates it
  total?: number;
  cursor?: string;
  degraded?: string;
}

const DAYS: Record<string, number> = { day: 1, week: 7, month: 30, year: 365 };

function filters(wanted: Wanted): Record<string, string | string[]> {
  const given: Record<string, string | string[]> = {};
  const days = DAYS[wanted.time];
  if (wanted.kind) given["kinds"] = [wanted.kind];
  if (wanted.category) given["categories"] = [wanted.category];
  if (wanted.status) given["states"] = [wanted.status];
  if (wanted.tag.trim()) given["tags"] = [wanted.tag.trim()];
  if (wanted.client.trim()) given["client"] = wanted.client.trim();
  if (wanted.flag) given["flag"] = wanted.flag;
  if (days) given["created_since"] = new Date(Date.now() - days * 86_400_000).toISOString();
  return given;
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
  const found = await get<Omit<Answer, "hits"> & { memories: Memory[]; left_out?: number }>(
    "/api/v1/memories",
    { ...filters(wanted), ...page },
    signal,
  );
  // An answer that would be too large leaves out its end, but goes on behind it: ask for less.
  if (found.left_out && page.limit > 1) return listed(wanted, { ...page, limit: Math.ceil(page.limit / 2) }, signal);
  return { ...found, hits: found.memories.map((memory) => ({ memory, score: 0 })) };
}

/** How many current memories have phrases under which they may be looked for. */
export const phrased = async () => (await get<{ total?: number }>("/api/v1/memories", { phrased: true, limit: 1 })).total ?? 0;

/** All of them, some hundreds at a time. */
export async function everyListed(wanted: Wanted): Promise<Memory[]> {
  const all: Memory[] = [];
  let cursor: string | undefined;
  do {
    const leaf = await listed(wanted, { limit: 400, cursor });
    all.push(...leaf.hits.map((hit) => hit.memory));
    cursor = leaf.cursor;
  } while (cursor);
  return all;
}

// --- one memory ------------------------------------------------------------------------------------------------------

export interface Whole {
  memory: Memory;
  versions: Version[];
  phrases: FormerPhrases[];
  links: Link[];
  titles: Record<string, string>;
}

export async function memory(id: string): Promise<Whole> {
  const { memory } = await get<{ memory: Memory }>(path(id), { deleted: true });
  const [{ versions, phrases }, around] = await Promise.all([
    get<{ versions: Version[]; phrases: FormerPhrases[] }>(`${path(memory)}/versions`).catch(none({ versions: [], phrases: [] })),
    get<{ memories: Memory[]; links: Link[] }>(`${path(memory)}/graph`).catch(none({ memories: [], links: [] })),
  ]);
  const titles = Object.fromEntries(around.memories.map((one) => [one.id, headline(one)]));
  const links = around.links.filter((link) => link.source === memory.id || link.target === memory.id);
  return { memory, versions, phrases, links, titles };
}

/** What a forgotten memory has none of. */
const none = <T>(empty: T) => (error: unknown): T => {
  if (error instanceof Refused && error.status === 404) return empty;
  throw error;
};

/** The memories that replaced each other, the oldest first, this one among them. */
export async function succession(memory: Memory): Promise<Memory[]> {
  const found = [memory];
  const read = async (id: string) => (await get<{ memory: Memory }>(path(id), { deleted: true })).memory;
  for (let id = memory.supersedes; id && found.length < 20; id = found[0]!.supersedes) found.unshift(await read(id));
  for (let id = memory.superseded_by; id && found.length < 40; id = found.at(-1)!.superseded_by) found.push(await read(id));
  return found;
}

const mentions = new Map<string, Promise<Memory | null>>();

/** A memory that a text names; null if there is none. Asked once: the same few are named again and again. */
export function mentioned(id: string): Promise<Memory | null> {
  let found = mentions.get(id);
  if (!found) {
    found = get<{ memory: Memory }>(path(id)).then(({ memory }) => memory, () => null);
    mentions.set(id, found);
  }
  return found;
}

/** In another space, or once signed in, other memories are seen. */
export const forgetMentions = () => mentions.clear();

export const shownTo = async (id: string) => (await get<{ recalls: Recall[] }>(`${path(id)}/shown`)).recalls;

export async function store(content: string, tags: string[], also: string[]): Promise<Memory> {
  return (await post<{ memory: Memory }>("/api/v1/memories", { content, tags, also, source: "explicit" })).memory;
}

export const revise = (memory: Memory, fields: Record<string, unknown>) => patch(path(memory), fields, memory.version);
export const forget = (id: string) => remove(path(id));
export const recover = (id: string) => post(`${path(id)}/recover`);
export const restoreVersion = (id: string, version: number) => post(`${path(id)}/versions/${version}/restore`);
export const archive = (id: string) => post("/api/system/archive_memory", { memory_id: id });
export const release = (id: string) => post(`${path(id)}/release`);
export const restoreArchived = (id: string) => post("/api/system/restore_memory", { memory_id: id });

// --- several at once -------------------------------------------------------------------------------------------------

/** As many as one call takes. */
function* stretches(ids: string[]): Generator<string[]> {
  for (let start = 0; start < ids.length; start += 1000) yield ids.slice(start, start + 1000);
}

/** Forget them as one bulk operation; the answer undoes it. */
export async function bulkForget(ids: string[]): Promise<() => Promise<void>> {
  let deed: string | undefined;
  for (const some of stretches(ids)) deed = (await post<{ deed: string }>("/api/v1/bulk/forget", { ids: some, deed })).deed;
  return async () => {
    while ((await post<{ left: number }>("/api/v1/bulk/undo", { deed })).left);
  };
}

export async function bulkUpdate(ids: string[], changes: { add_tags: string[] } | { category: string }): Promise<void> {
  for (const some of stretches(ids)) await post("/api/v1/bulk/update", { filter: { ids: some }, ...changes });
}

export async function recoverAll(ids: string[]): Promise<void> {
  for (const id of ids) await recover(id);
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

/** An older memory with the newer ones that may have outdated it; those that say the same are one. */
export interface Group {
  old: Memory;
  newer: Pair[][];
}

const AT_ONCE = 200;

export type Same = readonly [newer: Memory, older: Memory];

export const conflicts = async () => (await get<{ conflicts: Pair[] }>("/api/v1/conflicts", { limit: AT_ONCE })).conflicts;
/** How many memories a newer one may have outdated. */
export const countConflicts = async () => (await get<{ older: number }>("/api/v1/conflicts", { limit: 1 })).older;

/** Memories that say the same in the same words. To find them the server compares all with each other. */
export async function duplicates(): Promise<Same[]> {
  const found = await get<{ duplicates: { newer: Memory; older: Memory }[] }>("/api/v1/duplicates", { limit: AT_ONCE });
  return found.duplicates.map(({ newer, older }) => [newer, older]);
}

export interface Matters {
  groups: Group[];
  repeats: Memory[][]; // the newest first
  more: boolean;
}

/** What may be outdated, with what outdates it; and apart from it what only says the same. */
export function sorted(pairs: Pair[], same: Same[]): Matters {
  const repeats = together([...pairs.filter((pair) => sameSaid(pair.old, pair.new)).map((pair): Same => [pair.new, pair.old]), ...same]);
  const group = new Map(repeats.flatMap((all, at) => all.map((memory) => [memory.id, at] as const)));
  const open = pairs.filter((pair) => !group.has(pair.old.id) || group.get(pair.old.id) !== group.get(pair.new.id));
  const groups = [...Map.groupBy(open, (pair) => pair.old.id).values()].map((all) => ({
    old: all[0]!.old,
    newer: [...Map.groupBy(all, (pair) => said(pair.new)).values()],
  }));
  return { groups, repeats, more: pairs.length === AT_ONCE || same.length === AT_ONCE };
}

const said = (memory: Memory) => (memory.topic ?? "") + textOf(memory).toLowerCase().replace(/[^\p{L}\p{N}\p{S}]+/gu, " ").trim();
const sameSaid = (one: Memory, other: Memory) => said(one) === said(other);

/** Pairs that share a memory are one group. */
function together(pairs: Same[]): Memory[][] {
  const group = new Map<string, Map<string, Memory>>();
  for (const pair of pairs) {
    const joined = new Map(pair.flatMap((memory) => [[memory.id, memory] as const, ...(group.get(memory.id) ?? [])]));
    for (const id of joined.keys()) group.set(id, joined);
  }
  const newest = (one: Memory, other: Memory) => Date.parse(other.created_at) - Date.parse(one.created_at);
  return [...new Set(group.values())].map((all) => [...all.values()].sort(newest));
}

/** The first stays; the others are superseded by it, which can be taken back. */
export async function keepOne([kept, ...others]: Memory[]): Promise<void> {
  for (const other of others) await supersede(other.id, kept!.id);
}

export const supersede = (old: string, newer: string) => post(`${path(old)}/supersede`, { new: newer });
export const keepBoth = (pair: Pair) => post("/api/v1/conflicts/keep", { old: pair.old.id, new: pair.new.id });
export const merge = (ids: string[]) =>
  post("/api/system/consolidate_memories", { memory_ids: ids, consolidation_strategy: "merge_all" });

/** Two states of a memory that did not know of each other. */
export interface SyncConflict {
  number: number;
  memory: string;
  endpoint: string;
  at: string;
  ours?: Memory;
  theirs?: Memory;
}

export type Keep = "ours" | "theirs" | "merged";

/** For owners. */
export const syncConflicts = async () => (await get<{ conflicts: SyncConflict[] }>("/api/v1/sync/conflicts")).conflicts;

export const resolveSync = (number: number, keep: Keep) => post(`/api/v1/sync/conflicts/${number}/resolve`, { keep });

// --- graph and decisions ---------------------------------------------------------------------------------------------

/** A memory as a drawing needs it. */
export interface Node {
  id: string;
  title: string;
  kind: string;
  importance: number;
  superseded: boolean;
}

export interface Network {
  nodes: Node[];
  links: Pick<Link, "kind" | "source" | "target">[];
}

/** Everything that a memory is connected with, so many steps far; thousands of them travel as lines. */
export async function network(id: string, steps: number): Promise<Network> {
  const found: Network = { nodes: [], links: [] };
  for (const line of await lines<Partial<Network>>(`${path(id)}/network`, { steps })) {
    found.nodes.push(...(line.nodes ?? []));
    found.links.push(...(line.links ?? []));
  }
  return found;
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
  count: { total: number; archived: number; expired: number };
  current: {
    total: number;
    superseded: number;
    categories: Record<string, number>;
    levels: Record<string, number>;
    growth: Point[];
  };
  deletion_rate: { soft_deletes: number };
  storage_size: { total_bytes: number; average_memory_bytes: number; embeddings_bytes: number };
  access_patterns: { total_recalls: number; most_accessed_memory_id?: string; most_accessed_count: number };
  health_score: { overall: number; factors: Record<string, number> };
  recall_count: Point[];
  recall_hours: number[][]; // by weekday, Monday first, and hour of the day, UTC
}

export interface Point {
  at: string;
  value: number;
}

/** A space, and the folder where its memories are files. */
export interface Store {
  name: string;
  path?: string;
  description?: string;
  memories: number; // current ones, as many as the list shows
  superseded: number;
  mirrored: boolean;
  waiting: number;
  there: boolean;
}

export const spaces = async () => (await get<{ spaces: Space[] }>("/api/v1/spaces")).spaces;
export const stores = async () => (await get<{ stores: Store[] }>("/api/v1/stores")).stores;

export const statistics = async () =>
  (await get<{ statistics: Statistics }>("/api/v1/statistics", { trends: "day" })).statistics;

export interface Job {
  id: string;
  kind: string;
  status: string;
  done: number;
  total?: number;
  note?: string;
  error?: { message?: string };
  created_at: string;
}

export const jobs = async () => (await get<{ jobs: Job[] }>("/api/v1/jobs")).jobs;
export const cancelJob = (id: string) => post(`/api/v1/jobs/${encodeURIComponent(id)}/cancel`);

// --- suggestions -----------------------------------------------------------------------------------------------------

/** What hooks on this machine suggest to remember; it is not a memory yet. */
export interface Suggestion {
  id: string;
  text: string;
  kind: string;
  space: string;
  client: string;
  at: number; // seconds since 1970
}

/** For who may see this machine's files. */
export const suggestions = async () => (await get<{ suggestions: Suggestion[] }>("/api/v1/suggestions")).suggestions;
export const acceptSuggestion = (id: string) => post(`/api/v1/suggestions/${encodeURIComponent(id)}/accept`);
export const dropSuggestion = (id: string) => ask("DELETE", `/api/v1/suggestions/${encodeURIComponent(id)}`);

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
  space?: string;
  memory?: string;
  subject?: string; // the key or user whose rights changed
  reason?: string;
}

export interface Me {
  user: string;
  role: string;
  local: boolean; // the owner of the machine that it runs on
  csrf_token?: string | null; // of a session; none where no one has to sign in
}

export const me = () => get<Me>("/session");
export async function signIn(given: { key: string } | { user: string; password: string }): Promise<void> {
  await post("/sign-in", given);
  useToken((await me()).csrf_token ?? "");
}
export const signOut = () => post("/sign-out");
export const keys = async () => (await get<{ keys: Key[] }>("/api/v1/keys")).keys;
export const createKey = async (user: string, role: string) =>
  (await post<{ secret: string }>("/api/v1/keys", { user, role })).secret;
export const revokeKey = (id: string) => ask("DELETE", `/api/v1/keys/${encodeURIComponent(id)}`);
/** Memories by their ids, wherever they are and whatever became of them. */
export async function named(ids: string[]): Promise<Map<string, Memory>> {
  const states = ["active", "superseded", "archived", "deleted"];
  const found = ids.length ? (await get<{ memories: Memory[] }>("/api/v1/memories", { ids, states, limit: ids.length, space: undefined })).memories : [];
  return new Map(found.map((memory) => [memory.id, memory]));
}
export const acts = async () => (await get<{ acts: Act[] }>("/api/v1/audit", { limit: 100 })).acts;
