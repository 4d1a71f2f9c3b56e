import { expect, it } from "vitest";
import { backendChain, backendObject, serviceObject, shortHash } from "./proxy-names.ts";

const SERVICE = { id: "ns1/svc1:p80/tcp/4", protocol: 6 } as const;
const BACKEND = { address: "10.180.0.1", port: 80 };

it.each([
  ["default/kubernetes:httpstcp", "NPX46M4PTMTKRN6Y"],
  ["kube-system/kube-dns:dnsudp", "TCOU7JCQXEZGVUNU"],
  ["kube-system/kube-dns:dns-tcptcp", "ERIFXISQEP7F7OF4"],
])("names are hashed as on every cluster: %s", (text, hash) => {
  expect(shortHash(text, 16)).toBe(hash);
});

it("a service and its backend have the names the public proxy gives them", () => {
  expect(backendChain(SERVICE, BACKEND)).toBe("KUBE-SEP-SXIVWICOYRO3J4NJ");
  expect(serviceObject("service", SERVICE)).toBe("service-ULMVA6XW-ns1/svc1/tcp/p80");
  expect(backendObject("endpoint", SERVICE, BACKEND)).toBe("endpoint-5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80");
});

it("an address of IPv6 is written with points where the kernel takes no colon", () => {
  const backend = { address: "fd00::1", port: 80 };
  expect(backendObject("affinity", SERVICE, backend)).toMatch(
    /^affinity-[A-Z2-7]{8}-ns1\/svc1\/tcp\/p80__fd00\.\.1\/80$/,
  );
});
