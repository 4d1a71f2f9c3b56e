import { expect, it } from "vitest";
import { fixIn, withFix } from "./status-message.ts";

it("a fix is read from the message it was written into, without its full stop", () => {
  expect(fixIn(withFix("The service proxy is parked.", "kubectl get nodes."))).toBe("kubectl get nodes");
});

it.each([
  ["an older operator's message", "Maps of eBPF are full. On node-1 (flows). Fix: fewer services.", "fewer services"],
  ["of several fixes the first and what follows", "A. Fix: b (explain B) C. Fix: d", "b (explain B) C. Fix: d"],
  ["a command, without where to read on", "A. Fix: kubectl get x (vendorctl explain B_C) D. Fix: e", "kubectl get x"],
  ["none", "Waiting for pods.", undefined],
  ["an empty one", "Something. Fix: ", undefined],
  ["a word that only looks like it", "the prefix: 10.0.0.0/8", undefined],
  ["no message", undefined, undefined],
])("%s", (_, message, fix) => {
  expect(fixIn(message)).toBe(fix);
});
