import { expect, it } from "vitest";
import { autodetectionMethod } from "./address-autodetection.ts";

it.each([
  [undefined, undefined],
  [{ firstFound: true }, "first-found"],
  [{ firstFound: false }, undefined],
  [{ orchestrator: "NodeInternalIP" as const }, "orchestrator-internal-ip"],
  [{ interface: "eth.*" }, "interface=eth.*"],
  [{ skipInterface: "^br-.*" }, "skip-interface=^br-.*"],
  [{ canReach: "8.8.8.8" }, "can-reach=8.8.8.8"],
  [{ cidrs: ["10.0.0.0/8", "192.168.0.0/16"] }, "cidr=10.0.0.0/8,192.168.0.0/16"],
])("%j is told to the agent as %s", (method, word) => expect(autodetectionMethod(method)).toBe(word));
