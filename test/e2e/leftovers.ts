import type { Cluster } from "./cluster.ts";
import { NAMESPACE, podsOf } from "./workloads.ts";

/** Runs in the pod of a node's network, which has the node's files at /node. Looks for what docs/guide/install.md says is removed. */
const LOOK = `
const fs = require("fs");
const list = (path) => { try { return fs.readdirSync(path).map((name) => path + "/" + name); } catch { return []; } };
const found = [
  ...list("/sys/class/net").filter((path) => /\\/ven|vendor/.test(path)),
  ...["/etc/cni/net.d", "/opt/cni/bin", "/sys/fs/bpf", "/run", "/var/lib", "/var/run"].flatMap((path) => list("/node" + path)).filter((path) => /vendor/.test(path)),
];
console.log(JSON.stringify(found));
`;

/** Interfaces and files of the service on each node. */
export async function leftOnNodes(cluster: Cluster): Promise<string[]> {
  const found: string[] = [];
  for (const { metadata, spec } of await podsOf(cluster, "host")) {
    const text = await cluster.kubectl("exec", "-n", NAMESPACE, metadata.name, "--", "node", "-e", LOOK);
    found.push(...(JSON.parse(text) as string[]).map((path) => `${spec.nodeName}: ${path}`));
  }
  return found;
}
