import { vendorNames } from "../api/names.ts";
import { clusterInformation } from "../api/resources/cluster-information.ts";
import { placesOf } from "../api/resources/resource.ts";
import { StatusError } from "../api/status.ts";
import type { ApiRequest, Transport } from "../api/transport.ts";
import { errors } from "./errors.ts";

const { group, version } = vendorNames.groups.stored;
const OURS = `/apis/${group}/${version}/`;
const INFORMATION = `${OURS}${placesOf(clusterInformation, vendorNames).stored.plural}/`;

/**
 * The Kubernetes datastore, which takes no write of ours while its ClusterInformation says that it is not ready. The API has no condition on a
 * second object: a write that was under way when it was locked still arrives, and who locks it reads again before relying on it.
 */
export function lockableTransport(kubernetes: Transport): Transport {
  return {
    async request(request) {
      if (isGuarded(request) && (await isLocked(kubernetes, request))) throw lockedError();
      return await kubernetes.request(request);
    },
    close: () => kubernetes.close(),
  };
}

function isGuarded({ method, path }: ApiRequest): boolean {
  return method !== "GET" && path.startsWith(OURS) && !path.startsWith(INFORMATION);
}

async function isLocked(kubernetes: Transport, { headers, signal }: ApiRequest): Promise<boolean> {
  const accept = {
    accept: "application/json",
    ...(headers?.["user-agent"] && { "user-agent": headers["user-agent"] }),
  };
  const path = `${INFORMATION}${vendorNames.singleton}`;
  const answer = await kubernetes.request({ method: "GET", path, headers: accept, ...(signal && { signal }) });
  const text = await answer.text();
  if (answer.status !== 200) return false;
  return (JSON.parse(text) as { spec?: { datastoreReady?: boolean } }).spec?.datastoreReady === false;
}

function lockedError(): StatusError {
  const { code, message } = errors.DATASTORE_LOCKED("the Kubernetes API");
  return new StatusError(503, "ServiceUnavailable", `${message} [${code}]`);
}
