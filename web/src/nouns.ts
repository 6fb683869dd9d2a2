// The engine's values as JSON (see memory.py); what is None is left out.

export interface Memory {
  id: string;
  space: string;
  kind: "memory" | "decision" | "checkpoint";
  content: string;
  title: string;
  path: string;
  topic?: string;
  category: string;
  tags: string[];
  auto_tags: string[];
  also: string[];
  importance: number;
  confidence: number;
  source: string;
  access_level: string;
  context: { user_id: string; conversation_id?: string; session_id?: string };
  metadata: Record<string, unknown>;
  detail: Record<string, unknown>;
  flags: string[];
  provenance: { client: string; caller: string; transport: string; dialect?: string };
  status: "active" | "archived" | "deleted";
  supersedes?: string;
  superseded_by?: string;
  expires_at?: string;
  valid_from?: string;
  valid_until?: string;
  created_at: string;
  updated_at: string;
  accessed_at: string;
  access_count: number;
  version: number;
}

export interface Explanation {
  words: string[];
  wordings: string[];
  word_score: number;
  cosine?: number;
  similarity: number;
}

export type Verdict = "strong" | "weak" | "none";

export interface Hit {
  memory: Memory;
  score: number;
  verdict?: Verdict;
  explanation?: Explanation;
}

export interface Link {
  kind: string;
  source: string;
  target: string;
  score?: number;
  state: string;
  given: boolean;
  reason?: string;
  created_at: string;
}

export interface Version {
  id: string;
  memory: Memory;
  replaced_at: string;
  replaced_by: string;
  reason?: string;
}

/** Phrases that a memory had before they alone were changed. */
export interface FormerPhrases {
  also: string[];
  replaced_at: string;
  replaced_by: string;
  reason?: string;
}

/** Who was shown a memory. */
export interface Recall {
  at: string;
  user: string;
  client: string;
}

export interface Space {
  name: string;
  description?: string;
  created_at: string;
  memories: number;
}

export const CATEGORIES = [
  "fact", "preference", "instruction", "context", "relationship", "skill", "goal", "event", "custom",
];
