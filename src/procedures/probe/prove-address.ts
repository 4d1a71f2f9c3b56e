import { parseAddress } from "../../kit/ip.ts";

/** Looks at the network from where this program runs; nodes may see it differently, so evidence says from where it was seen. */
export interface Prober {
  /** The addresses a name has; empty where it has none. */
  resolve(host: string, signal?: AbortSignal): Promise<readonly string[]>;
  /** Opens a connection, checks the certificate against the cluster's authority and asks for the version. */
  requestVersion(address: { host: string; port: string }, signal?: AbortSignal): Promise<ProbeAnswer>;
}

export type ProbeAnswer =
  | { is: "version"; version: string }
  /** The certificate is the cluster's; the version is shown only to authorised clients. */
  | { is: "certificate" }
  /** It answers, but with a certificate of another authority, for another name, or out of time. */
  | { is: "wrong certificate"; why: string }
  | { is: "no answer"; why: string }
  /** Something answers that is no API server. */
  | { is: "something else"; why: string };

/** What is known of one address after trying it. */
export interface Proof {
  host: string;
  port: string;
  outcome: "proven" | "unresolved" | "unreachable" | "wrong certificate" | "another server";
  evidence: string;
}

const FROM_HERE = "probed from this machine, not from the nodes";

/** Tries an address: its name, its port, its certificate, and that the same API server answers there. */
export async function proveAddress(
  prober: Prober,
  address: { host: string; port: string },
  expected: { version: string },
  signal?: AbortSignal,
): Promise<Proof> {
  const { host, port } = address;
  const say = (outcome: Proof["outcome"], evidence: string): Proof => {
    return { host, port, outcome, evidence: `${evidence} (${FROM_HERE})` };
  };
  if (!parseAddress(host)) {
    const found = await prober.resolve(host, signal);
    if (found.length === 0) return say("unresolved", `${host} does not resolve`);
  }
  const answer = await prober.requestVersion(address, signal);
  switch (answer.is) {
    case "no answer":
      return say("unreachable", `${host}:${port} does not answer: ${answer.why}`);
    case "wrong certificate":
      return say(
        "wrong certificate",
        `${host}:${port} answers with a certificate that is not valid for it: ${answer.why}`,
      );
    case "something else":
      return say("another server", `${host}:${port} is not an API server: ${answer.why}`);
    case "certificate":
      return say("proven", `${host}:${port} has this cluster's certificate`);
    case "version":
      return answer.version === expected.version
        ? say("proven", `${host}:${port} is API server ${answer.version}`)
        : say(
            "another server",
            `${host}:${port} is API server ${answer.version}, and this cluster's is ${expected.version}`,
          );
  }
}
