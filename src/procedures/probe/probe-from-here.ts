import { lookup } from "node:dns/promises";
import { type RequestOptions, request } from "node:https";
import { isIP } from "node:net";
import type { ProbeAnswer, Prober } from "./prove-address.ts";

const PATIENCE_MS = 3000;

/** The system's own resolver and real connections. `authority` is what the kubeconfig trusts. */
export function probeFromHere(options: { authority: string | undefined; patienceMs?: number }): Prober {
  const patience = options.patienceMs ?? PATIENCE_MS;
  return {
    async resolve(host) {
      try {
        return (await withPatience(lookup(host, { all: true }), patience)).map(({ address }) => address);
      } catch {
        // Whatever the resolver's reason: from here the name leads nowhere.
        return [];
      }
    },
    requestVersion: ({ host, port }, signal) =>
      requestOnce({
        host,
        port,
        path: "/version",
        timeout: patience,
        agent: false,
        ...(isIP(host) ? {} : { servername: host }),
        ...(options.authority === undefined ? {} : { ca: options.authority }),
        ...(signal ? { signal } : {}),
      }),
  };
}

function requestOnce(options: RequestOptions): Promise<ProbeAnswer> {
  return new Promise((resolve) => {
    const call = request(options, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(readVersion(response.statusCode ?? 0, text)));
      response.on("error", (error) => resolve({ is: "no answer", why: error.message }));
    });
    call.on("timeout", () => call.destroy(new Error(`no answer within ${(options.timeout ?? 0) / 1000}s`)));
    call.on("error", (error: NodeJS.ErrnoException) => resolve(refusal(error)));
    call.end();
  });
}

function readVersion(status: number, text: string): ProbeAnswer {
  // Most API servers show their version to anonymous clients; one that does not still proved its certificate.
  if (status === 401 || status === 403) return { is: "certificate" };
  try {
    const { gitVersion } = JSON.parse(text) as { gitVersion?: unknown };
    if (status === 200 && typeof gitVersion === "string") return { is: "version", version: gitVersion };
  } catch {
    // Said below.
  }
  return { is: "something else", why: `it answers /version with ${status}` };
}

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|HOSTNAME/;

function refusal(error: NodeJS.ErrnoException): ProbeAnswer {
  const code = error.code ?? "";
  const why = error.message.split("\n", 1)[0] ?? code;
  if (CERTIFICATE.test(code)) return { is: "wrong certificate", why };
  if (code === "EPROTO" || code.startsWith("ERR_SSL")) return { is: "something else", why: "it does not speak TLS" };
  if (code.startsWith("HPE_")) return { is: "something else", why: "it does not speak HTTP" };
  return { is: "no answer", why };
}

function withPatience<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no answer in time")), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
