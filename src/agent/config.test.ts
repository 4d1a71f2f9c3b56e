import { describe, expect, it } from "vitest";
import { readAgentConfig } from "./config.ts";

const read = (env: Record<string, string> = {}) => readAgentConfig({ NODENAME: "n", ...env });

describe("the first pools of plain manifests", () => {
  it("are none unless a prefix is given, and none where pods get addresses from podCIDRs", () => {
    expect(read().firstPools).toEqual([]);
    expect(read({ IPV4POOL_CIDR: "10.48.0.0/16", USE_POD_CIDR: "true" }).firstPools).toEqual([]);
  });

  it("are as the variables describe them, one of each family", () => {
    const { firstPools } = read({
      IPV4POOL_CIDR: "10.48.0.0/16",
      IPV4POOL_BLOCK_SIZE: "24",
      IPV4POOL_VXLAN: "CrossSubnet",
      IPV4POOL_NAT_OUTGOING: "false",
      IPV4POOL_NODE_SELECTOR: "zone == 'a'",
      IPV6POOL_CIDR: "fd00:48::/64",
    });
    expect(firstPools.map(({ metadata, spec }) => [metadata.name, spec])).toEqual([
      [
        "default-ipv4-ippool",
        {
          cidr: "10.48.0.0/16",
          blockSize: 24,
          vxlanMode: "CrossSubnet",
          ipipMode: "Never",
          natOutgoing: false,
          nodeSelector: "zone == 'a'",
        },
      ],
      [
        "default-ipv6-ippool",
        {
          cidr: "fd00:48::/64",
          blockSize: 122,
          vxlanMode: "Always",
          ipipMode: "Never",
          natOutgoing: false,
          nodeSelector: "all()",
        },
      ],
    ]);
  });

  it("the first pool of IPv4 may travel in IPIP, and then not in VXLAN", () => {
    const { firstPools } = read({ IPV4POOL_CIDR: "10.48.0.0/16", IPV4POOL_IPIP: "CrossSubnet" });
    expect(firstPools[0]?.spec).toMatchObject({ ipipMode: "CrossSubnet", vxlanMode: "Never" });
    expect(() => read({ IPV4POOL_CIDR: "10.48.0.0/16", IPV4POOL_IPIP: "Always", IPV4POOL_VXLAN: "Always" })).toThrow(
      expect.objectContaining({ code: "AGENT_FIRST_POOL" }),
    );
  });

  it.each([
    ["IPV4POOL_CIDR", "fd00::/64", "AGENT_ENV"],
    ["IPV4POOL_CIDR", "10.0.0.1/16", "AGENT_FIRST_POOL"],
    ["IPV4POOL_CIDR", "10.0.0.0/28", "AGENT_FIRST_POOL"],
    ["IPV4POOL_VXLAN", "Sometimes", "AGENT_ENV"],
    ["NETWORKING_BACKEND", "bird", "AGENT_ENV"],
    ["DATASTORE_TYPE", "paper", "AGENT_ENV"],
    ["USE_POD_CIDR", "perhaps", "AGENT_ENV"],
    ["IP_AUTODETECTION_METHOD", "interfaces=eth0", "AGENT_ENV"],
    ["IP_AUTODETECTION_METHOD", "interface=(", "AGENT_ENV"],
    ["IP6_AUTODETECTION_METHOD", "cidr=eth0", "AGENT_ENV"],
  ])("%s=%s ends the agent with a code", (name, value, code) => {
    expect(() => read({ [name]: value })).toThrow(expect.objectContaining({ code }));
  });
});

describe("fields of the DataplaneConfiguration in variables", () => {
  it("are read by their type", () => {
    const { configuration, unknownVariables } = read({
      DATAPLANE_BPFENABLED: "true",
      DATAPLANE_VXLANPORT: "4790",
      DATAPLANE_DEFAULTENDPOINTTOHOSTACTION: "drop",
      DATAPLANE_BPFDSROPTOUTCIDRS: "10.0.0.0/8, 192.168.0.0/16",
      DATAPLANE_FAILSAFEINBOUNDHOSTPORTS: '[{"protocol":"TCP","port":22}]',
      DATAPLANE_HEALTHENABLED_OF_OLD: "true",
    });
    expect(configuration).toEqual({
      bpfEnabled: true,
      vxlanPort: 4790,
      defaultEndpointToHostAction: "Drop",
      bpfDSROptoutCIDRs: ["10.0.0.0/8", "192.168.0.0/16"],
      failsafeInboundHostPorts: [{ protocol: "TCP", port: 22 }],
    });
    expect(unknownVariables).toEqual(["DATAPLANE_HEALTHENABLED_OF_OLD"]);
  });

  it.each([
    ["DATAPLANE_BPFENABLED", "maybe"],
    ["DATAPLANE_VXLANPORT", "a port"],
    ["DATAPLANE_VXLANPORT", "70000"],
    ["DATAPLANE_BPFEXTERNALSERVICEMODE", "Sideways"],
    ["DATAPLANE_NATOUTGOINGADDRESS", "fe80::1"],
    ["DATAPLANE_FAILSAFEINBOUNDHOSTPORTS", "tcp:22"],
  ])("%s=%s is refused as the resource would be", (name, value) => {
    expect(() => read({ [name]: value })).toThrow(expect.objectContaining({ code: "AGENT_ENV" }));
  });
});
