import type { Layout } from "../../releases/layout.ts";
import { errors } from "./errors.ts";

/** How an older version was put into the cluster, and what follows from it. */
interface MethodRow extends Layout {
  /** The same way with the etcd datastore, where there was one. */
  onEtcd?: string;
  /** The manager of the first writes, as in the object's managed fields. */
  manager: "kubectl-create" | "helm" | "kubectl-client-side-apply";
}

const applied = { by: "manifest", manager: "kubectl-client-side-apply" } as const;

export const INSTALL_METHODS = {
  operator: { by: "operator", datastore: "api", networking: "own", manager: "kubectl-create" },
  chart: { by: "operator", datastore: "api", networking: "own", manager: "helm" },
  manifest: { ...applied, datastore: "api", networking: "own", onEtcd: "manifest-etcd" },
  "manifest-canal": { ...applied, datastore: "api", networking: "overlay", onEtcd: "manifest-canal-etcd" },
  "manifest-policy-only": { ...applied, datastore: "api", networking: "foreign" },
  "manifest-etcd": { ...applied, datastore: "etcd", networking: "own", onEtcd: "manifest-etcd" },
  "manifest-canal-etcd": { ...applied, datastore: "etcd", networking: "overlay", onEtcd: "manifest-canal-etcd" },
} as const satisfies Record<string, MethodRow>;

export type InstallMethod = keyof typeof INSTALL_METHODS;

/** The requested method. On the etcd datastore there is only that of the plain manifests. */
export function installMethod(text: string | undefined, datastore: "api" | "etcd" | undefined): InstallMethod {
  const asked = text ?? (datastore === "etcd" ? "manifest" : "operator");
  if (!isMethod(asked)) throw errors.INSTALL_METHOD_UNKNOWN(asked, Object.keys(INSTALL_METHODS).join(", "));
  if (datastore !== "etcd") return asked;
  const { onEtcd }: MethodRow = INSTALL_METHODS[asked];
  if (onEtcd === undefined || !isMethod(onEtcd)) throw errors.INSTALL_METHOD_NOT_ON_ETCD(asked);
  return onEtcd;
}

function isMethod(text: string): text is InstallMethod {
  return Object.hasOwn(INSTALL_METHODS, text);
}
