import { expect, it } from "vitest";
import type { BgpSession } from "../../calc/bgp/bgp-model.ts";
import { bgpTable, isEstablished, sessionStates } from "./session-states.ts";

const session = (name: string, address: string) =>
  ({ name, address, from: "rack", port: 179, asNumber: 65_001, node: null }) as BgpSession;

/** As BIRD 2.0.12 prints it. */
const SHOWN = `Name       Proto      Table      State  Since         Info
device1    Device     ---        up     20:47:37.730
kernel4    Kernel     master4    up     20:47:37.730
  Channel ipv4
    Routes:         7 imported, 9 exported, 7 preferred
peer_10_0_0_9 BGP        ---        up     20:47:38.549  Established
  BGP state:          Established
    Neighbor address: 10.0.0.9
  Channel ipv4
    State:          UP
    Routes:         2 imported, 5 exported, 1 preferred
peer_10_0_0_8 BGP        ---        start  2026-11-18 20:47:38  Active        Socket: Connection refused
  BGP state:          Active
    Neighbor address: 10.0.0.8
    Last error:       Socket: Connection refused`
  .split("\n")
  .map((text) => ({ code: 1002, text }));

it("each session has its own state and routes, and one the daemon does not know is unknown", () => {
  const wanted = [
    session("peer_10_0_0_8", "10.0.0.8"),
    session("peer_10_0_0_9", "10.0.0.9"),
    session("mesh_x", "fd00::2"),
  ];
  const states = sessionStates(wanted, SHOWN);
  expect(bgpTable(states).rows).toEqual([
    [
      "peer_10_0_0_8",
      "10.0.0.8:179",
      "65001",
      "-",
      "rack",
      "Active",
      "2026-11-18 20:47:38",
      "0",
      "0",
      "Socket: Connection refused",
    ],
    ["peer_10_0_0_9", "10.0.0.9:179", "65001", "-", "rack", "Established", "20:47:38.549", "2", "5", "-"],
    ["mesh_x", "[fd00::2]:179", "65001", "-", "rack", "unknown", "-", "0", "0", "-"],
  ]);
  expect(states.map(isEstablished)).toEqual([false, true, false]);
});
