import type { Condition, KubeObject } from "../../api/object.ts";
import type { Column } from "../resource.ts";
import { ageSince } from "./age.ts";
import { AGE, CREATED_AT, count, dig, NAME, NONE, text, textAt, wide } from "./column.ts";
import { NETWORK_COLUMNS } from "./columns-network.ts";
import { POD_COLUMNS } from "./columns-pod.ts";
import { WORKLOAD_COLUMNS } from "./columns-workload.ts";

const listAt = (object: KubeObject, path: string): unknown[] => (dig(object, path) as unknown[] | undefined) ?? [];
const sizeAt = (object: KubeObject, path: string): number => Object.keys(dig(object, path) ?? {}).length;

interface Subject {
  kind?: string;
  name?: string;
  namespace?: string;
}

function subjects(binding: KubeObject, kind: string): string {
  const found = ((binding["subjects"] ?? []) as Subject[]).filter((subject) => subject.kind === kind);
  return found.map(({ name, namespace }) => (kind === "ServiceAccount" ? `${namespace}/${name}` : name)).join(", ");
}

const BINDING: readonly Column[] = [
  NAME,
  text(
    "Role",
    (binding) => `${textAt("roleRef.kind", "")(binding, EPOCH)}/${textAt("roleRef.name", "")(binding, EPOCH)}`,
  ),
  AGE,
  wide(text("Users", (binding) => subjects(binding, "User"))),
  wide(text("Groups", (binding) => subjects(binding, "Group"))),
  wide(text("ServiceAccounts", (binding) => subjects(binding, "ServiceAccount"))),
];
const EPOCH = new Date(0);

const ACCESS: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

const accessModes = (object: KubeObject, path: string): string =>
  listAt(object, path)
    .map((mode) => ACCESS[String(mode)] ?? "")
    .join(",");

function eventAge(path: string) {
  return (event: KubeObject, now: Date): string => {
    const series = dig(event, "series.lastObservedTime");
    const seen = (path === "lastTimestamp" ? series : undefined) ?? event[path] ?? event["eventTime"];
    return ageSince((seen as string | undefined) ?? event.metadata.creationTimestamp, now);
  };
}

function eventColumns(subject: string, message: string, source: string): readonly Column[] {
  return [
    text("Last Seen", eventAge("lastTimestamp")),
    text("Type", textAt("type", "")),
    text("Reason", textAt("reason", "")),
    text("Object", (event) => {
      const { kind = "", name = "" } = (event[subject] ?? {}) as Subject;
      return name === "" ? kind.toLowerCase() : `${kind.toLowerCase()}/${name}`;
    }),
    wide(text("Subobject", textAt(`${subject}.fieldPath`, ""))),
    wide(
      text("Source", (event) => {
        const { component, host } = (event[source] ?? {}) as { component?: string; host?: string };
        const who = component || textAt("reportingComponent", "")(event, EPOCH);
        return host ? `${who}, ${host}` : String(who);
      }),
    ),
    text("Message", (event) => textAt(message, "")(event, EPOCH)),
    wide(text("First Seen", eventAge("firstTimestamp"))),
    wide(count("Count", (event) => Number(dig(event, "series.count") ?? event["count"] ?? 1))),
    wide({ ...NAME }),
  ];
}

const STORAGE_COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  PersistentVolume: [
    NAME,
    text("Capacity", textAt("spec.capacity.storage", "")),
    text("Access Modes", (volume) => accessModes(volume, "spec.accessModes")),
    text("Reclaim Policy", textAt("spec.persistentVolumeReclaimPolicy", "")),
    text("Status", (volume) =>
      volume.metadata.deletionTimestamp ? "Terminating" : textAt("status.phase", "")(volume, EPOCH),
    ),
    text("Claim", (volume) => {
      const { namespace, name } = (dig(volume, "spec.claimRef") ?? {}) as Subject;
      return name === undefined ? "" : `${namespace}/${name}`;
    }),
    text("StorageClass", textAt("spec.storageClassName", "")),
    text("VolumeAttributesClass", textAt("spec.volumeAttributesClassName", "<unset>")),
    text("Reason", textAt("status.reason", "")),
    AGE,
    wide(text("VolumeMode", textAt("spec.volumeMode", "<unset>"))),
  ],
  PersistentVolumeClaim: [
    NAME,
    text("Status", (claim) =>
      claim.metadata.deletionTimestamp ? "Terminating" : textAt("status.phase", "")(claim, EPOCH),
    ),
    text("Volume", textAt("spec.volumeName", "")),
    text("Capacity", textAt("status.capacity.storage", "")),
    text("Access Modes", (claim) => accessModes(claim, "status.accessModes")),
    text("StorageClass", textAt("spec.storageClassName", "")),
    text("VolumeAttributesClass", textAt("spec.volumeAttributesClassName", "<unset>")),
    AGE,
    wide(text("VolumeMode", textAt("spec.volumeMode", "<unset>"))),
  ],
  StorageClass: [
    NAME,
    text("Provisioner", textAt("provisioner", "")),
    text("ReclaimPolicy", textAt("reclaimPolicy", "Delete")),
    text("VolumeBindingMode", textAt("volumeBindingMode", "Immediate")),
    { ...text("AllowVolumeExpansion", (object) => object["allowVolumeExpansion"] === true), type: "boolean" },
    AGE,
  ],
  CSIDriver: [
    NAME,
    { ...text("AttachRequired", (driver) => dig(driver, "spec.attachRequired") !== false), type: "boolean" },
    { ...text("PodInfoOnMount", (driver) => dig(driver, "spec.podInfoOnMount") === true), type: "boolean" },
    { ...text("StorageCapacity", (driver) => dig(driver, "spec.storageCapacity") === true), type: "boolean" },
    text("Modes", (driver) => listAt(driver, "spec.volumeLifecycleModes").join(",") || NONE),
    AGE,
  ],
  CSINode: [NAME, count("Drivers", (node) => listAt(node, "spec.drivers").length), AGE],
};

const OTHER_COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Pod: POD_COLUMNS,
  Namespace: [NAME, text("Status", textAt("status.phase", ""), "Whether the namespace takes new objects."), AGE],
  ConfigMap: [NAME, count("Data", (map) => sizeAt(map, "data") + sizeAt(map, "binaryData"), "Number of entries."), AGE],
  Secret: [
    NAME,
    text("Type", textAt("type", ""), "What the secret is for."),
    count("Data", (secret) => sizeAt(secret, "data"), "Number of entries."),
    AGE,
  ],
  ServiceAccount: [NAME, count("Secrets", (account) => listAt(account, "secrets").length), AGE],
  Event: eventColumns("involvedObject", "message", "source"),
  "events.k8s.io/Event": eventColumns("regarding", "note", "deprecatedSource"),
  Role: [NAME, CREATED_AT],
  ClusterRole: [NAME, CREATED_AT],
  RoleBinding: BINDING,
  ClusterRoleBinding: BINDING,
  LimitRange: [NAME, CREATED_AT],
  CustomResourceDefinition: [NAME, CREATED_AT],
  APIService: [
    NAME,
    text("Service", (service) => {
      const { namespace, name } = (dig(service, "spec.service") ?? {}) as Subject;
      return name === undefined ? "Local" : `${namespace}/${name}`;
    }),
    text("Available", (service) => {
      const available = (listAt(service, "status.conditions") as Condition[]).find((one) => one.type === "Available");
      if (!available) return "Unknown";
      return available.status === "True" ? "True" : `${available.status} (${available.reason ?? ""})`;
    }),
    AGE,
  ],
  MutatingWebhookConfiguration: [NAME, count("Webhooks", (object) => listAt(object, "webhooks").length), AGE],
  ValidatingWebhookConfiguration: [NAME, count("Webhooks", (object) => listAt(object, "webhooks").length), AGE],
};

const COLUMNS = { ...WORKLOAD_COLUMNS, ...NETWORK_COLUMNS, ...STORAGE_COLUMNS, ...OTHER_COLUMNS };

/** The columns `kubectl get` shows for a kind; name and age where it has no others. */
export function columnsOf(group: string, kind: string): readonly Column[] {
  return COLUMNS[`${group}/${kind}`] ?? COLUMNS[kind] ?? [NAME, AGE];
}
