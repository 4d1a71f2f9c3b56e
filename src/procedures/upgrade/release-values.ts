import { gunzipSync } from "node:zlib";
import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { SECRETS } from "../../cluster/kinds.ts";

/** What a person gave the chart tool for a release: its own record of it, which it packs twice. */
export async function releaseValues(
  client: Client,
  release: { name: string; namespace: string },
  signal: AbortSignal,
): Promise<Record<string, unknown>> {
  const { namespace, name } = release;
  const labelSelector = `owner=helm,name=${name}`;
  const { items } = await client.list<KubeObject>(SECRETS, { namespace, labelSelector, signal });
  const revision = ({ metadata }: KubeObject) => Number(metadata.labels?.["version"] ?? 0);
  const [newest] = [...items].sort((a, b) => revision(b) - revision(a));
  const packed = (newest?.["data"] as { release?: string } | undefined)?.release;
  if (packed === undefined) return {};
  try {
    const text = gunzipSync(Buffer.from(Buffer.from(packed, "base64").toString(), "base64")).toString();
    return (JSON.parse(text) as { config?: Record<string, unknown> }).config ?? {};
  } catch {
    // Not a record we can read; the tool itself still has the values.
    return {};
  }
}
