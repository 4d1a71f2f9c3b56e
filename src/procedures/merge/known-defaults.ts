import { isDeepStrictEqual as same } from "node:util";

/** Values the orchestrator's API server fills in by itself, by the name of the field. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  // Pods.
  restartPolicy: ["Always"],
  dnsPolicy: ["ClusterFirst"],
  schedulerName: ["default-scheduler"],
  securityContext: [{}],
  terminationGracePeriodSeconds: [30],
  enableServiceLinks: [true],
  creationTimestamp: [null],
  // Containers.
  terminationMessagePath: ["/dev/termination-log"],
  terminationMessagePolicy: ["File"],
  imagePullPolicy: ["IfNotPresent", "Always"],
  resources: [{}],
  timeoutSeconds: [1],
  periodSeconds: [10],
  successThreshold: [1],
  failureThreshold: [3],
  scheme: ["HTTP"],
  protocol: ["TCP"],
  apiVersion: ["v1"],
  // Volumes.
  defaultMode: [420],
  type: ["", "ClusterIP"],
  // Workloads and services.
  revisionHistoryLimit: [10],
  progressDeadlineSeconds: [600],
  replicas: [1],
  maxSurge: ["25%", 0],
  maxUnavailable: ["25%"],
  sessionAffinity: ["None"],
  internalTrafficPolicy: ["Cluster"],
  ipFamilyPolicy: ["SingleStack"],
  podManagementPolicy: ["OrderedReady"],
  minReadySeconds: [0],
};

/** Whether a field has its default value; `sidecars` are its sibling fields. */
export function isDefault(name: string, value: unknown, beside: Readonly<Record<string, unknown>>): boolean {
  // The old name of the account, and the host port of a pod in the host's network, repeat a sibling field.
  if (name === "serviceAccount") return value === beside["serviceAccountName"];
  if (name === "hostPort") return value === beside["containerPort"];
  return DEFAULTS[name]?.some((one) => same(one, value)) ?? false;
}
