import { generateKeyPairSync } from "node:crypto";
import type { Transport } from "../api/transport.ts";
import type { KeyPair } from "../kit/x509.ts";
import { Aggregation, type ResolveService } from "./aggregation.ts";
import { authenticate, userOfToken } from "./auth/authenticate.ts";
import { allowEverything, Rbac } from "./auth/rbac.ts";
import { reviews } from "./auth/reviews.ts";
import { ServiceAccountTokens } from "./auth/service-account-tokens.ts";
import type { Admission, UserInfo } from "./call.ts";
import type { Core } from "./core.ts";
import { CustomResources } from "./custom-resources.ts";
import type { ServedSubresource } from "./discovery.ts";
import { Documents, type VersionInfo } from "./documents.ts";
import { type Handler, type Listening, type ListenOptions, listen } from "./http.ts";
import { inProcessTransport } from "./in-process.ts";
import { kubernetesSubresources } from "./kubernetes/subresources.ts";
import { LocalApiServices } from "./local-api-services.ts";
import { Registry } from "./registry.ts";
import type { ServedKind } from "./resource.ts";
import { Router } from "./router.ts";
import { openStore, type Store } from "./storage/store.ts";
import type { Subresource } from "./subresource.ts";

export interface ApiServerOptions {
  kinds: readonly ServedKind[];
  /** Where objects are kept; without it they live as long as the server. */
  dataDir?: string;
  /** RBAC over the roles in the store, or no refusals at all. */
  authorization?: "rbac" | "none";
  /** Hooks that see every write, in order; made once what was stored before is there to be read. */
  admissions?: (store: Store) => readonly Admission[];
  /** Subresources beyond those the kinds bring: logs and exec of the runtime. */
  subresources?: readonly Subresource[];
  serviceAccounts?: { key: string; issuer: string };
  staticTokens?: ReadonlyMap<string, UserInfo>;
  resolveService?: ResolveService;
  frontProxy?: KeyPair;
  now?: () => Date;
  /** What stands in front of everything that listens: a server that is slow or overloaded, say. Requests inside the process do not pass it. */
  front?: (handler: Handler) => Handler;
  version?: VersionInfo;
}

export interface ApiServer {
  /** Requests straight into this process, as this user (default: the cluster's administrator). */
  transport(user?: UserInfo): Transport;
  listen(options: ListenOptions): Promise<Listening>;
  store: Store;
  registry: Registry;
  close(): Promise<void>;
}

/** The Kubernetes release whose kinds and habits this server follows. */
const VERSION: VersionInfo = { major: "1", minor: "36", gitVersion: "v1.36.4-vendor" };
const ADMIN: UserInfo = { name: "system:admin", groups: ["system:masters", "system:authenticated"] };

export async function createApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const now = options.now ?? (() => new Date());
  const store = await openStore(
    options.dataDir === undefined ? { firstRevision: now().getTime() } : { dataDir: options.dataDir },
  );
  const registry = new Registry();
  registry.add(options.kinds);
  const admissions: Admission[] = [...(options.admissions?.(store) ?? [])];
  const core: Core = { store, registry, admissions, now };

  const rbac = options.authorization === "rbac" ? new Rbac(store) : undefined;
  const tokens = new ServiceAccountTokens(
    options.serviceAccounts?.key ?? throwAwayKey(),
    options.serviceAccounts?.issuer ?? "https://kubernetes.default.svc.cluster.local",
  );
  const identity = { tokens, staticTokens: options.staticTokens ?? new Map(), store, now };
  const customResources = new CustomResources(core);
  const subresources = [...kubernetesSubresources(tokens), ...(options.subresources ?? [])];
  const documents = new Documents(registry, options.version ?? VERSION, () => ({
    subresources: servedSubresources(subresources),
    foreign: aggregation.foreign(),
  }));
  const aggregation = new Aggregation(
    core,
    { resolveService: options.resolveService ?? (() => undefined), frontProxy: options.frontProxy },
    () => documents.invalidate(),
  );
  admissions.push(customResources, aggregation, ...(rbac ? [rbac] : []));
  customResources.load();
  new LocalApiServices(core);
  aggregation.start();

  const authorizer = rbac ?? allowEverything;
  const asked = reviews(authorizer, (token) => userOfToken(token, identity));
  const router = new Router({ core, authorizer, reviews: asked, subresources, aggregation, documents });
  const front = options.front?.(router) ?? router;
  const closing = new AbortController();
  const listeners: Listening[] = [];
  return {
    store,
    registry,
    transport: (user = ADMIN) => inProcessTransport(router, user, closing.signal),
    listen: async (listenOptions) => {
      const listening = await listen(front, (credentials) => authenticate(credentials, identity), listenOptions);
      documents.address = `${listening.host}:${listening.port}`;
      listeners.push(listening);
      return listening;
    },
    close: async () => {
      aggregation.stop();
      closing.abort(new Error("the server is closed"));
      await Promise.all(listeners.map((listening) => listening.close()));
      await store.close();
    },
  };
}

/** Tokens then end with the process, as everything else in a server without a data directory does. */
function throwAwayKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}

function servedSubresources(all: readonly Subresource[]): Record<string, ServedSubresource[]> {
  const grouped: Record<string, ServedSubresource[]> = {};
  for (const { group, plural, name, kind, verbs } of all) {
    const key = `${group}/${plural}`;
    grouped[key] = [...(grouped[key] ?? []), { path: `${plural}/${name}`, kind, verbs }];
  }
  return grouped;
}
