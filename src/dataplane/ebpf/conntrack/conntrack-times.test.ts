import { describe, expect, it } from "vitest";
import { conntrackTimes } from "./conntrack-times.ts";

const kernel = (name: string) => ({ nf_conntrack_udp_timeout_stream: "180" })[name];

describe("times of connections", () => {
  it("are what is configured, in nanoseconds", () => {
    const times = conntrackTimes({ tcpEstablished: "1h30m", tcpFinsSeen: "1.5s", icmpTimeout: "1500ms" }, kernel);
    expect(times).toEqual({
      ...{ timeout_tcp_established: 5_400_000_000_000, timeout_tcp_closing: 1_500_000_000 },
      timeout_icmp: 1_500_000_000,
    });
  });

  it("follow the kernel where it is asked for, and stay where it has none", () => {
    expect(conntrackTimes({ udpTimeout: "Auto", genericTimeout: "Auto" }, kernel)).toEqual({
      timeout_udp: 180_000_000_000,
    });
  });

  it("stay as they are where nothing is configured", () => {
    expect(conntrackTimes(undefined, kernel)).toEqual({});
  });
});
