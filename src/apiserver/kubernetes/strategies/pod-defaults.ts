import type { Container, PodSpec, Probe, Volume } from "../shapes.ts";

const READABLE = 0o644;

/** What every pod spec gets, in a pod or in a workload's template. */
export function defaultPodSpec(spec: PodSpec): void {
  spec.restartPolicy ||= "Always";
  spec.dnsPolicy ||= "ClusterFirst";
  spec.terminationGracePeriodSeconds ??= 30;
  spec.securityContext ??= {};
  spec.schedulerName ||= "default-scheduler";
  // Two names for one field: whichever is written, both are read.
  const account = spec.serviceAccountName || spec.serviceAccount;
  if (account) {
    spec.serviceAccountName = account;
    spec.serviceAccount = account;
  }
  for (const container of allContainers(spec)) defaultContainer(container, spec.hostNetwork === true);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
}

/** What only a pod gets: its template leaves these open. */
export function defaultPod(spec: PodSpec): void {
  spec.enableServiceLinks ??= true;
  for (const { resources } of allContainers(spec)) {
    if (!resources?.limits) continue;
    resources.requests = { ...resources.limits, ...resources.requests };
  }
}

export function allContainers(spec: PodSpec): Container[] {
  return [...(spec.initContainers ?? []), ...(spec.containers ?? [])];
}

function defaultContainer(container: Container, hostNetwork: boolean): void {
  container.terminationMessagePath ||= "/dev/termination-log";
  container.terminationMessagePolicy ||= "File";
  container.imagePullPolicy ||= pullPolicy(container.image ?? "");
  container.resources ??= {};
  for (const port of container.ports ?? []) if (hostNetwork) port.hostPort ||= port.containerPort;
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe) defaultProbe(probe);
  }
  for (const hook of [container.lifecycle?.postStart, container.lifecycle?.preStop]) if (hook) defaultAction(hook);
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ||= "v1";
  }
}

/** An image that may change under the same name is pulled every time. */
function pullPolicy(image: string): string {
  if (image.includes("@")) return "IfNotPresent";
  const tag = /:([^/:]+)$/.exec(image)?.[1];
  return tag === undefined || tag === "latest" ? "Always" : "IfNotPresent";
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  defaultAction(probe);
}

function defaultAction(action: Probe): void {
  if (action.httpGet) {
    action.httpGet.path ||= "/";
    action.httpGet.scheme ||= "HTTP";
  }
  if (action.grpc) action.grpc.service ??= "";
}

function defaultVolume(volume: Volume): void {
  if (Object.keys(volume).every((key) => key === "name")) volume.emptyDir = {};
  for (const source of [volume.secret, volume.configMap, volume.downwardAPI, volume.projected]) {
    if (source) source.defaultMode ??= READABLE;
  }
  if (volume.hostPath) volume.hostPath.type ??= "";
  for (const source of volume.projected?.sources ?? []) {
    if (source.serviceAccountToken) source.serviceAccountToken.expirationSeconds ??= 3600;
  }
  const items = [volume.downwardAPI, ...(volume.projected?.sources ?? []).map((source) => source.downwardAPI)];
  for (const { fieldRef } of items.flatMap((one) => one?.items ?? [])) if (fieldRef) fieldRef.apiVersion ||= "v1";
}
