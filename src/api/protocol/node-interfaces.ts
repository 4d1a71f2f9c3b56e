import type { KubeObject } from "../object.ts";

/** Of a Node, written by its agent: its interfaces as JSON, `[{"name":"eth0","addresses":["10.0.0.1"]}]`. */
const NODE_INTERFACES_ANNOTATION = "vendor.io/interfaces";

export interface NodeInterface {
  name: string;
  addresses: string[];
}

/** The last report of the node's agent; none if it has not reported, or it cannot be read. */
export function nodeInterfaces(node: KubeObject): NodeInterface[] {
  const text = node.metadata.annotations?.[NODE_INTERFACES_ANNOTATION];
  if (text === undefined) return [];
  try {
    const read: unknown = JSON.parse(text);
    return Array.isArray(read) ? read.filter(isInterface) : [];
  } catch {
    return [];
  }
}

export function nodeInterfacesAnnotations(interfaces: readonly NodeInterface[]): Record<string, string> {
  return { [NODE_INTERFACES_ANNOTATION]: JSON.stringify(interfaces) };
}

function isInterface(value: unknown): value is NodeInterface {
  const { name, addresses } = (value ?? {}) as Partial<NodeInterface>;
  return (
    typeof name === "string" && Array.isArray(addresses) && addresses.every((address) => typeof address === "string")
  );
}
