import { describe, expect, it } from "vitest";
import { vendorNames } from "../../api/names.ts";
import type { KubeObject } from "../../api/object.ts";
import { createCalculator } from "../calculator.ts";
import type { ServicePort } from "../model.ts";
import { ModelCopy } from "../model-copy.ts";

type Ports = Record<string, unknown>[];

const POD_KIND = { group: "", kind: "Pod" };
const node = (...addresses: string[]): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: { name: "here" },
  status: { addresses: addresses.map((address) => ({ type: "InternalIP", address })) },
});

const pod = (ports: Ports, more: object = {}): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "shop" },
  spec: { nodeName: "here", containers: [{ name: "main", ports }], ...more },
});

function nodeWith(object: KubeObject, { hostPorts = true, addresses = ["10.88.0.5", "fd88::5"] } = {}) {
  const calculator = createCalculator("here", vendorNames, { hostPorts });
  const model = new ModelCopy();
  const settle = () => {
    const delta = calculator.takeDelta();
    if (delta) model.apply(delta);
  };
  calculator.set(node("10.99.0.1"));
  calculator.set(object);
  calculator.setLocalPod("shop/web", { addresses, mac: "02:00:00:00:00:01", connected: true });
  calculator.inSync();
  settle();
  return {
    calculator,
    settle,
    rows: () => [...model.services.values()].map(shortly).sort(),
    problems: () => [...model.problems.values()].map(({ code, message }) => `${code}: ${message}`),
  };
}

/** `WHERE:PORT/PROTOCOL -> BACKEND`. */
function shortly({ nodePort, externalAddresses, port, protocol, family, localBackends }: ServicePort): string {
  const where = nodePort === port ? `any${family}` : externalAddresses.join();
  return `${where} ${port}/${protocol} -> ${localBackends.map(({ address, port }) => `${address} ${port}`).join()}`;
}

describe("host ports of a pod of this node", () => {
  it("are served at every address of the node, in each family the pod has", () => {
    const on = nodeWith(pod([{ containerPort: 8080, hostPort: 80 }, { containerPort: 9 }]));
    expect(on.rows()).toEqual(["any4 80/6 -> 10.88.0.5 8080", "any6 80/6 -> fd88::5 8080"]);
    const v4 = nodeWith(pod([{ containerPort: 8080, hostPort: 80 }]), { addresses: ["10.88.0.5"] });
    expect(v4.rows()).toEqual(["any4 80/6 -> 10.88.0.5 8080"]);
  });

  it("may differ only by address and protocol", () => {
    const on = nodeWith(
      pod([
        { containerPort: 1, hostPort: 80, hostIP: "127.0.0.1" },
        { containerPort: 2, hostPort: 80, hostIP: "10.99.0.1" },
        { containerPort: 3, hostPort: 80, hostIP: "10.99.0.1", protocol: "UDP" },
        { containerPort: 4, hostPort: 80, hostIP: "0.0.0.0", protocol: "UDP" },
      ]),
    );
    expect(on.rows()).toEqual([
      "10.99.0.1 80/17 -> 10.88.0.5 3",
      "10.99.0.1 80/6 -> 10.88.0.5 2",
      "127.0.0.1 80/6 -> 10.88.0.5 1",
      "any4 80/17 -> 10.88.0.5 4",
    ]);
  });

  it("of an address that is not the node's are reported, until the node has it", () => {
    const on = nodeWith(pod([{ containerPort: 1, hostPort: 443, hostIP: "10.99.0.9" }]));
    expect(on.rows()).toEqual([]);
    expect(on.problems()).toEqual([
      "HOST_PORT_UNSUPPORTED: host ports of this pod are not served: 10.99.0.9 is no address of this node",
    ]);
    on.calculator.set(node("10.99.0.1", "10.99.0.9"));
    on.settle();
    expect([on.rows(), on.problems()]).toEqual([["10.99.0.9 443/6 -> 10.88.0.5 1"], []]);
  });

  it("of SCTP are reported", () => {
    const on = nodeWith(pod([{ containerPort: 1, hostPort: 3868, protocol: "SCTP" }]));
    expect([on.rows(), on.problems().length]).toEqual([[], 1]);
  });

  it("of init containers count if those go on running", () => {
    const ports = [{ containerPort: 1, hostPort: 80 }];
    const initContainers = [
      { name: "once", ports: [{ containerPort: 2, hostPort: 81 }] },
      { name: "sidecar", restartPolicy: "Always", ports: [{ containerPort: 3, hostPort: 82 }] },
    ];
    const on = nodeWith(pod(ports, { initContainers }), { addresses: ["10.88.0.5"] });
    expect(on.rows()).toEqual(["any4 80/6 -> 10.88.0.5 1", "any4 82/6 -> 10.88.0.5 3"]);
  });

  it("go with the pod, and are not there where they are disabled", () => {
    const on = nodeWith(pod([{ containerPort: 1, hostPort: 80 }]));
    on.calculator.remove(POD_KIND, { namespace: "shop", name: "web" });
    on.settle();
    expect(on.rows()).toEqual([]);
    expect(nodeWith(pod([{ containerPort: 1, hostPort: 80 }]), { hostPorts: false }).rows()).toEqual([]);
  });
});
