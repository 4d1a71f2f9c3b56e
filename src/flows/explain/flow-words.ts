import type { FlowEnd, FlowKey } from "../../api/protocol/flow.ts";

/** "shop/web", "node a", "a public address". */
export function nameOf({ type, namespace, name }: FlowEnd): string {
  if (type === "Outside") return `a ${name} address`;
  if (type === "Node") return `node ${name}`;
  return namespace === "" ? name : `${namespace}/${name}`;
}

/** "shop/web to pay/db on TCP port 5432". */
export function pairText({ from, to, protocol, port }: FlowKey): string {
  const on = port === 0 ? `by ${protocol}` : `on ${protocol} port ${port}`;
  return `${nameOf(from)} to ${nameOf(to)} ${on}`;
}
