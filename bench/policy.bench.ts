import { vendorNames } from "../src/api/names.ts";
import type { KubeObject } from "../src/api/object.ts";
import { type Calculator, createCalculator } from "../src/calc/calculator.ts";
import { median, type Row } from "./run.ts";

const COUNT = 10_000;
const NAMESPACES = 100;
const NODES = 100;
const APPS = 50;
const CHANGES = 300;

const SERVICES = 30_000;
const BACKENDS = 4;

/** How long the calculation of one node takes in a cluster with ten thousand pods and as many policies, and for one pod more or less. */
export async function run(): Promise<Row[]> {
  const calculator = createCalculator("node-0", vendorNames);
  const started = performance.now();
  for (const object of cluster()) calculator.set(object);
  calculator.takeDelta();
  const setUp = performance.now() - started;
  const local = timesOf((round) => change(calculator, pod(0, { app: `app-${round % APPS}` })));
  const remote = timesOf((round) => change(calculator, pod(1, { app: `app-${round % APPS}` })));
  const policies = timesOf((round) => change(calculator, policy(0, round)));
  return [
    { name: `${COUNT} policies, ${COUNT} pods: first model`, value: setUp, unit: "ms" },
    { name: "a pod of this node changes its labels", value: median(local), unit: "ms" },
    { name: "a pod of another node changes its labels", value: median(remote), unit: "ms" },
    { name: "a policy changes its rules", value: median(policies), unit: "ms" },
    ...services(),
  ];
}

function services(): Row[] {
  const calculator = createCalculator("node-0", vendorNames);
  const objects = Array.from({ length: SERVICES }, (_, index) => [service(index), slice(index, 0)]).flat();
  const started = performance.now();
  for (const object of objects) calculator.set(object);
  calculator.takeDelta();
  const setUp = performance.now() - started;
  const slices = timesOf((round) => change(calculator, slice(0, round + 1)));
  return [
    { name: `${SERVICES} services with ${BACKENDS} endpoints: first model`, value: setUp, unit: "ms" },
    { name: "an endpoint of one of them changes", value: median(slices), unit: "ms" },
  ];
}

function service(index: number): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `service-${index}`, namespace: `ns-${index % NAMESPACES}` },
    spec: { clusterIP: `10.96.${index >> 8}.${index & 255}`, ports: [{ name: "http", port: 80, protocol: "TCP" }] },
  };
}

function slice(index: number, round: number): KubeObject {
  const address = (backend: number) => `10.${128 + backend}.${index >> 8}.${(index + round) & 255}`;
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `service-${index}-1`,
      namespace: `ns-${index % NAMESPACES}`,
      labels: { "kubernetes.io/service-name": `service-${index}` },
    },
    addressType: "IPv4",
    endpoints: Array.from({ length: BACKENDS }, (_, backend) => ({
      addresses: [address(backend)],
      nodeName: `node-${backend}`,
      conditions: { ready: true, serving: true, terminating: false },
    })),
    ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  };
}

function* cluster(): Generator<KubeObject> {
  for (let index = 0; index < NAMESPACES; index++) {
    yield {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: { name: `ns-${index}`, labels: { team: `team-${index % 10}` } },
    };
  }
  for (let index = 0; index < COUNT; index++) yield pod(index, { app: appOf(index) });
  for (let index = 0; index < COUNT; index++) yield policy(index, 0);
}

/** Every namespace has every application, so a pod has a few policies, as pods have. */
function appOf(index: number): string {
  return `app-${Math.floor(index / NAMESPACES) % APPS}`;
}

function pod(index: number, labels: Record<string, string>): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: `pod-${index}`, namespace: `ns-${index % NAMESPACES}`, labels },
    spec: {
      nodeName: `node-${index % NODES}`,
      containers: [{ name: "main", ports: [{ name: "http", containerPort: 80 }] }],
    },
    status: { phase: "Running", podIPs: [{ ip: `10.${index >> 14}.${(index >> 7) & 127}.${index & 127}` }] },
  };
}

function policy(index: number, round: number): KubeObject {
  const from = { podSelector: { matchLabels: { app: `app-${(index + round) % APPS}` } } };
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "NetworkPolicy",
    metadata: { name: `policy-${index}`, namespace: `ns-${index % NAMESPACES}` },
    spec: {
      podSelector: { matchLabels: { app: appOf(index) } },
      ingress: [
        { from: [from, { namespaceSelector: { matchLabels: { team: `team-${index % 10}` } } }], ports: [{ port: 80 }] },
      ],
    },
  };
}

function change(calculator: Calculator, object: KubeObject): void {
  calculator.set(object);
  calculator.takeDelta();
}

function timesOf(step: (round: number) => void): number[] {
  return Array.from({ length: CHANGES }, (_, round) => {
    const started = performance.now();
    step(round);
    return performance.now() - started;
  });
}
