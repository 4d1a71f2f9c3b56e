import { FLOW_LOGS_API, vendorNames } from "../../../api/names.ts";
import { groupVersion, type KubeObject } from "../../../api/object.ts";
import {
  type ChangedPair,
  type DeletedObject,
  FLOW_PREVIEW_KIND,
  type FlowPreview,
  type FlowPreviewSpec,
} from "../../../api/protocol/flow-preview.ts";
import { findPlace, v3Places } from "../../../api/resources/v3-places.ts";
import { NETWORK_POLICIES } from "../../../cluster/kinds.ts";
import { bytesText, endText, hitText, portText } from "../../../flows/table.ts";
import { CodedError } from "../../../kit/errors.ts";
import { findKind } from "../../../procedures/resources/find-kind.ts";
import { type ReadObject, readDocuments } from "../../../procedures/resources/read-documents.ts";
import { errors as usage } from "../../errors.ts";
import { printableLine } from "../../printable.ts";
import { print, type Table } from "../../printer.ts";
import type { Session } from "../../session.ts";
import { errors } from "./errors.ts";
import { type FlowFlags, queryOf, refuseIntent, type Words, withFlows } from "./flows.run.ts";

interface PreviewFlags extends FlowFlags {
  filename?: string[];
  delete?: string[];
}

export async function previewFlows(session: Session, flags: PreviewFlags, words: Words): Promise<void> {
  refuseIntent(session);
  const query = queryOf(words);
  const { filename = [], delete: deleted = [] } = flags;
  if (filename.length + deleted.length === 0)
    throw usage.USAGE("there is nothing to preview", "name files with -f, or objects with --delete");
  const { input } = session;
  const read = filename.length === 0 ? [] : await readDocuments(filename, input ? { stdin: input } : {});
  const targets = deleted.map(targetOf);
  await withFlows(session, flags, async (flows, signal, namespace) => {
    const spec: FlowPreviewSpec = {
      ...(query === "" ? {} : { query }),
      objects: read.map(({ object }) => placed(object, namespace)),
      delete: targets.map(({ namespaced, ...target }) => (namespaced ? { ...target, namespace } : target)),
    };
    const body = { apiVersion: groupVersion(FLOW_LOGS_API), kind: FLOW_PREVIEW_KIND, spec };
    const preview = (await flows.post("previews", body, signal).catch(withFile(read))) as FlowPreview;
    if (session.flags.output !== "table") return await print(session, preview, () => ({ columns: [], rows: [] }));
    const { changed } = preview.status;
    if (changed.length > 0) {
      await print(session, preview, () => tableOf(changed));
      session.out("\n");
    }
    session.out(`${summary(preview.status, query)}\n`);
    sayWhatIsMissing(session, preview.status);
  });
}

/** Where the server says which object is wrong, the file that it is in is said too. */
function withFile(read: readonly ReadObject[]): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof CodedError)) throw error;
    if (error.code === "FLOWS_FORBIDDEN") throw errors.FLOW_PREVIEW_FORBIDDEN(error.message);
    const found = read.find(
      ({ object: { kind, metadata } }) =>
        error.message.startsWith(kind) && error.message.includes(`"${metadata.name}"`),
    );
    if (error.code !== "FLOWS_REFUSED" || !found) throw error;
    throw errors.FLOWS_REFUSED(`${found.where}: ${error.message}`);
  };
}

const KUBERNETES_POLICY = new Set([
  ...["netpol", "networkpolicy.networking.k8s.io", "networkpolicies.networking.k8s.io"],
  ...["networkpolicy.v1.networking.k8s.io", "networkpolicies.v1.networking.k8s.io"],
]);

function targetOf(word: string): DeletedObject & { namespaced: boolean } {
  const [kind = "", name = "", ...more] = word.split("/");
  if (kind === "" || name === "" || more.length > 0) throw usage.USAGE(`"${word}" is not KIND/NAME`);
  const served = KUBERNETES_POLICY.has(kind.toLowerCase()) ? NETWORK_POLICIES : findKind(kind, vendorNames).served;
  return { apiVersion: groupVersion(served), kind: served.kind, name, namespaced: served.namespaced };
}

/** In the namespace of the command, where a file names none. */
function placed(object: KubeObject, namespace: string): KubeObject {
  const { apiVersion, kind, metadata } = object;
  const isKubernetes = kind === NETWORK_POLICIES.kind && apiVersion === groupVersion(NETWORK_POLICIES);
  const isNamespaced = isKubernetes || findPlace(v3Places(vendorNames), apiVersion, kind)?.served.namespaced === true;
  if (!isNamespaced || metadata.namespace) return object;
  return { ...object, metadata: { ...metadata, namespace } };
}

function tableOf(changed: readonly ChangedPair[]): Table {
  return {
    columns: ["NOW", "THEN", "FROM", "TO", "PORT", "CONNECTIONS", "BYTES", "DECIDED-BY"],
    rows: changed.map((pair) => [
      ...[pair.verdict.toLowerCase(), pair.then.toLowerCase(), endText(pair.from), endText(pair.to), portText(pair)],
      ...[String(pair.connections), bytesText(pair.bytes), decider(pair)],
    ]),
    optional: ["BYTES", "CONNECTIONS"],
  };
}

/** What would decide, where the verdict changes. */
function decider({ decidedBy, thenBy }: ChangedPair): string {
  const hit = thenBy ?? decidedBy;
  return (hit && hitText(hit)) || "-";
}

/** "3 of 214 pairs would change: 1 allowed would be denied, 2 denied would be allowed". */
function summary({ pairs, changed }: FlowPreview["status"], query: string): string {
  const all = `${pairs} ${pairs === 1 ? "pair" : "pairs"}`;
  const time = /\b(?:since|until):/.test(query) ? "the time that was asked for" : "the last hour";
  if (changed.length === 0) return `nothing would change in ${all} of ${time}`;
  const denied = changed.filter((pair) => pair.then === "Deny").length;
  const allowed = changed.length - denied;
  const parts = [
    ...(denied > 0 ? [`${denied} allowed would be denied`] : []),
    ...(allowed > 0 ? [`${allowed} denied would be allowed`] : []),
  ];
  return `${changed.length} of ${all} would change: ${parts.join(", ")}`;
}

function sayWhatIsMissing(session: Session, { unknown, notes }: FlowPreview["status"]): void {
  if (session.flags.quiet) return;
  for (const { pairs, reason } of unknown)
    session.err(`note: ${pairs} ${pairs === 1 ? "pair" : "pairs"} could not be asked: ${printableLine(reason)}\n`);
  for (const note of notes) session.err(`note: ${printableLine(note)}\n`);
}
