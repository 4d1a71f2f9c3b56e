import { vendorNames } from "../../src/api/names.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { Admission } from "../../src/apiserver/call.ts";
import { podStrategy } from "../../src/apiserver/kubernetes/strategies/pod.ts";
import { CRDS } from "../../src/cluster/kinds.ts";
import { findRelease } from "../../src/releases/old-release.ts";
import type { ManifestFile } from "../../src/releases/published.ts";
import { publishedText } from "../../src/releases/published-text.ts";
import { documents, manifest } from "../support/operator-manifests.ts";

interface Variable {
  name: string;
  value?: string;
  valueFrom?: { configMapKeyRef?: { name: string; key: string } };
}

interface Container {
  name: string;
  image: string;
  env?: Variable[];
}

interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  volumes?: object[];
}

/** A manifest of an older release, and what it takes to run today's programs in its place. */
export interface OlderRelease {
  version: string;
  /** The file as that release published it. */
  text: string;
  /** Its pods run the containers of today's file, with what the older file sets, under its own images. */
  admission: Admission;
  /** What today's programs need beyond it: rights, and definitions that came later. */
  needs: KubeObject[];
}

export function olderRelease(file: ManifestFile, line: string): OlderRelease {
  const found = findRelease(line);
  if (found.is !== "known") throw new Error(`${line} is not known`);
  const { tag } = found.release;
  const text = publishedText(file, found.release);
  const [before, objects] = [documents(text), documents(manifest(vendorNames.manifests[file]))];
  const names = new Set(before.map(({ kind, metadata }) => `${kind} ${metadata.name}`));
  const isLater = ({ kind, metadata }: KubeObject) => kind === CRDS.kind && !names.has(`${kind} ${metadata.name}`);
  return {
    version: tag,
    text,
    admission: {
      admit({ kind, operation, subresource, object }) {
        if (kind.kind !== "Pod" || operation !== "CREATE" || subresource !== "") return;
        const older = object["spec"] as PodSpec;
        if (!older.containers.some(({ image }) => image.endsWith(`:${tag}`))) return;
        const app = object.metadata.labels?.["k8s-app"];
        const today = objects.map(templateOf).find((template) => template?.metadata.labels["k8s-app"] === app);
        if (!today) return;
        Object.assign(older, played(older, today.spec, tag, objects));
        podStrategy.setDefaults?.(object);
      },
    },
    needs: [...objects.filter(isLater), ...objects.filter(({ kind }) => kind.includes("Role")).map(underAnotherName)],
  };
}

function templateOf({ spec }: KubeObject): { metadata: { labels: Record<string, string> }; spec: PodSpec } | undefined {
  return (spec as { template?: ReturnType<typeof templateOf> } | undefined)?.template;
}

function played(older: PodSpec, today: PodSpec, tag: string, objects: readonly KubeObject[]): PodSpec {
  const [main] = older.containers as [Container];
  /** A rollback waits for pods with the images of the older template, in its order. */
  const asOlder = (container: Container, place?: number): Container => {
    const same = older.containers.find(({ name }) => name === container.name);
    const { image } = same ?? (place === undefined ? main : (older.containers[place] ?? main));
    const env = new Map((container.env ?? []).map((variable) => [variable.name, literal(variable, objects)]));
    for (const variable of same?.env ?? []) env.set(variable.name, variable);
    if (env.has("VENDOR_VERSION")) env.set("VENDOR_VERSION", { name: "VENDOR_VERSION", value: tag });
    return { ...container, image, env: [...env.values()] };
  };
  const { initContainers, containers, volumes } = structuredClone(today);
  return {
    containers: containers.map((container, place) => asOlder(container, place)),
    ...(initContainers && { initContainers: initContainers.map((container) => asOlder(container)) }),
    ...(volumes && { volumes }),
  };
}

/** Where etcd is, the older ConfigMap says, as somebody edited it. */
const OF_ETCD = /^etcd_/;

/** The older ConfigMap lacks some of today's keys. */
function literal(variable: Variable, objects: readonly KubeObject[]): Variable {
  const ref = variable.valueFrom?.configMapKeyRef;
  if (!ref || OF_ETCD.test(ref.key)) return variable;
  const map = objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === ref.name);
  const value = (map?.["data"] as Record<string, string> | undefined)?.[ref.key];
  return value === undefined ? variable : { name: variable.name, value };
}

function underAnotherName(object: KubeObject): KubeObject {
  const name = `played-${object.metadata.name}`;
  const roleRef = object["roleRef"] as { name: string } | undefined;
  return {
    ...object,
    metadata: { ...object.metadata, name },
    ...(roleRef && { roleRef: { ...roleRef, name: `played-${roleRef.name}` } }),
  };
}
