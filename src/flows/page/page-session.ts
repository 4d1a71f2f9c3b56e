import { FLOW_LOGS_API } from "../../api/names.ts";
import type { Transport } from "../../api/transport.ts";
import { statusError } from "../../cluster/failures.ts";

/** What the page is told first: whose cluster it shows, and how much of it its reader may see. */
export interface PageSession {
  cluster: string;
  release: string;
  /** Undefined: the API server does not say. */
  user?: string;
  /** The reader shows a token with each request. */
  signIn: boolean;
  /** Where to look when it may not be everywhere. */
  namespace: string;
  /** Flows of all namespaces may be listed. */
  wholeCluster: boolean;
  /** New denials are announced. */
  notifications: boolean;
  /** Runs of vendorctl can be asked for. */
  runs: boolean;
}

/** Asks the API server who the reader is. Throws its refusal. */
export async function readerOf(
  transport: Transport,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Pick<PageSession, "user" | "wholeCluster">> {
  const review = async (path: string, kind: string, spec?: object) => {
    const [, , group, version] = path.split("/");
    const response = await transport.request({
      ...{ method: "POST", path, signal },
      headers: { accept: "application/json", "content-type": "application/json", ...headers },
      body: JSON.stringify({ apiVersion: `${group}/${version}`, kind, ...(spec && { spec }) }),
    });
    return { status: response.status, text: await response.text() };
  };
  const access = await review("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "SelfSubjectAccessReview", {
    resourceAttributes: { verb: "list", resource: "flows", group: FLOW_LOGS_API.group },
  });
  if (access.status >= 300) throw statusError(access.status, access.text);
  // Older API servers do not have it.
  const self = await review("/apis/authentication.k8s.io/v1/selfsubjectreviews", "SelfSubjectReview");
  const user = self.status < 300 ? statusIn<{ userInfo?: { username?: string } }>(self.text)?.userInfo?.username : "";
  return {
    wholeCluster: statusIn<{ allowed?: boolean }>(access.text)?.allowed === true,
    ...(user && { user }),
  };
}

function statusIn<T>(text: string): T | undefined {
  return (JSON.parse(text) as { status?: T }).status;
}
