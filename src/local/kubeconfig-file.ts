import { stringify } from "yaml";
import type { ClusterKeys } from "./certificates.ts";

/** What kubectl needs to reach a cluster as its administrator. */
export function kubeconfigFor(cluster: string, server: string, keys: Pick<ClusterKeys, "authority" | "admin">): string {
  const context = `vendor-${cluster}`;
  const user = `${context}-admin`;
  return stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      { name: context, cluster: { server, "certificate-authority-data": base64(keys.authority.certificate) } },
    ],
    users: [
      {
        name: user,
        user: {
          "client-certificate-data": base64(keys.admin.certificate),
          "client-key-data": base64(keys.admin.key),
        },
      },
    ],
    contexts: [{ name: context, context: { cluster: context, user } }],
    "current-context": context,
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
