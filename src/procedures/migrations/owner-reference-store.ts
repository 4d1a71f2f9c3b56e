import { isDeepStrictEqual } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import type { Names } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import type { Client } from "../../cluster/client.ts";
import { isNotFound } from "../../cluster/failures.ts";
import { SECRETS } from "../../cluster/kinds.ts";
import type { OwnedThroughV3 } from "../observation.ts";

const NAME = "vendorctl-owner-references";
const LABELS = { "app.kubernetes.io/managed-by": "vendorctl", "vendorctl/holds": "owner-references" };
const SELECTOR = Object.entries(LABELS)
  .map(([key, value]) => `${key}=${value}`)
  .join(",");
/** Of the compressed bytes in one Secret: as text they grow by a third, and an object may have a little more than a million. */
const PART_BYTES = 700_000;

/**
 * The references as they were before they were removed, kept in the cluster between the two halves of the migration, which may be two runs
 * by two users. Entries are only added until all of them have been restored: a second run finds nothing to save, and
 * must not make us forget the first.
 */
export class OwnerReferenceStore {
  readonly #client: Client;
  readonly #namespace: string;

  constructor(client: Client, names: Names) {
    this.#client = client;
    this.#namespace = names.namespaces.orchestratorSystem;
  }

  async read(): Promise<OwnedThroughV3[]> {
    const parts = await this.#parts();
    if (parts.length === 0) return [];
    const bytes = Buffer.concat(parts.map(({ data }) => Buffer.from(data?.["references"] ?? "", "base64")));
    return JSON.parse(gunzipSync(bytes).toString()) as OwnedThroughV3[];
  }

  /** Adds what is not there yet; answers with everything. */
  async add(found: readonly OwnedThroughV3[]): Promise<OwnedThroughV3[]> {
    const saved = await this.read();
    const all = merged(saved, found);
    // A run that was cut off may have left an older copy behind; writing again takes it away.
    const copies = new Set((await this.#all()).map(generationOf)).size;
    if (!isDeepStrictEqual(all, saved) || copies > 1) await this.write(all);
    return all;
  }

  /**
   * In place of what is there. The new parts are written before old ones go, under a generation of their own, so that a run that is
   * cut off leaves at least one whole copy; a reader takes the newest whole one.
   */
  async write(references: readonly OwnedThroughV3[]): Promise<void> {
    const old = await this.#all();
    const generation = Math.max(0, ...old.map(generationOf)) + 1;
    const bytes = references.length === 0 ? Buffer.alloc(0) : gzipSync(JSON.stringify(references));
    const count = Math.ceil(bytes.length / PART_BYTES);
    for (let part = 0; part < count; part++) {
      const data = { references: bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES).toString("base64") };
      const annotations = { "vendorctl/parts": String(count), "vendorctl/part": String(part) };
      const metadata = {
        name: `${NAME}-${generation}-${part}`,
        namespace: this.#namespace,
        labels: LABELS,
        annotations,
      };
      await this.#client.create(SECRETS, { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data } as Part);
    }
    for (const { metadata } of old) {
      await this.#client.delete(SECRETS, metadata).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
  }

  async #all(): Promise<Part[]> {
    const { items } = await this.#client.list<Part>(SECRETS, { namespace: this.#namespace, labelSelector: SELECTOR });
    return items;
  }

  async #parts(): Promise<Part[]> {
    const byGeneration = new Map<number, Part[]>();
    for (const part of await this.#all()) {
      const generation = generationOf(part);
      byGeneration.set(generation, [...(byGeneration.get(generation) ?? []), part]);
    }
    const [newest] = [...byGeneration].filter(([, parts]) => isWhole(parts)).sort(([a], [b]) => b - a);
    return (newest?.[1] ?? []).sort((a, b) => partOf(a) - partOf(b));
  }
}

interface Part extends KubeObject {
  data?: Record<string, string>;
}

function isWhole(parts: readonly Part[]): boolean {
  return parts.length === Number(parts[0]?.metadata.annotations?.["vendorctl/parts"]);
}

function generationOf({ metadata }: Part): number {
  return Number(metadata.name.slice(NAME.length + 1).split("-")[0]);
}

function partOf({ metadata }: Part): number {
  return Number(metadata.annotations?.["vendorctl/part"]);
}

/** Of two entries for the same reference the newer stays: the object may have been created again since it was first read. */
function merged(saved: readonly OwnedThroughV3[], found: readonly OwnedThroughV3[]): OwnedThroughV3[] {
  const byKey = new Map([...saved, ...found].map((entry) => [referenceKey(entry), entry]));
  return [...byKey.values()];
}

function referenceKey({ apiVersion, kind, namespace = "", name, reference }: OwnedThroughV3): string {
  return [apiVersion, kind, namespace, name, reference.apiVersion, reference.kind, reference.name].join("\0");
}
