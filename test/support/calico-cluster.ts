import { calicoNames } from "../../src/api/names.ts";
import { groupVersion, type KubeObject } from "../../src/api/object.ts";
import type { Client } from "../../src/cluster/client.ts";
import { createInformer } from "../../src/cluster/informer.ts";

const names = calicoNames;
const OPERATOR = groupVersion(names.groups.operator);
const STORED = groupVersion(names.groups.stored);

/** What a cluster of the public system has, as far as a switch looks at it. */
export async function seedCalico(client: Client): Promise<void> {
  for (const object of objects()) await client.create(await client.resourceFor(object), object);
  const status = await client.resourceFor({ apiVersion: OPERATOR, kind: names.kinds.status.kind });
  await client.patch(
    status,
    { name: names.statuses.network },
    { type: "merge", patch: available(1) },
    { subresource: "status" },
  );
}

/** A small stand-in for that system's operator: turns its switch as it is asked, and then says that all is well. */
export function startCalicoOperator(client: Client): { stop(): Promise<void> } {
  const kind = (apiVersion: string, noun: keyof typeof names.kinds) =>
    client.resourceFor({ apiVersion, kind: names.kinds[noun].kind });
  const working = (async () => {
    const [installations, configurations, statuses] = await Promise.all([
      kind(OPERATOR, "installation"),
      kind(STORED, "dataplaneConfiguration"),
      kind(OPERATOR, "status"),
    ]);
    const informer = createInformer<KubeObject>(client, installations);
    let last = Promise.resolve();
    informer.onChange(({ object }) => {
      const { spec, metadata } = object as KubeObject & { spec: { calicoNetwork?: { linuxDataplane?: string } } };
      const bpfEnabled = spec.calicoNetwork?.linuxDataplane === "BPF";
      last = last.then(async () => {
        await client.patch(configurations, { name: "default" }, { type: "merge", patch: { spec: { bpfEnabled } } });
        const patch = available(metadata.generation ?? 1);
        await client.patch(
          statuses,
          { name: names.statuses.network },
          { type: "merge", patch },
          { subresource: "status" },
        );
      });
    });
    return {
      stop: async () => {
        await informer.stop();
        await last;
      },
    };
  })();
  return { stop: async () => (await working).stop() };
}

function available(observedGeneration: number): object {
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: "AllObjectsAvailable",
    message: "All objects are available",
    observedGeneration,
  });
  return {
    status: {
      conditions: [condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False")],
    },
  };
}

function objects(): KubeObject[] {
  const namespace = (name: string): KubeObject => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
  const own = (apiVersion: string, kind: string, name: string, spec: object): KubeObject => ({
    apiVersion,
    kind,
    metadata: { name },
    spec,
  });
  const { kinds, namespaces } = names;
  return [
    definition("operator", kinds.installation),
    definition("operator", kinds.status),
    definition("stored", kinds.dataplaneConfiguration),
    namespace(namespaces.operator),
    namespace(namespaces.system),
    workload("Deployment", namespaces.operator, names.workloads.operator),
    workload("DaemonSet", namespaces.system, names.workloads.node),
    own(OPERATOR, kinds.installation.kind, "default", {
      variant: names.variant,
      calicoNetwork: { linuxDataplane: "Iptables", hostPorts: "Enabled" },
    }),
    own(OPERATOR, kinds.status.kind, names.statuses.network, {}),
    own(STORED, kinds.dataplaneConfiguration.kind, "default", { bpfEnabled: false }),
  ];
}

function definition(group: "operator" | "stored", { kind, plural }: { kind: string; plural: string }): KubeObject {
  const { group: name, version } = names.groups[group];
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${name}` },
    spec: {
      group: name,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      scope: "Cluster",
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
        },
      ],
    },
  };
}

function workload(kind: "Deployment" | "DaemonSet", namespace: string, name: string): KubeObject {
  const labels = { "k8s-app": name };
  const containers = [{ name, image: `registry.local/${name}:v3.31.3` }];
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name, namespace },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers, tolerations: [{ operator: "Exists" }] } },
    },
  };
}
