import { Agent as HttpAgent, request as httpRequest } from "node:http";
import { type AgentOptions, Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";
import { connect as tlsConnect } from "node:tls";
import { errors } from "./errors.ts";

/** An agent whose connections go through an HTTP proxy, which only ever sees a tunnel (CONNECT). */
export function proxyAgent(proxy: string, options: AgentOptions, secure: boolean, timeoutMs: number): HttpAgent {
  const agent = secure ? new HttpsAgent(options) : new HttpAgent(options);
  agent.createConnection = (target, callback) => {
    const done = callback ?? (() => {});
    openTunnel(new URL(proxy), `${target.host}:${target.port}`, timeoutMs).then(
      (tunnel) => {
        if (!secure) return done(null, tunnel);
        const socket = tlsConnect({ ...(target as object), socket: tunnel as never });
        socket.once("secureConnect", () => {
          socket.off("error", fail);
          done(null, socket);
        });
        const fail = (error: Error) => done(error, socket);
        socket.once("error", fail);
      },
      (error: Error) => done(error, undefined as never),
    );
    return undefined;
  };
  return agent;
}

function openTunnel(proxy: URL, authority: string, timeout: number): Promise<Duplex> {
  const shown = proxy.origin;
  const request = proxy.protocol === "https:" ? httpsRequest : httpRequest;
  const login = decodeURIComponent(`${proxy.username}:${proxy.password}`);
  const headers = {
    host: authority,
    ...(proxy.username ? { "proxy-authorization": `Basic ${Buffer.from(login).toString("base64")}` } : {}),
  };
  return new Promise((resolve, reject) => {
    const asking = request(proxy, { method: "CONNECT", path: authority, headers, agent: false, timeout });
    asking.once("connect", (response, socket) => {
      if (response.statusCode === 200) return resolve(socket);
      socket.destroy();
      reject(errors.CLUSTER_PROXY_REFUSED(shown, `it answered ${response.statusCode}`));
    });
    asking.once("response", (response) => {
      response.resume();
      reject(errors.CLUSTER_PROXY_REFUSED(shown, `it answered ${response.statusCode} to CONNECT`));
    });
    asking.once("timeout", () => asking.destroy(new Error("it did not answer in time")));
    asking.once("error", (error: NodeJS.ErrnoException) =>
      reject(errors.CLUSTER_PROXY_REFUSED(shown, error.code ?? error.message).from(error)),
    );
    asking.end();
  });
}

/** Only HTTP proxies; anything else is refused before a connection is tried. */
export function checkProxy(proxy: string): string {
  if (URL.canParse(proxy) && /^https?:$/.test(new URL(proxy).protocol)) return proxy;
  throw errors.CLUSTER_PROXY_UNSUPPORTED(proxy);
}
