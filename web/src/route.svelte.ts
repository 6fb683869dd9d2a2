// Where one is: #/memories/mem_…?q=… A link is a plain <a>, so back, forward and "open in a new tab" work.

export interface Place {
  view: string;
  id: string;
  query: URLSearchParams;
}

/** As it is where `hash` did not write it. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function read(): Place {
  const [way = "", search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...rest] = way.split("/");
  return { view: view || "search", id: decoded(rest.join("/")), query: new URLSearchParams(search) };
}

export const place = $state<{ now: Place }>({ now: read() });

let visit = 0;
/** Goes up with every step. Not reactive: asking where one is must not make a view follow the address. */
export const visited = () => visit;

addEventListener("hashchange", () => {
  visit++;
  place.now = read();
});

export function go(view: string, id = "", query: Record<string, string> = {}): void {
  location.hash = hash(view, id, query);
}

export function hash(view: string, id = "", query: Record<string, string> = {}): string {
  const search = new URLSearchParams(query).toString();
  return `#/${view}${id ? `/${encodeURIComponent(id)}` : ""}${search ? `?${search}` : ""}`;
}

/** Change the query without leaving a trace in the history: typing is not travelling. */
export function retouch(query: Record<string, string>): void {
  const kept = Object.fromEntries(Object.entries(query).filter(([, value]) => value));
  history.replaceState(null, "", hash(place.now.view, place.now.id, kept));
}
