// Places the nodes of a graph, in a thread of its own: the window stays free while thousands find their place.

import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

/** Nodes are numbers; `ends` holds the two of each link, one link after the other. */
export interface Task {
  nodes: number;
  ends: Uint32Array;
}

/** x and y of each node, and whether this is how it stays. */
export interface Placed {
  places: Float32Array;
  done: boolean;
}

const STEPS = 10; // between one look and the next

function start({ nodes, ends }: Task): Graph {
  const graph = new Graph({ type: "undirected", multi: true });
  for (let node = 0; node < nodes; node++) {
    const angle = node * 2.399963; // the golden angle spreads them evenly
    graph.addNode(node, { x: Math.sqrt(node + 1) * Math.cos(angle), y: Math.sqrt(node + 1) * Math.sin(angle) });
  }
  for (let end = 0; end < ends.length; end += 2) graph.addEdge(ends[end], ends[end + 1]);
  return graph;
}

function places(graph: Graph): Float32Array {
  const found = new Float32Array(graph.order * 2);
  graph.forEachNode((node, { x, y }) => found.set([x, y], Number(node) * 2));
  return found;
}

onmessage = ({ data }: MessageEvent<Task>) => {
  const graph = start(data);
  const rounds = data.nodes > 2000 ? 8 : 20;
  const settings = { ...forceAtlas2.inferSettings(graph), barnesHutOptimize: data.nodes > 300 };
  for (let round = 1; round <= rounds; round++) {
    forceAtlas2.assign(graph, { iterations: STEPS, settings });
    postMessage({ places: places(graph), done: round === rounds } satisfies Placed);
  }
};
