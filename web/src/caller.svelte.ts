// Who looks at the page, and what they may do. Until that is known nothing is hidden.

import type { Me } from "./native";

class Caller {
  me = $state.raw<Me | null>(null);
  writes = $derived(this.me?.role !== "reader");
  owns = $derived(this.me?.role === "owner");
}

export const caller = new Caller();
