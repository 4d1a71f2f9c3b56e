import { contains, parseAddress, parseCidr } from "../kit/ip.ts";
import type { ClusterEnv } from "./config.ts";

/** `$HTTPS_PROXY`, unless `$NO_PROXY` names the server or the server is this machine: then kubectl goes straight, and so do we. */
export function proxyFromEnv(server: string, env: Pick<ClusterEnv, "httpsProxy" | "noProxy">): string | undefined {
  const url = new URL(server);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (!env.httpsProxy || url.protocol !== "https:" || isThisMachine(host)) return undefined;
  const exceptions = (env.noProxy ?? "").split(",").map((exception) => exception.trim());
  if (exceptions.some((exception) => excepts(exception, host, url.port || "443"))) return undefined;
  return env.httpsProxy.includes("://") ? env.httpsProxy : `http://${env.httpsProxy}`;
}

function isThisMachine(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** `*`, an address, a range, or a name with everything below it; each but `*` and a range may have a port. */
function excepts(exception: string, host: string, port: string): boolean {
  if (exception === "") return false;
  if (exception === "*") return true;
  const address = parseAddress(host);
  const range = exception.includes("/") ? parseCidr(exception) : undefined;
  if (range && address) return contains(range, address);
  const withPort = /^(.*[^:]):(\d+)$/.exec(exception);
  if (withPort && parseAddress(exception) === undefined) {
    return withPort[2] === port && excepts(withPort[1] as string, host, port);
  }
  const name = exception.replace(/^\*?\./, "");
  return host === name || host.endsWith(`.${name}`);
}
