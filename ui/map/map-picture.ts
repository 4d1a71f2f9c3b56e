/** What the map shows, in a plane of its own: the worker makes it, the page draws it. */
export interface MapPicture {
  boxes: readonly MapBox[];
  nodes: readonly MapNode[];
  /** Pairs of nodes, and pairs of boxes: one line each, whoever began. Denied ones come last, so that they are drawn over the others. */
  edges: readonly MapEdge[];
  lines: readonly MapEdge[];
}

export interface MapBox {
  /** Empty: of what is in no namespace. */
  namespace: string;
  x: number;
  y: number;
  width: number;
  height: number;
  workloads: number;
}

export interface MapNode {
  namespace: string;
  name: string;
  x: number;
  y: number;
  /** Index of its box. */
  box: number;
  radius: number;
}

export interface MapEdge {
  /** Indices of nodes, or of boxes. */
  a: number;
  b: number;
  /** Flows from a to b, and from b to a. */
  forth: number;
  back: number;
  bytes: number;
  denied: number;
  /** Of a rule that is looked at. */
  isLit: boolean;
}

export const NO_PICTURE: MapPicture = { boxes: [], nodes: [], edges: [], lines: [] };
