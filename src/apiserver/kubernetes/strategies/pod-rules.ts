import type { StatusCause } from "../../../api/status.ts";
import { quantityValue } from "../quantity.ts";
import type { Container, PodSpec, PodTemplate, Probe, Volume } from "../shapes.ts";
import {
  causes,
  dnsLabel,
  duplicate,
  forbidden,
  invalid,
  notFound,
  notNegative,
  portName,
  portNumber,
  required,
  unique,
} from "./rules.ts";

/** What is wrong with a pod spec at `path`, in a pod or a template. */
export function podSpecProblems(spec: PodSpec, path: string): StatusCause[] {
  const containers = spec.containers ?? [];
  const init = spec.initContainers ?? [];
  const volumes = new Set((spec.volumes ?? []).map((volume) => volume.name));
  return causes(
    containers.length === 0 && required(`${path}.containers`),
    volumeProblems(spec.volumes ?? [], `${path}.volumes`),
    unique(
      [...init, ...containers].map((one) => one.name),
      (i) => (i < init.length ? `${path}.initContainers[${i}].name` : `${path}.containers[${i - init.length}].name`),
    ),
    init.flatMap((one, i) => containerProblems(one, `${path}.initContainers[${i}]`, volumes)),
    containers.flatMap((one, i) => containerProblems(one, `${path}.containers[${i}]`, volumes)),
    hostPortProblems(containers, path),
    notNegative(`${path}.terminationGracePeriodSeconds`, spec.terminationGracePeriodSeconds),
  );
}

export function templateProblems(template: PodTemplate | undefined, path: string): StatusCause[] {
  return podSpecProblems(template?.spec ?? {}, `${path}.spec`);
}

function containerProblems(
  container: Container,
  path: string,
  volumes: ReadonlySet<string | undefined>,
): StatusCause[] {
  const image = container.image ?? "";
  return causes(
    dnsLabel(`${path}.name`, container.name),
    image === "" && required(`${path}.image`),
    image !== image.trim() && invalid(`${path}.image`, image, "must not have leading or trailing whitespace"),
    portProblems(container, path),
    (container.volumeMounts ?? []).flatMap(({ name }, i) =>
      name !== undefined && !volumes.has(name) ? [notFound(`${path}.volumeMounts[${i}].name`, name)] : [],
    ),
    unique(
      (container.volumeMounts ?? []).map((mount) => mount.mountPath),
      (i) => `${path}.volumeMounts[${i}].mountPath`,
    ).map((cause) => ({
      ...cause,
      reason: "FieldValueInvalid",
      message: cause.message?.replace(/^Duplicate value: (.*)$/, "Invalid value: $1: must be unique"),
    })),
    resourceProblems(container, `${path}.resources`),
    probeProblems(container.livenessProbe, `${path}.livenessProbe`, true),
    probeProblems(container.readinessProbe, `${path}.readinessProbe`, false),
    probeProblems(container.startupProbe, `${path}.startupProbe`, true),
  );
}

function portProblems(container: Container, path: string): StatusCause[] {
  const ports = container.ports ?? [];
  return causes(
    ports.flatMap((port, i) =>
      causes(
        port.containerPort === undefined || port.containerPort === 0
          ? required(`${path}.ports[${i}].containerPort`)
          : portNumber(`${path}.ports[${i}].containerPort`, port.containerPort),
        port.hostPort ? portNumber(`${path}.ports[${i}].hostPort`, port.hostPort) : [],
        port.name ? portName(`${path}.ports[${i}].name`, port.name) : [],
      ),
    ),
    unique(
      ports.map((port) => port.name),
      (i) => `${path}.ports[${i}].name`,
    ),
  );
}

function hostPortProblems(containers: readonly Container[], path: string): StatusCause[] {
  const seen = new Set<string>();
  return containers.flatMap((container, i) =>
    (container.ports ?? []).flatMap((port, j) => {
      if (!port.hostPort) return [];
      const claim = `${port.hostPort}/${port.protocol ?? "TCP"}/${(port as { hostIP?: string }).hostIP ?? ""}`;
      const again = seen.has(claim);
      seen.add(claim);
      return again ? [duplicate(`${path}.containers[${i}].ports[${j}].hostPort`, claim)] : [];
    }),
  );
}

function resourceProblems({ resources }: Container, path: string): StatusCause[] {
  const limits = resources?.limits ?? {};
  return Object.entries(resources?.requests ?? {}).flatMap(([name, amount]) => {
    const limit = limits[name];
    if (limit === undefined || quantityValue(amount) <= quantityValue(limit)) return [];
    return [invalid(`${path}.requests`, String(amount), `must be less than or equal to ${name} limit of ${limit}`)];
  });
}

function probeProblems(probe: Probe | undefined, path: string, mustSucceedOnce: boolean): StatusCause[] {
  if (!probe) return [];
  const handlers = [probe.exec, probe.httpGet, probe.tcpSocket, probe.grpc].filter((one) => one !== undefined);
  return causes(
    handlers.length === 0 && required(path, "must specify a handler type"),
    handlers.length > 1 && forbidden(path, "may not specify more than 1 handler type"),
    mustSucceedOnce &&
      (probe.successThreshold ?? 1) !== 1 &&
      invalid(`${path}.successThreshold`, probe.successThreshold, "must be 1"),
    notNegative(`${path}.timeoutSeconds`, probe.timeoutSeconds),
    notNegative(`${path}.periodSeconds`, probe.periodSeconds),
    notNegative(`${path}.failureThreshold`, probe.failureThreshold),
  );
}

function volumeProblems(volumes: readonly Volume[], path: string): StatusCause[] {
  return causes(
    volumes.flatMap((volume, i) =>
      causes(
        dnsLabel(`${path}[${i}].name`, volume.name),
        Object.keys(volume).length > 2 && forbidden(`${path}[${i}]`, "may not specify more than 1 volume type"),
      ),
    ),
    unique(
      volumes.map((volume) => volume.name),
      (i) => `${path}[${i}].name`,
    ),
  );
}
