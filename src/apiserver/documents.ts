import type { Reply } from "./call.ts";
import { Discovery, type DiscoveryInput } from "./discovery.ts";
import { type OpenApiV2, type OpenApiV3, openApiV2, openApiV3 } from "./openapi.ts";
import type { Registry } from "./registry.ts";
import { noSuchPath } from "./status-errors.ts";

export interface VersionInfo {
  major: string;
  minor: string;
  gitVersion: string;
}

interface Made {
  generation: number;
  discovery: Discovery;
  v2: OpenApiV2;
  v3: OpenApiV3;
}

/** Everything the server says about itself: version, health, discovery, OpenAPI. Made on demand, made again when kinds change. */
export class Documents {
  readonly #registry: Registry;
  readonly #version: VersionInfo;
  readonly #others: () => Omit<DiscoveryInput, "kinds">;
  #made: Made | undefined;
  address = "";

  constructor(registry: Registry, version: VersionInfo, others: () => Omit<DiscoveryInput, "kinds">) {
    this.#registry = registry;
    this.#version = version;
    this.#others = others;
  }

  /** Groups served elsewhere have come or gone. */
  invalidate(): void {
    this.#made = undefined;
  }

  answer(
    request: { headers: Readonly<Record<string, string | undefined>> },
    path: string,
    query: URLSearchParams,
  ): Reply {
    const accept = request.headers["accept"] ?? "";
    const clean = path.length > 1 ? path.replace(/\/+$/, "") : path;
    if (clean === "/version") return json(versionDocument(this.#version));
    if (clean === "/healthz" || clean === "/livez" || clean === "/readyz") return health(clean.slice(1), query);
    if (clean === "/")
      return json({
        paths: ["/api", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"],
      });
    if (clean === "/openapi/v2") return this.#openApiV2(accept);
    if (clean === "/openapi/v3") return json(this.#current().v3.index);
    if (clean.startsWith("/openapi/v3/")) return this.#openApiV3(clean.slice("/openapi/v3/".length));
    return this.#discover(clean, accept, request.headers["if-none-match"]);
  }

  #current(): Made {
    const generation = this.#registry.generation;
    if (this.#made?.generation !== generation) {
      const kinds = this.#registry.all();
      const others = this.#others();
      const described = others.foreign.flatMap(({ openApi }) => openApi ?? []);
      const discovery = new Discovery({ kinds, ...others }, this.address);
      this.#made = { generation, discovery, v2: openApiV2(kinds, described), v3: openApiV3(kinds, described) };
    }
    return this.#made;
  }

  #discover(path: string, accept: string, known: string | undefined): Reply {
    const { discovery } = this.#current();
    const [root, group, version] = path.split("/").slice(1);
    if ((root === "api" || root === "apis") && group === undefined) {
      const aggregated = /g=apidiscovery\.k8s\.io;v=(v2(?:beta1)?);as=APIGroupDiscoveryList/.exec(accept);
      if (!aggregated) return json(root === "api" ? discovery.coreVersions() : discovery.groupList());
      const made = discovery.aggregated(root, aggregated[1]!);
      const type = `application/json;g=apidiscovery.k8s.io;v=${aggregated[1]};as=APIGroupDiscoveryList`;
      const headers = { "content-type": type, etag: made.etag, vary: "Accept" };
      return known === made.etag ? { status: 304, headers } : { status: 200, headers, body: made.body };
    }
    const found =
      root === "api" && group !== undefined && version === undefined
        ? discovery.resourceList("", group)
        : root === "apis" && group !== undefined
          ? version === undefined
            ? discovery.group(group)
            : discovery.resourceList(group, version)
          : undefined;
    if (found === undefined) throw noSuchPath();
    return json(found);
  }

  #openApiV2(accept: string): Reply {
    const { v2 } = this.#current();
    const protobuf = /application\/com\.github\.proto-openapi\.spec\.v2[.@]v1\.0\+protobuf/.exec(accept);
    if (!protobuf) return { status: 200, body: v2.json() };
    // Named with a dot: the at sign clients also ask with is not allowed in a content type, and older ones insist.
    const type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    return { status: 200, headers: { "content-type": type }, body: [v2.protobuf()] };
  }

  #openApiV3(groupVersionPath: string): Reply {
    const document = this.#current().v3.document(groupVersionPath.replace(/^apis\/|^api\//, ""));
    if (document === undefined) throw noSuchPath();
    return { status: 200, body: document };
  }
}

function json(value: unknown): Reply {
  return { status: 200, body: JSON.stringify(value) };
}

function versionDocument(version: VersionInfo): Record<string, string> {
  const platform = `linux/${process.arch === "x64" ? "amd64" : process.arch}`;
  return {
    ...version,
    gitCommit: "",
    gitTreeState: "clean",
    buildDate: "1970-01-01T00:00:00Z",
    goVersion: "none",
    compiler: "none",
    platform,
  };
}

function health(check: string, query: URLSearchParams): Reply {
  const text = query.has("verbose") ? `[+]ping ok\n[+]storage ok\n${check} check passed\n` : "ok";
  return { status: 200, headers: { "content-type": "text/plain; charset=utf-8" }, body: text };
}
