import type { Names } from "../../api/names.ts";
import type { OwnerReference } from "../../api/object.ts";
import type { FlowDiskSpec, FlowExportSpec } from "../../api/resources/flow-logs.ts";
import type { InstallationSpec } from "../../api/resources/installation.ts";
import type { DeploymentOverrides } from "../../api/resources/workload-overrides.ts";
import type { ClusterKind } from "../../api/tables/cluster-kinds.ts";

/** The parts the operator renders, each reconciled and reported on its own. */
export type Component = "network" | "ippools" | "apiserver" | "flow-logs" | "flow-ui";

/** What `effectiveInstallation` gives: the specification with every default filled in. */
export type EffectiveInstallation = InstallationSpec;

/** A key pair the operator keeps in a Secret of the system namespace (`tls.crt`, `tls.key`). */
export interface CertificateRef {
  secretName: string;
  /** Of the certificate: a new one rolls the pods that use it. */
  hash: string;
}

export type CertificateUser = "node" | "apiServer" | "kubeControllers" | "flowLogs";

/** Everything rendering depends on. Equal inputs give equal objects. */
export interface RenderInputs {
  version: string;
  kind: ClusterKind;
  installation: EffectiveInstallation;
  names: Names;
  /** The API server's real address, from the endpoint map. */
  apiEndpoint: { host: string; port: string } | undefined;
  /** How the operator's own pod resolves names; the node pods do it the same way. */
  dns: { policy?: string; config?: Record<string, unknown> } | undefined;
  /** Secrets to pull images with; the operator has copied them to the system namespace. */
  pullSecrets: readonly string[];
  certificates: Readonly<Record<CertificateUser, CertificateRef>>;
  /** Certificates of our authority, PEM. */
  caBundle: string;
  caHash: string;
  /** The resource that asked for a component; its removal takes the component with it. */
  owner: (component: Component) => OwnerReference | undefined;
  /** Pods of nodes must be able to run eBPF. */
  bpf: boolean;
  nodes: { linux: number };
  /** From the data plane configuration; the names' own path where it says nothing. */
  cgroupV2Path?: string;
  /** From the data plane configuration; the platform's where it says nothing. */
  healthPort?: number;
  /** From the data plane configuration; left out, sidecars are not served. */
  policySyncPathPrefix?: string;
  /** From the resources that ask for these parts. */
  overrides?: Partial<Record<"apiServer" | "flowLogs" | "flowUI", DeploymentOverrides>>;
  /** `FlowLogs.spec.export.otlp`. */
  flowExport?: FlowExportSpec;
  /** `FlowLogs.spec.disk`. */
  flowDisk?: FlowDiskSpec;
  /** `FlowUI.spec.notifications`. */
  uiNotifications?: "Enabled" | "Disabled";
}
