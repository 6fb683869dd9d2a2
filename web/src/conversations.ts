// Chimera's own routes: conversations, their messages and injected memories.

import { ask, get, post } from "./api";

interface Envelope<T> {
  data: T;
}

export interface Conversation {
  id: string;
  title?: string;
  workspace_id: string;
  system_prompt?: string;
  message_count: number;
  updated_at: string;
}

export interface Message {
  id: string;
  role: string;
  content: string;
  created_at: string;
}

export interface Fragment {
  id: string;
  title: string;
  content?: string;
  snippet: string;
  is_active?: boolean;
}

export interface Open {
  conversation?: Conversation; // none before it began: some other client may only have stored memories in it
  messages: Message[];
  memories: Fragment[];
  context: { context: string; token_count: number; omitted: number };
}

const way = (id: string) => `/api/conversations/${encodeURIComponent(id)}`;

/** Those of these spaces, the most recently active first. */
export async function list(spaces: string[]): Promise<Conversation[]> {
  const one = (space: string) => get<Envelope<{ conversations: Conversation[] }>>("/api/conversations", { workspace_id: space, limit: 100 });
  const found = (await Promise.all(spaces.map(one))).flatMap((answer) => answer.data.conversations);
  return found.sort((one, other) => Date.parse(other.updated_at) - Date.parse(one.updated_at));
}

export async function create(title: string): Promise<Conversation> {
  return (await post<Envelope<{ conversation: Conversation }>>("/api/conversations", { title })).data.conversation;
}

export async function open(id: string): Promise<Open> {
  const [known, messages, memories, context] = await Promise.all([
    get<Envelope<{ conversation: Conversation }>>(way(id)).then((answer) => answer.data.conversation, () => undefined),
    get<Envelope<{ messages: Message[] }>>(`${way(id)}/messages`, { limit: 200 }),
    get<Envelope<{ memories: Fragment[] }>>("/api/mcp/listMemories", { conversation_id: id, limit: 100 }),
    get<Envelope<Open["context"]>>(`${way(id)}/context`),
  ]);
  const injected = memories.data.memories.filter((one) => one.is_active !== undefined);
  return { conversation: known, messages: messages.data.messages, memories: injected, context: context.data };
}

/** Whether a language model answered. */
export const send = async (id: string, content: string) =>
  (await post<Envelope<{ answer: Message | null }>>(`${way(id)}/messages`, { content })).data.answer !== null;
export const prompt = (id: string, text: string) => ask("PUT", way(id), { body: { system_prompt: text } });
export const inject = (id: string, memoryId: string) => post(`${way(id)}/inject-memory`, { memoryId });
export const toggle = (id: string, memoryId: string) =>
  ask("PUT", `${way(id)}/inject-memory/${encodeURIComponent(memoryId)}/toggle`, { body: {} });
export const remove = (id: string, memoryId: string) =>
  ask("DELETE", `${way(id)}/inject-memory/${encodeURIComponent(memoryId)}`);

export async function find(query: string): Promise<Fragment[]> {
  return (await post<Envelope<{ results: Fragment[] }>>("/api/mcp/search", { query, top_k: 5 })).data.results;
}
