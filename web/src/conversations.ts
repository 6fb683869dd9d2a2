// Chimera's own routes: conversations, their messages and injected memories.

import { ask, get, post } from "./api";

interface Envelope<T> {
  data: T;
}

export interface Conversation {
  id: string;
  title?: string;
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
  messages: Message[];
  memories: Fragment[];
  context: { context: string; token_count: number; omitted: number };
}

const way = (id: string) => `/api/conversations/${encodeURIComponent(id)}`;

export async function list(): Promise<Conversation[]> {
  return (await get<Envelope<{ conversations: Conversation[] }>>("/api/conversations", { limit: 100 })).data.conversations;
}

export async function create(title: string): Promise<Conversation> {
  return (await post<Envelope<{ conversation: Conversation }>>("/api/conversations", { title })).data.conversation;
}

export async function open(id: string): Promise<Open> {
  const [messages, memories, context] = await Promise.all([
    get<Envelope<{ messages: Message[] }>>(`${way(id)}/messages`, { limit: 200 }),
    get<Envelope<{ memories: Fragment[] }>>("/api/mcp/listMemories", { conversation_id: id, limit: 100 }),
    get<Envelope<Open["context"]>>(`${way(id)}/context`),
  ]);
  const injected = memories.data.memories.filter((one) => one.is_active !== undefined);
  return { messages: messages.data.messages, memories: injected, context: context.data };
}

export const send = (id: string, content: string) => post(`${way(id)}/messages`, { content });
export const inject = (id: string, memoryId: string) => post(`${way(id)}/inject-memory`, { memoryId });
export const toggle = (id: string, memoryId: string) =>
  ask("PUT", `${way(id)}/inject-memory/${encodeURIComponent(memoryId)}/toggle`, { body: {} });
export const remove = (id: string, memoryId: string) =>
  ask("DELETE", `${way(id)}/inject-memory/${encodeURIComponent(memoryId)}`);

export async function find(query: string): Promise<Fragment[]> {
  return (await post<Envelope<{ results: Fragment[] }>>("/api/mcp/search", { query, top_k: 5 })).data.results;
}
