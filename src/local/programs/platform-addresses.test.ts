import { describe, expect, it } from "vitest";
import { type PlatformProfileOptions, platformProfile } from "../platform-profile.ts";
import { apiRouteFailure, type Caller } from "./api-route.ts";
import { platformAddresses, platformServesClusterIP } from "./platform-addresses.ts";

const options: PlatformProfileOptions = {
  name: "demo",
  nodes: 2,
  proxy: undefined,
  oldNodes: 0,
  windowsNodes: 0,
  apiAddress: { host: "127.0.0.1", port: 7001 },
  dualStack: false,
};
const plain: Caller = { hostNetwork: false, nameservers: [], clusterDns: true, servicesWork: false };
const CLOUD_DNS = { ...plain, nameservers: ["169.254.169.253"] };
const ON_NODE = { ...plain, hostNetwork: true };

/** What a person writes into the endpoint map on each kind of cluster, and which pods it works for without a service proxy. */
const ROWS: [kind: string, host: string, port: number, plainPod: boolean, needs: Caller][] = [
  ["generic", "api.demo.internal", 7001, true, plain],
  ["iac", "api.internal.demo", 7001, false, CLOUD_DNS],
  ["openshift", "api-int.demo.cluster.internal", 6443, true, plain],
  ["eks", "demo.gr7.eu-west-1.eks.internal", 443, false, CLOUD_DNS],
  ["mke", "proxy.local", 6444, false, ON_NODE],
];

describe("the API server's address by cluster kind", () => {
  it.each(ROWS)("%s: %s:%i", (kind, host, port, plainPod, needs) => {
    const addresses = platformAddresses(platformProfile(kind), options);
    expect(apiRouteFailure({ host, port }, addresses, needs)).toBeUndefined();
    expect(apiRouteFailure({ host, port }, addresses, plain)).toBe(plainPod ? undefined : "ENOTFOUND");
    expect(apiRouteFailure({ host, port: 1 }, addresses, needs)).toBe("ECONNREFUSED");
    expect(apiRouteFailure({ host: addresses.clusterIPs[0]!, port: 443 }, addresses, needs)).toBe("EHOSTUNREACH");
  });

  it("aks: the name its cluster information gives, on 443", () => {
    const aks = platformProfile("aks");
    const address = aks.endpoint(options);
    expect(address.port).toBe(443);
    expect(apiRouteFailure(address, platformAddresses(aks, options), plain)).toBeUndefined();
  });

  it("only the OpenShift-like platform serves the cluster IP by itself", () => {
    const kinds = ["generic", "iac", "openshift", "aks", "eks", "mke"].filter((kind) =>
      platformServesClusterIP(platformProfile(kind)),
    );
    expect(kinds).toEqual(["openshift"]);
  });
});
